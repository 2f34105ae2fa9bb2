#include "tools/ds-run/training/MemoryUse.h"

#include "runtime/core/Text.h"

#include <cstdio>
#include <fstream>

namespace ds {

uint64_t MemoryUse::most() {
  // Of getrusage's maximum a process inherits its parent's.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      uint64_t kibibytes = 0;
      return status >> kibibytes ? kibibytes << 10 : 0;
    }
  return 0;
}

static std::string mebibytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", static_cast<double>(bytes) / (1 << 20));
  return text;
}

std::optional<MemoryPlan> planOf(const Trainer &trainer, const Dataset &data, const config::TrainingConfig &config) {
  Pins pins = {{"mesh.data", trainer.mesh().ranks}, {"mesh.data.index", trainer.mesh().rank}};
  for (size_t i = 0; i < trainer.batch().size(); ++i) {
    const std::vector<SizeExpr> &shape = trainer.batch()[i].shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (uint32_t symbol = 0; shape[axis].isSymbol(symbol))
        pins[shape[axis].text()] = axis == 0 ? config.microBatch : data.fields()[i].row[axis - 1];
  }
  std::set<std::string> missing;
  return planMemory(trainer.package().variant(), pins, config.accumulation, missing);
}

std::string memoryText(const Trainer &trainer, const Dataset &data, const config::TrainingConfig &config,
                       unsigned threads, uint64_t peakBytes) {
  std::optional<MemoryPlan> plan = planOf(trainer, data, config);
  std::string text = "memory: ";
  if (plan) {
    text += concat("planned ", mebibytes(plan->total()), " MiB");
    const char *before = " (";
    for (auto [name, bytes] : {std::pair("parameters", plan->parameters), std::pair("gradients", plan->gradients),
                               std::pair("optimizer", plan->optimizer), std::pair("states", plan->states),
                               std::pair("weights", plan->weights), std::pair("activations", plan->activations),
                               std::pair("workspace", plan->workspace), std::pair("data", plan->data)})
      if (bytes) {
        text += concat(before, name, " ", mebibytes(bytes));
        before = ", ";
      }
    text += concat(*before == ',' ? ")" : "", " and ", mebibytes(plan->scratch), " for each of ", threads,
                   threads == 1 ? " thread, " : " threads, ");
  } else {
    text += "not planned, as sizes depend on the data: ";
  }
  return text + concat("at most ", mebibytes(peakBytes), " MiB");
}

} // namespace ds
