// Which ranks of a job look for each other, and which have found all: what they report on a pipe, or, where mpirun or
// srun has started them, on standard error, which is what comes through from other machines.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKMEETING_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKMEETING_H

#include "runtime/comm/Starter.h"
#include "runtime/comm/tcp/Sockets.h"

#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ds {

// A rank as whoever runs it there tells of it.
struct RankElsewhere {
  unsigned rank = 0;
  pid_t pid = 0;
  bool hasEnded = false; // well, and without the others
  bool isSeeking = false;
  std::string host;

  // What DS_STARTER is where a rank's starter reads such lines.
  static constexpr const char *variable = "lines";
  std::string line() const;
};

class RankMeeting {
public:
  // Throws Error(Io).
  RankMeeting();

  // What ranks inherit, and how they learn of it: "DS_STARTER=fd:7".
  int descriptorForRanks() const { return rankEnd.get(); }
  std::string variable() const;
  void closeRankEnd(); // as soon as all are started

  // To wait for; -1: nobody reports any more.
  int source() const { return own.get(); }
  void read();

  Meeting of(unsigned rank) const { return rank < meetings.size() ? meetings[rank] : Meeting::None; }

  // Takes reports out of a line of standard error; what is left of it is for people.
  void takeFrom(std::string &line);
  // A rank that has ended while others look for it.
  std::optional<RankElsewhere> missedElsewhere() const;

private:
  Descriptor rankEnd, own;
  std::vector<Meeting> meetings; // by rank
  std::map<unsigned, RankElsewhere> elsewhere;
};

} // namespace ds
#endif
