// Rows of heads that a kernel reads: where windows show them, normalized and turned on the way.
#ifndef DEEPSTRIDE_CODEGEN_KERNEL_HEADROWS_H
#define DEEPSTRIDE_CODEGEN_KERNEL_HEADROWS_H

#include "codegen/kernel/Views.h"
#include "codegen/tile/MicroKernel.h"
#include "dialects/ds/HeadRows.h"
#include "dialects/ds/Norms.h"

namespace deepstride {

/// Rows of the last axis of a value that is windows and row ops over an argument of the kernel.
class RowSource {
public:
  /// None where the value is anything else, or its rows are not contiguous.
  static std::optional<RowSource> of(KernelBuilder &k, mlir::Value value);

  /// Whether rows lie in memory as they are.
  bool isStored() const { return rows.steps.empty(); }
  /// Makes room for the row between two steps. Call it before anything is emitted.
  void reserve();
  /// Rows that are stored, as a matrix: from the one at `at` on, an index for each axis but the last, along the last of
  /// these.
  Matrix matrix(llvm::ArrayRef<mlir::Value> at);
  /// Writes `count` rows to neighbouring rows of `target`: those at `at`, an index for each axis but the last, and
  /// after it along the last of these. Where `isAway` (i1) is given and holds, those that are copied pass the caches.
  void emit(llvm::ArrayRef<mlir::Value> at, mlir::Value count, mlir::Value target, mlir::Value offset,
            mlir::Value isAway = {});

private:
  RowSource(KernelBuilder &k, ds::HeadRows rows) : k(&k), rows(std::move(rows)) {}
  mlir::Value offsetOf(const ds::StridedWindow &window, llvm::ArrayRef<mlir::Value> at);
  void emitRow(llvm::ArrayRef<mlir::Value> at, mlir::Value target, mlir::Value offset);

  KernelBuilder *k;
  ds::HeadRows rows;
  mlir::Value line; // scratch
};

/// Turns one row of `width` elements; both may be the same.
struct RotaryRow {
  mlir::Value from, fromOffset, to, toOffset, cosineOffset, sineOffset;
};
void emitRotaryRow(KernelBuilder &k, ds::RotaryOp op, const RotaryRow &row);

} // namespace deepstride

#endif
