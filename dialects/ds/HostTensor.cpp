// Memory, elements and movement of host tensors.
#include "dialects/ds/HostTensor.h"

#include "dialects/ds/HostScalars.h"

#include "llvm/ADT/APFloat.h"

#include <cstring>
#include <limits>

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

int64_t HostTensor::elementBytes() const { return widthOf(element); }

HostTensor HostTensor::allocate(Type element, ArrayRef<int64_t> shape) {
  HostTensor tensor{element, SmallVector<int64_t>(shape), nullptr, nullptr};
  tensor.owned = std::make_shared<std::vector<char>>(static_cast<size_t>(tensor.bytes()));
  tensor.data = tensor.owned->data();
  return tensor;
}

HostTensor HostTensor::fromAttribute(DenseElementsAttr value) {
  HostTensor tensor = allocate(value.getElementType(), value.getType().getShape());
  char *to = tensor.owned->data();
  size_t width = static_cast<size_t>(widthOf(tensor.element));
  ArrayRef<char> raw = value.getRawData();
  if (tensor.element.isInteger(1)) { // booleans are bits in the attribute and bytes in memory
    for (bool element : value.getValues<bool>())
      *to++ = element;
  } else if (auto narrow = dyn_cast<IntegerType>(tensor.element); narrow && narrow.getWidth() < 8) {
    for (const APInt &element : value.getValues<APInt>())
      *to++ = static_cast<char>(narrow.isUnsigned() ? element.getZExtValue() : element.getSExtValue());
  } else if (value.isSplat()) {
    for (int64_t i = 0, n = tensor.count(); i < n; ++i)
      std::memcpy(to + static_cast<size_t>(i) * width, raw.data(), width);
  } else {
    llvm::copy(raw, to); // which may be nothing, to and from nowhere
  }
  return tensor;
}

DenseElementsAttr HostTensor::toAttribute() const {
  auto type = RankedTensorType::get(shape, element);
  if (auto narrow = dyn_cast<IntegerType>(element); narrow && narrow.getWidth() > 1 && narrow.getWidth() < 8) {
    SmallVector<APInt> values;
    for (int64_t i = 0, n = count(); i < n; ++i)
      values.push_back(APInt(narrow.getWidth(), static_cast<uint64_t>(data[i]), false, /*implicitTrunc=*/true));
    return DenseElementsAttr::get(type, values);
  }
  if (!element.isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(data, static_cast<size_t>(bytes())));
  SmallVector<bool> bits(data, data + count());
  return DenseElementsAttr::get(type, bits);
}

HostNumber readNumber(Type element, const char *at) {
  HostNumber number;
  if (element.isF32()) {
    float value;
    std::memcpy(&value, at, sizeof value);
    number.real = static_cast<double>(value);
    return number;
  }
  if (auto floating = dyn_cast<FloatType>(element)) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, static_cast<size_t>(widthOf(element)));
    APFloat value(floating.getFloatSemantics(), APInt(floating.getWidth(), bits));
    if (value.isNaN()) { // the conversion below makes infinity of float8e8m0's
      number.real = std::numeric_limits<double>::quiet_NaN();
      return number;
    }
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

void writeNumber(Type element, char *at, const HostNumber &number) {
  if (element.isF32()) {
    float value = static_cast<float>(number.real);
    std::memcpy(at, &value, sizeof value);
    return;
  }
  if (auto floating = dyn_cast<FloatType>(element)) {
    APFloat value(number.real);
    bool lost;
    value.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = value.bitcastToAPInt().getZExtValue();
    std::memcpy(at, &bits, static_cast<size_t>(widthOf(element)));
    return;
  }
  int64_t bits = number.integer;
  if (unsigned width = element.getIntOrFloatBitWidth(); width > 1 && width < 8) { // extended to its byte
    unsigned shift = 64 - width;
    auto high = static_cast<uint64_t>(bits) << shift;
    bits = element.isUnsignedInteger() ? static_cast<int64_t>(high >> shift) : static_cast<int64_t>(high) >> shift;
  }
  std::memcpy(at, &bits, static_cast<size_t>(widthOf(element)));
}

