// From ds.kernel to the LLVM dialect, in the order that the comments justify.
#include "codegen/Pipeline.h"

#include "codegen/Passes.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace deepstride {

void buildCodegenPipeline(OpPassManager &pm, const CodegenOptions &options) {
  ConvertDsToLinalgOptions lowering;
  lowering.lanes = options.lanes;
  lowering.reference = options.reference;
  lowering.manyRows = options.manyRows;
  lowering.farLoads = options.farLoads;
  pm.addPass(createConvertDsToLinalg(lowering));
  VectorizeRowsOptions vectors;
  vectors.lanes = options.reference ? 1 : options.lanes;
  pm.addNestedPass<func::FuncOp>(createVectorizeRows(vectors));
  // Before canonicalization, which makes a conversion of an integer to bf16 of one to f32 and a rounding: a function
  // that libgcc 12 lacks, and one rounding where the program has two.
  RoundBfloatsOptions rounding;
  rounding.instruction = options.roundsBfloats && !options.reference;
  pm.addNestedPass<func::FuncOp>(createRoundBfloats(rounding));
  // Before the expansion, so that it meets each transcendental once.
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  if (!options.reference)
    pm.addNestedPass<func::FuncOp>(createExpandMath());
  // While buffers are still arguments: afterwards they are casts that nothing may touch.
  pm.addPass(createLowerKernelAbi());
  pm.addNestedPass<func::FuncOp>(createLoopInvariantCodeMotionPass());
  pm.addNestedPass<func::FuncOp>(memref::createExpandStridedMetadataPass());
  pm.addNestedPass<func::FuncOp>(createLowerAffinePass());
  pm.addNestedPass<func::FuncOp>(createSCFToControlFlowPass());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addPass(createConvertVectorToLLVMPass());
  // libm takes what neither a polynomial nor an instruction covers; it must see math ops before LLVM intrinsics do.
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void registerCodegenPipeline() {
  PassPipelineRegistration<CodegenOptions>("ds-codegen-pipeline", "from ds.kernel to the LLVM dialect",
                                           buildCodegenPipeline);
}

} // namespace deepstride
