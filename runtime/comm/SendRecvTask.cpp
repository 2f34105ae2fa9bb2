#include "runtime/comm/SendRecvTask.h"

#include "runtime/comm/Wire.h"

namespace ds {

SendRecvTask::SendRecvTask(const CollectiveRequest &given, unsigned rank, unsigned world, size_t chunkBytes)
    : CollectiveTask(given, rank, world), chunk(static_cast<int64_t>(chunkBytes / typeSize(request.wire))),
      space(request.parts, 0), target(neighbour(request.by)), source(neighbour(-request.by)) {}

std::optional<unsigned> SendRecvTask::neighbour(int64_t distance) const {
  int64_t ranks = world, place = rank + distance;
  if (request.rotates)
    place = (place % ranks + ranks) % ranks;
  return place < 0 || place >= ranks ? std::nullopt : std::optional(static_cast<unsigned>(place));
}

size_t SendRecvTask::bytesOf(int64_t index) const {
  return static_cast<size_t>(std::min(chunk, space.count() - index * chunk)) * typeSize(request.wire);
}

void SendRecvTask::read(int64_t index, uint8_t *message) const {
  size_t size = typeSize(request.wire);
  space.visit(index * chunk, static_cast<int64_t>(bytesOf(index) / size),
              [&](size_t part, int64_t begin, int64_t end, int64_t at) {
                readWhole(request.parts[part], request.type, request.wire, begin, end,
                          message + static_cast<size_t>(at) * size);
              });
}

void SendRecvTask::write(int64_t index, const uint8_t *message) const {
  size_t size = typeSize(request.wire);
  space.visit(index * chunk, static_cast<int64_t>(bytesOf(index) / size),
              [&](size_t part, int64_t begin, int64_t end, int64_t at) {
                auto *to = static_cast<uint8_t *>(request.parts[part].own);
                unpackElements(request.wire, request.type, message + static_cast<size_t>(at) * size,
                               to + static_cast<size_t>(begin) * typeSize(request.type), end - begin);
              });
}

// A turn that leads back to this rank.
bool SendRecvTask::advance() {
  if (target != rank || numReceived == chunks())
    return false;
  own.resize(bytesOf(numReceived));
  read(numReceived, own.data());
  write(numReceived, own.data());
  numSent = ++numReceived;
  return true;
}

bool SendRecvTask::next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) {
  if (phase != Phase::FromOwner || target != peer || numSent == chunks())
    return false;
  header.chunk = static_cast<uint32_t>(numSent);
  header.bytes = static_cast<uint32_t>(bytesOf(numSent));
  message.resize(prefix + header.bytes);
  read(numSent++, message.data() + prefix);
  sent += header.bytes;
  return true;
}

bool SendRecvTask::expects(unsigned peer, Phase phase, const DataHeader &header) const {
  return phase == Phase::FromOwner && expectsMoreFrom(peer) && header.chunk == numReceived &&
         header.bytes == bytesOf(numReceived);
}

void SendRecvTask::take(unsigned, Phase, Payload &payload) {
  received += payload.size();
  write(numReceived++, payload.data());
}

bool SendRecvTask::isDone() const { return (!target || numSent == chunks()) && (!source || numReceived == chunks()); }

bool SendRecvTask::expectsMoreFrom(unsigned peer) const { return source == peer && numReceived < chunks(); }

} // namespace ds
