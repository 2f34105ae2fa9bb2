#include "runtime/comm/FlatSpace.h"

#include "runtime/comm/Reduce.h"
#include "runtime/comm/Wire.h"
#include "runtime/core/Error.h"

#include <cstring>
#include <limits>

namespace ds {
namespace {

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
  bool isTurn = request.op == CollectiveOp::SendRecv;
  bool usesOwn = request.op == CollectiveOp::AllGather || request.op == CollectiveOp::AllToAll || isTurn;
  if (isTurn && part.end > part.shard)
    return concat("range [", part.begin, ", ", part.end, "), expected one within [0, ", part.shard, ")");
  if (usesOwn && !part.own && part.begin < part.end)
    return "has no memory for what this rank owns";
  return "";
}

std::string faultOfOneBit(const CollectiveRequest &request, unsigned world) {
  if (request.op != CollectiveOp::AllReduce || request.reduction != Reduction::Mean)
    return "cannot travel as 1 bit, expected the mean of an all_reduce";
  if ((request.type != ElementType::F32 && request.type != ElementType::F64) || request.wire != request.type)
    return concat("elements of type ", typeName(request.type), " as ", typeName(request.wire),
                  " cannot travel as 1 bit, expected f32 as f32 or f64 as f64");
  for (const CollectivePart &part : request.parts) {
    if (part.shard % 8 != 0)
      return concat("shard of ", part.shard, " elements that travel as 1 bit, expected a multiple of 8");
    if (part.begin != 0 || part.end != part.shard * world)
      return concat("range [", part.begin, ", ", part.end, ") travels as 1 bit, expected [0, ", part.shard * world,
                    ")");
    if (part.shard != 0 && (!part.workerError || !part.serverError))
      return concat("has no memory for the ", part.workerError ? "server" : "worker",
                    " error of what travels as 1 bit");
  }
  return "";
}

std::string faultOfSparseRows(const CollectiveRequest &request) {
  if (!reduces(request.op) || request.reduction == Reduction::Max)
    return "cannot travel as rows, expected the sum or mean of an all_reduce or a reduce_scatter";
  if (request.parts.size() != 1 || request.parts[0].whole.size() != 1)
    return concat(request.parts.size(), " parts travel as rows, expected one with one tensor");
  const CollectivePart &part = request.parts[0];
  if (part.own)
    return "travels as rows into memory of its own, expected what this rank owns in its place";
  const Segment &table = part.whole[0];
  if (part.rowLength < 1 || table.count % part.rowLength != 0)
    return concat("tensor of ", table.count, " elements in rows of ", part.rowLength, ", expected a divisor of that");
  if (table.offset < part.begin || table.offset + table.count > part.end)
    return concat("tensor [", table.offset, ", ", table.offset + table.count, ") travels as rows, expected it within [",
                  part.begin, ", ", part.end, ")");
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
  if (request.op == CollectiveOp::SendRecv &&
      (request.by == 0 || request.by < -int64_t(mostRanks) || request.by > int64_t(mostRanks)))
    return concat("goes by ", request.by, " ranks, expected -", mostRanks, " to ", mostRanks, ", and not 0");
  if (reduces(request.op) && !canReduce(request.wire))
    return concat("cannot reduce elements of type ", typeName(request.wire));
  for (const CollectivePart &part : request.parts)
    if (std::string fault = faultOf(request, part, world); !fault.empty())
      return fault;
  switch (request.codec) {
  case Codec::None: return "";
  case Codec::OneBit: return faultOfOneBit(request, world);
  case Codec::SparseRows: return faultOfSparseRows(request);
  }
  return concat("codec ", int(request.codec), ", expected 0 to ", int(Codec::SparseRows));
}

} // namespace ds
