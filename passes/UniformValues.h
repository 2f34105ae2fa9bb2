// Values that are the same on all ranks, by which ranks may decide together.
#ifndef DEEPSTRIDE_PASSES_UNIFORMVALUES_H
#define DEEPSTRIDE_PASSES_UNIFORMVALUES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace deepstride {

/// Proves that values are uniform: those of arguments that say so (dist.uniform), what all-reduces and all-gathers
/// give, and what is computed of such values alone without asking which rank this is. Whatever else is taken as
/// different.
class UniformValues {
public:
  bool contains(mlir::Value value);

private:
  bool prove(mlir::Value value);
  llvm::DenseMap<mlir::Value, bool> known;
};

} // namespace deepstride

#endif
