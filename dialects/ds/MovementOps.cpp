// Shape rules and folds of ops that only move elements. Folds leave what requires something of sizes that a run must
// check to ds-fold-shapes, which keeps the requirement.
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Requirements.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

static bool isIndexType(Type type) { return type.isInteger(64) || type.isInteger(32); }

static LogicalResult requireIndices(Inference &inference, unsigned operand) {
  if (!isIndexType(inference.operand(operand).elementType))
    return inference.error("C1: the indices must be i32 or i64");
  return success();
}

/// Sizes that come from the run, as elements of an input may, count elements: kernels rely on it.
static LogicalResult requireCounts(Inference &inference, ArrayRef<SizeExpr> sizes, StringRef what) {
  for (auto [axis, size] : llvm::enumerate(sizes))
    if (failed(inference.requireAtLeast(size, 0, what + " of axis " + Twine(axis))))
      return failure();
  return success();
}

LogicalResult ReshapeOp::inferResults(Inference &inference) {
  auto sizes = inference.sizesOf(getShape(), "C1: shape");
  if (!sizes || failed(requireCounts(inference, *sizes, "C3: size")))
    return failure();
  const TensorFacts &input = inference.operand(0);
  if (failed(inference.requireEqual(product(input.sizes), product(*sizes), "C2: element counts")))
    return failure();
  inference.addResult(input.elementType, *sizes, input.contents);
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  auto type = cast<RankedTensorType>(getType());
  // Sizes that are not known may be equal only as long as this op says so.
  if (!type.hasStaticShape() || mayRequire(*this))
    return {};
  if (type == getInput().getType())
    return getInput();
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(adaptor.getInput()))
    return dense.reshape(type);
  return {};
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(+[](ReshapeOp op, PatternRewriter &rewriter) -> LogicalResult {
    auto inner = op.getInput().getDefiningOp<ReshapeOp>();
    if (!inner || mayRequire(inner))
      return rewriter.notifyMatchFailure(op, "the operand is no reshape, or one whose sizes a run must check");
    rewriter.modifyOpInPlace(op, [&] { op.getInputMutable().assign(inner.getInput()); });
    return success();
  });
}

LogicalResult BroadcastOp::inferResults(Inference &inference) {
  auto shape = inference.sizesOf(getShape(), "C1: shape");
  if (shape && failed(requireCounts(inference, *shape, "C3: size")))
    return failure();
  auto sizes = shape ? inference.broadcast(inference.operand(0).sizes, *shape) : std::nullopt;
  if (!sizes)
    return failure();
  std::optional<SizeVector> contents;
  const TensorFacts &input = inference.operand(0);
  auto count = product(*sizes).constant();
  if (input.contents && count && *count <= static_cast<int64_t>(Inference::contentsLimit) &&
      (input.contents->size() == 1 || static_cast<int64_t>(input.contents->size()) == *count))
    contents = input.contents->size() == 1 ? SizeVector(*count, input.contents->front()) : *input.contents;
  inference.addResult(input.elementType, *sizes, std::move(contents));
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape() || mayRequire(*this))
    return {};
  if (type == getInput().getType())
    return getInput();
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(type);
  return {};
}

/// Where a walk is after some steps, if that is a place of an axis of `size`.
static std::optional<int64_t> placeAfter(int64_t start, int64_t steps, int64_t step, int64_t size) {
  int64_t distance, place;
  bool isFar = llvm::MulOverflow(steps, step, distance) || llvm::AddOverflow(start, distance, place);
  return !isFar && place >= 0 && place < size ? std::optional(place) : std::nullopt;
}

/// The elements of a strided box of static shape, row by row; result axis i runs along operand axis `axes[i]`. Nothing
/// where they are not known or the box reaches outside.
static std::optional<SizeVector> boxOf(const TensorFacts &input, ArrayRef<SizeExpr> sizes, ArrayRef<int64_t> starts,
                                       ArrayRef<int64_t> steps, ArrayRef<int64_t> axes) {
  auto count = product(sizes).constant();
  if (!input.contents || !count || *count < 0 || *count > static_cast<int64_t>(Inference::contentsLimit))
    return std::nullopt;
  size_t rank = axes.size();
  SmallVector<int64_t> strides(rank, 1), shape, box;
  for (size_t axis = 0; axis < rank; ++axis) {
    auto size = input.sizes[axis].constant(), part = sizes[axis].constant();
    if (!size || !part)
      return std::nullopt;
    shape.push_back(*size);
    box.push_back(*part);
  }
  for (size_t axis = rank; axis-- > 1;)
    strides[axis - 1] = strides[axis] * shape[axis];
  SizeVector contents;
  for (int64_t i = 0; i < *count; ++i) {
    int64_t rest = i, offset = 0;
    for (size_t axis = rank; axis-- > 0; rest /= box[axis]) {
      int64_t along = axes[axis];
      auto position = placeAfter(starts[axis], rest % box[axis], steps[axis], shape[along]);
      if (!position)
        return std::nullopt;
      offset += *position * strides[along];
    }
    contents.push_back((*input.contents)[offset]);
  }
  return contents;
}

