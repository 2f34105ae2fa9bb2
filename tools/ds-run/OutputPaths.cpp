#include "tools/ds-run/OutputPaths.h"

#include "runtime/core/Error.h"

#include <filesystem>
#include <map>

namespace fs = std::filesystem;

namespace ds {

void checkOutputPaths(const Options &options, const TrainOptions &training) {
  std::map<fs::path, const char *> known;
  auto check = [&](const char *option, const std::string &path) {
    std::error_code error;
    if (path.empty() || path == "-" || (fs::exists(path, error) && !fs::is_regular_file(path, error)))
      return;
    fs::path file = fs::weakly_canonical(fs::absolute(path, error), error);
    if (error)
      return; // which writing it will say
    auto [other, isNew] = known.try_emplace(file, option);
    if (!isNew)
      fail(ErrorCode::InvalidArgument, option, ": '", path, "' is what ", other->second,
           " writes, expected a file of its own");
    fs::path folder = file.parent_path();
    if (fs::exists(folder / "manifest.json", error) && fs::exists(folder / "SHA256SUMS", error))
      fail(ErrorCode::InvalidArgument, option, ": '", path, "' lies in a package, expected a file elsewhere");
  };
  for (const Options *of : {&options, &training.run}) {
    check("--output", of->output);
    check("--state-out", of->stateOut);
    check("--json", of->json);
    check("--html", of->html);
    check("--trace", of->trace);
    check("--graph", of->graph);
  }
  check("--output", training.output);
  check("--log", training.log);
  check("--counters", training.counters);
}

} // namespace ds
