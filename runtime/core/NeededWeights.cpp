#include "runtime/core/NeededWeights.h"

#include <algorithm>
#include <iterator>

namespace ds {
namespace {

// Elements of the unit's space that lie in tensors with first values.
void addUnit(const VariantInfo &variant, const UnitInfo &unit, int64_t first, int64_t count, ByteRanges &ranges) {
  for (const UnitTensor &tensor : unit.tensors) {
    int64_t begin = std::max(first, tensor.offset);
    int64_t end = std::min(first + count, tensor.offset + elementCount(tensor.shape));
    if (!tensor.initial || begin >= end)
      continue;
    const ConstantInfo &constant = variant.constants[*tensor.initial];
    size_t width = typeSize(constant.type);
    ranges.add(constant.offset + static_cast<size_t>(begin - tensor.offset) * width,
               constant.offset + static_cast<size_t>(end - tensor.offset) * width);
  }
}

void addState(const VariantInfo &variant, const StateInfo &state, int64_t rank, int64_t ranks, NeededWeights &needed) {
  if (state.part == StatePart::Own) {
    if (!state.initial)
      return;
    const ConstantInfo &constant = variant.constants[*state.initial];
    for (ByteRanges *ranges : {&needed.own, &needed.all})
      ranges->add(constant.offset, constant.offset + constant.bytes);
    return;
  }
  if (!state.suffix.empty()) // begins as zeros; a master, as the parameters beside it, which lie in the same part or
                             // all of them
    return;
  const UnitInfo &unit = variant.units[state.unit];
  int64_t shard = unit.shard(ranks);
  bool isShard = state.part == StatePart::Shard;
  addUnit(variant, unit, isShard ? rank * shard : 0, isShard ? shard : ranks * shard, needed.own);
  addUnit(variant, unit, 0, ranks * shard, needed.all);
}

} // namespace

void ByteRanges::add(uint64_t begin, uint64_t end) {
  if (begin >= end)
    return;
  auto next = ends.upper_bound(begin);
  if (next != ends.begin() && std::prev(next)->second >= begin)
    begin = (--next)->first;
  while (next != ends.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ends.erase(next);
  }
  ends[begin] = end;
}

bool ByteRanges::overlaps(uint64_t begin, uint64_t end) const {
  auto next = ends.lower_bound(end);
  return begin < end && next != ends.begin() && std::prev(next)->second > begin;
}

bool ByteRanges::contains(uint64_t begin, uint64_t end) const {
  auto next = ends.upper_bound(begin);
  return begin >= end || (next != ends.begin() && std::prev(next)->second >= end);
}

uint64_t ByteRanges::bytes() const {
  uint64_t sum = 0;
  for (auto [begin, end] : ends)
    sum += end - begin;
  return sum;
}

NeededWeights neededWeights(const VariantInfo &variant, int64_t rank, int64_t ranks) {
  NeededWeights needed;
  for (const EntryInfo &entry : variant.entries) {
    for (const BufferInfo &buffer : entry.buffers)
      if (buffer.role == BufferRole::Constant) {
        const ConstantInfo &constant = variant.constants[buffer.index];
        for (ByteRanges *ranges : {&needed.own, &needed.all})
          ranges->add(constant.offset, constant.offset + constant.bytes);
      }
    for (const StateInfo &state : entry.states)
      addState(variant, state, rank, ranks, needed);
  }
  return needed;
}

} // namespace ds
