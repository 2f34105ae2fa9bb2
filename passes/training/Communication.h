// Collectives for whoever builds the entries of training: starts and waits, with the facts of what they give.
#ifndef DEEPSTRIDE_PASSES_TRAINING_COMMUNICATION_H
#define DEEPSTRIDE_PASSES_TRAINING_COMMUNICATION_H

#include "dialects/ds/DsBuilder.h"
#include "passes/training/Units.h"

namespace deepstride {

/// A collective that has begun; `finish` gives its results.
class Pending {
public:
  Values finish(DsBuilder &b) const;

private:
  friend class Communication;
  mlir::Value pending;
  llvm::SmallVector<TensorFacts> results;
};

class Communication {
public:
  explicit Communication(DsBuilder &b) : b(b) {}

  /// Tensors of static shape and one element type, each of which becomes what all ranks have combined.
  Pending allReduce(dist::Reduction reduction, mlir::ValueRange values, llvm::StringRef site);
  /// The mean over ranks of the tensors of several spaces, in their order, in 1 bit and a scale of each space.
  /// `errors`: two of each, this rank's and those of the means that it owns. The results are those of the tensors, then
  /// the next errors.
  Pending allReduceInBits(llvm::ArrayRef<Unit> spaces, mlir::ValueRange tensors, mlir::ValueRange errors,
                          llvm::StringRef site);
  /// The tensors of a unit in its order; this rank's part of their sum.
  Pending reduceScatter(const Unit &unit, mlir::ValueRange tensors, llvm::StringRef site);
  /// This rank's part of a unit; all tensors, with these facts.
  Pending allGather(const Unit &unit, mlir::Value shard, llvm::ArrayRef<TensorFacts> tensors, llvm::StringRef site);

private:
  DsBuilder &b;
};

} // namespace deepstride

#endif
