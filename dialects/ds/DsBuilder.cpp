// Creation, inference and immediate folding of ds ops on behalf of patterns and rules.
#include "dialects/ds/DsBuilder.h"

#include "dialects/ds/Contents.h"
#include "dialects/ds/HostTensor.h"
#include "dialects/ds/Requirements.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

SmallVector<int64_t> axesFrom(int64_t first, int64_t end) {
  SmallVector<int64_t> axes;
  for (int64_t axis = first; axis < end; ++axis)
    axes.push_back(axis);
  return axes;
}

Attribute numberAttr(Type type, double value) {
  if (auto real = dyn_cast<FloatType>(type))
    return FloatAttr::get(real, value);
  unsigned width = type.getIntOrFloatBitWidth();
  // Out of range and NaN have no integer; clamp so that the conversion is defined.
  double clamped = std::isnan(value) ? 0.0 : std::clamp(value, -9.2e18, 9.2e18);
  return IntegerAttr::get(type, APInt(width, static_cast<uint64_t>(static_cast<int64_t>(clamped)), /*isSigned=*/true,
                                      /*implicitTrunc=*/true));
}

TensorFacts DsBuilder::facts(Value value) const {
  const TensorFacts *found = value ? analysis.lookup(value) : nullptr;
  return found ? *found : TensorFacts();
}

Type DsBuilder::placeholder() { return RankedTensorType::get({}, builder.getF32Type()); }

/// The elements as an attribute where they are all known and worth embedding.
static DenseElementsAttr knownElements(const TensorFacts &facts, bool isExactFloat) {
  auto integer = dyn_cast_if_present<IntegerType>(facts.elementType);
  if (!facts.contents || (!integer && !isExactFloat))
    return {};
  SmallVector<Attribute> elements;
  bool isSplat = true;
  for (const SizeExpr &size : *facts.contents) {
    auto value = size.constant();
    if (!value || !isExact(size, facts.elementType))
      return {};
    if (integer)
      elements.push_back(IntegerAttr::get(integer, APInt(integer.getWidth(), static_cast<uint64_t>(*value),
                                                         /*isSigned=*/true, /*implicitTrunc=*/true)));
    else
      elements.push_back(FloatAttr::get(facts.elementType, static_cast<double>(*value)));
    isSplat &= elements.back() == elements.front();
  }
  RankedTensorType type = facts.type();
  // Counting the elements of a hostile shape may overflow; no dimension of a short list is long.
  bool isShort = llvm::all_of(type.getShape(), [&](int64_t size) { return size >= 0 && size <= INT32_MAX; });
  if (!isShort || product(facts.sizes) != SizeExpr(static_cast<int64_t>(elements.size())))
    return {};
  // Longer ramps and masks are cheaper to compute than to store.
  constexpr size_t embedLimit = 64;
  if (elements.size() > embedLimit && !isSplat)
    return {};
  return DenseElementsAttr::get(type, elements);
}

/// The elements of a short integer result that shape arithmetic does not follow, where constants alone decide them: of
/// roots, powers and other functions of floats that were rounded to a size. Where the order of a sum matters, data
/// stays with the kernel that has an order of its own.
static std::optional<SizeVector> evaluatedContents(Value result, SizeAnalysis &analysis) {
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type || !isa<IntegerType>(type.getElementType()) || !type.hasStaticShape())
    return std::nullopt;
  int64_t count = 1;
  for (int64_t size : type.getShape()) // hostile ones may overflow
    if (size == 0 || size > int64_t(Inference::contentsLimit) || (count *= size) > int64_t(Inference::contentsLimit))
      return std::nullopt;
  bool isOrdered = false;
  auto elements = evaluateConstant(result, analysis, &isOrdered);
  if (!elements)
    return std::nullopt;
  SizeVector contents;
  for (int64_t i = 0; i < count; ++i) {
    int64_t number = readNumber(elements->element, elements->data + i * elements->elementBytes()).integer;
    if (number < 0 && elements->element.isUnsignedInteger())
      return std::nullopt; // no size
    contents.push_back(isOrdered ? forSizes(number, type.getElementType()) : SizeExpr(number));
  }
  return contents;
}

