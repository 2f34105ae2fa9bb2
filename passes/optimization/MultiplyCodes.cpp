// ds-multiply-codes: where both operands of a product stand for integers with one scale each, or one for each column or
// filter, the integers are multiplied, as models that QuantizeLinear and DequantizeLinear describe mean it:
//
//   %x = ds.binary mul (ds.binary sub (ds.cast %u8 to f32), %z), %s        %p = ds.linear (%u8 - %z), %w : i32
//   %y = ds.linear %x, %codes scales %t                                =>  %y = ds.cast %p to f32 * %t * %s
//
// Sums of integers are exact, so that a result is rounded less often than before. Which instructions multiply the
// integers is left to ds-factor-zero-points. Works on what ds-recover-codes leaves, on filters of convolutions, and on
// products of two operands of run time whose inner size is known to be small enough for sums of 32 bits.
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/StoredCodes.h"

#include "dialects/ds/DsBuilder.h"

#include <cmath>

namespace deepstride {
#define GEN_PASS_DEF_MULTIPLYCODES
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
bool isOne(Value value) { return typeOf(value).hasStaticShape() && typeOf(value).getNumElements() == 1; }

/// An operand as (integers - zero point) * scale, one of each; the zero point is null for 0.
struct Dequantized {
  Value integers, zeroPoint, scale;
};

class CodeProduct {
public:
  CodeProduct(Operation *op, SizeAnalysis &analysis, RecipeBook &recipes, StoredCodeReader &reader)
      : op(op), recipes(recipes), reader(reader), b(OpBuilder(op), analysis) {
    b.setLocation(op->getLoc());
  }

  /// Whether the product was replaced.
  bool multiply() {
    // Sums of so many products of differences of bytes by signed bytes fit 32 bits; half of it, where both are
    // differences, up to 255.
    constexpr int64_t longest = int64_t(1) << 16;
    auto depth = depthOf();
    if (!depth || *depth > longest)
      return false;
    isShort = *depth <= longest / 2;
    auto x = dequantized(op->getOperand(0));
    if (!x)
      return false;
    Value result;
    if (auto linear = dyn_cast<ds::LinearOp>(op))
      result = multiply(linear, *x);
    else if (auto matmul = dyn_cast<ds::MatmulOp>(op))
      result = multiply(matmul, *x);
    else
      result = convolve(cast<ds::ConvOp>(op), *x);
    if (!result)
      return false;
    keepNames(op, result.getDefiningOp());
    op->getResult(0).replaceAllUsesWith(result);
    return true;
  }

private:
  /// Products that a sum is of, where that is known.
  std::optional<int64_t> depthOf() {
    auto right = typeOf(op->getOperand(1));
    int64_t depth = 1;
    if (auto matmul = dyn_cast<ds::MatmulOp>(op))
      depth = right.getDimSize(right.getRank() - (matmul.getTranspose()[1] ? 1 : 2));
    else if (!right.hasStaticShape())
      return std::nullopt;
    else if (isa<ds::LinearOp>(op))
      depth = right.getDimSize(0);
    else
      for (int64_t size : right.getShape().drop_front())
        depth *= size;
    return ShapedType::isDynamic(depth) ? std::nullopt : std::optional(depth);
  }

