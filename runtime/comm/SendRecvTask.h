// Tensors that go to the neighbour on one side, while those of the other side's come. At an end of the line one of both
// is missing, or both. What comes is stored at once, so that it needs no room, and goes the way of what comes from
// owners.
#ifndef DEEPSTRIDE_RUNTIME_COMM_SENDRECVTASK_H
#define DEEPSTRIDE_RUNTIME_COMM_SENDRECVTASK_H

#include "runtime/comm/CollectiveTask.h"
#include "runtime/comm/FlatSpace.h"

#include <optional>

namespace ds {

class SendRecvTask : public CollectiveTask {
public:
  SendRecvTask(const CollectiveRequest &request, unsigned rank, unsigned world, size_t chunkBytes);

  bool advance() override;
  bool next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) override;
  bool expects(unsigned peer, Phase phase, const DataHeader &header) const override;
  bool hasRoom(unsigned, Phase, const DataHeader &) const override { return true; }
  void take(unsigned peer, Phase phase, Payload &payload) override;
  bool isDone() const override;
  bool expectsMoreFrom(unsigned peer) const override;

private:
  // The rank so many places further on.
  std::optional<unsigned> neighbour(int64_t distance) const;
  int64_t chunks() const { return (space.count() + chunk - 1) / chunk; }
  size_t bytesOf(int64_t index) const;
  void read(int64_t index, uint8_t *message) const;
  void write(int64_t index, const uint8_t *message) const;

  int64_t chunk; // elements
  OwnedSequence space;
  std::optional<unsigned> target, source;
  int64_t numSent = 0, numReceived = 0; // chunks
  Payload own;
};

} // namespace ds
#endif
