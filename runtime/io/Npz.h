// .npz: a zip of .npy files, one per tensor.
#ifndef DEEPSTRIDE_RUNTIME_IO_NPZ_H
#define DEEPSTRIDE_RUNTIME_IO_NPZ_H

#include "runtime/core/Tensor.h"

#include <string>
#include <vector>

namespace ds {

// In the order of the file; names without ".npy". Throws Error naming file and member.
std::vector<NamedTensor> readNpz(const std::string &path);

// Complete under its name or not there at all. Types that NumPy lacks are widened to f32.
void writeNpz(const std::string &path, const std::vector<NamedTensor> &tensors);

} // namespace ds
#endif
