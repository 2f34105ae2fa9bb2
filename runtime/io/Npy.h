// NumPy's .npy format, versions 1 to 3, from and to memory.
#ifndef DEEPSTRIDE_RUNTIME_IO_NPY_H
#define DEEPSTRIDE_RUNTIME_IO_NPY_H

#include "runtime/core/Tensor.h"

#include <string>

namespace ds {

// Accepts either byte order and Fortran order; gives a dense row-major tensor. Throws Error(BadFile) without the file's
// name: callers annotate.
Tensor parseNpy(const uint8_t *data, size_t bytes);

// The header for a tensor; its dense bytes follow. Types that NumPy lacks are converted first (npyType).
std::string npyHeader(ElementType type, const Shape &shape);

Tensor readNpy(const std::string &path);
void writeNpy(const std::string &path, const Tensor &tensor); // atomic

} // namespace ds
#endif
