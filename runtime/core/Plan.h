// Everything about a call that follows from its symbol values: sizes, shapes, placement of workspace. Made once for
// every set of values and kept.
#ifndef DEEPSTRIDE_RUNTIME_CORE_PLAN_H
#define DEEPSTRIDE_RUNTIME_CORE_PLAN_H

#include "runtime/core/Manifest.h"
#include "runtime/core/Placement.h"

#include <cstdint>
#include <list>
#include <vector>

namespace ds {

struct Plan {
  std::vector<int64_t> symbols; // the key: computed symbols are 0 here
  std::vector<int64_t> sizes;   // one per size; 0 where it depends on a computed symbol
  std::vector<Shape> outputs, states;
  std::vector<uint64_t> bufferBytes, offsets; // per buffer; the offset of workspace buffers only
  uint64_t workspaceBytes = 0, peakLiveBytes = 0;
};

// What of an entry depends on computed symbols, found once per entry.
struct ComputedParts {
  explicit ComputedParts(const EntryInfo &entry);

  std::vector<uint8_t> size, output;               // flags: depends on a computed symbol
  std::vector<const ConstraintInfo *> constraints; // those that do
};

// Throws Error for overflow and for negative sizes, naming the buffer or value. Takes over the placement of a plan of
// the same entry whose workspace buffers have the same sizes: a position that moves from call to call changes no
// buffer, and placing thousands of them takes longer than a small call.
Plan makePlan(const EntryInfo &entry, const std::vector<ConstantInfo> &constants, const ComputedParts &computed,
              const std::vector<int64_t> &symbols, const Plan *alike = nullptr);

// Of a workspace buffer. A negative size is that of a branch which is not taken, or refused when a launch uses it.
uint64_t workspaceSize(int64_t bytes);

// The last few plans; checks constraints when it makes one.
class PlanCache {
public:
  PlanCache(const EntryInfo &entry, const std::vector<ConstantInfo> &constants, const ComputedParts &computed)
      : entry(entry), constants(constants), computed(computed) {}

  // Valid until the next call.
  const Plan &get(const std::vector<int64_t> &symbols);

private:
  static constexpr size_t capacity = 16;

  const EntryInfo &entry;
  const std::vector<ConstantInfo> &constants;
  const ComputedParts &computed;
  std::list<Plan> plans; // the most recent first
};

} // namespace ds
#endif
