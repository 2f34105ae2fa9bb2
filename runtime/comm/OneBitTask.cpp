#include "runtime/comm/OneBitTask.h"

#include <cstring>

namespace ds {
namespace {

// Chunks that may wait for a sum, per peer.
constexpr int64_t waitingChunks = 4;
// Done in one advance(), so that the thread that moves data also looks after other collectives.
constexpr int64_t preparedAtOnce = 1 << 18;

} // namespace

OneBitTask::OneBitTask(const CollectiveRequest &given, unsigned rank, unsigned world, size_t chunkBytes)
    : CollectiveTask(given, rank, world), chunk(static_cast<int64_t>(chunkBytes)), peers(world) {
  size_t parts = request.parts.size();
  bytes = static_cast<int64_t>(parts * sizeof(float));
  for (const CollectivePart &part : request.parts)
    bytes += part.shard / 8;
  chunks = (bytes + chunk - 1) / chunk;
  for (unsigned owner = 0; owner < world; ++owner)
    owned.emplace_back(request.parts, owner);
  for (Peer &peer : peers) {
    peer.toOwner.resize(parts);
    peer.fromOwner.resize(parts);
  }
  ownSquares.resize(parts);
  squares.resize(parts);
  if (world == 1) { // nothing travels, so nothing is left out
    preparedParts = parts;
    chunks = 0;
  }
}

int64_t OneBitTask::coveredBy(const CollectivePart &part, int64_t begin, int64_t end) const {
  int64_t total = 0;
  visitSegments(part, request.type, begin, end, [&](uint8_t *, int64_t, int64_t count) { total += count; });
  return total;
}

uint8_t *OneBitTask::workerError(size_t part, int64_t position) const {
  return static_cast<uint8_t *>(request.parts[part].workerError) +
         static_cast<size_t>(position) * typeSize(request.type);
}

uint8_t *OneBitTask::serverError(size_t part, int64_t position) const {
  return static_cast<uint8_t *>(request.parts[part].serverError) +
         static_cast<size_t>(position - rank * request.parts[part].shard) * typeSize(request.type);
}

void OneBitTask::writeScales(int64_t index, const std::vector<float> &scales, uint8_t *message) const {
  size_t first = static_cast<size_t>(index * chunk), size = scales.size() * sizeof(float);
  if (first < size)
    std::memcpy(message, reinterpret_cast<const uint8_t *>(scales.data()) + first,
                std::min(size - first, static_cast<size_t>(lengthOf(index))));
}

void OneBitTask::readScales(int64_t index, const uint8_t *message, std::vector<float> &scales) const {
  size_t first = static_cast<size_t>(index * chunk), size = scales.size() * sizeof(float);
  if (first < size)
    std::memcpy(reinterpret_cast<uint8_t *>(scales.data()) + first, message,
                std::min(size - first, static_cast<size_t>(lengthOf(index))));
}

template <typename Visit> void OneBitTask::visitBits(unsigned owner, int64_t index, Visit action) const {
  int64_t scales = static_cast<int64_t>(request.parts.size() * sizeof(float));
  int64_t first = std::max(index * chunk, scales), last = index * chunk + lengthOf(index);
  if (first >= last)
    return;
  owned[owner].visit((first - scales) * 8, (last - first) * 8,
                     [&](size_t part, int64_t begin, int64_t end, int64_t at) {
                       auto byte = static_cast<size_t>(first - index * chunk + at / 8);
                       visitSegments(request.parts[part], request.type, begin, end,
                                     [&](uint8_t *data, int64_t position, int64_t count) {
                                       action(part, data, begin + position, count, byte, position);
                                     });
                     });
}

void OneBitTask::prepare() {
  int64_t left = preparedAtOnce;
  for (; left > 0 && !isPrepared(); ++preparedParts, preparedElements = 0) {
    const CollectivePart &part = request.parts[preparedParts];
    int64_t begin = preparedElements, end = std::min(part.end, begin + left);
    visitSegments(part, request.type, begin, end, [&](uint8_t *data, int64_t position, int64_t count) {
      addToError(request.type, data, workerError(preparedParts, begin + position), count, begin + position,
                 ownSquares[preparedParts]);
    });
    left -= end - begin;
    preparedElements = end;
    if (end < part.end)
      return;
    peers[rank].toOwner[preparedParts] = ownSquares[preparedParts].scale(coveredBy(part, 0, part.end));
  }
}

void OneBitTask::encodeChunk(unsigned owner, int64_t index, uint8_t *message) const {
  std::memset(message, 0, static_cast<size_t>(lengthOf(index)));
  writeScales(index, peers[rank].toOwner, message);
  visitBits(owner, index, [&](size_t part, uint8_t *, int64_t position, int64_t count, size_t byte, int64_t bit) {
    encodeSigns(request.type, workerError(part, position), count, peers[rank].toOwner[part], message + byte, bit);
  });
}

void OneBitTask::sumChunk() {
  mine.resize(static_cast<size_t>(lengthOf(summed)));
  encodeChunk(rank, summed, mine.data());
  std::vector<const uint8_t *> bits(world);
  std::vector<float> scales(world);
  visitBits(rank, summed, [&](size_t part, uint8_t *, int64_t position, int64_t count, size_t byte, int64_t bit) {
    for (unsigned peer = 0; peer < world; ++peer) {
      bits[peer] = (peer == rank ? mine : peers[peer].waiting.front()).data() + byte;
      scales[peer] = peers[peer].toOwner[part];
    }
    addMeanOfSigns(request.type, bits, scales, bit, count, serverError(part, position), position, squares[part]);
  });
  for (unsigned peer = 0; peer < world; ++peer)
    if (peer != rank) {
      spare.push_back(std::move(peers[peer].waiting.front()));
      peers[peer].waiting.pop_front();
    }
  if (++summed < chunks)
    return;
  for (size_t i = 0; i < request.parts.size(); ++i) {
    const CollectivePart &part = request.parts[i];
    peers[rank].fromOwner[i] = squares[i].scale(coveredBy(part, rank * part.shard, (rank + 1) * part.shard));
  }
  kept.resize(static_cast<size_t>(bytes));
}

void OneBitTask::settleChunk() {
  uint8_t *message = kept.data() + settled * chunk;
  const std::vector<float> &scales = peers[rank].fromOwner;
  writeScales(settled, scales, message);
  visitBits(rank, settled, [&](size_t part, uint8_t *data, int64_t position, int64_t count, size_t byte, int64_t bit) {
    encodeSigns(request.type, serverError(part, position), count, scales[part], message + byte, bit);
    decodeSigns(request.type, message + byte, bit, count, scales[part], data);
  });
  ++settled;
}

bool OneBitTask::advance() {
  if (!isPrepared()) {
    prepare();
    return true;
  }
  if (summed < chunks) {
    for (unsigned peer = 0; peer < world; ++peer)
      if (peer != rank && peers[peer].waiting.empty())
        return false;
    sumChunk();
    return true;
  }
  if (settled == chunks)
    return false;
  settleChunk();
  return true;
}

bool OneBitTask::next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) {
  bool isToOwner = phase == Phase::ToOwner;
  int64_t &number = isToOwner ? peers[peer].toOwnerSent : peers[peer].fromOwnerSent;
  if (isToOwner ? !isPrepared() || number == chunks : number == settled)
    return false;
  auto length = static_cast<size_t>(lengthOf(number));
  message.resize(prefix + length);
  if (isToOwner)
    encodeChunk(peer, number, message.data() + prefix);
  else
    std::memcpy(message.data() + prefix, kept.data() + number * chunk, length);
  header.chunk = static_cast<uint32_t>(number++);
  header.bytes = static_cast<uint32_t>(length);
  sent += length;
  return true;
}

