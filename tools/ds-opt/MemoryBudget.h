// How many activations a training step computes again, so that it fits a budget of memory.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_MEMORYBUDGET_H
#define DEEPSTRIDE_TOOLS_DSOPT_MEMORYBUDGET_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace deepstride {

/// The bytes that a planned program takes while it runs, all entries together, as the runtime places them: states,
/// weights, the largest workspace, inputs and outputs (runtime/core/MemoryPlan.h says the same of a package). Nothing
/// where a size depends on a dimension that `dims` lacks; `missing` is its name then. `microBatches`: of a step.
std::optional<uint64_t> plannedBytes(mlir::ModuleOp program, const std::map<std::string, int64_t> &dims,
                                     int64_t microBatches, std::string &missing);

struct MemoryChoice {
  int64_t values = 0;                     // activations that are computed again
  uint64_t bytes = 0;                     // that the step takes then
  uint64_t mostBytes = 0, leastBytes = 0; // with none computed again; at the least
};

/// The fewest activations of `count` so that the bytes are at most `budget`, or, without one, that take least memory.
/// `bytesOf` plans the program for a number of them; nothing where that failed. Fewer bytes do not always follow from
/// more activations: those that are computed again live, too. So the least is looked for among numbers that are spread
/// evenly, then around the best of these. Where nothing fits, `values` are those of the least.
std::optional<MemoryChoice> chooseRecomputation(int64_t count, std::optional<uint64_t> budget,
                                                const std::function<std::optional<uint64_t>(int64_t)> &bytesOf);

/// The batch of a training step: the first dimensions of what its micro-batches hold, each of that size.
std::map<std::string, int64_t> batchDims(mlir::ModuleOp program, int64_t batch);
/// As an option of passes has them: "batch=8".
llvm::SmallVector<std::string> textOf(const std::map<std::string, int64_t> &dims);

/// "123456", "512KiB", "3MiB", "2GiB"; nothing for anything else.
std::optional<uint64_t> parseBytes(llvm::StringRef text);

} // namespace deepstride

#endif
