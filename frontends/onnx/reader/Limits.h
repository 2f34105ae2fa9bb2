// Bounds on what the reader accepts from a model file, which is treated as written by an attacker.

#ifndef FRONTENDS_ONNX_READER_LIMITS_H
#define FRONTENDS_ONNX_READER_LIMITS_H

#include <cstdint>

namespace deepstride::onnx {

struct ImportLimits {
  /// Subgraphs inside subgraphs and functions calling functions, counted together.
  unsigned depth = 64;
  /// Nodes of all graphs, after functions are inlined.
  uint64_t nodes = 1'000'000;
  /// Nodes, attributes, tensors, names and types in the file: each costs far more memory than its
  /// two bytes in the file.
  uint64_t fields = 16'000'000;
  /// Bytes of the file without the payloads of tensors.
  uint64_t structureBytes = uint64_t{512} << 20;
  unsigned rank = 32;
  /// Tensors up to this size are elements in the IR, larger ones ranges of a file.
  uint64_t elementBytes = 4096;
};

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_LIMITS_H
