// What convolution and pooling share: strides, dilations and paddings of windows, with ONNX's automatic padding.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_WINDOWS_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_WINDOWS_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

struct Windows {
  llvm::SmallVector<int64_t> kernel, strides, dilations, pads; // pads: all beginnings, then all ends
};

/// Reads the attributes for `spatial` axes; `kernel` is what the operand or the attribute says.
std::optional<Windows> readWindows(Node &n, llvm::ArrayRef<int64_t> kernel, unsigned spatial);

/// Resolves auto_pad against the sizes of the operand's spatial axes.
bool resolveAutoPad(Node &n, Windows &windows, llvm::ArrayRef<SizeExpr> sizes);

} // namespace deepstride::onnx

#endif
