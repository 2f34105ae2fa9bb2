// Sine, cosine and their inverses of f32, of which ScalarFunctions.h is made, too. Polynomials are minimax, fitted for
// these ranges (Lawson's iteration), their coefficients rounded one after the other.
#ifndef DEEPSTRIDE_DIALECTS_DS_CIRCULARFUNCTIONS_H
#define DEEPSTRIDE_DIALECTS_DS_CIRCULARFUNCTIONS_H

namespace deepstride {

// Quarter turns are taken off in three parts (Cody and Waite, "Software Manual for the Elementary Functions", 1980) as
// long as their number times the first part is exact to the last digit of x. Beyond, and of NaN, libm's function is
// called, which reduces by as many digits of pi as it takes.
template <typename E> typename E::Value ScalarFunctions<E>::sineOrCosine(ds::UnaryKind kind, Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  auto whole = [&](int64_t value) { return e.integer(ScalarType::i32, value); };
  Value magic = real(0x1.8p23f); // as in `reduce`
  Value shifted = e.fma(x, real(0x1.45f306p-1f), magic), turns = e.sub(shifted, magic);
  Value r = e.fma(turns, real(-0x1.921fb6p+0f), x);
  r = e.fma(turns, real(0x1.777a5cp-25f), r);
  r = e.fma(turns, real(0x1.ee59dap-50f), r);
  Value square = e.mul(r, r);
  Value sine = polynomial(square, {0x1.7bf19cp-19f, -0x1.a058e4p-13f, 0x1.111174p-7f, -0x1.555556p-3f});
  sine = e.fma(e.mul(r, square), sine, r);
  Value cosine = polynomial(square, {-0x1.35e182p-22f, 0x1.a07150p-16f, -0x1.6c175ep-10f, 0x1.555556p-5f, -0.5f, 1.0f});
  Value quarter = e.bitcast(shifted, ScalarType::i32);
  if (kind == ds::UnaryKind::cos)
    quarter = e.add(quarter, whole(1));
  Value isSine = e.compare(Compare::eq, e.bitAnd(quarter, whole(1)), whole(0), false);
  Value bits = e.bitcast(e.select(isSine, sine, cosine), ScalarType::i32);
  bits = e.bitXor(bits, e.shiftLeft(e.bitAnd(quarter, whole(2)), whole(30)));
  Value result = e.bitcast(bits, ScalarType::f32);
  if (kind == ds::UnaryKind::sin) // a zero keeps its sign
    result = e.select(equals(x, real(0.0f)), x, result);
  Value isNear = e.compare(Compare::le, e.function(ds::UnaryKind::abs, x), real(0x1p16f), false);
  return e.libmUnless(isNear, result, kind, x);
}

template <typename E> typename E::Value ScalarFunctions<E>::sin(Value x) { return sineOrCosine(ds::UnaryKind::sin, x); }
template <typename E> typename E::Value ScalarFunctions<E>::cos(Value x) { return sineOrCosine(ds::UnaryKind::cos, x); }

// Beyond 1 by the inverse: pi / 2 - atan(1 / x).
template <typename E> typename E::Value ScalarFunctions<E>::atan(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value magnitude = e.function(ds::UnaryKind::abs, x), one = real(1.0f), isFar = lessThan(one, magnitude);
  Value t = e.divide(e.select(isFar, one, magnitude), e.select(isFar, magnitude, one), false), square = e.mul(t, t);
  Value p = polynomial(square, {-0x1.dcbfd2p-10f, 0x1.6963e8p-7f, -0x1.012e58p-5f, 0x1.dc97d8p-5f, -0x1.58bcecp-4f,
                                0x1.c0c8e0p-4f, -0x1.24262ap-3f, 0x1.999266p-3f, -0x1.555540p-2f});
  Value near = e.fma(e.mul(t, square), p, t);
  Value far = e.sub(real(halfPi), e.add(near, real(-lowHalfPi)));
  return e.copySign(e.select(isFar, far, near), x);
}

/// asin |x|, where that is not far; else that of sqrt((1 - |x|) / 2), of which both inverses take twice, NaN beyond 1.
/// Far is what exceeds 9/16: from there on twice the angle has no digit less than pi / 2 minus it.
template <typename E> typename E::Value ScalarFunctions<E>::halvedArcsine(Value magnitude, Value isFar) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value square = e.select(isFar, e.fma(magnitude, real(-0.5f), real(0.5f)), e.mul(magnitude, magnitude));
  Value t = e.select(isFar, e.function(ds::UnaryKind::sqrt, square), magnitude);
  Value p = polynomial(
      square, {0x1.8650a8p-5f, 0x1.afe706p-8f, 0x1.170e12p-5f, 0x1.6a4786p-5f, 0x1.3349d8p-4f, 0x1.555524p-3f});
  return e.fma(e.mul(t, square), p, t);
}

template <typename E> typename E::Value ScalarFunctions<E>::asin(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value magnitude = e.function(ds::UnaryKind::abs, x), isFar = lessThan(real(0.5625f), magnitude);
  Value angle = halvedArcsine(magnitude, isFar);
  Value far = e.sub(real(halfPi), e.fma(angle, real(2.0f), real(-lowHalfPi)));
  return e.copySign(e.select(isFar, far, angle), x);
}

template <typename E> typename E::Value ScalarFunctions<E>::acos(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value magnitude = e.function(ds::UnaryKind::abs, x), isFar = lessThan(real(0.5625f), magnitude);
  Value angle = halvedArcsine(magnitude, isFar), twice = e.add(angle, angle);
  Value near = e.sub(real(halfPi), e.add(e.copySign(angle, x), real(-lowHalfPi)));
  Value left = e.sub(real(2 * halfPi), e.add(twice, real(-2 * lowHalfPi)));
  Value far = e.select(lessThan(x, real(0.0f)), left, twice);
  return e.select(isFar, far, near);
}

} // namespace deepstride

#endif
