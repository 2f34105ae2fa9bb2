#include "tools/ds-run/launch/RankOutput.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace ds {
namespace {

struct Channel {
  Descriptor read, write;
};

Channel openPipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(ErrorCode::Io, "a pipe to a rank: ", std::strerror(errno));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Where standard error is a terminal, a rank that draws on it shall find one, too.
Channel openTerminal() {
  Descriptor main(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  char name[64];
  if (!main || grantpt(main.get()) != 0 || unlockpt(main.get()) != 0 || ptsname_r(main.get(), name, sizeof(name)) != 0)
    return openPipe();
  Descriptor other(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings;
  if (!other || tcgetattr(other.get(), &settings) != 0)
    return openPipe();
  cfmakeraw(&settings);
  tcsetattr(other.get(), TCSANOW, &settings);
  return {std::move(main), std::move(other)};
}

// What is there now; closes the descriptor at the end.
std::string readSome(Descriptor &source) {
  constexpr size_t most = 1 << 16;
  std::string text(most, '\0');
  ssize_t count = read(source.get(), text.data(), text.size());
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) // a terminal's end is EIO
    source = Descriptor();
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

} // namespace

bool writeAll(int descriptor, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t count = write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EAGAIN) {
      pollfd waiting = {descriptor, POLLOUT, 0};
      poll(&waiting, 1, -1);
    } else if (count < 0 && errno != EINTR) {
      return false;
    } else if (count > 0) {
      done += static_cast<size_t>(count);
    }
  }
  return true;
}

RankOutput::RankOutput(unsigned rank, const std::string &logPath, bool appends, RankLines &lines, RankMeeting *meeting)
    : rank(rank), logPath(logPath), lines(lines), meeting(meeting) {
  if (!logPath.empty()) {
    log = Descriptor(open(logPath.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (appends ? 0 : O_TRUNC), 0666));
    if (!log)
      fail(ErrorCode::Io, "--log-dir: ", logPath, ": ", std::strerror(errno));
  }
  isTerminal = rank == 0 && isatty(STDERR_FILENO);
  Channel channel = isTerminal ? openTerminal() : openPipe();
  error = std::move(channel.read);
  rankError = std::move(channel.write);
  if (rank == 0 && log) {
    channel = openPipe();
    output = std::move(channel.read);
    rankOutput = std::move(channel.write);
  } else if (rank == 0) {
    rankOutput = Descriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  } else {
    rankOutput =
        log ? Descriptor(fcntl(log.get(), F_DUPFD_CLOEXEC, 3)) : Descriptor(open("/dev/null", O_WRONLY | O_CLOEXEC));
  }
  if (!rankOutput)
    fail(ErrorCode::Io, "standard output of rank ", rank, ": ", std::strerror(errno));
}

void RankOutput::closeRankEnds() {
  rankOutput = Descriptor();
  rankError = Descriptor();
}

void RankOutput::writeLog(const std::string &text) {
  if (!log || writeAll(log.get(), text) || std::exchange(hasLogFault, true))
    return;
  writeAll(STDERR_FILENO, concat("ds-run: warning: ", logPath, ": cannot write: ", std::strerror(errno), "\n"));
}

void RankOutput::readOutput() {
  std::string text = readSome(output);
  writeLog(text);
  if (!writeAll(STDOUT_FILENO, text))
    output = Descriptor(); // the rank learns of it by its next write
}

void RankOutput::sayLine(std::string line) {
  if (meeting)
    meeting->takeFrom(line);
  const std::string clearing = "\r\033[K"; // of a line of progress
  while (line.rfind(clearing, 0) == 0) {
    writeAll(STDERR_FILENO, clearing);
    line.erase(0, clearing.size());
  }
  if (!line.empty())
    writeAll(STDERR_FILENO, lines.add(rank, line));
}

void RankOutput::readError() {
  constexpr size_t longest = 1 << 16;
  std::string text = readSome(error);
  writeLog(text);
  rest += text;
  for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
    sayLine(rest.substr(0, end + 1));
    rest.erase(0, end + 1);
  }
  // Progress is a line that never ends.
  if ((isTerminal && rest[0] == '\r') || rest.size() > longest) {
    writeAll(STDERR_FILENO, rest);
    rest.clear();
  }
}

void RankOutput::finish() {
  auto isReady = [](const Descriptor &source) {
    pollfd waiting = {source.get(), POLLIN, 0};
    return source && poll(&waiting, 1, 0) > 0;
  };
  constexpr int mostReads = 1000; // a process that left the ranks' group may go on writing
  for (int i = 0; i < mostReads && isReady(output); ++i)
    readOutput();
  for (int i = 0; i < mostReads && isReady(error); ++i)
    readError();
  if (!rest.empty())
    sayLine(rest + "\n");
  rest.clear();
}

} // namespace ds
