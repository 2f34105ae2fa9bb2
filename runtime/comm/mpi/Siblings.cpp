#include "runtime/comm/mpi/Siblings.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <iterator>
#include <unistd.h>
#include <vector>

namespace ds {
namespace {

using namespace std::chrono_literals;

// MPI may be about to let go of the others when a rank that it has brought together ends; and where a starter has
// started no more ranks for a while, it has started all.
constexpr auto endTime = 1s, startTime = 3s;

struct Names {
  const char *rank, *local, *job;
};
constexpr std::array<Names, 2> starters = {{{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE"},
                                            {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_ID"}}};

std::string contentOf(int64_t process, const char *name) {
  std::ifstream file(concat("/proc/", process, "/", name));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string commandOf(int64_t process) {
  std::string name = contentOf(process, "comm");
  return name.substr(0, name.find('\n'));
}

bool startsRanks(const std::string &command) {
  for (const char *name : {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "slurmstepd"})
    if (command.rfind(name, 0) == 0)
      return true;
  return false;
}

// What a starter of ranks elsewhere runs beside those of here.
bool reachesOthers(const std::string &command) {
  for (const char *name : {"ssh", "rsh", "srun", "qrsh"})
    if (command == name)
      return true;
  return false;
}

// Of a line of words that each end with '\0'.
std::optional<std::string> valueIn(const std::string &environment, const std::string &name) {
  std::string begin = name + "=";
  for (size_t at = 0; at < environment.size();) {
    size_t end = std::min(environment.find('\0', at), environment.size());
    if (environment.compare(at, begin.size(), begin) == 0)
      return environment.substr(at + begin.size(), end - at - begin.size());
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<unsigned> numberIn(const std::string &environment, const char *name) {
  std::optional<std::string> text = valueIn(environment, name);
  if (!text || text->empty() || text->size() > 9 || text->find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return static_cast<unsigned>(std::stoul(*text));
}

std::vector<int64_t> childrenOf(int64_t parent) {
  std::vector<int64_t> children;
  DIR *folder = opendir("/proc");
  while (const dirent *entry = folder ? readdir(folder) : nullptr)
    if (int64_t process = std::atoll(entry->d_name); process > 0 && identityOf(process).parent == parent)
      children.push_back(process);
  if (folder)
    closedir(folder);
  return children;
}

} // namespace

Siblings::Siblings(std::string host, unsigned world) : host(std::move(host)), world(world) {
  for (const Names &names : starters)
    if (const char *value = std::getenv(names.rank) ? std::getenv(names.job) : nullptr; value && job.empty())
      job = value;
  if (const char *value = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE"))
    onHost = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
  for (int64_t process = getppid(); process > 1; process = identityOf(process).parent)
    if (startsRanks(commandOf(process))) {
      starter = process;
      break;
    }
}

void Siblings::look() {
  hasUnknown = false;
  for (int64_t child : childrenOf(starter)) {
    ProcessIdentity process = identityOf(child);
    if (stateOf(process) == ProcessState::Gone)
      continue;
    std::string environment = contentOf(child, "environ");
    std::optional<unsigned> rank;
    for (const Names &names : starters)
      if (!rank && valueIn(environment, names.job).value_or("") == job)
        if ((rank = numberIn(environment, names.rank)) && *rank < world)
          known[*rank] = {process, numberIn(environment, names.local), std::nullopt};
    hasUnknown |= !rank && !reachesOthers(commandOf(child));
  }
}

std::string Siblings::named(unsigned rank, int64_t process) const {
  return concat("rank ", rank, " (host ", host, process ? concat(", pid ", process) : "",
                ") ended before it had found the others, which look for it");
}

// Which of the ranks of this host it is, by what the others are.
std::string Siblings::neverSeen() const {
  if (*onHost == world)
    for (unsigned rank = 0; rank < world; ++rank)
      if (known.count(rank) == 0)
        return named(rank, 0);
  for (unsigned local = 0; local < *onHost; ++local)
    if (std::none_of(known.begin(), known.end(), [&](const auto &item) { return item.second.local == local; }))
      return concat("the rank that is number ", local, " of ", *onHost, " on host ", host,
                    " ended before it had found the others, which look for it");
  return "";
}

std::string Siblings::missing() {
  if (starter == 0)
    return "";
  size_t before = known.size();
  look();
  Clock::time_point now = Clock::now();
  for (auto &[rank, sibling] : known)
    if (stateOf(sibling.process) == ProcessState::Gone) {
      sibling.end = sibling.end.value_or(now);
      if (now - *sibling.end >= endTime)
        return named(rank, sibling.process.number);
    }
  bool lacks = onHost && known.size() < *onHost && !hasUnknown;
  if (!lacks || known.size() != before || !lacksSince)
    lacksSince = now;
  return lacks && now - *lacksSince >= startTime ? neverSeen() : "";
}

std::string Siblings::stopped() const {
  std::string names;
  for (const auto &[rank, sibling] : known)
    if (stateOf(sibling.process) == ProcessState::Stopped)
      names += concat(names.empty() ? "" : ", ", "rank ", rank, " (host ", host, ", pid ", sibling.process.number,
                      ") is stopped");
  return names;
}

} // namespace ds
