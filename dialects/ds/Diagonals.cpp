// Finds the band of diagonals in a matrix of two numbers.
#include "dialects/ds/Diagonals.h"

#include "mlir/IR/Builders.h"

#include <cmath>

using namespace mlir;

namespace deepstride::ds {

/// The band, if the elements that are `inside` fill one, and all others are `outside`.
static std::optional<Diagonals> findBand(int64_t rows, int64_t columns, double inside, double outside,
                                         llvm::function_ref<double(int64_t)> element) {
  int64_t lower = columns, upper = -rows;
  for (int64_t i = 0; i < rows * columns; ++i)
    if (element(i) == inside) {
      lower = std::min(lower, i % columns - i / columns);
      upper = std::max(upper, i % columns - i / columns);
    }
  for (int64_t i = 0; i < rows * columns; ++i) {
    int64_t distance = i % columns - i / columns;
    if (element(i) != (distance >= lower && distance <= upper ? inside : outside))
      return std::nullopt;
  }
  Diagonals found{rows, columns, std::nullopt, std::nullopt, inside, outside};
  if (lower > 1 - rows)
    found.lower = lower;
  if (upper < columns - 1)
    found.upper = upper;
  return found;
}

std::optional<Diagonals> findDiagonals(RankedTensorType type, llvm::function_ref<double(int64_t)> element) {
  if (!type.hasStaticShape() || type.getRank() < 2)
    return std::nullopt;
  int64_t rows = type.getDimSize(type.getRank() - 2), columns = type.getShape().back();
  if (rows * columns != type.getNumElements() || rows < 2 || columns < 2)
    return std::nullopt;
  double first = element(0);
  std::optional<double> second;
  for (int64_t i = 0; i < rows * columns; ++i) {
    double number = element(i);
    if (std::isnan(number) || (number != first && second && number != *second))
      return std::nullopt;
    if (number != first)
      second = number;
  }
  if (!second)
    return std::nullopt;
  auto found = findBand(rows, columns, first, *second, element);
  return found ? found : findBand(rows, columns, *second, first, element);
}

Attribute toAttribute(MLIRContext *context, const Diagonals &diagonals) {
  Builder b(context);
  NamedAttrList list;
  list.set("rows", b.getI64IntegerAttr(diagonals.rows));
  list.set("columns", b.getI64IntegerAttr(diagonals.columns));
  list.set("inside", b.getF64FloatAttr(diagonals.inside));
  list.set("outside", b.getF64FloatAttr(diagonals.outside));
  if (diagonals.lower)
    list.set("lower", b.getI64IntegerAttr(*diagonals.lower));
  if (diagonals.upper)
    list.set("upper", b.getI64IntegerAttr(*diagonals.upper));
  return list.getDictionary(context);
}

std::optional<Diagonals> diagonalsFrom(Attribute attribute) {
  auto list = dyn_cast_if_present<DictionaryAttr>(attribute);
  if (!list)
    return std::nullopt;
  auto number = [&](StringRef name) {
    auto value = list.getAs<IntegerAttr>(name);
    return value ? std::optional(value.getInt()) : std::nullopt;
  };
  auto rows = number("rows"), columns = number("columns");
  auto inside = list.getAs<FloatAttr>("inside"), outside = list.getAs<FloatAttr>("outside");
  if (!rows || !columns || !inside || !outside)
    return std::nullopt;
  return Diagonals{
      *rows, *columns, number("lower"), number("upper"), inside.getValueAsDouble(), outside.getValueAsDouble()};
}

} // namespace deepstride::ds
