// The flavours of GELU, of which ScalarFunctions.h is made, too: activations are computed of every product of a layer,
// so that each is one exponential, and has the digits of its argument on both sides of zero.
#ifndef DEEPSTRIDE_DIALECTS_DS_GELUFUNCTIONS_H
#define DEEPSTRIDE_DIALECTS_DS_GELUFUNCTIONS_H

namespace deepstride {

/// What the normal distribution has beyond t >= 0, in f32: 2^q(t), 0 from t = 11.5 on. q is minimax for the logarithm,
/// weighted by t and the root of the result; the power of two is minimax on [-1/2, 1/2] (both by Lawson's iteration).
/// Greatest error of t times it 4e-8; relative 2e-6 up to t = 4, 1e-4 up to 6.
template <typename E> typename E::Value ScalarFunctions<E>::normalTail(Value t) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value q = polynomial(t, {-0x1.70b6a0p-26f, 0x1.65b486p-21f, -0x1.28c5cep-17f, 0x1.0ae192p-14f, -0x1.e9973ep-13f,
                           -0x1.a89b24p-14f, 0x1.cff0b4p-8f, -0x1.ae653ep-5f, -0x1.d634a0p-2f, -0x1.26af18p+0f,
                           -0x1.fffffcp-1f});
  q = e.select(lessThan(q, real(-127.0f)), real(-127.0f), q); // NaN stays
  Value magic = real(0x1.8p23f);                              // as in `reduce`
  Value shifted = e.add(q, magic), r = e.sub(q, e.sub(shifted, magic));
  Value power = polynomial(
      r, {0x1.41fbbcp-13f, 0x1.5f3e52p-10f, 0x1.3b2d4cp-7f, 0x1.c6aee8p-5f, 0x1.ebfbdcp-3f, 0x1.62e430p-1f, 1.0f});
  Value whole = e.sub(e.bitcast(shifted, ScalarType::i32), e.integer(ScalarType::i32, 0x4b400000));
  return e.mul(power, powerOfTwo(whole)); // that of -127 is 0
}

template <typename E> typename E::Value ScalarFunctions<E>::gelu(ds::GeluKind kind, Value x) {
  auto real = [&](double value) { return constant(x, value); };
  // x times the logistic function of z. What its exponential overflows to divides to 0.
  auto logistic = [&](Value minusZ) {
    return e.divide(x, e.add(real(1), e.function(ds::UnaryKind::exp, minusZ)), false);
  };
  switch (kind) {
  case ds::GeluKind::erf: {
    if (e.typeOf(x) == ScalarType::f64) {
      Value erf = e.function(ds::UnaryKind::erf, e.mul(x, real(0.70710678118654752440)));
      return e.mul(e.mul(x, real(0.5)), e.add(erf, real(1)));
    }
    Value most = real(std::numeric_limits<float>::max()); // infinity by 0 is NaN
    Value finite = e.select(lessThan(most, x), most, x);
    Value beyond = e.mul(finite, normalTail(e.function(ds::UnaryKind::abs, x)));
    return e.select(lessThan(real(0), x), e.sub(x, beyond), beyond);
  }
  case ds::GeluKind::tanh: // (1 + tanh z) / 2 is the logistic function of 2 z
    return logistic(e.mul(e.add(x, e.mul(e.mul(e.mul(x, x), x), real(0.044715))), real(-1.5957691216057307118)));
  case ds::GeluKind::quick: return logistic(e.mul(x, real(-1.702)));
  }
  llvm_unreachable("all kinds handled");
}

} // namespace deepstride

#endif
