// Which sample comes when: each epoch is a permutation of all samples, drawn from the seed and the epoch's number.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_SAMPLER_H
#define DEEPSTRIDE_RUNTIME_TRAINING_SAMPLER_H

#include <cstdint>

namespace ds {

// Keeps no state and no table: the sample at a place is computed, so that resuming needs the place alone, an epoch of
// 10^10 samples takes no memory, and ranks can take every n-th place of the same epoch.
class Sampler {
public:
  // epochs 0: without end. Throws Error(InvalidArgument) without samples.
  Sampler(int64_t samples, uint64_t seed, bool isShuffled, int64_t epochs = 0);

  // The sample at a place, 0 to samples() - 1, of an epoch.
  int64_t at(int64_t epoch, int64_t position) const;

  int64_t samples() const { return count; }
  uint64_t seed() const { return seedValue; }
  bool isShuffled() const { return shuffled; }
  int64_t epochs() const { return limit; }
  bool hasEpoch(int64_t epoch) const { return limit == 0 || epoch < limit; }

private:
  uint64_t permute(uint64_t value, uint64_t epoch) const;

  int64_t count;
  uint64_t seedValue;
  bool shuffled;
  int64_t limit;
  unsigned lowBits = 0, highBits = 0; // of the least 2^n that holds all samples
};

} // namespace ds
#endif
