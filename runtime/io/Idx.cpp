#include "runtime/io/Idx.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <zlib.h>

namespace ds {
namespace {

constexpr size_t chunk = size_t(1) << 20;
constexpr unsigned maxAxes = 8;

[[noreturn]] void refuse(const std::string &what) { fail(ErrorCode::BadFile, what); }

// zlib reads files that are not compressed as they are.
class Stream {
public:
  explicit Stream(const std::string &path) : file(gzopen(path.c_str(), "rbe")) {
    if (!file)
      fail(ErrorCode::Io, "cannot open: ", std::strerror(errno));
  }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  ~Stream() { gzclose(file); }

  // As many bytes as there are, at most a chunk.
  size_t read(uint8_t *data, size_t bytes) {
    int count = gzread(file, data, static_cast<unsigned>(std::min(bytes, chunk)));
    int code = Z_OK;
    const char *message = gzerror(file, &code);
    if (count < 0 || (code != Z_OK && code != Z_STREAM_END))
      refuse(concat("cannot unpack: ", code == Z_ERRNO       ? std::strerror(errno)
                                       : code == Z_BUF_ERROR ? "truncated"
                                                             : message));
    return static_cast<size_t>(count);
  }

  void readAll(uint8_t *data, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
      size_t count = read(data + at, bytes - at);
      if (count == 0)
        refuse("truncated header");
      at += count;
    }
  }

private:
  gzFile file;
};

ElementType typeOf(uint8_t code) {
  switch (code) {
  case 0x08: return ElementType::U8;
  case 0x09: return ElementType::I8;
  case 0x0B: return ElementType::I16;
  case 0x0C: return ElementType::I32;
  case 0x0D: return ElementType::F32;
  case 0x0E: return ElementType::F64;
  default: refuse(concat("not an IDX file: element type ", int(code), ", expected one of 8 9 11 12 13 14"));
  }
}

Tensor readFrom(Stream &stream) {
  uint8_t magic[4];
  stream.readAll(magic, sizeof(magic));
  if (magic[0] != 0 || magic[1] != 0)
    refuse("not an IDX file, expected two zero bytes first");
  ElementType type = typeOf(magic[2]);
  if (magic[3] == 0 || magic[3] > maxAxes)
    refuse(concat("found ", int(magic[3]), " axes, expected 1 to ", maxAxes));
  Shape shape;
  for (unsigned axis = 0; axis < magic[3]; ++axis) {
    uint8_t size[4];
    stream.readAll(size, sizeof(size));
    shape.push_back(int64_t(size[0]) << 24 | int64_t(size[1]) << 16 | int64_t(size[2]) << 8 | int64_t(size[3]));
  }
  size_t bytes = byteCount(type, shape);
  // Memory grows with what is there, not with what a damaged header says.
  std::vector<uint8_t> data;
  for (size_t count = 1; count != 0 && data.size() < bytes;) {
    size_t at = data.size();
    data.resize(std::min(bytes, at + chunk));
    count = stream.read(data.data() + at, data.size() - at);
    data.resize(at + count);
  }
  uint8_t more;
  if (data.size() < bytes || stream.read(&more, 1) != 0)
    refuse(concat("found ", data.size() < bytes ? std::to_string(data.size()) : "more than " + std::to_string(bytes),
                  " bytes of data, expected ", bytes, " for ", typeName(type), " ", listText(shape)));
  Tensor tensor(type, shape);
  std::copy(data.begin(), data.end(), tensor.data());
  size_t width = typeSize(type);
  for (size_t i = 0; width > 1 && i < bytes; i += width)
    std::reverse(tensor.data() + i, tensor.data() + i + width);
  return tensor;
}

} // namespace

Tensor readIdx(const std::string &path) {
  return annotated(path, [&] {
    Stream stream(path);
    return readFrom(stream);
  });
}

} // namespace ds
