#include "tools/ds-run/launch/Ranks.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"
#include "tools/ds-run/launch/TextLines.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace ds {
namespace {

std::optional<unsigned> numberOf(const char *variable) {
  const char *text = std::getenv(variable);
  if (!text)
    return std::nullopt;
  std::optional<unsigned> number = wholeNumber(text, INT_MAX);
  if (!number)
    fail(ErrorCode::InvalidArgument, variable, ": found ", inQuotes(text), ", expected a number");
  return number;
}

// Names of the variables by which one of them tells a rank which it is; null: it does not say.
struct Names {
  const char *starter, *rank, *world, *localRank, *onHost;
};

std::optional<StartedRank> startedBy(const Names &names) {
  if (!std::getenv(names.rank))
    return std::nullopt;
  StartedRank started;
  started.starter = names.starter;
  started.rank = *numberOf(names.rank);
  started.world = numberOf(names.world).value_or(started.rank + 1);
  started.localRank = numberOf(names.localRank).value_or(0);
  started.onHost = names.onHost ? numberOf(names.onHost).value_or(1) : 1;
  if (started.rank >= started.world)
    fail(ErrorCode::InvalidArgument, names.rank, ": found ", started.rank, ", expected less than ", names.world, ", ",
         started.world);
  return started;
}

} // namespace

std::vector<RankPlace> placeRanks(const std::vector<Host> &hosts) {
  std::vector<RankPlace> ranks;
  for (const Host &host : hosts)
    for (size_t i = 0; i < host.slots.size(); ++i)
      ranks.push_back({host.name, host.slots[i], static_cast<unsigned>(i)});
  return ranks;
}

std::vector<Host> leftOf(const std::vector<Host> &selected, const std::vector<Host> &now) {
  std::vector<Host> left;
  for (Host host : selected) {
    auto found = std::find_if(now.begin(), now.end(), [&](const Host &other) { return other.name == host.name; });
    if (found == now.end())
      continue;
    auto isLost = [&](unsigned slot) {
      return std::find(found->slots.begin(), found->slots.end(), slot) == found->slots.end();
    };
    host.slots.erase(std::remove_if(host.slots.begin(), host.slots.end(), isLost), host.slots.end());
    if (!host.slots.empty())
      left.push_back(std::move(host));
  }
  return left;
}

std::string hostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "";
}

bool isThisMachine(const std::string &host) {
  std::string whole = hostName();
  return host == "localhost" || host == "127.0.0.1" ||
         (!whole.empty() && (host == whole || host == whole.substr(0, whole.find('.'))));
}

unsigned processorCount() {
  cpu_set_t set;
  bool isKnown = sched_getaffinity(0, sizeof(set), &set) == 0;
  return isKnown ? static_cast<unsigned>(std::max(1, CPU_COUNT(&set)))
                 : std::max(1u, std::thread::hardware_concurrency());
}

std::optional<StartedRank> startedRank() {
  if (auto started = startedBy({"ds-run", "DS_RANK", "DS_WORLD", "DS_LOCAL_RANK", nullptr}))
    return started;
  if (auto started = startedBy({"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                                "OMPI_COMM_WORLD_LOCAL_SIZE"}))
    return started;
  // A batch script and a shell of one task have SLURM_PROCID as well, and are where jobs are started from.
  if (std::getenv("SLURM_STEP_ID"))
    if (auto started = startedBy({"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr});
        started && started->world > 1)
      return started;
  return std::nullopt;
}

} // namespace ds
