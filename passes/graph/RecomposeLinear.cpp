// ds-recompose-linear: turns products with matrices of parameters into ds.linear. It takes every ds.matmul whose right
// operand is a parameter of rank 2, transposes it where the product did, in its recipe or, where it is a state, by an
// op of the program, and takes in the bias, also where that has a number for each feature of each head, behind a
// reshape (Keras). Products of two other run-time values stay.
//
//   %1 = ds.matmul %x, %w transpose [false, true]         %w2 = ds.weight @w_t
//   %y = ds.binary add %b, %1                         =>  %y = ds.linear %x, %w2, %b
#include "dialects/ds/Requirements.h"
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Parameters.h"
#include "passes/graph/Passes.h"
#include "passes/graph/Recipes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPOSELINEAR
#include "passes/graph/Passes.h.inc"

namespace {
struct RecomposeLinear : impl::RecomposeLinearBase<RecomposeLinear>, PassReport {
  void runOnOperation() override {
    count("linear", 0);
    RecipeBook recipes(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<ds::MatmulOp> ops;
      function.walk([&](ds::MatmulOp op) { ops.push_back(op); });
      for (ds::MatmulOp op : ops)
        match(op, recipes);
      if (failed(eraseReplacedOps(function)))
        return signalPassFailure();
    }
    eraseUnusedRecipes(getOperation());
  }

  void match(ds::MatmulOp matmul, RecipeBook &recipes) {
    if (parameterSourceOf(matmul.getRhs()) == ParameterSource::None)
      return;
    auto remark = [&](const Twine &reason) { matmul.emitRemark() << "linear not recomposed: " << reason; };
    auto weightType = cast<RankedTensorType>(matmul.getRhs().getType());
    if (weightType.getRank() != 2)
      return remark("the weight has rank " + Twine(weightType.getRank()) + ", expected 2");
    if (!weightType.hasStaticShape())
      return remark("the weight has a dynamic size");
    if (matmul.getTranspose()[0])
      return remark("the left operand is transposed");
    Value weight = matmul.getRhs();
    if (matmul.getTranspose()[1]) {
      weight = transposed(weight, recipes);
      if (!weight)
        return remark("the weight's recipe would have too many ops");
    }
    Operation *last = matmul;
    SmallVector<ds::ReshapeOp> between; // the product and its bias
    Value bias = findBias(matmul, cast<RankedTensorType>(weight.getType()).getDimSize(1), last, between, recipes);
    OpBuilder builder(last);
    Operation *made = ds::LinearOp::create(builder, last->getLoc(), matmul.getType(), matmul.getLhs(), weight, bias,
                                           IntegerAttr(), IntegerAttr(), IntegerAttr(), UnitAttr());
    for (ds::ReshapeOp reshape : between) {
      Value sum = made->getResult(0);
      made = builder.clone(*reshape);
      made->setOperand(0, sum);
      made->removeDiscardableAttr(ds::valueNameAttr); // it has the bias, too
    }
    keepNames(last, made);
    last->getResult(0).replaceAllUsesWith(made->getResult(0));
    count("linear");
    count("with bias", bias ? 1 : 0);
  }

  /// What the op makes of a parameter: the result of a recipe, or of the op where the parameter is a state. Null where
  /// the recipe would grow out of hand.
  static Value stored(OpBuilder &builder, Operation *op, RecipeBook &recipes) {
    if (!isFoldable(parameterSourceOf(op->getResult(0))))
      return op->getResult(0);
    Value value = recipes.store(builder, op);
    op->erase();
    return value;
  }

  /// Weights that several products share are transposed once per product; equal recipes are stored once.
  Value transposed(Value weight, RecipeBook &recipes) {
    OpBuilder builder(weight.getContext());
    builder.setInsertionPointAfterValue(weight);
    auto type = cast<RankedTensorType>(weight.getType());
    auto target = RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType());
    auto transpose =
        ds::TransposeOp::create(builder, weight.getLoc(), target, weight, builder.getDenseI64ArrayAttr({1, 0}));
    if (Operation *source = weight.getDefiningOp())
      keepNames(source, transpose);
    return stored(builder, transpose, recipes);
  }

  Value findBias(ds::MatmulOp matmul, int64_t columns, Operation *&last, SmallVector<ds::ReshapeOp> &between,
                 RecipeBook &recipes) {
    SmallVector<ds::ReshapeOp> reshapes;
    Value product = matmul;
    auto reader = [&]() -> Operation * { // not inside of a loop, whose turns would compute the product again
      Operation *user = product.hasOneUse() ? *product.getUsers().begin() : nullptr;
      return user && user->getBlock() == matmul->getBlock() ? user : nullptr;
    };
    while (auto reshape = dyn_cast_or_null<ds::ReshapeOp>(reader())) {
      reshapes.push_back(reshape);
      product = reshape;
    }
    auto sum = dyn_cast_or_null<ds::BinaryOp>(reader());
    if (!sum || sum.getKind() != ds::BinaryKind::add)
      return {};
    Value bias = sum.getLhs() == product ? sum.getRhs() : sum.getLhs();
    auto type = cast<RankedTensorType>(bias.getType());
    if (parameterSourceOf(bias) == ParameterSource::None)
      return {};
    // Behind a reshape the last axes are those of the bias: a row of the product, whatever stands before them.
    auto sums = cast<RankedTensorType>(product.getType());
    bool isRow = type.hasStaticShape() && type.getRank() > 0 && type.getNumElements() == columns &&
                 sums.getRank() >= type.getRank() &&
                 (reshapes.empty() ? type.getShape().back() == columns
                                   : sums.getShape().take_back(type.getRank()) == type.getShape());
    if (!isRow || sum.getType() != sums) {
      sum.emitRemark() << "bias not taken into linear: it has the type " << type << ", expected one axis of " << columns
                       << (reshapes.empty() ? "" : ", or the last axes of what a reshape makes of the product");
      return {};
    }
    between = std::move(reshapes);
    if (type.getRank() > 1) {
      OpBuilder builder(sum);
      auto row = RankedTensorType::get({columns}, type.getElementType());
      auto reshape =
          ds::ReshapeOp::create(builder, sum.getLoc(), row, bias, toAttribute(&getContext(), SizeVector{columns}));
      if (Operation *source = bias.getDefiningOp())
        keepNames(source, reshape);
      bias = stored(builder, reshape, recipes);
    }
    last = sum;
    return bias;
  }
};
} // namespace

} // namespace deepstride
