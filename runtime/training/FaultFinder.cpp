#include "runtime/training/FaultFinder.h"

#include "runtime/training/Trainer.h"

#include <algorithm>
#include <cmath>

namespace ds {

int64_t firstFault(const TensorView &view) {
  if (!isFloat(view.type))
    return -1;
  int64_t count = elementCount(view.shape);
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(loadDouble(view.type, view.data, static_cast<size_t>(i))))
      return i;
  return -1;
}

std::string FaultFinder::found() const {
  if (nan.empty() || infinity.empty())
    return nan.empty() ? infinity : nan;
  return infinity + ", then " + nan;
}

// "tensor 'x' of node 'y'". What has no name of its own is said to be what it is computed for.
static std::string describe(const EntryInfo &entry, const LaunchInfo &launch, const LaunchResult &result) {
  if (!result.value.empty() || !launch.site.empty())
    return concat(result.value.empty() ? std::string("a tensor") : concat("tensor '", result.value, "'"),
                  launch.site.empty() ? std::string() : concat(" of node '", launch.site, "'"));
  // A sum of gradients has no node: it reads or writes the state that they are added up in.
  std::vector<uint32_t> buffers = launch.operands;
  buffers.push_back(result.buffer);
  const std::string suffix = Trainer::gradientOf("");
  std::string parameter;
  for (uint32_t buffer : buffers) {
    if (entry.buffers[buffer].role != BufferRole::State)
      continue;
    const std::string &state = entry.states[entry.buffers[buffer].index].name;
    if (state.size() > suffix.size() && state.compare(state.size() - suffix.size(), suffix.size(), suffix) == 0)
      parameter = state.substr(0, state.size() - suffix.size());
  }
  return parameter.empty() ? "a tensor of the loss" : concat("the gradient of '", parameter, "'");
}

std::string FaultFinder::operatorIn(const std::string &node) const {
  return operatorOf && !node.empty() ? operatorOf(node) : std::string();
}

// "; it computes 'x' (Log) and 'y' (MatMul), too" of a kernel of several nodes, any of which the fault may come from.
std::string FaultFinder::othersOf(const LaunchInfo &launch) const {
  constexpr size_t shown = 6;
  std::vector<std::string> nodes;
  for (const NodeWork &work : launch.work)
    if (!work.node.empty() && work.node != launch.site &&
        std::find(nodes.begin(), nodes.end(), work.node) == nodes.end())
      nodes.push_back(work.node);
  std::string text;
  for (size_t i = 0; i < std::min(nodes.size(), shown); ++i) {
    std::string type = operatorIn(nodes[i]);
    text += concat(i == 0                  ? "; it computes "
                   : i + 1 == nodes.size() ? " and "
                                           : ", ",
                   "'", nodes[i], "'", type.empty() ? "" : concat(" (", type, ")"));
  }
  if (nodes.size() > shown)
    text += concat(" and ", nodes.size() - shown, " more");
  return text.empty() ? text : text + ", too";
}

void FaultFinder::afterLaunch(const Event &event) {
  if (!nan.empty())
    return;
  const LaunchInfo &launch = event.entry.launches[event.site];
  for (const LaunchResult &result : launch.results) {
    if (!event.buffers[result.buffer])
      continue;
    TensorView view{result.type, evaluateShape(result.shape, event.symbols), event.buffers[result.buffer]};
    int64_t at = view.bytes() <= event.bufferBytes[result.buffer] ? firstFault(view) : -1;
    if (at < 0)
      continue;
    bool isNan = false;
    for (int64_t i = at, count = elementCount(view.shape); i < count && !isNan; ++i)
      if (isNan = std::isnan(loadDouble(view.type, view.data, static_cast<size_t>(i))); isNan)
        at = i;
    std::string type = operatorIn(launch.site);
    std::string &kind = isNan ? nan : infinity;
    if (kind.empty())
      kind = concat(isNan ? "NaN" : "infinity", " in ", describe(event.entry, launch, result), " (", type,
                    type.empty() ? "" : ", ", "kernel ", launch.kernel, ", element ", at, othersOf(launch), ")");
    if (isNan)
      return;
  }
}

} // namespace ds
