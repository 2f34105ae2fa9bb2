// A call measured in alternation with the ceilings of the machine; what bench and profile have in common.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_MEASURE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_MEASURE_H

#include "tools/ds-run/Inputs.h"
#include "tools/ds-run/Options.h"
#include "tools/ds-run/Work.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ds {

struct Measured {
  std::shared_ptr<const Package> package;
  size_t entryIndex = 0;
  unsigned threads = 0;
  std::vector<double> latencies;    // milliseconds of calls that nobody watched, ascending
  std::vector<LaunchWork> launches; // in the order of the last call that was watched
  std::vector<double> launchMs;     // of each, the median over the calls that were watched
  double launchTotalMs = 0;         // their sum
  // Means over the faster half of the calls that were watched without counting: these add up to the call.
  std::vector<double> meanLaunchMs;
  double watchedMs = 0;
  uint64_t bytes = 0;
  double flops = 0;
  std::map<std::string, double> flopsByArithmetic;
  Ceilings ceilings, peaks; // medians of the rounds, and the best ones
  size_t rounds = 0;

  const EntryInfo &entry() const { return package->variant().entries[entryIndex]; }
  const LaunchInfo &launchInfo(size_t i) const { return launches[i].entry->launches[launches[i].site]; }
  double callMs() const; // the median of calls
  // The least that a call takes here, in milliseconds: all of its memory, all of its arithmetic.
  double memoryMs() const;
  double computeMs() const;
};

// Measures calls, `seconds` long altogether, in alternation with ceilings by as many threads. The observer may be null.
void measure(const std::function<void(LaunchObserver *)> &call, unsigned threads, double seconds, Measured &result);

// Calls of the package that the options name, `seconds` long altogether, with a round of ceilings after each part.
Measured measureCalls(const Options &options, double seconds);

// Launches of one kernel, node or layer: sums over launches.
struct Share {
  std::string kernel, site; // the first launch's, as an example
  std::string arithmetic;
  size_t calls = 0;
  double ms = 0, flops = 0, memoryBytes = 0, workspaceBytes = 0, rooflineMs = 0;
};

// One share for every key of a launch, in the order of the keys' first launches; `keys`, if given, gets these.
std::vector<Share> sharesOf(const Measured &measured, const std::function<std::string(size_t launch)> &keyOf,
                            std::vector<std::string> *keys = nullptr);
// The longest first.
void sortByTime(std::vector<Share> &shares);

void writeText(const std::string &path, const std::string &text);

} // namespace ds
#endif
