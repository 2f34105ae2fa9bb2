// ds-recompose-rms-norm: finds root-mean-square normalization in chains of primitive ops. It starts at the division of
// a value by the root of its mean square and takes in the scale that follows and, where a narrow float was normalized
// in a wider one, the casts around the chain: ds.rms_norm computes in f32 by itself.
//
//   %v = ds.reduce mean (%x * %x) axes [1] keep true      %y = ds.rms_norm %x, %g axis 1 epsilon 1.0e-6
//   %y = %x / ds.unary sqrt (%v + 1.0e-6) * %g        =>
#include "dialects/ds/Requirements.h"
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPOSERMSNORM
#include "passes/graph/Passes.h.inc"

namespace {
/// A chain that divides a value by the root of its mean square.
struct Chain {
  Value input;
  int64_t axis;
  double epsilon;
  Value scale = {}; // where the chain holds it
};

struct RecomposeRmsNorm : impl::RecomposeRmsNormBase<RecomposeRmsNorm>, PassReport {
  void runOnOperation() override {
    count("recomposed", 0);
    for (ds::BinaryOp op : collect())
      if (auto chain = matchFolded(op))
        replace(op, *chain);
    // The parts of what was replaced look like chains that lack something.
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
    for (ds::BinaryOp op : collect())
      for (const RootQuotient &quotient : rootQuotients(op))
        if (auto chain = matchChain(op, quotient)) {
          rewrite(op, *chain);
          break;
        }
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

  SmallVector<ds::BinaryOp> collect() {
    SmallVector<ds::BinaryOp> ops;
    getOperation().walk([&](ds::BinaryOp op) { ops.push_back(op); });
    return ops;
  }

  /// x * (scale / root), as Keras writes it.
  static std::optional<Chain> matchFolded(ds::BinaryOp op) {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (op.getKind() != ds::BinaryKind::mul || !type || !isa<FloatType>(type.getElementType()))
      return std::nullopt;
    for (auto [x, inverse] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      auto scaled = inverse.getDefiningOp<ds::BinaryOp>();
      for (const RootQuotient &quotient : scaled ? rootQuotients(scaled) : SmallVector<RootQuotient, 2>()) {
        auto epsilon = matchScalar(quotient.radicand, ds::BinaryKind::add);
        ds::ReduceOp mean = epsilon ? meanOf(epsilon->tensor) : ds::ReduceOp();
        if (!mean || matchSquare(mean.getInput()) != x || x.getType() != type ||
            !areLastAxes(mean.getAxes(), type.getRank()) ||
            !isParameter(quotient.numerator, type.getShape().drop_front(mean.getAxes().front())))
          continue;
        return Chain{x, mean.getAxes().front(), epsilon->scalar, quotient.numerator};
      }
    }
    return std::nullopt;
  }

  /// Emits a remark where the chain is a norm up to the point that failed.
  static std::optional<Chain> matchChain(ds::BinaryOp op, const RootQuotient &quotient) {
    ds::BinaryOp shifted = binaryOf(quotient.radicand, ds::BinaryKind::add);
    if (!shifted || scalarOf(quotient.numerator)) // 1 / root is a part of a quotient
      return std::nullopt;
    Value input = quotient.numerator;
    auto isMeanSquare = [&](Value value) {
      ds::ReduceOp mean = meanOf(value);
      Value squared = mean ? matchSquare(mean.getInput()) : Value();
      // The mean square of a centred value is a variance: a chain of another kind, unless that value is divided.
      return squared && (squared == input || !binaryOf(squared, ds::BinaryKind::sub));
    };
    bool isLeft = isMeanSquare(shifted.getLhs());
    if (!isLeft && !isMeanSquare(shifted.getRhs()))
      return std::nullopt;

    auto remark = [&](const Twine &reason) {
      remarkLeft(op, "rms norm", reason);
      return std::nullopt;
    };
    auto epsilon = matchScalar(shifted, ds::BinaryKind::add);
    if (!epsilon)
      return remark("epsilon is not a constant");
    ds::ReduceOp mean = meanOf(epsilon->tensor);
    if (matchSquare(mean.getInput()) != input)
      return remark("the mean square is not that of the value that is divided");
    auto type = cast<RankedTensorType>(input.getType());
    if (!areLastAxes(mean.getAxes(), type.getRank()))
      return remark("the axes are not the last ones");
    if (!isa<FloatType>(type.getElementType()) || type != op.getType())
      return remark("the chain changes the type");
    return Chain{input, mean.getAxes().front(), epsilon->scalar};
  }

  void rewrite(ds::BinaryOp normalized, const Chain &chain) {
    Value input = chain.input, scale, parameter;
    Operation *last = normalized;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(input.getType()).getShape().drop_front(chain.axis);
    auto takeScale = [&] {
      ds::BinaryOp scaled = onlyUser(last->getResult(0), ds::BinaryKind::mul, parameter);
      if (!scaled || !isParameter(parameter, shape))
        return;
      last = scaled;
      scale = parameter;
    };
    takeScale();
    // Widened before and narrowed after, with the scale on the narrow value.
    auto widened = input.getDefiningOp<ds::CastOp>();
    auto narrowed = last->hasOneUse() ? dyn_cast<ds::CastOp>(*last->getUsers().begin()) : ds::CastOp();
    if (!scale && widened && narrowed && isNarrow(widened.getInput().getType().getElementType()) &&
        widened.getInput().getType() == narrowed.getType()) {
      input = widened.getInput();
      last = narrowed;
      takeScale();
    }
    replace(last, {input, chain.axis, chain.epsilon, scale});
  }

  /// At the last op of the chain: its scale may be defined after the norm began.
  void replace(Operation *last, const Chain &chain) {
    auto type = cast<RankedTensorType>(chain.input.getType());
    ArrayRef<int64_t> shape = type.getShape().drop_front(chain.axis);
    OpBuilder builder(last);
    Value scale = chain.scale ? parameterOf(builder, chain.scale, shape)
                              : createOnes(builder, last->getLoc(), shape, type.getElementType());
    auto norm = ds::RmsNormOp::create(builder, last->getLoc(), type, chain.input, scale, chain.axis,
                                      llvm::APFloat(chain.epsilon));
    keepNames(last, norm);
    last->getResult(0).replaceAllUsesWith(norm.getResult());
    count("recomposed");
  }

  static bool isNarrow(Type element) { return element.isF16() || element.isBF16(); }
};
} // namespace

} // namespace deepstride