Value DsBuilder::foldToConstant(Operation *op) {
  if (isa<ds::ConstantOp>(op) || op->getNumResults() != 1)
    return {};
  auto cast = dyn_cast<ds::CastOp>(op);
  bool isExactFloat = cast && isa_and_present<IntegerType>(element(cast.getInput()));
  TensorFacts known = facts(op->getResult(0));
  if (!known.contents && op->getNumOperands() > 0 && isa<RankedTensorType>(op->getResult(0).getType()))
    if ((known.contents = evaluatedContents(op->getResult(0), analysis)))
      analysis.set(op->getResult(0), known);
  DenseElementsAttr elements = knownElements(known, isExactFloat);
  if (!elements)
    return {};
  keepRequirements(op, analysis);
  op->erase();
  return constant(elements);
}

bool DsBuilder::isToBeRefused(Operation *op) {
  if (opsToRefusal == 0 || isa<ds::ConstantOp>(op) || --opsToRefusal > 0)
    return false;
  emitError(op->getLoc()) << "refused for a test";
  return true;
}

Values DsBuilder::finishAll(Operation *op) {
  if (isToBeRefused(op) || failed(analysis.visit(op, /*retype=*/true))) {
    op->erase();
    return {};
  }
  return Values(op->getResults());
}

Value DsBuilder::finish(Operation *op) {
  if (finishAll(op).empty())
    return {};
  if (Value folded = foldToConstant(op))
    return folded;
  return op->getResult(0);
}

Value DsBuilder::constant(ElementsAttr value) { return finish(ds::ConstantOp::create(builder, location, value)); }

Value DsBuilder::scalar(Type type, double value) {
  if (!type)
    return {};
  return constant(DenseElementsAttr::get(RankedTensorType::get({}, type), numberAttr(type, value)));
}

Value DsBuilder::integers(ArrayRef<int64_t> values) { return constant(builder.getI64TensorAttr(values)); }

Value DsBuilder::shape(ArrayRef<SizeExpr> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getI64Type());
  return finish(ds::ShapeOp::create(builder, location, type, list(values)));
}

Value DsBuilder::iota(int64_t axis, ArrayRef<SizeExpr> sizes) { return create<ds::IotaOp>({}, axis, list(sizes)); }

Value DsBuilder::empty(Type element, ArrayRef<SizeExpr> sizes) { return create<ds::EmptyOp>({}, list(sizes), element); }

Value DsBuilder::weight(FlatSymbolRefAttr recipe, RankedTensorType type) {
  Value result = ds::WeightOp::create(builder, location, type, recipe);
  analysis.set(result, factsOfType(type, ""));
  return result;
}

void DsBuilder::require(const SizeExpr &size, const SizeExpr &least) {
  if (!(size - least).isKnownNonNegative())
    createRequirement(builder, {SizeConstraint::Relation::AtLeast, size, least, location});
}

void DsBuilder::requireEqual(const SizeExpr &a, const SizeExpr &b) {
  if (a != b)
    createRequirement(builder, {SizeConstraint::Relation::Equal, a, b, location});
}

namespace {
/// Walks through a size from the outside and requires what its evaluation relies on: inside of a choice, only where the
/// run takes that side.
class EvaluationRequirements {
public:
  explicit EvaluationRequirements(DsBuilder &builder) : builder(builder) {}

  void visit(const SizeExpr &size) {
    if (!size.mayFail())
      return;
    for (const auto &[monomial, coefficient] : size.polynomial())
      for (const SizeAtom &atom : monomial)
        if (atom.kind() == SizeAtom::Kind::Call)
          visitCall(atom.name(), atom.arguments());
  }

private:
  void visitCall(StringRef function, ArrayRef<SizeExpr> arguments) {
    SmallVector<SizeExpr> plain;
    for (const SizeExpr &argument : arguments)
      plain.push_back(withoutFailures(argument));
    visit(arguments[0]);
    for (size_t i = 1; i < arguments.size(); ++i) {
      bool isSide = function == "select", isMet = i == 1;
      if (isSide && plain[0].constant() && (*plain[0].constant() != 0) != isMet)
        continue;
      if (isSide)
        sides.emplace_back(plain[0], isMet);
      visit(arguments[i]);
      if (isSide)
        sides.pop_back();
    }
    if (function == "within")
      requireWithin(plain[0], *plain[1].constant(), *plain[2].constant());
    else if (quotientUnlessZero(function, plain))
      require(plain[1], 1);
  }

  void requireWithin(const SizeExpr &value, int64_t low, int64_t high) {
    SizeRange range = value.range();
    if (range.low >= low && range.high <= high)
      return;
    if (range.low < low && low != INT64_MIN)
      require(value, low);
    if (range.high > high || low == INT64_MIN)
      require(high, value); // evaluating it diagnoses what leaves 64 bits at either end
  }

