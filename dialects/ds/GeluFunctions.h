// The flavours of GELU, of which ScalarFunctions.h is made, too: activations are computed of every product of a layer,
// so that each is one exponential, and has the digits of its argument on both sides of zero.
#ifndef DEEPSTRIDE_DIALECTS_DS_GELUFUNCTIONS_H
#define DEEPSTRIDE_DIALECTS_DS_GELUFUNCTIONS_H

namespace deepstride {

/// 2^q(x), 0 from x = 8.2 on. q is minimax for the logarithm, weighted by x and the root of the result
/// (by Lawson's iteration).
template <typename E> typename E::Value ScalarFunctions<E>::erfcOfSize(Value x) {
  auto real = [&](float value) { return e.real(ScalarType::f32, value); };
  Value q = polynomial(x, {-0x1.6f5b28p-21f, 0x1.f83c72p-17f, -0x1.27f088p-13f, 0x1.787d34p-11f, -0x1.e84fdep-10f,
                           -0x1.3098b4p-11f, 0x1.d0157cp-6f, -0x1.3058c8p-3f, -0x1.d63462p-1f, -0x1.a0bf02p+0f,
                           0x1.eb6906p-24f});
  q = e.select(lessThan(q, real(-127.0f)), real(-127.0f), q); // NaN stays
  Value magic = real(0x1.8p23f);                              // as in `reduce`
  Value shifted = e.add(q, magic), r = e.sub(q, e.sub(shifted, magic));
  return e.mul(polynomial(r, powerCoefficients), shiftedPowerOfTwo(shifted)); // that of -127 is 0
}

/// In f32, by what the normal distribution has beyond |x|: the greatest error below 0 is 5e-8, a relative one of 2e-6
/// down to -4 and of 1e-4 down to -6; above 0 a relative one of 3e-7. With tanh the error is that of the exponential's
/// argument.
template <typename E> typename E::Value ScalarFunctions<E>::gelu(ds::GeluKind kind, Value x) {
  auto real = [&](double value) { return constant(x, value); };
  // x times the logistic function of z. What its exponential overflows to divides to 0.
  auto logistic = [&](Value minusZ) {
    return e.divide(x, e.add(real(1), e.function(ds::UnaryKind::exp, minusZ)), false);
  };
  switch (kind) {
  case ds::GeluKind::erf: {
    Value most = real(std::numeric_limits<float>::max()); // infinity by 0 is NaN
    Value half = e.mul(e.select(lessThan(most, x), most, x), real(0.5));
    Value size = e.mul(e.function(ds::UnaryKind::abs, x), real(0.70710678118654752440));
    Value beyond = e.mul(half, e.erfcOfSize(size));
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
