// How much the loss is curved along the parameters of each layer: the eigenvalue of greatest magnitude of the Hessian
// restricted to them, by power iteration on the package's entry `curvature`.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_CURVATURE_H
#define DEEPSTRIDE_RUNTIME_TRAINING_CURVATURE_H

#include "runtime/training/Trainer.h"

namespace ds {

// Of each layer, of a micro-batch's loss. `weight` multiplies the loss while it is computed, as loss scales do. First
// directions are normal, by `seed`. Throws Error as the trainer does.
std::vector<double> layerEigenvalues(Trainer &trainer, const std::vector<TensorView> &views,
                                     const EigenvalueSettings &settings, double weight, uint64_t seed);

// By how much periods grow, 1 to 5, for each layer: 1 + floor(4 |e| / max |e|), where an eigenvalue of 0, which is one
// that could not be computed, counts as the greatest. Of `blocks` blocks the rest get 1.
std::vector<int64_t> periodFactors(const std::vector<double> &eigenvalues, size_t blocks);

} // namespace ds
#endif
