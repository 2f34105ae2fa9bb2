// Shape rules of attention, its derivative, and what rotates its operands.
#include "dialects/ds/DsDialect.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

/// That every head of the key serves the same number of heads of the query. What a batch of one query without heads
/// calls heads may be dynamic.
static LogicalResult requireMultiple(Inference &inference, const SizeExpr &heads, const SizeExpr &groups,
                                     StringRef constraint) {
  if (heads == groups)
    return success();
  auto most = heads.constant(), least = groups.constant();
  if (most && least && (*least == 0 || *most % *least != 0))
    return inference.error(constraint + ": the heads of the query must be a multiple of those of the key, found " +
                           heads.str() + " and " + groups.str());
  return inference.requireEqual(SizeExpr::mod(heads, SizeExpr::max(groups, 1)), 0, constraint + ": heads");
}

bool ds::takesMask(ScoreStepKind kind) { return kind != ScoreStepKind::window && kind != ScoreStepKind::window_add; }
bool ds::takesLow(ScoreStepKind kind) { return kind != ScoreStepKind::add && kind != ScoreStepKind::multiply; }
bool ds::takesFlags(ScoreStepKind kind) {
  return llvm::is_contained(
      {ScoreStepKind::keep, ScoreStepKind::hide, ScoreStepKind::keep_add, ScoreStepKind::hide_add}, kind);
}
bool ds::isWindowed(ScoreStepKind kind) {
  return kind == ScoreStepKind::window || kind == ScoreStepKind::window_add || kind == ScoreStepKind::window_mask;
}

ParseResult ds::parseScoreSteps(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &masks,
                                ArrayAttr &steps, DenseF64ArrayAttr &lows) {
  SmallVector<Attribute> kinds;
  SmallVector<double> numbers;
  auto parseStep = [&]() -> ParseResult {
    StringRef name;
    llvm::SMLoc where = parser.getCurrentLocation();
    if (failed(parser.parseKeyword(&name)))
      return failure();
    auto kind = symbolizeScoreStepKind(name);
    if (!kind)
      return parser.emitError(where) << "expected a step of the scores, found '" << name << "'";
    kinds.push_back(ScoreStepKindAttr::get(parser.getContext(), *kind));
    if (takesMask(*kind) && failed(parser.parseOperand(masks.emplace_back())))
      return failure();
    FloatAttr low;
    if (takesLow(*kind) &&
        (failed(parser.parseKeyword("else")) || failed(parser.parseAttribute(low, parser.getBuilder().getF64Type()))))
      return failure();
    numbers.push_back(low ? low.getValueAsDouble() : 0);
    return success();
  };
  if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalSquare, parseStep)))
    return failure();
  steps = parser.getBuilder().getArrayAttr(kinds);
  lows = parser.getBuilder().getDenseF64ArrayAttr(numbers);
  return success();
}

void ds::printScoreSteps(OpAsmPrinter &printer, Operation *, OperandRange masks, ArrayAttr steps,
                         DenseF64ArrayAttr lows) {
  if (steps.empty())
    return;
  auto mask = masks.begin();
  printer << '[';
  llvm::interleaveComma(llvm::zip_equal(steps, lows.asArrayRef()), printer, [&](auto step) {
    ScoreStepKind kind = cast<ScoreStepKindAttr>(std::get<0>(step)).getValue();
    printer << stringifyScoreStepKind(kind);
    if (takesMask(kind))
      printer << ' ' << *mask++;
    if (takesLow(kind)) {
      printer << " else ";
      printer.printFloat(APFloat(std::get<1>(step)));
    }
  });
  printer << ']';
}

