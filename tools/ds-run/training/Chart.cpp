#include "tools/ds-run/training/Chart.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "tools/ds-run/Markup.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace ds {
namespace {

constexpr double width = 720, height = 240, left = 64, right = 12, top = 26, bottom = 34;

std::string number(double value, const char *format = "%.4g") {
  char text[48];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// Maps a range of values to a range of pixels.
class Axis {
public:
  Axis(double low, double high, double from, double to, bool isLog) : isLog(isLog && low > 0), from(from), to(to) {
    first = scaled(low);
    last = scaled(high);
    // One value lies in the middle; so do values that differ by rounding alone, between which no step of ticks fits.
    if (!(last - first > 1e-9 * std::max(std::abs(first), std::abs(last)))) {
      first -= 0.5 * std::max(1e-12, std::abs(first));
      last += 0.5 * std::max(1e-12, std::abs(last));
    }
  }
  double at(double value) const { return from + (scaled(value) - first) / (last - first) * (to - from); }
  // Round numbers within the range.
  std::vector<double> ticks() const {
    std::vector<double> values;
    if (isLog) {
      for (double power = std::ceil(first); power <= last; power += std::max(1.0, std::ceil((last - first) / 6)))
        values.push_back(std::pow(10, power));
      if (values.size() > 1)
        return values;
      values.clear();
      return {std::pow(10, first), std::pow(10, last)};
    }
    double step = std::pow(10, std::floor(std::log10((last - first) / 4)));
    for (double factor : {1.0, 2.0, 5.0, 10.0})
      if ((last - first) / (step * factor) <= 6) {
        step *= factor;
        break;
      }
    for (double value = std::ceil(first / step) * step; value <= last + step * 1e-9; value += step)
      values.push_back(std::abs(value) < step * 1e-9 ? 0 : value);
    return values;
  }

private:
  double scaled(double value) const { return isLog ? std::log10(value) : value; }
  bool isLog;
  double from, to, first = 0, last = 0;
};

std::string text(double x, double y, const char *anchor, const std::string &what) {
  return concat("<text x=\"", number(x), "\" y=\"", number(y), "\" text-anchor=\"", anchor, "\">", escapeMarkup(what),
                "</text>");
}

} // namespace

std::string lineChart(const ChartStyle &style, const std::vector<Line> &lines) {
  double inf = std::numeric_limits<double>::infinity();
  double lowX = inf, highX = -inf, lowY = inf, highY = -inf;
  for (const Line &line : lines)
    for (auto [x, y] : line.points)
      if (std::isfinite(y)) {
        lowX = std::min(lowX, x), highX = std::max(highX, x);
        lowY = std::min(lowY, y), highY = std::max(highY, y);
      }
  std::string svg = concat("<svg viewBox=\"0 0 ", width, " ", height, "\" width=\"", width, "\" height=\"", height,
                           "\" role=\"img\">", text(left, 16, "start", style.title));
  if (!(lowX <= highX))
    return svg + text(width / 2, height / 2, "middle", "nothing to show") + "</svg>\n";
  Axis x(lowX, highX, left, width - right, style.hasLogX), y(lowY, highY, height - bottom, top, style.hasLogY);
  for (double tick : y.ticks())
    svg += concat("<line class=\"grid\" x1=\"", left, "\" x2=\"", width - right, "\" y1=\"", number(y.at(tick)),
                  "\" y2=\"", number(y.at(tick)), "\"/>", text(left - 6, y.at(tick) + 4, "end", number(tick)));
  for (double tick : x.ticks())
    svg += text(x.at(tick), height - bottom + 16, "middle", number(tick));
  svg += text((left + width - right) / 2, height - 4, "middle", style.xLabel);
  double legend = width - right;
  for (const Line &line : lines) {
    std::string points;
    size_t stride = std::max<size_t>(1, line.points.size() / 4000);
    for (size_t i = 0; i < line.points.size(); i += stride)
      if (std::isfinite(line.points[i].second))
        points +=
            concat(number(x.at(line.points[i].first), "%.1f"), ",", number(y.at(line.points[i].second), "%.1f"), " ");
    svg += concat("<polyline fill=\"none\" stroke=\"", line.color, "\" stroke-width=\"1.5\" points=\"", points, "\"/>");
    if (lines.size() > 1) {
      svg += concat("<text fill=\"", line.color, "\" x=\"", legend, "\" y=\"16\" text-anchor=\"end\">",
                    escapeMarkup(line.name), "</text>");
      legend -= 8.0 * static_cast<double>(line.name.size() + 2);
    }
  }
  return svg + "</svg>\n";
}

void writePage(const std::string &path, const std::string &title, const std::string &body) {
  std::string page = concat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", escapeMarkup(title),
      "</title>\n<style>body { font-family: sans-serif; font-size: 14px; margin: 24px; color: #222; max-width: 800px; "
      "}\n"
      "h1 { font-size: 20px; } svg { display: block; margin: 14px 0; } svg text { font: 12px sans-serif; fill: #444; "
      "}\n"
      ".grid { stroke: #e4e4e4; } table { border-collapse: collapse; } td { padding: 2px 12px 2px 0; }</style></head>\n"
      "<body><h1>",
      escapeMarkup(title), "</h1>\n", body, "</body></html>\n");
  AtomicFile file(path);
  file.write(page.data(), page.size());
  file.commit();
}

} // namespace ds
