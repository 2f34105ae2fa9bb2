// Parameters that are rounded from masters of f32: checkpoints have the masters, everything else follows from them.
#include "runtime/core/StateStore.h"

#include <algorithm>
#include <map>

namespace ds {

void roundFloats(const float *values, int64_t count, ElementType to, void *rounded) {
  auto *bits = static_cast<uint16_t *>(rounded);
  auto narrow = to == ElementType::BF16 ? narrowBF16 : narrowF16;
  for (int64_t i = 0; i < count; ++i)
    bits[i] = narrow(values[i]);
}

bool StateStore::isRounded(const StateInfo &info) const {
  return info.part != StatePart::Own && info.suffix.empty() && package.variant().units[info.unit].rounded;
}

std::string StateStore::logicalSuffix(const StateInfo &info) const {
  return info.part == StatePart::Shard && info.suffix == masterSuffix ? "" : info.suffix;
}

// Behind the masters: their targets have been checked, and files take a unit's tensors one after the other.
void StateStore::addRounded(const TensorSource &source, std::vector<Target> &targets) const {
  std::map<std::string, std::pair<const StateInfo *, const UnitTensor *>> rounded;
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      if (isRounded(state) && state.part != StatePart::View)
        for (const UnitTensor &tensor : package.variant().units[state.unit].tensors)
          if (state.part == StatePart::Shard || state.name == tensor.name)
            rounded[tensor.name] = {&state, &tensor};
  for (size_t i = 0; i < source.items().size(); ++i) {
    auto found = rounded.find(source.items()[i].name);
    if (found == rounded.end())
      continue;
    auto [info, tensor] = found->second;
    Target target;
    target.info = info;
    target.item = i;
    target.shape = source.items()[i].shape;
    target.end = elementCount(target.shape);
    if (info->part == StatePart::Shard)
      takeRange(*tensor, target);
    targets.push_back(std::move(target));
  }
}

void StateStore::roundMasters() {
  const std::vector<UnitInfo> &units = package.variant().units;
  if (std::none_of(units.begin(), units.end(), [](const UnitInfo &unit) { return unit.rounded.has_value(); }))
    return;
  std::map<std::string, const StateInfo *> infos;
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      infos[state.name] = &state;
  for (const auto &[name, master] : states) {
    const StateInfo &info = *infos.at(name);
    if (info.part != StatePart::Shard || info.suffix != masterSuffix)
      continue;
    const UnitInfo &unit = package.variant().units[info.unit];
    const auto *values = reinterpret_cast<const float *>(master.tensor.data());
    const int64_t count = master.tensor.count();
    if (auto space = spaces.find({info.unit, ""}); space != spaces.end())
      roundFloats(values, count, *unit.rounded,
                  space->second.data() + static_cast<size_t>(mesh.rank * count) * typeSize(*unit.rounded));
    for (auto &[other, state] : states) {
      const StateInfo &own = *infos.at(other);
      if (own.part != StatePart::Shard || !isRounded(own) || own.unit != info.unit)
        continue;
      roundFloats(values, count, *unit.rounded, state.tensor.data());
      touched(state.tensor.data());
    }
  }
  forEachFiles([](StateFiles &files) { files.looked(); });
}

} // namespace ds
