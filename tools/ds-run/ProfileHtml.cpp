#include "tools/ds-run/ProfileHtml.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/Graph.h"
#include "tools/ds-run/Json.h"
#include "tools/ds-run/Markup.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace ds {
namespace {

std::string number(double value, const char *format = "%.4g") {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

double rate(double amount, double ms) { return ms > 0 ? amount / ms * 1e-6 : 0; }

// Which ceiling the roofline of a share is made of.
const char *boundOf(const ProfileReport &report, const Share &share) {
  double arithmetic = share.flops / peakOf(report.ceilings, share.arithmetic) * 1e-6;
  return share.rooflineMs <= 0 ? "" : arithmetic >= share.rooflineMs * 0.999 ? "arithmetic" : "memory";
}

const char *style = R"(
body { font-family: sans-serif; font-size: 14px; margin: 24px; color: #222; max-width: 1200px; }
h1 { font-size: 20px; } h2 { font-size: 16px; margin-top: 28px; }
p { max-width: 800px; color: #444; }
table { border-collapse: collapse; font-size: 13px; }
th { text-align: right; border-bottom: 2px solid #888; padding: 3px 10px; background: #fff; position: sticky; top: 0; }
td { text-align: right; border-bottom: 1px solid #e4e4e4; padding: 2px 10px; font-variant-numeric: tabular-nums; }
td.name, th.name { text-align: left; }
tr:hover td { background: #f4f7fb; }
details details, details div { margin-left: 18px; } details { font-size: 13px; } span.module { font-weight: bold; }
)";

std::string cell(double value, const std::string &shown) {
  return concat("<td data-value=\"", Json(value).dump(), "\">", shown, "</td>");
}

std::string cell(const std::string &name) {
  return concat("<td class=\"name\" title=\"", escapeMarkup(name), "\">", escapeMarkup(shortenName(name)), "</td>");
}

// One row per share: names first, then the numbers that JSON has, then what follows from them.
std::string numbers(const ProfileReport &report, const Share &share) {
  double bytes = share.memoryBytes + share.workspaceBytes;
  return cell(share.ms, number(share.ms)) +
         cell(report.totalMs > 0 ? share.ms / report.totalMs : 0,
              number(report.totalMs > 0 ? 100 * share.ms / report.totalMs : 0, "%.1f %%")) +
         cell(static_cast<double>(share.calls), number(static_cast<double>(share.calls), "%.0f")) +
         cell(rate(share.flops, share.ms), number(rate(share.flops, share.ms))) +
         cell(rate(bytes, share.ms), number(rate(bytes, share.ms))) + cell(share.rooflineMs, number(share.rooflineMs)) +
         cell(share.ms > 0 ? share.rooflineMs / share.ms : 0,
              number(share.ms > 0 ? 100 * share.rooflineMs / share.ms : 0, "%.0f %%"));
}

constexpr const char *numberHeads = "<th>ms</th><th>share</th><th>launches</th><th>GFLOP/s</th><th>GB/s</th>"
                                    "<th>roofline ms</th><th>of roofline</th>";

std::string table(const char *id, const std::string &heads, const std::string &rows) {
  return concat("<table id=\"", id, "\"><thead><tr>", heads, "</tr></thead><tbody>\n", rows, "</tbody></table>\n");
}

std::string kernelTable(const ProfileReport &report) {
  std::string rows;
  for (const Share &share : report.kernels)
    rows += concat("<tr>", cell(share.kernel), cell(share.site), numbers(report, share), "<td class=\"name\">",
                   boundOf(report, share), "</td></tr>\n");
  return table("kernels",
               concat("<th class=\"name\">kernel</th><th class=\"name\">first node</th>", numberHeads,
                      "<th class=\"name\">bound by</th>"),
               rows);
}

std::string nodeTable(const ProfileReport &report) {
  std::string rows;
  for (size_t i = 0; i < report.nodes.size(); ++i) {
    const Share &share = report.nodes[i];
    rows += concat("<tr>", cell(share.site), cell(share.kernel), cell(report.nodeLayers[i]), numbers(report, share),
                   "<td class=\"name\">", boundOf(report, share), "</td></tr>\n");
  }
  return table("nodes",
               concat("<th class=\"name\">node</th><th class=\"name\">kernel</th><th class=\"name\">layer</th>",
                      numberHeads, "<th class=\"name\">bound by</th>"),
               rows);
}

std::string svgHead(double width, double height) {
  return concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", number(width, "%.0f"), "\" height=\"",
                number(height, "%.0f"), "\" viewBox=\"0 0 ", number(width, "%.0f"), " ", number(height, "%.0f"),
                "\" font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n");
}

std::string text(double x, double y, const std::string &what, const char *anchor = "start") {
  return concat("<text x=\"", number(x, "%.1f"), "\" y=\"", number(y, "%.1f"), "\" text-anchor=\"", anchor, "\">",
                escapeMarkup(what), "</text>\n");
}

std::string line(double x1, double y1, double x2, double y2, const char *look) {
  return concat("<line x1=\"", number(x1, "%.1f"), "\" y1=\"", number(y1, "%.1f"), "\" x2=\"", number(x2, "%.1f"),
                "\" y2=\"", number(y2, "%.1f"), "\" ", look, "/>\n");
}

// A bar per layer; its dark part is what the ceilings ask for.
std::string layerChart(const ProfileReport &report) {
  constexpr double left = 300, room = 560, step = 20, top = 8;
  double most = 1e-9;
  for (const Share &layer : report.layers)
    most = std::max(most, std::max(layer.ms, layer.rooflineMs));
  std::string body;
  double y = top;
  for (const Share &layer : report.layers) {
    auto bar = [&](double ms, const char *colour, double height) {
      return concat("<rect x=\"", number(left, "%.1f"), "\" y=\"", number(y + (step - 4 - height) / 2, "%.1f"),
                    "\" width=\"", number(room * ms / most, "%.2f"), "\" height=\"", number(height, "%.0f"),
                    "\" fill=\"", colour, "\"/>");
    };
    body += concat("<g class=\"layer\" data-value=\"", Json(layer.ms).dump(), "\"><title>", escapeMarkup(layer.site),
                   "\n", number(layer.ms), " ms, roofline ", number(layer.rooflineMs), " ms</title>",
                   bar(layer.ms, "#9dbfe0", step - 4), bar(layer.rooflineMs, "#2f5f8f", 6), "</g>\n");
    body += text(left - 8, y + 12, shortenName(layer.site), "end");
    body += text(left + room * std::max(layer.ms, layer.rooflineMs) / most + 6, y + 12, number(layer.ms) + " ms");
    y += step;
  }
  return concat(svgHead(left + room + 90, y + top), body, "</svg>\n");
}

struct Range {
  double low = 1e300, high = 0;
  void add(double value) {
    if (value > 0)
      low = std::min(low, value), high = std::max(high, value);
  }
  // To powers of ten around.
  void widen() {
    if (high <= 0)
      low = 1, high = 10;
    low = std::pow(10, std::floor(std::log10(low)));
    high = std::pow(10, std::ceil(std::log10(high * 1.001)));
  }
  double place(double value) const {
    return (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  }
};

struct Line {
  std::string name;
  double rate;
};

// Both axes are logarithmic: operations per byte, and billions of operations per second. Slopes are memory, level lines
// arithmetic.
class RooflinePlot {
public:
  explicit RooflinePlot(const ProfileReport &report) : report(report) {
    const Ceilings &ceilings = report.ceilings;
    slopes = {{concat("working set ", number(ceilings.workingSetGBps, "%.3g"), " GB/s"), ceilings.workingSetGBps},
              {concat("cache ", number(ceilings.cacheGBps, "%.3g"), " GB/s"), ceilings.cacheGBps}};
    std::vector<std::string> seen;
    for (const Share &share : report.kernels) {
      std::string arithmetic = share.arithmetic.empty() ? "f32" : share.arithmetic;
      if (share.flops <= 0 || std::find(seen.begin(), seen.end(), arithmetic) != seen.end())
        continue;
      seen.push_back(arithmetic);
      double peak = peakOf(ceilings, arithmetic);
      levels.push_back({concat(arithmetic, " ", number(peak, "%.4g"), " GFLOP/s"), peak});
    }
    if (levels.empty())
      levels.push_back({concat("f32 ", number(ceilings.f32Gflops, "%.4g"), " GFLOP/s"), ceilings.f32Gflops});
    for (const Share &share : report.kernels)
      if (double bytes = share.memoryBytes + share.workspaceBytes; share.flops > 0 && bytes > 0 && share.ms > 0) {
        xs.add(share.flops / bytes);
        ys.add(rate(share.flops, share.ms));
      }
    for (const Line &level : levels) {
      ys.add(level.rate);
      for (const Line &slope : slopes)
        xs.add(level.rate / slope.rate);
    }
    xs.widen();
    ys.widen();
  }

  std::string draw() const {
    return concat(svgHead(left + width + 20, top + height + 44), grid(), ceilings(), points(), "</svg>\n");
  }

private:
  static constexpr double left = 64, top = 12, width = 760, height = 420;

  double x(double value) const { return left + width * xs.place(value); }
  double y(double value) const { return top + height * (1 - ys.place(value)); }

  std::string grid() const {
    std::string result;
    for (double at = xs.low; at <= xs.high * 1.001; at *= 10)
      result += line(x(at), top, x(at), top + height, "stroke=\"#e2e2e2\"") +
                text(x(at), top + height + 16, number(at, "%g"), "middle");
    for (double at = ys.low; at <= ys.high * 1.001; at *= 10)
      result += line(left, y(at), left + width, y(at), "stroke=\"#e2e2e2\"") +
                text(left - 6, y(at) + 4, number(at, "%g"), "end");
    return result + text(left + width / 2, top + height + 36, "operations per byte", "middle") +
           text(4, top + 4, "GFLOP/s");
  }

  std::string ceilings() const {
    std::string result;
    double peak = 0;
    for (const Line &level : levels)
      peak = std::max(peak, level.rate);
    for (const Line &slope : slopes) {
      double from = std::max(xs.low, ys.low / slope.rate), to = std::min(xs.high, peak / slope.rate);
      if (from < to)
        result +=
            line(x(from), y(from * slope.rate), x(to), y(to * slope.rate), "class=\"ceiling\" stroke=\"#b3541e\"") +
            text(x(from) + 6, y(from * slope.rate) - 12, slope.name);
    }
    for (const Line &level : levels) {
      double from = std::max(xs.low, level.rate / std::max(slopes[0].rate, slopes[1].rate));
      result += line(x(from), y(level.rate), left + width, y(level.rate), "class=\"ceiling\" stroke=\"#2e7d4f\"") +
                text(left + width - 4, y(level.rate) - 4, level.name, "end");
    }
    return result;
  }

  // The area of a point is its kernel's share of the time.
  std::string points() const {
    std::string result;
    for (const Share &share : report.kernels) {
      double bytes = share.memoryBytes + share.workspaceBytes;
      if (share.flops <= 0 || bytes <= 0 || share.ms <= 0)
        continue;
      double radius = 3 + 15 * std::sqrt(report.totalMs > 0 ? share.ms / report.totalMs : 0);
      result += concat("<circle class=\"kernel\" cx=\"", number(x(share.flops / bytes), "%.1f"), "\" cy=\"",
                       number(y(rate(share.flops, share.ms)), "%.1f"), "\" r=\"", number(radius, "%.1f"), "\" fill=\"",
                       colourOf(kernelKind(share.kernel)), "\" fill-opacity=\"0.8\" stroke=\"#333\"><title>",
                       escapeMarkup(share.kernel), "\n", number(share.ms), " ms, ", number(rate(share.flops, share.ms)),
                       " GFLOP/s, ", number(share.flops / bytes), " operations per byte</title></circle>\n");
    }
    return result;
  }

  const ProfileReport &report;
  std::vector<Line> slopes, levels;
  Range xs, ys;
};

} // namespace

ProfileReport profileReport(const Measured &measured, const std::string &title) {
  ProfileReport report;
  report.title = title;
  report.threads = measured.threads;
  report.launches = measured.launches.size();
  report.totalMs = measured.launchTotalMs;
  report.ceilings = measured.ceilings;
  report.kernels = sharesOf(measured, [&](size_t i) { return measured.launchInfo(i).kernel; });
  sortByTime(report.kernels);

  // A step calls several entries: layers that are called the same have the entry's name with it.
  std::map<const EntryInfo *, std::vector<Layer>> layers;
  for (const LaunchWork &launch : measured.launches)
    if (layers.find(launch.entry) == layers.end())
      layers[launch.entry] = layersOf(*launch.entry);
  auto layerName = [&](const LaunchWork &launch) {
    const std::vector<Layer> &own = layers[launch.entry];
    size_t layer = 0;
    while (layer + 1 < own.size() && own[layer + 1].first <= launch.site)
      ++layer;
    return (layers.size() > 1 ? launch.entry->name + ": " : std::string()) + own[layer].name;
  };
  for (const LaunchWork &launch : measured.launches)
    report.launchLayers.push_back(layerName(launch));
  // A node that became several launches is one row for each; in a loop, one for all repetitions.
  std::map<std::string, std::string> layerOf; // by key
  auto siteKey = [&](size_t i) {
    const LaunchWork &launch = measured.launches[i];
    std::string key = concat(launch.entry->name, " ", launch.site);
    layerOf[key] = layerName(launch);
    return key;
  };
  struct Node {
    Share share;
    std::string layer;
  };
  std::vector<Node> nodes;
  std::vector<std::string> keys;
  report.nodes = sharesOf(measured, siteKey, &keys);
  for (size_t i = 0; i < report.nodes.size(); ++i)
    nodes.push_back({report.nodes[i], layerOf[keys[i]]});
  std::sort(nodes.begin(), nodes.end(), [](const Node &a, const Node &b) {
    return a.share.ms != b.share.ms ? a.share.ms > b.share.ms : a.share.site < b.share.site;
  });
  report.nodes.clear();
  for (Node &node : nodes) {
    report.nodes.push_back(std::move(node.share));
    report.nodeLayers.push_back(std::move(node.layer));
  }
  report.layers = sharesOf(measured, [&](size_t i) { return layerName(measured.launches[i]); }, &keys);
  for (size_t i = 0; i < report.layers.size(); ++i) {
    report.layers[i].site = keys[i];
    report.layers[i].kernel.clear();
  }
  return report;
}

std::string profileAsHtml(const ProfileReport &report, const std::string &modules) {
  const Ceilings &ceilings = report.ceilings;
  return concat(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<title>",
      escapeMarkup(report.title), "</title><style>", style, "</style></head><body>\n<h1>", escapeMarkup(report.title),
      "</h1>\n<p id=\"total\" data-value=\"", Json(report.totalMs).dump(), "\">", report.launches, " launches take ",
      number(report.totalMs), " ms on ", report.threads,
      " threads: medians of several calls, in alternation with the ceilings of this machine. These are ",
      number(ceilings.workingSetGBps), " GB/s for as much memory as a call moves, ", number(ceilings.cacheGBps),
      " GB/s from caches, and ", number(ceilings.f32Gflops), " GFLOP/s in f32.</p>\n<h2>Time by layer</h2>\n",
      "<p>The dark part of a bar is the time that the ceilings ask for.</p>\n", layerChart(report),
      "<h2>Roofline</h2>\n<p>Each point is a kernel; its area is its share of the time. No point can lie above the "
      "level "
      "line of its arithmetic, nor above the upper slope; one above the lower slope finds its values in a cache. "
      "Kernels "
      "without arithmetic are in the table only.</p>\n",
      RooflinePlot(report).draw(), "<h2>Kernels</h2>\n", kernelTable(report), "<h2>Nodes of the model</h2>\n",
      "<p>A node that was fused into another's kernel is part of that row.</p>\n", nodeTable(report), modules,
      "</body></html>\n");
}

} // namespace ds
