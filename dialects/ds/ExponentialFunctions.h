// Exponentials and what is made of one, of which ScalarFunctions.h is made, too: attention, gates and activations spend
// most of their time here.
#ifndef DEEPSTRIDE_DIALECTS_DS_EXPONENTIALFUNCTIONS_H
#define DEEPSTRIDE_DIALECTS_DS_EXPONENTIALFUNCTIONS_H

namespace deepstride {

// Cody and Waite. Selects by comparison keep NaN; nothing is converted to integers, which NaN could not.
template <typename E>
typename ScalarFunctions<E>::Reduced ScalarFunctions<E>::reduce(Value x, float least, float greatest) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  x = e.select(lessThan(x, real(least)), real(least), x);
  x = e.select(lessThan(real(greatest), x), real(greatest), x);
  Value magic = real(0x1.8p23f); // adding it rounds to an integer, which then fills the low bits
  Value shifted = e.fma(x, real(0x1.715476p+0f), magic);
  Value n = e.sub(shifted, magic);
  Value high = e.fma(n, real(-0x1.62e400p-1f), x);
  Value rest = e.fma(n, real(lowLog2), high);
  Value whole = e.sub(e.bitcast(shifted, ScalarType::i32), e.integer(ScalarType::i32, 0x4b400000));
  return {whole, n, high, rest};
}

// 2^n is applied in two factors, so that results may be subnormal.
template <typename E> typename E::Value ScalarFunctions<E>::exp(Value x) {
  Reduced reduced = reduce(x, -104.0f, 89.0f);
  Value r = reduced.rest;
  Value y = e.add(e.fma(exponentialTail(r), e.mul(r, r), r), e.real(ScalarType::f32, 1.0f));
  Value half = e.shiftRightSigned(reduced.whole, e.integer(ScalarType::i32, 1));
  Value rest = e.sub(reduced.whole, half);
  return e.mul(e.mul(y, powerOfTwo(half)), powerOfTwo(rest));
}

// The argument in the range of normal results, n and what is left of x as in `reduce`.
template <typename E> typename ScalarFunctions<E>::Power ScalarFunctions<E>::powerOf(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value magic = real(0x1.8p23f);
  Value shifted = e.fma(x, real(0x1.715476p+0f), magic), n = e.sub(shifted, magic);
  Value r = e.fma(n, real(lowLog2), e.fma(n, real(-0x1.62e400p-1f), x));
  return {e.fma(e.fma(exponentialTail(r), r, real(1.0f)), r, real(1.0f)), shifted};
}

// e^-87 is 1.6e-38, the least normal number 1.2e-38: one power of two will do. What is computed below is not used.
template <typename E> typename E::Value ScalarFunctions<E>::expOfNonpositive(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Power power = powerOf(x);
  Value y = e.mul(power.mantissa, shiftedPowerOfTwo(power.shifted));
  return e.select(lessThan(x, real(-87.0f)), real(0.0f), y); // NaN stays
}

// A power of two that is 2^24 times too great is normal, so that the one product that may be subnormal is the last.
template <typename E> typename E::Value ScalarFunctions<E>::gradualExpOfNonpositive(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Power power = powerOf(e.select(lessThan(x, real(-104.0f)), real(-104.0f), x)); // e^-104 rounds to 0
  return e.mul(e.mul(power.mantissa, shiftedPowerOfTwo(power.shifted, 24)), real(0x1p-24f));
}

// 2^n (r + tail) + (2^n - 1), where 2^n r and 2^n - 1 meet first: what they cancel is exact. The tail takes up what r
// lost when it was rounded. Halves of all that, so that 2^128 is none of the factors. A zero keeps its sign.
template <typename E> typename E::Value ScalarFunctions<E>::expm1(Value x) {
  Reduced reduced = reduce(x, -18.0f, 89.0f);
  Value r = reduced.rest;
  Value lost = e.fma(reduced.n, e.real(ScalarType::f32, lowLog2), e.sub(reduced.high, r));
  Value tail = e.fma(exponentialTail(r), e.mul(r, r), lost);
  Value half = powerOfTwo(e.sub(reduced.whole, e.integer(ScalarType::i32, 1)));
  Value y = e.fma(half, tail, e.fma(half, r, e.sub(half, e.real(ScalarType::f32, 0.5f))));
  return e.copySign(e.add(y, y), x);
}

// An odd polynomial (Cephes) where 1 - 2 / (e^2|x| + 1) would cancel. From 9.02 on that rounds to 1. What the power of
// two is off by counts less the greater it is, so that its argument needs no second part. Its polynomial is added up by
// halves (Estrin): one element's chain takes longer than its operations do.
template <typename E> typename E::Value ScalarFunctions<E>::tanh(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value magnitude = e.function(ds::UnaryKind::abs, x), square = e.mul(x, x);
  Value p = polynomial(
      square, {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f});
  Value near = e.fma(e.mul(p, square), x, x);
  Value bounded = e.select(lessThan(real(9.02f), magnitude), real(9.02f), magnitude); // NaN stays
  Value magic = real(0x1.8p23f), twoLog2E = real(0x1.715476p+1f);
  Value shifted = e.fma(bounded, twoLog2E, magic), r = e.fma(bounded, twoLog2E, e.sub(magic, shifted));
  const float *c = powerCoefficients;
  auto linear = [&](int power) { return e.fma(real(c[5 - power]), r, real(c[6 - power])); };
  Value rSquare = e.mul(r, r), sixth = e.fma(real(c[0]), rSquare, linear(4));
  Value mantissa = e.fma(e.fma(sixth, rSquare, linear(2)), rSquare, linear(0));
  Value sum = e.fma(mantissa, shiftedPowerOfTwo(shifted), real(1.0f));
  Value far = e.sub(real(1.0f), e.divide(real(2.0f), sum, false));
  return e.copySign(e.select(lessThan(magnitude, real(0.65f)), near, far), x); // of zeros
}

// By the exponential of -|x|: that of |x| overflows where the result is still a number.
template <typename E> typename E::Value ScalarFunctions<E>::sigmoid(Value x) {
  Value one = constant(x, 1), power = e.gradualExpOfNonpositive(e.negate(e.function(ds::UnaryKind::abs, x)));
  return e.divide(e.select(lessThan(x, constant(x, 0)), power, one), e.add(one, power), false);
}

} // namespace deepstride

#endif
