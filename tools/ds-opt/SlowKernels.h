// Kernels that a program would be faster without, or with others in their place.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_SLOWKERNELS_H
#define DEEPSTRIDE_TOOLS_DSOPT_SLOWKERNELS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace deepstride {

struct SlowKernels {
  /// One for each kernel: how often it is launched, what is slow about it, and the first node that it computes.
  std::vector<std::string> lines;
  unsigned kernels = 0, launches = 0, slowLaunches = 0;

  /// "3 of 20 kernels slow, in 14 of 80 launches"
  std::string summary() const;
};

/// Of a program after the memory phase: products of plain loops, what is only copied, and elementwise ops that stand
/// alone.
SlowKernels findSlowKernels(mlir::ModuleOp program);

} // namespace deepstride

#endif
