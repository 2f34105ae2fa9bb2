// What mutators draw from: reproducible by libFuzzer's seed.
#ifndef DEEPSTRIDE_TEST_FUZZ_RANDOM_H
#define DEEPSTRIDE_TEST_FUZZ_RANDOM_H

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace deepstride::fuzz {

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}

  /// Below `count`, which is not 0.
  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine); }
  bool oneIn(size_t count) { return below(count) == 0; }

  /// An integer where programs tend to break: around 0, powers of two, the ends of types.
  int64_t integer();

  /// The bytes changed by libFuzzer's own mutations; they know the comparisons that the program made.
  void mutate(std::string &bytes);

private:
  std::mt19937 engine;
};

/// Copies to libFuzzer's buffer; returns the size. What does not fit is left as it was.
size_t store(const std::string &bytes, uint8_t *data, size_t size, size_t maxSize);

} // namespace deepstride::fuzz

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

#endif
