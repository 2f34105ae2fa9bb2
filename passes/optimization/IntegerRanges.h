// What integers a tensor may hold, read off the ops that make it, up to casts from narrow types and constants.
#ifndef DEEPSTRIDE_PASSES_OPTIMIZATION_INTEGERRANGES_H
#define DEEPSTRIDE_PASSES_OPTIMIZATION_INTEGERRANGES_H

#include "dialects/ds/DsDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace deepstride {

/// Integers from low to high. All that is added or multiplied here is far from 64 bits.
struct IntegerRange {
  int64_t low, high;

  bool fits(unsigned bits, bool isUnsigned) const {
    return isUnsigned ? low >= 0 && high < (int64_t(1) << bits)
                      : low >= -(int64_t(1) << (bits - 1)) && high < (int64_t(1) << (bits - 1));
  }
  IntegerRange with(IntegerRange other) const { return {std::min(low, other.low), std::max(high, other.high)}; }
};

class IntegerRanges {
public:
  explicit IntegerRanges(mlir::ModuleOp module) : symbols(module) {}

  /// What the elements of an integer tensor may be, or of one of f32 or f64 that only holds whole numbers; none where
  /// they may be anything that 32 bits hold, or fractions. Remembered:
  /// values that are asked for must live as long as this.
  std::optional<IntegerRange> of(mlir::Value value);

private:
  std::optional<IntegerRange> compute(mlir::Value value);
  std::optional<IntegerRange> ofBinary(ds::BinaryOp op);

  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Value, std::optional<IntegerRange>> known;
};

} // namespace deepstride

#endif
