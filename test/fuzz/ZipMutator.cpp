#include "test/fuzz/ZipMutator.h"

#include <cstring>
#include <vector>
#include <zlib.h>

namespace deepstride::fuzz {

namespace {

uint64_t get(const std::string &bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width && at + i < bytes.size(); ++i)
    value |= uint64_t(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

void put(std::string &out, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i)
    out += static_cast<char>(value >> (8 * i));
}

struct Member {
  std::string name, content;
};

/// The members of a file as zip writers write it: local headers one after the other. Stops where that ends.
std::vector<Member> readMembers(const std::string &zip) {
  std::vector<Member> members;
  size_t at = 0;
  while (at + 30 <= zip.size() && get(zip, at, 4) == 0x04034b50) {
    size_t method = get(zip, at + 8, 2), name = get(zip, at + 26, 2), extra = get(zip, at + 28, 2);
    uint64_t packed = get(zip, at + 18, 4), size = get(zip, at + 22, 4);
    if (packed == 0xffffffff)
      packed = get(zip, at + 30 + name + 12, 8);
    size_t begin = at + 30 + name + extra;
    if (begin > zip.size() || packed > zip.size() - begin)
      break;
    Member member{zip.substr(at + 30, name), zip.substr(begin, packed)};
    if (method == 8) {
      std::string content(std::min<uint64_t>(size, 1 << 16), '\0');
      z_stream stream = {};
      inflateInit2(&stream, -MAX_WBITS);
      stream.next_in = reinterpret_cast<Bytef *>(member.content.data());
      stream.avail_in = static_cast<uInt>(packed);
      stream.next_out = reinterpret_cast<Bytef *>(content.data());
      stream.avail_out = static_cast<uInt>(content.size());
      inflate(&stream, Z_FINISH);
      inflateEnd(&stream);
      member.content = content;
    }
    members.push_back(std::move(member));
    at = begin + packed;
  }
  return members;
}

std::string deflated(const std::string &content) {
  std::string out(content.size() + 128, '\0');
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, -9, 1, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string writeMembers(const std::vector<Member> &members, Random &random) {
  std::string out, directory;
  for (const Member &member : members) {
    bool packs = random.oneIn(3), wide = random.oneIn(3);
    std::string content = packs ? deflated(member.content) : member.content;
    auto *from = reinterpret_cast<const Bytef *>(member.content.data());
    uint64_t crc = crc32(0, from, static_cast<uInt>(member.content.size())), offset = out.size();
    auto header = [&](std::string &to, bool central) {
      put(to, central ? 0x02014b50 : 0x04034b50, 4);
      put(to, 45, central ? 4 : 2);
      put(to, 0, 2);
      put(to, packs ? 8 : 0, 2);
      put(to, 0, 4);
      put(to, crc, 4);
      put(to, wide ? 0xffffffff : content.size(), 4);
      put(to, wide ? 0xffffffff : member.content.size(), 4);
      put(to, member.name.size(), 2);
      put(to, wide ? 20 : 0, 2);
      if (central) {
        put(to, 0, 8);
        put(to, 0, 2);
        put(to, offset, 4);
      }
      to += member.name;
      if (!wide)
        return;
      put(to, 1, 2);
      put(to, 16, 2);
      put(to, member.content.size(), 8);
      put(to, content.size(), 8);
    };
    header(out, false);
    header(directory, true);
    out += content;
  }
  uint64_t start = out.size();
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, directory.size(), 4);
  put(out, start, 4);
  put(out, 0, 2);
  return out;
}

} // namespace

void mutateNpy(std::string &bytes, Random &random) {
  constexpr size_t start = 10; // of version 1: magic, version, two bytes of length
  size_t length = get(bytes, 8, 2);
  if (random.oneIn(4) || bytes.size() < start || length > bytes.size() - start)
    return random.mutate(bytes);
  std::string head = bytes.substr(start, length), data = bytes.substr(start + length);
  if (random.oneIn(4)) {
    random.mutate(data);
  } else if (size_t digit = head.find_first_of("0123456789", random.below(head.size() + 1));
             digit != std::string::npos && random.oneIn(2)) { // a dimension, mostly
    size_t end = head.find_first_not_of("0123456789", digit);
    head.replace(digit, (end == std::string::npos ? head.size() : end) - digit, std::to_string(random.integer()));
  } else {
    random.mutate(head);
  }
  std::string result = bytes.substr(0, 8);
  put(result, head.size(), 2);
  bytes = result + head + data;
}

void mutateZip(std::string &bytes, Random &random) {
  std::vector<Member> members = readMembers(bytes);
  if (random.oneIn(4) || members.empty())
    return random.mutate(bytes);
  Member &member = members[random.below(members.size())];
  switch (random.below(8)) {
  case 0: members.push_back(Member(member)); break;
  case 1: random.mutate(member.name); break;
  default: mutateNpy(member.content, random);
  }
  bytes = writeMembers(members, random);
  if (random.oneIn(4))
    random.mutate(bytes);
}

} // namespace deepstride::fuzz
