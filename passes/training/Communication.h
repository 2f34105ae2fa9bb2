// Collectives for whoever builds the entries of training: starts and waits, with the facts of what they give.
#ifndef DEEPSTRIDE_PASSES_TRAINING_COMMUNICATION_H
#define DEEPSTRIDE_PASSES_TRAINING_COMMUNICATION_H

#include "dialects/ds/DsBuilder.h"
#include "passes/training/Units.h"

namespace deepstride {

/// A collective that has begun, or several that bring ranges of one space; `finish` gives the results.
class Pending {
public:
  /// A deferred one may go on after the entry, until a state of it is used.
  Values finish(DsBuilder &b, bool isDeferred = false) const;
  /// Another range of the same space, which was begun later.
  void join(const Pending &other) { llvm::append_range(pending, other.pending); }

private:
  friend class Communication;
  llvm::SmallVector<mlir::Value> pending;
  llvm::SmallVector<TensorFacts> results;
};

class Communication {
public:
  /// `wire`: the float type that reductions travel in where it is narrower than the elements; null: as they are.
  explicit Communication(DsBuilder &b, mlir::Type wire = {}) : b(b), wire(wire) {}

  /// Tensors of static shape and one element type, each of which becomes what all ranks have combined; itself where the
  /// condition, if there is one, does not hold. Of a sparse one, rows that are not zeros travel.
  Pending allReduce(dist::Reduction reduction, mlir::ValueRange values, llvm::StringRef site,
                    mlir::Value condition = {}, bool isSparse = false);
  /// The tensors of a bucket; this rank's part of their unit's sum, which has the rest from `into`, if there is one.
  Pending reduceScatter(const Bucket &bucket, mlir::ValueRange tensors, llvm::StringRef site, mlir::Value into = {});
  /// The tensors, of which the elements that this rank owns are added up, where the condition, if there is one, holds.
  /// Of a sparse unit, rows that are not zeros travel.
  Pending reduceInPlace(const Bucket &bucket, mlir::ValueRange tensors, llvm::StringRef site, mlir::Value condition);
  /// This rank's part of a unit; the tensors of a bucket, with these facts, which nobody reads where the condition, if
  /// there is one, does not hold.
  Pending allGather(const Bucket &bucket, mlir::Value shard, llvm::ArrayRef<TensorFacts> tensors, llvm::StringRef site,
                    mlir::Value condition = {});
  /// Vectors of a number for each block of what this rank owns of units, which may stand several times; for each of
  /// these, vectors of a number for each block of its tensors. One message for all.
  Pending gatherBlocks(llvm::ArrayRef<const Unit *> units, mlir::ValueRange vectors, llvm::StringRef site);
  /// The mean over ranks of the tensors of several spaces, in their order, in 1 bit and a scale of each space.
  /// `errors`: two of each, this rank's and those of the means that it owns. The results are those of the tensors, then
  /// the next errors.
  Pending allReduceInBits(llvm::ArrayRef<Unit> spaces, mlir::ValueRange tensors, mlir::ValueRange errors,
                          llvm::StringRef site);

private:
  mlir::Value scatter(const Bucket &bucket, mlir::ValueRange tensors, mlir::ValueRange into, mlir::Value condition,
                      bool isInPlace, llvm::StringRef site);
  mlir::TypeAttr wireOf(mlir::Value tensor) const;

  DsBuilder &b;
  mlir::Type wire;
};

} // namespace deepstride

#endif
