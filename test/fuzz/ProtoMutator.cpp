// A message is read as a tree: a length-delimited field whose bytes read as fields themselves is taken for a message.
// Some strings do, too, and are then mutated as fields would be, which does no harm.
#include "test/fuzz/ProtoMutator.h"

#include <cstring>
#include <utility>
#include <vector>

namespace deepstride::fuzz {

namespace {

struct Field;
using Fields = std::vector<Field>;

struct Field {
  uint64_t tag = 0;
  uint64_t value = 0; // wire type 0
  std::string bytes;  // wire types 1, 2 and 5
  Fields fields;      // wire type 2, when it reads as a message
  bool isMessage = false;

  unsigned wire() const { return tag & 7; }
};

bool readVarint(const uint8_t *&at, const uint8_t *end, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; at != end && shift < 64; shift += 7) {
    uint8_t byte = *at++;
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

constexpr unsigned maxDepth = 400;

bool readFields(const uint8_t *at, const uint8_t *end, Fields &fields, unsigned depth) {
  while (at != end) {
    Field field;
    if (!readVarint(at, end, field.tag) || field.tag >> 3 == 0 || field.tag >> 3 > 1000)
      return false;
    uint64_t length = 0;
    switch (field.wire()) {
    case 0:
      if (!readVarint(at, end, field.value))
        return false;
      break;
    case 1: length = 8; break;
    case 2:
      if (!readVarint(at, end, length))
        return false;
      break;
    case 5: length = 4; break;
    default: return false;
    }
    if (length > static_cast<uint64_t>(end - at))
      return false;
    if (field.wire() == 2 && length > 0 && depth < maxDepth)
      field.isMessage = readFields(at, at + length, field.fields, depth + 1);
    if (field.isMessage)
      field.bytes.clear();
    else
      field.fields.clear(), field.bytes.assign(reinterpret_cast<const char *>(at), length);
    at += length;
    fields.push_back(std::move(field));
  }
  return true;
}

void writeVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

std::string writeFields(const Fields &fields) {
  std::string out;
  for (const Field &field : fields) {
    writeVarint(out, field.tag);
    if (field.wire() == 0) {
      writeVarint(out, field.value);
      continue;
    }
    std::string content = field.isMessage ? writeFields(field.fields) : field.bytes;
    if (field.wire() == 2)
      writeVarint(out, content.size());
    out += content;
  }
  return out;
}

struct Place {
  Fields *in;
  size_t at;
  Field &field() const { return (*in)[at]; }
};

void collect(Fields &fields, std::vector<Place> &places) {
  for (size_t i = 0; i < fields.size(); ++i) {
    places.push_back({&fields, i});
    collect(fields[i].fields, places);
  }
}

/// Half of the draws look for a leaf: messages hold many more of them, but weigh the same.
Place draw(std::vector<Place> &places, Random &random) { return places[random.below(places.size())]; }

/// Another field that stands for the same kind of thing: the same number, or at least the same wire type.
const Field *findLike(const std::vector<Place> &places, const Field &field, Random &random) {
  for (int attempt = 0; attempt < 24; ++attempt) {
    const Field &other = places[random.below(places.size())].field();
    bool same = attempt < 16 ? other.tag == field.tag : other.wire() == field.wire();
    if (&other != &field && same)
      return &other;
  }
  return nullptr;
}

void mutateBytes(std::string &bytes, Random &random) {
  size_t width = random.oneIn(2) ? 8 : 4;
  if (bytes.size() >= width && bytes.size() % width == 0 && random.oneIn(2)) { // an element of raw data
    int64_t value = random.integer();
    std::memcpy(bytes.data() + width * random.below(bytes.size() / width), &value, width);
    return;
  }
  random.mutate(bytes);
}

void mutateField(Place place, const std::vector<Place> &places, Random &random) {
  Field &field = place.field();
  Fields &siblings = *place.in;
  switch (random.below(8)) {
  case 0: siblings.erase(siblings.begin() + place.at); return;
  case 1: {
    Field copy = field;
    siblings.insert(siblings.begin() + random.below(siblings.size() + 1), std::move(copy));
    return;
  }
  case 2: std::swap(field, siblings[random.below(siblings.size())]); return;
  case 3:
  case 4:
    if (const Field *other = findLike(places, field, random)) {
      Field copy = *other; // may lie inside of what it replaces
      copy.tag = field.tag;
      field = std::move(copy);
      return;
    }
    break;
  case 5:
    if (random.oneIn(4)) { // another number or wire type
      field.tag = random.below(26) << 3 | (random.oneIn(4) ? random.below(6) : field.wire());
      return;
    }
    break;
  default: break;
  }
  if (field.wire() == 0)
    field.value = random.oneIn(3) ? field.value + random.below(5) - 2 : static_cast<uint64_t>(random.integer());
  else if (!field.isMessage)
    mutateBytes(field.bytes, random);
  else if (random.oneIn(8))
    field.isMessage = false, field.bytes = writeFields(field.fields), random.mutate(field.bytes);
}

} // namespace

size_t mutateProto(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  Fields fields;
  if (random.oneIn(32) || !readFields(data, data + size, fields, 0) || fields.empty())
    return LLVMFuzzerMutate(data, size, maxSize);
  for (size_t left = 1 + random.below(4); left > 0; --left) {
    std::vector<Place> places;
    collect(fields, places);
    if (!places.empty())
      mutateField(draw(places, random), places, random);
  }
  return store(writeFields(fields), data, size, maxSize);
}

size_t crossProtos(const uint8_t *first, size_t firstSize, const uint8_t *second, size_t secondSize, uint8_t *out,
                   size_t maxSize, unsigned seed) {
  Random random(seed);
  Fields fields, others;
  if (!readFields(first, first + firstSize, fields, 0) || !readFields(second, second + secondSize, others, 0))
    return 0;
  std::vector<Place> places, otherPlaces;
  collect(fields, places);
  collect(others, otherPlaces);
  if (places.empty() || otherPlaces.empty())
    return 0;
  Place place = draw(places, random);
  const Field *part = findLike(otherPlaces, place.field(), random);
  if (!part)
    return 0;
  if (random.oneIn(2))
    place.field() = *part;
  else
    place.in->insert(place.in->begin() + place.at, *part);
  std::string bytes = writeFields(fields);
  return bytes.size() > maxSize ? 0 : store(bytes, out, 0, maxSize);
}

} // namespace deepstride::fuzz
