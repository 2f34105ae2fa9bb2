#include "tools/ds-run/launch/RankMeeting.h"

#include "runtime/comm/Communicator.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

namespace ds {

// No program writes these by chance.
static const std::string reportBegin = "\x1e\x02"
                                       "ds-run",
                         reportEnd = "\x03";

std::string RankElsewhere::line() const {
  return concat(reportBegin, " ", rank, " ", pid, " ", hasEnded, " ", isSeeking, " ", host, reportEnd, "\n");
}

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

void RankMeeting::takeFrom(std::string &line) {
  for (size_t begin = line.find(reportBegin); begin != std::string::npos; begin = line.find(reportBegin)) {
    size_t end = line.find(reportEnd, begin);
    if (end == std::string::npos)
      return; // not one of ours
    std::istringstream text(line.substr(begin + reportBegin.size(), end - begin - reportBegin.size()));
    RankElsewhere told;
    if (text >> told.rank >> told.pid >> told.hasEnded >> told.isSeeking >> told.host && told.rank < mostRanks)
      elsewhere[told.rank] = told;
    // With the end of its line, which is all there is of it where nothing stands before.
    line.erase(begin, end + reportEnd.size() - begin + (begin == 0));
  }
}

std::optional<RankElsewhere> RankMeeting::missedElsewhere() const {
  auto with = [&](bool RankElsewhere::*what) {
    return std::find_if(elsewhere.begin(), elsewhere.end(), [&](const auto &item) { return item.second.*what; });
  };
  auto ended = with(&RankElsewhere::hasEnded);
  return ended == elsewhere.end() || with(&RankElsewhere::isSeeking) == elsewhere.end() ? std::nullopt
                                                                                        : std::optional(ended->second);
}

} // namespace ds
