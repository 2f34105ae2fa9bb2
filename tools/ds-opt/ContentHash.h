// Digests of files, at the speed of memory: what a compilation reads and what the cache keeps are told apart by them.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_CONTENTHASH_H
#define DEEPSTRIDE_TOOLS_DSOPT_CONTENTHASH_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace deepstride {

/// BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020) of the bytes: 64 hex digits.
std::string contentDigest(llvm::StringRef bytes);

/// The same for an open regular file, but over the digests of its chunks, which up to `threads` threads compute; so it
/// is not what contentDigest gives for the file's bytes. Nothing where the file cannot be read, or shrinks meanwhile.
std::optional<std::string> fileDigest(int file, unsigned threads = 4);

} // namespace deepstride

#endif
