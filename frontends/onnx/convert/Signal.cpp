// Signal processing: DFT and STFT as products with matrices of cosines and sines, and MelWeightMatrix. The matrices are
// computed, so that lengths may be symbolic.
#include "frontends/onnx/convert/PerAxis.h"
#include "frontends/onnx/convert/Registry.h"
#include "frontends/onnx/convert/RunTimeAxes.h"

#include <cmath>

using namespace mlir;

namespace deepstride::onnx {
using ds::BinaryKind;
using ds::UnaryKind;

constexpr double twoPi = 6.283185307179586;

static Value asInteger(DsBuilder &b, const SizeExpr &size) { return b.reshape(b.shape({size}), {}); }

namespace {
struct Spectrum {
  Value real, imaginary;
};
} // namespace

/// cos and sin of 2 pi j k / length for j < rows and k < columns. Whole turns are taken off in integers: exact for any
/// length. What is left are `length` angles.
static Spectrum rotations(DsBuilder &b, const SizeExpr &rows, const SizeExpr &columns, const SizeExpr &length,
                          Type type) {
  Value product = b.mul(b.iota(0, {rows, 1}), b.iota(1, {1, columns}));
  Value turns = b.binary(BinaryKind::mod, product, asInteger(b, length));
  Value angle = b.div(b.mul(b.cast(b.iota(0, {length}), b.f64()), twoPi), b.cast(asInteger(b, length), b.f64()));
  auto table = [&](UnaryKind function) { return b.gather(0, b.cast(b.unary(function, angle), type), turns); };
  return {table(UnaryKind::cos), table(UnaryKind::sin)};
}

namespace {
struct Transform {
  SizeExpr length;
  bool inverse, onesided;
};
} // namespace

/// The product of two complex numbers, as `product` makes it of real ones; a missing imaginary part is 0.
static Spectrum multiply(DsBuilder &b, const Spectrum &x, const Spectrum &y,
                         llvm::function_ref<Value(Value, Value)> product) {
  Spectrum result{product(x.real, y.real),
                  product(x.imaginary ? x.imaginary : x.real, x.imaginary ? y.real : y.imaginary)};
  if (x.imaginary && y.imaginary) {
    result.real = b.sub(result.real, product(x.imaginary, y.imaginary));
    result.imaginary = b.add(result.imaginary, product(x.real, y.imaginary));
  }
  return result;
}

/// The divisor of a length that is nearest below its root; 1 of primes.
static int64_t factorOf(int64_t length) {
  int64_t factor = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  while (factor > 1 && length % factor != 0)
    --factor;
  return std::max<int64_t>(factor, 1);
}

/// The transform of x [outer, inputs, inner] to [outer, outputs, inner]. A length of a known product a b takes a + b
/// operations per frequency: sums over places b apart, a rotation of each, and sums over those (Cooley and Tukey, "An
/// algorithm for the machine calculation of complex Fourier series", 1965). Others take as many as there are places.
static Spectrum frequencies(DsBuilder &b, const Spectrum &x, const Transform &t, const SizeExpr &outputs) {
  if (!x.real)
    return {};
  SizeVector sizes = b.sizes(x.real); // [outer, inputs, inner]
  Type type = b.element(x.real);
  auto turned = [&](Spectrum angles) { // minus for the forward transform
    if (!t.inverse)
      angles.imaginary = b.unary(UnaryKind::neg, angles.imaginary);
    return angles;
  };
  bool isFlat = sizes[2].isConstant(1);
  int64_t length = t.length.constant().value_or(0), factor = length ? factorOf(length) : 1, rest = length / factor;
  constexpr int64_t shortest = 32; // which one product does as fast
  auto reshaped = [&](const Spectrum &s, const SizeVector &shape) {
    return Spectrum{b.reshape(s.real, shape), s.imaginary ? b.reshape(s.imaginary, shape) : Value()};
  };
  auto swapped = [&](Value x, Value y) { return b.matmul(y, x); };
  auto inOrder = [&](Value x, Value y) { return b.matmul(x, y); };
  if (!isFlat || factor == 1 || length < shortest || sizes[1] != t.length) {
    if (!isFlat)
      return multiply(b, x, turned(rotations(b, outputs, sizes[1], t.length, type)), swapped);
    Spectrum rows = multiply(b, reshaped(x, {sizes[0], sizes[1]}),
                             turned(rotations(b, sizes[1], outputs, t.length, type)), inOrder);
    return reshaped(rows, {sizes[0], outputs, 1});
  }
  Spectrum sums =
      multiply(b, reshaped(x, {sizes[0], factor, rest}), turned(rotations(b, factor, factor, factor, type)), swapped);
  sums = multiply(b, sums, turned(rotations(b, factor, rest, length, type)),
                  [&](Value x, Value y) { return b.mul(x, y); });
  sums = multiply(b, reshaped(sums, {sizes[0] * SizeExpr(factor), rest}), turned(rotations(b, rest, rest, rest, type)),
                  inOrder);
  auto ordered = [&](Value part) { // frequency k1 + factor k2 stands at [k1, k2]
    part = b.transpose(b.reshape(part, {sizes[0], factor, rest}), {0, 2, 1});
    return b.slice(b.reshape(part, {sizes[0], length, 1}), SizeVector(3), {sizes[0], outputs, 1}, {1, 1, 1});
  };
  return {ordered(sums.real), ordered(sums.imaginary)};
}

/// The transform of x along an axis; the last axis of x holds the real and, if of size 2, the imaginary part.
static Value transform(Node &n, Value x, int64_t axis, const Transform &t) {
  if (!x)
    return {};
  DsBuilder &b = n.b;
  SizeVector sizes = b.sizes(x);
  int64_t rank = b.rank(x);
  bool isComplex = sizes.back().isConstant(2);
  if (!isComplex && !sizes.back().isConstant(1))
    return n.refuse("input 0: expected a last axis of size 1 (real) or 2 (complex), found " + describe(b.facts(x)));
  if (t.onesided && isComplex && !t.inverse)
    return n.refuse("attribute 'onesided': expected a real operand, found " + describe(b.facts(x)));
  bool fromHalf = t.inverse && t.onesided;
  SizeExpr half = SizeExpr::floorDiv(t.length, 2) + SizeExpr(1);
  SizeExpr inputs = fromHalf ? half : t.length, outputs = t.onesided && !t.inverse ? half : t.length;
  Type given = b.element(x), type = given.isF64() ? given : b.f32(); // rounded once
  // Cut or padded with zeros to the length of the transform.
  SizeVector none(rank), high(rank);
  high[axis] = inputs - sizes[axis];
  Value fitted = b.cast(b.pad(ds::PadKind::constant, x, b.scalar(given, 0), none, high), type);
  SizeExpr outer = product(ArrayRef(sizes).take_front(axis)),
           inner = product(ArrayRef(sizes).slice(axis + 1).drop_back());
  auto part = [&](int64_t which) { return b.reshape(b.sliceAxis(fitted, rank - 1, which, 1), {outer, inputs, inner}); };
  Spectrum places{part(0), isComplex ? part(1) : Value()};
  if (fromHalf) { // the missing half mirrors this one: all but the first and, of even lengths, the last count twice
    Value place = b.iota(0, {inputs}), mirrored = b.sub(asInteger(b, t.length), place);
    Value isPaired =
        b.binary(BinaryKind::bit_and, b.binary(BinaryKind::gt, place, 0.0), b.binary(BinaryKind::ne, mirrored, place));
    Value share = b.alignVector(b.select(isPaired, b.scalar(type, 2), b.scalar(type, 1)), 1, 3);
    places.real = b.mul(places.real, share);
    places.imaginary = places.imaginary ? b.mul(places.imaginary, share) : Value();
  }
  Spectrum result = frequencies(b, places, t, outputs);
  if (t.inverse) {
    Value count = b.cast(asInteger(b, t.length), type);
    result = {b.div(result.real, count), b.div(result.imaginary, count)};
  }
  SizeVector target = sizes;
  target[axis] = outputs;
  target.back() = 1;
  if (fromHalf)
    return b.cast(b.reshape(result.real, target), given);
  Value halves[] = {b.reshape(result.real, target), b.reshape(result.imaginary, target)};
  return halves[0] && halves[1] ? b.cast(b.concat(rank - 1, halves), given) : Value();
}

static Values convertDft(Node &n) {
  DsBuilder &b = n.b;
  constexpr int64_t axisIsInput = 20;
  if (!n.requireFloat(0) || !n.requireRank(0, 2))
    return {};
  SizeVector listed = {n.version() < axisIsInput ? n.integer("axis", 1) : -2};
  if (n.version() >= axisIsInput && n.has(2)) {
    auto given = n.sizeOf(2, "axis");
    if (!given)
      return {};
    listed = {*given};
  }
  SizeVector sizes = b.sizes(n.in(0)), before(sizes.begin(), sizes.end() - 1);
  int64_t rank = static_cast<int64_t>(sizes.size());
  auto axes = normalizedAxes(n, listed, rank);
  if (!axes)
    return {};
  SizeExpr axis = axes->front();
  if (axis.isConstant(rank - 1))
    return n.refuse("expected an axis before the last one, which holds the parts of the numbers; found " +
                    listed.front().str());
  SizeVector split = splitAround(before, axis); // the axis may be known only when the model runs
  split.push_back(sizes.back());
  Transform t{split[1], n.flag("inverse", false), n.flag("onesided", false)};
  if (t.inverse && t.onesided)
    t.length = (t.length - SizeExpr(1)) * SizeExpr(2);
  if (n.has(1)) {
    auto length = anySizeOf(n, 1, "dft_length");
    if (!length)
      return {};
    t.length = *length;
  }
  Value result = transform(n, b.reshape(n.in(0), split), 1, t);
  if (!result)
    return {};
  SizeVector target = withSize(before, axis, b.sizes(result)[1]);
  target.push_back(b.sizes(result).back());
  return {b.reshape(result, target)};
}

static Values convertStft(Node &n) {
  DsBuilder &b = n.b;
  if (!n.requireFloat(0) || !n.requireRank(0, 2, 3))
    return {};
  auto step = anySizeOf(n, 1, "frame_step");
  if (!step)
    return {};
  Value signal = b.rank(n.in(0)) == 2 ? b.insertAxis(n.in(0), 2) : n.in(0), window = n.in(2);
  SizeVector sizes = b.sizes(signal);
  std::optional<SizeExpr> length;
  if (n.has(3))
    length = anySizeOf(n, 3, "frame_length");
  else if (window && n.requireRank(2, 1, 1))
    length = b.sizes(window)[0];
  else
    return n.refuse("expected input 2 ('window') or input 3 ('frame_length'), found neither");
  if (!length || (window && !requireVector(n, 2, {*length, "place of a frame"})))
    return {};
  SizeExpr frames = SizeExpr::floorDiv(sizes[1] - *length, *step) + SizeExpr(1);
  Value start = b.mul(b.iota(0, {frames, 1}), asInteger(b, *step));
  Value place = b.add(start, b.iota(1, {1, *length}));
  Value framed = b.gather(1, signal, place); // [batch, frames, length, parts]
  if (window)
    framed = b.mul(framed, b.alignVector(b.cast(window, b.element(signal)), 2, 4));
  return {framed ? transform(n, framed, 2, {*length, false, n.flag("onesided", true)}) : Value()};
}

/// Triangles over the bins of a spectrum, evenly spaced on the mel scale.
static Values convertMelWeights(Node &n) {
  DsBuilder &b = n.b;
  Type type = n.elementType(n.integer("output_datatype", 1));
  auto bands = anySizeOf(n, 0, "num_mel_bins"), length = anySizeOf(n, 1, "dft_length");
  if (!type || !bands || !length)
    return {};
  auto scalar = [&](unsigned input) { return b.cast(b.reshape(n.in(input), {}), b.f64()); };
  constexpr double scale = 2595, corner = 700;
  const double perDecade = scale / std::log(10.0);
  auto toMel = [&](Value hertz) { return b.mul(b.unary(UnaryKind::log, b.add(b.div(hertz, corner), 1.0)), perDecade); };
  Value low = toMel(scalar(3)), high = toMel(scalar(4));
  Value edges = b.cast(asInteger(b, *bands + SizeExpr(2)), b.f64()),
        edge = b.cast(b.iota(0, {*bands + SizeExpr(2)}), b.f64());
  Value mel = b.add(b.mul(edge, b.div(b.sub(high, low), edges)), low);
  Value hertz = b.mul(b.sub(b.unary(UnaryKind::exp, b.div(mel, perDecade)), 1.0), corner);
  Value points = b.cast(asInteger(b, *length + SizeExpr(1)), b.f64());
  Value bin = b.unary(UnaryKind::floor, b.div(b.mul(hertz, points), scalar(2)));
  auto column = [&](int64_t offset) { return b.alignVector(b.sliceAxis(bin, 0, offset, *bands), 1, 2); };
  Value lower = column(0), centre = column(1), upper = column(2);
  SizeExpr bins = SizeExpr::floorDiv(*length, 2) + SizeExpr(1);
  Value place = b.cast(b.iota(0, {bins, 1}), b.f64()), zero = b.scalar(b.f64(), 0), one = b.scalar(b.f64(), 1);
  auto both = [&](BinaryKind first, Value bound, BinaryKind second, Value limit) {
    return b.binary(BinaryKind::bit_and, b.binary(first, place, bound), b.binary(second, place, limit));
  };
  Value rise = b.sub(centre, lower), isSteep = b.binary(BinaryKind::le, rise, 0.0);
  Value rising = b.select(isSteep, one, b.div(b.sub(place, lower), b.select(isSteep, one, rise)));
  Value fall = b.binary(BinaryKind::max, b.sub(upper, centre), 1.0);
  Value falling = b.div(b.sub(upper, place), fall);
  Value weights = b.select(both(BinaryKind::ge, lower, BinaryKind::le, centre), rising, zero);
  weights = b.select(both(BinaryKind::ge, centre, BinaryKind::lt, upper), falling, weights);
  return {b.cast(weights, type)};
}

void addSignal(PatternRegistry &registry) {
  registry.add("DFT", 17, 1, convertDft);
  registry.add("STFT", 17, 2, convertStft);
  registry.add("MelWeightMatrix", 17, 5, convertMelWeights);
}

} // namespace deepstride::onnx