LogicalResult TransposeOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  ArrayRef<int64_t> permutation = getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  bool valid = static_cast<int64_t>(sorted.size()) == input.rank();
  for (auto [index, axis] : llvm::enumerate(sorted))
    valid &= axis == static_cast<int64_t>(index);
  if (!valid)
    return inference.error("C1: expects a permutation of " + Twine(input.rank()) + " axes");
  SizeVector sizes;
  for (int64_t axis : permutation)
    sizes.push_back(input.sizes[axis]);
  SmallVector<int64_t> none(permutation.size(), 0), ones(permutation.size(), 1);
  std::optional<SizeVector> contents = input.contents;
  if (input.rank() > 1)
    contents = boxOf(input, sizes, none, ones, permutation);
  inference.addResult(input.elementType, sizes, std::move(contents));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  bool identity = true;
  for (auto [index, axis] : llvm::enumerate(getPermutation()))
    identity &= axis == static_cast<int64_t>(index);
  if (identity)
    return getInput();
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

bool TransposeOp::isPointwise() { return false; }

bool SliceOp::isPointwise() { return false; }
/// That an axis of a box lies inside the operand. Both ends are checked when the program runs where they are not known;
/// a box of no elements may start one place outside, as the end of a walk backwards through nothing does.
static LogicalResult requireBox(Inference &inference, size_t axis, const SizeExpr &start, const SizeExpr &count,
                                int64_t step) {
  const SizeExpr &bound = inference.operand(0).sizes[axis];
  SizeExpr last = start + (count - SizeExpr(1)) * SizeExpr(step);
  const SizeExpr &low = step > 0 ? start : last, &high = step > 0 ? last : start;
  auto knownCount = count.constant(), knownLow = low.constant(), knownHigh = high.constant(),
       knownBound = bound.constant();
  if ((knownCount && *knownCount < 0) ||
      (knownCount && *knownCount > 0 &&
       ((knownLow && *knownLow < 0) || (knownHigh && knownBound && *knownHigh >= *knownBound))))
    return inference.error("C3: the box reaches outside axis " + Twine(axis) + " of size " + bound.brief());
  if (count.isConstant(0))
    return success();
  std::string where = ("C3: axis " + Twine(axis)).str();
  if (failed(inference.requireAtLeast(count, 0, where + ", elements of the box")) ||
      (!knownLow && failed(inference.requireAtLeast(low, 0, where + ", least place of the box"))) ||
      (!(knownHigh && knownBound) && failed(inference.requireAtLeast(bound, high + SizeExpr(1), where))))
    return failure();
  if (knownCount)
    return success();
  // With a count of run time, a place that is known to lie outside is legal for no elements only.
  bool isOutside = (knownLow && *knownLow < 0) || (knownHigh && knownBound && *knownHigh >= *knownBound);
  return isOutside ? inference.requireEqual(count, 0, where + ", elements of the box") : success();
}

LogicalResult SliceOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  auto starts = inference.sizesOf(getStarts(), "C1: starts"), sizes = inference.sizesOf(getSizes(), "C1: sizes");
  if (!starts || !sizes)
    return failure();
  size_t rank = static_cast<size_t>(input.rank());
  if (starts->size() != rank || sizes->size() != rank || getSteps().size() != rank)
    return inference.error("C1: starts, sizes and steps must have " + Twine(rank) + " elements");
  for (size_t i = 0; i < rank; ++i) {
    if (getSteps()[i] == 0)
      return inference.error("C2: a step is 0");
    if (failed(requireBox(inference, i, (*starts)[i], (*sizes)[i], getSteps()[i])))
      return failure();
  }
  std::optional<SizeVector> contents;
  auto start = rank == 1 ? (*starts)[0].constant() : std::nullopt;
  auto count = rank == 1 ? (*sizes)[0].constant() : std::nullopt;
  if (input.contents && rank == 1 && start && count) {
    contents.emplace();
    for (int64_t i = 0; i < *count; ++i) {
      auto position = placeAfter(*start, i, getSteps()[0], static_cast<int64_t>(input.contents->size()));
      if (!position)
        return inference.error("C3: the box reaches outside the operand");
      contents->push_back((*input.contents)[*position]);
    }
  }
  if (rank > 1) {
    SmallVector<int64_t> first, axes;
    for (const SizeExpr &start : *starts)
      if (auto known = start.constant()) {
        axes.push_back(static_cast<int64_t>(first.size()));
        first.push_back(*known);
      }
    if (first.size() == rank)
      contents = boxOf(input, *sizes, first, getSteps(), axes);
  }
  inference.addResult(input.elementType, *sizes, std::move(contents));
  return success();
}

