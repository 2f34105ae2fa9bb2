#include "runtime/comm/SparseRowsTask.h"

#include "runtime/comm/Collectives.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/Wire.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace ds {
namespace {

// Messages that may wait for others' rows, per peer.
constexpr int64_t waitingMessages = 4;
// Done in one advance(), so that the thread that moves data also looks after other collectives.
constexpr int64_t scannedAtOnce = 1 << 18, mergedAtOnce = 1 << 16; // elements

constexpr size_t numberBytes = sizeof(int64_t);

template <typename Bits> Bits allBits(const void *memory, int64_t count) {
  const Bits *values = static_cast<const Bits *>(memory);
  Bits any = 0;
  for (int64_t i = 0; i < count; ++i)
    any = static_cast<Bits>(any | values[i]);
  return any;
}

// Whether a row has anything but zeros, of either sign. A sum of the row would not tell: values cancel.
bool isTouched(ElementType type, uint8_t *row, int64_t count) {
  size_t size = typeSize(type);
  uint64_t bits = size == 8   ? allBits<uint64_t>(row, count)
                  : size == 4 ? allBits<uint32_t>(row, count)
                              : allBits<uint16_t>(row, count);
  uint64_t sign = isFloat(type) ? uint64_t(1) << (size * 8 - 1) : 0;
  if (bits & ~sign)
    return true;
  if (bits) // other ranks learn nothing of this row: it has the zeros that theirs have
    std::memset(row, 0, static_cast<size_t>(count) * size);
  return false;
}

} // namespace

void RowStream::expect(int64_t count, size_t size, int64_t numRows) {
  left = count;
  limit = numRows;
  bytes.resize(size);
}

bool RowStream::fill() {
  size_t whole = numberBytes + bytes.size();
  while (filled < whole && !waiting.empty()) {
    const Payload &front = waiting.front();
    bool isNumber = filled < numberBytes;
    size_t taken = std::min((isNumber ? numberBytes : whole) - filled, front.size() - cursor);
    std::memcpy(isNumber ? reinterpret_cast<uint8_t *>(&number) + filled : bytes.data() + (filled - numberBytes),
                front.data() + cursor, taken);
    filled += taken;
    cursor += taken;
    if (filled == numberBytes && (number <= last || number >= limit))
      fail(ErrorCode::Collective, "was sent row ", number, " of ", limit, " after row ", last);
    if (cursor < front.size())
      continue;
    spare.push_back(std::move(waiting.front()));
    waiting.pop_front();
    ++consumed;
    cursor = 0;
  }
  return filled == whole;
}

void RowStream::drop() {
  last = number;
  filled = 0;
  --left;
}

SparseRowsTask::SparseRowsTask(const CollectiveRequest &given, unsigned rank, unsigned world, size_t chunkBytes)
    : CollectiveTask(given, rank, world), chunk(static_cast<int64_t>(chunkBytes)), peers(world) {
  const CollectivePart &part = request.parts[0];
  rowLength = part.rowLength;
  numRows = part.whole[0].count / rowLength;
  size_t values = static_cast<size_t>(rowLength) * typeSize(request.wire);
  rowBytes = static_cast<int64_t>(numberBytes + values);
  zeros.resize(values);
  mine.resize(values);
  sum.resize(values);
  if (world > 1)
    return;
  scanned = numRows;
  isDecided = true;
  dense = std::make_unique<ElementsTask>(request, rank, world, chunkBytes);
}

uint8_t *SparseRowsTask::rowAt(int64_t row) const {
  return static_cast<uint8_t *>(request.parts[0].whole[0].data) +
         static_cast<size_t>(row * rowLength) * typeSize(request.type);
}

void SparseRowsTask::scan() {
  int64_t last = std::min(numRows, scanned + std::max<int64_t>(1, scannedAtOnce / rowLength));
  for (; scanned < last; ++scanned)
    if (isTouched(request.type, rowAt(scanned), rowLength))
      touched.push_back(scanned);
}

