// SHA256SUMS of a package folder.
#ifndef DEEPSTRIDE_CODEGEN_CHECKSUMS_H
#define DEEPSTRIDE_CODEGEN_CHECKSUMS_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace deepstride {

/// Writes a file; on failure, that of closing it included, `error` says why.
bool writeWhole(const std::string &path, llvm::StringRef text, std::string &error);

/// Writes folder/SHA256SUMS over the given files and the chunks of weights.bin (docs/package-format.md).
bool writeChecksums(const std::string &folder, const std::vector<std::string> &files, std::string &error);

} // namespace deepstride

#endif
