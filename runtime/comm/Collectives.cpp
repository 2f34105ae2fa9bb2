#include "runtime/comm/Collectives.h"

#include "runtime/comm/OneBitTask.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/SendRecvTask.h"
#include "runtime/comm/SparseRowsTask.h"
#include "runtime/comm/Wire.h"

#include <cstring>

namespace ds {
namespace {

// Chunks that may wait for a sum, per peer.
constexpr int64_t waitingChunks = 4;
// Done in one advance(), so that the thread that moves data also looks after other collectives.
constexpr int settledAtOnce = 8;

} // namespace

size_t CollectiveTask::chunkBytes(unsigned world) {
  constexpr size_t most = size_t(64) << 10, least = size_t(4) << 10;
  return std::clamp((size_t(512) << 10) / world / 64 * 64, least, most);
}

std::unique_ptr<CollectiveTask> makeTask(const CollectiveRequest &request, unsigned rank, unsigned world,
                                         size_t chunkBytes) {
  if (request.codec == Codec::OneBit)
    return std::make_unique<OneBitTask>(request, rank, world, chunkBytes);
  if (request.codec == Codec::SparseRows)
    return std::make_unique<SparseRowsTask>(request, rank, world, chunkBytes);
  if (request.op == CollectiveOp::SendRecv)
    return std::make_unique<SendRecvTask>(request, rank, world, chunkBytes);
  return std::make_unique<ElementsTask>(request, rank, world, chunkBytes);
}

ElementsTask::ElementsTask(const CollectiveRequest &given, unsigned rank, unsigned world, size_t chunkBytes)
    : CollectiveTask(given, rank, world), chunk(static_cast<int64_t>(chunkBytes / typeSize(request.wire))),
      brief(elements() <= chunk), peers(world) {
  for (unsigned owner = 0; owner < world; ++owner)
    owned.emplace_back(request.parts, owner);
}

bool ElementsTask::sendsToOwner() const {
  return request.op == CollectiveOp::AllReduce || request.op == CollectiveOp::ReduceScatter ||
         request.op == CollectiveOp::AllToAll;
}

bool ElementsTask::sendsFromOwner() const {
  return request.op != CollectiveOp::ReduceScatter && request.op != CollectiveOp::AllToAll;
}

int64_t CollectiveTask::elements() const {
  int64_t total = 0;
  for (const CollectivePart &part : request.parts)
    total += part.end - part.begin;
  return total;
}

uint8_t *ElementsTask::ownAt(const CollectivePart &part, int64_t position) const {
  return static_cast<uint8_t *>(part.own) + static_cast<size_t>(position - rank * part.shard) * typeSize(request.type);
}

void ElementsTask::readChunk(unsigned owner, int64_t index, Payload &message, size_t prefix) const {
  message.resize(prefix + static_cast<size_t>(lengthOf(owner, index)) * typeSize(request.wire));
  visitChunk(owner, index, [&](const CollectivePart &part, int64_t begin, int64_t end, size_t at) {
    readWhole(part, request.type, request.wire, begin, end, message.data() + prefix + at);
  });
}

void ElementsTask::readOwn(int64_t index, Payload &message, size_t prefix) const {
  message.resize(prefix + static_cast<size_t>(lengthOf(rank, index)) * typeSize(request.wire));
  visitChunk(rank, index, [&](const CollectivePart &part, int64_t begin, int64_t end, size_t at) {
    packElements(request.type, request.wire, ownAt(part, begin), message.data() + prefix + at, end - begin);
  });
}

void ElementsTask::writeOwn(int64_t index, const Payload &payload) const {
  visitChunk(rank, index, [&](const CollectivePart &part, int64_t begin, int64_t end, size_t at) {
    if (part.own)
      unpackElements(request.wire, request.type, payload.data() + at, ownAt(part, begin), end - begin);
    else
      writeWhole(part, request.type, request.wire, begin, end, payload.data() + at);
  });
}

void ElementsTask::writeBlock(unsigned from, int64_t index, const Payload &payload) const {
  visitChunk(rank, index, [&](const CollectivePart &part, int64_t begin, int64_t end, size_t at) {
    unpackElements(request.wire, request.type, payload.data() + at, ownAt(part, begin + from * part.shard),
                   end - begin);
  });
}

bool ElementsTask::canSettle() const {
  if (settled == chunksOf(rank))
    return false;
  if (reduces())
    for (unsigned peer = 0; peer < world; ++peer)
      if (peer != rank && peers[peer].waiting.empty())
        return false;
  return true;
}

void ElementsTask::reduceChunk() {
  readChunk(rank, settled, mine);
  std::vector<const void *> parts;
  for (unsigned peer = 0; peer < world; ++peer)
    parts.push_back(peer == rank ? mine.data() : peers[peer].waiting.front().data());
  sum.resize(mine.size());
  reduceParts(request.wire, request.reduction, parts, lengthOf(rank, settled), sum.data());
  for (unsigned peer = 0; peer < world; ++peer)
    if (peer != rank) {
      spare.push_back(std::move(peers[peer].waiting.front()));
      peers[peer].waiting.pop_front();
    }
}

void ElementsTask::settle() {
  auto toWhole = [&](const CollectivePart &part, int64_t begin, int64_t end, size_t at) {
    writeWhole(part, request.type, request.wire, begin, end, sum.data() + at);
  };
  switch (request.op) {
  case CollectiveOp::ReduceScatter:
    reduceChunk();
    writeOwn(settled, sum);
    break;
  case CollectiveOp::AllReduce:
    reduceChunk();
    visitChunk(rank, settled, toWhole);
    break;
  case CollectiveOp::AllToAll:
    readChunk(rank, settled, sum);
    writeBlock(rank, settled, sum);
    break;
  case CollectiveOp::AllGather:
    if (request.type == request.wire) {
      visitChunk(rank, settled, [&](const CollectivePart &part, int64_t begin, int64_t end, size_t) {
        copyToWhole(part, request.type, begin, end, ownAt(part, begin));
      });
      break;
    }
    readOwn(settled, sum);
    visitChunk(rank, settled, toWhole);
    break;
  case CollectiveOp::Broadcast:
    if (request.type != request.wire) { // the source keeps the bits that the others get
      readChunk(rank, settled, sum);
      visitChunk(rank, settled, toWhole);
    }
    break;
  case CollectiveOp::SendRecv: break; // SendRecvTask's
  }
  ++settled;
}

bool ElementsTask::advance() {
  int done = 0;
  for (; done < settledAtOnce && canSettle(); ++done)
    settle();
  return done > 0;
}

bool ElementsTask::next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) {
  Peer &to = peers[peer];
  if (phase == Phase::FromOwner) {
    if (!sendsFromOwner() || to.fromOwnerSent == settled)
      return false;
    header.chunk = static_cast<uint32_t>(to.fromOwnerSent);
    if (request.op == CollectiveOp::AllGather)
      readOwn(to.fromOwnerSent++, message, prefix);
    else
      readChunk(rank, to.fromOwnerSent++, message, prefix);
  } else {
    if (!sendsToOwner() || to.toOwnerSent == chunksOf(peer))
      return false;
    header.chunk = static_cast<uint32_t>(to.toOwnerSent);
    readChunk(peer, to.toOwnerSent++, message, prefix);
  }
  header.bytes = static_cast<uint32_t>(message.size() - prefix);
  sent += header.bytes;
  return true;
}

