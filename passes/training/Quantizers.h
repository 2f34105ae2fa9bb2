// What weights are rounded to while they are trained (MoQ), as ds ops: the quantizers of DeepSpeed as of 2022 (facts:
// quantizers). For b bits and a group of the flat tensor, with w one of its elements:
//
//   symmetric    s = 2 max|w| / 2^b         q = clamp(round(w / s), -2^(b-1), 2^(b-1) - 1)     w' = q s
//   asymmetric   s = (max w - min w) / 2^b  z = round(min w / s)
//                q = clamp(round((w - z s) / s), 0, 2^b - 1)                                   w' = (q + z) s
//   ternary      a = mean of |w| above 0.7 mean|w|                    w' = a sign(w) where |w| > 0.7 mean|w|, else 0
//   binary                                                            w' = sign(w) mean|w|
//
// round is to nearest, ties to even; stochastic rounding adds a number of (-1/2, 1/2) before. Symmetric groups cannot
// hold max|w| itself, which becomes max|w| (1 - 2^(1-b)); their zero is exact. Where s would be 0, it is 1 in
// symmetric groups, and the group's one value in asymmetric ones: zeros stay zeros, and equal elements what they are.
#ifndef DEEPSTRIDE_PASSES_TRAINING_QUANTIZERS_H
#define DEEPSTRIDE_PASSES_TRAINING_QUANTIZERS_H

#include "passes/training/Dropout.h"

#include <map>

namespace deepstride {

struct QuantizerSettings {
  int64_t groups = 1; // contiguous ranges of the flat tensor, all of one size
  bool isSymmetric = true, isStochastic = false;
  bool isMixed = false; // share w + (1 - share) w'

  /// Ternary and binary images are symmetric, and rounded to nearest.
  bool hasFewLevels() const { return isSymmetric && !isStochastic; }
};

/// Numbers that a call gives.
struct QuantizerInputs {
  mlir::Value levels; // f64, of each block of parameters: 2^b; 0: they stay as they are
  mlir::Value shares; // f64, the same: of the parameters themselves, where the settings mix
  RandomState random; // where rounding is stochastic
};

/// Makes images where a builder stands.
class Quantizer {
public:
  Quantizer(DsBuilder &b, const QuantizerSettings &settings, const QuantizerInputs &inputs)
      : b(b), settings(settings), inputs(inputs) {}

  /// What products read in the place of `weight`, a tensor of a constant number of elements that the groups divide.
  /// `stream` tells tensors apart that round stochastically. Null where a shape rule has refused.
  mlir::Value image(mlir::Value weight, int64_t block, int64_t stream);

private:
  /// What the tensors of a block have in common, each computed once.
  struct Numbers {
    mlir::Value isSome, isUniform;      // i1: any levels; more than 4
    mlir::Value perLevel;               // 2 / levels, or 1 / levels of asymmetric images
    mlir::Value least, most, isTernary; // codes, and whether there are 4 levels
    mlir::Value share, rest;            // of the tensor and of what it is rounded to
  };
  const Numbers &numbersOf(int64_t block, mlir::Type type);
  mlir::Value branch(mlir::Value bit, mlir::Value weight, llvm::function_ref<mlir::Value()> yes,
                     llvm::function_ref<mlir::Value()> no);
  mlir::Value rows(mlir::Value weight);
  mlir::Value rounded(mlir::Value quotient, int64_t stream);
  mlir::Value clamped(mlir::Value code, const Numbers &numbers);
  mlir::Value symmetric(mlir::Value weight, const Numbers &numbers, int64_t stream);
  mlir::Value asymmetric(mlir::Value weight, const Numbers &numbers, int64_t stream);
  mlir::Value fewLevels(mlir::Value weight, const Numbers &numbers);

  DsBuilder &b;
  const QuantizerSettings &settings;
  QuantizerInputs inputs;
  std::map<std::pair<int64_t, const void *>, Numbers> known; // by block and type
};

} // namespace deepstride

#endif
