// Attributes of convolution and pooling windows.
#include "frontends/onnx/convert/Windows.h"

using namespace mlir;

namespace deepstride::onnx {

std::optional<Windows> readWindows(Node &n, ArrayRef<int64_t> kernel, unsigned spatial) {
  Windows windows;
  windows.kernel.assign(kernel.begin(), kernel.end());
  windows.strides = n.integers("strides").value_or(SmallVector<int64_t>(spatial, 1));
  windows.dilations = n.integers("dilations").value_or(SmallVector<int64_t>(spatial, 1));
  windows.pads = n.integers("pads").value_or(SmallVector<int64_t>(2 * spatial, 0));
  auto check = [&](StringRef name, ArrayRef<int64_t> values, size_t count, int64_t least) {
    if (values.size() != count)
      return n.reject("attribute '" + name + "': expected " + Twine(count) + " numbers, found " + Twine(values.size()));
    constexpr int64_t most = INT32_MAX;
    for (int64_t value : values)
      if (value < least || value > most)
        return n.reject("attribute '" + name + "': expected numbers from " + Twine(least) + " to " + Twine(most) +
                        ", found " + Twine(value));
    return true;
  };
  if (!check("kernel_shape", windows.kernel, spatial, 1) || !check("strides", windows.strides, spatial, 1) ||
      !check("dilations", windows.dilations, spatial, 1) || !check("pads", windows.pads, 2 * spatial, 0) ||
      n.isRefused())
    return std::nullopt;
  return windows;
}

bool resolveAutoPad(Node &n, Windows &windows, ArrayRef<SizeExpr> sizes) {
  std::string mode = n.text("auto_pad", "NOTSET", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"});
  if (n.isRefused() || mode == "NOTSET")
    return !n.isRefused();
  size_t spatial = sizes.size();
  for (size_t i = 0; i < spatial; ++i) {
    int64_t stride = windows.strides[i], extent = (windows.kernel[i] - 1) * windows.dilations[i] + 1;
    auto size = sizes[i].constant();
    // With stride 1 the padding is the same at every size; windows of one element need none.
    if (mode != "VALID" && !size && stride != 1 && extent != 1) {
      windows.low.resize(spatial);
      windows.high.resize(spatial);
      windows.pads[i] = windows.pads[spatial + i] = 0;
      SizeExpr total =
          (SizeExpr::ceilDiv(sizes[i], stride) - SizeExpr(1)) * SizeExpr(stride) + SizeExpr(extent) - sizes[i];
      if (extent < stride) // else it is never negative
        total = SizeExpr::max(total, 0);
      SizeExpr less = SizeExpr::floorDiv(total, 2), more = total - less;
      windows.low[i] = mode == "SAME_LOWER" ? more : less;
      windows.high[i] = mode == "SAME_LOWER" ? less : more;
      continue;
    }
    int64_t total = 0;
    if (mode != "VALID") {
      int64_t length = size.value_or(1), count = llvm::divideCeil(length, stride);
      total = std::max<int64_t>((count - 1) * stride + extent - length, 0);
    }
    int64_t less = total / 2, more = total - less;
    windows.pads[i] = mode == "SAME_LOWER" ? more : less;
    windows.pads[spatial + i] = mode == "SAME_LOWER" ? less : more;
  }
  return true;
}

Value padded(DsBuilder &b, Value x, const Windows &windows, Value fill) {
  if (windows.low.empty())
    return x;
  SizeVector low(2), high(2);
  llvm::append_range(low, windows.low);
  llvm::append_range(high, windows.high);
  return b.pad(ds::PadKind::constant, x, fill, low, high);
}

} // namespace deepstride::onnx
