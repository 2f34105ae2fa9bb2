// Finds out whether a value of a program under construction depends on constants only, and evaluates it if so: ops one
// by one, branches and loops as the program runs them.
#include "dialects/ds/HostConstants.h"

#include "dialects/ds/DsDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;

namespace deepstride {

namespace {
/// Subexpressions that steer shapes are short. What is longer, or works on more elements, is computation.
constexpr size_t opLimit = 512;
constexpr size_t visitLimit = 64 * opLimit;
constexpr int64_t elementLimit = int64_t(1) << 16;
/// What one value may cost of what the whole function may: others are to be evaluated, too.
constexpr int64_t costLimit = int64_t(1) << 22;
/// Of what computes no elements.
constexpr int64_t stepCost = 16;

class ConstantEvaluator {
public:
  explicit ConstantEvaluator(SizeAnalysis &analysis) : analysis(analysis) {}
  std::optional<HostTensor> evaluate(Value root);
  /// Whether some op that was evaluated depends on the order of its elements.
  bool meetsOrder() const { return isOrdered; }
  /// The op at which an evaluation of constants ended; null where it did not, or where there is data.
  Operation *failedAt() const { return obstacle; }

private:
  bool survey(Value root);
  bool collectDefinitions(Operation *reader, SmallVectorImpl<Operation *> &definitions);
  bool isLeaf(Value value) const;
  HostTensor load(Value leaf) const;
  bool run(Operation *op);
  bool runBlock(Block &block);
  bool runBranch(scf::IfOp branch);
  bool runLoop(scf::WhileOp loop);
  bool compute(Operation *op);
  bool bindSizes(Operation *op) const;
  bool charge(int64_t cost);

  std::optional<SizeExpr> bound(Attribute size) const;
  bool setNumber(Value value, int64_t number);
  std::optional<int64_t> numberOf(Value value) const;
  void handOver(ValueRange from, ValueRange to);

  SizeAnalysis &analysis;
  int64_t costLeft = costLimit;
  llvm::SetVector<Operation *> order; // what is to be run, operands before users
  llvm::SetVector<Value> leaves;      // what that begins with
  llvm::DenseMap<Value, HostTensor> known;
  llvm::StringMap<SizeExpr> symbols;                    // that the program has given numbers
  std::optional<llvm::StringMap<Operation *>> definers; // of symbols, in the function; made when one is asked for
  bool isOrdered = false;
  Operation *obstacle = nullptr;
};
} // namespace

/// `mayBeOpen`: sizes that are not known yet count as 1.
static bool isSmall(Type type, bool mayBeOpen = false) {
  if (isa<IntegerType>(type))
    return true;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !(mayBeOpen || tensor.hasStaticShape()) || !tensor.getElementType().isIntOrFloat())
    return false;
  int64_t elements = 1;
  for (int64_t size : tensor.getShape()) // the product of hostile sizes may overflow
    if (size > elementLimit || (elements *= std::max<int64_t>(size, 1)) > elementLimit)
      return false;
  return true;
}

/// Ops that compute their results from their operands, and from what their regions read, alone.
static bool isEvaluated(Operation *op) {
  return isa<ds::ResultInference, ds::SizeOp, scf::IfOp, scf::WhileOp, tensor::ExtractOp, arith::ConstantOp,
             arith::AddIOp, arith::AndIOp, arith::CmpIOp>(op) &&
         !isa<ds::NonZeroOp, ds::RecipeOp>(op);
}

bool ConstantEvaluator::isLeaf(Value value) const {
  if (auto constant = value.getDefiningOp<ds::ConstantOp>())
    return isa<DenseElementsAttr>(constant.getValue());
  const TensorFacts *facts = analysis.lookup(value);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return facts && facts->contents && type && type.hasStaticShape() && isa<IntegerType>(type.getElementType()) &&
         static_cast<int64_t>(facts->contents->size()) == type.getNumElements() &&
         llvm::all_of(*facts->contents, [](const SizeExpr &size) { return size.constant().has_value(); });
}

