// SHA256SUMS of a package: every byte of every file is covered, weights.bin by chunks so that it is verified in
// parallel and a fault is named closely.
#ifndef DEEPSTRIDE_RUNTIME_CORE_CHECKSUMS_H
#define DEEPSTRIDE_RUNTIME_CORE_CHECKSUMS_H

#include "runtime/core/PackageFiles.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ds {

std::string sha256Hex(const void *data, size_t bytes);

struct ChecksumLine {
  std::string digest; // 64 lower-case hex digits
  std::string file;
  uint64_t offset = 0, length = 0; // of the chunk
  bool isChunk = false;
};

// Parses the text of SHA256SUMS, its own digest included. Throws Error(BadPackage) naming SHA256SUMS and the line.
std::vector<ChecksumLine> parseChecksums(const std::string &text);

struct ChecksumFault {
  std::string file, message;
  uint64_t offset = 0, length = 0;
  bool isChunk = false;
};

class Checksums {
public:
  // Throws Error for missing and additional files, and for those of another size.
  explicit Checksums(const PackageFiles &package);

  // Checks what is chosen, in parallel; returns altered files and chunks, small files first, so that the caller can
  // name what lies in a chunk.
  using Choice = std::function<bool(const ChecksumLine &)>;
  std::vector<ChecksumFault> verify(unsigned threads, const Choice &isWanted) const;

private:
  std::vector<ChecksumLine> lines;
  std::map<std::string, MappedFile> files;
};

} // namespace ds
#endif
