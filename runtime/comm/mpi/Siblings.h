// The ranks that the same mpirun or srun has started on this host, as its processes: until MPI has brought the ranks
// together, it waits for one that has ended, however that was.
#ifndef DEEPSTRIDE_RUNTIME_COMM_MPI_SIBLINGS_H
#define DEEPSTRIDE_RUNTIME_COMM_MPI_SIBLINGS_H

#include "runtime/comm/Process.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace ds {

class Siblings {
public:
  // Of a world of so many ranks. Knows nobody where the starter cannot be told, as in a container.
  Siblings(std::string host, unsigned world);

  // What to say of a rank that has ended, or that is not there though its starter has started all; empty: of none. To
  // be called now and then.
  std::string missing();
  // Ranks that are stopped, for messages; empty: none.
  std::string stopped() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Sibling {
    ProcessIdentity process;
    std::optional<unsigned> local;        // which one of its host
    std::optional<Clock::time_point> end; // when it was gone first
  };

  void look();
  std::string neverSeen() const;
  std::string named(unsigned rank, int64_t process) const;

  std::string host;
  unsigned world;
  int64_t starter = 0; // its process number, or 0
  std::string job;
  std::optional<unsigned> onHost;    // ranks, where the starter says so
  std::map<unsigned, Sibling> known; // by rank
  bool hasUnknown = false;           // children of the starter that may be ranks
  std::optional<Clock::time_point> lacksSince;
};

} // namespace ds
#endif
