// The size analysis: shape rules over whole functions, with the branches and loops of the program.
#include "dialects/ds/Contents.h"
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/SizeTraits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace deepstride {

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

/// Expressions that contain expressions may double in length with every op; no real model comes near the limit.
static bool isTooComplex(const SizeExpr &size) {
  constexpr size_t lengthLimit = 8192;
  constexpr unsigned depthLimit = 80; // the texts of deeper ones are refused
  return !size.constant() && (size.depth() > depthLimit || size.str().size() > lengthLimit);
}

LogicalResult SizeAnalysis::readStatedSizes(Operation *op) {
  ArrayAttr resultSizes = op->getAttrOfType<ArrayAttr>("result_sizes");
  Operation *start = op->hasTrait<ds::StatesSizes>() ? op->getOperand(0).getDefiningOp() : nullptr;
  if (!resultSizes && start && op->getNumResults() == 1 && start->getNumOperands() > 0) {
    TensorFacts handed = facts(start->getOperand(0));
    handed.contents.reset();
    set(op->getResult(0), std::move(handed));
    return success();
  }
  if (!resultSizes || resultSizes.size() != op->getNumResults())
    return op->emitOpError("expects 'result_sizes' with one list per result");
  for (auto [result, sizes] : llvm::zip_equal(op->getResults(), resultSizes)) {
    auto stated = dyn_cast<ArrayAttr>(sizes);
    auto list = stated ? sizesFromAttribute(stated) : std::nullopt;
    auto type = cast<RankedTensorType>(result.getType());
    if (!list || static_cast<int64_t>(list->size()) != type.getRank())
      return op->emitOpError("expects 'result_sizes' to hold a size expression per axis");
    set(result, {type.getElementType(), *list, std::nullopt});
  }
  return success();
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
      if (resultFacts.contents && llvm::any_of(*resultFacts.contents, isTooLong))
        resultFacts.contents.reset();
      if (retype)
        result.setType(resultFacts.type());
      set(result, std::move(resultFacts));
    }
    llvm::append_range(constraints, turn.constraints);
    return success();
  }
  if (auto condition = dyn_cast<ds::RequireOp>(op)) {
    Inference turn(op, {});
    if (failed(turn.require(condition.getConstraint())))
      return failure();
    llvm::append_range(constraints, turn.constraints);
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
  // Kernels state their result sizes over d0, d1, ...; the launch binds those to expressions of the program.
  if (isa<ds::LaunchOp>(op) || op->hasTrait<ds::StatesSizes>())
    return readStatedSizes(op);
  if (isa<scf::WhileOp>(op))
    return visitLoop(op);
  if (failed(visitSides(op)))
    return failure();
  if (op->getNumResults() == 0)
    return success();
  // Region ops pass on what their terminators yield; a branch whose sizes differ gets sizes of its own.
  SmallVector<SmallVector<const TensorFacts *>> yielded(op->getNumResults());
  for (Region &region : op->getRegions())
    if (!region.empty() && region.front().mightHaveTerminator() &&
        region.front().getTerminator()->getNumOperands() == op->getNumResults())
      for (auto [index, operand] : llvm::enumerate(region.front().getTerminator()->getOperands()))
        yielded[index].push_back(lookup(operand));
  // Results are set together at the end: what `yielded` points to moves as facts are added.
  SmallVector<std::pair<Value, TensorFacts>> passedOn;
  for (OpResult result : op->getResults()) {
    auto shaped = dyn_cast<RankedTensorType>(result.getType());
    if (!shaped)
      continue;
    TensorFacts merged = factsOfType(shaped, scopes++);
    auto &sources = yielded[result.getResultNumber()];
    if (!sources.empty() && sources[0])
      if (llvm::all_of(sources, [&](const TensorFacts *f) { return f && f->sizes == sources[0]->sizes; }))
        merged.sizes = sources[0]->sizes;
    passedOn.emplace_back(result, std::move(merged));
  }
  for (auto &[result, facts] : passedOn)
    set(result, std::move(facts));
  return success();
}

