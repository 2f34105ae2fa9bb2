// How states lie in files, and how much of them is in memory at most: what StateFiles does, and what a plan says of it.
#ifndef DEEPSTRIDE_RUNTIME_CORE_FILEPIECES_H
#define DEEPSTRIDE_RUNTIME_CORE_FILEPIECES_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

namespace ds {

size_t wholePages(size_t bytes);

// A state of so many bytes: whole pages, as one piece, or in pieces of at most `pieceBytes` if it has more, of which
// the last one may be shorter.
struct FilePieces {
  FilePieces(size_t bytes, size_t pieceBytes);
  size_t bytes, piece;
};

// The states of one class, of whose pieces so many are in memory at a time.
class FileResidence {
public:
  explicit FileResidence(int64_t buffers) : buffers(static_cast<uint64_t>(buffers)) {}
  void add(const FilePieces &state);

  uint64_t bytes() const { return total; } // in the file
  // In memory at most, whatever the order in which pieces are used: the largest ones.
  struct Resident {
    uint64_t pieces = 0, bytes = 0;
  };
  Resident resident() const;

private:
  uint64_t buffers, total = 0;
  std::map<uint64_t, uint64_t, std::greater<>> pieces; // how many, by their bytes
};

} // namespace ds
#endif
