// Who a rank is as a process, and what the kernel says about a process of this machine.
#ifndef DEEPSTRIDE_RUNTIME_COMM_PROCESS_H
#define DEEPSTRIDE_RUNTIME_COMM_PROCESS_H

#include <cstdint>
#include <string>

namespace ds {

struct ProcessIdentity {
  std::string boot = "unknown"; // of the machine, by its kernel
  int64_t number = 0, startTime = 0;
  uint64_t numberSpace = 0; // where the number counts
  int64_t parent = 0;       // the process that has started it, there
};

enum class ProcessState { Unknown, Running, Stopped, Gone };

const ProcessIdentity &thisProcess();
// Of a process of this machine that can be seen from here; with a start time of 0 there is none.
ProcessIdentity identityOf(int64_t number);
bool isThisProcess(const ProcessIdentity &process);
// Unknown for a process that cannot be seen from here.
ProcessState stateOf(const ProcessIdentity &process);

} // namespace ds
#endif
