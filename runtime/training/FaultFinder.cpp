#include "runtime/training/FaultFinder.h"

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
    std::string &kind = isNan ? nan : infinity;
    if (kind.empty())
      kind = concat(isNan ? "NaN" : "infinity", " in ",
                    result.value.empty() ? std::string("a tensor") : concat("tensor '", result.value, "'"), " of ",
                    launch.site.empty() ? std::string("the loss") : concat("node '", launch.site, "'"), " (kernel ",
                    launch.kernel, ", element ", at, ")");
    if (isNan)
      return;
  }
}

} // namespace ds
