#include "tools/ds-run/launch/RankMeeting.h"

#include "runtime/comm/Communicator.h"
#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace ds {

RankMeeting::RankMeeting() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(ErrorCode::Io, "a pipe for ranks: ", std::strerror(errno));
  own = Descriptor(ends[0]);
  rankEnd = Descriptor(ends[1]);
  fcntl(own.get(), F_SETFL, O_NONBLOCK);
}

std::string RankMeeting::variable() const { return concat("DS_STARTER=fd:", rankEnd.get()); }

void RankMeeting::closeRankEnd() { rankEnd = Descriptor(); }

void RankMeeting::read() {
  MeetingReport report;
  ssize_t count = 0;
  while (own && (count = ::read(own.get(), &report, sizeof(report))) != 0) {
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return; // the pipe is empty, and does not block
    if (count != sizeof(report) || report.rank >= mostRanks)
      continue; // of a program that takes the pipe for something else
    if (meetings.size() <= report.rank)
      meetings.resize(report.rank + 1);
    meetings[report.rank] = report.meeting;
  }
  own = Descriptor();
}

} // namespace ds
