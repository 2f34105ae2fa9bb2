// Evaluates ds.recipe regions when a package is written: one weight in memory at a time, sources mapped, not read.
#ifndef DEEPSTRIDE_CODEGEN_RECIPEEVALUATOR_H
#define DEEPSTRIDE_CODEGEN_RECIPEEVALUATOR_H

#include "dialects/ds/DsDialect.h"
#include "llvm/Support/MemoryBuffer.h"

namespace deepstride {

/// A dense row-major tensor in host memory: a view of a mapped file, or bytes of its own.
struct HostTensor {
  mlir::Type element;
  llvm::SmallVector<int64_t> shape;
  const char *data = nullptr;
  std::shared_ptr<std::vector<char>> owned;

  int64_t count() const;
  int64_t bytes() const;
};

class RecipeEvaluator {
public:
  /// The value that the recipe yields. Diagnoses at the op what cannot be read or evaluated.
  mlir::FailureOr<HostTensor> evaluate(ds::RecipeOp recipe);

private:
  mlir::FailureOr<HostTensor> evaluateOp(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands);
  mlir::FailureOr<HostTensor> readSource(ds::SourceOp source);

  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> files;
};

} // namespace deepstride

#endif