std::optional<SizeExpr> SizeAnalysis::conditionOf(Value condition) const {
  auto extract = condition.getDefiningOp<tensor::ExtractOp>();
  return extract ? conditionIn(extract.getTensor(), extract) : std::nullopt;
}

std::optional<SizeExpr> SizeAnalysis::conditionIn(Value tensor, Operation *reader) const {
  if (const TensorFacts *facts = lookup(tensor); facts && isExact(*facts) && facts->contents->size() == 1)
    return facts->contents->front();
  // Another branch may have named the same tensor after this one: constraints must be checked before it runs.
  for (Operation *user : tensor.getUsers())
    if (auto define = dyn_cast<ds::DefineOp>(user))
      if (Operation *place = define->getBlock()->findAncestorOpInBlock(*reader);
          place && define->isBeforeInBlock(place))
        return SizeExpr::symbol(define.getSymbol());
  return std::nullopt;
}

/// Makes constraints hold where the condition of what they come from is not met.
static void requireOnlyIf(const SizeExpr &condition, bool isMet, MutableArrayRef<SizeConstraint> constraints) {
  auto choose = [&](const SizeExpr &inside, const SizeExpr &outside) {
    return isMet ? SizeExpr::select(condition, inside, outside) : SizeExpr::select(condition, outside, inside);
  };
  for (SizeConstraint &inside : constraints) {
    // What cannot be evaluated is not, where it does not matter.
    SizeExpr any = inside.rhs.mayFail() ? SizeExpr(0) : inside.rhs;
    inside.lhs = choose(inside.lhs, any);
    inside.rhs = choose(inside.rhs, any);
  }
}

// What a side of a branch requires of sizes must hold only where that side runs.
LogicalResult SizeAnalysis::visitSides(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  auto condition = branch ? conditionOf(branch.getCondition()) : std::nullopt;
  for (Region &region : op->getRegions()) {
    // Of an op that no rule knows: its types say what its values are.
    for (Value argument : region.getArguments())
      if (!lookup(argument))
        set(argument, factsOfType(argument.getType(), scopes++));
    size_t outside = constraints.size();
    if (failed(visitRegion(region)))
      return failure();
    if (!condition)
      continue;
    bool isThen = region.getRegionNumber() == 0;
    requireOnlyIf(*condition, isThen, MutableArrayRef(constraints).drop_front(outside));
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

/// The condition of a loop's first iteration: 0 where it does not run. Of a conjunction whose parts are not all known,
/// the part that is.
std::optional<SizeExpr> SizeAnalysis::firstCondition(scf::WhileOp loop, Value condition) const {
  auto atFirst = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == loop.getBeforeBody() ? loop.getInits()[argument.getArgNumber()] : value;
  };
  auto number = [&](Value value) -> std::optional<SizeExpr> {
    Operation *op = atFirst(value).getDefiningOp();
    if (auto size = dyn_cast_if_present<ds::SizeOp>(op))
      return sizeFromAttribute(size.getValue());
    IntegerAttr constant;
    return op && matchPattern(op, m_Constant(&constant)) ? std::optional(SizeExpr(constant.getInt())) : std::nullopt;
  };
  Operation *op = condition.getDefiningOp();
  if (auto extract = dyn_cast_if_present<tensor::ExtractOp>(op))
    return conditionIn(atFirst(extract.getTensor()), loop);
  if (auto compare = dyn_cast_if_present<arith::CmpIOp>(op);
      compare && compare.getPredicate() == arith::CmpIPredicate::slt) {
    auto left = number(compare.getLhs()), right = number(compare.getRhs());
    return left && right ? std::optional(SizeExpr::lt(*left, *right)) : std::nullopt;
  }
  if (auto both = dyn_cast_if_present<arith::AndIOp>(op)) {
    auto left = firstCondition(loop, both.getLhs()), right = firstCondition(loop, both.getRhs());
    return left && right ? *left * *right : left ? left : right;
  }
  return std::nullopt;
}

// What a loop carries keeps its sizes, so that it keeps its buffer; its elements are another iteration's. What the body
// requires of sizes must hold only where it runs.
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
  auto runs = firstCondition(loop, loop.getConditionOp().getCondition());
  size_t outside = constraints.size();
  carry(loop.getConditionOp().getArgs(), loop.getAfterArguments());
  if (failed(visitRegion(loop.getAfter())))
    return failure();
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(loop.getInits(), loop.getYieldedValues()))) {
    const TensorFacts *first = lookup(std::get<0>(pair)), *next = lookup(std::get<1>(pair));
    if (first && next && !mustAgree(*first, *next, op->getLoc(), constraints))
      return op->emitOpError("expects carried value ")
             << index << " to keep its sizes, found " << brief(first->sizes) << " and " << brief(next->sizes);
  }
  if (runs)
    requireOnlyIf(*runs, true, MutableArrayRef(constraints).drop_front(outside));
  carry(loop.getConditionOp().getArgs(), loop.getResults());
  return success();
}

