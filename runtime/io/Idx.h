// IDX, the format of MNIST and its kin: a magic number, sizes, elements, all big-endian; plain or gzipped.
#ifndef DEEPSTRIDE_RUNTIME_IO_IDX_H
#define DEEPSTRIDE_RUNTIME_IO_IDX_H

#include "runtime/core/Tensor.h"

#include <string>

namespace ds {

// Throws Error naming the file.
Tensor readIdx(const std::string &path);

} // namespace ds
#endif
