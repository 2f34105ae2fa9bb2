// Scalars as numbers of the compiler's own machine: the emitter by which ScalarFunctions folds constants. Floats follow
// IEEE 754 operation by operation, as kernels do; what is left to libm is the function that kernels call.
#ifndef DEEPSTRIDE_DIALECTS_DS_HOSTSCALARS_H
#define DEEPSTRIDE_DIALECTS_DS_HOSTSCALARS_H

#include "dialects/ds/ScalarFunctions.h"

namespace deepstride {

/// Integers are extended from the width of their type to 64 bits with their highest bit; i1 is 0 or 1.
struct HostScalar {
  ScalarType type = ScalarType::i64;
  union {
    int64_t integer = 0;
    float f32;
    double f64;
  };
};

/// One element in memory. Booleans and narrow types take a byte each.
HostScalar readScalar(const ElementInfo &info, const char *at);
/// Rounds or wraps to the element type.
void writeScalar(const ElementInfo &info, char *at, const HostScalar &value);

class HostScalars {
public:
  using Value = HostScalar;

  ScalarType typeOf(Value x) { return x.type; }
  Value integer(ScalarType type, int64_t value);
  Value real(ScalarType type, double value);

  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value fma(Value x, Value y, Value z);
  Value negate(Value x);
  Value divide(Value x, Value y, bool isUnsigned);
  Value remainder(Value x, Value y, bool isUnsigned);
  Value max(Value x, Value y, bool isUnsigned);
  Value min(Value x, Value y, bool isUnsigned);
  Value power(Value x, Value y);
  Value copySign(Value magnitude, Value sign);
  Value function(ds::UnaryKind kind, Value x);
  Value erfcOfSize(Value x);
  Value gradualExpOfNonpositive(Value x);
  Value libmUnless(Value condition, Value common, ds::UnaryKind kind, Value x);

  Value bitAnd(Value x, Value y) { return integer(x.type, x.integer & y.integer); }
  Value bitOr(Value x, Value y) { return integer(x.type, x.integer | y.integer); }
  Value bitXor(Value x, Value y) { return integer(x.type, x.integer ^ y.integer); }
  Value shiftLeft(Value x, Value y) { return integer(x.type, static_cast<int64_t>(bitsOf(x) << y.integer)); }
  Value shiftRight(Value x, Value y) { return integer(x.type, static_cast<int64_t>(bitsOf(x) >> y.integer)); }
  Value shiftRightSigned(Value x, Value y) { return integer(x.type, x.integer >> y.integer); }
  Value compare(Compare how, Value x, Value y, bool isUnsigned);
  Value select(Value condition, Value x, Value y) { return condition.integer ? x : y; }

  Value integerTo(Value x, ScalarType type, bool isUnsigned);
  Value integerToFloat(Value x, ScalarType type, bool isUnsigned);
  /// Of what the type holds.
  Value floatToInteger(Value x, ScalarType type);
  Value floatTo(Value x, ScalarType type);
  Value bitcast(Value x, ScalarType type);
  Value rounded(Value x, const ElementInfo &to);
  Value reinterpret(Value x, const ElementInfo &from, const ElementInfo &to);

private:
  /// The bits of an integer without those beyond its width.
  static uint64_t bitsOf(Value x) {
    auto bits = static_cast<uint64_t>(x.integer);
    unsigned width = widthOf(x.type);
    return width == 64 ? bits : bits & ((uint64_t(1) << width) - 1);
  }
};

} // namespace deepstride

#endif