void AttentionOp::build(OpBuilder &builder, OperationState &state, Type type, Value query, Value key, Value value,
                        ArrayRef<ScoreStep> steps, const ScoreWindow &window, double scale, double softcap,
                        bool guard) {
  SmallVector<Value> masks;
  SmallVector<Attribute> kinds;
  SmallVector<double> lows;
  for (const ScoreStep &step : steps) {
    kinds.push_back(ScoreStepKindAttr::get(builder.getContext(), step.kind));
    lows.push_back(step.low);
    if (takesMask(step.kind))
      masks.push_back(step.mask);
  }
  auto number = [&](std::optional<int64_t> bound) { return bound ? builder.getI64IntegerAttr(*bound) : IntegerAttr(); };
  bool isShifted = window && !window.positions && !window.past.isConstant(0);
  build(builder, state, type, query, key, value, masks, window ? window.positions : Value(),
        /*random=*/ValueRange(), builder.getArrayAttr(kinds), builder.getDenseF64ArrayAttr(lows),
        isShifted ? toAttribute(builder.getContext(), ArrayRef(window.past)) : ArrayAttr(), number(window.left),
        number(window.right), number(window.capacity), builder.getF64FloatAttr(scale),
        softcap > 0 ? builder.getF64FloatAttr(softcap) : FloatAttr(), guard ? builder.getUnitAttr() : UnitAttr(),
        TypeAttr(), /*dropout=*/FloatAttr(), /*stream=*/IntegerAttr());
}

// An attention and its derivative have the same steps and window.
template <typename Op> static SmallVector<ScoreStep> scoreStepsOf(Op op) {
  SmallVector<ScoreStep> steps;
  auto mask = op.getMasks().begin();
  for (auto [kind, low] : llvm::zip_equal(op.getSteps().template getAsRange<ScoreStepKindAttr>(), op.getLows())) {
    steps.push_back({kind.getValue(), Value(), low});
    if (takesMask(kind.getValue()))
      steps.back().mask = *mask++;
  }
  return steps;
}

template <typename Op> static ScoreWindow windowOf(Op op) {
  ScoreWindow window;
  auto past = op.getPast() ? sizesFromAttribute(*op.getPast()) : std::nullopt;
  if (past && past->size() == 1)
    window.past = past->front();
  window.left = op.getLeft();
  window.right = op.getRight();
  window.capacity = op.getCapacity();
  window.positions = op.getPositions();
  return window;
}

SmallVector<ScoreStep> AttentionOp::getScoreSteps() { return scoreStepsOf(*this); }
SmallVector<ScoreStep> AttentionGradientOp::getScoreSteps() { return scoreStepsOf(*this); }
ScoreWindow AttentionOp::getWindow() { return windowOf(*this); }
ScoreWindow AttentionGradientOp::getWindow() { return windowOf(*this); }

/// What the steps and the window of an attention require of its masks, which begin at operand `index`.
template <typename Op>
static LogicalResult inferSteps(Op op, Inference &inference, const SizeVector &scores, unsigned index) {
  Type element = inference.operand(0).elementType;
  size_t steps = op.getSteps().size(), masks = 0;
  bool isWindowed = false;
  for (auto kind : op.getSteps().template getAsRange<ScoreStepKindAttr>()) {
    masks += takesMask(kind.getValue());
    isWindowed |= ds::isWindowed(kind.getValue());
  }
  if (steps != op.getLows().size() || masks != op.getMasks().size())
    return inference.error("C6: expected one mask for each step that takes one and one low for each step, found " +
                           Twine(op.getMasks().size()) + " and " + Twine(op.getLows().size()));
  bool isBounded = op.getLeft() || op.getRight(), isPlaced = op.getPast() || op.getPositions() || op.getCapacity();
  constexpr int64_t farAway = int64_t(1) << 40;
  auto isFar = [](std::optional<int64_t> bound) { return bound && (*bound >= farAway || *bound <= -farAway); };
  if (isFar(op.getLeft()) || isFar(op.getRight()))
    return inference.error("C7: the bounds of the window must be less than 2^40");
  if (isWindowed != isBounded || (isPlaced && !isWindowed) || (op.getPast() && op.getPositions()))
    return inference.error("C7: expected bounds of the window beside steps by it, and past or positions only there");
  if (op.getPast() && (op.getPast()->size() != 1 || !sizesFromAttribute(*op.getPast())))
    return inference.error("C7: expected one size as past");
  for (auto kind : op.getSteps().template getAsRange<ScoreStepKindAttr>()) {
    if (!takesMask(kind.getValue()))
      continue;
    const TensorFacts &mask = inference.operand(index++);
    bool chooses = takesFlags(kind.getValue());
    bool isWide = mask.elementType.isF32() && element.getIntOrFloatBitWidth() == 16;
    if (mask.rank() > 4 || (chooses ? !mask.elementType.isInteger(1) : mask.elementType != element && !isWide))
      return inference.error("C3: masks must have at most rank 4 and the query's element type, or f32 beside a float "
                             "of 16 bits; those that choose i1");
    if (failed(inference.requireBroadcastTo(scores, mask.sizes, "C3: masks")))
      return failure();
  }
  if (op.getCapacity() && failed(inference.requireAtLeast(SizeExpr(*op.getCapacity()), scores[3], "C9: capacity")))
    return failure();
  if (!op.getPositions())
    return success();
  const TensorFacts &positions = inference.operand(index);
  if (positions.rank() > 4 || !positions.elementType.isSignlessInteger(64))
    return inference.error("C8: positions must be i64 and have at most rank 4");
  SizeVector rows = scores;
  rows[3] = 1;
  return inference.requireBroadcastTo(rows, positions.sizes, "C8: positions");
}

