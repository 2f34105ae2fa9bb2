// ds-recompose-attention: finds scaled dot-product attention. It starts at the product of a softmax with a value, has
// AttentionScores.cpp walk up to the product of query and key, and builds the operands of ds.attention from what stands
// in between. Projections, the split into heads and rotary embeddings are left to the ops around it.
//
//   %t = ds.transpose %k [0, 1, 3, 2]                     %y = ds.attention %q, %k, %v, %mask scale 1.25e-1
//   %s = (%q * %t) / 8.0 + %mask                      =>
//   %y = ds.matmul (ds.softmax %s axis 3), %v
#include "passes/Report.h"
#include "passes/graph/AttentionScores.h"
#include "passes/graph/GroupedHeads.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPOSEATTENTION
#include "passes/graph/Passes.h.inc"

namespace {
/// The softmax behind the left operand of a product.
struct Probabilities {
  ds::SoftmaxOp softmax;
  bool guarded = false;  // rows that are not a number become zeros
  bool narrowed = false; // cast back to the type of the value
};

/// Builds the operands of one attention. Ops that it creates are known to the size analysis.
struct OperandBuilder {
  OpBuilder builder;
  Location location;
  SizeAnalysis &sizes;
  SizeExpr batch, heads;

  template <typename Op, typename... Args> Value create(Type element, int64_t rank, Args &&...args) {
    SmallVector<int64_t> unknown(rank, ShapedType::kDynamic);
    auto op = Op::create(builder, location, RankedTensorType::get(unknown, element), std::forward<Args>(args)...);
    LogicalResult known = sizes.visit(op, /*retype=*/true);
    assert(succeeded(known) && "operands were checked before");
    (void)known;
    return op->getResult(0);
  }

  Value reshape(Value value, const SizeVector &shape) {
    return create<ds::ReshapeOp>(elementOf(value), shape.size(), value, toAttribute(builder.getContext(), shape));
  }
  static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

  /// [batch * heads, rows, columns] as [batch, heads, rows, columns].
  Value splitHeads(Value value) {
    if (rankOf(value) == 4)
      return value;
    const SizeVector &given = sizes.facts(value).sizes;
    return reshape(value, {batch, heads, given[1], given[2]});
  }

  /// A mask beside scores of `rank` axes as one beside scores of 4.
  Value alignMask(Value mask, int64_t rank) {
    // An exporter expands the mask to the scores' shape; attention broadcasts it by itself.
    if (auto expand = mask.getDefiningOp<ds::BroadcastOp>())
      mask = expand.getInput();
    bool joinsHeads = rank == 3 && rankOf(mask) == 3 && !sizes.facts(mask).sizes[0].isConstant(1);
    return joinsHeads ? splitHeads(mask) : mask;
  }

  Value choose(Value condition, double yes, double no, Type element) {
    auto scalar = [&](double value) {
      auto type = RankedTensorType::get({}, element);
      return create<ds::ConstantOp>(element, 0, DenseElementsAttr::get(type, FloatAttr::get(element, value)));
    };
    return create<ds::SelectOp>(element, rankOf(condition), condition, scalar(yes), scalar(no));
  }

  Value termOf(const ScoreTerm &term, Type element) {
    if (term.condition) {
      Value condition = alignMask(term.condition, term.rank);
      return choose(condition, term.lowWhenTrue ? term.low : 0, term.lowWhenTrue ? 0 : term.low, element);
    }
    Value value = alignMask(term.value, term.rank);
    return term.negated ? create<ds::UnaryOp>(element, rankOf(value), ds::UnaryKind::neg, value) : value;
  }

  Value maskOf(const AttentionScores &scores, Type element) {
    Value mask;
    for (const ScoreTerm &term : llvm::reverse(scores.terms)) {
      Value next = termOf(term, element);
      mask = mask ? create<ds::BinaryOp>(element, std::max(rankOf(mask), rankOf(next)), ds::BinaryKind::add, mask, next)
                  : next;
    }
    return mask;
  }

  Value factorOf(const AttentionScores &scores, Type element) {
    if (scores.factor)
      return alignMask(scores.factor, scores.factorRank);
    if (!scores.takesOut)
      return {};
    const ScoreTerm &term = scores.terms.back();
    return choose(alignMask(term.condition, term.rank), term.lowWhenTrue ? 0 : 1, term.lowWhenTrue ? 1 : 0, element);
  }

  /// The key from the right operand of its product.
  Value keyOf(ds::MatmulOp product, double &scale) {
    Value key = peelScale(product.getRhs(), scale);
    if (product.getTranspose()[1])
      return splitHeads(key);
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(rankOf(key)));
    Value source = key;
    // A permutation of tokens, heads and channels may have swapped the last two axes on its way.
    if (auto transpose = key.getDefiningOp<ds::TransposeOp>()) {
      permutation.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
      source = transpose.getInput();
    }
    std::swap(permutation[permutation.size() - 2], permutation.back());
    if (llvm::equal(permutation, llvm::seq<int64_t>(rankOf(key))))
      return splitHeads(peelScale(source, scale));
    return splitHeads(
        create<ds::TransposeOp>(elementOf(key), rankOf(key), source, builder.getDenseI64ArrayAttr(permutation)));
  }
};

