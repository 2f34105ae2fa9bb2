// ds-recompose-rotary: finds rotary position embeddings. One form adds a value times cosines to the value turned by a
// quarter times sines; the other rotates both sides of the pairs apart and joins them. How cosines and sines come about
// does not matter. A head whose first elements are rotated, and the others joined to them again, is turned as a whole.
//
//   %t = ds.concat 1 (ds.unary neg %high), %low           %y = ds.rotary %x, %cos, %sin interleaved false
//   %y = %x * %cos + %t * %sin                        =>
#include "dialects/ds/Requirements.h"
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_RECOMPOSEROTARY
#include "passes/graph/Passes.h.inc"

namespace {
/// Elements start, start + step, ... of the last axis of a value.
struct Part {
  Value source;
  int64_t start, step, size;
};

/// The two sides of pairs, joined again.
struct Pairs {
  Value first, second;
  bool interleaved;
};

struct Angles {
  Value cosines, sines;
};

struct RecomposeRotary : impl::RecomposeRotaryBase<RecomposeRotary>, PassReport {
  void runOnOperation() override {
    count("recomposed", 0);
    if (getOperation().isExternal())
      return;
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<ds::BinaryOp, ds::ConcatOp, ds::ReshapeOp>(op))
        ops.push_back(op);
    });
    auto analysis = SizeAnalysis::run(getOperation());
    if (failed(analysis))
      return signalPassFailure();
    sizes = &*analysis;
    for (Operation *op : ops)
      if (!matchTurned(dyn_cast<ds::BinaryOp>(op)))
        matchSplit(op);
    for (Operation *op : ops)
      matchFirst(dyn_cast<ds::ConcatOp>(op));
    if (failed(eraseReplacedOps(getOperation())))
      return signalPassFailure();
    sizes = nullptr;
  }

  static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }
  const SizeVector &sizesOf(Value value) const { return sizes->facts(value).sizes; }

  std::optional<Part> partOf(Value value) const {
    auto slice = value.getDefiningOp<ds::SliceOp>();
    if (!slice)
      return std::nullopt;
    auto starts = sizesFromAttribute(slice.getStarts());
    const SizeVector &all = sizesOf(slice.getInput()), &taken = sizesOf(value);
    if (all.empty())
      return std::nullopt;
    size_t last = all.size() - 1;
    for (size_t axis = 0; axis < last; ++axis)
      if (!starts || !(*starts)[axis].isConstant(0) || slice.getSteps()[axis] != 1 || all[axis] != taken[axis])
        return std::nullopt;
    auto start = (*starts)[last].constant(), size = taken[last].constant();
    if (!start || !size)
      return std::nullopt;
    return Part{slice.getInput(), *start, slice.getSteps()[last], *size};
  }

  /// The value without the axis of size 1 that a reshape appended.
  Value withoutLastAxis(Value value) const {
    auto reshape = value.getDefiningOp<ds::ReshapeOp>();
    if (!reshape)
      return {};
    SizeVector extended = sizesOf(reshape.getInput());
    extended.push_back(1);
    return extended == sizesOf(value) ? reshape.getInput() : Value();
  }

  std::optional<Pairs> pairsOf(Value value) const {
    auto concat = value.getDefiningOp<ds::ConcatOp>();
    auto isJoinOfTwo = [&](int64_t axis) {
      return concat && concat.getInputs().size() == 2 && static_cast<int64_t>(concat.getAxis()) == axis;
    };
    if (isJoinOfTwo(rankOf(value) - 1))
      return Pairs{concat.getInputs()[0], concat.getInputs()[1], false};
    auto reshape = value.getDefiningOp<ds::ReshapeOp>();
    if (!reshape || rankOf(reshape.getInput()) != rankOf(value) + 1)
      return std::nullopt;
    concat = reshape.getInput().getDefiningOp<ds::ConcatOp>();
    if (!isJoinOfTwo(rankOf(value)))
      return std::nullopt;
    Value first = withoutLastAxis(concat.getInputs()[0]), second = withoutLastAxis(concat.getInputs()[1]);
    if (!first || !second || sizesOf(first) != sizesOf(second))
      return std::nullopt;
    SizeVector flat = sizesOf(first);
    flat.back() = flat.back() * SizeExpr(2);
    return flat == sizesOf(value) ? std::optional(Pairs{first, second, true}) : std::nullopt;
  }

  /// Whether the parts are the two sides of the pairs of one value.
  static bool arePairs(const Part &first, const Part &second, bool interleaved) {
    if (first.source != second.source || first.size != second.size || first.step != second.step)
      return false;
    return interleaved ? first.step == 2 && second.start == first.start + 1
                       : first.step == 1 && second.start == first.start + first.size;
  }

  /// Whether there is one angle of x's type for each of `width` elements of its last axis, or of a part of it, and none
  /// that enlarges x.
  bool fits(Value angles, Value x, int64_t width) const {
    const SizeVector &given = sizesOf(angles), &target = sizesOf(x);
    if (given.empty() || given.size() > target.size() || !given.back().isConstant(width) ||
        elementOf(angles) != elementOf(x) || !isa<FloatType>(elementOf(x)))
      return false;
    for (size_t back = 2; back <= given.size(); ++back)
      if (const SizeExpr &size = given[given.size() - back];
          !size.isConstant(1) && size != target[target.size() - back] && !isClamped(size, target[target.size() - back]))
        return false;
    return true;
  }

  /// x cos + turn(x) sin.
  bool matchTurned(ds::BinaryOp sum) {
    if (!sum || sum.getKind() != ds::BinaryKind::add)
      return false;
    for (auto [plain, turned] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
      ds::BinaryOp straight = binaryOf(plain, ds::BinaryKind::mul), across = binaryOf(turned, ds::BinaryKind::mul);
      if (!straight || !across)
        continue;
      for (auto [turn, sines] :
           {std::pair(across.getLhs(), across.getRhs()), std::pair(across.getRhs(), across.getLhs())}) {
        auto pairs = pairsOf(turn);
        ds::UnaryOp negated = pairs ? unaryOf(pairs->first, ds::UnaryKind::neg) : ds::UnaryOp();
        auto second = negated ? partOf(negated.getInput()) : std::nullopt,
             first = negated ? partOf(pairs->second) : std::nullopt;
        if (!first || !second)
          continue;
        Value x = first->source;
        auto remark = [&](StringRef reason) { return remarkLeft(sum, "rotary", reason), false; };
        if (straight.getLhs() != x && straight.getRhs() != x)
          return remark("the turned value is not the one beside it");
        auto width = sizesOf(x).back().constant();
        if (!arePairs(*first, *second, pairs->interleaved) || first->start != 0 || width != 2 * first->size)
          return remark("what is turned is not all pairs of the last axis");
        Value cosines = straight.getLhs() == x ? straight.getRhs() : straight.getLhs();
        if (!fits(cosines, x, *width) || !fits(sines, x, *width))
          return remark("cosines and sines are not one for each element of the last axis");
        replace(sum, x, {cosines, sines}, pairs->interleaved);
        return true;
      }
    }
    return false;
  }

  /// The angles of a cos - b sin (`adds` false) or a cos + b sin.
  std::optional<Angles> anglesOf(Value value, const Part &a, const Part &b, bool adds) const {
    ds::BinaryOp root = binaryOf(value, adds ? ds::BinaryKind::add : ds::BinaryKind::sub);
    if (!root)
      return std::nullopt;
    auto factorOf = [&](Value term, const Part &part) -> Value {
      ds::BinaryOp product = binaryOf(term, ds::BinaryKind::mul);
      for (unsigned index : {0, 1})
        if (auto found = product ? partOf(product->getOperand(index)) : std::nullopt)
          if (found->source == part.source && found->start == part.start && found->step == part.step &&
              found->size == part.size)
            return product->getOperand(1 - index);
      return {};
    };
    Angles angles{factorOf(root.getLhs(), a), factorOf(root.getRhs(), b)};
    if (adds && (!angles.cosines || !angles.sines))
      angles = {factorOf(root.getRhs(), a), factorOf(root.getLhs(), b)};
    return angles.cosines && angles.sines ? std::optional(angles) : std::nullopt;
  }

  /// a cos - b sin and b cos + a sin, joined.
  void matchSplit(Operation *op) {
    auto pairs = op->getNumResults() == 1 ? pairsOf(op->getResult(0)) : std::nullopt;
    ds::BinaryOp real = pairs ? binaryOf(pairs->first, ds::BinaryKind::sub) : ds::BinaryOp();
    if (!real)
      return;
    ds::BinaryOp left = binaryOf(real.getLhs(), ds::BinaryKind::mul),
                 right = binaryOf(real.getRhs(), ds::BinaryKind::mul);
    if (!left || !right)
      return;
    // Cosines and sines may be parts of a table: each factor may be the one of x.
    StringRef reason;
    for (Value cosined : left->getOperands())
      for (Value sined : right->getOperands()) {
        auto first = partOf(cosined), second = partOf(sined);
        if (!first || !second || !arePairs(*first, *second, pairs->interleaved))
          continue;
        auto down = anglesOf(pairs->first, *first, *second, false), up = anglesOf(pairs->second, *second, *first, true);
        if (!down || !up || down->cosines != up->cosines || down->sines != up->sines)
          reason = "the two sides of the pairs are not rotated by the same angles";
        else if (!fits(down->cosines, first->source, first->size) || !fits(down->sines, first->source, first->size))
          reason = "cosines and sines are not one for each pair of the last axis";
        else
          return replace(op, *first, *down, pairs->interleaved);
      }
    if (!reason.empty())
      remarkLeft(op, "rotary", reason);
  }

  /// The first elements of x, rotated, and behind them the others as they are.
  void matchFirst(ds::ConcatOp join) {
    if (!join || join.getInputs().size() != 2 || static_cast<int64_t>(join.getAxis()) != rankOf(join) - 1)
      return;
    auto rotary = join.getInputs()[0].getDefiningOp<ds::RotaryOp>();
    auto first = rotary && !rotary.getFirst() ? partOf(rotary.getInput()) : std::nullopt,
         rest = partOf(join.getInputs()[1]);
    auto width = first ? sizesOf(first->source).back().constant() : std::nullopt;
    if (!rest || !width || first->source != rest->source || first->start != 0 || first->step != 1 || rest->step != 1 ||
        rest->start != first->size || first->size + rest->size != *width)
      return;
    replace(join, first->source, {rotary.getCosines(), rotary.getSines()}, rotary.getInterleaved(), first->size);
  }

  void replace(Operation *op, Part first, const Angles &angles, bool interleaved) {
    Value x = first.source;
    if (!sizesOf(x).back().isConstant(2 * first.size)) {
      OpBuilder builder(op);
      SizeVector starts(sizesOf(x).size()), taken = sizesOf(x);
      starts.back() = first.start;
      taken.back() = 2 * first.size;
      auto slice = ds::SliceOp::create(builder, op->getLoc(), op->getResult(0).getType(), x,
                                       toAttribute(&getContext(), starts), toAttribute(&getContext(), taken),
                                       builder.getDenseI64ArrayAttr(SmallVector<int64_t>(starts.size(), 1)));
      if (failed(sizes->visit(slice, /*retype=*/true)))
        return;
      x = slice.getResult();
    }
    replace(op, x, angles, interleaved);
  }

  /// `first`: how many elements are rotated, where that is not all.
  void replace(Operation *op, Value x, const Angles &angles, bool interleaved, int64_t first = 0) {
    OpBuilder builder(op);
    auto rotary =
        ds::RotaryOp::create(builder, op->getLoc(), op->getResult(0).getType(), x, angles.cosines, angles.sines,
                             interleaved, first ? builder.getI64IntegerAttr(first) : IntegerAttr());
    keepNames(op, rotary);
    sizes->set(rotary.getResult(), sizes->facts(op->getResult(0)));
    op->getResult(0).replaceAllUsesWith(rotary.getResult());
    count("recomposed");
  }

  SizeAnalysis *sizes = nullptr;
};
} // namespace

} // namespace deepstride