  void require(SizeExpr size, SizeExpr least) {
    SizeExpr any = least.constant() ? least : SizeExpr(0); // what cannot be evaluated is not, where it does not matter
    for (const auto &[condition, isMet] : llvm::reverse(sides)) {
      size = isMet ? SizeExpr::select(condition, size, any) : SizeExpr::select(condition, any, size);
      least = isMet ? SizeExpr::select(condition, least, any) : SizeExpr::select(condition, any, least);
    }
    builder.require(size, least);
  }

  DsBuilder &builder;
  SmallVector<std::pair<SizeExpr, bool>> sides; // conditions of the choices around, and which side of each
};
} // namespace

SizeExpr DsBuilder::requireEvaluation(const SizeExpr &size) {
  EvaluationRequirements(*this).visit(size);
  return withoutFailures(size);
}

std::optional<SizeVector> DsBuilder::sizesIn(const TensorFacts &facts) {
  if (!facts.contents)
    return std::nullopt;
  SizeVector sizes;
  for (const SizeExpr &content : *facts.contents) {
    // Evaluating a size diagnoses what leaves 64 bits.
    auto size = facts.elementType.isInteger(64) ? std::optional(content) : settled(content, facts.elementType);
    if (!size)
      return std::nullopt;
    sizes.push_back(requireEvaluation(*size));
  }
  return sizes;
}

std::optional<SizeVector> DsBuilder::sizesIn(Value value) {
  if (value && !facts(value).contents)
    findContents(value);
  return sizesIn(facts(value));
}

std::optional<HostTensor> DsBuilder::elementsIn(Value value) {
  if (!value)
    return std::nullopt;
  std::swap(analysis.evaluationBudget, readerBudget);
  auto elements = evaluateConstant(value, analysis);
  std::swap(analysis.evaluationBudget, readerBudget);
  return elements;
}

/// Whatever was evaluated for data is paid from another budget: a size can be had even where that is spent.
void DsBuilder::findContents(Value root) {
  constexpr size_t valueLimit = 256;
  std::swap(analysis.evaluationBudget, readerBudget);
  SmallVector<std::pair<Value, bool>> stack = {{root, false}};
  llvm::DenseSet<Value> seen;
  while (!stack.empty()) {
    auto [value, areOperandsDone] = stack.pop_back_val();
    Operation *op = value.getDefiningOp();
    TensorFacts known = facts(value);
    if (!op || known.contents)
      continue;
    auto inference = dyn_cast<ds::ResultInference>(op);
    if (!areOperandsDone) {
      if (!seen.insert(value).second || seen.size() > valueLimit)
        continue;
      if ((known.contents = evaluatedContents(value, analysis))) {
        analysis.set(value, known);
      } else if (inference) {
        stack.push_back({value, true});
        for (Value operand : op->getOperands())
          stack.push_back({operand, false});
      }
      continue;
    }
    // Of its operands more may be known now.
    SmallVector<TensorFacts> operands;
    for (Value operand : op->getOperands())
      operands.push_back(facts(operand));
    Inference turn(op, operands, /*quiet=*/true);
    if (failed(inference.inferResults(turn)))
      continue;
    known.contents = turn.results[llvm::cast<OpResult>(value).getResultNumber()].contents;
    if (known.contents && llvm::none_of(*known.contents, isTooLong))
      analysis.set(value, known);
  }
  std::swap(analysis.evaluationBudget, readerBudget);
}

Value DsBuilder::unary(ds::UnaryKind kind, Value x) { return create<ds::UnaryOp>({x}, kind, x); }

Value DsBuilder::binary(ds::BinaryKind kind, Value a, Value b) { return create<ds::BinaryOp>({a, b}, kind, a, b); }

Value DsBuilder::select(Value condition, Value yes, Value no) {
  return create<ds::SelectOp>({condition, yes, no}, condition, yes, no);
}

Value DsBuilder::cast(Value x, Type to) {
  if (!to) // the element of a value that was refused
    return {};
  return element(x) == to ? x : create<ds::CastOp>({x}, x, to);
}

Value DsBuilder::gelu(ds::GeluKind kind, Value x) { return create<ds::GeluOp>({x}, kind, x); }

Value DsBuilder::reshape(Value x, ArrayRef<SizeExpr> target) {
  if (x && ArrayRef(sizes(x)) == target)
    return x;
  return create<ds::ReshapeOp>({x}, x, list(target));
}

