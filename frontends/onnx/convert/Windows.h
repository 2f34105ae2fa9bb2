// What convolution and pooling share: strides, dilations and paddings of windows, with ONNX's automatic padding.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_WINDOWS_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_WINDOWS_H

#include "frontends/onnx/convert/Node.h"

namespace deepstride::onnx {

struct Windows {
  llvm::SmallVector<int64_t> kernel, strides, dilations, pads; // pads: all beginnings, then all ends
  /// What comes in front of and behind each spatial axis beside `pads`, where auto_pad depends on a dynamic size. Empty
  /// where no axis needs it.
  SizeVector low, high;

  /// The whole padding in front of a spatial axis.
  SizeExpr before(size_t axis) const { return SizeExpr(pads[axis]) + (low.empty() ? SizeExpr(0) : low[axis]); }
};

/// Reads the attributes for `spatial` axes; `kernel` is what the operand or the attribute says.
std::optional<Windows> readWindows(Node &n, llvm::ArrayRef<int64_t> kernel, unsigned spatial);

/// Resolves auto_pad against the sizes of the operand's spatial axes. What `low` and `high` then hold is for padded().
bool resolveAutoPad(Node &n, Windows &windows, llvm::ArrayRef<SizeExpr> sizes);

/// x [batch, channels, ...] with `low` and `high` of the windows as elements of the value `fill`; x without them.
mlir::Value padded(DsBuilder &b, mlir::Value x, const Windows &windows, mlir::Value fill);

/// The mean of each window of x [batch, channels, ...], by the node's attributes; null after a diagnostic.
mlir::Value averagePool(Node &n, mlir::Value x);

} // namespace deepstride::onnx

#endif
