// Evaluates ds.recipe regions, when a package is written and where a pass asks: one weight in memory at a time, sources
// mapped, not read.
#ifndef DEEPSTRIDE_DIALECTS_DS_RECIPEEVALUATOR_H
#define DEEPSTRIDE_DIALECTS_DS_RECIPEEVALUATOR_H

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/HostTensor.h"
#include "llvm/Support/MemoryBuffer.h"

namespace deepstride {

class RecipeEvaluator {
public:
  /// The value that the recipe yields. Diagnoses at the op what cannot be read or evaluated.
  mlir::FailureOr<HostTensor> evaluate(ds::RecipeOp recipe);

private:
  mlir::FailureOr<HostTensor> readSource(ds::SourceOp source);

  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
};

} // namespace deepstride

#endif
