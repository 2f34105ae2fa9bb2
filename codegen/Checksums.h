// SHA256SUMS of a package folder.
#ifndef DEEPSTRIDE_CODEGEN_CHECKSUMS_H
#define DEEPSTRIDE_CODEGEN_CHECKSUMS_H

#include <string>
#include <vector>

namespace deepstride {

/// Writes folder/SHA256SUMS over the given files and the chunks of weights.bin (docs/package-format.md).
bool writeChecksums(const std::string &folder, const std::vector<std::string> &files, std::string &error);

} // namespace deepstride

#endif
