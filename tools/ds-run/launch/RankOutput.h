// Where a rank's standard output and standard error go: the launcher's own, logs, or nowhere.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKOUTPUT_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKOUTPUT_H

#include "runtime/comm/tcp/Sockets.h"
#include "tools/ds-run/launch/RankLines.h"
#include "tools/ds-run/launch/RankMeeting.h"

#include <memory>
#include <string>

namespace ds {

// Writes all of it; whether that went well.
bool writeAll(int descriptor, const std::string &text);

class RankOutput {
public:
  // `log`: a file for both, or empty. What the rank says on standard error is merged with that of others in `lines`,
  // less what is for `meeting`, where the process starts ranks elsewhere. Throws Error(Io).
  RankOutput(unsigned rank, const std::string &log, bool appends, RankLines &lines, RankMeeting *meeting);

  // What the rank is started with; they are closed here once it runs.
  int outputForRank() const { return rankOutput.get(); }
  int errorForRank() const { return rankError.get(); }
  void closeRankEnds();

  // To wait for; -1: nothing is read (any more).
  int outputSource() const { return output.get(); }
  int errorSource() const { return error.get(); }
  // Passes on what is there now.
  void readOutput();
  void readError();
  // What stands without the end of its line.
  void finish();

private:
  void sayLine(std::string line);
  void writeLog(const std::string &text);

  unsigned rank;
  std::string logPath;
  RankLines &lines;
  RankMeeting *meeting; // null: nothing is for it
  Descriptor rankOutput, rankError, output, error, log;
  std::string rest; // of standard error: a line that has not ended
  bool isTerminal = false;
  bool hasLogFault = false;
};

} // namespace ds
#endif
