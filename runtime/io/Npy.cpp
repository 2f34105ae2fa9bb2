#include "runtime/io/Npy.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Text.h"

#include <algorithm>
#include <cstring>

namespace ds {
namespace {

constexpr char magic[] = "\x93NUMPY";
constexpr size_t magicLength = 6;
constexpr size_t maxRank = 32;

[[noreturn]] void refuse(const std::string &what) { fail(ErrorCode::BadFile, "npy: ", what); }

// The header is a Python dict literal with three known keys; this reads just that.
class HeaderParser {
public:
  explicit HeaderParser(std::string text) : text(std::move(text)) {}

  std::string descr;
  bool isFortran = false;
  Shape shape;

  void run() {
    expect('{');
    bool seen[3] = {};
    while (!take('}')) {
      std::string key = string();
      expect(':');
      if (key == "descr") {
        descr = descriptor();
        seen[0] = true;
      } else if (key == "fortran_order") {
        isFortran = boolean();
        seen[1] = true;
      } else if (key == "shape") {
        tuple();
        seen[2] = true;
      } else {
        refuse("unknown header key " + inQuotes(key));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!seen[0] || !seen[1] || !seen[2])
      refuse("header lacks descr, fortran_order or shape");
  }

private:
  void skip() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t'))
      ++at;
  }
  bool take(char c) {
    skip();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  void expect(char c) {
    if (!take(c))
      refuse(concat("header: expected '", c, "' at character ", at + 1));
  }
  std::string string() {
    skip();
    char quote = at < text.size() ? text[at] : 0;
    if (quote != '\'' && quote != '"')
      refuse(concat("header: expected a string at character ", at + 1));
    size_t end = text.find(quote, at + 1);
    if (end == std::string::npos)
      refuse("header: string without end");
    std::string value = text.substr(at + 1, end - at - 1);
    at = end + 1;
    return value;
  }
  std::string descriptor() {
    skip();
    if (at < text.size() && text[at] == '[')
      refuse("structured element types are not supported");
    return string();
  }
  bool boolean() {
    skip();
    for (bool value : {false, true}) {
      const char *word = value ? "True" : "False";
      if (text.compare(at, std::strlen(word), word) == 0) {
        at += std::strlen(word);
        return value;
      }
    }
    refuse("header: expected True or False");
  }
  void tuple() {
    expect('(');
    while (!take(')')) {
      skip();
      int64_t value = 0;
      size_t begin = at;
      for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
        if (__builtin_mul_overflow(value, int64_t(10), &value) ||
            __builtin_add_overflow(value, int64_t(text[at] - '0'), &value))
          refuse("header: dimension does not fit 64 bits");
      if (at == begin)
        refuse("header: expected a dimension");
      shape.push_back(value);
      if (shape.size() > maxRank)
        refuse("header: more than 32 dimensions");
      if (!take(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string text;
  size_t at = 0;
};

struct Descriptor {
  ElementType type;
  const char *text; // without byte order
};

constexpr Descriptor descriptors[] = {{ElementType::F64, "f8"}, {ElementType::F32, "f4"}, {ElementType::F16, "f2"},
                                      {ElementType::I64, "i8"}, {ElementType::I32, "i4"}, {ElementType::I16, "i2"},
                                      {ElementType::I8, "i1"},  {ElementType::U64, "u8"}, {ElementType::U32, "u4"},
                                      {ElementType::U16, "u2"}, {ElementType::U8, "u1"},  {ElementType::I1, "b1"}};

ElementType parseDescriptor(const std::string &text, bool &isBigEndian) {
  isBigEndian = !text.empty() && text[0] == '>';
  if (text.size() >= 2 && std::strchr("<>|=", text[0]))
    for (const Descriptor &known : descriptors)
      if (text.compare(1, std::string::npos, known.text) == 0)
        return known.type;
  refuse("element type " + inQuotes(text) + " is not supported, expected one of f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 b1");
}

void swapBytes(uint8_t *data, size_t count, size_t width) {
  for (size_t i = 0; i < count; ++i)
    std::reverse(data + i * width, data + (i + 1) * width);
}

// Column-major to row-major: walks the destination in order.
void transposeFrom(const uint8_t *source, const Shape &shape, size_t width, uint8_t *to) {
  size_t rank = shape.size();
  std::vector<int64_t> index(rank, 0), strides(rank, 1);
  for (size_t axis = 1; axis < rank; ++axis)
    strides[axis] = strides[axis - 1] * shape[axis - 1];
  int64_t from = 0, count = elementCount(shape);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * width, source + static_cast<size_t>(from) * width, width);
    for (size_t axis = rank; axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[axis])
        break;
      from -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

} // namespace

NpyHeader readNpyHeader(uint64_t bytes, const NpyRead &read) {
  uint8_t start[magicLength + 6];
  if (bytes < magicLength + 4)
    refuse("not an npy file");
  read(start, magicLength + 4);
  if (std::memcmp(start, magic, magicLength) != 0)
    refuse("not an npy file");
  unsigned version = start[magicLength];
  if (version < 1 || version > 3)
    refuse(concat("unsupported version, found ", version, ", expected 1 to 3"));
  size_t lengthBytes = version == 1 ? 2 : 4, begin = magicLength + 2 + lengthBytes;
  if (bytes < begin)
    refuse("truncated header");
  read(start + magicLength + 4, begin - magicLength - 4);
  size_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= static_cast<size_t>(start[magicLength + 2 + i]) << (8 * i);
  if (length > bytes - begin)
    refuse("truncated header");
  std::string text(length, '\0');
  read(text.data(), length);
  HeaderParser parser(std::move(text));
  parser.run();
  NpyHeader header;
  header.type = parseDescriptor(parser.descr, header.isBigEndian);
  header.shape = parser.shape;
  size_t expected = byteCount(header.type, header.shape);
  uint64_t found = bytes - begin - length;
  if (found < expected)
    refuse(concat("truncated, found ", found, " bytes of data, expected ", expected));
  // Without elements the other sizes may be so large that their strides do not exist.
  header.isFortran = parser.isFortran && header.shape.size() > 1 && expected != 0;
  return header;
}

void readNpyData(const NpyHeader &header, const NpyRead &read, size_t elements, void *data) {
  uint8_t *to = static_cast<uint8_t *>(data);
  size_t width = typeSize(header.type), bytes = elements * width;
  if (header.isFortran) {
    std::vector<uint8_t> source(bytes);
    read(source.data(), bytes);
    transposeFrom(source.data(), header.shape, width, to);
  } else if (bytes != 0) {
    read(to, bytes);
  }
  if (header.isBigEndian)
    swapBytes(to, elements, width);
  if (header.type == ElementType::I1)
    for (size_t i = 0; i < bytes; ++i)
      to[i] = to[i] != 0;
}

Tensor parseNpy(const uint8_t *data, size_t bytes) {
  size_t at = 0;
  NpyRead read = [&](void *to, size_t count) { // the header says how much there is
    std::memcpy(to, data + at, count);
    at += count;
  };
  NpyHeader header = readNpyHeader(bytes, read);
  Tensor tensor(header.type, header.shape);
  readNpyData(header, read, static_cast<size_t>(tensor.count()), tensor.data());
  return tensor;
}

std::string npyHeader(ElementType type, const Shape &shape) {
  std::string descr;
  for (const Descriptor &known : descriptors)
    if (known.type == type)
      descr = (typeSize(type) == 1 ? "|" : "<") + std::string(known.text);
  if (descr.empty())
    fail(ErrorCode::Internal, "numpy has no type ", typeName(type));
  std::string dims;
  for (int64_t dim : shape)
    dims += std::to_string(dim) + ", ";
  if (shape.size() > 1)
    dims.resize(dims.size() - 2);
  else if (shape.size() == 1)
    dims.pop_back();
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  size_t total = magicLength + 4 + text.size() + 1;
  text += std::string((64 - total % 64) % 64, ' ') + '\n'; // data is aligned to 64 bytes
  std::string header(magic, magicLength);
  header += {1, 0, static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return header + text;
}

Tensor readNpy(const std::string &path) {
  MappedFile file(path); // which names the path itself
  return annotated(path, [&] { return parseNpy(file.data(), file.size()); });
}

void writeNpy(const std::string &path, const Tensor &tensor) {
  if (npyType(tensor.getType()) != tensor.getType())
    return writeNpy(path, tensor.converted(npyType(tensor.getType())));
  AtomicFile file(path);
  std::string header = npyHeader(tensor.getType(), tensor.getShape());
  file.write(header.data(), header.size());
  file.write(tensor.data(), tensor.bytes());
  file.commit();
}

} // namespace ds
