// ds-recompose-attention: finds scaled dot-product attention. It starts at the product of a softmax with a value of
// rank 4 and walks up through mask and scales to the product of query and key. Projections and the split into heads are
// left to the ops around it; grouped heads and positions come with the models that have them.
//
//   %t = ds.transpose %k [0, 1, 3, 2]                     %y = ds.attention %q, %k, %v, %mask scale 1.25e-1
//   %s = (%q * %t) / 8.0 + %mask                      =>
//   %y = ds.matmul (ds.softmax %s axis 3), %v
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPOSEATTENTION
#include "passes/graph/Passes.h.inc"

namespace {
/// What lies between the two products.
struct Scores {
  ds::MatmulOp product;
  double scale = 1;
  Value mask;                // added
  Value condition, fallback; // or chosen instead of the score: where the condition holds if `maskedWhenTrue`
  bool maskedWhenTrue = true;
};
} // namespace

static bool hasRank4(Value value) { return rankOf(value) == 4; }

/// Walks through multiplications by constants.
static Value peelScale(Value value, double &scale) {
  while (true) {
    if (auto scaled = matchScalar(value, ds::BinaryKind::mul)) {
      scale *= scaled->scalar;
      value = scaled->tensor;
    } else if (auto scaled = matchScalar(value, ds::BinaryKind::div)) {
      scale /= scaled->scalar;
      value = scaled->tensor;
    } else {
      return value;
    }
  }
}

static ds::MatmulOp productBehind(Value value) {
  double scale = 1;
  return peelScale(value, scale).getDefiningOp<ds::MatmulOp>();
}

/// Whether the value comes from a product through a few elementwise ops.
static bool isNearProduct(Value value, int steps = 4) {
  if (value.getDefiningOp<ds::MatmulOp>())
    return true;
  auto op = value.getDefiningOp<ds::BinaryOp>();
  return op && steps > 0 && (isNearProduct(op.getLhs(), steps - 1) || isNearProduct(op.getRhs(), steps - 1));
}

static std::optional<Scores> matchScores(Value value, std::string &mismatch) {
  Scores scores;
  if (ds::BinaryOp sum = binaryOf(value, ds::BinaryKind::add)) {
    bool isLeft = productBehind(sum.getLhs()) != nullptr;
    scores.mask = isLeft ? sum.getRhs() : sum.getLhs();
    value = isLeft ? sum.getLhs() : sum.getRhs();
  } else if (auto select = value.getDefiningOp<ds::SelectOp>()) {
    scores.condition = select.getCondition();
    scores.maskedWhenTrue = productBehind(select.getOnFalse()) != nullptr;
    scores.fallback = scores.maskedWhenTrue ? select.getOnTrue() : select.getOnFalse();
    value = scores.maskedWhenTrue ? select.getOnFalse() : select.getOnTrue();
    // Adding a number this low to a score gives that number, so the choice is a sum.
    auto low = scalarOf(scores.fallback);
    if (!low || !(*low <= -1e30) || rankOf(scores.fallback) > rankOf(scores.condition)) {
      mismatch = "the masked score is not a constant below -1e30";
      return std::nullopt;
    }
  }
  Value inner = peelScale(value, scores.scale);
  scores.product = inner.getDefiningOp<ds::MatmulOp>();
  if (scores.product)
    return scores;
  if (ds::BinaryOp sum = binaryOf(inner, ds::BinaryKind::add); sum && inner != value)
    mismatch = "the mask is added before the scale";
  else if (ds::BinaryOp scaled = inner.getDefiningOp<ds::BinaryOp>();
           scaled && (scaled.getLhs().getDefiningOp<ds::MatmulOp>() || scaled.getRhs().getDefiningOp<ds::MatmulOp>()))
    mismatch = "the scale is not a constant";
  else if (isNearProduct(inner))
    mismatch = "between the products stands an op that is neither a constant scale nor an added mask";
  return std::nullopt;
}

namespace {
struct RecomposeAttention : impl::RecomposeAttentionBase<RecomposeAttention>, PassReport {
  void runOnOperation() override {
    count("recomposed", 0);
    if (getOperation().isExternal())
      return;
    SmallVector<ds::MatmulOp> ops;
    getOperation().walk([&](ds::MatmulOp op) {
      if (op.getLhs().getDefiningOp<ds::SoftmaxOp>())
        ops.push_back(op);
    });
    if (ops.empty())
      return;
    auto sizes = SizeAnalysis::run(getOperation());
    if (failed(sizes))
      return signalPassFailure();
    for (ds::MatmulOp op : ops) {
      std::string mismatch;
      if (!match(op, *sizes, mismatch) && !mismatch.empty())
        op.emitRemark() << "attention not recomposed: " << mismatch;
    }
    eraseDeadOps(getOperation());
  }

