// Which ops the recipe of a constant may hold: the one list for the verifier, for the passes that write recipes, and
// for packaging, which evaluates them.
#ifndef DEEPSTRIDE_DIALECTS_DS_RECIPEOPS_H
#define DEEPSTRIDE_DIALECTS_DS_RECIPEOPS_H

#include "mlir/IR/Operation.h"

namespace deepstride {

/// True where packaging can evaluate the op on constants: it moves elements, computes each on its own or sums integers,
/// and its sizes are numbers.
bool isRecipeOp(mlir::Operation *op);

} // namespace deepstride

#endif
