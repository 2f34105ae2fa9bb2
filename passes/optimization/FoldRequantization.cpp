// ds-fold-requantization: what quantizes numbers again that stand for codes of the same scale and zero point, gives the
// codes themselves. Models that ONNX Runtime quantized do so around every reshape and transpose. Exact: such a number
// is within two roundings of code times scale, so that the quotient rounds to the code. Queries stay numbers where keys
// of the same input do, which a cache holds: ds-merge-products joins what is rounded by the same steps.
//
//   %x = ds.binary mul (ds.binary sub (ds.cast %q to f32), %z), %s
//   %y = ds.cast clamp(round(ds.transpose %x / %s) + %z) to i8       =>  %y = ds.transpose %q
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/optimization/AttentionRegions.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsBuilder.h"

namespace deepstride {
#define GEN_PASS_DEF_FOLDREQUANTIZATION
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// Numbers and codes with one scale and zero point for all of them.
struct Quantized {
  Value numbers, codes;
  double scale = 0, zeroPoint = 0;
};

/// The other operand, and the number that all elements of one are.
std::optional<std::pair<Value, double>> withNumber(Value value, ds::BinaryKind kind, bool isCommutative) {
  ds::BinaryOp op = binaryOf(value, kind);
  if (!op)
    return std::nullopt;
  if (auto number = uniformOf(op.getRhs()); number && op.getLhs().getType() == value.getType())
    return std::pair(op.getLhs(), *number);
  if (auto number = uniformOf(op.getLhs()); number && isCommutative && op.getRhs().getType() == value.getType())
    return std::pair(op.getRhs(), *number);
  return std::nullopt;
}

/// round(numbers / scale) + zero point, cut off where codes end.
std::optional<Quantized> quantized(ds::CastOp op) {
  Type code = elementOf(op.getResult());
  Value value = op.getInput();
  if (!code.isInteger(8) || !elementOf(value).isF32())
    return std::nullopt;
  double low = code.isUnsignedInteger() ? 0 : -128, high = code.isUnsignedInteger() ? 255 : 127;
  auto least = withNumber(value, ds::BinaryKind::max, true), most = withNumber(value, ds::BinaryKind::min, true);
  if (most)
    least = withNumber(most->first, ds::BinaryKind::max, true);
  else if (least)
    most = withNumber(least->first, ds::BinaryKind::min, true);
  if (!least || !most || least->second != low || most->second != high)
    return std::nullopt;
  value = binaryOf(value, ds::BinaryKind::min) ? least->first : most->first;
  Quantized result;
  result.codes = op.getResult();
  if (auto shifted = withNumber(value, ds::BinaryKind::add, true)) {
    result.zeroPoint = shifted->second;
    value = shifted->first;
  }
  ds::UnaryOp round = unaryOf(value, ds::UnaryKind::round);
  auto quotient = round ? withNumber(round.getInput(), ds::BinaryKind::div, false) : std::nullopt;
  if (!quotient)
    return std::nullopt;
  std::tie(result.numbers, result.scale) = *quotient;
  return result;
}

/// (codes - zero point) * scale.
std::optional<Quantized> dequantized(Value numbers) {
  auto product = withNumber(numbers, ds::BinaryKind::mul, true);
  if (!product || !elementOf(numbers).isF32())
    return std::nullopt;
  Quantized result;
  result.numbers = numbers;
  result.scale = product->second;
  Value whole = product->first;
  if (auto difference = withNumber(whole, ds::BinaryKind::sub, false))
    std::tie(whole, result.zeroPoint) = *difference;
  auto wide = whole.getDefiningOp<ds::CastOp>();
  if (!wide || !elementOf(wide.getInput()).isInteger(8))
    return std::nullopt;
  result.codes = wide.getInput();
  return result;
}

/// Whether each code is what its number becomes: differences to a zero point that is a code are exact, and products
/// with the scale neither subnormal nor infinite.
bool isExact(const Quantized &codes) {
  constexpr double leastNormal = 0x1p-126, most = 0x1p127 / 512;
  return codes.scale >= leastNormal && codes.scale <= most && codes.zeroPoint == std::floor(codes.zeroPoint) &&
         codes.zeroPoint >= -128 && codes.zeroPoint <= 255;
}

/// Whether the value is joined with others on the way from the product whose result it is.
bool isCached(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<ds::ConcatOp, ds::InsertOp>(op))
      return true;
    if (op->getNumOperands() == 0 || isa<ds::LinearOp>(op))
      break;
    value = op->getOperand(0);
  }
  return false;
}

/// Whether the codes are those of queries beside whose projection a cached key's stands.
bool isBesideCache(const Quantized &again) {
  Value value = again.codes;
  while (value.hasOneUse() && isa<ds::CastOp, ds::BinaryOp, ds::UnaryOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  auto scores = value.hasOneUse() ? dyn_cast<ds::MatmulOp>(*value.user_begin()) : ds::MatmulOp();
  if (!scores || scores.getLhs() != value || !isCached(scores.getRhs()))
    return false;
  ds::LinearOp query = projectionOf(again.numbers), key = projectionOf(scores.getRhs());
  return query && key && query != key && query.getInput() == key.getInput();
}

struct FoldRequantization : deepstride::impl::FoldRequantizationBase<FoldRequantization>, PassReport {
  void runOnOperation() override {
    count("tensors that stay codes", 0);
    SmallVector<std::pair<ds::CastOp, Quantized>> casts;
    getOperation().walk([&](ds::CastOp op) {
      if (auto again = quantized(op))
        casts.push_back({op, *again});
    });
    if (casts.empty())
      return;
    auto analysis = SizeAnalysis::run(getOperation());
    if (failed(analysis))
      return signalPassFailure();
    for (const auto &[op, again] : casts) // in the order of the program: what is folded is codes for those that follow
      fold(op, again, *analysis);
    eraseDeadOps(getOperation());
  }

  void fold(ds::CastOp op, const Quantized &again, SizeAnalysis &analysis) {
    SmallVector<Operation *> moves;
    Value value = again.numbers;
    for (; isa_and_present<ds::ReshapeOp, ds::TransposeOp>(value.getDefiningOp()); value = moves.back()->getOperand(0))
      moves.push_back(value.getDefiningOp());
    auto before = dequantized(value);
    if (!before || before->scale != again.scale || before->zeroPoint != again.zeroPoint || !isExact(again) ||
        elementOf(before->codes) != elementOf(again.codes) || isBesideCache(again))
      return;
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    Value codes = before->codes;
    for (Operation *move : llvm::reverse(moves)) {
      if (auto transpose = dyn_cast<ds::TransposeOp>(move))
        codes = b.transpose(codes, transpose.getPermutation());
      else
        codes = b.reshape(codes, b.sizes(move->getResult(0)));
    }
    if (!codes || codes.getType() != op.getType())
      return;
    if (!moves.empty())
      keepNames(op, codes.getDefiningOp());
    op.getResult().replaceAllUsesWith(codes);
    count("tensors that stay codes");
  }
};

} // namespace
