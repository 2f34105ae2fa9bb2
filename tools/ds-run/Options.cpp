#include "tools/ds-run/Options.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <cstdlib>

namespace ds {

Pins parsePins(const std::vector<std::string> &dims) {
  Pins pins;
  for (const std::string &dim : dims) {
    size_t equals = dim.rfind('=');
    char *end = nullptr;
    errno = 0;
    long long value = equals == std::string::npos ? -1 : std::strtoll(dim.c_str() + equals + 1, &end, 10);
    if (equals == std::string::npos || equals == 0 || end == dim.c_str() + equals + 1 || *end || errno || value < 0)
      fail(ErrorCode::InvalidArgument, "--dim: found '", dim, "', expected NAME=VALUE with a size of 0 or more");
    if (!pins.emplace(dim.substr(0, equals), value).second)
      fail(ErrorCode::InvalidArgument, "--dim: '", dim.substr(0, equals), "' is given twice");
  }
  return pins;
}

Options ofManyCalls(const Options &options) {
  Options result = options;
  if (result.weights.empty())
    result.weights = "copied";
  return result;
}

std::shared_ptr<const Package> loadPackage(const std::string &path, const Options &options, unsigned rank,
                                           unsigned ranks) {
  LoadOptions load;
  load.verify = !options.noVerify;
  load.mcpu = options.mcpu;
  load.rank = rank;
  load.ranks = ranks;
  load.copyWeights = options.weights == "copied";
  return Package::load(path, load);
}

} // namespace ds
