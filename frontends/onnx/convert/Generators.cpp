// Tensors made from sizes and constants: Constant, Shape, Range, ConstantOfShape, EyeLike, OneHot, Trilu.
#include "dialects/ds/HostTensor.h"
#include "frontends/onnx/convert/Conversion.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"
#include "frontends/onnx/dialect/ConstantNodes.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;

/// A sparse constant written out; only small ones, which have elements in the IR.
static Value denseOfSparse(Node &n, DictionaryAttr sparse) {
  auto values = dyn_cast_if_present<DenseElementsAttr>(sparse.get("values"));
  auto indices = dyn_cast_if_present<DenseElementsAttr>(sparse.get("indices"));
  auto dims = dyn_cast_if_present<DenseI64ArrayAttr>(sparse.get("dims"));
  if (!values || !indices || !dims || !indices.getElementType().isInteger(64) ||
      !isSupportedElement(values.getElementType()))
    return n.refuse("attribute 'sparse_value': expected a sparse tensor of at most 4096 bytes");
  auto type = RankedTensorType::get(dims.asArrayRef(), values.getElementType());
  constexpr int64_t elementLimit = 4096;
  if (type.getNumElements() > elementLimit)
    return n.refuse("attribute 'sparse_value': expected at most 4096 elements, found " + Twine(type.getNumElements()));
  SmallVector<Attribute> elements(type.getNumElements(), numberAttr(type.getElementType(), 0));
  auto positions = llvm::to_vector(indices.getValues<int64_t>());
  int64_t count = values.getNumElements(), rank = type.getRank();
  bool isLinear = static_cast<int64_t>(positions.size()) == count;
  if (!isLinear && static_cast<int64_t>(positions.size()) != count * rank)
    return n.refuse("attribute 'sparse_value': expected an index per value");
  for (auto [i, value] : llvm::enumerate(values.getValues<Attribute>())) {
    int64_t flat = isLinear ? positions[i] : 0;
    for (int64_t axis = 0; !isLinear && axis < rank; ++axis) {
      int64_t position = positions[i * rank + axis];
      if (position < 0 || position >= type.getDimSize(axis))
        return n.refuse("attribute 'sparse_value': index " + Twine(position) + " is outside of axis " + Twine(axis));
      flat = flat * type.getDimSize(axis) + position;
    }
    if (flat < 0 || flat >= type.getNumElements())
      return n.refuse("attribute 'sparse_value': index " + Twine(flat) + " is outside of the tensor");
    elements[flat] = value;
  }
  return n.b.constant(DenseElementsAttr::get(type, elements));
}

static Values convertConstant(Node &n) {
  StringRef name = cast<StringAttr>(n.operation().getOutputs()[0]).getValue();
  for (NamedAttribute attribute : n.operation().getAttrs()) {
    TypedAttr tensor = heldTensor(attribute);
    auto elements = dyn_cast_or_null<DenseElementsAttr>(tensor);
    if (elements && elements.getType().getNumElements() <= ds::ConstantOp::byteLimit / 8 &&
        isPlaceholder(n.operation()))
      return {n.b.constant(elements)};
    if (tensor)
      return {n.context.importTensor(tensor, name)};
    if (auto sparse = dyn_cast<DictionaryAttr>(attribute.getValue()); sparse && attribute.getName() == "sparse_value")
      return {denseOfSparse(n, sparse)};
  }
  return n.refuse("expected one of the attributes value, sparse_value, value_float, value_floats, value_int and "
                  "value_ints; strings are not supported");
}

static Values convertShape(Node &n) {
  SizeVector sizes = n.b.sizes(n.in(0));
  int64_t rank = n.b.rank(n.in(0)), start = n.integer("start", 0), end = n.integer("end", rank);
  auto clamp = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  start = clamp(start);
  end = std::max(clamp(end), start);
  return {n.b.shape(ArrayRef(sizes).slice(start, end - start))};
}

static Values convertSize(Node &n) { return {n.b.reshape(n.b.shape({product(n.b.sizes(n.in(0)))}), {})}; }

static Values convertConstantOfShape(Node &n) {
  auto shape = n.sizesOf(0, "input");
  auto value = dyn_cast_if_present<DenseElementsAttr>(n.attribute("value"));
  if (!shape)
    return {};
  if (n.attribute("value") && (!value || value.getNumElements() != 1 || !isSupportedElement(value.getElementType())))
    return n.refuse("attribute 'value': expected one bool, integer or real float");
  for (const SizeExpr &size : *shape)
    if (auto known = size.constant(); known && *known < 0)
      return n.refuse("input 0: expected sizes of at least 0, found " + Twine(*known));
  Value element =
      value ? n.b.constant(value.reshape(RankedTensorType::get({}, value.getElementType()))) : n.b.scalar(n.b.f32(), 0);
  return {n.b.broadcast(element, *shape)};
}

