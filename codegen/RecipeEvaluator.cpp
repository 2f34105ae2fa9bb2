// Floats are computed in double and rounded to the element type after every op, integers in 64 bits.
#include "codegen/RecipeEvaluator.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace deepstride {

static int64_t widthOf(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

int64_t HostTensor::count() const {
  int64_t result = 1;
  for (int64_t size : shape)
    result *= size;
  return result;
}

int64_t HostTensor::bytes() const { return count() * widthOf(element); }

static HostTensor allocate(Type element, ArrayRef<int64_t> shape) {
  HostTensor tensor{element, SmallVector<int64_t>(shape), nullptr, nullptr};
  tensor.owned = std::make_shared<std::vector<char>>(static_cast<size_t>(tensor.bytes()));
  tensor.data = tensor.owned->data();
  return tensor;
}

namespace {
struct Number {
  double real = 0;
  int64_t integer = 0;
};
} // namespace

static Number readNumber(Type element, const char *at) {
  Number number;
  if (auto floating = dyn_cast<FloatType>(element)) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, static_cast<size_t>(widthOf(element)));
    APFloat value(floating.getFloatSemantics(), APInt(floating.getWidth(), bits));
    bool lost;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    number.real = value.convertToDouble();
    return number;
  }
  uint64_t bits = 0;
  int64_t width = widthOf(element);
  std::memcpy(&bits, at, static_cast<size_t>(width));
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  unsigned shift = static_cast<unsigned>(64 - 8 * width);
  number.integer = isUnsigned ? static_cast<int64_t>(bits) : static_cast<int64_t>(bits << shift) >> shift;
  number.real = element.isUnsignedInteger(64) ? static_cast<double>(bits) : static_cast<double>(number.integer);
  return number;
}

static void writeNumber(Type element, char *at, const Number &number) {
  if (auto floating = dyn_cast<FloatType>(element)) {
    APFloat value(number.real);
    bool lost;
    value.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = value.bitcastToAPInt().getZExtValue();
    std::memcpy(at, &bits, static_cast<size_t>(widthOf(element)));
    return;
  }
  std::memcpy(at, &number.integer, static_cast<size_t>(widthOf(element)));
}

/// Offset of a row-major position of `shape` in a tensor that NumPy broadcasts to it.
static int64_t broadcastOffset(int64_t flat, ArrayRef<int64_t> shape, ArrayRef<int64_t> own) {
  int64_t offset = 0, stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    int64_t position = flat % shape[i];
    flat /= shape[i];
    int64_t axis = static_cast<int64_t>(i) - static_cast<int64_t>(shape.size() - own.size());
    if (axis < 0)
      break;
    offset += (own[axis] == 1 ? 0 : position) * stride;
    stride *= own[axis];
  }
  return offset;
}

/// result[i] = source[offsetOf(i)], element by element.
static HostTensor permuted(const HostTensor &source, ArrayRef<int64_t> shape,
                           llvm::function_ref<int64_t(int64_t)> offsetOf) {
  HostTensor result = allocate(source.element, shape);
  int64_t width = widthOf(source.element);
  for (int64_t i = 0, n = result.count(); i < n; ++i)
    std::memcpy(result.owned->data() + i * width, source.data + offsetOf(i) * width, static_cast<size_t>(width));
  return result;
}

static SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

static HostTensor transpose(const HostTensor &source, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape, strides = stridesOf(source.shape), moved;
  for (int64_t axis : permutation) {
    shape.push_back(source.shape[axis]);
    moved.push_back(strides[axis]);
  }
  return permuted(source, shape, [&](int64_t flat) {
    int64_t offset = 0;
    for (size_t i = shape.size(); i-- > 0; flat /= shape[i])
      offset += flat % shape[i] * moved[i];
    return offset;
  });
}

static HostTensor slice(const HostTensor &source, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes,
                        ArrayRef<int64_t> steps) {
  SmallVector<int64_t> strides = stridesOf(source.shape);
  return permuted(source, sizes, [&](int64_t flat) {
    int64_t offset = 0;
    for (size_t i = sizes.size(); i-- > 0; flat /= sizes[i])
      offset += (starts[i] + flat % sizes[i] * steps[i]) * strides[i];
    return offset;
  });
}

