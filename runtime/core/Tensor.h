// Dense row-major host tensors: an owner (Tensor) and a non-owning view (TensorView).
#ifndef DEEPSTRIDE_RUNTIME_CORE_TENSOR_H
#define DEEPSTRIDE_RUNTIME_CORE_TENSOR_H

#include "runtime/core/ElementType.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ds {

// 64-byte aligned memory, unless its bounds are watched (BufferMemory.h). Never null: a buffer of zero bytes still has
// an address that may be passed to a kernel.
class AlignedBuffer {
public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes) { reserve(bytes); }
  AlignedBuffer(AlignedBuffer &&other) noexcept { *this = std::move(other); }
  AlignedBuffer &operator=(AlignedBuffer &&other) noexcept;
  ~AlignedBuffer() { release(); }

  // Somebody else's memory, 64-byte aligned or not, that must live longer, or that `owner` keeps.
  static AlignedBuffer over(uint8_t *memory, size_t bytes, std::shared_ptr<void> owner = nullptr);

  // Makes room for the bytes; the contents are lost when the memory has to change.
  void reserve(size_t bytes);
  void release();

  uint8_t *data() const { return memory ? memory : emptyData(); }
  size_t capacity() const { return size; }
  bool isOfOthers() const { return isBorrowed; }

private:
  static uint8_t *emptyData();

  uint8_t *memory = nullptr;
  size_t size = 0;
  bool isBorrowed = false;
  std::shared_ptr<void> owner; // of memory that is borrowed
};

using Shape = std::vector<int64_t>;

// Number of elements; throws when a dimension is negative or the product does not fit.
int64_t elementCount(const Shape &shape);
// Bytes of a dense tensor; throws as elementCount does.
size_t byteCount(ElementType type, const Shape &shape);

// Elements as those of another type: floats are rounded, integers must fit. Throws Error(ShapeMismatch) naming the
// element; `first` is the number of the first.
void convertElements(ElementType from, const void *source, ElementType to, void *data, int64_t count,
                     int64_t first = 0);

struct TensorView {
  ElementType type = ElementType::F32;
  Shape shape;
  const void *data = nullptr;

  size_t bytes() const { return byteCount(type, shape); }
};

class Tensor {
public:
  Tensor() = default;
  Tensor(ElementType type, Shape shape) { reset(type, std::move(shape)); }

  // A tensor in somebody else's memory, which must live longer, or that `owner` keeps.
  static Tensor over(ElementType type, Shape shape, void *memory, std::shared_ptr<void> owner = nullptr);

  // Takes another type and shape; keeps the memory when it is large enough. The contents are then unspecified.
  void reset(ElementType type, Shape shape);
  // The same tensor with another element type; throws as convertElements does.
  Tensor converted(ElementType to) const;

  ElementType getType() const { return type; }
  const Shape &getShape() const { return shape; }
  int64_t count() const { return elements; }
  size_t bytes() const { return static_cast<size_t>(elements) * typeSize(type); }
  uint8_t *data() { return memory.data(); }
  const uint8_t *data() const { return memory.data(); }
  bool isBorrowed() const { return memory.isOfOthers(); } // in somebody else's memory
  TensorView view() const { return {type, shape, memory.data()}; }
  Tensor clone() const;

private:
  ElementType type = ElementType::F32;
  Shape shape;
  int64_t elements = 0;
  AlignedBuffer memory;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct NamedView {
  std::string name;
  TensorView view;
};

} // namespace ds
#endif
