// A cryptographic hash, because models are not trusted: two that collide would get each other's code.
#include "tools/ds-opt/ContentHash.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace deepstride {

static constexpr size_t chunkBytes = size_t(4) << 20, pieceBytes = size_t(256) << 10; // a piece stays in L2

static std::string hex(const llvm::BLAKE3Result<> &digest) { return llvm::toHex(digest, /*LowerCase=*/true); }

std::string contentDigest(llvm::StringRef bytes) {
  llvm::BLAKE3 hash;
  hash.update(bytes);
  return hex(hash.final());
}

std::optional<std::string> fileDigest(int file, unsigned threads) {
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    return std::nullopt;
  size_t size = static_cast<size_t>(status.st_size), count = (size + chunkBytes - 1) / chunkBytes;
  std::vector<llvm::BLAKE3Result<>> digests(count);
  std::atomic<size_t> next{0};
  std::atomic<bool> isWhole{true};
  auto work = [&] {
    std::vector<uint8_t> piece(std::min(pieceBytes, size));
    for (size_t chunk; isWhole && (chunk = next++) < count;) {
      llvm::BLAKE3 hash;
      size_t end = std::min(size, (chunk + 1) * chunkBytes);
      for (size_t at = chunk * chunkBytes; isWhole && at < end;) {
        ssize_t bytes = pread(file, piece.data(), std::min(piece.size(), end - at), static_cast<off_t>(at));
        if (bytes > 0) {
          hash.update(llvm::ArrayRef<uint8_t>(piece.data(), static_cast<size_t>(bytes)));
          at += static_cast<size_t>(bytes);
        } else if (bytes == 0 || errno != EINTR) {
          isWhole = false;
        }
      }
      digests[chunk] = hash.final();
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min<size_t>({threads, count, std::thread::hardware_concurrency()}); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  if (!isWhole)
    return std::nullopt;
  llvm::BLAKE3 hash;
  hash.update(std::to_string(size) + "\n");
  for (const llvm::BLAKE3Result<> &digest : digests)
    hash.update(digest);
  return hex(hash.final());
}

} // namespace deepstride
