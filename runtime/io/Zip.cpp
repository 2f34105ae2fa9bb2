#include "runtime/io/Zip.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <zlib.h>

namespace ds {
namespace {

constexpr uint32_t localMagic = 0x04034b50, centralMagic = 0x02014b50, endMagic = 0x06054b50, end64Magic = 0x06064b50,
                   locator64Magic = 0x07064b50;
constexpr uint32_t in64 = 0xffffffff;   // the value lies in the zip64 field
constexpr uint64_t maxInflation = 1100; // deflate cannot do better than about 1032:1

[[noreturn]] void refuse(const std::string &what) { fail(ErrorCode::BadFile, "zip: ", what); }

// Little-endian fields of a byte range; every access is checked.
class Fields {
public:
  Fields(const uint8_t *data, size_t bytes) : data(data), bytes(bytes) {}

  uint64_t get(size_t offset, size_t width) const {
    check(offset, width);
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i)
      value |= static_cast<uint64_t>(data[offset + i]) << (8 * i);
    return value;
  }
  std::string text(size_t offset, size_t length) const {
    check(offset, length);
    return std::string(reinterpret_cast<const char *>(data + offset), length);
  }
  void check(size_t offset, size_t length) const {
    if (offset > bytes || length > bytes - offset)
      refuse("truncated");
  }

private:
  const uint8_t *data;
  size_t bytes;
};

// zip64 sizes come in this order, each only if its 32-bit field says so.
void readExtra(const Fields &fields, size_t at, size_t length, ZipReader::Member &member) {
  size_t end = at + length;
  while (at + 4 <= end) {
    size_t id = fields.get(at, 2), size = fields.get(at + 2, 2);
    at += 4;
    if (size > end - at)
      refuse("extra field of '" + member.name + "' is truncated");
    if (id == 1) {
      size_t field = at;
      for (uint64_t *value : {&member.bytes, &member.packedBytes, &member.header}) {
        if (*value != in64)
          continue;
        if (field + 8 > at + size)
          refuse("zip64 field of '" + member.name + "' is truncated");
        *value = fields.get(field, 8);
        field += 8;
      }
    }
    at += size;
  }
}

void put(std::string &out, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i)
    out += static_cast<char>(value >> (8 * i));
}

uint32_t checksum(uint32_t start, const void *data, size_t bytes) {
  const Bytef *from = static_cast<const Bytef *>(data);
  uLong crc = start;
  while (bytes > 0) {
    uInt part = static_cast<uInt>(std::min<size_t>(bytes, size_t(1) << 30));
    crc = crc32(crc, from, part);
    from += part;
    bytes -= part;
  }
  return static_cast<uint32_t>(crc);
}

} // namespace

ZipReader::ZipReader(const std::string &path) : file(path) {
  annotated(path, [&] { readDirectory(); });
}

void ZipReader::readDirectory() {
  Fields fields(file.data(), file.size());
  constexpr size_t endBytes = 22, maxComment = 65535;
  if (file.size() < endBytes)
    refuse("not a zip file");
  size_t end = file.size() - endBytes, lowest = end > maxComment ? end - maxComment : 0;
  while (fields.get(end, 4) != endMagic) {
    if (end == lowest)
      refuse("no end record (not a zip file, or truncated)");
    --end;
  }
  uint64_t count = fields.get(end + 10, 2), at = fields.get(end + 16, 4);
  if (end >= 20 && fields.get(end - 20, 4) == locator64Magic) {
    uint64_t end64 = fields.get(end - 12, 8);
    if (end64 > file.size() || fields.get(end64, 4) != end64Magic)
      refuse("zip64 end record is damaged");
    count = fields.get(end64 + 32, 8);
    at = fields.get(end64 + 48, 8);
  }
  for (uint64_t i = 0; i < count; ++i) {
    fields.check(at, 46);
    if (fields.get(at, 4) != centralMagic)
      refuse("directory is damaged");
    Member member;
    uint64_t flags = fields.get(at + 8, 2);
    member.method = static_cast<uint16_t>(fields.get(at + 10, 2));
    member.crc = static_cast<uint32_t>(fields.get(at + 16, 4));
    member.packedBytes = fields.get(at + 20, 4);
    member.bytes = fields.get(at + 24, 4);
    member.header = fields.get(at + 42, 4);
    size_t nameLength = fields.get(at + 28, 2), extra = fields.get(at + 30, 2), comment = fields.get(at + 32, 2);
    member.name = fields.text(at + 46, nameLength);
    fields.check(at + 46 + nameLength, extra);
    readExtra(fields, at + 46 + nameLength, extra, member);
    if (flags & 1)
      refuse("member '" + member.name + "' is encrypted");
    if (member.method != 0 && member.method != 8)
      refuse(concat("member '", member.name, "' is packed by method ", member.method, ", expected 0 or 8"));
    at += 46 + nameLength + extra + comment;
    list.push_back(std::move(member));
  }
}

