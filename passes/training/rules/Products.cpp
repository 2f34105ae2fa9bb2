// Derivatives of matrix products, which are matrix products of the gradient with the other operand.
#include "passes/training/Derivative.h"

using namespace mlir;

namespace deepstride {

/// Y = A B: dA = G B^T and dB = A^T G, transposed as the operands are. Batch axes that were repeated are summed.
static void differentiateMatmul(ds::MatmulOp op, Derivative &d) {
  DsBuilder &b = d.b;
  Value g = d.gradient();
  bool left = op.getTranspose()[0], right = op.getTranspose()[1];
  if (d.wants(0))
    d.give(0, left ? b.matmul(d.in(1), g, right, true) : b.matmul(g, d.in(1), false, !right));
  if (d.wants(1))
    d.give(1, right ? b.matmul(g, d.in(0), true, left) : b.matmul(d.in(0), g, !left, false));
}

static void differentiateLinear(ds::LinearOp op, Derivative &d) {
  if (op.getPanel() || op.getTransposed() || op.getScales())
    return d.refuse("once its weight is packed or quantized");
  DsBuilder &b = d.b;
  SizeVector sizes = b.sizes(d.in());
  SizeExpr count = product(ArrayRef(sizes).drop_back()), columns = b.sizes(d.out()).back();
  Value g = b.reshape(d.gradient(), {count, columns});
  if (d.wants(0))
    d.give(0, b.reshape(b.matmul(g, d.in(1), false, true), sizes));
  if (d.wants(1))
    d.give(1, b.matmul(b.reshape(d.in(0), {count, sizes.back()}), g, true, false));
  if (op.getBias())
    d.give(2, d.wide(d.gradient()));
}

void addProductRules(RuleTable &table) {
  table.add(differentiateMatmul);
  table.add(differentiateLinear);
}

} // namespace deepstride
