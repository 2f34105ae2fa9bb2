// ds_config.json as ds-opt and ds-run understand it: values that are known to be legal, each with its origin. A file of
// DeepSpeed is taken as it is; docs/config.md says what becomes of each key.
#ifndef DEEPSTRIDE_FRONTENDS_CONFIG_CONFIG_H
#define DEEPSTRIDE_FRONTENDS_CONFIG_CONFIG_H

#include "runtime/training/Settings.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ds::config {

enum class Source : uint8_t { File, Derived, Default };

struct Entry {
  std::string key, value; // JSON text
  Source source = Source::Default;
  int line = 0;       // in the file; 0: not from the file
  std::string note;   // "without effect on one rank"
  bool isUsed = true; // otherwise the file says it, and nothing follows from it
};

enum class OptimizerKind : uint8_t { Sgd, Adagrad, Adam, Lamb };

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::Adam;
  bool isDecoupled = true;          // Adam: decay is taken off the parameter
  double lr = 1e-3, momentum = 0.9; // momentum: beta1 of Adam and Lamb
  double beta2 = 0.999, eps = 1e-8, weightDecay = 0;
  bool correctsBias = true;
  double dampening = 0;
  bool isNesterov = false;
  double maxCoeff = 10, minCoeff = 0.01;
  bool hasEpsInside = false;
  double lrDecay = 0, initialAccumulator = 0;
  bool compresses = false; // 1-bit Adam and LAMB
  double coeffBeta = 0.9, factorMax = 4, factorMin = 0.5, factorThreshold = 0.1;

  bool hasMomentum() const { return kind != OptimizerKind::Adagrad && (kind != OptimizerKind::Sgd || momentum != 0); }
};

struct TensorBoardConfig {
  bool isEnabled = false;
  std::string outputPath, jobName;
};

struct FlopsProfilerConfig {
  bool isEnabled = false;
  int64_t step = 1;   // that is profiled, from 0
  int64_t depth = -1; // of the largest modules; -1: all
  int64_t top = 1;    // modules of each depth
  bool isDetailed = true;
  std::string outputFile; // empty: standard output
};

// Where states of one kind live.
struct OffloadSettings {
  std::string device = "none"; // "cpu", "nvme"
  std::string folder;          // of nvme
  int64_t buffers = 0;         // states that are in memory at a time, of nvme
  int64_t inHost = 0;          // elements that stay in host memory, of nvme
};

// How parameters, gradients and optimizer states are shared among data-parallel ranks, and in what messages.
struct ZeroSettings {
  int64_t stage = 0;                          // what is shared: 1 optimizer states, 2 gradients, 3 parameters
  int64_t reduceBucket = 0, gatherBucket = 0; // elements of a message; 2^53: all of them
  bool overlaps = false;                      // gradients leave while others are computed
  std::string wireType;                       // "fp16", "bf16", "fp32"; empty: gradients travel in their own
  std::string gradientType;                   // "fp16", "bf16", "fp32": what they are kept in
  bool hasSparseGradients = false;
  int64_t subGroup = 0; // elements updated at once
  // Elements, of stage 3.
  int64_t maxLive = 0, maxReuse = 0, prefetchBucket = 0, persistence = 0, modelPersistence = 0;
  OffloadSettings optimizerPlace, parameterPlace;
};

// Optimizers that compress messages to 1 bit.
struct OneBitSettings {
  bool isEnabled = false;
  int64_t freezeStep = 0; // from which messages are compressed
};

struct TrainingConfig {
  std::string file;           // as it was named
  int64_t ranks = 1;          // for which batch sizes were resolved
  std::vector<Entry> entries; // in the order of the table

  int64_t trainBatch = 1, microBatch = 1, accumulation = 1;
  OptimizerConfig optimizer;
  double gradientClipping = 0; // 0: none
  ScheduleSettings schedule;
  bool isFp16 = false, isBf16 = false;
  LossScaleSettings lossScale; // constant 1 without fp16
  bool recomputes = false;     // activations are computed again, so that a step takes the least memory
  bool dropsLayers = false;
  LayerDropSettings layerDrop;
  QuantizationSettings quantization;
  int64_t stepsPerPrint = 10;
  bool wallClockBreakdown = false, memoryBreakdown = false, dumpsState = false;
  TensorBoardConfig tensorboard;
  FlopsProfilerConfig flopsProfiler;
  ZeroSettings zero;
  OneBitSettings oneBit;
  double predivide = 1;      // what gradients are divided by before they are reduced; 1: by ranks
  std::string tagValidation; // IGNORE, WARN or FAIL

  // Null where neither the file nor a rule says anything about the key.
  const Entry *find(const std::string &key) const;
};

struct ReadOptions {
  bool areRanksOpen = false; // how many there are is known when the package runs: sizes must fit some
  bool isStrict = false;     // keys without effect on one rank are errors
  int64_t ranks = 1;         // data-parallel
  std::string ranksFrom = "this is one process"; // where that number comes from, for messages
};

struct Reading {
  std::optional<TrainingConfig> config; // where there is no error
  std::vector<std::string> errors;      // a line each: "FILE:LINE:COL: KEY: found X, expected Y"
};

// Sizes of a package's batches for the number of ranks that run it; keys of ranks have an effect where there are
// several. `pinned`: the micro-batch's size, where the package has no other one. Throws Error(InvalidArgument).
void resolveFor(TrainingConfig &config, int64_t ranks, const std::string &ranksFrom,
                std::optional<int64_t> pinned = std::nullopt);

// Neither throws, whatever the file holds.
Reading readConfig(const std::string &text, const std::string &file, const ReadOptions &options = {});
Reading readConfigFile(const std::string &path, const ReadOptions &options = {});

// One line per key, aligned: "fp16.enabled   = true   # ds_config.json:12".
void printConfig(const TrainingConfig &config, std::ostream &out);

// One line per key that the file has and that does nothing: "ds_config.json:12: KEY = VALUE: without effect on one
// rank".
std::vector<std::string> notes(const TrainingConfig &config);

// For a package's manifest. fromJson throws Error(BadPackage) for whatever toJson does not write.
std::string toJson(const TrainingConfig &config);
TrainingConfig fromJson(const std::string &text);

// "adamw,beta2=0.999,epsilon=1e-08,...": the option `optimizer` of the pass ds-train-step.
std::string optimizerText(const OptimizerConfig &optimizer);

struct PackageTraits {
  bool accumulates = true;     // the package adds up gradients of several micro-batches
  bool hasDynamicBatch = true; // a micro-batch may have another size
};

struct Difference {
  std::string key, compiled, given;
  std::string text() const { return key + ": compiled with " + compiled + ", given " + given; }
};

struct Differences {
  std::vector<Difference> allowed; // what a compiled package takes
  std::vector<Difference> refused; // what needs another compilation
};

// How a file that is given to a package differs from the one that it was compiled with.
Differences changes(const TrainingConfig &compiled, const TrainingConfig &given, const PackageTraits &package = {});

} // namespace ds::config
#endif
