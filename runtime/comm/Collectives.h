// Collectives whose elements travel as they are, and what ranks say about collectives.
//
// An owner sums a chunk in rank order when all ranks' have come, so that the bits do not depend on who came first, and
// what waits to be summed is bounded. An all-reduce's chunk leaves its owner as soon as it is summed. It needs no
// memory of its own: what a rank sent of a chunk is out before the chunk's sum comes back to the same place.
#ifndef DEEPSTRIDE_RUNTIME_COMM_COLLECTIVES_H
#define DEEPSTRIDE_RUNTIME_COMM_COLLECTIVES_H

#include "runtime/comm/CollectiveTask.h"
#include "runtime/comm/FlatSpace.h"

#include <deque>

namespace ds {

class ElementsTask : public CollectiveTask {
public:
  ElementsTask(const CollectiveRequest &request, unsigned rank, unsigned world, size_t chunkBytes);

  bool advance() override;
  bool next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) override;
  bool expects(unsigned peer, Phase phase, const DataHeader &header) const override;
  bool hasRoom(unsigned peer, Phase phase, const DataHeader &header) const override;
  void take(unsigned peer, Phase phase, Payload &payload) override;
  bool isBrief() const override { return brief; }
  bool isDone() const override;
  bool expectsMoreFrom(unsigned peer) const override;

private:
  struct Peer {
    int64_t toOwnerSent = 0, toOwnerReceived = 0, fromOwnerSent = 0, fromOwnerReceived = 0; // chunks
    std::deque<Payload> waiting;                                                            // to be summed
  };

  bool sendsToOwner() const;
  bool sendsFromOwner() const;
  bool reduces() const { return sendsToOwner() && request.op != CollectiveOp::AllToAll; }
  int64_t chunksOf(unsigned owner) const { return (owned[owner].count() + chunk - 1) / chunk; }
  int64_t lengthOf(unsigned owner, int64_t index) const {
    return std::min(chunk, owned[owner].count() - index * chunk);
  }
  // Walks through the pieces of a chunk: visit(part, begin, end, where the piece lies in the message).
  template <typename Visit> void visitChunk(unsigned owner, int64_t index, Visit action) const {
    owned[owner].visit(index * chunk, lengthOf(owner, index), [&](size_t part, int64_t begin, int64_t end, int64_t at) {
      action(request.parts[part], begin, end, static_cast<size_t>(at) * typeSize(request.wire));
    });
  }
  bool canSettle() const;
  void settle();
  void readChunk(unsigned owner, int64_t index, Payload &message, size_t prefix = 0) const;
  void readOwn(int64_t index, Payload &message, size_t prefix = 0) const;
  void writeOwn(int64_t index, const Payload &payload) const;
  void writeBlock(unsigned from, int64_t index, const Payload &payload) const;
  void reduceChunk();
  uint8_t *ownAt(const CollectivePart &part, int64_t position) const;

  int64_t chunk; // elements
  bool brief;
  std::vector<OwnedSequence> owned;
  std::vector<Peer> peers;
  int64_t settled = 0; // chunks of the own part that are final on this rank
  Payload mine, sum;
  std::vector<Payload> spare;
};

const char *collectiveName(CollectiveOp op);
// "all_reduce 'grad' at '/loss/MatMul'", as every message about it begins.
std::string nameOf(const CollectiveRequest &request);
// With what all ranks must agree about, short enough for a message of one line.
std::string describe(const CollectiveRequest &request);
// Of everything that all ranks must agree about.
uint64_t digestOf(const CollectiveRequest &request);

} // namespace ds
#endif
