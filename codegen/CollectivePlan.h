// A collective as the manifest lists it: which buffers lie where in its space, and what a rank sends and receives.
#ifndef DEEPSTRIDE_CODEGEN_COLLECTIVEPLAN_H
#define DEEPSTRIDE_CODEGEN_COLLECTIVEPLAN_H

#include "codegen/EntryPlan.h"
#include "dialects/dist/DistDialect.h"

namespace deepstride {

/// Of a start with the buffers that the memory phase gave it. Sizes are over the dimensions of the entry and those of
/// the mesh.
EntryPlan::Collective planCollective(dist::StartInterface start, const SizeAnalysis &analysis);

} // namespace deepstride

#endif
