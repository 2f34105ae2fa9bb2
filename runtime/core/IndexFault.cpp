#include "runtime/core/IndexFault.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <algorithm>

namespace ds {
namespace {

// What an operand of a launch is: its name in a message, type, shape and the bound of an input.
struct Operand {
  std::string name;
  ElementType type = ElementType::F32;
  SymbolicShape shape;
  std::optional<int64_t> bound;
};

std::optional<Operand> writtenBefore(const EntryInfo &entry, uint32_t site, uint32_t buffer) {
  for (uint32_t at = site; at-- > 0;)
    for (const LaunchResult &result : entry.launches[at].results)
      if (result.buffer == buffer)
        return Operand{result.value.empty() ? "a value of " + inQuotes(entry.launches[at].site)
                                            : "value " + inQuotes(result.value),
                       result.type, result.shape, std::nullopt};
  return std::nullopt;
}

std::optional<Operand> describe(const VariantInfo &variant, const EntryInfo &entry, uint32_t site, uint32_t buffer) {
  const BufferInfo &info = entry.buffers[buffer];
  switch (info.role) {
  case BufferRole::Input: {
    const TensorInfo &input = entry.inputs[info.index];
    return Operand{"input " + inQuotes(input.name), input.type, input.shape, input.bound};
  }
  case BufferRole::State: {
    const StateInfo &state = entry.states[info.index];
    return Operand{"state " + inQuotes(state.name), state.type, state.shape, std::nullopt};
  }
  case BufferRole::Constant: {
    const ConstantInfo &constant = variant.constants[info.index];
    SymbolicShape shape;
    for (int64_t size : constant.shape)
      shape.push_back(SizeExpr::constant(size));
    return Operand{"constant " + inQuotes(constant.name), constant.type, std::move(shape), std::nullopt};
  }
  case BufferRole::Output:
  case BufferRole::Workspace: return writtenBefore(entry, site, buffer);
  }
  return std::nullopt;
}

Shape placeOf(int64_t element, const Shape &shape) {
  Shape place(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    place[axis] = element % shape[axis];
  return place;
}

} // namespace

std::string indexFaultText(const VariantInfo &variant, const EntryInfo &entry, uint32_t site,
                           const BufferView &viewOf) {
  std::string ranges;
  for (uint32_t buffer : entry.launches[site].operands) {
    std::optional<Operand> operand = describe(variant, entry, site, buffer);
    if (!operand || !isInteger(operand->type) || operand->type == ElementType::I1)
      continue;
    TensorView view = viewOf(buffer, operand->type, operand->shape);
    int64_t count = view.data ? elementCount(view.shape) : 0, least = INT64_MAX, most = INT64_MIN;
    for (int64_t i = 0; i < count; ++i) {
      int64_t value = loadInteger(view.type, view.data, static_cast<size_t>(i));
      // Kernels count negative indices from the end.
      if (operand->bound && (value < -*operand->bound || value >= *operand->bound))
        return concat(", ", operand->name, " has ", value, " at ", listText(placeOf(i, view.shape)), ", expected 0 to ",
                      *operand->bound - 1);
      least = std::min(least, value), most = std::max(most, value);
    }
    if (count > 0)
      ranges += concat(ranges.empty() ? ", read " : " and ", operand->name, " with ", least);
    if (least < most)
      ranges += concat(" to ", most);
  }
  return ranges;
}

} // namespace ds
