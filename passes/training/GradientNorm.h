// The norm of all gradients of a step, with the same bits however tensors are cut among ranks.
#ifndef DEEPSTRIDE_PASSES_TRAINING_GRADIENTNORM_H
#define DEEPSTRIDE_PASSES_TRAINING_GRADIENTNORM_H

#include "dialects/ds/DsBuilder.h"

namespace deepstride {

/// Elements whose norm is taken in one go; tensors of a unit begin at multiples of it, and so does what a rank owns.
inline constexpr int64_t normBlock = 64;

/// The norms of a tensor's blocks, the last one filled up with zeros; of at least two rows, as one alone is reduced as
/// a whole tensor is, in another order. Its number of elements is constant, or a multiple of a block. `element`: in
/// which they are taken, unless it is null; a cast of the whole tensor would stay for whoever else has one.
mlir::Value blockNorms(DsBuilder &b, mlir::Value tensor, mlir::Type element = {});

/// Norms of blocks are exact sums' terms: how many ranks add them up, and in which order, changes nothing. Each block's
/// square is cut at fixed places of a fixed-point number wide enough for all, so that every addition is exact (Demmel
/// and Nguyen, "Fast Reproducible Floating-Point Summation", ARITH 2013).
class GradientNorm {
public:
  /// `elements`: how many all gradients have on all ranks, at most.
  explicit GradientNorm(int64_t elements) : elements(elements) {}

  /// A gradient, or a rank's part of some, that begins at a block. Its number of elements is constant, or a multiple
  /// of a block; `isThere`, where it is not null: a boolean without which it counts 0. `element`: as of blockNorms.
  void add(DsBuilder &b, mlir::Value gradient, mlir::Value isThere = {}, mlir::Type element = {});

  /// How the greatest number, and sums, become those of all ranks; null where every rank has all gradients.
  using Combine = llvm::function_ref<mlir::Value(mlir::Value number, bool isMaximum)>;
  /// In f64, without axes. Null where a shape rule has refused, or nothing was added.
  mlir::Value finish(DsBuilder &b, Combine combine);

private:
  int64_t elements;
  llvm::SmallVector<mlir::Value> blocks; // norms of each gradient's blocks
};

} // namespace deepstride

#endif