struct RecomposeAttention : impl::RecomposeAttentionBase<RecomposeAttention>, PassReport {
  void runOnOperation() override {
    count("recomposed", 0);
    if (getOperation().isExternal())
      return;
    SmallVector<std::pair<ds::MatmulOp, Probabilities>> candidates;
    getOperation().walk([&](ds::MatmulOp op) {
      if (auto probabilities = findProbabilities(op.getLhs()))
        candidates.emplace_back(op, *probabilities);
    });
    if (candidates.empty())
      return;
    auto sizes = SizeAnalysis::run(getOperation());
    if (failed(sizes))
      return signalPassFailure();
    for (auto &[op, probabilities] : candidates) {
      std::string mismatch;
      if (match(op, probabilities, *sizes, mismatch) || mismatch.empty())
        continue;
      remarkLeft(op, "attention", mismatch);
    }
    eraseDeadOps(getOperation());
  }

  static std::optional<Probabilities> findProbabilities(Value value) {
    Probabilities found;
    while (!(found.softmax = value.getDefiningOp<ds::SoftmaxOp>())) {
      if (auto cast = value.getDefiningOp<ds::CastOp>(); cast && !found.narrowed) {
        found.narrowed = true;
        value = cast.getInput();
      } else if (auto reshape = value.getDefiningOp<ds::ReshapeOp>();
                 reshape && rankOf(reshape.getInput()) == 4 && rankOf(value) == 3) {
        value = reshape.getInput();
      } else if (auto select = value.getDefiningOp<ds::SelectOp>(); select && !found.guarded) {
        ds::UnaryOp test = unaryOf(select.getCondition(), ds::UnaryKind::is_nan);
        if (!test || test.getInput() != select.getOnFalse() || scalarOf(select.getOnTrue()) != 0.0)
          return std::nullopt;
        found.guarded = true;
        value = select.getOnFalse();
      } else {
        return std::nullopt;
      }
    }
    return found;
  }

  /// Rewrites on success; on failure says what kept a near miss from matching.
  bool match(ds::MatmulOp root, Probabilities found, SizeAnalysis &sizes, std::string &mismatch) {
    ds::SoftmaxOp softmax = found.softmax;
    auto fail = [&](const Twine &reason) { return mismatch = reason.str(), false; };
    if (static_cast<int64_t>(softmax.getAxis()) != rankOf(softmax.getResult()) - 1 || softmax.getLog())
      return fail("the softmax is not along the last axis");
    auto scores = matchScores(softmax.getInput(), sizes, mismatch);
    if (!scores)
      return false;
    ds::MatmulOp product = scores->product;
    int64_t rank = rankOf(root.getRhs());
    if ((rank != 3 && rank != 4) || rankOf(product.getLhs()) != rank || rankOf(product.getRhs()) != rank)
      return fail("query, key and value do not all have rank 4, or all rank 3");
    if (product.getTranspose()[0] || root.getTranspose()[0] || root.getTranspose()[1])
      return fail("query, probabilities or value are transposed by the product");
    Type element = OperandBuilder::elementOf(root.getResult());
    if (scores->widened != found.narrowed || !isa<FloatType>(element) ||
        OperandBuilder::elementOf(product.getResult()) != element)
      return fail("query and value have different types");
    if (!sameBatch(product, root, sizes))
      return fail("batch and heads of query, key and value differ");
    const SizeVector &shape = sizes.facts(softmax.getResult()).sizes;
    SizeExpr batch = shape.size() == 4 ? shape[0] : SizeExpr(1), heads = shape[shape.size() - 3];
    if (rank == 3 && batch * heads != sizes.facts(root.getRhs()).sizes[0])
      return fail("the scores do not split the first axis of query, key and value into batch and heads");

    OperandBuilder operands{OpBuilder(root), root.getLoc(), sizes, batch, heads};
    double scale = scores->scale;
    Value query = operands.splitHeads(peelScale(product.getLhs(), scale));
    Value key = operands.keyOf(product, scale), value = operands.splitHeads(root.getRhs());
    ungroupHeads(operands.builder, sizes, key, value);
    FloatAttr cap = scores->cap ? operands.builder.getF64FloatAttr(*scores->cap) : FloatAttr();
    Value attention =
        operands.create<ds::AttentionOp>(element, 4, query, key, value, operands.maskOf(*scores, element),
                                         operands.factorOf(*scores, element), llvm::APFloat(scale), cap, found.guarded);
    Operation *last = attention.getDefiningOp();
    if (rank == 3)
      last = operands.reshape(attention, sizes.facts(root.getResult()).sizes).getDefiningOp();
    last->getResult(0).setType(root.getType());
    keepNames(root, last);
    sizes.set(last->getResult(0), sizes.facts(root.getResult()));
    root.getResult().replaceAllUsesWith(last->getResult(0));
    count("recomposed");
    return true;
  }

  /// ds.attention does not broadcast batch and heads, products do.
  static bool sameBatch(ds::MatmulOp product, ds::MatmulOp root, const SizeAnalysis &sizes) {
    const SizeVector &q = sizes.facts(product.getLhs()).sizes, &k = sizes.facts(product.getRhs()).sizes,
                     &v = sizes.facts(root.getRhs()).sizes;
    size_t axes = q.size() - 2;
    return ArrayRef(q).take_front(axes) == ArrayRef(k).take_front(axes) &&
           ArrayRef(k).take_front(axes) == ArrayRef(v).take_front(axes);
  }
};
} // namespace

} // namespace deepstride
