// Panels of signed bytes whose products with unsigned ones can be added up in 16 bits.
#ifndef DEEPSTRIDE_CODEGEN_TILE_FITPANEL_H
#define DEEPSTRIDE_CODEGEN_TILE_FITPANEL_H

#include "codegen/tile/Gemm.h"

namespace deepstride {

/// Steps that one step of a panel may become.
constexpr int64_t mostFittedSteps = 4;

/// Writes a panel of byte_pairs, of K in whole steps of `fitted` (byte_quads), to `target` in such steps, and to
/// `places` where along K the bytes of a row are that each step multiplies. A step adds up, in 16 bits, the products of
/// four bytes of each column: with 255 at most on the other side, that is exact where neither the four's positive
/// numbers nor its negative ones come to more than 128. A step that has more becomes two or four of the same place,
/// between which its numbers are shared out; few weights need it (T5: one step in 50). A step of fitted bytes takes two
/// thirds of the time that the same bytes take as words: where there come to be more than 3/2 of the panel's steps, or
/// so many more in a part of them that there probably will be, the panel is left. Yields whether it was not, and how
/// many steps there are.
std::pair<mlir::Value, mlir::Value> emitFitPanel(KernelBuilder &k, const VectorKernel &stored,
                                                 const MicroKernel &fitted, mlir::Value depth, const Panel &panel,
                                                 mlir::Value target, mlir::Value places);

} // namespace deepstride

#endif
