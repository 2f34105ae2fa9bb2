#include "passes/optimization/ProductCosts.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace deepstride {

using ds::ProductKernel;

std::optional<Machine> Machine::parse(StringRef text, std::string &error) {
  Machine result;
  auto fail = [&](const Twine &what) {
    error = ("machine '" + text + "': " + what).str();
    return std::nullopt;
  };
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  if (parts.front().getAsInteger(10, result.vectorBits) ||
      !llvm::is_contained({128, 256, 512, 1024}, result.vectorBits))
    return fail("expected 128, 256, 512 or 1024 bits of a vector, found '" + parts.front() + "'");
  SmallVector<StringRef> named;
  for (const ds::ProductKernelRow &row : ds::productKernels())
    if (row.isNamed())
      named.push_back(ds::stringifyProductKernel(row.kernel));
    else if (row.needs == ds::KernelNeeds::nothing ||
             (row.needs == ds::KernelNeeds::wordPairs && result.vectorBits <= 512))
      result.rates[row.kernel] = row.rate;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [name, number] = part.split('=');
    auto kernel = ds::symbolizeProductKernel(name);
    if (!kernel || !ds::rowOf(*kernel).isNamed())
      return fail("expected one of " + llvm::join(named, ", ") + ", found '" + name + "'");
    double rate = ds::rowOf(*kernel).rate;
    if (!number.empty() && (number.getAsDouble(rate) || !(rate > 0)))
      return fail("expected a positive rate, found '" + number + "'");
    result.rates[*kernel] = rate;
  }
  for (const ds::ProductKernelRow &row : ds::productKernels())
    if (auto found = result.rates.find(ProductKernel::byte_dot);
        row.needs == ds::KernelNeeds::byteDots && found != result.rates.end() && result.vectorBits >= 256)
      result.rates[row.kernel] = row.rate * found->second / ds::rowOf(ProductKernel::byte_dot).rate;
  return result;
}

/// Whether groups are whole steps that registers hold in not too many parts, no sum of bytes leaves 32 bits, and enough
/// columns meet a row to pay for its digits, about 0.9 cycles an element. Measured with 128 rows on a Zen 4, times of
/// codes as floats: 32, 48, 64 and 128 columns 0.91, 1.0, 1.05 and 1.15; in groups of 32 in 4 bits 0.97, 1.02, 1.09
/// and 1.22, in 8 bits 0.91, 0.95, 1.0 and 1.16.
static bool suitsDigits(const Machine &machine, const ProductShape &shape) {
  constexpr int64_t mostSteps = 1 << 15, fewestInSegment = 16;
  int64_t fewestColumns = shape.group > 0 && shape.types.right.isInteger(8) ? 64 : 48;
  if (shape.columns && *shape.columns < fewestColumns)
    return false;
  if (!shape.depth)
    return false;
  if (shape.group == 0)
    return *shape.depth <= mostSteps;
  int64_t interleave = ds::interleaveOf(ProductKernel::code_digits, shape.types.right);
  if (shape.group % interleave != 0)
    return false;
  int64_t segment = ds::digitSegment(shape.group, interleave, machine.vectorBits / 32);
  return segment == shape.group || segment >= fewestInSegment;
}

std::optional<ProductKernel> fastestKernel(const Machine &machine, const ProductShape &shape,
                                           SmallVectorImpl<ProductKernel> &others) {
  std::optional<ProductKernel> best;
  for (const auto &[kernel, rate] : machine.rates) {
    if (!ds::multiplies(kernel, shape.types, shape.isPacked))
      continue;
    // Codes less zero points are computed in f32.
    if (shape.hasZeroPoints && kernel == ProductKernel::bfloat_dot)
      continue;
    if (kernel == ProductKernel::code_digits && !suitsDigits(machine, shape))
      continue;
    // Types that another kernel was made for become wider first under this one.
    bool isGeneral = kernel == ProductKernel::multiply_add;
    if (best && (isGeneral || machine.rates.at(*best) >= rate) && *best != ProductKernel::multiply_add) {
      others.push_back(kernel);
      continue;
    }
    if (best)
      others.push_back(*best);
    best = kernel;
  }
  return best;
}

