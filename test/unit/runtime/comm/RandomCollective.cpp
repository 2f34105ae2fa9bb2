#include "test/unit/runtime/comm/RandomCollective.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ds::test {
namespace {

using T = ElementType;

int64_t pick(std::mt19937 &random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

bool isFloating(T type) { return type == T::F64 || type == T::F32 || type == T::F16 || type == T::BF16; }

size_t sizeOf(T type) {
  switch (type) {
  case T::F64:
  case T::I64: return 8;
  case T::F32:
  case T::I32: return 4;
  case T::F16:
  case T::BF16:
  case T::I16: return 2;
  default: return 1;
  }
}

Value valueOfBF16(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return static_cast<Value>(value);
}

// The nearer of the two neighbours, by their distances.
uint16_t nearestBF16(Value value) {
  float nearest = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &nearest, 4);
  auto middle = static_cast<uint16_t>(bits >> 16);
  uint16_t best = middle;
  for (int step : {-1, 1}) {
    auto other = static_cast<uint16_t>(middle + step);
    Value was = std::fabs(valueOfBF16(best) - value), is = std::fabs(valueOfBF16(other) - value);
    if (is < was || (is == was && (other & 1) == 0))
      best = other;
  }
  return best;
}

void store(T type, uint8_t *memory, int64_t index, Value value) {
  auto put = [&](auto element) { std::memcpy(memory + size_t(index) * sizeof(element), &element, sizeof(element)); };
  switch (type) {
  case T::F64: return put(static_cast<double>(value));
  case T::F32: return put(static_cast<float>(value));
  case T::F16: return put(static_cast<_Float16>(static_cast<double>(value)));
  case T::BF16: return put(nearestBF16(value));
  case T::I64: return put(static_cast<int64_t>(value));
  case T::I32: return put(static_cast<int32_t>(value));
  case T::I16: return put(static_cast<int16_t>(value));
  default: return put(static_cast<uint8_t>(value));
  }
}

Value rounded(T type, Value value) {
  switch (type) {
  case T::F64: return static_cast<double>(value);
  case T::F32: return static_cast<float>(value);
  case T::F16: return static_cast<Value>(static_cast<_Float16>(static_cast<double>(value)));
  case T::BF16: return valueOfBF16(nearestBF16(value));
  default: return value;
  }
}

int64_t wrapped(T type, uint64_t bits) {
  return type == T::I32 ? int64_t(static_cast<int32_t>(static_cast<uint32_t>(bits))) : static_cast<int64_t>(bits);
}

constexpr uint8_t untouched = 0xA5;

} // namespace

RandomCollective::RandomCollective(std::mt19937 &random, unsigned world, int64_t largestShard) : world(world) {
  op = static_cast<CollectiveOp>(pick(random, 0, 5));
  if (op == CollectiveOp::SendRecv) {
    by = pick(random, 1, world + 1) * (pick(random, 0, 1) ? 1 : -1);
    rotates = pick(random, 0, 1);
  }
  bool isReduced = op == CollectiveOp::AllReduce || op == CollectiveOp::ReduceScatter;
  const T reducible[] = {T::F64, T::F32, T::F16, T::BF16, T::I64, T::I32}, others[] = {T::I16, T::U8};
  type = isReduced || pick(random, 0, 2) ? reducible[pick(random, 0, 5)] : others[pick(random, 0, 1)];
  wire = type;
  if (type == T::F64 && pick(random, 0, 1))
    wire = reducible[pick(random, 1, 3)];
  if (type == T::F32 && pick(random, 0, 1))
    wire = reducible[pick(random, 2, 3)];
  reduction = static_cast<Reduction>(pick(random, 0, 2));
  site = "site" + std::to_string(pick(random, 0, 3));
  for (int64_t i = pick(random, 1, 4); i > 0; --i)
    drawPart(random, pick(random, 0, 3) ? std::min<int64_t>(largestShard, 20) : largestShard);
}