static HostTensor concat(ArrayRef<HostTensor> parts, int64_t axis) {
  SmallVector<int64_t> shape = parts.front().shape;
  shape[axis] = 0;
  for (const HostTensor &part : parts)
    shape[axis] += part.shape[axis];
  HostTensor result = allocate(parts.front().element, shape);
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i)
    outer *= shape[i];
  char *to = result.owned->data();
  for (int64_t block = 0; block < outer; ++block)
    for (const HostTensor &part : parts) {
      int64_t length = part.bytes() / outer;
      std::memcpy(to, part.data + block * length, static_cast<size_t>(length));
      to += length;
    }
  return result;
}

static HostTensor pack(const HostTensor &source, int64_t panel) {
  int64_t depth = source.shape[0], columns = source.shape[1], panels = (columns + panel - 1) / panel;
  HostTensor result = allocate(source.element, {panels, depth, panel});
  int64_t width = widthOf(source.element);
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t row = 0; row < depth; ++row) {
      int64_t count = std::min(panel, columns - p * panel);
      std::memcpy(result.owned->data() + (p * depth + row) * panel * width,
                  source.data + (row * columns + p * panel) * width, static_cast<size_t>(count * width));
    }
  return result;
}

static std::optional<double> realFunction(ds::UnaryKind kind, double x) {
  switch (kind) {
  case ds::UnaryKind::exp:
    return std::exp(x);
  case ds::UnaryKind::log:
    return std::log(x);
  case ds::UnaryKind::sqrt:
    return std::sqrt(x);
  case ds::UnaryKind::reciprocal:
    return 1.0 / x;
  case ds::UnaryKind::erf:
    return std::erf(x);
  case ds::UnaryKind::tanh:
    return std::tanh(x);
  case ds::UnaryKind::sigmoid:
    return 1.0 / (1.0 + std::exp(-x));
  case ds::UnaryKind::sin:
    return std::sin(x);
  case ds::UnaryKind::cos:
    return std::cos(x);
  case ds::UnaryKind::tan:
    return std::tan(x);
  case ds::UnaryKind::asin:
    return std::asin(x);
  case ds::UnaryKind::acos:
    return std::acos(x);
  case ds::UnaryKind::atan:
    return std::atan(x);
  case ds::UnaryKind::sinh:
    return std::sinh(x);
  case ds::UnaryKind::cosh:
    return std::cosh(x);
  case ds::UnaryKind::asinh:
    return std::asinh(x);
  case ds::UnaryKind::acosh:
    return std::acosh(x);
  case ds::UnaryKind::atanh:
    return std::atanh(x);
  case ds::UnaryKind::floor:
    return std::floor(x);
  case ds::UnaryKind::ceil:
    return std::ceil(x);
  case ds::UnaryKind::round:
    return std::nearbyint(x);
  default:
    return std::nullopt;
  }
}

static std::optional<Number> applyUnary(ds::UnaryKind kind, const Number &x, bool isFloat) {
  switch (kind) {
  case ds::UnaryKind::neg:
    return Number{-x.real, static_cast<int64_t>(0 - static_cast<uint64_t>(x.integer))};
  case ds::UnaryKind::abs:
    return Number{std::fabs(x.real), x.integer < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x.integer))
                                                   : x.integer};
  case ds::UnaryKind::relu:
    return Number{std::isnan(x.real) || x.real > 0 ? x.real : 0.0, std::max<int64_t>(x.integer, 0)};
  case ds::UnaryKind::sign:
    return Number{x.real > 0 ? 1.0 : x.real < 0 ? -1.0 : x.real, x.integer > 0 ? 1 : x.integer < 0 ? -1 : 0};
  case ds::UnaryKind::logical_not:
    return Number{0.0, x.integer == 0};
  case ds::UnaryKind::bitwise_not:
    return Number{0.0, ~x.integer};
  case ds::UnaryKind::is_nan:
    return Number{0.0, std::isnan(x.real)};
  default:
    break;
  }
  auto value = isFloat ? realFunction(kind, x.real) : std::nullopt;
  return value ? std::optional(Number{*value, 0}) : std::nullopt;
}

static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