bool OneBitTask::holdsBack(unsigned peer) const { return !isPrepared() && peers[peer].toOwnerSent < chunks; }

bool OneBitTask::expects(unsigned peer, Phase phase, const DataHeader &header) const {
  bool isToOwner = phase == Phase::ToOwner;
  int64_t number = isToOwner ? peers[peer].toOwnerReceived : peers[peer].fromOwnerReceived;
  // No owner has settled anything before it has all that this rank sends to it.
  return (isToOwner || peers[peer].toOwnerSent == chunks) && number < chunks && header.chunk == number &&
         header.bytes == static_cast<size_t>(lengthOf(number));
}

bool OneBitTask::hasRoom(unsigned, Phase phase, const DataHeader &header) const {
  return phase == Phase::FromOwner || header.chunk < summed + waitingChunks;
}

void OneBitTask::take(unsigned peer, Phase phase, Payload &payload) {
  Peer &from = peers[peer];
  received += payload.size();
  if (phase == Phase::FromOwner) {
    readScales(from.fromOwnerReceived, payload.data(), from.fromOwner);
    visitBits(peer, from.fromOwnerReceived++,
              [&](size_t part, uint8_t *data, int64_t, int64_t count, size_t byte, int64_t bit) {
                decodeSigns(request.type, payload.data() + byte, bit, count, from.fromOwner[part], data);
              });
    return;
  }
  readScales(from.toOwnerReceived++, payload.data(), from.toOwner);
  from.waiting.push_back(std::move(payload));
  payload = Payload();
  if (!spare.empty()) {
    payload = std::move(spare.back());
    spare.pop_back();
  }
}

bool OneBitTask::expectsMoreFrom(unsigned peer) const {
  return peers[peer].toOwnerReceived < chunks || peers[peer].fromOwnerReceived < chunks;
}

bool OneBitTask::isDone() const {
  if (!isPrepared() || settled < chunks)
    return false;
  for (unsigned peer = 0; peer < world; ++peer)
    if (peer != rank &&
        (expectsMoreFrom(peer) || peers[peer].toOwnerSent < chunks || peers[peer].fromOwnerSent < chunks))
      return false;
  return true;
}

} // namespace ds