HostTensor ConstantEvaluator::load(Value leaf) const {
  if (auto constant = leaf.getDefiningOp<ds::ConstantOp>())
    return HostTensor::fromAttribute(cast<DenseElementsAttr>(constant.getValue()));
  auto type = cast<RankedTensorType>(leaf.getType());
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  char *to = result.owned->data();
  for (const SizeExpr &size : *analysis.facts(leaf).contents) {
    int64_t number = *size.constant();
    writeNumber(type.getElementType(), to, {static_cast<double>(number), number});
    to += result.elementBytes();
  }
  return result;
}

/// The sizes that an op has as attributes.
static SmallVector<Attribute> sizesGivenTo(Operation *op) {
  SmallVector<Attribute> sizes;
  auto sized = dyn_cast<ds::SizedByAttributes>(op);
  for (StringRef name : sized ? sized.sizeAttributes() : ArrayRef<StringLiteral>()) {
    Attribute given = op->getAttr(name);
    if (auto list = dyn_cast_if_present<ArrayAttr>(given))
      llvm::append_range(sizes, list);
    else if (given)
      sizes.push_back(given);
  }
  return sizes;
}

/// Whether an input has a size of that name; models mostly have those, and no other.
static bool isOfInput(FunctionOpInterface function, StringRef symbol) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto dims = function.getArgAttrOfType<ArrayAttr>(i, "ds.dims"))
      for (Attribute dim : dims)
        if (auto name = dyn_cast<StringAttr>(dim); name && name.getValue() == symbol)
          return true;
  return false;
}

/// The ops outside of `reader` that give the symbols in its sizes, or in those of ops inside of it, their numbers.
/// False where a symbol has no such op: the size of an input.
bool ConstantEvaluator::collectDefinitions(Operation *reader, SmallVectorImpl<Operation *> &definitions) {
  std::set<std::string> needed, inner;
  auto read = [&](Attribute size) {
    if (auto text = dyn_cast<StringAttr>(size))
      if (auto parsed = SizeExpr::parse(text.getValue()))
        for (const SizeAtom &symbol : parsed->symbols())
          needed.insert(symbol.text().str());
  };
  reader->walk([&](Operation *op) {
    llvm::for_each(sizesGivenTo(op), read);
    if (auto size = dyn_cast<ds::SizeOp>(op))
      read(size.getValue());
    if (auto condition = dyn_cast<ds::RequireOp>(op))
      read(condition.getLhs()), read(condition.getRhs());
    if (auto define = dyn_cast<ds::DefineOp>(op))
      inner.insert(define.getSymbol().str());
    if (auto places = dyn_cast<ds::NonZeroOp>(op))
      inner.insert(places.getCount().str());
  });
  auto function = reader->getParentOfType<FunctionOpInterface>();
  for (const std::string &symbol : needed) {
    if (inner.count(symbol))
      continue;
    if (!function || isOfInput(function, symbol))
      return false;
    if (!definers) {
      definers.emplace();
      function->walk([&](ds::DefineOp define) { (*definers)[define.getSymbol()] = define; });
    }
    Operation *definer = definers->lookup(symbol);
    if (!definer)
      return false;
    definitions.push_back(definer);
  }
  return true;
}

