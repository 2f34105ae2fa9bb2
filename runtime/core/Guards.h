// Which entry of a group a call runs (docs/package-format.md, "Guarded entries").
#ifndef DEEPSTRIDE_RUNTIME_CORE_GUARDS_H
#define DEEPSTRIDE_RUNTIME_CORE_GUARDS_H

#include "runtime/core/Binding.h"

namespace ds {

// The entries that an entry's number stands for: the first one of a group stands for the group, others for themselves.
std::vector<size_t> entriesOf(const VariantInfo &variant, size_t index);

// The first of these entries whose guards all hold. Throws Error: ShapeMismatch with the values that meet no guard, or
// what bindSymbols throws.
size_t chooseEntry(const VariantInfo &variant, size_t index, const std::vector<TensorView> &inputs, const Pins &pins);

// The pins without those that only other entries of the group have a dimension for.
Pins pinsOfEntry(const VariantInfo &variant, size_t entry, const Pins &pins);

// Whether all guards hold. `values` has one value per symbol; those that guards use must be known.
bool guardsHold(const EntryInfo &entry, const std::vector<int64_t> &values);

// "eq(n, 1) and not lt(4, m)"; empty without guards.
std::string guardsText(const EntryInfo &entry);

} // namespace ds
#endif
