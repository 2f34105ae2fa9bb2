// Shape rules of products, convolutions, pooling and attention.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Schedule.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

/// The type in which products of such operands are summed; null where they do not go together.
static Type sumType(Type left, Type right) {
  if (isSummedWide(left) && isSummedWide(right))
    return IntegerType::get(left.getContext(), 32);
  return left == right ? left : Type();
}

int64_t MatmulOp::rowAxes() { return cast<RankedTensorType>(getType()).getRank() - 1; }
int64_t LinearOp::rowAxes() { return cast<RankedTensorType>(getType()).getRank() - 1; }
int64_t ConvOp::rowAxes() { return 2; } // images and filters

LogicalResult MatmulOp::inferResults(Inference &inference) {
  const TensorFacts &lhs = inference.operand(0), &rhs = inference.operand(1);
  if (lhs.rank() < 2 || rhs.rank() < 2 || getTranspose().size() != 2)
    return inference.error("C1: both operands must have rank 2 or more, found " + Twine(lhs.rank()) + " and " +
                           Twine(rhs.rank()));
  Type element = sumType(lhs.elementType, rhs.elementType);
  if (!element)
    return inference.error("C2: operands have different element types");
  if (getWide()) {
    if (!element.isBF16())
      return inference.error("C5: wide products have operands of bf16");
    element = Float32Type::get(getContext());
  }
  SizeExpr m = lhs.sizes[lhs.rank() - 2], k = lhs.sizes.back(), k2 = rhs.sizes[rhs.rank() - 2], n = rhs.sizes.back();
  if (getTranspose()[0])
    std::swap(m, k);
  if (getTranspose()[1])
    std::swap(k2, n);
  if (failed(inference.requireEqual(k, k2, "C3: inner sizes")))
    return failure();
  auto sizes = inference.broadcast(ArrayRef(lhs.sizes).drop_back(2), ArrayRef(rhs.sizes).drop_back(2));
  if (!sizes)
    return failure();
  sizes->push_back(m);
  sizes->push_back(n);
  inference.addResult(element, *sizes);
  return success();
}

bool LinearOp::holdsHalfBytes() {
  auto type = cast<RankedTensorType>(getWeight().getType());
  if (!getScales() || !getPanel() || getInterleave() != 2)
    return false;
  // Only beside rows of bf16 may pairs be of whole bytes.
  return !getWide() || (type.getRank() == 3 && type.getDimSize(2) == static_cast<int64_t>(*getPanel()));
}

LogicalResult LinearOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &weight = inference.operand(1);
  bool isQuantized = static_cast<bool>(getScales());
  Type element = sumType(input.elementType, weight.elementType);
  if (isQuantized)
    element = isa<FloatType>(input.elementType) && isCode(weight.elementType) ? input.elementType : Type();
  if (getWide()) {
    bool isPair = input.elementType.isBF16() && (weight.elementType.isBF16() || (isQuantized && element));
    if (!isPair && !(input.elementType.isF32() && weight.elementType.isF16()))
      return inference.error("C9: wide products have operands of bf16, rows of bf16 and codes, or rows of f32 and a "
                             "weight of f16");
    element = Float32Type::get(getContext());
  }
  if (!element)
    return inference.error(isQuantized ? "C1: with scales, the operand must be a float and the weight i8 or i4"
                                       : "C1: operand and weight have different element types");
  int64_t interleave = getInterleave();
  if (interleave < 1 || (interleave > 1 && !getPanel()))
    return inference.error("C5: only packed weights are interleaved, by a positive number");
  if (weight.rank() != (getPanel() ? 3 : 2) || input.rank() < 1 || getPanel().has_value() != getColumns().has_value())
    return inference.error("C4: the weight must have rank 2, or 3 with a panel and columns");
  int64_t bytesInterleaved = holdsHalfBytes() ? 1 : interleave; // two codes in a byte
  if (getPanel() && !weight.sizes[2].isConstant(*getPanel() * bytesInterleaved))
    return inference.error("C4: the weight's last size must be the panel, times what is interleaved");
  if (getPanel() && getTransposed())
    return inference.error("C4: a packed weight cannot be transposed");
  SizeExpr k = weight.sizes[getPanel() || getTransposed() ? 1 : 0];
  SizeExpr n = getPanel() ? SizeExpr(*getColumns()) : weight.sizes[getTransposed() ? 0 : 1];
  SizeExpr depth = getPanel() ? SizeExpr::ceilDiv(input.sizes.back(), interleave) : input.sizes.back();
  if (failed(inference.requireEqual(depth, k, "C2: inner sizes")))
    return failure();
  unsigned index = 2;
  if (getBias()) {
    const TensorFacts &bias = inference.operand(index++);
    if (bias.elementType != element || bias.rank() != 1)
      return inference.error("C3: the bias must be one axis of the result's element type");
    if (failed(inference.requireEqual(bias.sizes[0], n, "C3: bias size")))
      return failure();
  }
  if (getGroup() && (!isQuantized || static_cast<int64_t>(*getGroup()) <= 0 || *getGroup() % 2 != 0))
    return inference.error("C8: the group must be a positive, even number beside scales");
  if (getZeroPoints() && !isQuantized)
    return inference.error("C7: zero points need scales");
  SizeExpr groups = getGroup() ? SizeExpr::ceilDiv(input.sizes.back(), *getGroup()) : SizeExpr(1);
  SizeVector perGroup = {groups, n};
  if (getPanel())
    perGroup = {weight.sizes[0], groups, SizeExpr(*getPanel())};
  auto check = [&](Type expected, StringRef what) -> LogicalResult {
    const TensorFacts &facts = inference.operand(index++);
    if (facts.elementType != expected || facts.rank() != static_cast<int64_t>(perGroup.size()))
      return inference.error(what + " must be one for each group and column, as the weight is packed");
    for (auto [found, size] : llvm::zip_equal(facts.sizes, perGroup))
      if (failed(inference.requireEqual(found, size, what)))
        return failure();
    return success();
  };
  if (isQuantized && failed(check(element, "C6: scales")))
    return failure();
  if (getZeroPoints() && failed(check(IntegerType::get(getContext(), 8), "C7: zero points")))
    return failure();
  SizeVector sizes = input.sizes;
  sizes.back() = n;
  inference.addResult(element, sizes);
  return success();
}

