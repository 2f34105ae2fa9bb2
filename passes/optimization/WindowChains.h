// Transposes, slices and reshapes before an op whose kernel reads memory through strides: they need not be run.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_WINDOWCHAINS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_WINDOWCHAINS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/optimization/Regions.h"

namespace deepstride {

/// Sizes as a kernel will know them: each that is no number is a symbol of its own.
SizeVector asSymbols(llvm::ArrayRef<SizeExpr> sizes);

/// Makes slices of gathers that take one index which is known.
void sliceGathers(mlir::func::FuncOp function, SizeAnalysis &analysis);

/// Whether a transpose leaves the last axis where it is, so that rows stay contiguous.
bool keepsLastAxis(ds::TransposeOp transpose);

/// Whether the operand's reader follows windows: a window op, attention where it reads query, key or value, or what
/// moves or computes rows.
bool readsWindows(mlir::OpOperand &use);

/// The window ops behind an operand, nearest first, up to a value in memory whose elements strides reach. All of their
/// readers in the block follow windows, too. With `keepsRows` a transpose of the last axis ends the chain. Remarks say
/// what ended it.
llvm::SmallVector<mlir::Operation *> windowChain(mlir::OpOperand &operand, SizeAnalysis &analysis, bool keepsRows);

/// Gives the operand a chain of its own, right before its reader, and adds it to the region. What others read, too, is
/// copied: it costs them nothing.
void takeIn(llvm::ArrayRef<mlir::Operation *> chain, mlir::OpOperand &operand, OpSet &region, SizeAnalysis &analysis);

/// Whether strides reach what the chain shows in rows of neighbouring elements; the first `rowAxes` axes count rows.
bool showsRows(llvm::ArrayRef<mlir::Operation *> chain, size_t rowAxes, SizeAnalysis &analysis);

/// Whether the value, seen through reshapes, is changed in place by the region or by something before `last`, behind
/// which the region will stand: what it reads of the value must have been copied by then.
bool isChangedBefore(mlir::Value value, const OpSet &region, mlir::Operation *last);

/// How many neighbouring elements of memory follow one another in what the chain shows.
SizeExpr neighboursShown(llvm::ArrayRef<mlir::Operation *> chain, SizeAnalysis &analysis);

/// The insertion of a value, seen through reshapes that nothing else reads, behind these, the nearest first.
llvm::SmallVector<mlir::Operation *> insertionOf(mlir::OpOperand &use);

/// Adds the insertions of what the region computes, with the reshapes before them, so that its kernel stores it where
/// it belongs: into boxes that strides reach, and rows of which hold neighbouring elements where `rowAxes` of a result
/// count rows. The region's last op may change.
void takeInsertions(OpSet &region, mlir::Operation *&last, std::optional<size_t> rowAxes, SizeAnalysis &analysis);

} // namespace deepstride

#endif