/// What the dropout of an attention requires of itself and of what it is drawn by, the last operands.
template <typename Op> static LogicalResult inferDropout(Op op, Inference &inference) {
  auto count = static_cast<unsigned>(op.getRandom().size());
  if (op.getDropout().has_value() != (op.getStream().has_value() || count > 0) || (op.getStream() && count > 0))
    return inference.error("C11: dropout must stand beside a stream, or beside what is random, and these beside it");
  if (!op.getDropout())
    return success();
  double ratio = op.getDropout()->convertToDouble();
  if (!(ratio >= 0 && ratio < 1))
    return inference.error("C11: the dropout must be at least 0 and below 1, found " + std::to_string(ratio));
  bool isLegal = count == 0 || count == 4;
  for (unsigned number = 0; number < count; ++number) {
    const TensorFacts &facts = inference.operand(inference.operandCount() - count + number);
    isLegal &= facts.rank() == 0 && facts.elementType.isSignlessInteger(64);
  }
  return isLegal ? success()
                 : inference.error("C11: what is random must be seed, step, micro-batch and stream, i64 without axes");
}

/// What an attention requires of its query, key and value, of its dropout, and of the masks behind `index` operands.
template <typename Op> static LogicalResult inferScores(Op op, Inference &inference, unsigned index) {
  const TensorFacts &q = inference.operand(0), &k = inference.operand(1), &v = inference.operand(2);
  for (const TensorFacts *facts : {&q, &k, &v})
    if (facts->rank() != 4 || facts->elementType != q.elementType || !isa<FloatType>(facts->elementType))
      return inference.error("C1: query, key and value must have rank 4 and one float type");
  if (failed(inference.requireEqual(q.sizes[0], k.sizes[0], "C2: batch of key")) ||
      failed(inference.requireEqual(q.sizes[0], v.sizes[0], "C2: batch of value")) ||
      failed(inference.requireEqual(k.sizes[1], v.sizes[1], "C2: heads of key and value")) ||
      failed(inference.requireEqual(k.sizes[2], v.sizes[2], "C2: length of key and value")) ||
      failed(inference.requireEqual(q.sizes[3], k.sizes[3], "C2: head size")))
    return failure();
  if (failed(requireMultiple(inference, q.sizes[1], k.sizes[1], "C4")))
    return failure();
  if (op.getSoftcap() && !(op.getSoftcap()->convertToDouble() > 0))
    return inference.error("C5: the softcap must be positive");
  if (failed(inferDropout(op, inference)))
    return failure();
  return inferSteps(op, inference, {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]}, index);
}

LogicalResult AttentionOp::inferResults(Inference &inference) {
  if (failed(inferScores(*this, inference, 3)))
    return failure();
  const TensorFacts &q = inference.operand(0), &v = inference.operand(2);
  if (getRounds() && (!getRounds()->isBF16() || !q.elementType.isF32()))
    return inference.error("C10: operands may be rounded to bf16, beside an element type of f32");
  inference.addResult(q.elementType, {q.sizes[0], q.sizes[1], q.sizes[2], v.sizes[3]});
  return success();
}

