// Which ranks of a job look for each other, and which have found all: what they report on a pipe.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKMEETING_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKMEETING_H

#include "runtime/comm/Starter.h"
#include "runtime/comm/tcp/Sockets.h"

#include <string>
#include <vector>

namespace ds {

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

private:
  Descriptor rankEnd, own;
  std::vector<Meeting> meetings; // by rank
};

} // namespace ds
#endif
