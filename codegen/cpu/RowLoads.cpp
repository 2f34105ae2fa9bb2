// How a row of linalg.generic is read in vectors: as it lies, each element several times, every second to fourth
// element, or one element for all places.
#include "codegen/cpu/RowVectorizer.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

/// How far apart elements lie that neighbouring places of an operand's last index read; nothing where it varies.
static std::optional<int64_t> lastStride(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(strides.back()))
    return std::nullopt;
  return strides.back();
}

Reach RowVectorizer::reachOf(OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (unsigned i = 0; i + 1 < map.getNumResults(); ++i)
    if (map.getResult(i).isFunctionOfDim(rank - 1))
      return Reach::Strided;
  if (map.getNumResults() == 0 || !map.getResults().back().isFunctionOfDim(rank - 1))
    return Reach::Broadcast;
  std::optional<int64_t> stride = lastStride(cast<MemRefType>(operand.get().getType()));
  if (stride == 1)
    return repeatsOf(operand) == 1 ? Reach::Contiguous : Reach::Repeated;
  constexpr int64_t farthest = 4; // beyond, nearly all that a vector holds would be dropped
  bool isSpread = stride && *stride > 1 && *stride <= farthest;
  return isSpread && repeatsOf(operand) == 1 && !op.isDpsInit(&operand) ? Reach::Spread : Reach::Strided;
}

/// How many neighbouring places of the innermost loop read one element: its index is divided where it is several.
int64_t RowVectorizer::repeatsOf(OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto divided =
      map.getNumResults() ? dyn_cast<AffineBinaryOpExpr>(map.getResults().back()) : AffineBinaryOpExpr(nullptr);
  return divided ? cast<AffineConstantExpr>(divided.getRHS()).getValue() : 1;
}

SmallVector<Value> RowVectorizer::position(OpOperand &operand, ArrayRef<Value> indices) {
  SmallVector<Value> result;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    auto divided = dyn_cast<AffineBinaryOpExpr>(expr);
    result.push_back(indices[cast<AffineDimExpr>(divided ? divided.getLHS() : expr).getPosition()]);
    if (divided)
      result.back() =
          arith::DivUIOp::create(b, loc, result.back(), arith::ConstantIndexOp::create(b, loc, repeatsOf(operand)));
  }
  return result;
}

Value RowVectorizer::widen(Value scalar, int64_t width) {
  if (width == 1)
    return scalar;
  return vector::BroadcastOp::create(b, loc, VectorType::get({width}, scalar.getType()), scalar);
}

/// What `width` places of the innermost loop read, the first of them at `indices`.
Value RowVectorizer::load(OpOperand &operand, ArrayRef<Value> indices, int64_t width) {
  Type element = cast<MemRefType>(operand.get().getType()).getElementType();
  if (width > 1 && isTransposed(operand)) {
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    return vector::LoadOp::create(b, loc, VectorType::get({width}, element), squares[operand.getOperandNumber()],
                                  ValueRange{squareRow, zero});
  }
  SmallVector<Value> at = position(operand, indices);
  Reach reach = reachOf(operand);
  if (width == 1 || reach == Reach::Broadcast)
    return widen(memref::LoadOp::create(b, loc, operand.get(), at), width);
  return reach == Reach::Spread ? loadSpread(operand, at, width) : loadRepeated(operand, at, width);
}

/// A vector of what `width` places of the innermost loop read, the first of which is a new element.
Value RowVectorizer::loadRepeated(OpOperand &operand, ArrayRef<Value> at, int64_t width) {
  int64_t times = repeatsOf(operand);
  auto type = VectorType::get({width / times}, cast<MemRefType>(operand.get().getType()).getElementType());
  if (mask) { // nothing need lie behind the end
    Value rest = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    return vector::MaskedLoadOp::create(b, loc, type, operand.get(), at, mask, rest);
  }
  Value elements = vector::LoadOp::create(b, loc, type, operand.get(), at);
  if (times == 1)
    return elements;
  auto lanes = llvm::map_to_vector(llvm::seq<int64_t>(0, width), [&](int64_t lane) { return lane / times; });
  return vector::ShuffleOp::create(b, loc, elements, elements, lanes);
}

/// A vector of elements that lie `stride` places apart, from vectors of all that lies between the first and the last:
/// the last vector ends with the last element, since nothing need lie behind it.
Value RowVectorizer::loadSpread(OpOperand &operand, ArrayRef<Value> at, int64_t width) {
  auto type = cast<MemRefType>(operand.get().getType());
  int64_t stride = *lastStride(type);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, operand.get());
  Value first = metadata.getOffset();
  for (auto [index, apart] : llvm::zip_equal(at, metadata.getStrides()))
    first = arith::AddIOp::create(b, loc, first, arith::MulIOp::create(b, loc, index, apart));
  int64_t length = (width - 1) * stride + 1;
  Value all = memref::ReinterpretCastOp::create(
      b, loc,
      MemRefType::get({length}, type.getElementType(),
                      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1})),
      metadata.getBaseBuffer(), OpFoldResult(first), {b.getIndexAttr(length)}, {b.getIndexAttr(1)});
  Value found;
  for (int64_t part = 0; part < stride; ++part) {
    int64_t start = part + 1 < stride ? part * width : length - width;
    Value elements = vector::LoadOp::create(b, loc, VectorType::get({width}, type.getElementType()), all,
                                            ValueRange(arith::ConstantIndexOp::create(b, loc, start)));
    // Elements of earlier parts stay; those of this one take their lanes.
    auto lanes = llvm::map_to_vector(llvm::seq<int64_t>(0, width), [&](int64_t lane) {
      int64_t place = lane * stride;
      return place < start || place >= start + width ? lane : width + place - start;
    });
    found = vector::ShuffleOp::create(b, loc, found ? found : elements, elements, lanes);
  }
  return found;
}

} // namespace deepstride
