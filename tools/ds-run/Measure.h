// A call measured in alternation with the ceilings of the machine; what bench and profile have in common.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_MEASURE_H
#define DEEPSTRIDE_TOOLS_DS_RUN_MEASURE_H

#include "tools/ds-run/Inputs.h"
#include "tools/ds-run/Options.h"
#include "tools/ds-run/Work.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ds {

/// How much is measured: so many calls, else seconds of them; after so many calls that are not, else as many as it
/// takes until threads are awake and memory is touched.
struct Amount {
  double seconds = 0;
  std::optional<uint64_t> iterations, warmup;
  bool watchesAll = false; // as many calls are watched as are measured, two at the least
};

/// What the command line says; without --duration and --iterations, so many seconds.
Amount amountOf(const Options &options, double seconds);

/// The dynamic dimensions of an entry with their sizes in a call.
using Dims = std::vector<std::pair<std::string, int64_t>>;

struct Measured {
  std::shared_ptr<const Package> package;
  size_t entryIndex = 0;
  unsigned threads = 0;
  Dims dims;
  std::vector<double> latencies;    // milliseconds of calls that nobody watched, ascending
  std::vector<LaunchWork> launches; // in the order of the last call that was watched
  size_t watchedCalls = 0;
  std::vector<double> launchMs;                    // of each, the median over the calls that were watched
  std::vector<double> launchLeastMs, launchMostMs; // and the ends
  double launchTotalMs = 0;                        // their sum
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

// Measures calls, so many altogether, in alternation with ceilings by as many threads. The observer may be null.
void measure(const std::function<void(LaunchObserver *)> &call, unsigned threads, const Amount &amount,
             Measured &result);

// Calls of the package that the options name, with a round of ceilings after each part.
Measured measureCalls(const Options &options, const Amount &amount);

// Calls of several sessions of one package at once, each with its share of the threads.
struct Streams {
  unsigned count = 0, threads = 0; // threads: of each
  double seconds = 0;              // from the first call that counts to the end of the last one
  std::vector<double> latencies;   // milliseconds, ascending
  double perSecond() const { return static_cast<double>(latencies.size()) / seconds; }
};
Streams measureStreams(const Options &options, const Amount &amount);

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

// "-" is the standard output.
void writeText(const std::string &path, const std::string &text);

} // namespace ds
#endif