LogicalResult InsertOp::inferResults(Inference &inference) {
  const TensorFacts &update = inference.operand(0), &into = inference.operand(1);
  auto starts = inference.sizesOf(getStarts(), "C1: starts");
  if (!starts)
    return failure();
  if (starts->size() != into.sizes.size())
    return inference.error("C1: starts must have " + Twine(into.rank()) + " elements");
  if (update.rank() != into.rank() || update.elementType != into.elementType)
    return inference.error("C2: operands must have one rank and element type");
  for (auto [axis, start] : llvm::enumerate(*starts)) {
    if (auto first = start.constant(); first && *first < 0)
      return inference.error("C3: the box starts before axis " + Twine(axis));
    if (failed(inference.requireAtLeast(start, 0, "C3: the box's start on axis " + Twine(axis))) ||
        failed(inference.requireAtLeast(into.sizes[axis], start + update.sizes[axis], "C3: axis " + Twine(axis))))
      return failure();
  }
  inference.addResult(into.elementType, into.sizes);
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getType());
  bool forward = llvm::all_of(getSteps(), [](int64_t step) { return step == 1; });
  bool isWhole = forward && type == getInput().getType() && type.hasStaticShape();
  return isWhole && !mayRequire(*this) ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult PadOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &value = inference.operand(1);
  auto low = inference.sizesOf(getLow(), "C1: low"), high = inference.sizesOf(getHigh(), "C1: high");
  if (!low || !high)
    return failure();
  if (low->size() != input.sizes.size() || high->size() != input.sizes.size())
    return inference.error("C1: low and high must have " + Twine(input.rank()) + " elements");
  if (value.elementType != input.elementType || !product(value.sizes).isConstant(1))
    return inference.error("C2: the value must be one element of the operand's type");
  SizeVector sizes;
  for (size_t i = 0; i < low->size(); ++i) {
    sizes.push_back(input.sizes[i] + (*low)[i] + (*high)[i]);
    if (failed(inference.requireAtLeast(sizes.back(), 0, "padded size")))
      return failure();
  }
  inference.addResult(input.elementType, sizes);
  return success();
}

LogicalResult ConcatOp::inferResults(Inference &inference) {
  if (inference.operandCount() == 0)
    return inference.error("C1: expects at least one operand");
  SizeVector sizes = inference.operand(0).sizes;
  int64_t axis = getAxis();
  if (axis < 0 || axis >= static_cast<int64_t>(sizes.size()))
    return inference.error("C2: the axis " + Twine(axis) + " is outside rank " + Twine(sizes.size()));
  std::optional<SizeVector> contents = SizeVector();
  for (unsigned i = 0; i < inference.operandCount(); ++i) {
    const TensorFacts &operand = inference.operand(i);
    if (operand.sizes.size() != sizes.size() || operand.elementType != inference.operand(0).elementType)
      return inference.error("C1: operands have different ranks or element types");
    for (int64_t other = 0; other < static_cast<int64_t>(sizes.size()); ++other)
      if (other != axis && failed(inference.requireEqual(sizes[other], operand.sizes[other],
                                                         "C3: axis " + Twine(other) + " of operand " + Twine(i))))
        return failure();
    if (i > 0)
      sizes[axis] = sizes[axis] + operand.sizes[axis];
    if (contents && operand.contents && axis == 0)
      llvm::append_range(*contents, *operand.contents);
    else
      contents.reset();
  }
  inference.addResult(inference.operand(0).elementType, sizes, std::move(contents));
  return success();
}

/// What a gather of codes (operand 0) asks of its scales (operand 2).
static LogicalResult requireScales(Inference &inference, int64_t axis) {
  const TensorFacts &codes = inference.operand(0), &scales = inference.operand(2);
  if (axis != 0 || codes.rank() != 2 || scales.rank() != 2 || !codes.elementType.isSignlessInteger(8) ||
      !(scales.elementType.isF32() || scales.elementType.isF64()))
    return inference.error("C3: scales must be a matrix of f32 or f64 beside a matrix of i8 and axis 0");
  if (failed(inference.requireEqual(codes.sizes[0], scales.sizes[0], "C4: rows")))
    return failure();
  auto length = codes.sizes[1].constant(), groups = scales.sizes[1].constant();
  if (!length || !groups || *groups < 1 || *length % *groups != 0)
    return inference.error("C5: the last size of the scales must divide that of the codes, and both be numbers");
  return success();
}

