// Products of many rows by what is stored narrow: rows and panels become wide in scratch once, instead of in registers
// for each block of rows. Sums are of the same numbers in the same order, or exact: rows have the same bits either way.
#ifndef DEEPSTRIDE_CODEGEN_TILE_WIDEN_H
#define DEEPSTRIDE_CODEGEN_TILE_WIDEN_H

#include "codegen/tile/Gemm.h"

namespace deepstride {

/// The micro-kernel that multiplies what a kernel of that name has stored, once that is prepared for many rows; null
/// where there is none. Codes and halves become floats, or bf16 where pairs of these are multiplied. Bytes become
/// 16 bits; unsigned ones by signed ones stay bytes, and the latter are fitted (FitPanel.h), if K is in whole steps.
std::unique_ptr<MicroKernel> kernelOfWidened(const LoweringTarget &target, ds::ProductKernel stored,
                                             const ds::ProductTypes &types, const SizeExpr &depth);

/// The micro-kernel that multiplies bytes of either sign once they are 16 bits.
std::unique_ptr<MicroKernel> kernelOfWords(const LoweringTarget &target, const ds::ProductTypes &types);

/// Elements of K of what is widened, which bytes have in whole steps of their panels; and, as kernels compute
/// polynomials of sizes only, how many there are at most.
mlir::Value widenedDepth(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide, mlir::Value depth);
SizeExpr widenedSpace(const MicroKernel &stored, const MicroKernel &wide, const SizeExpr &depth);

/// Writes `count` rows, which lie one behind the other, to `target` as `wide` reads them, widenedDepth elements apart.
void emitWidenRows(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide, const Matrix &rows,
                   mlir::Value count, mlir::Value depth, mlir::Value target);

/// Where `isMany`, writes the numbers that a panel has stored narrow, codes less their zero points, to `target` as
/// panels of `wide` lie: a product with it, and with the panel's scales, computes what a product with the panel does,
/// bit by bit. Steps of `wide` are a part of those of the panel, or as long. K is rounded up to whole steps of the
/// panel. What is fitted has its `places`, too, and is left alone where it takes more steps than it saves time.
/// `multiply` is called twice: with what then stands for the panel, and with null for the panel as it is stored.
void emitWidenPanel(KernelBuilder &k, const MicroKernel &stored, const MicroKernel &wide, mlir::Value depth,
                    const Panel &panel, mlir::Value target, mlir::Value places, mlir::Value isMany,
                    llvm::function_ref<void(const Panel *widened)> multiply);
SizeExpr widenedPanelSpace(const MicroKernel &stored, const MicroKernel &wide, const SizeExpr &depth, int64_t width);
/// Whether panels become those of a kernel by emitFitPanel.
inline bool isFitted(const MicroKernel &wide) { return wide.panel.isInteger(8); }

/// Bytes, signed or not, as 16 bits: those at even places, and those at odd places.
std::pair<mlir::Value, mlir::Value> bytesAsWords(KernelBuilder &k, mlir::Value bytes, bool isUnsigned);

} // namespace deepstride

#endif
