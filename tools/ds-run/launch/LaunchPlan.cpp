#include "tools/ds-run/launch/LaunchPlan.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Text.h"
#include "tools/ds-run/launch/StartCommand.h"
#include "tools/ds-run/launch/TextLines.h"

#include <algorithm>
#include <cstdlib>

namespace ds {
namespace {

const char *const defaultHostfile = "/job/hostfile";

// One of the transports that reach no other machine.
bool staysHere(const std::string &transport) { return !transport.empty() && transport != "mpi"; }

// Which hostfile says where ranks run; empty: none.
std::string hostfileOf(const LaunchOptions &options) {
  if (!options.hostfile.empty())
    return options.hostfile;
  bool isHere = staysHere(options.transport) || options.launcher == "local";
  return !isHere && isThere(defaultHostfile) ? defaultHostfile : "";
}

std::vector<Host> readHosts(const std::string &hostfile) { return parseHostfile(readHandWritten(hostfile), hostfile); }

// Without a hostfile: as many slots as there are processors, or ranks that are asked for without more ado.
std::vector<Host> hostsHere(const LaunchOptions &options) {
  const HostFilter &filter = options.filter;
  bool isFiltered = filter.nodes || filter.slots || !filter.include.empty() || !filter.exclude.empty();
  unsigned slots = isFiltered ? processorCount() : options.ranks.value_or(processorCount());
  Host host{"localhost", {}};
  for (unsigned slot = 0; slot < slots; ++slot)
    host.slots.push_back(slot);
  return {host};
}

std::vector<Host> chooseHosts(const LaunchOptions &options, const std::string &hostfile) {
  auto hosts = filterHosts(hostfile.empty() ? hostsHere(options) : readHosts(hostfile), options.filter);
  size_t slots = slotCount(hosts);
  if (options.ranks.value_or(1) > slots)
    fail(ErrorCode::InvalidArgument, "--ranks: found ", *options.ranks, ", expected 1 to ", slots, ", the slots of ",
         hostfile.empty() ? "this machine that are chosen" : hostfile);
  if (!options.ranks && slots > mostRanks)
    fail(ErrorCode::InvalidArgument, hostfile, ": found ", slots, " slots, expected at most ", mostRanks,
         "; --ranks=N takes the first");
  return firstSlots(hosts, options.ranks.value_or(static_cast<unsigned>(slots)));
}

// A host that is not this machine; null: all are.
const Host *hostElsewhere(const std::vector<Host> &hosts) {
  auto found = std::find_if(hosts.begin(), hosts.end(), [](const Host &host) { return !isThisMachine(host.name); });
  return found == hosts.end() ? nullptr : &*found;
}

Launcher chooseLauncher(const LaunchOptions &options, const std::vector<Host> &hosts) {
  if (options.launcher == "openmpi")
    return Launcher::OpenMpi;
  if (options.launcher == "slurm")
    return Launcher::Slurm;
  if (options.launcher.empty() &&
      (options.transport == "mpi" || (!staysHere(options.transport) && hostElsewhere(hosts))))
    return Launcher::OpenMpi;
  return Launcher::Local;
}

void checkTransport(const LaunchPlan &plan, const LaunchOptions &options) {
  if (plan.launcher != Launcher::Local) {
    if (staysHere(options.transport))
      fail(ErrorCode::InvalidArgument, "--launcher=", options.launcher,
           " starts ranks that talk by MPI, found --transport=", options.transport);
    return;
  }
  if (options.transport == "mpi")
    fail(ErrorCode::InvalidArgument,
         "--transport=mpi: ranks that talk by MPI are started by --launcher=openmpi or slurm, found local");
  if (const Host *host = hostElsewhere(plan.hosts))
    fail(ErrorCode::InvalidArgument,
         options.launcher.empty() ? concat("--transport=", options.transport) : "--launcher=local", ": host ",
         inQuotes(host->name), " is not this machine, which --transport=mpi with --launcher=openmpi or slurm reaches");
}

void setPlaces(LaunchPlan &plan) {
  plan.places = placeRanks(plan.hosts);
  if (!plan.places.empty())
    plan.ranks = static_cast<unsigned>(plan.places.size());
}

// Slurm knows its nodes without a hostfile.
bool isLeftToSlurm(const LaunchOptions &options, const std::string &hostfile) {
  if (options.launcher != "slurm" || !hostfile.empty())
    return false;
  const HostFilter &filter = options.filter;
  for (auto [name, isGiven] :
       {std::pair("--include", !filter.include.empty()), std::pair("--exclude", !filter.exclude.empty()),
        std::pair("--num_gpus", filter.slots.has_value())})
    if (isGiven)
      fail(ErrorCode::InvalidArgument, name, ": chooses from a hostfile, found none");
  if (!options.ranks)
    fail(ErrorCode::InvalidArgument, "--launcher=slurm: expected --ranks=N or --hostfile=FILE, found neither");
  return true;
}

} // namespace

LaunchPlan planLaunch(const LaunchOptions &options) {
  LaunchPlan plan;
  std::string hostfile = hostfileOf(options);
  plan.ranks = options.ranks.value_or(0);
  if (!isLeftToSlurm(options, hostfile))
    plan.hosts = chooseHosts(options, hostfile);
  plan.launcher = chooseLauncher(options, plan.hosts);
  checkTransport(plan, options);
  plan.transport = !options.transport.empty() ? options.transport : plan.launcher == Launcher::Local ? "shm" : "mpi";
  plan.variables = readEnvironment(options.envFile);
  setPlaces(plan);
  return plan;
}

LaunchPlan planAgain(const LaunchPlan &first, const LaunchOptions &options,
                     const std::function<unsigned(unsigned)> &fittingRanks) {
  LaunchPlan plan = first;
  std::string hostfile = hostfileOf(options);
  if (hostfile.empty() || plan.hosts.empty())
    return plan;
  plan.hosts = leftOf(plan.hosts, readHosts(hostfile));
  if (plan.hosts.empty())
    fail(ErrorCode::InvalidArgument, hostfile, ": none of the ", first.ranks, " slots is left");
  auto left = static_cast<unsigned>(slotCount(plan.hosts));
  if (fittingRanks && left < first.ranks)
    plan.hosts = firstSlots(plan.hosts, fittingRanks(left));
  setPlaces(plan);
  return plan;
}

Variables variablesOf(const LaunchPlan &plan, unsigned rank, const LaunchOptions &options) {
  const RankPlace &place = plan.places[rank];
  Variables variables = plan.variables;
  if (!std::getenv("DS_NUM_THREADS") && !variables.find("DS_NUM_THREADS")) // ranks share the processors
    variables.set("DS_NUM_THREADS", std::to_string(std::max(1u, processorCount() / plan.ranks)));
  variables.set("DS_RANK", std::to_string(rank));
  variables.set("DS_WORLD", std::to_string(plan.ranks));
  variables.set("DS_LOCAL_RANK", std::to_string(place.localRank));
  variables.set("DS_HOST", place.host);
  variables.set("DS_TRANSPORT", plan.transport);
  if (options.timeout)
    variables.set("DS_TIMEOUT", concat(*options.timeout));
  return variables;
}

std::vector<std::string> starterCommand(const LaunchPlan &plan, const LaunchOptions &options,
                                        const std::vector<std::string> &program, Variables &variables) {
  variables = plan.variables;
  variables.set("DS_TRANSPORT", plan.transport);
  if (options.timeout)
    variables.set("DS_TIMEOUT", concat(*options.timeout));
  if (const char *threads = std::getenv("DS_NUM_THREADS"); threads && !variables.find("DS_NUM_THREADS"))
    variables.set("DS_NUM_THREADS", threads);
  if (!options.logDir.empty())
    variables.set("DS_LOG_DIR", options.logDir);
  if (plan.launcher == Launcher::Slurm)
    return srunCommand(plan.hosts, plan.ranks, options.filter.nodes.value_or(0), program);
  return mpirunCommand(plan.hosts, exportedNames(variables), program);
}

} // namespace ds
