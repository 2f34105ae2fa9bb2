// A graph as SVG that needs nothing else.
#include "tools/ds-run/Graph.h"

#include "tools/ds-run/GraphPlaces.h"
#include "tools/ds-run/Markup.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cstdio>

namespace ds {
namespace {

constexpr double characterWidth = 6.6, margin = 28, heading = 42;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

double widthOf(const std::string &text) { return characterWidth * static_cast<double>(text.size()); }

class Drawing {
public:
  explicit Drawing(const Graph &graph) : graph(graph) {
    std::vector<double> widths;
    for (const GraphNode &node : graph.nodes)
      widths.push_back(16 + std::max(widthOf(node.kind), widthOf(shortenName(node.label))));
    double text = std::max({240.0, widthOf(graph.title) * 1.2, widthOf(graph.legend)});
    for (const GraphSection &section : graph.sections)
      text = std::max(text, widthOf(section.title));
    places = placeGraph(graph, widths, heading, text);
  }

  std::string draw() const {
    std::string size = concat("width=\"", number(places.width), "\" height=\"", number(places.height),
                              "\" viewBox=\"0 0 ", number(places.width), " ", number(places.height), "\"");
    return concat("<svg xmlns=\"http://www.w3.org/2000/svg\" ", size,
                  " font-family=\"sans-serif\" font-size=\"11\">\n"
                  "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
                  "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#777\"/></marker></defs>\n"
                  "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"",
                  number(margin), "\" y=\"20\" font-size=\"14\" font-weight=\"bold\">", escapeMarkup(graph.title),
                  "</text>\n<text x=\"", number(margin), "\" y=\"38\" fill=\"#555\">", escapeMarkup(graph.legend),
                  "</text>\n", frames(), arrows(), nodes(), "</svg>\n");
  }

private:
  /// Around each section that repeats.
  std::string frames() const {
    std::string text;
    for (size_t i = 0; i < graph.sections.size(); ++i) {
      if (graph.sections[i].repetitions == 1)
        continue;
      auto [top, bottom] = places.frames[i];
      text += concat("<rect x=\"", number(margin), "\" y=\"", number(top), "\" width=\"",
                     number(places.width - 2 * margin), "\" height=\"", number(bottom - top),
                     "\" rx=\"8\" fill=\"#fafafa\" stroke=\"#999\" stroke-dasharray=\"5 3\"/>\n<text x=\"",
                     number(margin + 6), "\" y=\"", number(top + 14), "\" font-weight=\"bold\">",
                     escapeMarkup(graph.sections[i].title), "</text>\n");
    }
    return text;
  }

  std::string arrows() const {
    std::string text;
    for (size_t i = 0; i < graph.edges.size(); ++i)
      text += concat("<path d=\"", places.lines[i], "\" fill=\"none\" stroke=\"#777\"",
                     graph.edges[i].isCarried ? " stroke-dasharray=\"4 3\"" : "", " marker-end=\"url(#tip)\"/>\n");
    return text;
  }

  std::string nodes() const {
    std::string text;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const GraphNode &node = graph.nodes[i];
      const GraphBox &box = places.boxes[i];
      text += concat("<g><title>", escapeMarkup(node.label), "\n", escapeMarkup(node.detail), "</title><rect x=\"",
                     number(box.x - box.width / 2), "\" y=\"", number(box.y - graphBoxHeight / 2), "\" width=\"",
                     number(box.width), "\" height=\"", number(graphBoxHeight), "\" rx=\"5\" fill=\"",
                     colourOf(node.kind), "\" stroke=\"#555\"/><text text-anchor=\"middle\" x=\"", number(box.x),
                     "\" y=\"", number(box.y - 4), "\" font-weight=\"bold\">", escapeMarkup(node.kind),
                     "</text><text text-anchor=\"middle\" x=\"", number(box.x), "\" y=\"", number(box.y + 11), "\">",
                     escapeMarkup(shortenName(node.label)), "</text></g>\n");
    }
    return text;
  }

  const Graph &graph;
  GraphPlaces places;
};

} // namespace

std::string graphAsSvg(const Graph &graph) { return Drawing(graph).draw(); }

} // namespace ds
