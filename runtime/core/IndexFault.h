// What a kernel that met an index out of range had read: compiled code says that it happened, not with which number.
#ifndef DEEPSTRIDE_RUNTIME_CORE_INDEXFAULT_H
#define DEEPSTRIDE_RUNTIME_CORE_INDEXFAULT_H

#include "runtime/core/Package.h"

#include <functional>
#include <string>

namespace ds {

// A buffer of the call that failed, as a tensor of that type and shape; no data where it is not there in full.
using BufferView = std::function<TensorView(uint32_t buffer, ElementType type, const SymbolicShape &shape)>;

// ", input 'ids' has 40000 at [0, 3], expected 0 to 30521" of an input whose bound the package states; of other
// integers that the launch reads, from where to where they go. Empty where it reads none.
std::string indexFaultText(const VariantInfo &variant, const EntryInfo &entry, uint32_t site, const BufferView &viewOf);

} // namespace ds
#endif
