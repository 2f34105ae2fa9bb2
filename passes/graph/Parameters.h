// Parameters: values that a model learns. They are constants of the package, or states that training updates.
#ifndef DEEPSTRIDE_PASSES_GRAPH_PARAMETERS_H
#define DEEPSTRIDE_PASSES_GRAPH_PARAMETERS_H

#include "dialects/ds/DsDialect.h"

namespace deepstride {

/// Where the elements of a value come from, the later the less is known of them.
enum class ParameterSource {
  Constant, // ds.constant: known to the compiler
  Weight,   // ds.weight: known when the package is written; recipes compute on it
  State,    // an entry argument tied to a state: whatever the last call left; ops of the program compute on it
  None      // no parameter: inputs, and what is computed from them
};

/// The last of the sources of what the value is computed from, by ops that a recipe could hold. Arguments of regions
/// that bind operands, as gradients do, are no less than states where those operands are parameters.
ParameterSource parameterSourceOf(mlir::Value value);

/// Whether elements may be folded: what states hold changes between calls.
inline bool isFoldable(ParameterSource source) { return source <= ParameterSource::Weight; }

} // namespace deepstride

#endif
