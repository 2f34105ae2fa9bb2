#include "runtime/comm/FlatSpace.h"

#include "runtime/comm/Reduce.h"
#include "runtime/comm/Wire.h"
#include "runtime/core/Error.h"

#include <cstring>
#include <limits>

namespace ds {
namespace {

// The tensors that meet [begin, end): visit(address of the first element, where it lies from begin, elements).
template <typename Visit>
void visitSegments(const CollectivePart &part, ElementType type, int64_t begin, int64_t end, Visit action) {
  auto startsAfter = [](int64_t position, const Segment &segment) { return position < segment.offset; };
  auto segment = std::upper_bound(part.whole.begin(), part.whole.end(), begin, startsAfter);
  if (segment != part.whole.begin())
    --segment;
  for (; segment != part.whole.end() && segment->offset < end; ++segment) {
    int64_t from = std::max(begin, segment->offset), to = std::min(end, segment->offset + segment->count);
    if (from < to)
      action(static_cast<uint8_t *>(segment->data) + static_cast<size_t>(from - segment->offset) * typeSize(type),
             from - begin, to - from);
  }
}

bool reduces(CollectiveOp op) { return op == CollectiveOp::AllReduce || op == CollectiveOp::ReduceScatter; }

std::string faultOf(const CollectiveRequest &request, const CollectivePart &part, unsigned world) {
  int64_t most = std::numeric_limits<int64_t>::max() / 16 / world;
  if (part.shard < 0 || part.shard > most)
    return concat("shard of ", part.shard, " elements, expected 0 to ", most);
  if (part.begin < 0 || part.begin > part.end || part.end > part.shard * world)
    return concat("range [", part.begin, ", ", part.end, "), expected one within [0, ", part.shard * world, ")");
  int64_t last = 0;
  for (const Segment &segment : part.whole) {
    if (segment.count < 0 || segment.offset < last || (!segment.data && segment.count != 0))
      return concat("tensor of ", segment.count, " elements at ", segment.offset, ", expected memory at ", last,
                    " or after it");
    last = segment.offset + segment.count;
  }
  bool usesOwn = request.op == CollectiveOp::AllGather || request.op == CollectiveOp::AllToAll;
  if (usesOwn && !part.own && part.begin < part.end)
    return "has no memory for what this rank owns";
  return "";
}

} // namespace

OwnedSequence::OwnedSequence(const std::vector<CollectivePart> &parts, unsigned owner) : starts{0} {
  for (const CollectivePart &part : parts) {
    int64_t begin = std::max(part.begin, owner * part.shard), end = std::min(part.end, (owner + 1) * part.shard);
    begins.push_back(begin);
    starts.push_back(starts.back() + std::max<int64_t>(0, end - begin));
  }
}

void readWhole(const CollectivePart &part, ElementType type, ElementType wire, int64_t begin, int64_t end,
               uint8_t *message) {
  size_t size = typeSize(wire);
  int64_t filled = 0;
  auto fillTo = [&](int64_t position) {
    if (position > filled)
      std::memset(message + static_cast<size_t>(filled) * size, 0, static_cast<size_t>(position - filled) * size);
  };
  visitSegments(part, type, begin, end, [&](uint8_t *data, int64_t position, int64_t count) {
    fillTo(position);
    packElements(type, wire, data, message + static_cast<size_t>(position) * size, count);
    filled = position + count;
  });
  fillTo(end - begin);
}

void writeWhole(const CollectivePart &part, ElementType type, ElementType wire, int64_t begin, int64_t end,
                const uint8_t *message) {
  visitSegments(part, type, begin, end, [&](uint8_t *data, int64_t position, int64_t count) {
    unpackElements(wire, type, message + static_cast<size_t>(position) * typeSize(wire), data, count);
  });
}

void copyToWhole(const CollectivePart &part, ElementType type, int64_t begin, int64_t end, const uint8_t *source) {
  size_t size = typeSize(type);
  visitSegments(part, type, begin, end, [&](uint8_t *data, int64_t position, int64_t count) {
    const uint8_t *from = source + static_cast<size_t>(position) * size;
    if (from != data)
      std::memmove(data, from, static_cast<size_t>(count) * size);
  });
}

std::string faultOf(const CollectiveRequest &request, unsigned world) {
  if (!canTravelAs(request.type, request.wire))
    return concat("elements of type ", typeName(request.type), " cannot travel as ", typeName(request.wire));
  if (reduces(request.op) && !canReduce(request.wire))
    return concat("cannot reduce elements of type ", typeName(request.wire));
  for (const CollectivePart &part : request.parts)
    if (std::string fault = faultOf(request, part, world); !fault.empty())
      return fault;
  return "";
}

} // namespace ds