bool multipliesPairs(const Machine &machine) {
  auto found = machine.rates.find(ProductKernel::bfloat_dot);
  return found != machine.rates.end() && found->second > machine.rates.at(ProductKernel::multiply_add);
}

/// Time of a step of K for one vector of a tile of so many vectors, in units of its multiply-add: every step loads a
/// vector of each column and broadcasts an element of each row, so that narrow tiles are bound by loads. Measured with
/// f32 on 512 bits, shares of the FMA peak: 8 x 3 85 %, 14 x 2 81 %, 6 x 4 83 %, 24 x 1 62 %.
static constexpr double timePerVector[] = {1.37, 1.05, 1.0, 1.02};
static constexpr int64_t tallest[] = {16, 12, 8, 6}; // rows of sums that registers hold beside a row of the panel

/// Three sums for each, of rows that share what is taken apart of a panel. One vector of them has too few chains for
/// one row, which takes 1.7 times as long for each vector; eight rows 1.04 times.
static Tile digitsTile(const ProductShape &shape, int64_t lanes, bool isWide) {
  constexpr double timeOfOne = 1.3;
  bool isNarrow = false;
  if (shape.columns && *shape.columns > 0) {
    auto vectors = [&](int64_t each) {
      return static_cast<double>(llvm::divideCeil(*shape.columns, each * lanes) * each);
    };
    isNarrow = vectors(1) * timeOfOne < vectors(2);
  }
  return isNarrow ? Tile{isWide ? 8 : 4, lanes} : Tile{isWide ? 4 : 2, 2 * lanes};
}

Tile fastestTile(const Machine &machine, ProductKernel kernel, const ProductShape &shape) {
  int64_t lanes = machine.vectorBits / static_cast<int64_t>(ds::sumBits(shape.types.result));
  // With half the registers, a tile of two vectors and six rows fills them.
  bool isWide = machine.registers() == 32;
  int64_t usual = isWide ? 3 : 2;
  bool isSquares = ds::usesSquares(kernel);
  if (kernel == ProductKernel::code_digits)
    return digitsTile(shape, lanes, isWide);
  auto tileOf = [&](int64_t vectors) {
    if (isSquares) // two rows of squares
      return Tile{32, vectors * lanes};
    int64_t rows = isWide ? tallest[vectors - 1] : (machine.registers() - 1 - vectors) / vectors;
    return Tile{std::min<int64_t>(rows, 16), vectors * lanes};
  };
  if (!shape.columns || *shape.columns <= 0)
    return tileOf(usual);
  int64_t best = usual;
  auto timeOf = [&](int64_t panels, int64_t vectors) {
    if (panels == 0 || vectors == 0)
      return 0.0;
    double each = isWide ? ArrayRef(timePerVector)[vectors - 1] : vectors == 1 ? 1.1 : 1;
    return static_cast<double>(panels * vectors) * each;
  };
  int64_t all = (*shape.columns + lanes - 1) / lanes;
  auto time = [&](int64_t vectors) {
    int64_t panels = (all + vectors - 1) / vectors, narrow = all / panels, wider = all % panels;
    return shape.sharesColumns ? timeOf(panels - wider, narrow) + timeOf(wider, narrow + 1) : timeOf(panels, vectors);
  };
  if (shape.sharesColumns && time(1) <= time(best)) // of panels that come out alike, the narrowest
    best = 1;
  for (int64_t vectors = 1; vectors <= usual + (isWide && !isSquares ? 1 : 0); ++vectors)
    if (time(vectors) < time(best))
      best = vectors;
  return tileOf(best);
}

} // namespace deepstride
