// What the command line says, after parsing; one struct for all commands, each reads its part.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_OPTIONS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_OPTIONS_H

#include "runtime/core/Binding.h"
#include "runtime/core/Package.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ds {

struct Options {
  std::string package, other; // other: the folder or package to compare with
  std::string entry, mcpu;
  std::vector<std::string> dims, inputs; // NAME=VALUE
  std::string inputsFrom, output, stateIn, stateOut, json, trace, graph, html;
  std::optional<uint64_t> seed;
  unsigned threads = 0, ranks = 1;
  double timeout = 30;
  std::optional<double> duration; // seconds of calls
  std::optional<uint64_t> iterations, warmup;
  std::vector<double> percentiles = {90, 95, 99};
  unsigned streams = 1;
  std::string weights;             // "mapped" or "copied"; empty: as the command does
  std::string onnxRuntime;         // compare: the model that ONNX Runtime runs
  std::vector<std::string> values; // names of intermediate values
  std::optional<double> rtol, atol;
  // profile; what is not given is as the configuration of a package that trains, or its defaults
  std::optional<int64_t> moduleDepth, topModules;
  std::optional<bool> detailed;
  bool noVerify = false, asJson = false;
};

// "batch=2" ... as pins. Throws Error(InvalidArgument).
Pins parsePins(const std::vector<std::string> &dims);

// The same, with weights copied unless something else is asked for.
Options ofManyCalls(const Options &options);

// As one of the ranks that load it, which verify it together.
std::shared_ptr<const Package> loadPackage(const std::string &path, const Options &options, unsigned rank = 0,
                                           unsigned ranks = 1);

// Each returns the exit code 0 or 1; trouble is thrown.
int runCommand(const Options &options);
int compareCommand(const Options &options);
int benchCommand(const Options &options);
int inspectCommand(const Options &options);
int profileCommand(const Options &options);
int probeCommand(const Options &options);
int gradientsCommand(const Options &options);

} // namespace ds
#endif
