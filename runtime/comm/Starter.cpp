#include "runtime/comm/Starter.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace ds {

void tellStarter(int descriptor, unsigned rank, Meeting meeting) {
  if (descriptor < 0)
    return;
  struct stat info = {};
  if (fstat(descriptor, &info) != 0 || !S_ISFIFO(info.st_mode))
    fail(ErrorCode::InvalidArgument, "DS_STARTER: descriptor ", descriptor, " is no open pipe");
  MeetingReport report = {rank, meeting};
  ssize_t written; // all or nothing, as it is short
  do
    written = write(descriptor, &report, sizeof(report));
  while (written < 0 && errno == EINTR);
  if (written < 0)
    fail(ErrorCode::Io, "DS_STARTER: descriptor ", descriptor, ": ", std::strerror(errno));
}

} // namespace ds
