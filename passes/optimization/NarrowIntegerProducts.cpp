// ds-narrow-integer-products: integers of 32 bits that hold no more than 16 are multiplied as 16 bits. Quantized models
// subtract a zero point from 8-bit numbers and multiply the differences; as 32-bit numbers these take four times the
// memory and an eighth of the speed. What an operand holds is read off the ops that make it, up to casts from narrow
// types and constants. The left operand becomes i16, a weight the narrowest type that holds it.
//
//   %x = ds.binary sub (ds.cast %u8 to i32), %zero         %n = ds.cast %x to i16
//   %y = ds.linear %x, %w                              =>  %y = ds.linear %n, %w8 : (i16, i8) -> i32
#include "passes/Report.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsDialect.h"

namespace deepstride {
#define GEN_PASS_DEF_NARROWINTEGERPRODUCTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

/// Integers from low to high. All that is added or multiplied here is far from 64 bits.
struct Range {
  int64_t low, high;

  bool fits(unsigned bits, bool isUnsigned) const {
    return isUnsigned ? low >= 0 && high < (int64_t(1) << bits)
                      : low >= -(int64_t(1) << (bits - 1)) && high < (int64_t(1) << (bits - 1));
  }
  Range with(Range other) const { return {std::min(low, other.low), std::max(high, other.high)}; }
};

class Ranges {
public:
  explicit Ranges(ModuleOp module) : symbols(module) {}

  /// What the elements of an integer tensor may be; none where they may be anything that 32 bits hold.
  std::optional<Range> of(Value value) {
    auto [place, isNew] = known.try_emplace(value, std::nullopt); // a cycle, which only invalid IR has, ends here
    if (!isNew)
      return place->second;
    auto found = compute(value);
    known[value] = found;
    return found;
  }

private:
  static std::optional<Range> ofType(Type element) {
    if (element.isInteger(1))
      return Range{0, 1};
    auto integer = dyn_cast<IntegerType>(element);
    if (!integer || integer.getWidth() > 16)
      return std::nullopt;
    int64_t values = int64_t(1) << integer.getWidth();
    return integer.isUnsigned() ? Range{0, values - 1} : Range{-values / 2, values / 2 - 1};
  }

  static std::optional<Range> ofConstant(ds::ConstantOp op) {
    auto dense = dyn_cast<DenseIntElementsAttr>(op.getValue());
    if (!dense || dense.empty())
      return std::nullopt;
    bool isUnsigned = dense.getElementType().isUnsignedInteger() || dense.getElementType().isInteger(1);
    std::optional<Range> range;
    for (const APInt &number : dense.getValues<APInt>()) {
      if (number.getActiveBits() > 62 && (isUnsigned || number.getSignificantBits() > 62))
        return std::nullopt;
      int64_t one = isUnsigned ? static_cast<int64_t>(number.getZExtValue()) : number.getSExtValue();
      range = range ? range->with({one, one}) : Range{one, one};
      if (dense.isSplat())
        break;
    }
    return range;
  }

  /// Of what the element type holds: what leaves it wraps around, and may be anything then.
  static std::optional<Range> within(Range range, Type element) {
    auto integer = dyn_cast<IntegerType>(element);
    bool fits = integer && integer.getWidth() > 1 && integer.getWidth() <= 62 &&
                range.fits(integer.getWidth(), integer.isUnsigned());
    return fits ? std::optional(range) : ofType(element);
  }

  std::optional<Range> binary(ds::BinaryOp op) {
    auto x = of(op.getLhs()), y = of(op.getRhs());
    if (!x || !y)
      return std::nullopt;
    // Factors and terms that pass 2^30 could leave 64 bits after a few ops.
    for (Range range : {*x, *y})
      if (!range.fits(31, false))
        return std::nullopt;
    switch (op.getKind()) {
    case ds::BinaryKind::add: return Range{x->low + y->low, x->high + y->high};
    case ds::BinaryKind::sub: return Range{x->low - y->high, x->high - y->low};
    case ds::BinaryKind::mul: {
      auto [low, high] = std::minmax({x->low * y->low, x->low * y->high, x->high * y->low, x->high * y->high});
      return Range{low, high};
    }
    case ds::BinaryKind::min: return Range{std::min(x->low, y->low), std::min(x->high, y->high)};
    case ds::BinaryKind::max: return Range{std::max(x->low, y->low), std::max(x->high, y->high)};
    default: return std::nullopt;
    }
  }

