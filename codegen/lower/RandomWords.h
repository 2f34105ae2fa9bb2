// Numbers that dropout draws in a kernel: the first word of Philox4x32-10 (Salmon et al. 2011) of a place.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_RANDOMWORDS_H
#define DEEPSTRIDE_CODEGEN_LOWER_RANDOMWORDS_H

#include "codegen/lower/KernelBuilder.h"

namespace deepstride {

/// Draws as passes/training/Dropout.h says, bit by bit. Words lie in i64, whose upper halves are read nowhere.
class RandomWords {
public:
  /// Emits what all places share, from numbers in i64.
  RandomWords(KernelBuilder &k, mlir::Value seed, mlir::Value step, mlir::Value micro, mlir::Value stream);

  /// The word at `place`, an i64, from 0 to 2^32 - 1.
  mlir::Value at(mlir::OpBuilder &b, mlir::Location loc, mlir::Value place) const;
  static constexpr double range = 4294967296.0;

private:
  static constexpr unsigned rounds = 10;
  mlir::Value keys[rounds][2]; // of each round
  mlir::Value high, low;       // of what the first round multiplies the step to
  mlir::Value micro, stream;
};

} // namespace deepstride

#endif
