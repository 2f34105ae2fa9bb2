// The pass pipeline of the codegen phase.
#ifndef DEEPSTRIDE_CODEGEN_PIPELINE_H
#define DEEPSTRIDE_CODEGEN_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace deepstride {

struct CodegenOptions : mlir::PassPipelineOptions<CodegenOptions> {
  Option<int64_t> lanes{*this, "lanes", llvm::cl::desc("f32 elements of a native vector"), llvm::cl::init(16)};
  Option<bool> reference{*this, "reference", llvm::cl::desc("plain loops and libm"), llvm::cl::init(false)};
  Option<bool> manyRows{*this, "many-rows", llvm::cl::desc("as of convert-ds-to-linalg"), llvm::cl::init(false)};
  Option<bool> roundsBfloats{*this, "rounds-bfloats", llvm::cl::desc("the processor has vcvtneps2bf16"),
                             llvm::cl::init(false)};
  Option<bool> farLoads{*this, "far-loads", llvm::cl::desc("as of convert-ds-to-linalg"), llvm::cl::init(false)};
};

/// From ds.kernel to the LLVM dialect. Launches and entry functions stay for the package writer.
void buildCodegenPipeline(mlir::OpPassManager &pm, const CodegenOptions &options);
void registerCodegenPipeline();

} // namespace deepstride

#endif
