// Where the boxes and lines of a graph are drawn. Rows by longest path; a line that passes rows has a place of its own
// in each, as a box has, so that it runs around the others (Sugiyama, Tagawa and Toda, 1981).
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_GRAPHPLACES_H
#define DEEPSTRIDE_TOOLS_DS_RUN_GRAPHPLACES_H

#include "tools/ds-run/Graph.h"

#include <string>
#include <utility>
#include <vector>

namespace ds {

inline constexpr double graphBoxHeight = 38;

struct GraphBox {
  size_t row = 0;
  double x = 0, y = 0, width = 0; // x and y of the centre
};

struct GraphFrame {
  double top = 0, bottom = 0;
};

struct GraphPlaces {
  std::vector<GraphBox> boxes;    // by node
  std::vector<std::string> lines; // by edge: a path of SVG, from below a box to above another
  std::vector<GraphFrame> frames; // by section
  double width = 0, height = 0;
};

/// For nodes of these widths, below a heading of such a height; text as wide as that is to fit, too.
GraphPlaces placeGraph(const Graph &graph, const std::vector<double> &widths, double heading, double textWidth);

} // namespace ds
#endif