/// Looks at everything behind a value before anything is computed: most values depend on data somewhere, and what is
/// constant on the way there is nobody's size.
bool ConstantEvaluator::survey(Value root) {
  struct Step {
    Value value; // null for an op that gives a symbol its number
    Operation *op;
    bool areOperandsSeen;
  };
  SmallVector<Step> stack = {{root, root.getDefiningOp(), false}};
  llvm::DenseSet<Operation *> seen;
  size_t visits = 0;
  while (!stack.empty()) {
    auto [value, op, areOperandsSeen] = stack.pop_back_val();
    if (++visits > visitLimit) // a size that is defined by itself, as no importer writes it, would come up for ever
      return false;
    if (areOperandsSeen) {
      order.insert(op);
      continue;
    }
    if ((value && leaves.contains(value)) || (op && order.contains(op)))
      continue;
    if (value && !isSmall(value.getType(), /*mayBeOpen=*/true))
      return false;
    if (value && isLeaf(value)) {
      leaves.insert(value);
      continue;
    }
    SmallVector<Operation *> definitions;
    if (!op || !(isEvaluated(op) || isa<ds::DefineOp>(op)) || (seen.insert(op).second && seen.size() > opLimit) ||
        !collectDefinitions(op, definitions))
      return false;
    stack.push_back({value, op, true});
    llvm::SetVector<Value> inner;
    getUsedValuesDefinedAbove(op->getRegions(), inner);
    for (Value operand : op->getOperands())
      stack.push_back({operand, operand.getDefiningOp(), false});
    for (Value operand : inner)
      stack.push_back({operand, operand.getDefiningOp(), false});
    for (Operation *definition : definitions)
      stack.push_back({{}, definition, false});
  }
  return true;
}

/// What evaluating an op costs, in elements; a product visits the depth of each of its own.
static int64_t costOf(Operation *op, ArrayRef<HostTensor> operands) {
  constexpr int64_t leastCost = 64;
  int64_t results = 0;
  for (Type type : op->getResultTypes())
    results += cast<RankedTensorType>(type).getNumElements();
  int64_t cost = leastCost + results;
  for (const HostTensor &operand : operands)
    cost += operand.count();
  if (isa<ds::MatmulOp>(op))
    cost += results * *std::max_element(operands[0].shape.end() - 2, operands[0].shape.end());
  if (isa<ds::ConvOp>(op))
    cost += results * (operands[1].count() / std::max<int64_t>(operands[1].shape[0], 1));
  if (auto pool = dyn_cast<ds::PoolOp>(op)) {
    int64_t taps = results;
    for (int64_t size : pool.getKernel())
      if (llvm::MulOverflow(taps, size, taps) || taps > costLimit)
        return costLimit + 1;
    cost += taps;
  }
  if (isa<ds::TopKOp, ds::ArgsortOp>(op))
    cost *= 16;
  return cost;
}

bool ConstantEvaluator::charge(int64_t cost) {
  costLeft -= cost;
  analysis.evaluationBudget -= cost;
  return costLeft >= 0 && analysis.evaluationBudget >= 0;
}

std::optional<SizeExpr> ConstantEvaluator::bound(Attribute size) const {
  auto text = dyn_cast<StringAttr>(size);
  auto parsed = text ? SizeExpr::parse(text.getValue(), &symbols) : sizeFromAttribute(size);
  return parsed && parsed->constant() ? parsed : std::nullopt;
}

bool ConstantEvaluator::bindSizes(Operation *op) const {
  auto sized = dyn_cast<ds::SizedByAttributes>(op);
  for (StringRef name : sized ? sized.sizeAttributes() : ArrayRef<StringLiteral>()) {
    Attribute given = op->getAttr(name);
    auto list = dyn_cast_if_present<ArrayAttr>(given);
    SizeVector sizes;
    for (Attribute size : list ? list.getValue() : ArrayRef(given).take_front(given ? 1 : 0)) {
      auto number = bound(size);
      if (!number)
        return false;
      sizes.push_back(*number);
    }
    if (given)
      op->setAttr(name,
                  list ? Attribute(toAttribute(op->getContext(), sizes)) : toAttribute(op->getContext(), sizes[0]));
  }
  return true;
}

