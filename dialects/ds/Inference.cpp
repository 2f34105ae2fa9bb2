// Helpers that shape rules share, the analysis that runs them over functions, and the verifier built on them.
#include "dialects/ds/Inference.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/KeepsSizes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace deepstride {

RankedTensorType TensorFacts::type() const {
  SmallVector<int64_t> shape;
  for (const SizeExpr &size : sizes)
    shape.push_back(size.constant().value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, elementType);
}

StringRef toString(SizeConstraint::Relation relation) {
  switch (relation) {
  case SizeConstraint::Relation::Equal: return "equal";
  case SizeConstraint::Relation::Broadcast: return "broadcast";
  case SizeConstraint::Relation::AtLeast: return "at-least";
  }
  llvm_unreachable("all relations handled");
}

void Inference::addResult(Type elementType, SizeVector sizes, std::optional<SizeVector> contents) {
  if (contents && contents->size() > contentsLimit)
    contents.reset();
  results.push_back({elementType, std::move(sizes), std::move(contents)});
}

LogicalResult Inference::error(const Twine &message) {
  if (!quiet)
    op->emitOpError(message);
  return failure();
}

LogicalResult Inference::requireEqual(const SizeExpr &a, const SizeExpr &b, const Twine &what) {
  SizeExpr difference = a - b;
  if (difference.isConstant(0))
    return success();
  if (difference.constant())
    return error(what + ": expected equal sizes, found " + a.brief() + " and " + b.brief());
  constraints.push_back({SizeConstraint::Relation::Equal, a, b, op->getLoc()});
  return success();
}

LogicalResult Inference::requireAtLeast(const SizeExpr &a, const SizeExpr &bound, const Twine &what) {
  SizeExpr difference = a - bound;
  if (difference.isKnownNonNegative())
    return success();
  if (difference.constant())
    return error(what + ": expected at least " + bound.brief() + ", found " + a.brief());
  constraints.push_back({SizeConstraint::Relation::AtLeast, a, bound, op->getLoc()});
  return success();
}

/// Whether `derived` is a minimum of `base` and something: they are equal when the model is well formed.
static bool derivesFrom(const SizeExpr &derived, const SizeExpr &base) {
  std::string written = derived.str(), part = base.str();
  StringRef text(written);
  return text.starts_with("min(") && (text.contains("(" + part + ",") || text.contains(", " + part + ")"));
}

/// Whether min(n, base) is `smaller` for a number n of 1 or more: never 0 where the base is not.
static bool isAtLeastOne(const SizeExpr &smaller, const SizeExpr &base) {
  std::string written = smaller.str();
  StringRef text(written);
  int64_t places;
  return text.consume_front("min(") && !text.consumeInteger(10, places) && places > 0 &&
         smaller == SizeExpr::min(SizeExpr(places), base);
}

// Which of two sizes that must match (or be 1) the result has. A symbol wins over an expression that only equals it
// when the model is well formed (min(seq, 512) against seq); two symbols leave the choice to run time.
static SizeExpr broadcastSize(const SizeExpr &a, const SizeExpr &b) {
  if (a.constant())
    return a;
  if (b.constant())
    return b;
  if (derivesFrom(a, b))
    return b;
  if (derivesFrom(b, a))
    return a;
  SizeExpr forward = SizeExpr::select(SizeExpr::eq(a, 1), b, a), backward = SizeExpr::select(SizeExpr::eq(b, 1), a, b);
  return backward.str().size() < forward.str().size() ? backward : forward;
}

std::optional<SizeVector> Inference::broadcast(ArrayRef<SizeExpr> a, ArrayRef<SizeExpr> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SizeVector result(a.begin(), a.end());
  size_t offset = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    const SizeExpr &left = a[offset + i], &right = b[i];
    if (left == right || right.isConstant(1))
      continue;
    if (left.isConstant(1)) {
      result[offset + i] = right;
      continue;
    }
    if (left.constant() && right.constant()) {
      (void)error("shapes do not broadcast: axis " + Twine(offset + i) + " has sizes " + left.str() + " and " +
                  right.str());
      return std::nullopt;
    }
    constraints.push_back({SizeConstraint::Relation::Broadcast, left, right, op->getLoc()});
    result[offset + i] = broadcastSize(left, right);
    // A size of 1 beside none gives none, where the larger one was chosen: a table that ends too early.
    const SizeExpr &smaller = result[offset + i] == left ? right : left, &chosen = result[offset + i];
    SizeExpr least = SizeExpr::min(1, chosen);
    if (derivesFrom(smaller, chosen) && !(smaller - least).isKnownNonNegative() && !isAtLeastOne(smaller, chosen))
      constraints.push_back({SizeConstraint::Relation::AtLeast, smaller, least, op->getLoc()});
  }
  return result;
}

