// ds-recompose-attention: finds scaled dot-product attention. It starts at the product of a softmax with a value, has
// AttentionScores.cpp walk up to the product of query and key, and AttentionOperands.cpp build the operands of
// ds.attention from what stands in between. Projections, the split into heads and rotary embeddings are left to the ops
// around it.
//
//   %t = ds.transpose %k [0, 1, 3, 2]                     %y = ds.attention %q, %k, %v [add %mask] scale 1.25e-1
//   %s = (%q * %t) / 8.0 + %mask                      =>
//   %y = ds.matmul (ds.softmax %s axis 3), %v
//
// A dropout of the softmax becomes the attention's: both have the places that the scores have in memory.
#include "dialects/ds/Requirements.h"
#include "passes/Report.h"
#include "passes/graph/AttentionOperands.h"
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
  Value joined;          // with batch and heads joined again
  SmallVector<ds::DropoutOp, 1> dropouts;
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
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
  }

  static std::optional<Probabilities> findProbabilities(Value value) {
    Probabilities found;
    while (!(found.softmax = value.getDefiningOp<ds::SoftmaxOp>())) {
      if (auto cast = value.getDefiningOp<ds::CastOp>(); cast && !found.narrowed) {
        found.narrowed = true;
        value = cast.getInput();
      } else if (auto reshape = value.getDefiningOp<ds::ReshapeOp>();
                 reshape && !found.joined && rankOf(reshape.getInput()) == 4 && rankOf(value) == 3) {
        found.joined = value;
        value = reshape.getInput();
      } else if (auto select = value.getDefiningOp<ds::SelectOp>(); select && !found.guarded) {
        ds::UnaryOp test = unaryOf(select.getCondition(), ds::UnaryKind::is_nan);
        if (!test || test.getInput() != select.getOnFalse() || scalarOf(select.getOnTrue()) != 0.0)
          return std::nullopt;
        found.guarded = true;
        value = select.getOnFalse();
      } else if (auto dropout = value.getDefiningOp<ds::DropoutOp>()) {
        found.dropouts.push_back(dropout);
        value = dropout.getInput();
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
    auto sizesOf = [&](Value value) { return sizes.facts(value).sizes; };
    if (static_cast<int64_t>(softmax.getAxis()) != rankOf(softmax.getResult()) - 1 || softmax.getLog())
      return fail("the softmax is not along the last axis");
    auto scores = matchScores(softmax.getInput(), sizes, mismatch);
    if (!scores)
      return false;
    ds::MatmulOp product = scores->product;
    int64_t rank = rankOf(root.getRhs());
    if (rank < 3 || rank > 5 || rankOf(product.getLhs()) != rank || rankOf(product.getRhs()) != rank)
      return fail("query, key and value do not all have one rank from 3 to 5");
    if (rankOf(root.getLhs()) != rank)
      return fail("the probabilities have another rank than the value");
    if (product.getTranspose()[0] || root.getTranspose()[0] || root.getTranspose()[1])
      return fail("query, probabilities or value are transposed by the product");
    Type element = AttentionOperands::elementOf(root.getResult());
    if (scores->widened != found.narrowed || !isa<FloatType>(element) ||
        AttentionOperands::elementOf(product.getResult()) != element)
      return fail("query and value have different types");
    SizeVector total = sizesOf(softmax.getResult()), inner = scores->sizes, result = sizesOf(root.getResult());
    if (total.size() != inner.size() || total.size() < 3 || (rank != 3 && total.size() != static_cast<size_t>(rank)))
      return fail("the softmax does not have the scores' axes");
    if (scores->hasAxisOfMask && !inner[0].constant()) // as AttentionOperands takes the one axis in front
      return fail("a mask has its batch where the scores have no axis");
    if (rank == 5 && !groupsFit(product, root, *scores, sizes))
      return fail("the heads of a group do not share their key and value, or their masks do not join");
    if (found.joined && (ArrayRef(total).take_back(2) != ArrayRef(sizesOf(found.joined)).take_back(2)))
      return fail("behind the softmax stands a reshape that does not join batch and heads");
    if (!enlargesAtMostBatch(inner, total))
      return fail("the mask might enlarge the scores");
    if (found.dropouts.size() > 1)
      return fail("the probabilities are dropped out more than once");
    // Places are those of the attention's own batches.
    if (!found.dropouts.empty() && total[0] != (rank == 3 ? inner : result)[0])
      return fail("the probabilities that are dropped out might have another batch than the result");
    if (!batchesFit(product, root, inner, sizes))
      return fail(rank == 3 ? "the scores do not split the first axis of query, key and value into batch and heads"
                            : "batch and heads of query, key and value differ");

    AttentionOperands operands(root, sizes, inner, total);
    double scale = scores->scale;
    Value query = operands.query(product.getLhs(), *scores, scale);
    Value key = operands.key(product, scale), value = operands.splitHeads(root.getRhs());
    // What a mask, key or value enlarges in the chain is enlarged before; the columns are checked by the op.
    const SizeExpr batches = rank == 3 ? sizesOf(query)[0] : result[0], rows = total[total.size() - 2];
    bool clamped = isClamped(inner[inner.size() - 2], rows);
    query = operands.enlarge(query, batches, clamped ? std::nullopt : std::optional(rows));
    key = operands.enlarge(key, batches);
    value = operands.enlarge(value, batches);
    ungroupHeads(operands.builder, sizes, key, value);
    SmallVector<ds::ScoreStep> steps = operands.steps(*scores);
    Value attention = operands.create<ds::AttentionOp>(element, 4, query, key, value, steps, operands.window, scale,
                                                       scores->cap.value_or(0), found.guarded);
    for (ds::DropoutOp dropout : found.dropouts)
      if (dropout.getRatio().convertToDouble() > 0) {
        auto op = cast<ds::AttentionOp>(attention.getDefiningOp());
        op.setDropoutAttr(dropout.getRatioAttr());
        op.setStreamAttr(dropout.getStreamAttr());
      }
    Operation *last = attention.getDefiningOp();
    if (rank != 4)
      last = operands.reshape(attention, result).getDefiningOp();
    last->getResult(0).setType(root.getType());
    keepNames(root, last);
    sizes.set(last->getResult(0), sizes.facts(root.getResult()));
    root.getResult().replaceAllUsesWith(last->getResult(0));
    count("recomposed");
    if (!operands.unread.empty())
      last->emitRemark() << "attention reads a mask that is nearly a window: " << operands.unread;
    return true;
  }

  /// Whether sizes of the scores grow, if at all, where a run decides whether they do: by batches, rows and columns.
  static bool enlargesAtMostBatch(const SizeVector &inner, const SizeVector &total) {
    size_t rank = inner.size();
    for (size_t axis = 0; axis < rank; ++axis) {
      bool isHeads = axis + 3 == rank || (rank == 5 && axis == 1);
      if (inner[axis] != total[axis] && !isClamped(inner[axis], total[axis]) && (isHeads || inner[axis].constant()))
        return false;
    }
    return true;
  }

  /// ds.attention does not broadcast heads, products do; batches may be left to a run.
  static bool batchesFit(ds::MatmulOp product, ds::MatmulOp root, const SizeVector &inner, const SizeAnalysis &sizes) {
    const SizeVector &q = sizes.facts(product.getLhs()).sizes, &k = sizes.facts(product.getRhs()).sizes,
                     &v = sizes.facts(root.getRhs()).sizes;
    auto isUnknown = [](const SizeExpr &size) { return !size.constant(); };
    if (q.size() != 3) {
      bool same = q[0] == k[0] && k[0] == v[0];
      return (same || (isUnknown(q[0]) && isUnknown(k[0]) && isUnknown(v[0]))) && q[1] == k[1] && k[1] == v[1];
    }
    SizeExpr heads = inner[inner.size() - 3], joined = inner.size() == 4 ? inner[0] * heads : heads;
    if (q[0] == joined && k[0] == joined && v[0] == joined)
      return true;
    // Multiples of two heads or more are never 1: products of them fit when they are equal.
    auto isMultiple = [&](const SizeExpr &size) { return SizeExpr::floorDiv(size, heads) * heads == size; };
    return heads.constant() && *heads.constant() > 1 && inner.size() == 4 && isMultiple(q[0]) && isMultiple(k[0]) &&
           isMultiple(v[0]);
  }

  /// With queries in groups, [batch, groups, heads, rows, size], whether key and value have one head for each group.
  static bool groupsFit(ds::MatmulOp product, ds::MatmulOp root, const AttentionScores &scores,
                        const SizeAnalysis &sizes) {
    const SizeVector &q = sizes.facts(product.getLhs()).sizes, &k = sizes.facts(product.getRhs()).sizes,
                     &v = sizes.facts(root.getRhs()).sizes;
    auto isAligned = [&](Value mask) {
      const SizeVector given = mask ? sizes.facts(mask).sizes : SizeVector();
      if (given.size() < 3)
        return true;
      // Groups and heads join to one axis where both are there or neither is.
      const SizeExpr &heads = given[given.size() - 3];
      return given.size() == 3 ? heads.isConstant(1)
                               : (heads == q[2] && given[given.size() - 4] == q[1]) ||
                                     (heads.isConstant(1) && given[given.size() - 4].isConstant(1));
    };
    return q[1].constant() && q[2].constant() && k[2].isConstant(1) && v[2].isConstant(1) &&
           llvm::all_of(scores.terms, [&](const ScoreTerm &term) { return isAligned(term.value); });
  }
};
} // namespace

} // namespace deepstride
