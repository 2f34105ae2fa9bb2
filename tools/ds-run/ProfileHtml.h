// The profile of a call as a page: where the time goes, and how far each kernel is from what this machine can do.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_PROFILEHTML_H
#define DEEPSTRIDE_TOOLS_DS_RUN_PROFILEHTML_H

#include "tools/ds-run/Measure.h"

#include <string>
#include <vector>

namespace ds {

struct ProfileReport {
  std::string title; // model and entry
  unsigned threads = 0;
  size_t launches = 0;
  double totalMs = 0; // of all launches
  Ceilings ceilings;
  std::vector<Share> kernels, nodes;     // the longest first
  std::vector<Share> layers;             // in the order of the program; `site` is the layer's name, `kernel` empty
  std::vector<std::string> nodeLayers;   // of each node
  std::vector<std::string> launchLayers; // of each launch, in the order of the call
};

ProfileReport profileReport(const Measured &measured, const std::string &title);

/// One file that needs no other and no network: HTML that is well-formed XML, pictures as inline SVG, no script. Every
/// number of a table is in full in its cell's `data-value`, as JSON writes it. `modules` are sections of the page.
std::string profileAsHtml(const ProfileReport &report, const std::string &modules);

} // namespace ds
#endif
