// Takes the extremes of tensors apart, and finds what is computed of them.
#include "passes/optimization/Extremes.h"

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/Reductions.h"

using namespace mlir;

namespace deepstride {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

SmallVector<ds::ReduceOp> wholeExtremes(Value value) {
  SmallVector<ds::ReduceOp> extremes;
  for (Operation *user : value.getUsers()) {
    if (user->getBlock() != value.getParentBlock())
      continue;
    if (auto reshape = dyn_cast<ds::ReshapeOp>(user))
      llvm::append_range(extremes, wholeExtremes(reshape.getResult()));
    auto reduce = dyn_cast<ds::ReduceOp>(user);
    if (reduce && ds::takesExtreme(reduce) && !reduce.getKeepDims() && ds::reducesWhole(reduce) &&
        typeOf(value).getElementType().isF32() && typeOf(value).getRank() > 1)
      extremes.push_back(reduce);
  }
  return extremes;
}

Operation *takeRowExtremes(ArrayRef<ds::ReduceOp> extremes, Value rows, OpSet &region, SizeAnalysis &analysis,
                           llvm::SmallPtrSetImpl<Operation *> &partial) {
  OpBuilder builder(rows.getContext());
  builder.setInsertionPointAfterValue(rows);
  DsBuilder behind(builder, analysis);
  Operation *last = rows.getDefiningOp();
  llvm::SmallDenseMap<ds::ReduceKind, Value, 2> taken;
  for (ds::ReduceOp whole : extremes) {
    Value &ofRows = taken[whole.getKind()];
    if (!ofRows) {
      behind.setLocation(whole.getLoc());
      ofRows = behind.reduce(whole.getKind(), rows, {typeOf(rows).getRank() - 1}, /*keep=*/false);
      last = ofRows.getDefiningOp();
      region.insert(last);
    }
    DsBuilder before(OpBuilder(whole), analysis);
    before.setLocation(whole.getLoc());
    auto axes = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(ofRows).getRank()));
    Value number = before.reduce(whole.getKind(), ofRows, axes, /*keep=*/false);
    partial.insert(number.getDefiningOp());
    if (Attribute names = whole->getAttr(ds::valueNameAttr))
      number.getDefiningOp()->setAttr(ds::valueNameAttr, names);
    whole.getResult().replaceAllUsesWith(number);
    whole.erase();
  }
  return last;
}

static bool isOne(Value value) { return typeOf(value).hasStaticShape() && typeOf(value).getNumElements() == 1; }

OpSet sharedNumbers(ds::LinearOp product, const OpSet &region, const llvm::SmallPtrSetImpl<Operation *> &partial,
                    llvm::function_ref<void(Operation *, StringRef)> stays) {
  OpSet numbers;
  auto isNumber = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != product->getBlock() || region.contains(op) || isa<ds::ConstantOp>(op))
      return false;
    return isOne(value) && (partial.contains(op) || (isFusablePointwise(op) && !isa<ds::BitcastOp>(op)));
  };
  auto take = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (isNumber(operand))
        numbers.insert(operand.getDefiningOp());
  };
  llvm::for_each(region, take);
  bool areExtremes = false;
  for (size_t i = 0; i < numbers.size() && numbers.size() <= regionLimit; ++i) {
    areExtremes |= partial.contains(numbers[i]);
    if (!partial.contains(numbers[i]))
      take(numbers[i]);
  }
  if (!areExtremes || numbers.size() > regionLimit)
    return {};
  for (Operation *op : numbers) {
    bool isOfNumbers = partial.contains(op) || llvm::all_of(op->getOperands(), isOne);
    bool isOnlyHere =
        llvm::all_of(op->getUsers(), [&](Operation *user) { return numbers.contains(user) || region.contains(user); });
    if (isOfNumbers && isOnlyHere)
      continue;
    stays(op, isOnlyHere ? "it is not computed of numbers alone" : "something else reads it");
    return {};
  }
  return numbers;
}

} // namespace deepstride
