// A graph as SVG that needs nothing else. Rows by longest path; within a row by the mean place of what is read.
#include "tools/ds-run/Graph.h"

#include "tools/ds-run/Markup.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ds {
namespace {

constexpr double characterWidth = 6.6, rowHeight = 64, nodeHeight = 38, gap = 18, margin = 28, titleHeight = 26;

struct Box {
  size_t row = 0;
  double x = 0, y = 0, width = 0; // x and y of the centre
};

class Drawing {
public:
  explicit Drawing(const Graph &graph) : graph(graph), boxes(graph.nodes.size()) {}

  std::string draw() {
    assignRows();
    place();
    std::string body = frames() + arrows() + nodes();
    return concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", number(width), "\" height=\"", number(height),
                  "\" viewBox=\"0 0 ", number(width), " ", number(height),
                  "\" font-family=\"sans-serif\" font-size=\"11\">\n"
                  "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
                  "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#777\"/></marker></defs>\n"
                  "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"",
                  number(margin), "\" y=\"20\" font-size=\"14\" font-weight=\"bold\">", escapeMarkup(graph.title),
                  "</text>\n", body, "</svg>\n");
  }

private:
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f", value);
    return text;
  }

  void assignRows() {
    std::vector<std::vector<size_t>> sources(graph.nodes.size());
    for (const GraphEdge &edge : graph.edges)
      if (edge.from < edge.to)
        sources[edge.to].push_back(edge.from);
    size_t next = 0;
    for (const GraphSection &section : graph.sections) {
      // Sections do not share rows, so that a frame surrounds its own nodes only.
      size_t base = next;
      for (size_t i = section.first; i < section.first + section.count; ++i) {
        boxes[i].row = base;
        for (size_t source : sources[i])
          boxes[i].row = std::max(boxes[i].row, boxes[source].row + 1);
        next = std::max(next, boxes[i].row + 1);
      }
    }
    rows.resize(next);
    for (size_t i = 0; i < boxes.size(); ++i)
      rows[boxes[i].row].push_back(i);
    readers = std::move(sources);
  }

  double wanted(size_t node) const {
    if (readers[node].empty())
      return 0;
    double sum = 0;
    for (size_t source : readers[node])
      sum += boxes[source].x;
    return sum / static_cast<double>(readers[node].size());
  }

  void place() {
    double widest = 240;
    for (size_t row = 0; row < rows.size(); ++row) {
      std::vector<size_t> &line = rows[row];
      std::sort(line.begin(), line.end(),
                [&](size_t a, size_t b) { return std::make_pair(wanted(a), a) < std::make_pair(wanted(b), b); });
      double total = -gap;
      for (size_t node : line) {
        size_t text = std::max(graph.nodes[node].kind.size(), shortenName(graph.nodes[node].label).size());
        boxes[node].width = 16 + characterWidth * static_cast<double>(text);
        total += boxes[node].width + gap;
      }
      double x = -total / 2; // rows are centred on 0
      for (size_t node : line) {
        boxes[node].x = x + boxes[node].width / 2;
        boxes[node].y = titleHeight + margin + rowHeight * (static_cast<double>(row) + 0.5);
        x += boxes[node].width + gap;
      }
      widest = std::max(widest, total);
    }
    for (const GraphSection &section : graph.sections)
      widest = std::max(widest, characterWidth * static_cast<double>(section.title.size()));
    width = widest + 4 * margin;
    height = titleHeight + 2 * margin + rowHeight * static_cast<double>(rows.size());
    for (Box &box : boxes)
      box.x += width / 2;
  }

  /// Around each section that repeats.
  std::string frames() const {
    std::string text;
    for (const GraphSection &section : graph.sections) {
      if (section.repetitions == 1)
        continue;
      double top = height, bottom = 0;
      for (size_t i = section.first; i < section.first + section.count; ++i) {
        top = std::min(top, boxes[i].y - rowHeight / 2);
        bottom = std::max(bottom, boxes[i].y + rowHeight / 2);
      }
      text += concat("<rect x=\"", number(margin), "\" y=\"", number(top), "\" width=\"", number(width - 2 * margin),
                     "\" height=\"", number(bottom - top),
                     "\" rx=\"8\" fill=\"#fafafa\" stroke=\"#999\" stroke-dasharray=\"5 3\"/>\n<text x=\"",
                     number(margin + 6), "\" y=\"", number(top + 13), "\" font-weight=\"bold\">",
                     escapeMarkup(section.title), "</text>\n");
    }
    return text;
  }

  std::string arrows() const {
    std::string text;
    for (const GraphEdge &edge : graph.edges) {
      const Box &from = boxes[edge.from], &to = boxes[edge.to];
      double fromY = from.y + nodeHeight / 2, toY = to.y - nodeHeight / 2;
      double bend = edge.isCarried ? rowHeight / 3 : (toY - fromY) / 2;
      double side = edge.isCarried ? width - 2 * margin : 0;
      std::string path = concat("M", number(from.x), " ", number(fromY), "C");
      path += edge.isCarried
                  ? concat(number(side), " ", number(fromY + bend), " ", number(side), " ", number(toY - bend))
                  : concat(number(from.x), " ", number(fromY + bend), " ", number(to.x), " ", number(toY - bend));
      text += concat("<path d=\"", path, " ", number(to.x), " ", number(toY), "\" fill=\"none\" stroke=\"#777\"",
                     edge.isCarried ? " stroke-dasharray=\"4 3\"" : "", " marker-end=\"url(#tip)\"/>\n");
    }
    return text;
  }

  std::string nodes() const {
    std::string text;
    for (size_t i = 0; i < boxes.size(); ++i) {
      const GraphNode &node = graph.nodes[i];
      const Box &box = boxes[i];
      text += concat("<g><title>", escapeMarkup(node.label), "\n", escapeMarkup(node.detail), "</title><rect x=\"",
                     number(box.x - box.width / 2), "\" y=\"", number(box.y - nodeHeight / 2), "\" width=\"",
                     number(box.width), "\" height=\"", number(nodeHeight), "\" rx=\"5\" fill=\"", colourOf(node.kind),
                     "\" stroke=\"#555\"/><text text-anchor=\"middle\" x=\"", number(box.x), "\" y=\"",
                     number(box.y - 4), "\" font-weight=\"bold\">", escapeMarkup(node.kind),
                     "</text><text text-anchor=\"middle\" x=\"", number(box.x), "\" y=\"", number(box.y + 11), "\">",
                     escapeMarkup(shortenName(node.label)), "</text></g>\n");
    }
    return text;
  }

  const Graph &graph;
  std::vector<Box> boxes;
  std::vector<std::vector<size_t>> rows;    // nodes by row
  std::vector<std::vector<size_t>> readers; // by node: what it reads, above it
  double width = 0, height = 0;
};

} // namespace

std::string graphAsSvg(const Graph &graph) { return Drawing(graph).draw(); }

} // namespace ds
