// What ranks say about their collectives: names for messages, and what they compare.
#include "runtime/comm/Collectives.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

namespace ds {
namespace {

bool reduces(const CollectiveRequest &request) {
  return request.op == CollectiveOp::AllReduce || request.op == CollectiveOp::ReduceScatter;
}

const char *reductionName(Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum: return "sum";
  case Reduction::Mean: return "mean";
  case Reduction::Max: return "max";
  }
  return "?";
}

// FNV-1a.
class Digest {
public:
  void add(const std::string &text) {
    add(static_cast<int64_t>(text.size()));
    for (char c : text)
      mix(static_cast<uint8_t>(c));
  }
  void add(int64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      mix(static_cast<uint8_t>(static_cast<uint64_t>(number) >> shift));
  }
  uint64_t value() const { return state; }

private:
  void mix(uint8_t byte) { state = (state ^ byte) * 0x100000001b3; }

  uint64_t state = 0xcbf29ce484222325;
};

} // namespace

std::string nameOf(const CollectiveRequest &request) {
  return concat(collectiveName(request.op), " ", inQuotes(request.value), " at ", inQuotes(request.site));
}

std::string describe(const CollectiveRequest &request) {
  int64_t elements = 0;
  for (const CollectivePart &part : request.parts)
    elements += part.end - part.begin;
  std::string text = nameOf(request) + " (";
  if (reduces(request))
    text += concat(reductionName(request.reduction), " of ");
  text += concat(elements, " ", typeName(request.type));
  if (request.wire != request.type)
    text += concat(" as ", typeName(request.wire));
  if (request.codec == Codec::OneBit)
    text += " as 1 bit";
  if (request.codec == Codec::SparseRows)
    text += concat(" in rows of ", request.parts[0].rowLength);
  if (request.op == CollectiveOp::SendRecv)
    text += concat(request.rotates ? " around by " : " by ", request.by);
  constexpr size_t shown = 3;
  for (size_t i = 0; i < request.parts.size() && i < shown; ++i)
    text += concat(i == 0 ? ": [" : ", [", request.parts[i].begin, ", ", request.parts[i].end, ") in shards of ",
                   request.parts[i].shard);
  if (request.parts.size() > shown)
    text += concat(" and ", request.parts.size() - shown, " more");
  return text + ")";
}

uint64_t digestOf(const CollectiveRequest &request) {
  Digest digest;
  digest.add(request.value);
  digest.add(request.site);
  for (int64_t number : {int64_t(request.op), int64_t(request.type), int64_t(request.wire),
                         reduces(request) ? int64_t(request.reduction) : 0, int64_t(request.codec), request.by,
                         int64_t(request.rotates), int64_t(request.parts.size())})
    digest.add(number);
  for (const CollectivePart &part : request.parts) {
    for (int64_t number : {part.shard, part.begin, part.end, part.rowLength})
      digest.add(number);
    if (request.op == CollectiveOp::AllReduce) // sums come back to the places that they came from
      for (const Segment &segment : part.whole) {
        digest.add(segment.offset);
        digest.add(segment.count);
      }
  }
  return digest.value();
}

} // namespace ds