static std::optional<Number> applyBinary(ds::BinaryKind kind, const Number &x, const Number &y, bool isFloat) {
  uint64_t a = static_cast<uint64_t>(x.integer), b = static_cast<uint64_t>(y.integer);
  auto truth = [&](bool real, bool integer) { return Number{0.0, isFloat ? real : integer}; };
  switch (kind) {
  case ds::BinaryKind::add:
    return Number{x.real + y.real, wrap(a + b)};
  case ds::BinaryKind::sub:
    return Number{x.real - y.real, wrap(a - b)};
  case ds::BinaryKind::mul:
    return Number{x.real * y.real, wrap(a * b)};
  case ds::BinaryKind::div:
    if (!isFloat && y.integer == 0)
      return std::nullopt;
    return Number{x.real / y.real, isFloat ? 0 : y.integer == -1 ? wrap(0 - a) : x.integer / y.integer};
  case ds::BinaryKind::fmod:
  case ds::BinaryKind::mod: {
    if (!isFloat && y.integer == 0)
      return std::nullopt;
    bool floored = kind == ds::BinaryKind::mod;
    double real = std::fmod(x.real, y.real);
    int64_t integer = isFloat || y.integer == -1 ? 0 : x.integer % y.integer;
    if (floored && real != 0 && (real < 0) != (y.real < 0))
      real += y.real;
    if (floored && integer != 0 && (integer < 0) != (y.integer < 0))
      integer += y.integer;
    return Number{real, integer};
  }
  case ds::BinaryKind::pow:
    return Number{std::pow(x.real, y.real), isFloat ? 0 : static_cast<int64_t>(std::pow(x.real, y.real))};
  case ds::BinaryKind::min:
    return Number{std::isnan(x.real) || x.real < y.real ? x.real : y.real, std::min(x.integer, y.integer)};
  case ds::BinaryKind::max:
    return Number{std::isnan(x.real) || x.real > y.real ? x.real : y.real, std::max(x.integer, y.integer)};
  case ds::BinaryKind::bit_and:
    return Number{0.0, x.integer & y.integer};
  case ds::BinaryKind::bit_or:
    return Number{0.0, x.integer | y.integer};
  case ds::BinaryKind::bit_xor:
    return Number{0.0, x.integer ^ y.integer};
  case ds::BinaryKind::eq:
    return truth(x.real == y.real, x.integer == y.integer);
  case ds::BinaryKind::ne:
    return truth(x.real != y.real, x.integer != y.integer);
  case ds::BinaryKind::lt:
    return truth(x.real < y.real, x.integer < y.integer);
  case ds::BinaryKind::le:
    return truth(x.real <= y.real, x.integer <= y.integer);
  case ds::BinaryKind::gt:
    return truth(x.real > y.real, x.integer > y.integer);
  case ds::BinaryKind::ge:
    return truth(x.real >= y.real, x.integer >= y.integer);
  case ds::BinaryKind::shift_left:
    return Number{0.0, b < 64 ? wrap(a << b) : 0};
  case ds::BinaryKind::shift_right:
    return Number{0.0, b < 64 ? wrap(a >> b) : 0};
  }
  return std::nullopt;
}

FailureOr<HostTensor> RecipeEvaluator::readSource(ds::SourceOp source) {
  std::unique_ptr<llvm::MemoryBuffer> &file = files[source.getFile()];
  if (!file) {
    auto opened = llvm::MemoryBuffer::getFile(source.getFile(), /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!opened) {
      source.emitError("cannot read '") << source.getFile() << "': " << opened.getError().message();
      return failure();
    }
    file = std::move(*opened);
  }
  uint64_t offset = source.getOffset(), length = source.getLength();
  if (offset > file->getBufferSize() || length > file->getBufferSize() - offset) {
    source.emitError("expected ") << length << " bytes at offset " << offset << " of '" << source.getFile()
                                  << "', which has " << file->getBufferSize();
    return failure();
  }
  auto type = cast<RankedTensorType>(source.getType());
  return HostTensor{type.getElementType(), SmallVector<int64_t>(type.getShape()), file->getBufferStart() + offset,
                    nullptr};
}

/// Slices of `source` along one axis; nothing where an index is outside of it.
static std::optional<HostTensor> gather(const HostTensor &source, const HostTensor &indices, int64_t axis,
                                        ArrayRef<int64_t> shape) {
  HostTensor result = allocate(source.element, shape);
  int64_t outer = 1, size = source.shape[axis], count = indices.count(), width = widthOf(indices.element);
  for (int64_t i = 0; i < axis; ++i)
    outer *= source.shape[i];
  int64_t slice = outer * size ? source.bytes() / (outer * size) : 0;
  char *to = result.owned->data();
  for (int64_t block = 0; block < outer; ++block)
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = readNumber(indices.element, indices.data + i * width).integer;
      at += at < 0 ? size : 0;
      if (at < 0 || at >= size)
        return std::nullopt;
      std::memcpy(to, source.data + (block * size + at) * slice, static_cast<size_t>(slice));
      to += slice;
    }
  return result;
}

