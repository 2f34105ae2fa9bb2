// One collective on one rank, above any transport: which messages it sends to whom, what it does with those that come.
//
// Two kinds of messages, both in chunks. *To the owner*: what this rank has of what the peer owns. *From the owner*:
// what its owner has settled. An all-reduce is both.
#ifndef DEEPSTRIDE_RUNTIME_COMM_COLLECTIVETASK_H
#define DEEPSTRIDE_RUNTIME_COMM_COLLECTIVETASK_H

#include "runtime/comm/Communicator.h"

#include <memory>

namespace ds {

enum class Phase : uint8_t { ToOwner, FromOwner };

// Stands before every message of data.
struct DataHeader {
  uint64_t sequence = 0; // of the collective
  uint32_t chunk = 0, bytes = 0;
};

using Payload = std::vector<uint8_t>;

class CollectiveTask {
public:
  virtual ~CollectiveTask() = default;

  // Does some of what needs nobody else: copies, and sums whose chunks have come. False when there is nothing to do.
  virtual bool advance() = 0;

  // The next message for a peer, when one is ready; `prefix` bytes are left free before its payload.
  virtual bool next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) = 0;
  // Whether messages to this owner are not ready yet. Those of later collectives must not overtake them: they could
  // fill the stream while their sums wait for a rank that waits for this collective.
  virtual bool holdsBack(unsigned) const { return false; }

  // Whether a message is the next one that this peer should send; and whether there is room for it now.
  virtual bool expects(unsigned peer, Phase phase, const DataHeader &header) const = 0;
  virtual bool hasRoom(unsigned peer, Phase phase, const DataHeader &header) const = 0;
  // The payload is taken over; the vector comes back with memory for another.
  virtual void take(unsigned peer, Phase phase, Payload &payload) = 0;

  // Whether it has a single message for each owner, which always has room: it may overtake older ones.
  virtual bool isBrief() const { return false; }

  virtual bool isDone() const = 0;
  virtual bool expectsMoreFrom(unsigned peer) const = 0;

  int64_t elements() const;
  uint64_t sentBytes() const { return sent; }
  uint64_t receivedBytes() const { return received; }

  // Payload of a message: the same on all ranks.
  static size_t chunkBytes(unsigned world);

protected:
  CollectiveTask(const CollectiveRequest &request, unsigned rank, unsigned world)
      : request(request), rank(rank), world(world) {}

  CollectiveRequest request;
  unsigned rank, world;
  uint64_t sent = 0, received = 0;
};

// By the request's codec. A message has chunkBytes of payload, or less; a multiple of 64.
std::unique_ptr<CollectiveTask> makeTask(const CollectiveRequest &request, unsigned rank, unsigned world,
                                         size_t chunkBytes);

} // namespace ds
#endif
