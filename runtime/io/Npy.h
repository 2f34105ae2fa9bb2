// NumPy's .npy format, versions 1 to 3, from and to memory.
#ifndef DEEPSTRIDE_RUNTIME_IO_NPY_H
#define DEEPSTRIDE_RUNTIME_IO_NPY_H

#include "runtime/core/Tensor.h"

#include <cstdint>
#include <functional>
#include <string>

namespace ds {

struct NpyHeader {
  ElementType type = ElementType::F32;
  Shape shape;
  bool isFortran = false, isBigEndian = false;
};

// Copies the next bytes of a file to where it is told. Never asked for more than there are.
using NpyRead = std::function<void(void *data, size_t bytes)>;

// Reads a header from the start of a file of so many bytes; they hold all of its elements. Throws as parseNpy does.
NpyHeader readNpyHeader(uint64_t bytes, const NpyRead &read);

// Reads the next elements, in our byte order. In Fortran order they must be all.
void readNpyData(const NpyHeader &header, const NpyRead &read, size_t elements, void *data);

// Accepts either byte order and Fortran order; gives a dense row-major tensor. Throws Error(BadFile) without the file's
// name: callers annotate.
Tensor parseNpy(const uint8_t *data, size_t bytes);

// The header for a tensor; its dense bytes follow. Types that NumPy lacks are converted first (npyType).
std::string npyHeader(ElementType type, const Shape &shape);

Tensor readNpy(const std::string &path);
void writeNpy(const std::string &path, const Tensor &tensor); // atomic

} // namespace ds
#endif