  std::optional<Range> compute(Value value) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    Operation *op = value.getDefiningOp();
    if (auto constant = dyn_cast_if_present<ds::ConstantOp>(op))
      return ofConstant(constant);
    if (auto weight = dyn_cast_if_present<ds::WeightOp>(op)) {
      auto recipe = symbols.lookup<ds::RecipeOp>(weight.getRecipe());
      return recipe ? of(recipe.getYielded()) : ofType(element);
    }
    std::optional<Range> range;
    if (auto cast = dyn_cast_if_present<ds::CastOp>(op)) {
      if (isa<IntegerType>(mlir::cast<RankedTensorType>(cast.getInput().getType()).getElementType()))
        range = of(cast.getInput());
    } else if (auto sum = dyn_cast_if_present<ds::BinaryOp>(op)) {
      range = binary(sum);
    } else if (isa_and_present<ds::ReshapeOp, ds::TransposeOp, ds::BroadcastOp, ds::SliceOp, ds::ConcatOp, ds::PadOp>(
                   op)) {
      // What they make are elements of their operands; other operands than those of this type say where.
      for (Value operand : op->getOperands()) {
        if (mlir::cast<RankedTensorType>(operand.getType()).getElementType() != element)
          continue;
        auto one = of(operand);
        if (!one)
          return ofType(element);
        range = range ? range->with(*one) : one;
      }
    }
    return range ? within(*range, element) : ofType(element);
  }

  SymbolTable symbols;
  llvm::DenseMap<Value, std::optional<Range>> known;
};

struct NarrowIntegerProducts : deepstride::impl::NarrowIntegerProductsBase<NarrowIntegerProducts>, PassReport {
  void runOnOperation() override {
    count("products narrowed", 0);
    Ranges ranges(getOperation());
    RecipeBook recipes(getOperation());
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (isa<ds::MatmulOp, ds::LinearOp, ds::ConvOp>(op) && !op->getParentOfType<ds::RecipeOp>())
        products.push_back(op);
    });
    for (Operation *op : products)
      narrow(op, ranges, recipes);
    eraseUnusedRecipes(getOperation());
  }

  static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

  void narrow(Operation *op, Ranges &ranges, RecipeBook &recipes) {
    if (!elementOf(op->getResult(0)).isSignlessInteger(32) || !elementOf(op->getOperand(0)).isSignlessInteger(32))
      return;
    // Convolutions gather their operand, so that their filters are what is read along K.
    unsigned left = isa<ds::ConvOp>(op) ? 1 : 0, right = 1 - left;
    auto matmul = dyn_cast<ds::MatmulOp>(op);
    auto x = ranges.of(op->getOperand(left)), y = ranges.of(op->getOperand(right));
    auto remark = [&](const Twine &reason) { op->emitRemark() << "product not narrowed: " << reason; };
    for (auto [range, name] : {std::pair(x, "left"), std::pair(y, "right")})
      if (!range || !range->fits(16, false))
        return remark(Twine("the ") + name + " operand may be anything beyond 16 bits");
    if (matmul && matmul.getTranspose()[0])
      return remark("the left operand is transposed");
    auto integer = [&](unsigned bits, bool isUnsigned) {
      return IntegerType::get(&getContext(), bits, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
    };
    Type i16 = integer(16, false), stored = i16;
    if (isa<ds::LinearOp>(op) && op->getOperand(right).getDefiningOp<ds::WeightOp>())
      stored = y->fits(8, false) ? integer(8, false) : y->fits(8, true) ? integer(8, true) : i16;
    convert(op->getOpOperand(left), i16, recipes);
    convert(op->getOpOperand(right), stored, recipes);
    count("products narrowed");
  }

  /// Parameters are stored in the type, other values converted.
  static void convert(OpOperand &operand, Type element, RecipeBook &recipes) {
    Value value = operand.get();
    OpBuilder builder(operand.getOwner());
    auto type = cast<RankedTensorType>(value.getType()).clone(element);
    auto cast = ds::CastOp::create(builder, value.getLoc(), type, value, TypeAttr::get(element));
    operand.set(cast);
    if (!isa_and_present<ds::WeightOp, ds::ConstantOp>(value.getDefiningOp()) || !isStorable(cast))
      return;
    if (Value constant = recipes.store(builder, cast)) {
      operand.set(constant);
      cast->erase();
    }
  }
};

} // namespace