LogicalResult Inference::requireBroadcastTo(ArrayRef<SizeExpr> target, ArrayRef<SizeExpr> given, const Twine &what) {
  if (given.size() > target.size())
    return error(what + " must have at most the operand's rank");
  auto sizes = broadcast(target, given);
  if (!sizes)
    return failure();
  for (auto [before, after] : llvm::zip_equal(target, *sizes))
    if (before.isConstant(1) && after.constant() && after != before)
      return error(what + " must broadcast to the operand, found size " + after.str() + " for 1");
    else if (failed(requireEqual(before, after, what + " must broadcast to the operand")))
      return failure();
  return success();
}

std::optional<SizeVector> Inference::sizesOf(ArrayAttr attribute, StringRef what) {
  auto sizes = sizesFromAttribute(attribute);
  if (!sizes)
    (void)error(what + " holds a text that is no size expression");
  return sizes;
}

std::optional<int64_t> Inference::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= rank)
    return std::nullopt;
  return value < 0 ? value + rank : value;
}

TensorFacts factsOfType(Type type, StringRef prefix) {
  TensorFacts facts;
  auto shaped = dyn_cast<RankedTensorType>(type);
  if (!shaped)
    return facts;
  facts.elementType = shaped.getElementType();
  for (auto [index, size] : llvm::enumerate(shaped.getShape()))
    facts.sizes.push_back(ShapedType::isDynamic(size) ? SizeExpr::symbol((prefix + Twine(index)).str())
                                                      : SizeExpr(size));
  return facts;
}

const TensorFacts *SizeAnalysis::lookup(Value value) const {
  auto found = known.find(value);
  return found == known.end() ? nullptr : &found->second;
}

const TensorFacts &SizeAnalysis::facts(Value value) const {
  auto found = known.find(value);
  assert(found != known.end() && "the analysis visits every value before its uses");
  return found->second;
}

void SizeAnalysis::set(Value value, TensorFacts facts) { known[value] = std::move(facts); }

/// Types cannot hold negative sizes, which wrong operands may lead to, and whoever counts bytes relies on products of
/// sizes that fit. An empty tensor counts as if its sizes of 0 were 1: its strides must fit, too.
static LogicalResult requireSizes(Operation *op, const TensorFacts &facts) {
  constexpr int64_t mostElements = int64_t(1) << 55;
  int64_t elements = 1;
  for (const SizeExpr &size : facts.sizes) {
    auto value = size.constant();
    if (!value)
      continue;
    if (*value < 0)
      return op->emitOpError("has a negative size, ") << *value;
    if (llvm::MulOverflow(elements, std::max<int64_t>(*value, 1), elements) || elements > mostElements)
      return op->emitOpError("has a result of more than 2^55 elements");
  }
  return success();
}

/// Expressions that contain expressions may double in length with every op; no real model comes near the limit.
static bool isTooComplex(const SizeExpr &size) {
  constexpr size_t lengthLimit = 8192;
  return !size.constant() && size.str().size() > lengthLimit;
}