static std::optional<SmallVector<int64_t>> constants(ArrayAttr sizes) {
  SmallVector<int64_t> result;
  for (Attribute size : sizes) {
    auto value = sizeFromAttribute(size);
    if (!value || !value->constant())
      return std::nullopt;
    result.push_back(*value->constant());
  }
  return result;
}

static HostTensor fromAttribute(DenseElementsAttr value) {
  HostTensor tensor = allocate(value.getElementType(), value.getType().getShape());
  char *to = tensor.owned->data();
  size_t width = static_cast<size_t>(widthOf(tensor.element));
  ArrayRef<char> raw = value.getRawData();
  if (tensor.element.getIntOrFloatBitWidth() % 8 != 0) { // booleans are bits in the attribute and bytes in memory
    for (bool element : value.getValues<bool>())
      *to++ = element;
  } else if (value.isSplat()) {
    for (int64_t i = 0, n = tensor.count(); i < n; ++i)
      std::memcpy(to + static_cast<size_t>(i) * width, raw.data(), width);
  } else {
    std::memcpy(to, raw.data(), raw.size());
  }
  return tensor;
}

FailureOr<HostTensor> RecipeEvaluator::evaluateOp(Operation *op, ArrayRef<HostTensor> operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto source = dyn_cast<ds::SourceOp>(op))
    return readSource(source);
  if (auto constant = dyn_cast<ds::ConstantOp>(op))
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return fromAttribute(dense);
  if (isa<ds::ReshapeOp>(op)) {
    HostTensor result = operands[0];
    result.shape = SmallVector<int64_t>(type.getShape());
    return result;
  }
  if (auto moved = dyn_cast<ds::TransposeOp>(op))
    return transpose(operands[0], moved.getPermutation());
  if (auto joined = dyn_cast<ds::ConcatOp>(op))
    return concat(operands, joined.getAxis());
  if (auto packed = dyn_cast<ds::PackOp>(op))
    return pack(operands[0], packed.getPanel());
  if (isa<ds::BroadcastOp>(op))
    return permuted(operands[0], type.getShape(), [&](int64_t flat) {
      return broadcastOffset(flat, type.getShape(), operands[0].shape);
    });
  if (auto taken = dyn_cast<ds::GatherOp>(op))
    if (auto result = gather(operands[0], operands[1], taken.getAxis(), type.getShape()))
      return *result;
  if (auto box = dyn_cast<ds::SliceOp>(op))
    if (auto starts = constants(box.getStarts()))
      return slice(operands[0], *starts, type.getShape(), box.getSteps());
  if (isa<ds::CastOp, ds::UnaryOp, ds::BinaryOp>(op)) {
    HostTensor result = allocate(type.getElementType(), type.getShape());
    bool fromFloat = isa<FloatType>(operands[0].element), toFloat = isa<FloatType>(result.element);
    int64_t width = widthOf(result.element);
    for (int64_t i = 0, n = result.count(); i < n; ++i) {
      auto read = [&](const HostTensor &tensor) {
        int64_t at = broadcastOffset(i, type.getShape(), tensor.shape);
        return readNumber(tensor.element, tensor.data + at * widthOf(tensor.element));
      };
      std::optional<Number> value;
      if (auto unary = dyn_cast<ds::UnaryOp>(op))
        value = applyUnary(unary.getKind(), read(operands[0]), fromFloat);
      else if (auto binary = dyn_cast<ds::BinaryOp>(op))
        value = applyBinary(binary.getKind(), read(operands[0]), read(operands[1]), fromFloat);
      else {
        value = read(operands[0]);
        if (result.element.isInteger(1))
          value->integer = fromFloat ? value->real != 0 : value->integer != 0;
        else if (fromFloat && !toFloat)
          value->integer = std::fabs(value->real) < 9.2e18 ? static_cast<int64_t>(value->real) : INT64_MIN;
      }
      if (!value) {
        op->emitError("cannot be evaluated while packaging");
        return failure();
      }
      writeNumber(result.element, result.owned->data() + i * width, *value);
    }
    return result;
  }
  op->emitError("cannot be evaluated while packaging");
  return failure();
}

FailureOr<HostTensor> RecipeEvaluator::evaluate(ds::RecipeOp recipe) {
  llvm::DenseMap<Value, HostTensor> values;
  for (Operation &op : recipe.getBody().front()) {
    if (auto yield = dyn_cast<ds::YieldOp>(op))
      return values.lookup(yield.getOperand(0));
    SmallVector<HostTensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    auto result = evaluateOp(&op, operands);
    if (failed(result))
      return failure();
    values[op.getResult(0)] = std::move(*result);
  }
  return failure();
}

} // namespace deepstride