LogicalResult PackOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (input.rank() != 2)
    return inference.error("C1: the operand must have rank 2");
  int64_t panel = getPanel(), interleave = getInterleave();
  if (panel <= 0 || interleave <= 0 || panel > (1 << 20) || interleave > (1 << 20))
    return inference.error("C2: panel and interleave must be positive, and at most 2^20");
  bool isHalfByte = input.elementType.isInteger(4);
  if (isHalfByte && interleave != 2)
    return inference.error("C3: integers of 4 bits must be interleaved by 2, found " + Twine(interleave));
  inference.addResult(isHalfByte ? IntegerType::get(getContext(), 8) : input.elementType,
                      {SizeExpr::ceilDiv(input.sizes[1], panel), SizeExpr::ceilDiv(input.sizes[0], interleave),
                       isHalfByte ? panel : panel * interleave});
  return success();
}

LogicalResult QuantizeWeightOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (input.rank() != 2 || !input.elementType.isF32())
    return inference.error("C1: the operand must be f32 and have rank 2");
  int64_t bits = getBits(), group = getGroup();
  if (bits != 4 && bits != 8)
    return inference.error("C2: expected 4 or 8 bits, found " + Twine(bits));
  if (group < 0)
    return inference.error("C3: the group must not be negative, found " + Twine(group));
  if (getPart() == QuantizedPart::zero_points && !getAsymmetric())
    return inference.error("C4: only the asymmetric scheme has zero points");
  if (getTriangle()) {
    const TensorFacts &triangle = inference.operand(1);
    if (getPart() != QuantizedPart::codes || triangle.rank() != 2 || !triangle.elementType.isF32() ||
        triangle.sizes[0] != input.sizes[0] || triangle.sizes[1] != input.sizes[0])
      return inference.error("C5: the triangle must be f32, have as many rows and columns as the weight has rows, and "
                             "stand beside codes");
  }
  auto integer = [&](int64_t width) { return IntegerType::get(getContext(), static_cast<unsigned>(width)); };
  SizeExpr groups = group ? SizeExpr::ceilDiv(input.sizes[0], group) : SizeExpr(1);
  switch (getPart()) {
  case QuantizedPart::codes: inference.addResult(integer(bits), input.sizes); break;
  case QuantizedPart::scales: inference.addResult(input.elementType, {groups, input.sizes[1]}); break;
  case QuantizedPart::zero_points: inference.addResult(integer(8), {groups, input.sizes[1]}); break;
  }
  return success();
}

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
        builder.getArrayAttr(kinds), builder.getDenseF64ArrayAttr(lows),
        isShifted ? toAttribute(builder.getContext(), ArrayRef(window.past)) : ArrayAttr(), number(window.left),
        number(window.right), number(window.capacity), builder.getF64FloatAttr(scale),
        softcap > 0 ? builder.getF64FloatAttr(softcap) : FloatAttr(), guard ? builder.getUnitAttr() : UnitAttr(),
        TypeAttr());
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
    bool chooses = kind.getValue() == ScoreStepKind::keep || kind.getValue() == ScoreStepKind::hide;
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