int64_t broadcastOffset(int64_t flat, ArrayRef<int64_t> shape, ArrayRef<int64_t> own) {
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
  HostTensor result = HostTensor::allocate(source.element, shape);
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

HostTensor transposeOnHost(const HostTensor &source, ArrayRef<int64_t> permutation) {
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

HostTensor sliceOnHost(const HostTensor &source, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes,
                       ArrayRef<int64_t> steps) {
  SmallVector<int64_t> strides = stridesOf(source.shape);
  return permuted(source, sizes, [&](int64_t flat) {
    int64_t offset = 0;
    for (size_t i = sizes.size(); i-- > 0; flat /= sizes[i])
      offset += (starts[i] + flat % sizes[i] * steps[i]) * strides[i];
    return offset;
  });
}

HostTensor concatOnHost(ArrayRef<HostTensor> parts, int64_t axis) {
  SmallVector<int64_t> shape = parts.front().shape;
  shape[axis] = 0;
  for (const HostTensor &part : parts)
    shape[axis] += part.shape[axis];
  HostTensor result = HostTensor::allocate(parts.front().element, shape);
  int64_t outer = 1;
  for (int64_t i = 0; i < axis; ++i)
    outer *= shape[i];
  char *to = result.owned->data();
  for (int64_t block = 0; block < outer; ++block)
    for (const HostTensor &part : parts) {
      int64_t length = part.bytes() / outer;
      std::copy_n(part.data + block * length, length, to);
      to += length;
    }
  return result;
}

/// Integers of 4 bits, rows two by two in a byte: the even one in its low half. `interleave` is even.
static HostTensor packHalfBytes(const HostTensor &source, int64_t panel, int64_t interleave) {
  int64_t depth = source.shape[0], columns = source.shape[1], panels = (columns + panel - 1) / panel;
  int64_t groups = (depth + interleave - 1) / interleave, bytes = interleave / 2;
  HostTensor result =
      HostTensor::allocate(IntegerType::get(source.element.getContext(), 8), {panels, groups, panel * bytes});
  for (int64_t row = 0; row < depth; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t line = (column / panel * groups + row / interleave) * panel + column % panel;
      char &byte = (*result.owned)[line * bytes + row % interleave / 2];
      byte = static_cast<char>(byte | (source.data[row * columns + column] & 15) << (row % 2 * 4));
    }
  return result;
}

HostTensor packOnHost(const HostTensor &source, int64_t panel, int64_t interleave) {
  if (source.element.isInteger(4))
    return packHalfBytes(source, panel, interleave);
  int64_t depth = source.shape[0], columns = source.shape[1], panels = (columns + panel - 1) / panel;
  int64_t groups = (depth + interleave - 1) / interleave, width = widthOf(source.element);
  HostTensor result = HostTensor::allocate(source.element, {panels, groups, panel * interleave});
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t row = 0; row < depth; ++row) {
      const char *from = source.data + (row * columns + p * panel) * width;
      int64_t line = (p * groups + row / interleave) * panel * interleave + row % interleave;
      char *to = result.owned->data() + line * width;
      int64_t count = std::min(panel, columns - p * panel);
      if (interleave == 1)
        std::memcpy(to, from, static_cast<size_t>(count * width));
      else
        for (int64_t column = 0; column < count; ++column)
          std::memcpy(to + column * interleave * width, from + column * width, static_cast<size_t>(width));
    }
  return result;
}

HostTensor broadcastOnHost(const HostTensor &source, ArrayRef<int64_t> shape) {
  return permuted(source, shape, [&](int64_t flat) { return broadcastOffset(flat, shape, source.shape); });
}

std::optional<HostTensor> gatherOnHost(const HostTensor &source, const HostTensor &indices, int64_t axis,
                                       ArrayRef<int64_t> shape) {
  HostTensor result = HostTensor::allocate(source.element, shape);
  int64_t outer = 1, size = source.shape[axis], count = indices.count(), width = widthOf(indices.element);
  for (int64_t i = 0; i < axis; ++i)
    outer *= source.shape[i];
  int64_t slice = outer * size ? source.bytes() / (outer * size) : 0;
  char *to = result.owned->data();
  auto index = ElementInfo::of(indices.element);
  if (!index || index->isFloat)
    return std::nullopt;
  for (int64_t block = 0; block < outer; ++block)
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = readScalar(*index, indices.data + i * width).integer;
      at += at < 0 ? size : 0;
      if (at < 0 || at >= size)
        return std::nullopt;
      std::copy_n(source.data + (block * size + at) * slice, slice, to);
      to += slice;
    }
  return result;
}

} // namespace deepstride
