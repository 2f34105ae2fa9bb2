// Line charts as inline SVG: what training did, for pages that need nothing else.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_CHART_H
#define DEEPSTRIDE_TOOLS_DS_RUN_TRAINING_CHART_H

#include <string>
#include <utility>
#include <vector>

namespace ds {

struct Line {
  std::string name, color;
  std::vector<std::pair<double, double>> points; // by x; what is not finite is left out
};

struct ChartStyle {
  std::string title, xLabel;
  bool hasLogX = false, hasLogY = false; // where all numbers are above 0
};

std::string lineChart(const ChartStyle &style, const std::vector<Line> &lines);

// A page around charts and paragraphs of text. Complete under its name or not there at all; throws Error(Io).
void writePage(const std::string &path, const std::string &title, const std::string &body);

} // namespace ds
#endif
