// Regions that fusion passes gather: sets of ops of one block that move into one ds.fused.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_REGIONS_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_REGIONS_H

#include "dialects/ds/DsDialect.h"
#include "llvm/ADT/SetVector.h"

namespace deepstride {

/// Of one block; in the order in which they were taken up.
using OpSet = llvm::SetVector<mlir::Operation *>;

/// Larger regions only lengthen compilation: registers run out first.
inline constexpr size_t regionLimit = 32;

/// Whether the op is computed element by element from operands that need not be in memory: what scans an operand is
/// not.
bool isFusablePointwise(mlir::Operation *op);

/// A constant of equal elements, which kernels hold instead of reading it.
bool isSplat(mlir::Value value);

/// Why an op cannot be applied to a tile of the anchor, which is a ds::Anchor.
std::optional<llvm::StringRef> tileMismatch(mlir::Operation *op, mlir::Operation *anchor, const SizeAnalysis &analysis);

/// Whether something outside of the region reads the op's results.
bool isRegionResult(mlir::Operation *op, const OpSet &region);

/// What lies between the region's ops and needs their results: it has to move behind `last`, the region's last op,
/// where the region will stand. Nothing where it cannot, or where the region needs it in turn.
std::optional<llvm::SmallVector<mlir::Operation *>> dependentsOf(const OpSet &region, mlir::Operation *last);

/// Adds an op to the region, whose last op it may become; or not, where something between them depends on the region.
bool takeBehind(OpSet &region, mlir::Operation *op, mlir::Operation *&last);

/// Moves the ops into a ds.fused behind `last`, and `moved` behind that. Values that are read outside become its
/// results.
ds::FusedOp wrapRegion(const OpSet &region, mlir::Operation *last, llvm::ArrayRef<mlir::Operation *> moved,
                       SizeAnalysis &analysis);

} // namespace deepstride

#endif