/// The same where the operands are data of the call. Integers are counted exactly, floats in f64.
static SizeExpr computedRangeCount(Node &n) {
  DsBuilder &b = n.b;
  bool isFloat = isa<FloatType>(b.element(n.in(0)));
  auto number = [&](unsigned i) { return b.cast(b.reshape(n.in(i), {}), isFloat ? b.f64() : b.i64()); };
  Value distance = b.sub(number(1), number(0)), delta = number(2), count = b.div(distance, delta);
  if (isFloat) { // beyond all memory is enough: the cast must hold it
    constexpr double tooMany = 0x1p62;
    count = b.binary(BinaryKind::min, b.unary(ds::UnaryKind::ceil, count), tooMany);
    count = b.select(b.unary(ds::UnaryKind::is_nan, count), b.scalar(b.f64(), tooMany), count);
  } else { // division truncates
    Value rest = b.sub(distance, b.mul(count, delta)), zero = b.scalar(b.i64(), 0);
    Value sameSign =
        b.binary(BinaryKind::eq, b.binary(BinaryKind::gt, rest, zero), b.binary(BinaryKind::gt, delta, zero));
    Value isShort = b.binary(BinaryKind::bit_and, sameSign, b.binary(BinaryKind::ne, rest, zero));
    count = b.add(count, b.cast(isShort, b.i64()));
  }
  return computedSize(n, b.cast(count, b.i64()));
}

static std::optional<int64_t> constantInteger(Node &n, unsigned input) {
  auto value = n.b.elementsIn(n.in(input));
  return value ? std::optional(readNumber(value->element, value->data).integer) : std::nullopt;
}

/// Steps of `delta`, which is not 0, from `start` up to or beyond `limit`; negative where they lead away from it.
static double integerCount(int64_t start, int64_t limit, int64_t delta) {
  __extension__ using Wide = __int128;
  Wide distance = Wide(limit) - start, count = distance / delta;
  return static_cast<double>(count + (distance % delta != 0 && (distance < 0) == (delta < 0)));
}

/// How many elements start, start + delta, ... stay before limit.
static std::optional<SizeExpr> rangeCount(Node &n) {
  auto start = n.realsOf(0), limit = n.realsOf(1), delta = n.realsOf(2);
  auto isScalar = [](const auto &reals) { return reals && reals->size() == 1; };
  if (isScalar(delta) && delta->front() == 0)
    return n.refuse("input 2 ('delta'): expected a number other than 0, found 0");
  if (isScalar(start) && isScalar(limit) && isScalar(delta)) {
    double count = std::ceil((limit->front() - start->front()) / delta->front());
    if (isa<IntegerType>(n.b.element(n.in(0)))) { // beyond 2^53, where doubles skip numbers
      auto from = constantInteger(n, 0), to = constantInteger(n, 1), by = constantInteger(n, 2);
      if (!from || !to || !by) // what evaluation may cost was spent in between
        return computedRangeCount(n);
      count = integerCount(*from, *to, *by);
    }
    constexpr double countLimit = 1LL << 40;
    if (!(count < countLimit))
      return n.refuse("expected a range of less than " + Twine(int64_t(countLimit)) + " elements, found more");
    return SizeExpr(static_cast<int64_t>(std::max(count, 0.0)));
  }
  for (unsigned i = 0; i < 3; ++i) {
    TensorFacts facts = n.b.facts(n.in(i));
    if (!product(facts.sizes).isConstant(1))
      return n.refuse("input " + Twine(i) + ": expected one element, found " + describe(facts));
    if (!n.b.sizesIn(n.in(i)))
      return computedRangeCount(n);
  }
  auto first = n.sizeOf(0, "start"), last = n.sizeOf(1, "limit"), step = n.sizeOf(2, "delta");
  if (!first || !last || !step)
    return std::nullopt;
  if (auto known = step->constant(); known && *known < 0 && *known != INT64_MIN) // which has no negative
    return SizeExpr::max(SizeExpr::ceilDiv(*first - *last, -*known), 0);
  return SizeExpr::max(SizeExpr::ceilDiv(*last - *first, *step), 0);
}

static Values convertRange(Node &n) {
  auto count = rangeCount(n);
  if (!count)
    return {};
  Type type = n.b.element(n.in(0));
  Value index = n.b.cast(n.b.iota(0, {*count}), type);
  auto start = n.realsOf(0), delta = n.realsOf(2);
  if (!delta || delta->size() != 1 || delta->front() != 1)
    index = n.b.mul(index, n.b.reshape(n.in(2), {}));
  if (!start || start->size() != 1 || start->front() != 0)
    index = n.b.add(index, n.b.reshape(n.in(0), {}));
  return {index};
}