Value RandomCollective::draw(std::mt19937 &random) const {
  switch (type) {
  case T::I64:
    return static_cast<Value>(pick(random, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
  case T::I32:
    return static_cast<Value>(pick(random, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  case T::I16: return static_cast<Value>(pick(random, -32768, 32767));
  case T::U8: return static_cast<Value>(pick(random, 0, 255));
  default:
    double value = std::normal_distribution<double>(0, 1)(random);
    return rounded(type, std::ldexp(value, static_cast<int>(pick(random, -8, 8))));
  }
}

void RandomCollective::drawPart(std::mt19937 &random, int64_t largestShard) {
  RandomPart part;
  part.shard = pick(random, 0, largestShard);
  int64_t size = op == CollectiveOp::SendRecv ? part.shard : part.shard * world;
  part.begin = pick(random, 0, 2) ? 0 : pick(random, 0, size);
  part.end = pick(random, 0, 2) ? size : pick(random, part.begin, size);
  bool usesOwn = op == CollectiveOp::AllGather || op == CollectiveOp::ReduceScatter;
  part.isInPlace = usesOwn && pick(random, 0, 2) == 0;
  if (part.isInPlace)
    part.segments.push_back({0, size});
  for (int64_t at = 0; !part.isInPlace && at < size;) {
    int64_t gap = pick(random, 0, 1) ? 0 : pick(random, 0, 5), count = pick(random, 0, std::max<int64_t>(size / 2, 3));
    at += gap;
    count = std::min(count, size - at);
    if (count < 0 || pick(random, 0, 9) == 0)
      break;
    part.segments.push_back({at, count});
    at += count;
  }
  std::vector<bool> isCovered(size_t(size), false);
  for (auto [offset, count] : part.segments)
    std::fill_n(isCovered.begin() + offset, count, true);
  for (unsigned rank = 0; rank < world; ++rank) {
    std::vector<Value> space, own;
    for (int64_t i = 0; i < size; ++i)
      space.push_back(isCovered[size_t(i)] ? draw(random) : 0);
    for (int64_t i = 0; i < part.shard; ++i)
      own.push_back(part.isInPlace ? space[size_t(rank * part.shard + i)] : draw(random));
    part.spaces.push_back(space);
    part.owned.push_back(own);
  }
  parts.push_back(std::move(part));
}

int64_t RandomCollective::ownCount(const RandomPart &part) const {
  if (op == CollectiveOp::AllToAll)
    return part.shard * world;
  return op == CollectiveOp::AllReduce || op == CollectiveOp::Broadcast || part.isInPlace ? 0 : part.shard;
}

RandomCollective::Memory RandomCollective::memoryOf(unsigned rank) const {
  Memory memory;
  memory.request.op = op;
  memory.request.value = "value";
  memory.request.site = site;
  memory.request.type = type;
  memory.request.wire = wire;
  memory.request.reduction = reduction;
  memory.request.by = by;
  memory.request.rotates = rotates;
  for (const RandomPart &part : parts) {
    CollectivePart &request = memory.request.parts.emplace_back();
    request.shard = part.shard;
    request.begin = part.begin;
    request.end = part.end;
    auto &tensors = memory.tensors.emplace_back();
    for (auto [offset, count] : part.segments) {
      std::vector<uint8_t> &bytes = tensors.emplace_back(size_t(count) * sizeOf(type) + 8, untouched);
      for (int64_t i = 0; i < count; ++i)
        store(type, bytes.data(), i, part.spaces[rank][size_t(offset + i)]);
      request.whole.push_back({bytes.data(), offset, count});
    }
    auto &own = memory.own.emplace_back(size_t(ownCount(part)) * sizeOf(type) + 8, untouched);
    if (op == CollectiveOp::AllGather && !part.isInPlace)
      for (int64_t i = 0; i < part.shard; ++i)
        store(type, own.data(), i, part.owned[rank][size_t(i)]);
    request.own = part.isInPlace                      ? tensors[0].data() + size_t(rank * part.shard) * sizeOf(type)
                  : ownCount(part) || part.shard == 0 ? own.data()
                                                      : nullptr;
    if (op == CollectiveOp::ReduceScatter && part.isInPlace && part.shard % 2 == 1)
      request.own = nullptr; // the same place, not named
  }
  return memory;
}

Value RandomCollective::reduced(const RandomPart &part, int64_t position) const {
  auto of = [&](unsigned rank) { return rounded(wire, part.spaces[rank][size_t(position)]); };
  Value result = of(0);
  for (unsigned rank = 1; rank < world; ++rank) {
    Value next = of(rank);
    if (reduction == Reduction::Max)
      result = next > result ? next : result;
    else if (!isFloating(wire))
      result = static_cast<Value>(wrapped(wire, uint64_t(int64_t(result)) + uint64_t(int64_t(next))));
    else if (wire == T::F64)
      result = static_cast<double>(result) + static_cast<double>(next);
    else
      result = static_cast<float>(result) + static_cast<float>(next);
  }
  if (reduction != Reduction::Mean)
    return rounded(wire, result);
  if (!isFloating(wire)) {
    int64_t quotient = int64_t(result) / int64_t(world);
    return static_cast<Value>(quotient);
  }
  if (wire == T::F64)
    return static_cast<double>(result) / world;
  return rounded(wire, static_cast<float>(result) / static_cast<float>(world));
}

Value RandomCollective::expectedWhole(const RandomPart &part, unsigned rank, int64_t position) const {
  Value before = part.spaces[rank][size_t(position)];
  bool isOwned = position / part.shard == rank;
  if (position < part.begin || position >= part.end)
    return before;
  switch (op) {
  case CollectiveOp::AllReduce: return reduced(part, position);
  case CollectiveOp::ReduceScatter: return part.isInPlace && isOwned ? reduced(part, position) : before;
  case CollectiveOp::AllGather:
    return rounded(wire, part.owned[size_t(position / part.shard)][size_t(position % part.shard)]);
  case CollectiveOp::Broadcast: return rounded(wire, part.spaces[size_t(position / part.shard)][size_t(position)]);
  case CollectiveOp::AllToAll:
  case CollectiveOp::SendRecv: return before;
  }
  return before;
}

int64_t RandomCollective::neighbour(int64_t rank, int64_t distance) const {
  int64_t place = rank + distance;
  for (; rotates && place < 0;)
    place += world;
  for (; rotates && place >= world;)
    place -= world;
  return place >= 0 && place < world ? place : -1;
}

Value RandomCollective::expectedOwn(const RandomPart &part, unsigned rank, int64_t element) const {
  if (op == CollectiveOp::SendRecv) {
    int64_t from = neighbour(rank, -by);
    return from < 0 || element < part.begin || element >= part.end
               ? std::numeric_limits<Value>::quiet_NaN() // untouched
               : rounded(wire, part.spaces[size_t(from)][size_t(element)]);
  }
  int64_t position = rank * part.shard + element % part.shard;
  if (op == CollectiveOp::AllGather)
    return part.owned[rank][size_t(element)];
  if (position < part.begin || position >= part.end)
    return std::numeric_limits<Value>::quiet_NaN(); // untouched
  if (op == CollectiveOp::AllToAll)
    return rounded(wire, part.spaces[size_t(element / part.shard)][size_t(position)]);
  return reduced(part, position);
}

std::string RandomCollective::faultOf(const Memory &memory, unsigned rank) const {
  auto differs = [&](const std::vector<uint8_t> &found, int64_t count, auto expected) -> int64_t {
    std::vector<uint8_t> right(found.size(), untouched);
    for (int64_t i = 0; i < count; ++i)
      if (Value value = expected(i); !std::isnan(value))
        store(type, right.data(), i, value);
    auto mismatch = std::mismatch(found.begin(), found.end(), right.begin()).first;
    return mismatch == found.end() ? -1 : (mismatch - found.begin()) / int64_t(sizeOf(type));
  };
  for (size_t p = 0; p < parts.size(); ++p) {
    const RandomPart &part = parts[p];
    std::string where = "op " + std::to_string(int(op)) + " type " + std::to_string(int(type)) + " as " +
                        std::to_string(int(wire)) + " part " + std::to_string(p) + " shard " +
                        std::to_string(part.shard);
    for (size_t s = 0; s < part.segments.size(); ++s) {
      auto [offset, count] = part.segments[s];
      int64_t at = differs(memory.tensors[p][s], count,
                           [&, first = offset](int64_t i) { return expectedWhole(part, rank, first + i); });
      if (at >= 0)
        return where + ": whole differs at " + std::to_string(offset + at);
    }
    int64_t at = differs(memory.own[p], ownCount(part), [&](int64_t i) { return expectedOwn(part, rank, i); });
    if (at >= 0)
      return where + ": own differs at " + std::to_string(at);
  }
  return "";
}

uint64_t RandomCollective::sentBytes(unsigned rank) const {
  if (op == CollectiveOp::SendRecv) {
    int64_t other = neighbour(rank, by);
    return other < 0 || other == rank ? 0 : uint64_t(elements()) * sizeOf(wire);
  }
  bool toOwners = op != CollectiveOp::AllGather && op != CollectiveOp::Broadcast;
  bool fromOwners = op != CollectiveOp::ReduceScatter && op != CollectiveOp::AllToAll;
  uint64_t elements = 0;
  for (const RandomPart &part : parts)
    for (int64_t i = part.begin; i < part.end; ++i)
      elements += i / part.shard == rank ? (fromOwners ? world - 1 : 0) : (toOwners ? 1 : 0);
  return elements * sizeOf(wire);
}

uint64_t RandomCollective::receivedBytes(unsigned rank) const {
  if (op == CollectiveOp::SendRecv) {
    int64_t other = neighbour(rank, -by);
    return other < 0 || other == rank ? 0 : uint64_t(elements()) * sizeOf(wire);
  }
  bool toOwners = op != CollectiveOp::AllGather && op != CollectiveOp::Broadcast;
  bool fromOwners = op != CollectiveOp::ReduceScatter && op != CollectiveOp::AllToAll;
  uint64_t elements = 0;
  for (const RandomPart &part : parts)
    for (int64_t i = part.begin; i < part.end; ++i)
      elements += i / part.shard == rank ? (toOwners ? world - 1 : 0) : (fromOwners ? 1 : 0);
  return elements * sizeOf(wire);
}

int64_t RandomCollective::elements() const {
  int64_t total = 0;
  for (const RandomPart &part : parts)
    total += part.end - part.begin;
  return total;
}

} // namespace ds::test
