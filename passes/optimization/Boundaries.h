// Why a value between two kernels is in memory: the reasons of the fusion passes, read off what they have left.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_BOUNDARIES_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_BOUNDARIES_H

#include "passes/optimization/Regions.h"

namespace deepstride {

/// One kernel to be: a ds.fused with the ops in it, or an op of its own.
struct KernelRegion {
  mlir::Operation *top;
  llvm::SmallVector<mlir::Operation *> body;
  /// What it reads from memory, and what it yields.
  llvm::SmallVector<mlir::Value> operands, yielded;

  static KernelRegion of(mlir::Operation *top);
  /// The op of the body that reads the operand, the first one.
  mlir::Operation *readerOf(mlir::Value operand) const;
  /// The op that says how the kernel computes: what is not elementwise. Null where all ops are.
  mlir::Operation *anchor() const;
};

/// All kernels of an entry function, in program order.
std::vector<KernelRegion> kernelsOf(mlir::Operation *function);

/// A value that one kernel yields and another one reads, as it is or reshaped.
struct Boundary {
  const KernelRegion &from, &to;
  mlir::Operation *producer, *reader; // ops of the two bodies; behind windows in the reader's
  mlir::Value read;                   // as the reader has it
  size_t readers;                     // kernels that read the value

  static Boundary of(const KernelRegion &from, const KernelRegion &to, mlir::Value yielded, mlir::Value operand,
                     size_t readers);
  /// "'ds.gelu' in the kernel of 'ds.linear' to 'ds.attention'"
  std::string describe() const;
};

/// A sentence without a full stop. Without `joinsProducts`, products and attention have kernels of their own.
std::string reasonOf(const Boundary &boundary, const SizeAnalysis &analysis, bool joinsProducts);

} // namespace deepstride

#endif
