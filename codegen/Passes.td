// Passes of the codegen phase: from ds.kernel to LLVM.
#ifndef DEEPSTRIDE_CODEGEN_PASSES_TD
#define DEEPSTRIDE_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertDsToLinalg : Pass<"convert-ds-to-linalg", "::mlir::ModuleOp"> {
  let summary = "lower every ds.kernel to a function over flat buffers";
  let description = [{
    Elementwise regions become one `linalg.generic`, row operations become generics inside a loop over rows, products go
    through the micro-kernel emitter, everything else becomes loops. No kernel allocates. Numerically a no-op up to the
    order of summation.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let options = [Option<"lanes", "lanes", "int64_t", "16", "f32 elements of a native vector">,
                 Option<"reference", "reference", "bool", "false", "plain loops only">,
                 Option<"manyRows", "many-rows", "bool", "false",
                        "leave out the paths that products with weights, and attention, have for few rows">,
                 Option<"farLoads", "far-loads", "bool", "false",
                        "up to six multiply-adds with a line of a weight leave room for loads of later lines, which "
                        "are then not prefetched; else those of two rows">];
}

def VectorizeRows : Pass<"ds-vectorize-rows", "::mlir::func::FuncOp"> {
  let summary = "turn linalg.generic into loops over native vectors with a scalar tail";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let options = [Option<"lanes", "lanes", "int64_t", "16", "elements of a vector; 1 keeps scalar loops">];
}

def ExpandMath : Pass<"ds-expand-math", "::mlir::func::FuncOp"> {
  let summary = "replace f32 transcendentals by polynomials, division of integers in vectors by that of floats, and what is an instruction by its intrinsic";
  let description = [{
    exp, expm1, log, log1p, tanh, erf, sin, cos, asin, acos and atan on f32 scalars and vectors become arithmetic, the
    same for both, so that an element has the same bits in a vector and in a tail. Beyond 65536 sin and cos call libm's
    functions, behind a branch. Error bounds: codegen/cpu/ExpandMath.cpp. Quotients and remainders of vectors of 8 to 32
    bits by what is no constant are computed in f32 and f64, which is exact.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def RoundBfloats : Pass<"ds-round-bfloats", "::mlir::func::FuncOp"> {
  let summary = "replace the rounding of f32 to bf16 by arithmetic on integers, or by an instruction";
  let description = [{
    To nearest even, subnormal numbers included. Vectors of 8 and 16 elements take the instruction, if there is one,
    unless one of them is subnormal.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let options = [Option<"instruction", "instruction", "bool", "false", "the processor has vcvtneps2bf16">];
}

def LowerKernelAbi : Pass<"ds-lower-kernel-abi", "::mlir::ModuleOp"> {
  let summary = "give kernels the C signature of ds_abi.h";
  let description = [{
    Buffers, sizes, range and scratch arrive as in `ds_kernel`; the flat memrefs that kernels use are rebuilt from plain
    pointers.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::func::FuncDialect"];
}

#endif