  /// Rewrites on success; on failure says what kept a near miss from matching.
  bool match(ds::MatmulOp root, SizeAnalysis &sizes, std::string &mismatch) {
    auto softmax = root.getLhs().getDefiningOp<ds::SoftmaxOp>();
    int64_t rank = cast<RankedTensorType>(softmax.getType()).getRank();
    auto fail = [&](const Twine &reason) { return mismatch = reason.str(), false; };
    if (static_cast<int64_t>(softmax.getAxis()) != rank - 1 || softmax.getLog())
      return fail("the softmax is not along the last axis");
    auto scores = matchScores(softmax.getInput(), mismatch);
    if (!scores)
      return false;
    ds::MatmulOp product = scores->product;
    if (!hasRank4(product.getLhs()) || !hasRank4(product.getRhs()) || !hasRank4(root.getRhs()))
      return fail("query, key and value do not all have rank 4");
    if (product.getTranspose()[0] || root.getTranspose()[0] || root.getTranspose()[1])
      return fail("query, probabilities or value are transposed by the product");
    if (!sameBatch(product, root, sizes))
      return fail("batch and heads of query, key and value differ");
    if (!isMaskSmall(*scores, sizes))
      return fail("the mask might enlarge the scores");

    OpBuilder builder(root);
    Value query = peelScale(product.getLhs(), scores->scale);
    Value key = peelScale(product.getRhs(), scores->scale);
    if (!product.getTranspose()[1]) {
      key = untranspose(builder, key, scores->scale);
      if (!key)
        return fail("the key is not transposed by an op");
    }
    Value mask = scores->condition ? additiveMask(builder, *scores, root.getLoc()) : scores->mask;
    auto attention = ds::AttentionOp::create(builder, root.getLoc(), root.getType(), query, key, root.getRhs(), mask,
                                             llvm::APFloat(scores->scale));
    keepNames(root, attention);
    sizes.set(attention.getResult(), sizes.facts(root.getResult()));
    root.getResult().replaceAllUsesWith(attention.getResult());
    count("recomposed");
    return true;
  }

  /// ds.attention does not broadcast batch and heads, products do.
  static bool sameBatch(ds::MatmulOp product, ds::MatmulOp root, const SizeAnalysis &sizes) {
    const TensorFacts *q = sizes.lookup(product.getLhs()), *k = sizes.lookup(product.getRhs()),
                      *v = sizes.lookup(root.getRhs());
    if (!q || !k || !v)
      return false;
    for (int axis : {0, 1})
      if (q->sizes[axis] != k->sizes[axis] || k->sizes[axis] != v->sizes[axis])
        return false;
    return true;
  }

  static bool isMaskSmall(Scores &scores, const SizeAnalysis &sizes) {
    Value &mask = scores.condition ? scores.condition : scores.mask;
    if (!mask)
      return true;
    // An exporter expands the mask to the scores' shape; attention broadcasts it by itself.
    if (auto expand = mask.getDefiningOp<ds::BroadcastOp>())
      mask = expand.getInput();
    const TensorFacts *small = sizes.lookup(mask), *large = sizes.lookup(scores.product.getResult());
    if (!small || !large || small->rank() > 4)
      return false;
    for (int64_t back = 1; back <= small->rank(); ++back) {
      const SizeExpr &size = small->sizes[small->rank() - back];
      if (!size.isConstant(1) && size != large->sizes[4 - back])
        return false;
    }
    return true;
  }

  /// The key before its last two axes were swapped, through a scale.
  static Value untranspose(OpBuilder &builder, Value key, double &scale) {
    auto transpose = key.getDefiningOp<ds::TransposeOp>();
    if (!transpose)
      return {};
    // A permutation of tokens, heads and channels may have swapped the last two axes on its way.
    SmallVector<int64_t> permutation(transpose.getPermutation());
    std::swap(permutation[2], permutation[3]);
    Value source = transpose.getInput();
    if (llvm::equal(permutation, ArrayRef<int64_t>{0, 1, 2, 3}))
      return peelScale(source, scale);
    auto type = cast<RankedTensorType>(source.getType());
    SmallVector<int64_t> shape;
    for (int64_t axis : permutation)
      shape.push_back(type.getDimSize(axis));
    auto swapped =
        ds::TransposeOp::create(builder, transpose.getLoc(), RankedTensorType::get(shape, type.getElementType()),
                                source, builder.getDenseI64ArrayAttr(permutation));
    return swapped.getResult();
  }

  /// 0 where a score counts and the low constant where it does not.
  static Value additiveMask(OpBuilder &builder, const Scores &scores, Location location) {
    auto fallback = cast<RankedTensorType>(scores.fallback.getType());
    auto zero = ds::ConstantOp::create(
        builder, location, DenseElementsAttr::get(fallback, FloatAttr::get(fallback.getElementType(), 0.0)));
    Value yes = scores.maskedWhenTrue ? scores.fallback : zero.getResult();
    Value no = scores.maskedWhenTrue ? zero.getResult() : scores.fallback;
    auto shape = cast<RankedTensorType>(scores.condition.getType()).getShape();
    return ds::SelectOp::create(builder, location, RankedTensorType::get(shape, fallback.getElementType()),
                                scores.condition, yes, no)
        .getResult();
  }
};
} // namespace

} // namespace deepstride
