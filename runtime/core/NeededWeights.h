// Which bytes of weights.bin one of several ranks reads: of parameters that ranks share it holds a part.
#ifndef DEEPSTRIDE_RUNTIME_CORE_NEEDEDWEIGHTS_H
#define DEEPSTRIDE_RUNTIME_CORE_NEEDEDWEIGHTS_H

#include "runtime/core/Manifest.h"

#include <map>

namespace ds {

// Ranges of bytes, kept in order and without overlap.
class ByteRanges {
public:
  void add(uint64_t begin, uint64_t end);
  bool overlaps(uint64_t begin, uint64_t end) const;
  bool contains(uint64_t begin, uint64_t end) const;
  uint64_t bytes() const;

private:
  std::map<uint64_t, uint64_t> ends; // by begin
};

struct NeededWeights {
  ByteRanges own, all; // of this rank; of all together
};

// Of the variant's constants: what entries read, and what states begin with.
NeededWeights neededWeights(const VariantInfo &variant, int64_t rank, int64_t ranks);

} // namespace ds
#endif
