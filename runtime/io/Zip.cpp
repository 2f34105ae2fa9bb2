#include "runtime/io/Zip.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

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
      refuse("extra field of " + inQuotes(member.name) + " is truncated");
    if (id == 1) {
      size_t field = at;
      for (uint64_t *value : {&member.bytes, &member.packedBytes, &member.header}) {
        if (*value != in64)
          continue;
        if (field + 8 > at + size)
          refuse("zip64 field of " + inQuotes(member.name) + " is truncated");
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

ZipReader::ZipReader(const std::string &path) : file(path), directory(file) {
  annotated(path, [&] { readDirectory(); });
}

void ZipReader::readDirectory() {
  Fields fields(directory.data(), directory.size());
  constexpr size_t endBytes = 22, maxComment = 65535;
  if (directory.size() < endBytes)
    refuse("not a zip file");
  size_t end = directory.size() - endBytes, lowest = end > maxComment ? end - maxComment : 0;
  while (fields.get(end, 4) != endMagic) {
    if (end == lowest)
      refuse("no end record (not a zip file, or truncated)");
    --end;
  }
  uint64_t count = fields.get(end + 10, 2), at = fields.get(end + 16, 4);
  if (end >= 20 && fields.get(end - 20, 4) == locator64Magic) {
    uint64_t end64 = fields.get(end - 12, 8);
    if (end64 > directory.size() || fields.get(end64, 4) != end64Magic)
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
      refuse("member " + inQuotes(member.name) + " is encrypted");
    if (member.method != 0 && member.method != 8)
      refuse(concat("member ", inQuotes(member.name), " is packed by method ", member.method, ", expected 0 or 8"));
    at += 46 + nameLength + extra + comment;
    list.push_back(std::move(member));
  }
}

ZipReader::Stream::Stream(const ZipReader &zip, const Member &member)
    : file(zip.file), member(member), packedLeft(member.packedBytes), bytesLeft(member.bytes) {
  uint64_t size = zip.directory.size();
  uint8_t local[30];
  if (member.header > size || size - member.header < sizeof(local))
    refuse("member " + inQuotes(member.name) + " has no header where the directory says");
  file.read(member.header, local, sizeof(local));
  Fields fields(local, sizeof(local));
  if (fields.get(0, 4) != localMagic)
    refuse("member " + inQuotes(member.name) + " has no header where the directory says");
  at = member.header + sizeof(local) + fields.get(26, 2) + fields.get(28, 2);
  if (at > size || packedLeft > size - at)
    refuse("member " + inQuotes(member.name) + " is truncated");
  if (member.method == 0) {
    if (member.bytes != member.packedBytes)
      refuse("member " + inQuotes(member.name) + " is stored with two different sizes");
    return;
  }
  if (member.bytes / maxInflation > member.packedBytes + 1)
    refuse("member " + inQuotes(member.name) + " claims an impossible size");
  packed.resize(size_t(1) << 16);
  auto stream = std::make_unique<z_stream_s>();
  if (inflateInit2(stream.get(), -MAX_WBITS) != Z_OK)
    fail(ErrorCode::OutOfMemory, "zip: no memory to inflate ", inQuotes(member.name));
  inflater = std::move(stream);
}

ZipReader::Stream::~Stream() {
  if (inflater)
    inflateEnd(inflater.get());
}

int ZipReader::Stream::inflateSome() {
  if (inflater->avail_in == 0 && packedLeft > 0) {
    size_t part = static_cast<size_t>(std::min<uint64_t>(packedLeft, packed.size()));
    file.read(at, packed.data(), part);
    at += part;
    packedLeft -= part;
    inflater->next_in = packed.data();
    inflater->avail_in = static_cast<uInt>(part);
  }
  return inflate(inflater.get(), Z_NO_FLUSH); // without progress Z_BUF_ERROR
}

void ZipReader::Stream::inflateTo(uint8_t *data, size_t bytes) {
  inflater->next_out = data;
  inflater->avail_out = static_cast<uInt>(bytes);
  while (inflater->avail_out > 0) {
    int status = inflateSome();
    if (status != Z_OK && !(status == Z_STREAM_END && inflater->avail_out == 0))
      refuse("member " + inQuotes(member.name) + " does not inflate to its size");
  }
}

void ZipReader::Stream::read(void *data, size_t bytes) {
  if (bytes > bytesLeft)
    refuse(concat("member ", inQuotes(member.name), " is too short, found ", bytesLeft, " bytes, expected ", bytes));
  for (uint8_t *to = static_cast<uint8_t *>(data); bytes > 0;) {
    size_t part = std::min<size_t>(bytes, size_t(1) << 20); // still in the cache when its checksum is taken
    if (inflater) {
      inflateTo(to, part);
    } else {
      file.read(at, to, part);
      at += part;
    }
    crc = checksum(crc, to, part);
    to += part;
    bytes -= part;
    bytesLeft -= part;
  }
}

void ZipReader::Stream::finish() {
  std::vector<uint8_t> rest(static_cast<size_t>(std::min<uint64_t>(bytesLeft, size_t(1) << 16)));
  while (bytesLeft > 0)
    read(rest.data(), static_cast<size_t>(std::min<uint64_t>(bytesLeft, rest.size())));
  if (inflater) { // it must end here, too
    uint8_t none = 0;
    inflater->next_out = &none;
    inflater->avail_out = 1;
    int status = Z_OK;
    while (status == Z_OK && inflater->avail_out == 1)
      status = inflateSome();
    if (status != Z_STREAM_END || inflater->avail_out != 1)
      refuse("member " + inQuotes(member.name) + " does not inflate to its size");
  }
  if (crc != member.crc)
    refuse(concat("member ", inQuotes(member.name), ": CRC mismatch, found ", crc, ", expected ", member.crc));
}

void ZipWriter::add(const std::string &name, const std::string &head, const void *data, size_t bytes) {
  add(name, head, [&](const Take &take) { take(data, bytes); });
}

void ZipWriter::add(const std::string &name, const std::string &head,
                    const std::function<void(const Take &)> &produce) {
  if (name.size() > 65535)
    fail(ErrorCode::InvalidArgument, "zip: name of ", name.size(), " bytes, expected at most 65535");
  Entry entry{name, checksum(0, head.data(), head.size()), head.size(), file.position()};
  produce([&](const void *data, size_t bytes) {
    entry.crc = checksum(entry.crc, data, bytes);
    entry.bytes += bytes;
  });
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
  produce([&](const void *data, size_t bytes) { file.write(data, bytes); });
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
  // NumPy knows an archive by its first bytes, which without members are those of the last record.
  bool is64 = !entries.empty();
  if (is64) {
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
  }
  put(out, endMagic, 4);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, is64 ? 0xffff : 0, 2);
  put(out, is64 ? 0xffff : 0, 2);
  put(out, is64 ? in64 : 0, 4);
  put(out, is64 ? in64 : 0, 4);
  put(out, 0, 2);
  file.write(out.data(), out.size());
  file.commit();
}

} // namespace ds
