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
    int64_t total = 0;
    if (mode != "VALID") {
      auto size = sizes[i].constant();
      // With stride 1 the padding is the same at every size.
      if (!size && windows.strides[i] != 1)
        return n.reject("attribute 'auto_pad': '" + mode + "' with a stride needs a static size, found " +
                        sizes[i].brief() + "; pin it with --dim");
      int64_t stride = windows.strides[i], extent = (windows.kernel[i] - 1) * windows.dilations[i] + 1;
      int64_t length = size.value_or(1), count = llvm::divideCeil(length, stride);
      total = std::max<int64_t>((count - 1) * stride + extent - length, 0);
    }
    int64_t less = total / 2, more = total - less;
    windows.pads[i] = mode == "SAME_LOWER" ? more : less;
    windows.pads[spatial + i] = mode == "SAME_LOWER" ? less : more;
  }
  return true;
}

} // namespace deepstride::onnx
