// How much memory a package takes while it runs, by what it is for: known before anything runs.
#ifndef DEEPSTRIDE_RUNTIME_CORE_MEMORYPLAN_H
#define DEEPSTRIDE_RUNTIME_CORE_MEMORYPLAN_H

#include "runtime/core/Binding.h"
#include "runtime/core/Manifest.h"

#include <optional>
#include <set>

namespace ds {

// Bytes of all entries of a variant together: one is called at a time, and all share one workspace.
struct MemoryPlan {
  uint64_t parameters = 0, gradients = 0, optimizer = 0;
  uint64_t states = 0;      // others: running statistics, caches
  uint64_t weights = 0;     // constants, but for first values of states, which are given back once they are copied
  uint64_t activations = 0; // of a micro-batch: what its way back reads
  uint64_t workspace = 0;   // of the entry that takes most, besides activations
  uint64_t data = 0;    // inputs and outputs of the entry that has most; of a step's micro-batches and an evaluation
  uint64_t scratch = 0; // of each thread, for itself; total() is without it, since it grows with threads

  uint64_t total() const {
    return parameters + gradients + optimizer + states + weights + activations + workspace + data;
  }
};

// For the dimensions that are given; nothing where sizes depend on others, which `missing` gets. What is known only
// when the program runs (computed sizes) is not counted, nor is the entry that exports of quantized weights call.
// `microBatches`: of a training step. Throws Error as makePlan does.
std::optional<MemoryPlan> planMemory(const VariantInfo &variant, const Pins &pins, int64_t microBatches,
                                     std::set<std::string> &missing);

} // namespace ds
#endif
