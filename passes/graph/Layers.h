// What the passes of the graph phase leave for the report on layers.
#ifndef DEEPSTRIDE_PASSES_GRAPH_LAYERS_H
#define DEEPSTRIDE_PASSES_GRAPH_LAYERS_H

#include "llvm/ADT/StringRef.h"

namespace deepstride {

/// Why a block was not recomposed, on its last op; ds-recognize-layers reads and removes it.
inline constexpr llvm::StringLiteral leftAttr = "ds.left";

} // namespace deepstride

#endif
