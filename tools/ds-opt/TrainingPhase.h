// What the training phase is told of ds_config.json and the command line.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_TRAININGPHASE_H
#define DEEPSTRIDE_TOOLS_DSOPT_TRAININGPHASE_H

#include "passes/Pipelines.h"
#include "tools/ds-opt/Options.h"

namespace deepstride {

void setTrainingOptions(TrainingPipelineOptions &training, const DriverOptions &options);

} // namespace deepstride

#endif
