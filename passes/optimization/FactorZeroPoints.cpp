// ds-factor-zero-points: quantized models subtract a zero point from bytes and multiply the differences. Here the bytes
// themselves are multiplied, and what the zero points contribute, a sum over the weight's columns, is subtracted
// afterwards, or comes with the bias where the zero point is a constant. All of it is exact modulo 2^32:
//
//   sum_k (x - z) w  =  sum_k x (w + c)  -  z sum_k (w + c)  -  c sum_k (x - z)
//
// x becomes unsigned and w + c signed, since that is what instructions multiply: signed bytes of x are moved up by 128,
// and their zero point with them; c is 0 where w fits a signed byte, else it moves the range of w into one. What does
// not fit is left to ds-narrow-integer-products.
//
//   %x = ds.binary sub (ds.cast %u8 to i32), %z          %p = ds.linear %u8, %w8 : (ui8, i8) -> i32
//   %y = ds.linear %x, %w                            =>  %y = ds.binary sub %p, (ds.binary mul %z, %sums)
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/IntegerRanges.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsBuilder.h"

namespace deepstride {
#define GEN_PASS_DEF_FACTORZEROPOINTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

/// An operand as bytes less one zero point, which has no axes and is null for 0.
struct Bytes {
  Value bytes, zero;
};

class ZeroPoints {
public:
  /// Bytes that were moved up, by those that products have read: what several products read is moved once.
  using MovedBytes = llvm::DenseMap<Value, Value>;

  ZeroPoints(Operation *op, IntegerRanges &ranges, RecipeBook &recipes, SizeAnalysis &analysis, MovedBytes &moved)
      : op(op), ranges(ranges), recipes(recipes), moved(moved), b(OpBuilder(op), analysis) {
    b.setLocation(op->getLoc());
  }

