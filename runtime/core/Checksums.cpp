#include "runtime/core/Checksums.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <openssl/evp.h>
#include <thread>

namespace ds {
namespace {

constexpr const char *sumsName = "SHA256SUMS";
constexpr uint64_t maxChunk = uint64_t(8) << 20;
constexpr size_t maxSumsBytes = size_t(1) << 28;

[[noreturn]] void refuseLine(size_t line, const std::string &what) {
  fail(ErrorCode::BadPackage, sumsName, ": line ", line, ": ", what);
}

bool isDigest(const std::string &text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Digits only, no leading zero: one spelling per number.
bool parseNumber(const std::string &text, uint64_t &value) {
  if (text.empty() || text.size() > 18 || (text.size() > 1 && text[0] == '0'))
    return false;
  value = 0;
  for (char c : text) {
    if (c < '0' || c > '9')
      return false;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return true;
}

ChecksumLine parseLine(const std::string &text, size_t number) {
  ChecksumLine line;
  line.digest = text.substr(0, 64);
  if (!isDigest(line.digest) || text.compare(64, 2, "  ") != 0 || text.size() < 67)
    refuseLine(number, "expected '<64 hex digits>  <name>'");
  line.file = text.substr(66);
  size_t colon = line.file.rfind(':');
  if (colon != std::string::npos) {
    std::string range = line.file.substr(colon + 1);
    size_t plus = range.find('+');
    if (plus == std::string::npos || !parseNumber(range.substr(0, plus), line.offset) ||
        !parseNumber(range.substr(plus + 1), line.length))
      refuseLine(number, "expected '<name>:<offset>+<length>'");
    if (line.length > maxChunk)
      refuseLine(number, concat("chunk too large, found ", line.length, ", expected at most ", maxChunk));
    line.isChunk = true;
    line.file.resize(colon);
  }
  if (line.file.empty() || line.file == "." || line.file == ".." || line.file.find('/') != std::string::npos)
    refuseLine(number, "'" + line.file + "' is not a file name");
  return line;
}

// Chunks of a file must come in order and leave no gap; whole files come once.
void checkTiling(const std::vector<ChecksumLine> &lines) {
  std::map<std::string, uint64_t> ends;
  for (size_t i = 0; i < lines.size(); ++i) {
    const ChecksumLine &line = lines[i];
    auto [known, isNew] = ends.emplace(line.file, 0);
    if (!line.isChunk) {
      if (!isNew)
        refuseLine(i + 1, "'" + line.file + "' is listed twice");
      known->second = std::numeric_limits<uint64_t>::max();
      continue;
    }
    if (known->second != line.offset)
      refuseLine(i + 1, concat("chunks of '", line.file, "' do not tile the file, found offset ", line.offset,
                               ", expected ", known->second));
    known->second += line.length;
  }
}

void checkListing(const PackageFiles &package, const std::map<std::string, MappedFile> &files) {
  for (const std::string &name : package.names()) {
    if (name == sumsName || files.count(name))
      continue;
    // An empty weights.bin has no bytes to check and may go without a line.
    if (name != "weights.bin" || !package.isEmptyFile(name))
      fail(ErrorCode::BadPackage, name, ": additional file that SHA256SUMS does not list");
  }
}

} // namespace

std::string sha256Hex(const void *data, size_t bytes) {
  static const EVP_MD *algorithm = EVP_sha256();
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(data, bytes, digest, &length, algorithm, nullptr) != 1 || length != 32)
    fail(ErrorCode::Internal, "SHA-256 is not available");
  static const char digits[] = "0123456789abcdef";
  std::string text(64, '0');
  for (size_t i = 0; i < 32; ++i) {
    text[2 * i] = digits[digest[i] >> 4];
    text[2 * i + 1] = digits[digest[i] & 15];
  }
  return text;
}

std::vector<ChecksumLine> parseChecksums(const std::string &text) {
  std::vector<ChecksumLine> lines;
  size_t begin = 0, lastBegin = 0;
  while (begin < text.size()) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos)
      refuseLine(lines.size() + 1, "does not end in a newline (truncated?)");
    lines.push_back(parseLine(text.substr(begin, end - begin), lines.size() + 1));
    lastBegin = begin;
    begin = end + 1;
  }
  if (lines.empty() || lines.back().file != sumsName || lines.back().isChunk)
    refuseLine(lines.size(), "expected the digest of SHA256SUMS itself");
  std::string found = sha256Hex(text.data(), lastBegin);
  if (found != lines.back().digest)
    fail(ErrorCode::BadPackage, sumsName, ": checksum mismatch, found ", found, ", expected ", lines.back().digest);
  lines.pop_back();
  checkTiling(lines);
  return lines;
}

Checksums::Checksums(const PackageFiles &package) : lines(parseChecksums(package.text(sumsName, maxSumsBytes))) {
  std::map<std::string, uint64_t> covered;
  for (const ChecksumLine &line : lines) {
    if (!files.count(line.file)) {
      if (!package.has(line.file))
        fail(ErrorCode::BadPackage, line.file, ": missing, but listed in SHA256SUMS");
      files.emplace(line.file, package.open(line.file));
    }
    covered[line.file] = line.isChunk ? line.offset + line.length : files[line.file].size();
  }
  checkListing(package, files);
  for (const auto &[name, end] : covered)
    if (files[name].size() != end)
      fail(ErrorCode::BadPackage, name, ": wrong size, found ", files[name].size(), " bytes, expected ", end);
}

std::vector<ChecksumFault> Checksums::verify(unsigned threads, const Choice &isWanted) const {
  std::vector<const ChecksumLine *> wanted;
  for (const ChecksumLine &line : lines)
    if (isWanted(line)) {
      wanted.push_back(&line);
      const MappedFile &file = files.at(line.file);
      file.willNeed(line.offset, line.isChunk ? line.length : file.size());
    }
  std::vector<std::string> found(wanted.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < wanted.size(); i = next++) {
      const ChecksumLine &line = *wanted[i];
      const MappedFile &file = files.at(line.file);
      size_t length = line.isChunk ? line.length : file.size();
      found[i] = sha256Hex(file.data() ? file.data() + line.offset : nullptr, length);
      file.release(line.offset, length); // what is verified need not be in memory at once
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < std::min<size_t>(threads, wanted.size()); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();

  std::vector<ChecksumFault> faults, chunkFaults;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ChecksumLine &line = *wanted[i];
    if (found[i] == line.digest)
      continue;
    std::vector<ChecksumFault> &list = line.isChunk ? chunkFaults : faults;
    std::string where = line.isChunk ? concat(line.file, ":", line.offset, "+", line.length) : line.file;
    list.push_back({line.file, concat(where, ": checksum mismatch, found ", found[i], ", expected ", line.digest),
                    line.offset, line.length, line.isChunk});
  }
  faults.insert(faults.end(), chunkFaults.begin(), chunkFaults.end());
  return faults;
}

} // namespace ds