bool ElementsTask::expects(unsigned peer, Phase phase, const DataHeader &header) const {
  bool isToOwner = phase == Phase::ToOwner;
  unsigned owner = isToOwner ? rank : peer;
  int64_t number = isToOwner ? peers[peer].toOwnerReceived : peers[peer].fromOwnerReceived;
  return (isToOwner ? sendsToOwner() : sendsFromOwner()) && header.chunk == number && number < chunksOf(owner) &&
         header.bytes == static_cast<size_t>(lengthOf(owner, number)) * typeSize(request.wire);
}

bool ElementsTask::hasRoom(unsigned, Phase phase, const DataHeader &header) const {
  return phase == Phase::FromOwner || !reduces() || header.chunk < settled + waitingChunks;
}

void ElementsTask::take(unsigned peer, Phase phase, Payload &payload) {
  Peer &from = peers[peer];
  received += payload.size();
  if (phase == Phase::FromOwner) {
    visitChunk(peer, from.fromOwnerReceived++, [&](const CollectivePart &part, int64_t begin, int64_t end, size_t at) {
      writeWhole(part, request.type, request.wire, begin, end, payload.data() + at);
    });
    return;
  }
  if (!reduces())
    return writeBlock(peer, from.toOwnerReceived++, payload);
  ++from.toOwnerReceived;
  from.waiting.push_back(std::move(payload));
  payload = Payload();
  if (!spare.empty()) {
    payload = std::move(spare.back());
    spare.pop_back();
  }
}

bool ElementsTask::expectsMoreFrom(unsigned peer) const {
  return (sendsToOwner() && peers[peer].toOwnerReceived < chunksOf(rank)) ||
         (sendsFromOwner() && peers[peer].fromOwnerReceived < chunksOf(peer));
}

bool ElementsTask::isDone() const {
  if (settled < chunksOf(rank))
    return false;
  for (unsigned peer = 0; peer < world; ++peer) {
    if (peer == rank)
      continue;
    if (expectsMoreFrom(peer) || (sendsToOwner() && peers[peer].toOwnerSent < chunksOf(peer)) ||
        (sendsFromOwner() && peers[peer].fromOwnerSent < settled))
      return false;
  }
  return true;
}

const char *collectiveName(CollectiveOp op) {
  switch (op) {
  case CollectiveOp::AllReduce: return "all_reduce";
  case CollectiveOp::ReduceScatter: return "reduce_scatter";
  case CollectiveOp::AllGather: return "all_gather";
  case CollectiveOp::AllToAll: return "all_to_all";
  case CollectiveOp::Broadcast: return "broadcast";
  case CollectiveOp::SendRecv: return "send_recv";
  }
  return "?";
}

} // namespace ds
