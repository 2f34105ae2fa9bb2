// Matrix products: MatMul with NumPy's rules for vectors, and Gemm.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Registry.h"

using namespace mlir;

namespace deepstride::onnx {

static Values convertMatMul(Node &n) {
  Value a = n.in(0), b = n.in(1);
  if (!n.requireRank(0, 1) || !n.requireRank(1, 1))
    return {};
  bool isRow = n.b.rank(a) == 1, isColumn = n.b.rank(b) == 1;
  if (isRow)
    a = n.b.insertAxis(a, 0);
  if (isColumn)
    b = n.b.insertAxis(b, 1);
  Value result = n.b.matmul(a, b);
  if (!result)
    return {};
  if (isColumn)
    result = n.b.dropAxis(result, n.b.rank(result) - 1);
  if (isRow)
    result = n.b.dropAxis(result, n.b.rank(result) - (isColumn ? 1 : 2));
  return {result};
}

static Values convertGemm(Node &n) {
  if (!n.requireRank(0, 2, 2) || !n.requireRank(1, 2, 2))
    return {};
  double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  Value result = n.b.matmul(n.in(0), n.in(1), n.flag("transA", false), n.flag("transB", false));
  if (alpha != 1)
    result = n.b.mul(result, alpha);
  if (n.has(2) && result && !requireBroadcastTo(n, 2, n.b.sizes(result), "the sizes of the product"))
    return {};
  if (n.has(2) && beta != 0)
    result = n.b.add(result, beta == 1 ? n.in(2) : n.b.mul(n.in(2), beta));
  return {result};
}

void addProducts(PatternRegistry &registry) {
  registry.add("MatMul", 1, 2, convertMatMul);
  registry.add("Gemm", 1, 2, convertGemm);
}

} // namespace deepstride::onnx
