#include "runtime/core/Plan.h"

#include "runtime/core/Binding.h"
#include "runtime/core/Error.h"

#include <algorithm>

namespace ds {

ComputedParts::ComputedParts(const EntryInfo &entry) {
  for (const SizeExpr &expr : entry.sizes)
    size.push_back(entry.dependsOnComputed(expr));
  for (const TensorInfo &info : entry.outputs)
    output.push_back(std::any_of(info.shape.begin(), info.shape.end(),
                                 [&](const SizeExpr &dim) { return entry.dependsOnComputed(dim); }));
  for (const ConstraintInfo &constraint : entry.constraints)
    if (entry.dependsOnComputed(constraint.lhs) || entry.dependsOnComputed(constraint.rhs))
      constraints.push_back(&constraint);
}

uint64_t workspaceSize(int64_t bytes) { return static_cast<uint64_t>(std::max<int64_t>(bytes, 0)); }

Plan makePlan(const EntryInfo &entry, const std::vector<ConstantInfo> &constants, const ComputedParts &computed,
              const std::vector<int64_t> &symbols, const Plan *alike) {
  Plan plan;
  plan.symbols = symbols;
  for (size_t i = 0; i < entry.sizes.size(); ++i)
    plan.sizes.push_back(computed.size[i] ? 0 : entry.sizes[i].evaluate(symbols));
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    plan.outputs.push_back(computed.output[i] ? Shape() : evaluateShape(entry.outputs[i].shape, symbols));
  for (const StateInfo &state : entry.states)
    plan.states.push_back(evaluateShape(state.shape, symbols));

  std::vector<LiveRange> ranges;
  std::vector<size_t> owners;
  for (size_t i = 0; i < entry.buffers.size(); ++i) {
    const BufferInfo &buffer = entry.buffers[i];
    uint64_t bytes = 0;
    switch (buffer.role) {
    case BufferRole::Constant: bytes = constants[buffer.index].bytes; break;
    case BufferRole::Input: {
      const TensorInfo &info = entry.inputs[buffer.index];
      bytes = byteCount(info.type, evaluateShape(info.shape, symbols));
      break;
    }
    case BufferRole::Output:
      if (!computed.output[buffer.index])
        bytes = annotated("output '" + entry.outputs[buffer.index].name + "'",
                          [&] { return byteCount(entry.outputs[buffer.index].type, plan.outputs[buffer.index]); });
      break;
    case BufferRole::State:
      bytes = annotated("state '" + entry.states[buffer.index].name + "'",
                        [&] { return byteCount(entry.states[buffer.index].type, plan.states[buffer.index]); });
      break;
    case BufferRole::Workspace:
      if (computed.size[buffer.bytes])
        break;
      bytes = workspaceSize(plan.sizes[buffer.bytes]);
      ranges.push_back({bytes, buffer.first, buffer.last});
      owners.push_back(i);
    }
    plan.bufferBytes.push_back(bytes);
  }
  if (alike && std::all_of(owners.begin(), owners.end(),
                           [&](size_t owner) { return alike->bufferBytes[owner] == plan.bufferBytes[owner]; })) {
    plan.offsets = alike->offsets;
    plan.workspaceBytes = alike->workspaceBytes;
    plan.peakLiveBytes = alike->peakLiveBytes;
    return plan;
  }
  Placement placement = placeBuffers(ranges);
  plan.offsets.resize(entry.buffers.size(), 0);
  for (size_t i = 0; i < owners.size(); ++i)
    plan.offsets[owners[i]] = placement.offsets[i];
  plan.workspaceBytes = placement.total;
  plan.peakLiveBytes = placement.peakLive;
  return plan;
}

const Plan &PlanCache::get(const std::vector<int64_t> &symbols) {
  auto found = std::find_if(plans.begin(), plans.end(), [&](const Plan &plan) { return plan.symbols == symbols; });
  if (found != plans.end()) {
    plans.splice(plans.begin(), plans, found);
    return plans.front();
  }
  checkConstraints(entry, symbols);
  plans.push_front(makePlan(entry, constants, computed, symbols, plans.empty() ? nullptr : &plans.front()));
  if (plans.size() > capacity)
    plans.pop_back();
  return plans.front();
}

} // namespace ds
