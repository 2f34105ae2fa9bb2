// As much of zip as .npz needs: stored and deflated members, sizes beyond 4 GiB, checksums verified.
#ifndef DEEPSTRIDE_RUNTIME_IO_ZIP_H
#define DEEPSTRIDE_RUNTIME_IO_ZIP_H

#include "runtime/core/MappedFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds {

class ZipReader {
public:
  struct Member {
    std::string name;
    uint16_t method = 0; // 0 stored, 8 deflated
    uint32_t crc = 0;
    uint64_t packedBytes = 0, bytes = 0, header = 0;
  };

  explicit ZipReader(const std::string &path); // throws Error naming the path

  const std::vector<Member> &members() const { return list; }

  // The member's bytes; the buffer is filled only when they are not stored as they are.
  const uint8_t *read(const Member &member, std::vector<uint8_t> &buffer) const;

private:
  void readDirectory();

  MappedFile file;
  std::vector<Member> list;
};

// Writes stored members. The same members give the same bytes; dates are 1980-01-01.
class ZipWriter {
public:
  explicit ZipWriter(const std::string &path) : file(path) {}

  // The member's bytes are the two parts, one after the other.
  void add(const std::string &name, const std::string &head, const void *data, size_t bytes);
  void commit();

private:
  struct Entry {
    std::string name;
    uint32_t crc;
    uint64_t bytes, offset;
  };

  AtomicFile file;
  std::vector<Entry> entries;
};

} // namespace ds
#endif