/// What an attention requires of its query, key and value, and of the masks behind `index` operands.
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

/// (size + pads - dilation * (kernel - 1) - 1) / stride + 1
static SizeExpr windowCount(const SizeExpr &size, int64_t padding, int64_t dilation, const SizeExpr &kernel,
                            int64_t stride) {
  SizeExpr span = size + SizeExpr(padding) - (kernel - SizeExpr(1)) * SizeExpr(dilation) - SizeExpr(1);
  return SizeExpr::floorDiv(span, stride) + SizeExpr(1);
}

static bool allAtLeast(ArrayRef<int64_t> values, int64_t bound) {
  return llvm::all_of(values, [&](int64_t value) { return value >= bound && value < (int64_t(1) << 31); });
}

LogicalResult ConvOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &weight = inference.operand(1);
  if (input.rank() < 3 || input.rank() != weight.rank())
    return inference.error("C1: operand and weight must have one rank of at least 3");
  Type element = sumType(input.elementType, weight.elementType);
  if (!element)
    return inference.error("C2: operand and weight have different element types");
  size_t spatial = static_cast<size_t>(input.rank() - 2);
  if (getStrides().size() != spatial || getDilations().size() != spatial || getPads().size() != 2 * spatial ||
      !allAtLeast(getStrides(), 1) || !allAtLeast(getDilations(), 1) || !allAtLeast(getPads(), 0) ||
      static_cast<int64_t>(getGroups()) < 1)
    return inference.error("C3: strides, dilations, pads and groups must be legal and match " + Twine(spatial) +
                           " spatial axes");
  int64_t groups = getGroups();
  if (failed(inference.requireEqual(input.sizes[1], weight.sizes[1] * SizeExpr(groups), "C4: channels")))
    return failure();
  if (auto filters = weight.sizes[0].constant(); filters && *filters % groups != 0)
    return inference.error("C4: " + Twine(*filters) + " filters are no multiple of " + Twine(groups) + " groups");
  if (failed(inference.requireEqual(SizeExpr::mod(weight.sizes[0], groups), 0, "C4: filters of each group")))
    return failure();
  if (getBias()) {
    const TensorFacts &bias = inference.operand(2);
    if (bias.rank() != 1 || bias.elementType != element)
      return inference.error("C5: the bias must be one axis of the result's element type");
    if (failed(inference.requireEqual(bias.sizes[0], weight.sizes[0], "C5: bias size")))
      return failure();
  }
  SizeVector sizes = {input.sizes[0], weight.sizes[0]};
  for (size_t i = 0; i < spatial; ++i) {
    sizes.push_back(windowCount(input.sizes[2 + i], getPads()[i] + getPads()[spatial + i], getDilations()[i],
                                weight.sizes[2 + i], getStrides()[i]));
    if (failed(inference.requireAtLeast(sizes.back(), 0, "C3: output size")))
      return failure();
  }
  inference.addResult(element, sizes);
  return success();
}

LogicalResult PoolOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (input.rank() < 3)
    return inference.error("C1: the operand must have rank 3 or more");
  size_t spatial = static_cast<size_t>(input.rank() - 2);
  if (getKernel().size() != spatial || getStrides().size() != spatial || getDilations().size() != spatial ||
      getPads().size() != 2 * spatial || !allAtLeast(getKernel(), 1) || !allAtLeast(getStrides(), 1) ||
      !allAtLeast(getDilations(), 1) || !allAtLeast(getPads(), 0) || static_cast<int64_t>(getExponent()) < 1)
    return inference.error("C2: kernel, strides, dilations and pads must be legal and match " + Twine(spatial) +
                           " spatial axes");
  SizeVector sizes = {input.sizes[0], input.sizes[1]};
  for (size_t i = 0; i < spatial; ++i) {
    SizeExpr padding = getPads()[i] + getPads()[spatial + i];
    SizeExpr span = input.sizes[2 + i] + padding - SizeExpr((getKernel()[i] - 1) * getDilations()[i] + 1);
    SizeExpr count = SizeExpr::floorDiv(span, getStrides()[i]) + SizeExpr(1);
    if (getCeil()) {
      count = SizeExpr::ceilDiv(span, getStrides()[i]) + SizeExpr(1);
      // A window that would start in the right padding is dropped.
      SizeExpr lastStart = (count - SizeExpr(1)) * SizeExpr(getStrides()[i]);
      SizeExpr inside = SizeExpr::lt(lastStart, input.sizes[2 + i] + SizeExpr(getPads()[i]));
      count = count - (SizeExpr(1) - inside);
    }
    if (failed(inference.requireAtLeast(count, 0, "C2: output size")))
      return failure();
    sizes.push_back(count);
  }
  inference.addResult(input.elementType, sizes);
  return success();
}
