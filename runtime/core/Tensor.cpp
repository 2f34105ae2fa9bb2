#include "runtime/core/Tensor.h"

#include "runtime/core/BufferMemory.h"
#include "runtime/core/Error.h"

#include <cstring>
#include <limits>
#include <unistd.h>
#include <utility>

namespace ds {
namespace {
constexpr size_t alignment = 64;

size_t physicalMemory() {
  static const size_t bytes = [] {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(size)
                                 : std::numeric_limits<size_t>::max() / 2;
  }();
  return bytes;
}
} // namespace

uint8_t *AlignedBuffer::emptyData() {
  alignas(alignment) static uint8_t nothing[alignment];
  return nothing;
}

AlignedBuffer &AlignedBuffer::operator=(AlignedBuffer &&other) noexcept {
  if (this == &other)
    return *this;
  release();
  memory = std::exchange(other.memory, nullptr);
  size = std::exchange(other.size, 0);
  isBorrowed = std::exchange(other.isBorrowed, false);
  owner = std::exchange(other.owner, nullptr);
  return *this;
}

AlignedBuffer AlignedBuffer::over(uint8_t *memory, size_t bytes, std::shared_ptr<void> owner) {
  AlignedBuffer buffer;
  buffer.memory = memory;
  buffer.size = bytes;
  buffer.isBorrowed = true;
  buffer.owner = std::move(owner);
  return buffer;
}

void AlignedBuffer::reserve(size_t bytes) {
  if (areBoundsWatched() ? memory && bytes == size : bytes <= size)
    return;
  release();
  // A system that overcommits would grant it and end the process at first touch.
  if (bytes > physicalMemory())
    fail(ErrorCode::OutOfMemory, "cannot allocate ", bytes, " bytes, this machine has ", physicalMemory());
  size_t granted = 0;
  memory = takeMemory(bytes, granted);
  if (!memory)
    fail(ErrorCode::OutOfMemory, "cannot allocate ", bytes, " bytes");
  size = granted;
}

void AlignedBuffer::release() {
  if (memory && !isBorrowed)
    giveMemory(memory, size);
  memory = nullptr;
  size = 0;
  isBorrowed = false;
  owner.reset();
}

int64_t elementCount(const Shape &shape) {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      fail(ErrorCode::ShapeMismatch, "shape ", listText(shape), " has a negative dimension");
    empty |= dim == 0;
    overflow |= __builtin_mul_overflow(count, dim, &count);
  }
  if (empty)
    return 0;
  if (overflow)
    fail(ErrorCode::ShapeMismatch, "shape ", listText(shape), " has more elements than 64 bits can count");
  return count;
}

size_t byteCount(ElementType type, const Shape &shape) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elementCount(shape), static_cast<int64_t>(typeSize(type)), &bytes))
    fail(ErrorCode::ShapeMismatch, "shape ", listText(shape), " has more bytes than 64 bits can count");
  return static_cast<size_t>(bytes);
}

void convertElements(ElementType from, const void *source, ElementType to, void *data, int64_t count, int64_t first) {
  for (int64_t i = 0; i < count; ++i) {
    size_t at = static_cast<size_t>(i);
    storeDouble(to, data, at, loadDouble(from, source, at));
    if (isInteger(to) && loadInteger(to, data, at) != loadInteger(from, source, at))
      fail(ErrorCode::ShapeMismatch, "element ", first + i, ": found ", loadInteger(from, source, at), ", which ",
           typeName(to), " cannot hold");
  }
}

Tensor Tensor::over(ElementType type, Shape shape, void *memory, std::shared_ptr<void> owner) {
  Tensor tensor;
  tensor.type = type;
  tensor.elements = elementCount(shape);
  tensor.shape = std::move(shape);
  tensor.memory = AlignedBuffer::over(static_cast<uint8_t *>(memory), tensor.bytes(), std::move(owner));
  return tensor;
}

void Tensor::reset(ElementType newType, Shape newShape) {
  memory.reserve(byteCount(newType, newShape));
  elements = elementCount(newShape);
  type = newType;
  shape = std::move(newShape);
}

Tensor Tensor::converted(ElementType to) const {
  Tensor result(to, shape);
  convertElements(type, data(), to, result.data(), elements);
  return result;
}

Tensor Tensor::clone() const {
  Tensor result(type, shape);
  std::memcpy(result.data(), data(), bytes());
  return result;
}

} // namespace ds