LogicalResult SizeAnalysis::visit(Operation *op, bool retype) {
  if (auto inference = dyn_cast<ds::ResultInference>(op)) {
    SmallVector<TensorFacts> operands;
    for (Value operand : op->getOperands())
      operands.push_back(facts(operand));
    Inference turn(op, operands);
    if (failed(inference.inferResults(turn)))
      return failure();
    for (auto [result, resultFacts] : llvm::zip_equal(op->getResults(), turn.results)) {
      if (failed(requireSizes(op, resultFacts)))
        return failure();
      if (llvm::any_of(resultFacts.sizes, isTooComplex))
        return op->emitOpError("has a size that is too long an expression; pin dimensions with --dim");
      if (resultFacts.contents && llvm::any_of(*resultFacts.contents, isTooComplex))
        resultFacts.contents.reset();
      if (retype)
        result.setType(resultFacts.type());
      set(result, std::move(resultFacts));
    }
    llvm::append_range(constraints, turn.constraints);
    return success();
  }
  if (op->hasTrait<ds::KeepsSizes>()) {
    set(op->getResult(0), facts(op->getOperand(0)));
    return success();
  }
  if (op->hasTrait<ds::BindsOperands>()) {
    for (auto [argument, operand] : llvm::zip_equal(op->getRegion(0).getArguments(), op->getOperands())) {
      TensorFacts bound = facts(operand);
      // What varies has no elements, even where it has known ones now: nothing may be folded for them.
      if (argument.getArgNumber() < op->getNumResults())
        bound.contents.reset();
      set(argument, std::move(bound));
    }
    if (failed(visitRegion(op->getRegion(0))))
      return failure();
    for (OpResult result : op->getResults()) {
      const TensorFacts &operand = facts(op->getOperand(result.getResultNumber()));
      set(result, {operand.elementType, operand.sizes, std::nullopt});
    }
    return success();
  }
  if (auto launch = dyn_cast<ds::LaunchOp>(op)) {
    // Kernels state their result sizes over d0, d1, ...; the launch binds those to expressions of the program.
    ArrayAttr resultSizes = op->getAttrOfType<ArrayAttr>("result_sizes");
    if (!resultSizes || resultSizes.size() != op->getNumResults())
      return op->emitOpError("expects 'result_sizes' with one list per result");
    for (auto [result, sizes] : llvm::zip_equal(op->getResults(), resultSizes)) {
      auto list = sizesFromAttribute(cast<ArrayAttr>(sizes));
      if (!list)
        return op->emitOpError("'result_sizes' holds a text that is no size expression");
      set(result, {cast<RankedTensorType>(result.getType()).getElementType(), *list, std::nullopt});
    }
    return success();
  }
  if (isa<scf::WhileOp>(op))
    return visitLoop(op);
  if (failed(visitSides(op)))
    return failure();
  if (op->getNumResults() == 0)
    return success();
  // Region ops pass on what their terminators yield; a branch whose sizes differ gets sizes of its own.
  // All results before any is set: setting one moves what the map holds.
  SmallVector<std::pair<Value, TensorFacts>> found;
  SmallVector<SmallVector<const TensorFacts *>> yielded(op->getNumResults());
  for (Region &region : op->getRegions())
    if (!region.empty() && region.front().mightHaveTerminator() &&
        region.front().getTerminator()->getNumOperands() == op->getNumResults())
      for (auto [index, operand] : llvm::enumerate(region.front().getTerminator()->getOperands()))
        yielded[index].push_back(lookup(operand));
  for (OpResult result : op->getResults()) {
    auto shaped = dyn_cast<RankedTensorType>(result.getType());
    if (!shaped)
      continue;
    TensorFacts merged = factsOfType(shaped, "?" + std::to_string(known.size() + found.size()) + "_");
    auto &sources = yielded[result.getResultNumber()];
    if (!sources.empty() && sources[0])
      if (llvm::all_of(sources, [&](const TensorFacts *f) { return f && f->sizes == sources[0]->sizes; }))
        merged.sizes = sources[0]->sizes;
    if (op->hasAttr("ds.sizes"))
      if (auto sizes = sizesFromAttribute(op->getAttrOfType<ArrayAttr>("ds.sizes")))
        merged.sizes = *sizes;
    found.emplace_back(result, std::move(merged));
  }
  for (auto &[result, facts] : found)
    set(result, std::move(facts));
  return success();
}

std::optional<SizeExpr> SizeAnalysis::conditionOf(Value condition) const {
  auto extract = condition.getDefiningOp<tensor::ExtractOp>();
  if (!extract)
    return std::nullopt;
  if (const TensorFacts *facts = lookup(extract.getTensor()); facts && facts->contents && facts->contents->size() == 1)
    return facts->contents->front();
  // Another branch may have named the same tensor after this one: constraints must be checked before it runs.
  for (Operation *user : extract.getTensor().getUsers())
    if (auto define = dyn_cast<ds::DefineOp>(user))
      if (Operation *reader = define->getBlock()->findAncestorOpInBlock(*extract);
          reader && define->isBeforeInBlock(reader))
        return SizeExpr::symbol(define.getSymbol());
  return std::nullopt;
}

// What a side of a branch requires of sizes must hold only where that side runs.
LogicalResult SizeAnalysis::visitSides(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  auto condition = branch ? conditionOf(branch.getCondition()) : std::nullopt;
  for (Region &region : op->getRegions()) {
    size_t outside = constraints.size();
    if (failed(visitRegion(region)))
      return failure();
    if (!condition)
      continue;
    bool isThen = region.getRegionNumber() == 0;
    for (SizeConstraint &inside : MutableArrayRef(constraints).drop_front(outside))
      inside.lhs = isThen ? SizeExpr::select(*condition, inside.lhs, inside.rhs)
                          : SizeExpr::select(*condition, inside.rhs, inside.lhs);
  }
  return success();
}

/// Records that two shapes which meet in one buffer are equal; false where they never are. Folding may have dropped the
/// reshape that stated it.
static bool mustAgree(const TensorFacts &a, const TensorFacts &b, Location where,
                      std::vector<SizeConstraint> &constraints) {
  if (a.rank() != b.rank())
    return false;
  for (auto [left, right] : llvm::zip_equal(a.sizes, b.sizes)) {
    if (left == right)
      continue;
    if ((left - right).constant())
      return false;
    constraints.push_back({SizeConstraint::Relation::Equal, left, right, where});
  }
  return true;
}

