// Lengths of operands that have one element for each place of an axis.
#include "frontends/onnx/convert/PerAxis.h"

using namespace mlir;

namespace deepstride::onnx {

/// Whether a size is another one, or 1 where that stands for all; what only a run tells is required of it.
static bool requireSize(Node &n, const SizeExpr &found, const SizeExpr &expected, bool orOne) {
  SizeExpr difference = found - expected;
  if (difference.isConstant(0) || (orOne && found.isConstant(1)))
    return true;
  if (difference.constant() && !(orOne && !found.constant())) // sizes that only a run knows may be 1
    return false;
  n.b.requireEqual(orOne ? SizeExpr::select(SizeExpr::eq(found, 1), expected, found) : found, expected);
  return true;
}

static bool rejectSizes(Node &n, unsigned input, ArrayRef<SizeExpr> expected, const Twine &what) {
  TensorFacts found = n.b.facts(n.in(input));
  SizeVector sizes(expected.begin(), expected.end());
  return n.reject("input " + Twine(input) + ": expected " + describe({found.elementType, sizes, {}}) + ", " + what +
                  ", found " + describe(found));
}

bool requireVector(Node &n, unsigned input, const VectorRule &rule) {
  SizeVector sizes = n.b.sizes(n.in(input));
  return (sizes.size() == 1 && requireSize(n, sizes[0], rule.count, rule.orOne)) ||
         rejectSizes(n, input, {rule.count}, "one element per " + rule.each + (rule.orOne ? " or a single one" : ""));
}

Value vectorAlong(Node &n, unsigned input, Value value, int64_t axis, int64_t rank, const VectorRule &rule) {
  return requireVector(n, input, rule) ? n.b.alignVector(value, axis, rank) : Value();
}

bool requireSizes(Node &n, unsigned input, ArrayRef<SizeExpr> expected, StringRef what) {
  SizeVector sizes = n.b.sizes(n.in(input));
  bool fits = sizes.size() == expected.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i)
    fits = requireSize(n, sizes[i], expected[i], /*orOne=*/false);
  return fits || rejectSizes(n, input, expected, what);
}

bool requireBroadcastTo(Node &n, unsigned input, ArrayRef<SizeExpr> target, StringRef what) {
  SizeVector sizes = n.b.sizes(n.in(input));
  bool fits = sizes.size() <= target.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i)
    fits = requireSize(n, sizes[i], target[target.size() - sizes.size() + i], /*orOne=*/true);
  return fits || rejectSizes(n, input, target, what);
}

} // namespace deepstride::onnx
