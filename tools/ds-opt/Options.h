// The driver's command line: `ds-opt MODEL -o OUT.dsp ...`. Parsed by hand from one table, which is also the help text.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_OPTIONS_H
#define DEEPSTRIDE_TOOLS_DSOPT_OPTIONS_H

#include "dialects/ds/SameDimensions.h"
#include "frontends/config/Config.h"
#include "passes/Phases.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace deepstride {

enum class Reference { Off, Native, F64 };
enum class Emit { Nothing, Mlir, Onnx };

/// What --quantize asks for; without bits, nothing.
struct Quantization {
  int64_t bits = 0, group = 0;
  std::string scheme = "symmetric", keep;
  bool mixed = true; // what results depend on most in finer steps
  bool isMixedGiven = false;
  bool activations = false; // rows in 8 bits, too
};

/// What --mode=train asks for.
struct TrainingRequest {
  bool isOn = false;
  std::string loss, logits, labels;
  bool shiftsLabels = false;
  std::optional<int64_t> ignoredLabel;
  std::string train, freeze, noDecay; // regular expressions over initializers' names; empty: not given
  std::string head;                   // the output that a fresh layer reads; empty: none
  int64_t classes = 0;                // of that layer
  std::optional<uint64_t> seed;
  std::string config;             // ds_config.json; empty: defaults
  std::optional<uint64_t> memory; // bytes that a step may take; activations are computed again so that it does
  bool isStrict = false, printsConfig = false, unties = false;
  std::optional<int64_t> ranks; // of --mesh=data=N; any number without
  bool isPlanned = false;       // nothing is compiled: what each rank takes and moves is written
  std::string planFile;         // to there; empty: to the standard output
  std::optional<::ds::config::TrainingConfig> resolved; // by resolveTraining
};

struct DriverOptions {
  std::string input, output;
  llvm::StringMap<int64_t> dims;
  SameDimensions same; // dimensions that are one
  /// Shapes of inputs by name: per axis a size, or the name of a dynamic dimension.
  llvm::StringMap<std::vector<std::string>> shapes;
  std::vector<std::string> cpus;
  Reference reference = Reference::Off;
  Quantization quantize;
  std::string calibrate; // a file of inputs; empty: weights are rounded to nearest
  /// What products are rounded to, "bf16" or "f16"; empty: nothing.
  std::string rounds;
  std::string ceilings; // a file of ds-run bench --json; empty: measured where a choice depends on it
  Fusion fusion = Fusion::Specialized;
  TrainingRequest training;
  std::optional<Phase> stopAfter;
  std::string dumpDir;
  Emit emit = Emit::Nothing;
  bool report = false, check = false, printLocations = false;
  bool listsInputs = false; // what the model takes and gives is printed, and nothing compiled
  /// The folder of finished packages (CompileCache.h); empty: none.
  std::string cache;
  bool isDefaultCache = false; // nobody named it
  uint64_t cacheBytes = uint64_t(10) << 30;
  /// All arguments, as they were given.
  std::vector<std::string> arguments;
  /// Options as they were given, in order, but for those about the cache and the output: what decides a result.
  std::vector<std::string> deciding;
  /// Whether the phases before memory run. Without them a program is compiled as it was written, which shares no
  /// folding with what --verify-numerics judges.
  bool folds = true;
  /// Of a program that --dump-dir wrote (Resume.h): the phase at whose end it did, the model that the program is of,
  /// and the target that it is scheduled for, where it is for one. What this command line says of dimensions is
  /// `ownDims`.
  std::optional<Phase> done;
  std::string model, target;
  std::vector<std::string> ownDims;
  /// Why the options of a program do not go together: what its dump was made with may complete them.
  std::string misfit;
  /// Options of MLIR, as given, pass plugins, and passes that run at the end of a phase.
  std::vector<std::string> mlirOptions, plugins;
  std::vector<std::pair<Phase, std::string>> passesAfter;
  /// For the tests of what happens on a bug: crashes in this phase.
  std::optional<Phase> crashIn;
  bool manyRows = false; // for benchmarks: what products cost without their paths for few rows

  bool isOnnx() const { return llvm::StringRef(input).ends_with(".onnx"); }
  bool isDone(Phase phase) const { return done && phase <= *done; }
  /// The model, or the program, by which a package is named.
  const std::string &origin() const { return done ? model : input; }
};

enum class Request { Compile, Help, Version, ListPhases, BashCompletion, ZshCompletion, ManPage };

struct ParsedCommandLine {
  Request request = Request::Compile;
  DriverOptions options;
  std::string error; // one line; usage errors exit 2
};

/// Whether the arguments address the driver; otherwise ds-opt is an mlir-opt.
bool isDriverCommandLine(llvm::ArrayRef<llvm::StringRef> arguments);
ParsedCommandLine parseDriverCommandLine(llvm::ArrayRef<llvm::StringRef> arguments);
std::string driverHelp();
/// A script for a shell, or the manual page.
std::string shellText(Request request);

} // namespace deepstride

#endif
