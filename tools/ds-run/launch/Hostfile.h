// Which machines take part, and how many ranks each takes: DeepSpeed's hostfile and its filters. Hosts and slots keep
// the order in which they are written.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_HOSTFILE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_HOSTFILE_H

#include "runtime/comm/Communicator.h"

#include <optional>
#include <string>
#include <vector>

namespace ds {

struct Host {
  std::string name;
  std::vector<unsigned> slots; // their numbers on the host; a rank runs on each
};

// What --include, --exclude, --num_nodes and --num_gpus say; empty: nothing.
struct HostFilter {
  std::string include, exclude; // NODE[:SLOT,SLOT]@NODE...
  std::optional<unsigned> nodes, slots;
};

// "NAME slots=K" a line. Throws Error(BadFile) with file and line; `file` is for messages.
std::vector<Host> parseHostfile(const std::string &text, const std::string &file);

// Throws Error(InvalidArgument) naming the option, and what would be legal. Slots of --include keep its order.
std::vector<Host> filterHosts(std::vector<Host> hosts, const HostFilter &filter);

// The first slots of all, host by host.
std::vector<Host> firstSlots(const std::vector<Host> &hosts, size_t count);
size_t slotCount(const std::vector<Host> &hosts);

} // namespace ds
#endif
