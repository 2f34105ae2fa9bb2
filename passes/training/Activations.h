// The activations of a micro-batch: what its forward part computes and its way back reads.
#ifndef DEEPSTRIDE_PASSES_TRAINING_ACTIVATIONS_H
#define DEEPSTRIDE_PASSES_TRAINING_ACTIVATIONS_H

#include "dialects/ds/DsBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace deepstride {

/// A part of the program with a way back of its own: all of the function, or a block that may be dropped, whose forward
/// branch hands its activations to its backward one.
class ActivationScope {
public:
  /// Of ops of `forward` before or at `last` (all, where null), and what reads them in `backward` behind `last`.
  ActivationScope(mlir::Block *forward, mlir::Block *backward, mlir::Operation *last)
      : forward(forward), backward(backward), last(last) {}

  /// Says that the way back sees a value of the forward part, or one that it is given, as another one.
  void hand(mlir::Value inside, mlir::Value outside) { handed[inside] = outside; }
  /// Finds what the way back reads.
  void findRead();

  bool isForward(mlir::Operation *op) const;
  /// What the way back reads, in the order of the forward part: as the forward part has it, without views.
  const llvm::SetVector<mlir::Value> &activations() const { return read; }
  /// What has to be computed so that a value is there without being kept, operands first: ops that are not among
  /// `again` yet. Nothing where that is not possible.
  std::optional<llvm::SetVector<mlir::Operation *>> needed(mlir::Value value,
                                                           const llvm::DenseSet<mlir::Value> &dropped,
                                                           const llvm::DenseSet<mlir::Operation *> &again) const;
  /// Computes these anew where the way back reads them first; returns how many ops that takes.
  int64_t recompute(const llvm::DenseSet<mlir::Value> &dropped, SizeAnalysis &analysis);

private:
  bool isAvailable(mlir::Value value) const;
  bool isKept(mlir::Value value, const llvm::DenseSet<mlir::Value> &dropped) const {
    return (read.contains(value) || isAvailable(value)) && !dropped.contains(value);
  }
  mlir::Value seenFrom(mlir::Value value, mlir::OpBuilder &builder, SizeAnalysis &analysis) const;

  mlir::Block *forward, *backward;
  mlir::Operation *last;
  llvm::MapVector<mlir::Value, mlir::Value> handed;
  llvm::SetVector<mlir::Value> read;
};

/// The scopes of a micro-batch: those of blocks that may be dropped first, whose recomputation reads what is around.
std::vector<ActivationScope> activationScopes(mlir::func::FuncOp micro);

/// About how long an op takes, in floating-point operations; moving a byte counts as several.
double costOf(mlir::Operation *op, const SizeAnalysis &analysis, const std::map<std::string, int64_t> &dims);
double bytesOf(mlir::Value value, const SizeAnalysis &analysis, const std::map<std::string, int64_t> &dims);

} // namespace deepstride

#endif