// By the bytes that all ranks together would send to each other one.
bool SparseRowsTask::decide() {
  auto total = static_cast<int64_t>(touched.size());
  for (unsigned peer = 0; peer < world; ++peer) {
    if (peer != rank && !peers[peer].hasCount)
      return false;
    total += peers[peer].count;
  }
  isDecided = true;
  const CollectivePart &part = request.parts[0];
  int64_t ways = request.op == CollectiveOp::AllReduce ? 2 : 1; // of the whole: to owners, and back
  if (total * rowBytes >= ways * (part.end - part.begin) * static_cast<int64_t>(typeSize(request.wire)))
    dense = std::make_unique<ElementsTask>(request, rank, world, static_cast<size_t>(chunk));
  for (Peer &peer : peers)
    peer.rows.expect(peer.count, zeros.size(), numRows);
  return true;
}

bool SparseRowsTask::isSent(int64_t rows) const {
  for (unsigned peer = 0; peer < world; ++peer)
    if (peer != rank && peers[peer].sent < messages(rows))
      return false;
  return true;
}

// Whether the next row of every rank is known.
bool SparseRowsTask::findHeads() {
  for (unsigned peer = 0; peer < world; ++peer)
    if (peer != rank && !peers[peer].rows.isEnded() && !peers[peer].rows.fill())
      return false;
  return true;
}

int64_t SparseRowsTask::consumed() const {
  int64_t total = 0;
  for (const Peer &peer : peers)
    total += peer.rows.consumed;
  return total;
}

// Of a reduce-scatter, this rank's own elements stay where others own them, as when the whole travels.
void SparseRowsTask::writeSum(int64_t row) const {
  int64_t begin = 0, end = rowLength;
  if (request.op == CollectiveOp::ReduceScatter) {
    const CollectivePart &part = request.parts[0];
    int64_t first = part.whole[0].offset + row * rowLength, owned = static_cast<int64_t>(rank) * part.shard;
    begin = std::clamp<int64_t>(owned - first, 0, rowLength);
    end = std::clamp<int64_t>(owned + part.shard - first, begin, rowLength);
  }
  unpackElements(request.wire, request.type, sum.data() + static_cast<size_t>(begin) * typeSize(request.wire),
                 rowAt(row) + static_cast<size_t>(begin) * typeSize(request.type), end - begin);
}

bool SparseRowsTask::merge() {
  if (!findHeads())
    return false;
  constexpr int64_t none = std::numeric_limits<int64_t>::max();
  int64_t own = merged < touched.size() ? touched[merged] : none, row = own;
  for (const Peer &peer : peers)
    if (!peer.rows.isEnded())
      row = std::min(row, peer.rows.row());
  // What the others have not been sent yet must stay where it is.
  if (row == none || (row == own && !isSent(static_cast<int64_t>(merged) + 1)))
    return false;
  std::vector<const void *> parts(world, zeros.data());
  for (unsigned peer = 0; peer < world; ++peer)
    if (!peers[peer].rows.isEnded() && peers[peer].rows.row() == row)
      parts[peer] = peers[peer].rows.values();
  if (row == own) {
    packElements(request.type, request.wire, rowAt(row), mine.data(), rowLength);
    parts[rank] = mine.data();
    ++merged;
  }
  reduceParts(request.wire, request.reduction, parts, rowLength, sum.data());
  writeSum(row);
  for (Peer &peer : peers)
    if (!peer.rows.isEnded() && peer.rows.row() == row)
      peer.rows.drop();
  return true;
}

bool SparseRowsTask::advance() {
  if (dense)
    return dense->advance();
  if (!isScanned()) {
    scan();
    return true;
  }
  if (!isDecided)
    return decide();
  int64_t done = 0, before = consumed();
  while (done < mergedAtOnce && merge())
    done += rowLength;
  return done > 0 || consumed() > before; // what was taken for a row that is not whole has made room
}

