// Joins a process to the other ranks of its program, as its launcher said in the environment.
#ifndef DEEPSTRIDE_RUNTIME_COMM_CONNECT_H
#define DEEPSTRIDE_RUNTIME_COMM_CONNECT_H

#include "runtime/comm/Communicator.h"

#include <chrono>
#include <memory>
#include <optional>

namespace ds {

enum class TransportKind : uint8_t { SharedMemory, Tcp, Mpi };

struct RankOptions {
  unsigned rank = 0, world = 1, localRank = 0;
  TransportKind transport = TransportKind::SharedMemory;
  std::string host;                         // for messages
  std::string rendezvous;                   // HOST:PORT of rank 0, for tcp
  int descriptor = -1;                      // inherited: the shared memory, or rank 0's listening socket
  int starter = -1;                         // inherited: the pipe to who has started the ranks, or none
  std::chrono::milliseconds timeout{30000}; // that a collective waits for a slow rank
};

// DS_RANK, DS_WORLD, DS_LOCAL_RANK, DS_TRANSPORT (shm, tcp or mpi), DS_RENDEZVOUS ("fd:7" for shm; "HOST:PORT" or
// "fd:9@HOST:PORT" for tcp), DS_STARTER ("fd:8"), DS_HOST, DS_TIMEOUT in seconds; without DS_RANK what mpirun and srun
// set. None for a process that is no rank, such as a batch script of Slurm.
std::optional<RankOptions> ranksOfEnvironment();

// Returns when all ranks are there.
std::shared_ptr<Communicator> connectRanks(const RankOptions &options);

// The memory of ranks of one machine (comm/shm/SharedSegment.h): made by who starts them.
int makeSharedSegment(unsigned world);

} // namespace ds
#endif
