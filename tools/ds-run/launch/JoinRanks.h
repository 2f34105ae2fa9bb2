// How a process that is one of several ranks finds the others.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_JOINRANKS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_JOINRANKS_H

#include "runtime/comm/Communicator.h"

#include <memory>

namespace ds {

// Null where this process is no rank. Waits for the others; throws Error where one does not come.
std::shared_ptr<Communicator> joinRanks();

} // namespace ds
#endif