LogicalResult SizeAnalysis::visitRegion(Region &region) {
  if (!region.empty() && !region.hasOneBlock())
    return region.getParentOp()->emitOpError("expects one block, as branches and loops are ops of scf; found ")
           << region.getBlocks().size();
  for (Block &block : region)
    for (Operation &op : block)
      if (failed(visit(&op)))
        return failure();
  return success();
}

/// A prefix for the dimensions of an argument that states none; no argument of the function has a name like it.
static std::string freshPrefix(FunctionOpInterface entry, unsigned index) {
  std::string prefix = "arg" + std::to_string(index) + "_d";
  auto isTaken = [&](const SizeAtom &symbol) { return symbol.name().starts_with(prefix); };
  for (unsigned other = 0; other < entry.getNumArguments(); ++other) {
    auto dims = entry.getArgAttrOfType<ArrayAttr>(other, ds::dimsAttr);
    auto sizes = dims ? sizesFromAttribute(dims) : std::nullopt;
    for (const SizeExpr &size : sizes.value_or(SizeVector()))
      while (llvm::any_of(size.symbols(), isTaken))
        prefix += "_";
  }
  return prefix;
}

FailureOr<TensorFacts> SizeAnalysis::factsOfArgument(Operation *function, unsigned index) {
  auto entry = cast<FunctionOpInterface>(function);
  TensorFacts facts;
  auto type = dyn_cast<RankedTensorType>(entry.getArgument(index).getType());
  if (auto dims = entry.getArgAttrOfType<ArrayAttr>(index, ds::dimsAttr)) {
    auto sizes = sizesFromAttribute(dims);
    if (!sizes || !type || static_cast<int64_t>(sizes->size()) != type.getRank()) {
      function->emitOpError("argument ") << index << ": '" << ds::dimsAttr << "' must hold one size per axis";
      return failure();
    }
    facts = {type.getElementType(), *sizes, std::nullopt};
  } else if (type) {
    facts = factsOfType(type, type.hasStaticShape() ? StringRef() : StringRef(freshPrefix(entry, index)));
  }
  // Elements of small integer inputs are symbols: Reshape, Expand and Range may be steered by them.
  auto name = entry.getArgAttrOfType<StringAttr>(index, ds::nameAttr);
  auto count = product(facts.sizes).constant();
  bool isShapeLike = facts.elementType && facts.rank() <= 1 &&
                     (facts.elementType.isSignlessInteger(64) || facts.elementType.isSignlessInteger(32));
  bool isState = static_cast<bool>(entry.getArgAttr(index, ds::stateAttr)); // no input of the package
  if (name && isShapeLike && !isState && count && *count >= 0 && *count <= 16) {
    facts.contents.emplace();
    for (int64_t i = 0; i < *count; ++i)
      facts.contents->push_back(SizeExpr::element(name.getValue(), i, facts.elementType.getIntOrFloatBitWidth()));
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

} // namespace deepstride