const uint8_t *ZipReader::read(const Member &member, std::vector<uint8_t> &buffer) const {
  Fields fields(file.data(), file.size());
  if (member.header > file.size() || fields.get(member.header, 4) != localMagic)
    refuse("member '" + member.name + "' has no header where the directory says");
  uint64_t begin = member.header + 30 + fields.get(member.header + 26, 2) + fields.get(member.header + 28, 2);
  if (begin > file.size() || member.packedBytes > file.size() - begin)
    refuse("member '" + member.name + "' is truncated");
  const uint8_t *packed = file.data() + begin, *result = packed;
  if (member.method == 0) {
    if (member.bytes != member.packedBytes)
      refuse("member '" + member.name + "' is stored with two different sizes");
  } else {
    if (member.bytes > member.packedBytes * maxInflation + 1024 || member.packedBytes > UINT_MAX ||
        member.bytes > UINT_MAX)
      refuse("member '" + member.name + "' claims an impossible size");
    buffer.resize(member.bytes);
    z_stream stream = {};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      fail(ErrorCode::OutOfMemory, "zip: no memory to inflate '", member.name, "'");
    uint8_t none = 0;
    stream.next_in = const_cast<Bytef *>(packed);
    stream.avail_in = static_cast<uInt>(member.packedBytes);
    stream.next_out = buffer.empty() ? &none : buffer.data();
    stream.avail_out = static_cast<uInt>(buffer.size());
    int status = inflate(&stream, Z_FINISH);
    bool isWhole = status == Z_STREAM_END && stream.total_out == member.bytes;
    inflateEnd(&stream);
    if (!isWhole)
      refuse("member '" + member.name + "' does not inflate to its size");
    result = buffer.data();
  }
  uint32_t crc = checksum(0, result, member.bytes);
  if (crc != member.crc)
    refuse(concat("member '", member.name, "': CRC mismatch, found ", crc, ", expected ", member.crc));
  return result;
}

void ZipWriter::add(const std::string &name, const std::string &head, const void *data, size_t bytes) {
  if (name.size() > 65535)
    fail(ErrorCode::InvalidArgument, "zip: name of ", name.size(), " bytes, expected at most 65535");
  Entry entry{name, checksum(checksum(0, head.data(), head.size()), data, bytes), head.size() + bytes, file.position()};
  std::string local;
  put(local, localMagic, 4);
  put(local, 45, 2);    // zip64
  put(local, 0x800, 2); // the name is UTF-8
  put(local, 0, 2);     // stored
  put(local, 0, 2);     // 00:00:00
  put(local, 0x21, 2);  // 1980-01-01
  put(local, entry.crc, 4);
  put(local, in64, 4);
  put(local, in64, 4);
  put(local, name.size(), 2);
  put(local, 20, 2);
  local += name;
  put(local, 1, 2);
  put(local, 16, 2);
  put(local, entry.bytes, 8);
  put(local, entry.bytes, 8);
  file.write(local.data(), local.size());
  file.write(head.data(), head.size());
  if (bytes != 0)
    file.write(data, bytes);
  entries.push_back(std::move(entry));
}

void ZipWriter::commit() {
  uint64_t start = file.position();
  std::string out;
  for (const Entry &entry : entries) {
    put(out, centralMagic, 4);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0x800, 2);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, 0x21, 2);
    put(out, entry.crc, 4);
    put(out, in64, 4);
    put(out, in64, 4);
    put(out, entry.name.size(), 2);
    put(out, 28, 2);
    put(out, 0, 2); // comment
    put(out, 0, 2); // disk
    put(out, 0, 2); // internal attributes
    put(out, 0, 4); // external attributes
    put(out, in64, 4);
    out += entry.name;
    put(out, 1, 2);
    put(out, 24, 2);
    put(out, entry.bytes, 8);
    put(out, entry.bytes, 8);
    put(out, entry.offset, 8);
  }
  uint64_t size = out.size(), end64 = start + size;
  put(out, end64Magic, 4);
  put(out, 44, 8);
  put(out, 45, 2);
  put(out, 45, 2);
  put(out, 0, 4);
  put(out, 0, 4);
  put(out, entries.size(), 8);
  put(out, entries.size(), 8);
  put(out, size, 8);
  put(out, start, 8);
  put(out, locator64Magic, 4);
  put(out, 0, 4);
  put(out, end64, 8);
  put(out, 1, 4);
  put(out, endMagic, 4);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, 0xffff, 2);
  put(out, 0xffff, 2);
  put(out, in64, 4);
  put(out, in64, 4);
  put(out, 0, 2);
  file.write(out.data(), out.size());
  file.commit();
}

} // namespace ds
