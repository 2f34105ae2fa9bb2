// SHA-256 by OpenSSL, which uses the CPU's instructions for it; weights are hashed in chunks that tile the file.
#include "codegen/Checksums.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <openssl/evp.h>

namespace deepstride {

// Small beside a rank's part of a tensor, of which it verifies no more than it reads.
static constexpr size_t chunkBytes = size_t(1) << 20;

static std::string digest(llvm::StringRef bytes) {
  unsigned char result[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(bytes.data(), bytes.size(), result, &length, EVP_sha256(), nullptr);
  return llvm::toHex(llvm::ArrayRef<uint8_t>(result, length), /*LowerCase=*/true);
}

bool writeWhole(const std::string &path, llvm::StringRef text, std::string &error) {
  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  if (!code) {
    file << text;
    file.close();
    code = file.error();
    file.clear_error(); // its destructor would end the process
  }
  if (code)
    error = "'" + path + "': " + code.message();
  return !code;
}

bool writeChecksums(const std::string &folder, const std::vector<std::string> &files, std::string &error) {
  std::vector<std::string> names = files;
  names.push_back("weights.bin");
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string &name : names) {
    auto file = llvm::MemoryBuffer::getFile(folder + "/" + name, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!file) {
      error = "'" + name + "': " + file.getError().message();
      return false;
    }
    llvm::StringRef bytes = (*file)->getBuffer();
    if (name != "weights.bin") {
      text += digest(bytes) + "  " + name + "\n";
      continue;
    }
    for (size_t offset = 0; offset < bytes.size(); offset += chunkBytes) {
      llvm::StringRef chunk = bytes.substr(offset, chunkBytes);
      text += digest(chunk) + "  " + name + ":" + std::to_string(offset) + "+" + std::to_string(chunk.size()) + "\n";
    }
  }
  text += digest(text) + "  SHA256SUMS\n";
  return writeWhole(folder + "/SHA256SUMS", text, error);
}

} // namespace deepstride