// Elements are never cut: a number has the bytes of whole elements, and a message, too.
void SparseRowsTask::writeRows(int64_t first, int64_t length, uint8_t *message) const {
  auto number = static_cast<int64_t>(numberBytes), size = static_cast<int64_t>(typeSize(request.wire));
  for (int64_t at = first; at < first + length;) {
    int64_t row = touched[static_cast<size_t>(at / rowBytes)], skipped = at % rowBytes;
    int64_t taken = std::min((skipped < number ? number : rowBytes) - skipped, first + length - at);
    uint8_t *destination = message + (at - first);
    if (skipped < number) {
      std::memcpy(destination, reinterpret_cast<const uint8_t *>(&row) + skipped, static_cast<size_t>(taken));
    } else {
      int64_t element = (skipped - number) / size;
      packElements(request.type, request.wire, rowAt(row) + static_cast<size_t>(element) * typeSize(request.type),
                   destination, taken / size);
    }
    at += taken;
  }
}

bool SparseRowsTask::next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) {
  Peer &to = peers[peer];
  if (phase == Phase::FromOwner && !to.knowsCount) {
    if (!isScanned())
      return false;
    auto count = static_cast<int64_t>(touched.size());
    message.resize(prefix + sizeof(count));
    std::memcpy(message.data() + prefix, &count, sizeof(count));
    to.knowsCount = true;
    header.chunk = 0;
  } else if (dense) {
    if (!dense->next(peer, phase, header, message, prefix))
      return false;
  } else {
    auto rows = static_cast<int64_t>(touched.size());
    if (phase == Phase::FromOwner || !isDecided || to.sent == messages(rows))
      return false;
    int64_t length = lengthOf(rows, to.sent);
    message.resize(prefix + static_cast<size_t>(length));
    writeRows(to.sent * chunk, length, message.data() + prefix);
    header.chunk = static_cast<uint32_t>(to.sent++);
  }
  header.bytes = static_cast<uint32_t>(message.size() - prefix);
  sent += header.bytes;
  return true;
}

bool SparseRowsTask::holdsBack(unsigned) const { return !isDecided; }

bool SparseRowsTask::expects(unsigned peer, Phase phase, const DataHeader &header) const {
  const Peer &from = peers[peer];
  if (phase == Phase::FromOwner && !from.hasCount)
    return header.chunk == 0 && header.bytes == sizeof(int64_t);
  if (dense)
    return dense->expects(peer, phase, header);
  if (phase == Phase::FromOwner)
    return false;
  // Others may know all counts before this rank does; then there is no room yet.
  return !isDecided || (from.received < messages(from.count) && header.chunk == from.received &&
                        header.bytes == static_cast<size_t>(lengthOf(from.count, from.received)));
}

bool SparseRowsTask::hasRoom(unsigned peer, Phase phase, const DataHeader &header) const {
  if (dense)
    return dense->hasRoom(peer, phase, header);
  return phase == Phase::FromOwner || (isDecided && header.chunk < peers[peer].rows.consumed + waitingMessages);
}

void SparseRowsTask::take(unsigned peer, Phase phase, Payload &payload) {
  Peer &from = peers[peer];
  received += payload.size();
  if (phase == Phase::FromOwner && !from.hasCount) {
    std::memcpy(&from.count, payload.data(), sizeof(from.count));
    if (from.count < 0 || from.count > numRows)
      fail(ErrorCode::Collective, "was sent a count of ", from.count, " rows of ", numRows);
    from.hasCount = true;
    return;
  }
  if (dense)
    return dense->take(peer, phase, payload);
  ++from.received;
  from.rows.waiting.push_back(std::move(payload));
  payload = Payload();
  if (!from.rows.spare.empty()) {
    payload = std::move(from.rows.spare.back());
    from.rows.spare.pop_back();
  }
}

bool SparseRowsTask::expectsMoreFrom(unsigned peer) const {
  const Peer &from = peers[peer];
  if (!from.hasCount || !isDecided)
    return !from.hasCount;
  return dense ? dense->expectsMoreFrom(peer) : from.received < messages(from.count);
}

bool SparseRowsTask::isDone() const {
  if (!isDecided)
    return false;
  for (unsigned peer = 0; peer < world; ++peer)
    if (peer != rank && (!peers[peer].knowsCount || (!dense && !peers[peer].rows.isEnded())))
      return false;
  return dense ? dense->isDone() : merged == touched.size() && isSent(static_cast<int64_t>(touched.size()));
}

} // namespace ds