LogicalResult GatherOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &indices = inference.operand(1);
  if (failed(requireIndices(inference, 1)))
    return failure();
  int64_t axis = getAxis();
  if (axis < 0 || axis >= input.rank())
    return inference.error("C2: the axis " + Twine(axis) + " is outside rank " + Twine(input.rank()));
  if (getScales() && failed(requireScales(inference, axis)))
    return failure();
  SizeVector sizes(input.sizes.begin(), input.sizes.begin() + axis);
  llvm::append_range(sizes, indices.sizes);
  sizes.insert(sizes.end(), input.sizes.begin() + axis + 1, input.sizes.end());
  std::optional<SizeVector> contents;
  if (input.contents && indices.contents && input.rank() == 1) {
    contents.emplace();
    int64_t count = static_cast<int64_t>(input.contents->size());
    for (const SizeExpr &index : *indices.contents) {
      auto position = index.constant();
      if (!position) {
        contents.reset();
        break;
      }
      if (*position < -count || *position >= count)
        return inference.error("index " + Twine(*position) + " is outside an axis of size " + Twine(count));
      contents->push_back((*input.contents)[*position < 0 ? *position + count : *position]);
    }
  }
  inference.addResult(getScales() ? inference.operand(2).elementType : input.elementType, sizes, std::move(contents));
  return success();
}

LogicalResult GatherElementsOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &indices = inference.operand(1);
  if (failed(requireIndices(inference, 1)))
    return failure();
  int64_t axis = getAxis();
  if (input.rank() != indices.rank() || axis < 0 || axis >= input.rank())
    return inference.error("C2: expects equal ranks and an axis inside them");
  inference.addResult(input.elementType, indices.sizes);
  return success();
}

LogicalResult GatherNdOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &indices = inference.operand(1);
  if (failed(requireIndices(inference, 1)))
    return failure();
  int64_t batch = getBatchDims();
  auto tuple = indices.rank() > 0 ? indices.sizes.back().constant() : std::nullopt;
  if (!tuple || batch < 0 || batch >= indices.rank() || *tuple < 0 || batch + *tuple > input.rank())
    return inference.error("C2: the last index axis must be static and fit the operand's rank");
  for (int64_t i = 0; i < batch; ++i)
    if (failed(inference.requireEqual(input.sizes[i], indices.sizes[i], "batch axis")))
      return failure();
  SizeVector sizes(indices.sizes.begin(), indices.sizes.end() - 1);
  sizes.insert(sizes.end(), input.sizes.begin() + batch + *tuple, input.sizes.end());
  inference.addResult(input.elementType, sizes);
  return success();
}

LogicalResult ScatterElementsOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &indices = inference.operand(1), &updates = inference.operand(2);
  if (failed(requireIndices(inference, 1)))
    return failure();
  int64_t axis = getAxis();
  if (input.rank() != indices.rank() || updates.rank() != indices.rank() || axis < 0 || axis >= input.rank())
    return inference.error("C2: expects equal ranks and an axis inside them");
  for (int64_t i = 0; i < input.rank(); ++i)
    if (failed(inference.requireEqual(indices.sizes[i], updates.sizes[i], "C2: indices and updates")))
      return failure();
  if (input.elementType != updates.elementType)
    return inference.error("C3: operand and updates have different element types");
  inference.addResult(input.elementType, input.sizes);
  return success();
}

LogicalResult ScatterNdOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0), &indices = inference.operand(1), &updates = inference.operand(2);
  if (failed(requireIndices(inference, 1)))
    return failure();
  auto tuple = indices.rank() > 0 ? indices.sizes.back().constant() : std::nullopt;
  if (!tuple || *tuple < 0 || *tuple > input.rank() || updates.rank() != indices.rank() - 1 + input.rank() - *tuple)
    return inference.error("C2: the last index axis must be static and fit the ranks of operand and updates");
  if (input.elementType != updates.elementType)
    return inference.error("C3: operand and updates have different element types");
  SizeVector slices(indices.sizes.begin(), indices.sizes.end() - 1);
  slices.insert(slices.end(), input.sizes.begin() + *tuple, input.sizes.end());
  for (auto [expected, found] : llvm::zip_equal(slices, updates.sizes))
    if (failed(inference.requireEqual(expected, found, "C4: indices and updates")))
      return failure();
  inference.addResult(input.elementType, input.sizes);
  return success();
}

LogicalResult NonZeroOp::inferResults(Inference &inference) {
  const TensorFacts &input = inference.operand(0);
  if (input.rank() == 0)
    return inference.error("C1: the operand must have at least one axis");
  inference.addResult(IntegerType::get(getContext(), 64), {SizeExpr(input.rank()), SizeExpr::symbol(getCount())});
  return success();
}
