// Pooling over windows and over whole spatial extents.
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/Windows.h"

using namespace mlir;

namespace deepstride::onnx {

static Convert pool(ds::PoolKind kind) {
  return [kind](Node &n) -> Values {
    auto kernel = n.requiredIntegers("kernel_shape");
    if (!kernel || !n.requireRank(0, 3))
      return {};
    if (n.yields(1))
      return n.refuse("output 1 ('Indices') is not supported; remove it from the model where nothing needs it");
    Value x = n.in(0);
    SizeVector sizes = n.b.sizes(x);
    auto windows = readWindows(n, *kernel, n.b.rank(x) - 2);
    if (!windows || !resolveAutoPad(n, *windows, ArrayRef(sizes).drop_front(2)))
      return {};
    int64_t exponent = n.integer("p", 2);
    if (exponent < 1)
      return n.refuse("attribute 'p': expected at least 1, found " + Twine(exponent));
    return {n.b.create<ds::PoolOp>({x}, kind, x, windows->kernel, windows->strides, windows->pads, windows->dilations,
                                   n.flag("ceil_mode", false), n.flag("count_include_pad", false), exponent)};
  };
}

static Convert globalPool(ds::ReduceKind kind) {
  return [kind](Node &n) -> Values {
    if (!n.requireRank(0, 2))
      return {};
    return {n.b.reduce(kind, n.in(0), axesFrom(2, n.b.rank(n.in(0))))};
  };
}

static Values convertGlobalLpPool(Node &n) {
  int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2)
    return n.refuse("attribute 'p': expected 1 or 2, found " + Twine(p));
  return globalPool(p == 1 ? ds::ReduceKind::l1 : ds::ReduceKind::l2)(n);
}

void addPooling(PatternRegistry &registry) {
  registry.add("MaxPool", 1, 1, pool(ds::PoolKind::max));
  registry.add("AveragePool", 1, 1, pool(ds::PoolKind::average));
  registry.add("LpPool", 2, 1, pool(ds::PoolKind::lp));
  registry.add("GlobalMaxPool", 1, 1, globalPool(ds::ReduceKind::max));
  registry.add("GlobalAveragePool", 1, 1, globalPool(ds::ReduceKind::mean));
  registry.add("GlobalLpPool", 2, 1, convertGlobalLpPool);
}

} // namespace deepstride::onnx
