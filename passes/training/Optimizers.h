// What optimizers do to one parameter tensor, as ds ops (facts: Adam and LAMB as shipped).
#ifndef DEEPSTRIDE_PASSES_TRAINING_OPTIMIZERS_H
#define DEEPSTRIDE_PASSES_TRAINING_OPTIMIZERS_H

#include "dialects/ds/DsBuilder.h"

#include <optional>
#include <string>

namespace deepstride {

enum class OptimizerKind { Sgd, Adagrad, Adam, Lamb };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::Adam;
  double beta2 = 0.999, epsilon = 1e-8, weightDecay = 0;
  bool isDecoupled = true; // decay is taken off the parameter (AdamW), not added to the gradient (Adam)
  bool correctsBias = true;
  double dampening = 0; // of SGD's momentum
  bool isNesterov = false;
  bool hasMomentum = true;                  // SGD without keeps no state
  double leastTrust = 0.01, mostTrust = 10; // LAMB's trust ratio
  bool hasEpsilonInside = false;            // LAMB: sqrt(v + epsilon)
  double initialSum = 0, rateDecay = 0;     // Adagrad
  bool compresses = false;                  // 1-bit Adam and LAMB: the second regime is CompressedUpdate.h's
  // 1-bit LAMB: decay of the averaged trust ratio, and what multiplies it later, by how much at most in a step.
  double trustDecay = 0.9, leastFactor = 0.5, mostFactor = 4, factorChange = 0.1;

  /// From "adamw,beta2=0.999,epsilon=1e-08,weight_decay=0.01"; "one_bit_adam" and "one_bit_lamb" correct no
  /// bias. Says in
  /// `error` what is wrong.
  static std::optional<OptimizerSettings> parse(llvm::StringRef text, std::string &error);
  /// The suffixes of a parameter's optimizer states.
  llvm::SmallVector<llvm::StringRef> states() const;
  /// Those of the second regime alone.
  llvm::SmallVector<llvm::StringRef> frozenStates() const;
  /// States are as large as the parameter, or one number in f64.
  static bool isNumber(llvm::StringRef state);
};

/// Numbers without axes, in f64, that a step gives to all parameters.
struct StepNumbers {
  mlir::Value rate;     // learning rate
  mlir::Value momentum; // Adam's beta1, SGD's momentum
  mlir::Value step;     // 1 for the first step
};

/// The next parameter and states; empty where a shape rule has refused. `decays`: whether weight decay applies.
llvm::SmallVector<mlir::Value> updateParameter(DsBuilder &b, const OptimizerSettings &settings,
                                               const StepNumbers &numbers, mlir::Value parameter, mlir::Value gradient,
                                               mlir::ValueRange states, bool decays);

} // namespace deepstride

#endif
