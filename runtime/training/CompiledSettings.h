// The rates, the loss scale and the widths that a package was compiled to train with, for loops that read no
// ds_config.json.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_COMPILEDSETTINGS_H
#define DEEPSTRIDE_RUNTIME_TRAINING_COMPILEDSETTINGS_H

#include "runtime/core/Manifest.h"
#include "runtime/training/Settings.h"

namespace ds {

struct CompiledSettings {
  double lr = 1e-3, momentum = 0.9; // the optimizer's own, whatever the schedule
  LossScaleSettings lossScale;      // constant 1 without fp16
  LayerDropSettings layerDrop;
  QuantizationSettings quantization;
  int64_t freezeStep = 100000; // steps of warm-up of 1-bit optimizers
};

// What the manifest does not say, or not as frontends/config writes it, is the default.
CompiledSettings compiledSettings(const Manifest &manifest);

} // namespace ds
#endif
