// The pass pipeline of the codegen phase.
#ifndef DEEPSTRIDE_CODEGEN_PIPELINE_H
#define DEEPSTRIDE_CODEGEN_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace deepstride {

struct CodegenOptions : mlir::PassPipelineOptions<CodegenOptions> {
  Option<int64_t> lanes{*this, "lanes", llvm::cl::desc("f32 elements of a native vector"), llvm::cl::init(16)};
  Option<int64_t> panel{*this, "panel", llvm::cl::desc("columns of a packed weight panel"), llvm::cl::init(48)};
  Option<int64_t> rowBlock{*this, "row-block", llvm::cl::desc("rows of a GEMM micro-kernel"), llvm::cl::init(8)};
  Option<bool> byteDot{*this, "byte-dot", llvm::cl::desc("bytes are multiplied by vpdpbusd"), llvm::cl::init(false)};
  Option<bool> bfloatDot{*this, "bfloat-dot", llvm::cl::desc("bf16 is multiplied by vdpbf16ps"), llvm::cl::init(false)};
  Option<bool> byteTiles{*this, "byte-tiles", llvm::cl::desc("bytes are multiplied by AMX"), llvm::cl::init(false)};
  Option<bool> bfloatTiles{*this, "bfloat-tiles", llvm::cl::desc("bf16 is multiplied by AMX"), llvm::cl::init(false)};
  Option<bool> reference{*this, "reference", llvm::cl::desc("plain loops and libm"), llvm::cl::init(false)};
};

/// From ds.kernel to the LLVM dialect. Launches and entry functions stay for the package writer.
void buildCodegenPipeline(mlir::OpPassManager &pm, const CodegenOptions &options);
void registerCodegenPipeline();

} // namespace deepstride

#endif
