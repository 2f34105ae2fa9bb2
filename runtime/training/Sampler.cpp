#include "runtime/training/Sampler.h"

#include "runtime/core/Error.h"
#include "runtime/core/Philox.h"

namespace ds {
namespace {
// Three are enough for a permutation to look random when the rounds' functions are (Luby and Rackoff); small domains,
// such as ten samples, want more.
constexpr unsigned rounds = 8;
} // namespace

Sampler::Sampler(int64_t samples, uint64_t seed, bool isShuffled, int64_t epochs)
    : count(samples), seedValue(seed), shuffled(isShuffled), limit(epochs) {
  if (samples < 1)
    fail(ErrorCode::InvalidArgument, "found ", samples, " samples, expected at least 1");
  if (epochs < 0)
    fail(ErrorCode::InvalidArgument, "found ", epochs, " epochs, expected 1 or more, or 0 for no end");
  unsigned bits = 0;
  while ((uint64_t(1) << bits) < static_cast<uint64_t>(samples))
    ++bits;
  lowBits = bits / 2;
  highBits = bits - lowBits;
}

int64_t Sampler::at(int64_t epoch, int64_t position) const {
  if (epoch < 0 || position < 0 || position >= count)
    fail(ErrorCode::InvalidArgument, "epoch ", epoch, ", place ", position, ": expected a place of 0 to ", count - 1);
  if (!shuffled)
    return position;
  // What falls beyond the samples is permuted on until it falls among them: that is a permutation of the samples, and
  // takes less than two turns on average, since more than half of the domain are samples.
  uint64_t value = static_cast<uint64_t>(position);
  do
    value = permute(value, static_cast<uint64_t>(epoch));
  while (value >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(value);
}

// A Feistel network: each round changes one half by a function of the other, which can be undone whatever the function.
uint64_t Sampler::permute(uint64_t value, uint64_t epoch) const {
  uint64_t low = value & ((uint64_t(1) << lowBits) - 1), high = value >> lowBits;
  for (unsigned round = 0; round < rounds; ++round) {
    bool changesLow = round % 2 != 0;
    // Halves have at most 32 bits; an epoch's upper ones go with the round.
    uint32_t half = static_cast<uint32_t>(changesLow ? high : low);
    PhiloxCounter drawn =
        philox({half, round, static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32)}, philoxKey(seedValue));
    uint64_t &changed = changesLow ? low : high;
    changed ^= drawn[0] & ((uint64_t(1) << (changesLow ? lowBits : highBits)) - 1);
  }
  return high << lowBits | low;
}

} // namespace ds
