// Every option that decides a package, with its origin, as its manifest has them.
#include "tools/ds-opt/PackageDescription.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace deepstride {

std::vector<std::string> dimTexts(const DriverOptions &options) {
  std::vector<std::string> dims;
  for (const auto &dim : options.dims)
    dims.push_back((dim.getKey() + "=" + Twine(dim.getValue())).str());
  for (const auto &[name, other] : options.same.joined())
    dims.push_back(name + "=" + other);
  llvm::sort(dims); // the same command gives the same bytes
  return dims;
}

PackageOptions describeOptions(const DriverOptions &options) {
  PackageOptions package;
  package.model = llvm::sys::path::filename(options.origin()).str();
  auto add = [&](StringRef key, const std::string &value, bool isGiven) {
    package.config.push_back({key.str(), value, isGiven ? "command line" : "default"});
  };
  package.manyRows = options.manyRows;
  if (options.manyRows)
    add("test-many-rows", "yes", true);
  StringRef references[] = {"off", "on", "f64"};
  add("mcpu", options.cpus.empty() ? "host" : llvm::join(options.cpus, ","), !options.cpus.empty());
  add("reference", references[static_cast<int>(options.reference)].str(), options.reference != Reference::Off);
  StringRef fusions[] = {"none", "generic", "specialized"};
  add("fusion", fusions[static_cast<int>(options.fusion)].str(), options.fusion != Fusion::Specialized);
  std::vector<std::string> dims = dimTexts(options);
  add("dim", llvm::join(dims, ","), !dims.empty());
  if (const Quantization &quantize = options.quantize; quantize.bits)
    add("quantize",
        "int" + std::to_string(quantize.bits) + ",group=" + std::to_string(quantize.group) +
            ",scheme=" + quantize.scheme + (quantize.mixed ? "" : ",mixed=no") +
            (quantize.keep.empty() ? "" : ",keep=" + quantize.keep),
        true);
  if (!options.calibrate.empty())
    add("calibrate", llvm::sys::path::filename(options.calibrate).str(), true);
  if (!options.rounds.empty())
    add("precision", options.rounds, true);
  if (options.quantize.activations)
    add("activations", "int8", true);
  std::vector<std::string> shapes;
  for (const auto &shape : options.shapes)
    shapes.push_back((shape.getKey() + "=" + llvm::join(shape.getValue(), ",")).str());
  llvm::sort(shapes);
  if (!shapes.empty())
    add("shape", llvm::join(shapes, " "), true);
  if (const TrainingRequest &training = options.training; training.isOn) {
    add("mode", "train", true);
    add("loss", training.loss, true);
    for (const auto &[key, value] : {std::pair("logits", &training.logits), std::pair("labels", &training.labels),
                                     std::pair("train", &training.train), std::pair("freeze", &training.freeze),
                                     std::pair("no-decay", &training.noDecay)})
      if (!value->empty())
        add(key, *value, true);
    if (!training.head.empty()) {
      add("head", training.head + ":" + std::to_string(training.classes), true);
      add("seed", std::to_string(training.seed.value_or(0)), training.seed.value_or(0) != 0);
    }
    if (training.ranks)
      add("mesh", "data=" + std::to_string(*training.ranks), true);
    if (training.memory)
      add("memory", std::to_string(*training.memory), true);
    if (training.unties)
      add("untie", "yes", true);
    package.training = ::ds::config::toJson(*training.resolved);
  }
  return package;
}

} // namespace deepstride
