// An all-reduce of means whose elements travel as signs (docs/rationale/collectives.md). To every owner and from every
// owner go the scales of all parts, then the bits of what it owns. An owner's scale is known only when it has summed
// all; until then the means lie where its error lay, as this rank's elements do where its own error lay. Only the bits
// that an owner sends to all are kept besides.
#ifndef DEEPSTRIDE_RUNTIME_COMM_ONEBITTASK_H
#define DEEPSTRIDE_RUNTIME_COMM_ONEBITTASK_H

#include "runtime/comm/CollectiveTask.h"
#include "runtime/comm/FlatSpace.h"
#include "runtime/comm/OneBit.h"

#include <deque>

namespace ds {

class OneBitTask : public CollectiveTask {
public:
  OneBitTask(const CollectiveRequest &request, unsigned rank, unsigned world, size_t chunkBytes);

  bool advance() override;
  bool next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) override;
  bool holdsBack(unsigned peer) const override;
  bool expects(unsigned peer, Phase phase, const DataHeader &header) const override;
  bool hasRoom(unsigned peer, Phase phase, const DataHeader &header) const override;
  void take(unsigned peer, Phase phase, Payload &payload) override;
  bool isDone() const override;
  bool expectsMoreFrom(unsigned peer) const override;

private:
  struct Peer {
    int64_t toOwnerSent = 0, toOwnerReceived = 0, fromOwnerSent = 0, fromOwnerReceived = 0; // chunks
    std::deque<Payload> waiting;                                                            // to be summed
    std::vector<float> toOwner, fromOwner; // scales by part; of this rank, too
  };

  bool isPrepared() const { return preparedParts == request.parts.size(); }
  int64_t lengthOf(int64_t index) const { return std::min(chunk, bytes - index * chunk); }
  int64_t coveredBy(const CollectivePart &part, int64_t begin, int64_t end) const;
  uint8_t *workerError(size_t part, int64_t position) const;
  uint8_t *serverError(size_t part, int64_t position) const;

  // The part of a chunk that is scales, between the message's bytes and numbers.
  void writeScales(int64_t index, const std::vector<float> &scales, uint8_t *message) const;
  void readScales(int64_t index, const uint8_t *message, std::vector<float> &scales) const;
  // The bits of a chunk by tensor: visit(part, data, position in the space, count, byte of the message, bit from
  // there).
  template <typename Visit> void visitBits(unsigned owner, int64_t index, Visit action) const;

  void prepare();
  void sumChunk();
  void settleChunk();
  void encodeChunk(unsigned owner, int64_t index, uint8_t *message) const;

  int64_t chunk, bytes, chunks; // of what goes to one rank in one phase
  std::vector<OwnedSequence> owned;
  std::vector<Peer> peers;
  size_t preparedParts = 0;
  int64_t preparedElements = 0;               // of the part after those
  std::vector<SquareSum> ownSquares, squares; // by part: of this rank's elements; of the means that it owns
  int64_t summed = 0, settled = 0;            // chunks of the own part
  Payload mine, kept;                         // kept: what goes from this owner to all
  std::vector<Payload> spare;
};

} // namespace ds
#endif