Value DsBuilder::broadcast(Value x, ArrayRef<SizeExpr> target) {
  if (x && ArrayRef(sizes(x)) == target)
    return x;
  return create<ds::BroadcastOp>({x}, x, list(target));
}

Value DsBuilder::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (x && permutation == ArrayRef(axesFrom(0, rank(x))))
    return x;
  return create<ds::TransposeOp>({x}, x, permutation);
}

Value DsBuilder::slice(Value x, ArrayRef<SizeExpr> starts, ArrayRef<SizeExpr> extents, ArrayRef<int64_t> steps) {
  bool isWhole = x && ArrayRef(sizes(x)) == extents && llvm::all_of(steps, [](int64_t step) { return step == 1; });
  if (isWhole && llvm::all_of(starts, [](const SizeExpr &start) { return start.isConstant(0); }))
    return x;
  return create<ds::SliceOp>({x}, x, list(starts), list(extents), steps);
}

Value DsBuilder::sliceAxis(Value x, int64_t axis, SizeExpr start, SizeExpr size, int64_t step) {
  SizeVector starts(rank(x)), extents = sizes(x);
  SmallVector<int64_t> steps(rank(x), 1);
  if (axis < 0 || axis >= rank(x))
    return {};
  starts[axis] = std::move(start);
  extents[axis] = std::move(size);
  steps[axis] = step;
  return slice(x, starts, extents, steps);
}

Value DsBuilder::pad(ds::PadKind kind, Value x, Value value, ArrayRef<SizeExpr> low, ArrayRef<SizeExpr> high) {
  auto isZero = [](const SizeExpr &size) { return size.isConstant(0); };
  if (x && llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return x;
  return create<ds::PadOp>({x, value}, kind, x, value, list(low), list(high));
}

Value DsBuilder::concat(int64_t axis, ValueRange values) {
  if (values.size() == 1)
    return values[0];
  return create<ds::ConcatOp>(SmallVector<Value>(values), axis, values);
}

Value DsBuilder::gather(int64_t axis, Value x, Value indices) {
  return create<ds::GatherOp>({x, indices}, axis, x, indices, Value());
}

Value DsBuilder::gatherCodes(Value codes, Value indices, Value scales) {
  return create<ds::GatherOp>({codes, indices, scales}, 0, codes, indices, scales);
}

Value DsBuilder::insertAxis(Value x, int64_t axis) {
  SizeVector target = sizes(x);
  if (!x || axis < 0 || axis > rank(x))
    return {};
  target.insert(target.begin() + axis, 1);
  return reshape(x, target);
}

Value DsBuilder::dropAxis(Value x, int64_t axis) {
  SizeVector target = sizes(x);
  if (axis < 0 || axis >= rank(x))
    return {};
  target.erase(target.begin() + axis);
  return reshape(x, target);
}

Value DsBuilder::alignVector(Value x, int64_t axis, int64_t targetRank) {
  if (rank(x) != 1)
    return x;
  if (axis < 0 || axis >= targetRank) {
    emitError(location) << "expected an operand of at least " << axis + 1 << " axes, found " << targetRank;
    return {};
  }
  SizeVector target(targetRank, SizeExpr(1));
  target[axis] = sizes(x)[0];
  return reshape(x, target);
}

Value DsBuilder::reduce(ds::ReduceKind kind, Value x, ArrayRef<int64_t> axes, bool keep) {
  return create<ds::ReduceOp>({x}, kind, x, axes, keep);
}

Value DsBuilder::argReduce(ds::ReduceKind kind, Value x, int64_t axis, bool keep, bool last) {
  return create<ds::ArgReduceOp>({x}, kind, x, axis, keep, last);
}

Value DsBuilder::softmax(Value x, int64_t axis, bool log) { return create<ds::SoftmaxOp>({x}, x, axis, log); }

Values DsBuilder::topK(Value x, int64_t axis, const SizeExpr &k, bool largest) {
  if (!x)
    return {};
  return finishAll(ds::TopKOp::create(builder, location, placeholder(), placeholder(), x, axis, list({k}), largest));
}

Value DsBuilder::matmul(Value a, Value b, bool transposeA, bool transposeB) {
  return create<ds::MatmulOp>({a, b}, a, b, ArrayRef<bool>({transposeA, transposeB}));
}

} // namespace deepstride
