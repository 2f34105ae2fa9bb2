#include "tools/ds-run/Values.h"

#include "runtime/core/Error.h"
#include "tools/commandline/Nearest.h"

#include <cstring>

namespace ds {

std::set<std::string> blockNames(const EntryInfo &entry) {
  std::set<std::string> names;
  for (const LaunchInfo &launch : entry.launches)
    for (const LaunchResult &result : launch.results)
      if (!result.value.empty()) // values that the compiler made have no name, and nothing to be compared with
        names.insert(result.value);
  return names;
}

std::set<std::string> wantedValues(const EntryInfo &entry, const Options &options) {
  std::set<std::string> kept = blockNames(entry);
  for (const std::string &name : options.values)
    if (!kept.count(name))
      fail(ErrorCode::InvalidArgument, "--values: '", name, "' is none of the ", kept.size(),
           " values that this package keeps in memory",
           commandline::didYouMean(name, std::vector<std::string>(kept.begin(), kept.end())),
           " (ds-opt --fusion=none keeps more, --reference nearly all)");
  return {options.values.begin(), options.values.end()};
}

void BlockObserver::afterLaunch(const Event &event) {
  for (const LaunchResult &result : event.entry.launches[event.site].results) {
    if (!wanted.count(result.value) || !event.buffers[result.buffer])
      continue;
    TensorView view{result.type, evaluateShape(result.shape, event.symbols), event.buffers[result.buffer]};
    if (view.bytes() > event.bufferBytes[result.buffer])
      fail(ErrorCode::BadPackage, "result '", result.value, "' of ", view.bytes(), " bytes lies in a buffer of ",
           event.bufferBytes[result.buffer]);
    unsigned count = ++seen[result.value];
    visit(count == 1 ? result.value : concat(result.value, "#", count), view);
  }
}

void BlockRecorder::visit(const std::string &name, const TensorView &value) {
  Tensor copy(value.type, value.shape);
  if (copy.bytes() != 0)
    std::memcpy(copy.data(), value.data, copy.bytes());
  blocks.push_back({name, std::move(copy)});
}

} // namespace ds
