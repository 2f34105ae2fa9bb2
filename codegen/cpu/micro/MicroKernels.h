// What makes the micro-kernels of CPUs, by types and instructions; dialects/ds/ProductKernels.def names them.
#ifndef DEEPSTRIDE_CODEGEN_CPU_MICRO_MICROKERNELS_H
#define DEEPSTRIDE_CODEGEN_CPU_MICRO_MICROKERNELS_H

#include "codegen/tile/MicroKernel.h"

namespace deepstride {

/// One multiplication and one addition a lane and step, in the type that the result is computed in: fused for floats,
/// modulo 2^n for integers.
std::unique_ptr<MicroKernel> multiplyAddKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                               mlir::Type result);

/// 16-bit integers in pairs along K, exact sums in i32: vpmaddwd and an addition, which are one vpdpwssd where the CPU
/// has it. Panels may hold 8 bits, which are extended as they are loaded. Null where the target's vectors have none.
std::unique_ptr<MicroKernel> pairDotKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                           mlir::Type result);

/// Unsigned by signed bytes, either of them on the left, in fours along K, exact sums in i32: by vpdpbusd, or by two
/// vpmaddwd of the bytes at even and at odd places. Null where vectors of the target's size have none.
std::unique_ptr<MicroKernel> byteDotKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                           mlir::Type result);
std::unique_ptr<MicroKernel> bytePairsKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                             mlir::Type result);

/// Its instruction on vectors of so many sums: vpdpbusd, which takes the unsigned bytes first. Empty where there is
/// none.
llvm::StringRef byteDotInstruction(int64_t lanes);

/// 32 bits of a row, two elements or four, in all of so many lanes of i32. Where `count` is given, only so many of them
/// exist, at least one and not all, and the others are 0.
mlir::Value broadcastWord(KernelBuilder &k, int64_t lanes, mlir::Value buffer, mlir::Value position,
                          mlir::Value count = {});

/// Unsigned by signed bytes in eights along K, of panels that are fitted to it (codegen/tile/FitPanel.h): vpmaddubsw
/// adds up in 16 bits without saturation, sums in i32 are exact. Null but for vectors of 256 and 512 bits.
std::unique_ptr<MicroKernel> byteQuadsKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                             mlir::Type result);

/// bf16 in pairs along K, summed in f32: by vdpbf16ps, which rounds after each product and takes denormals for 0, or by
/// two fused multiply-adds of the halves. Panels of the former may hold codes of i8, or of i4, two in a byte. Null
/// where vectors of the target's size have no such instruction.
std::unique_ptr<MicroKernel> bfloatDotKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                             mlir::Type result);
std::unique_ptr<MicroKernel> bfloatHalvesKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                                mlir::Type result);

/// The same operands by AMX: tdpbf16ps sums products of 16 pairs along K in f32 and takes denormals for 0; tdpbusd and
/// tdpbsud sum bytes exactly. Panels have at most three squares, of 16 columns each. Null
/// but for vectors of 512 bits.
std::unique_ptr<MicroKernel> amxBfloatKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                             mlir::Type result);
std::unique_ptr<MicroKernel> amxByteKernel(const LoweringTarget &target, mlir::Type left, mlir::Type panel,
                                           mlir::Type result);

/// f32 or bf16 by codes of i8 or i4, which are converted to f32 as they are loaded. Codes of 4 bits lie in pairs along
/// K, two in a byte.
std::unique_ptr<MicroKernel> dequantizeKernel(const LoweringTarget &target, mlir::Type left, mlir::Type codes,
                                              mlir::Type result);

/// f32 by the same codes, which become unsigned bytes: rows are three digits (codegen/tile/RowDigits.h), which are
/// multiplied in fours along K by vpdpbusd. Codes of 4 bits come in eights, those at even places in the low halves of
/// bytes. Null but for vectors of 256 and 512 bits.
std::unique_ptr<MicroKernel> digitsKernel(const LoweringTarget &target, mlir::Type left, mlir::Type codes,
                                          mlir::Type result);

} // namespace deepstride

#endif
