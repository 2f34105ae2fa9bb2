#include "runtime/core/FilePieces.h"

#include <algorithm>
#include <unistd.h>

namespace ds {

size_t wholePages(size_t bytes) {
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::max<size_t>((bytes + page - 1) / page, 1) * page;
}

FilePieces::FilePieces(size_t bytes, size_t pieceBytes)
    : bytes(wholePages(bytes)),
      piece(pieceBytes >= bytes ? this->bytes : std::max(pieceBytes - pieceBytes % wholePages(1), wholePages(1))) {}

void FileResidence::add(const FilePieces &state) {
  total += state.bytes;
  pieces[state.piece] += state.bytes / state.piece;
  if (size_t rest = state.bytes % state.piece)
    ++pieces[rest];
}

FileResidence::Resident FileResidence::resident() const {
  Resident most;
  for (const auto &[bytes, count] : pieces) {
    uint64_t taken = std::min(count, buffers - most.pieces);
    most.pieces += taken;
    most.bytes += taken * bytes;
  }
  return most;
}

} // namespace ds
