// What a rank tells who has started it: that it looks for the others, and that it has found them all. The starter knows
// which ranks have ended, which the others cannot see before they are connected.
#ifndef DEEPSTRIDE_RUNTIME_COMM_STARTER_H
#define DEEPSTRIDE_RUNTIME_COMM_STARTER_H

#include <cstdint>

namespace ds {

enum class Meeting : uint32_t { None, Seeking, Found };

// One message on the pipe.
struct MeetingReport {
  uint32_t rank = 0;
  Meeting meeting = Meeting::None;
};

// `descriptor`: the open pipe, or -1 where nobody wants to know. Throws Error.
void tellStarter(int descriptor, unsigned rank, Meeting meeting);

} // namespace ds
#endif
