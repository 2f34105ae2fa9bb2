// A machine that runs buffer plans on hashes instead of numbers: what a plan does with memory, next to what its program
// means. Wherever the runtime is free, it does the worst: memory outside of a lifetime is scrambled at every launch, a
// collective scrambles its destination at once and reads its source only at the wait.
#ifndef DEEPSTRIDE_TEST_UNIT_PASSES_MEMORY_PLANMACHINE_H
#define DEEPSTRIDE_TEST_UNIT_PASSES_MEMORY_PLANMACHINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <vector>

namespace deepstride::test {

/// What a run shows: conditions in the order in which they were read, then outputs, then states.
struct Observed {
  std::vector<uint64_t> hashes;
  bool isLegal = true; // wrote no input or constant, and nothing too large

  bool operator==(const Observed &other) const { return isLegal == other.isLegal && hashes == other.hashes; }
};

/// Runs an entry after ds-plan-buffers; `choices` decides how often loops run and which branches are taken. Types are
/// static.
Observed runPlan(mlir::func::FuncOp entry, uint64_t choices);
/// The same by the program's values alone.
Observed runProgram(mlir::func::FuncOp entry, uint64_t choices);

} // namespace deepstride::test

#endif
