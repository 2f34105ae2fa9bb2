// What launches have to do at the least, operations and bytes, and how long this machine takes for it at best.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_WORK_H
#define DEEPSTRIDE_TOOLS_DS_RUN_WORK_H

#include "runtime/core/Session.h"
#include "runtime/device/cpu/Ceilings.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace ds {

struct LaunchWork {
  uint32_t site = 0;                    // index into entry.launches
  int64_t start = 0, end = 0, grid = 0; // nanoseconds
  double flops = 0;
  double memoryBytes = 0;            // of constants, inputs, outputs and states
  double workspaceBytes = 0;         // which a cache may hold
  const EntryInfo *entry = nullptr;  // of the recorder's package
  std::vector<int64_t> symbols = {}; // of the entry, as they were then
};

// The launches of one call, or of several. Bytes are those of whole buffers, but where the manifest knows of less: of a
// gather's table, of what is read in slices, and of what is changed in place.
class CallRecorder : public LaunchObserver {
public:
  // What is not counted costs no time between launches.
  explicit CallRecorder(const Package &package, bool counts = true) : package(package), counts(counts) {}
  void afterLaunch(const Event &event) override;

  std::vector<LaunchWork> launches;
  std::map<std::string, double> flopsByArithmetic;
  double flops() const;
  // The least that the call moves: every constant, input, output and state once, as far as launches touch it.
  uint64_t bytes() const;

private:
  struct Traffic {
    uint64_t whole = 0, read = 0, written = 0;
  };

  using Place = std::tuple<BufferRole, uint64_t, const EntryInfo *>;

  const Package &package;
  bool counts;
  std::map<Place, Traffic> traffic; // of a constant, by its place in weights.bin and of all entries
};

// Operations per second for an arithmetic of the manifest ("f32", "bf16", ...), in billions.
double peakOf(const Ceilings &ceilings, const std::string &arithmetic);

// No launch is faster: memory at the rate of the call's working set, everything at the rate of a cache, arithmetic at
// its peak. Milliseconds.
double rooflineOf(const Ceilings &ceilings, const LaunchWork &work, const std::string &arithmetic);

double medianOf(std::vector<double> values);

} // namespace ds
#endif
