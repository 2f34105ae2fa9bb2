// What random unit tests start from.
#ifndef DEEPSTRIDE_TEST_UNIT_SUPPORT_SEED_H
#define DEEPSTRIDE_TEST_UNIT_SUPPORT_SEED_H

#include <cstdint>
#include <cstdlib>
#include <random>

/// What DS_SEED says, so that a failure can be repeated; otherwise another number in every call.
inline uint32_t randomSeed() {
  const char *text = std::getenv("DS_SEED");
  return text ? static_cast<uint32_t>(std::strtoull(text, nullptr, 10)) : std::random_device{}();
}

#endif // DEEPSTRIDE_TEST_UNIT_SUPPORT_SEED_H