  /// Reshapes and transposes may stand between: they move the integers instead.
  std::optional<Dequantized> dequantized(Value value) {
    SmallVector<Operation *> moves;
    while (isa_and_present<ds::ReshapeOp, ds::TransposeOp>(value.getDefiningOp())) {
      moves.push_back(value.getDefiningOp());
      value = moves.back()->getOperand(0);
    }
    auto product = binaryOf(value, ds::BinaryKind::mul);
    if (!product || !typeOf(value).getElementType().isF32())
      return std::nullopt;
    for (unsigned side : {0U, 1U}) {
      Dequantized result;
      Value whole = product->getOperand(side);
      result.scale = product->getOperand(1 - side);
      if (!isOne(result.scale) || typeOf(result.scale).getRank() > typeOf(whole).getRank())
        continue;
      if (auto difference = binaryOf(whole, ds::BinaryKind::sub)) {
        if (!isOne(difference.getRhs()) ||
            typeOf(difference.getRhs()).getRank() > typeOf(difference.getLhs()).getRank())
          continue;
        result.zeroPoint = difference.getRhs();
        whole = difference.getLhs();
      }
      auto cast = whole.getDefiningOp<ds::CastOp>();
      if (!cast || !typeOf(cast.getInput()).getElementType().isInteger(8))
        continue;
      if (result.zeroPoint && !(result.zeroPoint = integerOf(result.zeroPoint, typeOf(cast.getInput()))))
        continue;
      result.integers = cast.getInput();
      for (Operation *move : llvm::reverse(moves))
        result.integers = moved(move, result.integers);
      result.scale = b.reshape(result.scale, {});
      return result;
    }
    return std::nullopt;
  }

  Value moved(Operation *move, Value value) {
    if (auto transpose = dyn_cast<ds::TransposeOp>(move))
      return b.transpose(value, transpose.getPermutation());
    return b.reshape(value, b.sizes(move->getResult(0)));
  }

  /// A zero point as i32; null where it is not an integer of the type that it belongs to.
  Value integerOf(Value zeroPoint, RankedTensorType type) {
    if (auto cast = zeroPoint.getDefiningOp<ds::CastOp>())
      return typeOf(cast.getInput()).getElementType() == type.getElementType()
                 ? b.reshape(b.cast(cast.getInput(), b.i32()), {})
                 : Value();
    auto number = uniformOf(zeroPoint);
    bool isUnsigned = type.getElementType().isUnsignedInteger();
    double low = isUnsigned ? 0 : -128, high = isUnsigned ? 255 : 127;
    if (!number || *number < low || *number > high || *number != std::floor(*number))
      return {};
    return b.scalar(b.i32(), *number);
  }

  Value centred(const Dequantized &x) {
    Value wide = b.cast(x.integers, b.i32());
    return x.zeroPoint ? b.sub(wide, x.zeroPoint) : wide;
  }

  /// Sums as floats, times both scales, plus the bias; `own` and `bias` broadcast to the sums.
  Value scaled(Value sums, Value own, Value scale, Value bias) {
    Value result = b.cast(sums, b.f32());
    auto first = uniformOf(own), second = uniformOf(scale);
    float both = first && second ? static_cast<float>(*first) * static_cast<float>(*second) : 1;
    if (!std::isnormal(both)) // sums of 0 would not be 0
      result = b.mul(b.mul(result, own), scale);
    else if (first && second && isOne(own)) // one of the kernel's numbers, else a launch
      result = b.mul(result, b.scalar(b.f32(), both));
    else
      result = b.mul(result, b.mul(own, scale));
    return bias ? b.add(result, bias) : result;
  }

  Value multiply(ds::LinearOp linear, const Dequantized &x) {
    if (!linear.getScales() || linear.getGroup() || linear.getPanel() || linear.getTransposed() ||
        !typeOf(linear.getWeight()).getElementType().isInteger(8) || (linear.getZeroPoints() && !isShort))
      return {};
    Value integers = b.cast(linear.getWeight(), b.i32());
    if (linear.getZeroPoints()) // one for each column
      integers = b.sub(integers, b.cast(linear.getZeroPoints(), b.i32()));
    Value weight = integers ? recipes.store(b, integers) : Value();
    Value own = recipes.store(b, b.reshape(linear.getScales(), {b.sizes(linear.getScales()).back()}));
    Value left = centred(x);
    if (!weight || !own || !left)
      return {};
    Value sums = b.create<ds::LinearOp>({left, weight}, left, weight, Value(), IntegerAttr(), IntegerAttr(),
                                        IntegerAttr(), UnitAttr());
    return scaled(sums, own, x.scale, linear.getBias());
  }

