#include "test/fuzz/Random.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace deepstride::fuzz {

int64_t Random::integer() {
  int64_t small = static_cast<int64_t>(below(12)) - 4;
  switch (below(6)) {
  case 0:
  case 1: return small;
  case 2: return static_cast<int64_t>(uint64_t(small) + (uint64_t(1) << below(64)));
  case 3: return std::numeric_limits<int64_t>::max() - static_cast<int64_t>(below(3));
  case 4: return std::numeric_limits<int64_t>::min() + static_cast<int64_t>(below(3));
  default: return static_cast<int64_t>(below(1 << 16));
  }
}

void Random::mutate(std::string &bytes) {
  size_t size = bytes.size(), room = size + 64;
  bytes.resize(room);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(bytes.data()), size, room));
}

size_t store(const std::string &bytes, uint8_t *data, size_t size, size_t maxSize) {
  if (bytes.size() > maxSize)
    return size;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

} // namespace deepstride::fuzz
