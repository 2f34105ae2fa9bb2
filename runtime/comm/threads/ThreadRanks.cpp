#include "runtime/comm/threads/ThreadRanks.h"

#include "runtime/comm/RankCommunicator.h"
#include "runtime/comm/shm/RingTransport.h"
#include "runtime/core/Error.h"

namespace ds {

ThreadRanks::ThreadRanks(unsigned world, std::chrono::milliseconds timeout) : ranks(world), timeout(timeout) {
  if (world < 1 || world > mostRanks)
    fail(ErrorCode::InvalidArgument, "a group has 1 to ", mostRanks, " ranks, found ", world);
  segment = SharedSegment::allocate(world);
}

std::unique_ptr<Communicator> ThreadRanks::join(unsigned rank) {
  if (rank >= ranks)
    fail(ErrorCode::InvalidArgument, "no rank ", rank, ", expected less than ", ranks);
  return std::make_unique<RankCommunicator>(std::make_unique<RingTransport>(segment, rank), "", timeout);
}

} // namespace ds