/// On a copy whose sizes and result types are numbers: inside of loops they depend on the iteration.
bool ConstantEvaluator::compute(Operation *op) {
  SmallVector<HostTensor> operands;
  SmallVector<TensorFacts> facts;
  for (Value operand : op->getOperands()) {
    auto found = known.find(operand);
    if (found == known.end())
      return false;
    operands.push_back(found->second);
    ArrayRef<int64_t> shape = operands.back().shape;
    facts.push_back({operands.back().element, SizeVector(shape.begin(), shape.end()), std::nullopt});
  }
  Operation *copy = op->clone();
  llvm::scope_exit destroy([&] { copy->erase(); });
  Inference inference(copy, facts, /*quiet=*/true);
  if (!bindSizes(copy) || failed(cast<ds::ResultInference>(copy).inferResults(inference)))
    return false;
  for (auto [result, inferred] : llvm::zip_equal(copy->getResults(), inference.results)) {
    result.setType(inferred.type());
    if (!isSmall(result.getType()))
      return false;
  }
  // Every result that might be a size evaluates what is behind it again.
  if (!charge(costOf(copy, operands)))
    return false;
  isOrdered |= dependsOnOrder(copy, operands);
  auto results = evaluateResultsOnHost(copy, operands);
  if (!results)
    return false;
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *results))
    known[result] = std::move(value);
  return true;
}

bool ConstantEvaluator::setNumber(Value value, int64_t number) {
  HostTensor tensor = HostTensor::allocate(value.getType(), {});
  writeNumber(tensor.element, tensor.owned->data(), {0.0, number});
  known[value] = std::move(tensor);
  return true;
}

std::optional<int64_t> ConstantEvaluator::numberOf(Value value) const {
  auto found = known.find(value);
  if (found == known.end() || found->second.count() != 1)
    return std::nullopt;
  return readNumber(found->second.element, found->second.data).integer;
}

void ConstantEvaluator::handOver(ValueRange from, ValueRange to) {
  SmallVector<HostTensor> values; // taken before any is replaced
  for (Value value : from)
    values.push_back(known.lookup(value));
  for (auto [value, target] : llvm::zip_equal(values, to))
    known[target] = std::move(value);
}

static bool holds(ds::SizeRelation relation, int64_t lhs, int64_t rhs) {
  switch (relation) {
  case ds::SizeRelation::equal: return lhs == rhs;
  case ds::SizeRelation::broadcast: return lhs == rhs || lhs == 1 || rhs == 1;
  case ds::SizeRelation::at_least: return lhs >= rhs;
  }
  llvm_unreachable("all relations handled");
}

bool ConstantEvaluator::run(Operation *op) {
  if (isa<scf::YieldOp, scf::ConditionOp>(op))
    return true;
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return runBranch(branch);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return runLoop(loop);
  if (isa<ds::ResultInference>(op) && !isa<ds::NonZeroOp>(op))
    return compute(op);
  if (!charge(stepCost))
    return false;
  if (auto define = dyn_cast<ds::DefineOp>(op)) {
    auto number = numberOf(define.getValue());
    if (number)
      symbols[define.getSymbol()] = SizeExpr(*number);
    return number.has_value();
  }
  if (auto condition = dyn_cast<ds::RequireOp>(op)) {
    auto lhs = bound(condition.getLhs()), rhs = bound(condition.getRhs());
    return lhs && rhs && holds(condition.getRelation(), *lhs->constant(), *rhs->constant());
  }
  if (auto size = dyn_cast<ds::SizeOp>(op)) {
    auto number = bound(size.getValue());
    return number && setNumber(size, *number->constant());
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto number = dyn_cast<IntegerAttr>(constant.getValue());
    return number && setNumber(constant, number.getInt());
  }
  if (auto places = dyn_cast<ds::NonZeroOp>(op)) {
    auto input = known.find(places.getInput());
    if (input == known.end() || !charge(input->second.count()))
      return false;
    HostTensor found = nonZeroOnHost(input->second);
    symbols[places.getCount()] = SizeExpr(found.shape[1]);
    known[places] = std::move(found);
    return true;
  }
  auto left = op->getNumOperands() > 0 ? numberOf(op->getOperand(0)) : std::nullopt;
  if (isa<tensor::ExtractOp>(op))
    return left && setNumber(op->getResult(0), *left);
  auto right = op->getNumOperands() == 2 ? numberOf(op->getOperand(1)) : std::nullopt;
  if (!left || !right)
    return false;
  if (isa<arith::AddIOp>(op))
    return setNumber(op->getResult(0), *left + *right);
  if (isa<arith::AndIOp>(op))
    return setNumber(op->getResult(0), *left & *right);
  auto compare = dyn_cast<arith::CmpIOp>(op);
  return compare && compare.getPredicate() == arith::CmpIPredicate::slt && setNumber(compare, *left < *right);
}

