#include "runtime/comm/Connect.h"

#include "runtime/comm/RankCommunicator.h"
#include "runtime/comm/Starter.h"
#include "runtime/comm/mpi/MpiPlugin.h"
#include "runtime/comm/shm/RingTransport.h"
#include "runtime/comm/tcp/TcpTransport.h"
#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <cmath>
#include <cstdlib>
#include <unistd.h>

namespace ds {
namespace {

using namespace std::chrono_literals;

const char *variable(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

unsigned numberOf(const char *name, unsigned least, unsigned most) {
  const char *text = variable(name);
  std::string digits = text ? text : "";
  bool isNumber = !digits.empty() && digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos;
  if (!isNumber || std::stoul(digits) < least || std::stoul(digits) > most)
    fail(ErrorCode::InvalidArgument, name, ": expected a number of ", least, " to ", most, ", found ",
         text ? inQuotes(digits) : "nothing");
  return static_cast<unsigned>(std::stoul(digits));
}

TransportKind transportOf(const char *text) {
  std::string name = text ? text : "";
  if (name == "shm")
    return TransportKind::SharedMemory;
  if (name == "tcp")
    return TransportKind::Tcp;
  if (name == "mpi")
    return TransportKind::Mpi;
  fail(ErrorCode::InvalidArgument, "DS_TRANSPORT: expected shm, tcp or mpi, found ", text ? inQuotes(name) : "nothing");
}

std::chrono::milliseconds timeoutOf(const char *text) {
  char *end = nullptr;
  double seconds = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds > 0 && seconds <= 1e6))
    fail(ErrorCode::InvalidArgument, "DS_TIMEOUT: expected seconds, more than 0 and at most 1000000, found ",
         inQuotes(text));
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

// Of "fd:7".
std::optional<int> descriptorOf(const std::string &text) {
  std::string number = text.rfind("fd:", 0) == 0 ? text.substr(3) : "";
  if (number.empty() || number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(number);
}

// "fd:7", "fd:9@HOST:PORT" or "HOST:PORT".
void readRendezvous(RankOptions &options) {
  const char *text = variable("DS_RENDEZVOUS");
  std::string rest = text ? text : "";
  bool isShared = options.transport == TransportKind::SharedMemory;
  auto refuse = [&] {
    fail(ErrorCode::InvalidArgument, "DS_RENDEZVOUS: expected ",
         isShared ? "fd:NUMBER" : "HOST:PORT or fd:NUMBER@HOST:PORT", ", found ", text ? inQuotes(text) : "nothing");
  };
  if (rest.rfind("fd:", 0) == 0) {
    size_t at = std::min(rest.find('@'), rest.size());
    std::optional<int> descriptor = descriptorOf(rest.substr(0, at));
    if (!descriptor)
      refuse();
    options.descriptor = *descriptor;
    rest = rest.substr(std::min(at + 1, rest.size()));
  }
  if (isShared ? options.descriptor < 0 || !rest.empty() : rest.empty())
    refuse();
  options.rendezvous = rest;
}

std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Ranks that mpirun or srun started.
bool readEngine(RankOptions &options) {
  struct Names {
    const char *rank, *world, *local;
  };
  for (const Names &names : {Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                             Names{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}}) {
    if (!variable(names.rank))
      continue;
    // A batch script and a shell of Slurm have these variables as well, but are no tasks of a step, or its only one.
    bool isSlurm = names.rank == std::string("SLURM_PROCID");
    if (isSlurm && !variable("SLURM_STEP_ID"))
      continue;
    options.world = numberOf(names.world, 1, mostRanks);
    if (isSlurm && options.world == 1)
      continue;
    options.rank = numberOf(names.rank, 0, options.world - 1);
    options.localRank = variable(names.local) ? numberOf(names.local, 0, options.world - 1) : options.rank;
    options.transport = TransportKind::Mpi;
    return true;
  }
  return false;
}

std::unique_ptr<Transport> openTransport(const RankOptions &options, std::chrono::milliseconds patience) {
  switch (options.transport) {
  case TransportKind::SharedMemory:
    return std::make_unique<RingTransport>(SharedSegment::map(options.descriptor, options.world), options.rank);
  case TransportKind::Tcp: {
    Deadline deadline = std::chrono::steady_clock::now() + patience;
    return std::make_unique<TcpTransport>(
        options.rank, connectMesh(options.rank, options.world, {options.rendezvous, options.descriptor}, deadline));
  }
  case TransportKind::Mpi: {
    std::unique_ptr<Transport> transport = openMpiTransport(options.world, options.host, patience);
    if (transport->world() != options.world || transport->rank() != options.rank)
      fail(ErrorCode::Collective, "MPI has it as rank ", transport->rank(), " of ", transport->world(),
           ", expected rank ", options.rank, " of ", options.world, "; start ranks over MPI by mpirun or srun");
    return transport;
  }
  }
  fail(ErrorCode::Internal, "unknown transport");
}

} // namespace

std::optional<RankOptions> ranksOfEnvironment() {
  RankOptions options;
  if (variable("DS_RANK")) {
    options.world = numberOf("DS_WORLD", 1, mostRanks);
    options.rank = numberOf("DS_RANK", 0, options.world - 1);
    options.localRank = variable("DS_LOCAL_RANK") ? numberOf("DS_LOCAL_RANK", 0, options.world - 1) : options.rank;
    options.transport = transportOf(variable("DS_TRANSPORT"));
    if (options.transport != TransportKind::Mpi)
      readRendezvous(options);
  } else if (!readEngine(options)) {
    return std::nullopt;
  }
  options.host = variable("DS_HOST") ? variable("DS_HOST") : hostName();
  if (const char *text = variable("DS_TIMEOUT"))
    options.timeout = timeoutOf(text);
  if (const char *text = variable("DS_STARTER")) {
    std::optional<int> descriptor = descriptorOf(text);
    if (!descriptor)
      fail(ErrorCode::InvalidArgument, "DS_STARTER: expected fd:NUMBER, found ", inQuotes(text));
    options.starter = *descriptor;
  }
  return options;
}

std::shared_ptr<Communicator> connectRanks(const RankOptions &options) {
  if (options.world == 0 || options.rank >= options.world)
    fail(ErrorCode::InvalidArgument, "rank ", options.rank, " of ", options.world, " ranks");
  return annotated(concat("rank ", options.rank), [&]() -> std::shared_ptr<Communicator> {
    if (options.world == 1 && options.transport != TransportKind::Mpi)
      return std::make_shared<RankCommunicator>();
    // A short timeout is for slow collectives; processes may take longer to start.
    auto patience = std::max<std::chrono::milliseconds>(options.timeout, 30s);
    tellStarter(options.starter, options.rank, Meeting::Seeking);
    auto result = std::make_shared<RankCommunicator>(openTransport(options, patience), options.host, options.timeout,
                                                     options.transport != TransportKind::Mpi);
    result->awaitOthers(patience);
    tellStarter(options.starter, options.rank, Meeting::Found);
    if (options.starter >= 0)
      close(options.starter);
    return result;
  });
}

} // namespace ds
