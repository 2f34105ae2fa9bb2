// Splits the bytes of an ONNX file into its structure and its payloads. Protobuf would copy every
// tensor into the process and forget where it came from; here the bulky fields are left in the
// mapped file and protobuf gets a copy of the rest, the skeleton.

#ifndef FRONTENDS_ONNX_READER_SKELETON_H
#define FRONTENDS_ONNX_READER_SKELETON_H

#include "frontends/onnx/reader/Limits.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace deepstride::onnx {

struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

/// What a tensor's `raw_data` holds in the skeleton: one of these letters, then the bytes of the
/// original field (Inline) or the index of a payload as 8 bytes.
enum class PayloadKind : char { Inline = 'i', Raw = 'r', Floats = 'f', Doubles = 'd' };

struct Skeleton {
  /// A serialized ModelProto with the fields that the importer reads and no others.
  std::string bytes;
  /// Where in the file the payloads are.
  std::vector<ByteRange> payloads;
};

/// Fields of a tensor above this many bytes become payloads.
constexpr uint64_t payloadThreshold = 1024;

llvm::Expected<Skeleton> splitPayloads(llvm::ArrayRef<uint8_t> file, const ImportLimits &limits);

/// Nesting of protobuf messages that a model within the limits can have.
unsigned messageDepth(const ImportLimits &limits);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_SKELETON_H