bool ConstantEvaluator::runBlock(Block &block) {
  return llvm::all_of(block, [&](Operation &op) { return run(&op); });
}

bool ConstantEvaluator::runBranch(scf::IfOp branch) {
  auto condition = numberOf(branch.getCondition());
  if (!condition)
    return false;
  Region &side = *condition ? branch.getThenRegion() : branch.getElseRegion();
  if (side.empty())
    return branch->getNumResults() == 0;
  if (!runBlock(side.front()))
    return false;
  handOver(side.front().getTerminator()->getOperands(), branch->getResults());
  return true;
}

bool ConstantEvaluator::runLoop(scf::WhileOp loop) {
  handOver(loop.getInits(), loop.getBeforeArguments());
  while (charge(stepCost) && runBlock(*loop.getBeforeBody())) {
    scf::ConditionOp decision = loop.getConditionOp();
    auto goesOn = numberOf(decision.getCondition());
    if (!goesOn)
      return false;
    handOver(decision.getArgs(), *goesOn ? ValueRange(loop.getAfterArguments()) : ValueRange(loop.getResults()));
    if (!*goesOn)
      return true;
    if (!runBlock(*loop.getAfterBody()))
      return false;
    handOver(loop.getYieldedValues(), loop.getBeforeArguments());
  }
  return false;
}

std::optional<HostTensor> ConstantEvaluator::evaluate(Value root) {
  if (!survey(root))
    return std::nullopt;
  for (Value leaf : leaves)
    known[leaf] = load(leaf);
  for (Operation *op : order)
    if (!run(op)) {
      obstacle = op;
      return std::nullopt;
    }
  return known.lookup(root);
}

/// Whether the op's sizes depend on the call.
static bool hasOpenSizes(Operation *op) {
  auto sized = dyn_cast<ds::SizedByAttributes>(op);
  return llvm::any_of(sized ? sized.sizeAttributes() : ArrayRef<StringLiteral>(), [&](StringRef name) {
    Attribute given = op->getAttr(name);
    auto list = dyn_cast_if_present<ArrayAttr>(given);
    return list ? llvm::any_of(list, [](Attribute size) { return isa<StringAttr>(size); })
                : isa_and_present<StringAttr>(given);
  });
}

Operation *findObstacle(Value value, SizeAnalysis &analysis) {
  Operation *first = nullptr; // that is not even looked at: too large, or in a file
  SmallVector<Value> stack = {value};
  llvm::DenseSet<Operation *> seen;
  while (!stack.empty()) {
    Value next = stack.pop_back_val();
    Operation *op = next.getDefiningOp();
    bool isInFile = isa_and_present<ds::WeightOp>(op);
    if (!op || (!isInFile && !isEvaluated(op)) || hasOpenSizes(op) || seen.size() > opLimit)
      return nullptr;
    if (!first && (isInFile || !isSmall(next.getType())))
      first = op;
    if (!seen.insert(op).second)
      continue;
    llvm::SetVector<Value> inner;
    getUsedValuesDefinedAbove(op->getRegions(), inner);
    llvm::append_range(stack, op->getOperands());
    llvm::append_range(stack, inner);
  }
  if (first)
    return first;
  ConstantEvaluator evaluator(analysis);
  (void)evaluator.evaluate(value);
  return evaluator.failedAt();
}

std::optional<HostTensor> evaluateConstant(Value value, SizeAnalysis &analysis, bool *isOrdered) {
  ConstantEvaluator evaluator(analysis);
  auto result = evaluator.evaluate(value);
  if (isOrdered)
    *isOrdered = evaluator.meetsOrder();
  return isOrdered || !evaluator.meetsOrder() ? result : std::nullopt;
}

} // namespace deepstride
