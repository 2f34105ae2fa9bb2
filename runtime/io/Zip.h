// As much of zip as .npz needs: stored and deflated members, sizes beyond 4 GiB, checksums verified.
#ifndef DEEPSTRIDE_RUNTIME_IO_ZIP_H
#define DEEPSTRIDE_RUNTIME_IO_ZIP_H

#include "runtime/core/MappedFile.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct z_stream_s; // zlib's

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

  // The bytes of a member, one part after the other. The reader must outlive it.
  class Stream {
  public:
    Stream(const ZipReader &zip, const Member &member);
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;
    ~Stream();

    uint64_t left() const { return bytesLeft; }
    // Throws Error(BadFile) when fewer bytes are left or they cannot be had.
    void read(void *data, size_t bytes);
    // Reads what is left; throws Error(BadFile) unless all that was read has the member's checksum.
    void finish();

  private:
    int inflateSome();
    void inflateTo(uint8_t *data, size_t bytes);

    const InputFile &file;
    const Member &member;
    uint64_t at = 0, packedLeft = 0, bytesLeft = 0;
    uint32_t crc = 0;
    std::unique_ptr<z_stream_s> inflater; // null: stored as it is
    std::vector<uint8_t> packed;
  };

private:
  void readDirectory();

  InputFile file;
  MappedFile directory; // of the same file; only the pages of the directory are ever touched
  std::vector<Member> list;
};

// Writes stored members. The same members give the same bytes; dates are 1980-01-01.
class ZipWriter {
public:
  explicit ZipWriter(const std::string &path) : file(path) {}

  // The member's bytes are the two parts, one after the other.
  void add(const std::string &name, const std::string &head, const void *data, size_t bytes);
  // As above, with a second part that is made while it is written: `produce` hands it to `take` piece by piece. It is
  // called twice, since the checksum comes before the bytes.
  using Take = std::function<void(const void *data, size_t bytes)>;
  void add(const std::string &name, const std::string &head, const std::function<void(const Take &)> &produce);
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