static Values convertEyeLike(Node &n) {
  if (!n.requireRank(0, 2, 2))
    return {};
  SizeVector sizes = n.b.sizes(n.in(0));
  Type type = n.attribute("dtype") ? n.elementType(n.integer("dtype", 1)) : n.b.element(n.in(0));
  if (!type)
    return {};
  Value row = n.b.add(n.b.iota(0, {sizes[0], 1}), static_cast<double>(n.integer("k", 0)));
  return {n.b.cast(n.b.binary(BinaryKind::eq, row, n.b.iota(1, {1, sizes[1]})), type)};
}

/// Indices may be negative, counting from `depth`; those outside of it give a row without the `on` value.
static Values convertOneHot(Node &n) {
  auto depth = anySizeOf(n, 1, "depth");
  int64_t rank = n.b.rank(n.in(0)) + 1;
  auto axis = n.axis(n.integer("axis", -1), rank);
  if (!depth || !axis)
    return {};
  Value indices = n.b.cast(n.in(0), n.b.i64());
  Value count = n.b.reshape(n.b.shape({*depth}), {});
  Value wrapped = n.b.select(n.b.binary(BinaryKind::lt, indices, 0.0), n.b.add(indices, count), indices);
  SizeVector ruler(rank, SizeExpr(1));
  ruler[*axis] = *depth;
  Value hot = n.b.binary(BinaryKind::eq, n.b.insertAxis(wrapped, *axis), n.b.iota(*axis, ruler));
  Value off = n.b.reshape(n.b.sliceAxis(n.in(2), 0, 0, 1), {}), on = n.b.reshape(n.b.sliceAxis(n.in(2), 0, 1, 1), {});
  return {n.b.select(hot, on, off)};
}

static Values convertTrilu(Node &n) {
  if (!n.requireRank(0, 2))
    return {};
  SizeVector sizes = n.b.sizes(n.in(0));
  int64_t rank = n.b.rank(n.in(0));
  Value row = n.b.iota(0, {sizes[rank - 2], 1}), column = n.b.iota(1, {1, sizes[rank - 1]});
  if (n.has(1))
    row = n.b.add(row, n.b.cast(n.b.reshape(n.in(1), {}), n.b.i64()));
  Value keeps = n.b.binary(n.flag("upper", true) ? BinaryKind::ge : BinaryKind::le, column, row);
  return {n.b.select(keeps, n.in(0), n.b.scalar(n.b.element(n.in(0)), 0))};
}

/// first - second cos(2 pi i / n) + third cos(4 pi i / n): the windows of signal processing.
static Convert cosineWindow(double first, double second, double third) {
  return [=](Node &n) -> Values {
    auto size = n.sizeOf(0, "size");
    Type type = n.elementType(n.integer("output_datatype", 1));
    if (!size || !type)
      return {};
    if (!isa<FloatType>(type))
      return n.refuse("attribute 'output_datatype': expected a float type, found " + describeElement(type));
    SizeExpr period = n.flag("periodic", true) ? *size : *size - SizeExpr(1);
    constexpr double twoPi = 6.283185307179586;
    Value place = n.b.cast(n.b.iota(0, {*size}), n.b.f64());
    Value turn = n.b.div(n.b.mul(place, twoPi), n.b.cast(n.b.reshape(n.b.shape({period}), {}), n.b.f64()));
    Value window = n.b.sub(n.b.scalar(n.b.f64(), first), n.b.mul(n.b.unary(ds::UnaryKind::cos, turn), second));
    if (third != 0)
      window = n.b.add(window, n.b.mul(n.b.unary(ds::UnaryKind::cos, n.b.mul(turn, 2.0)), third));
    return {n.b.cast(window, type)};
  };
}

void addGenerators(PatternRegistry &registry) {
  registry.add("Constant", 1, 0, convertConstant);
  registry.add("Shape", 1, 1, convertShape);
  registry.add("Size", 1, 1, convertSize);
  registry.add("ConstantOfShape", 9, 1, convertConstantOfShape);
  registry.add("Range", 11, 3, convertRange);
  registry.add("EyeLike", 9, 1, convertEyeLike);
  registry.add("OneHot", 9, 3, convertOneHot);
  registry.add("Trilu", 14, 1, convertTrilu);
  registry.add("HannWindow", 17, 1, cosineWindow(0.5, 0.5, 0));
  registry.add("HammingWindow", 17, 1, cosineWindow(25.0 / 46, 21.0 / 46, 0));
  registry.add("BlackmanWindow", 17, 1, cosineWindow(0.42, 0.5, 0.08));
}

} // namespace deepstride::onnx