LogicalResult AttentionGradientOp::inferResults(Inference &inference) {
  if (failed(inferScores(*this, inference, 4)))
    return failure();
  const TensorFacts &q = inference.operand(0), &v = inference.operand(2), &gradient = inference.operand(3);
  if (gradient.rank() != 4 || gradient.elementType != q.elementType ||
      !(q.elementType.isF32() || q.elementType.isF64()))
    return inference.error("C1: query, key, value and gradient must have rank 4 and one type, f32 or f64");
  for (auto [axis, size] : llvm::enumerate(SizeVector{q.sizes[0], q.sizes[1], q.sizes[2], v.sizes[3]}))
    if (failed(inference.requireEqual(size, gradient.sizes[axis], "C2: axis " + Twine(axis) + " of the gradient")))
      return failure();
  for (unsigned operand : {0, 1, 2})
    inference.addResult(q.elementType, inference.operand(operand).sizes);
  return success();
}

LogicalResult LinearAttentionOp::inferResults(Inference &inference) {
  static constexpr int64_t ranks[] = {4, 4, 4, 4, 3, 4};
  Type element = inference.operand(0).elementType;
  for (unsigned i = 0; i < inference.operandCount(); ++i)
    if (inference.operand(i).rank() != ranks[i] || inference.operand(i).elementType != element ||
        !isa<FloatType>(element))
      return inference.error("C1: all operands must have one float type and rank 4, beta rank 3");
  const SizeVector &query = inference.operand(0).sizes, &key = inference.operand(1).sizes,
                   &value = inference.operand(2).sizes;
  auto agree = [&](unsigned operand, const SizeVector &expected, StringRef what) {
    for (auto [own, size] : llvm::zip_equal(inference.operand(operand).sizes, expected))
      if (failed(inference.requireEqual(own, size, "C2: " + what)))
        return false;
    return true;
  };
  if (!agree(0, {key[0], query[1], key[2], key[3]}, "query against key") ||
      !agree(2, {key[0], key[1], key[2], value[3]}, "value against key") || !agree(3, key, "decay against key") ||
      !agree(4, {key[0], key[1], key[2]}, "beta against key") ||
      !agree(5, {key[0], key[1], key[3], value[3]}, "state against key and value"))
    return failure();
  if (failed(requireMultiple(inference, query[1], key[1], "C3")))
    return failure();
  SizeVector result = query;
  result[3] = value[3];
  inference.addResult(element, result);
  inference.addResult(element, inference.operand(5).sizes);
  return success();
}

LogicalResult RotaryOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &cosines = inference.operand(1), &sines = inference.operand(2);
  for (const TensorFacts *facts : {&input, &cosines, &sines})
    if (facts->elementType != input.elementType || !isa<FloatType>(facts->elementType))
      return inference.error("C1: operand, cosines and sines must have one float type");
  auto width = input.rank() > 0 ? input.sizes.back().constant() : std::nullopt;
  if (width && getFirst()) {
    int64_t first = getFirstAttr().getInt();
    if (first < 2 || first > *width || first % 2 != 0)
      return inference.error("C2: expected an even number of elements to rotate, 2 to " + Twine(*width) + ", found " +
                             Twine(first));
    width = first;
  }
  if (!width || *width % 2 != 0)
    return inference.error("C2: the operand's last size must be static and even");
  auto given = cosines.rank() > 0 ? cosines.sizes.back().constant() : std::nullopt;
  if (!given || (*given != *width && 2 * *given != *width) || sines.rank() == 0 ||
      !sines.sizes.back().isConstant(*given))
    return inference.error("C3: cosines and sines must end in " + Twine(*width) + " or both in " + Twine(*width / 2));
  ArrayRef<SizeExpr> rows = ArrayRef(input.sizes).drop_back();
  for (const TensorFacts *facts : {&cosines, &sines})
    if (facts->rank() > input.rank())
      return inference.error("C4: cosines and sines must have at most the operand's rank");
    else if (failed(inference.requireBroadcastTo(rows, ArrayRef(facts->sizes).drop_back(), "C4: cosines and sines")))
      return failure();
  inference.addResult(input.elementType, input.sizes);
  return success();
}