  /// Both operands known at run time only.
  Value multiply(ds::MatmulOp matmul, const Dequantized &x) {
    auto y = isShort ? dequantized(matmul.getRhs()) : std::nullopt;
    Value left = y ? centred(x) : Value(), right = y ? centred(*y) : Value();
    if (!left || !right)
      return {};
    Value sums = b.matmul(left, right, matmul.getTranspose()[0], matmul.getTranspose()[1]);
    return sums ? scaled(sums, y->scale, x.scale, Value()) : Value();
  }

  Value convolve(ds::ConvOp conv, const Dequantized &x) {
    auto weight = conv.getWeight().getDefiningOp<ds::WeightOp>();
    std::string reason;
    auto recipe = weight ? recipes.recipeOf(weight) : ds::RecipeOp();
    auto codes = recipe ? reader.read(recipe, reason) : std::nullopt;
    if (!codes || !codes->layout.empty() || !(codes->isSymmetric() || isShort))
      return {};
    auto filters = typeOf(codes->integers), scales = typeOf(codes->scales);
    int64_t missing = filters.getRank() - scales.getRank();
    for (int64_t axis = std::max<int64_t>(1, missing); axis < filters.getRank(); ++axis) // one for each filter, or one
      if (scales.getDimSize(axis - missing) != 1)
        return {};
    Location loc = op->getLoc();
    ds::RecipeOp wide = recipes.derive(recipe, "integers", [&](OpBuilder &b, const IRMapping &map) -> Value {
      auto wide = [&](Value value) -> Value {
        auto type = typeOf(value).clone(b.getI32Type());
        return ds::CastOp::create(b, loc, type, value, TypeAttr::get(b.getI32Type()));
      };
      Value value = wide(map.lookup(codes->integers));
      if (!codes->zeroPoints)
        return value;
      return ds::BinaryOp::create(b, loc, value.getType(), ds::BinaryKind::sub, value,
                                  wide(map.lookup(codes->zeroPoints)));
    });
    ds::RecipeOp factors = recipes.derive(recipe, "scales", [&](OpBuilder &b, const IRMapping &map) -> Value {
      SizeVector sizes = {scales.getNumElements()};
      return ds::ReshapeOp::create(b, loc, scales.clone({scales.getNumElements()}), map.lookup(codes->scales),
                                   toAttribute(b.getContext(), sizes));
    });
    auto stored = [&](ds::RecipeOp part) { return b.weight(FlatSymbolRefAttr::get(part), typeOf(part.getYielded())); };
    int64_t rank = typeOf(conv.getInput()).getRank();
    Value image = centred(x), filter = stored(wide);
    Value sums = b.create<ds::ConvOp>({image, filter}, image, filter, Value(), conv.getStrides(), conv.getPads(),
                                      conv.getDilations(), conv.getGroups());
    Value bias = conv.getBias() ? b.alignVector(conv.getBias(), 1, rank) : Value();
    return scaled(sums, b.alignVector(stored(factors), 1, rank), x.scale, bias);
  }

  Operation *op;
  RecipeBook &recipes;
  StoredCodeReader &reader;
  DsBuilder b;
  bool isShort = false; // enough for differences on both sides
};

struct MultiplyCodes : deepstride::impl::MultiplyCodesBase<MultiplyCodes>, PassReport {
  void runOnOperation() override {
    count("products of integers", 0);
    RecipeBook recipes(getOperation());
    StoredCodeReader reader(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<Operation *> products;
      function.walk([&](Operation *op) {
        if (isa<ds::LinearOp, ds::MatmulOp, ds::ConvOp>(op))
          products.push_back(op);
      });
      if (products.empty())
        continue;
      auto analysis = SizeAnalysis::run(function);
      if (failed(analysis))
        return signalPassFailure();
      for (Operation *op : products)
        if (CodeProduct(op, *analysis, recipes, reader).multiply())
          count("products of integers");
    }
    eraseDeadOps(getOperation());
    eraseUnusedRecipes(getOperation());
  }
};

} // namespace