  /// Why the product stays as it is; empty where it was replaced.
  std::string factor() {
    Value weight = op->getOperand(1);
    auto x = bytesOf(op->getOperand(0));
    if (!x)
      return "the operand is not a tensor of bytes less one number";
    if (!isa_and_present<ds::WeightOp, ds::ConstantOp>(weight.getDefiningOp()))
      return "the weight is no constant";
    auto range = ranges.of(weight);
    if (!range || range->high - range->low > 255)
      return "the weight's range does not fit a byte";
    auto conv = dyn_cast<ds::ConvOp>(op);
    double move = range->fits(8, false) ? 0 : static_cast<double>(-128 - range->low);
    if (move != 0 && conv)
      return "filters beyond signed bytes need the sum of every window";
    makeUnsigned(*x);
    weight8 = stored(b.cast(move == 0 ? weight : b.add(weight, move), integer(false)));
    Value result = weight8 ? (conv ? convolve(conv, *x) : multiply(cast<ds::LinearOp>(op), *x)) : Value();
    if (result && move != 0)
      result =
          b.sub(result, b.mul(b.reduce(ds::ReduceKind::sum, op->getOperand(0), {b.rank(op->getOperand(0)) - 1}), move));
    if (!result)
      return "its constants cannot be computed when the package is written";
    keepNames(op, result.getDefiningOp());
    op->getResult(0).replaceAllUsesWith(result);
    return "";
  }

private:
  Type integer(bool isUnsigned) const {
    return IntegerType::get(op->getContext(), 8, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  }
  static bool isByte(Value value) { return cast<RankedTensorType>(value.getType()).getElementType().isInteger(8); }

  std::optional<Bytes> bytesOf(Value value) {
    Bytes result;
    if (auto difference = binaryOf(value, ds::BinaryKind::sub)) {
      auto zero = cast<RankedTensorType>(difference.getRhs().getType());
      auto range = ranges.of(difference.getRhs());
      // A zero point beyond the type of its bytes could not stand in the padding.
      auto whole = cast<RankedTensorType>(difference.getLhs().getType());
      if (!zero.hasStaticShape() || zero.getNumElements() != 1 || zero.getRank() > whole.getRank() || !range)
        return std::nullopt;
      result.zero = b.reshape(difference.getRhs(), {});
      value = difference.getLhs();
      auto cast = value.getDefiningOp<ds::CastOp>();
      if (!cast || !isByte(cast.getInput()) || !range->fits(8, b.element(cast.getInput()).isUnsignedInteger()))
        return std::nullopt;
    }
    auto cast = value.getDefiningOp<ds::CastOp>();
    if (!cast || !isByte(cast.getInput()))
      return std::nullopt;
    result.bytes = cast.getInput();
    return result;
  }

  void makeUnsigned(Bytes &x) {
    if (b.element(x.bytes).isUnsignedInteger())
      return;
    Value &result = moved[x.bytes];
    if (!result || result.getParentBlock() != op->getBlock() || !result.getDefiningOp()->isBeforeInBlock(op)) {
      Type i16 = IntegerType::get(op->getContext(), 16);
      result = b.cast(b.add(b.cast(x.bytes, i16), 128), integer(true));
    }
    x.bytes = result;
    x.zero = x.zero ? b.add(x.zero, 128) : b.scalar(b.i32(), 128);
  }

  Value stored(Value value) { return recipes.store(b, value); }

  /// What the zero point contributes, from the sums of the weight over `axes`: with the bias, where both are constants,
  /// else by itself.
  struct Correction {
    Value bias, term;
  };
  Correction correctionOf(const Bytes &x, ArrayRef<int64_t> axes, Value bias, int64_t columnAxis, int64_t rank) {
    if (!x.zero)
      return {bias, {}};
    Value sums = stored(b.reduce(ds::ReduceKind::sum, b.cast(weight8, b.i32()), axes, /*keep=*/false));
    if (!sums)
      return {};
    if (x.zero.getDefiningOp<ds::ConstantOp>() && (!bias || areStorable(bias.getDefiningOp()))) {
      Value negative = b.unary(ds::UnaryKind::neg, b.mul(x.zero, sums));
      return {stored(bias ? b.add(bias, negative) : negative), {}};
    }
    return {bias, b.mul(x.zero, b.alignVector(sums, columnAxis, rank))}; // aligned while it is a constant
  }

  Value multiply(ds::LinearOp linear, const Bytes &x) {
    auto [bias, term] = correctionOf(x, {0}, linear.getBias(), 0, 1);
    if (x.zero && !bias && !term)
      return {};
    SmallVector<Value> operands = {x.bytes, weight8};
    if (bias)
      operands.push_back(bias);
    Value result = b.create<ds::LinearOp>(operands, x.bytes, weight8, bias, IntegerAttr(), IntegerAttr(), IntegerAttr(),
                                          UnitAttr());
    return term ? b.sub(result, term) : result;
  }

  Value convolve(ds::ConvOp conv, const Bytes &x) {
    int64_t rank = b.rank(x.bytes);
    auto [bias, term] = correctionOf(x, axesFrom(1, rank), conv.getBias(), 1, rank);
    if (x.zero && !bias && !term)
      return {};
    Value image = x.bytes;
    SmallVector<int64_t> pads(conv.getPads());
    // The padding stands for 0, which is the zero point here.
    if (x.zero && llvm::any_of(pads, [](int64_t pad) { return pad != 0; })) {
      SizeVector low(rank), high(rank);
      for (int64_t axis = 2; axis < rank; ++axis) {
        low[axis] = pads[axis - 2];
        high[axis] = pads[axis - 2 + rank - 2];
      }
      image = b.pad(ds::PadKind::constant, image, b.cast(x.zero, integer(true)), low, high);
      llvm::fill(pads, 0);
    }
    SmallVector<Value> operands = {image, weight8};
    if (bias)
      operands.push_back(bias);
    Value result = b.create<ds::ConvOp>(operands, image, weight8, bias, conv.getStrides(), pads, conv.getDilations(),
                                        conv.getGroups());
    return term ? b.sub(result, term) : result;
  }

  Operation *op;
  IntegerRanges &ranges;
  RecipeBook &recipes;
  MovedBytes &moved;
  DsBuilder b;
  Value weight8;
};

struct FactorZeroPoints : deepstride::impl::FactorZeroPointsBase<FactorZeroPoints>, PassReport {
  void runOnOperation() override {
    count("products factored", 0);
    IntegerRanges ranges(getOperation());
    RecipeBook recipes(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<Operation *> products;
      function.walk([&](Operation *op) {
        if (isa<ds::LinearOp, ds::ConvOp>(op) && isI32(op->getResult(0)) && isI32(op->getOperand(0)) &&
            isI32(op->getOperand(1)))
          products.push_back(op);
      });
      if (products.empty())
        continue;
      auto analysis = SizeAnalysis::run(function);
      if (failed(analysis))
        return signalPassFailure();
      ZeroPoints::MovedBytes moved;
      for (Operation *op : products) {
        std::string reason = ZeroPoints(op, ranges, recipes, *analysis, moved).factor();
        if (reason.empty())
          count("products factored");
        else
          op->emitRemark() << "zero point not factored out: " << reason;
      }
    }
    // At last: the ranges of what is erased are remembered.
    eraseDeadOps(getOperation());
    eraseUnusedRecipes(getOperation());
  }

  static bool isI32(Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType().isSignlessInteger(32);
  }
};

} // namespace