// What a loop carries keeps its sizes, so that it keeps its buffer; its elements are another iteration's.
LogicalResult SizeAnalysis::visitLoop(Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  auto carry = [&](ValueRange from, ValueRange to) {
    for (auto [source, target] : llvm::zip_equal(from, to))
      if (const TensorFacts *sourceFacts = lookup(source))
        set(target, {sourceFacts->elementType, sourceFacts->sizes, std::nullopt});
  };
  carry(loop.getInits(), loop.getBeforeArguments());
  if (failed(visitRegion(loop.getBefore())))
    return failure();
  carry(loop.getConditionOp().getArgs(), loop.getAfterArguments());
  if (failed(visitRegion(loop.getAfter())))
    return failure();
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(loop.getInits(), loop.getYieldedValues()))) {
    const TensorFacts *first = lookup(std::get<0>(pair)), *next = lookup(std::get<1>(pair));
    if (first && next && !mustAgree(*first, *next, op->getLoc(), constraints))
      return op->emitOpError("expects carried value ")
             << index << " to keep its sizes, found " << brief(first->sizes) << " and " << brief(next->sizes);
  }
  carry(loop.getConditionOp().getArgs(), loop.getResults());
  return success();
}

LogicalResult SizeAnalysis::visitRegion(Region &region) {
  for (Block &block : region)
    for (Operation &op : block)
      if (failed(visit(&op)))
        return failure();
  return success();
}

FailureOr<TensorFacts> SizeAnalysis::factsOfArgument(Operation *function, unsigned index) {
  auto entry = cast<FunctionOpInterface>(function);
  TensorFacts facts = factsOfType(entry.getArgument(index).getType(), "arg" + std::to_string(index) + "_d");
  if (auto dims = entry.getArgAttrOfType<ArrayAttr>(index, ds::dimsAttr)) {
    auto sizes = sizesFromAttribute(dims);
    if (!sizes || sizes->size() != facts.sizes.size()) {
      function->emitOpError("argument ") << index << ": '" << ds::dimsAttr << "' must hold one size per axis";
      return failure();
    }
    facts.sizes = *sizes;
  }
  // Elements of small integer inputs are symbols: Reshape, Expand and Range may be steered by them.
  auto name = entry.getArgAttrOfType<StringAttr>(index, ds::nameAttr);
  auto count = product(facts.sizes).constant();
  bool isShapeLike = facts.elementType && facts.rank() <= 1 &&
                     (facts.elementType.isSignlessInteger(64) || facts.elementType.isSignlessInteger(32));
  if (name && isShapeLike && count && *count >= 0 && *count <= 16) {
    facts.contents.emplace();
    for (int64_t i = 0; i < *count; ++i)
      facts.contents->push_back(SizeExpr::symbol((name.getValue() + "[" + Twine(i) + "]").str()));
  }
  return facts;
}

FailureOr<SizeAnalysis> SizeAnalysis::run(Operation *function) {
  SizeAnalysis analysis;
  if (auto kernel = dyn_cast<ds::KernelOp>(function)) {
    for (auto [argument, sizes] : llvm::zip_equal(kernel.getBody().getArguments(), kernel.getArgumentSizes())) {
      auto list = sizesFromAttribute(cast<ArrayAttr>(sizes));
      if (!list)
        return kernel.emitOpError("has an argument size that is no size expression");
      analysis.set(argument, {cast<RankedTensorType>(argument.getType()).getElementType(), *list, std::nullopt});
    }
    if (failed(analysis.visitRegion(kernel.getBody())))
      return failure();
    return analysis;
  }
  auto entry = cast<FunctionOpInterface>(function);
  for (BlockArgument argument : entry.getArguments()) {
    auto facts = factsOfArgument(function, argument.getArgNumber());
    if (failed(facts))
      return failure();
    analysis.set(argument, std::move(*facts));
  }
  if (failed(analysis.visitRegion(entry.getFunctionBody())))
    return failure();
  return analysis;
}

namespace ds {

LogicalResult verifyAgainstInference(Operation *op) {
  SmallVector<TensorFacts> operands;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    operands.push_back(factsOfType(operand.getType(), "?" + std::to_string(index) + "_"));
  Inference turn(op, operands);
  if (failed(cast<ResultInference>(op).inferResults(turn)))
    return failure();
  if (turn.results.size() != op->getNumResults())
    return op->emitOpError("expects ") << turn.results.size() << " results";
  for (auto [result, facts] : llvm::zip_equal(op->getResults(), turn.results)) {
    if (failed(requireSizes(op, facts)))
      return failure();
    auto type = cast<RankedTensorType>(result.getType());
    if (type.getElementType() != facts.elementType || type.getRank() != facts.rank() ||
        failed(verifyCompatibleShape(type, facts.type())))
      return op->emitOpError("result #") << result.getResultNumber() << " expects a type compatible with "
                                         << facts.type() << ", found " << type;
  }
  return success();
}

} // namespace ds
} // namespace deepstride
