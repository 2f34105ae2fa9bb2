#ifndef DEEPSTRIDE_CODEGEN_LOWER_DIRECTCONVOLUTION_H
#define DEEPSTRIDE_CODEGEN_LOWER_DIRECTCONVOLUTION_H

#include "codegen/tile/MicroKernel.h"

namespace deepstride {

/// Whether filters walk over the image itself: few of them would share what a panel gathers.
bool isDirect(KernelBuilder &k, ds::ConvOp op, const MicroKernel &micro);
/// Such a convolution, and the ops behind it in its kernel. A grid item is one row of pixels of one filter.
void emitDirectConvolution(KernelBuilder &k, ds::ConvOp op, const MicroKernel &micro);

} // namespace deepstride

#endif
