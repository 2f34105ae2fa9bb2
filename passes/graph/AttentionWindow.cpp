// Takes a mask apart: conditions into what is joined by "and", numbers into two that a condition chooses between,
// stored triangles into a band of diagonals. Whatever is not understood stays a condition of its own.
#include "passes/graph/AttentionWindow.h"

#include "dialects/ds/Diagonals.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace deepstride {

/// A stored array cut to rows from `row` and columns from `column` on.
struct MaskReader::Table {
  ds::Diagonals elements;
  SizeExpr row, column;
};

static double roundTo(Type element, double value) {
  if (auto type = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool losesInfo;
    number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  }
  // Integers wrap, and doubles hold whole numbers up to 2^53 only.
  double most = element.isInteger(64) ? 0x1p52 : 0x1p31;
  return value >= -most && value < most ? value : std::numeric_limits<double>::quiet_NaN();
}

static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// Types whose arithmetic on small whole numbers is that of double.
static bool isPlain(Type element) {
  return isa<FloatType>(element) ? element.getIntOrFloatBitWidth() >= 16
                                 : element.isSignlessInteger(32) || element.isSignlessInteger(64);
}

/// A number as another type holds it; NaN where it does not.
static double castNumber(double number, Type to) {
  bool fits = isa<FloatType>(to) || (std::trunc(number) == number && std::abs(number) < 1e9);
  return fits ? roundTo(to, number) : std::numeric_limits<double>::quiet_NaN();
}

/// The recipe of a weight; null for other values.
static ds::RecipeOp recipeOf(Value value) {
  auto weight = value.getDefiningOp<ds::WeightOp>();
  return weight ? SymbolTable::lookupNearestSymbolFrom<ds::RecipeOp>(weight, weight.getRecipeAttr()) : ds::RecipeOp();
}

/// The ops of a recipe have static shapes, which the analysis of a function does not know.
static SizeVector shapeOf(Value value, const SizeAnalysis &sizes) {
  const TensorFacts *facts = sizes.lookup(value);
  return facts ? facts->sizes : factsOfType(value.getType(), "?").sizes;
}

/// Whether the last two axes of a value are those of its operand, and only they have places.
static bool keepsPlaces(Operation *op, const SizeAnalysis &sizes) {
  SizeVector from = shapeOf(op->getOperand(0), sizes), to = shapeOf(op->getResult(0), sizes);
  if (from.size() < 2 || to.size() < 2 || ArrayRef(from).take_back(2) != ArrayRef(to).take_back(2))
    return false;
  auto isOne = [](const SizeExpr &size) { return size.isConstant(1); };
  return isa<ds::BroadcastOp>(op) ||
         (llvm::all_of(ArrayRef(from).drop_back(2), isOne) && llvm::all_of(ArrayRef(to).drop_back(2), isOne));
}

bool MaskReader::isWhole(Value value) {
  SizeVector shape = shapeOf(value, sizes);
  return shape.size() >= 2 && shape.back() == columns && shape[shape.size() - 2] == rows;
}

bool intersect(SeenPlaces &places, const Band &band, std::optional<int64_t> capacity) {
  auto closer = [](std::optional<SizeExpr> &bound, const std::optional<SizeExpr> &other, bool isUpper) {
    if (!bound || !other) {
      bound = other ? other : bound;
      return true;
    }
    auto difference = (*other - *bound).constant();
    if (difference && (isUpper ? *difference < 0 : *difference > 0))
      bound = other;
    return difference.has_value();
  };
  if (places.band && band && places.band.positions != band.positions)
    return false;
  Band both = places.band ? places.band : band;
  if (!closer(both.lower, band.lower, false) || !closer(both.upper, band.upper, true))
    return false;
  places.band = both;
  if (capacity)
    places.capacity = places.capacity ? std::min(*places.capacity, *capacity) : *capacity;
  return true;
}

SeenPlaces MaskReader::seen(Value condition, bool negated) {
  SeenPlaces places;
  collect(condition, negated, places);
  return places;
}

void MaskReader::collect(Value condition, bool negated, SeenPlaces &places) {
  Operation *op = condition.getDefiningOp();
  if (steps-- > 0 && op) {
    if (ds::UnaryOp negation = unaryOf(condition, ds::UnaryKind::logical_not))
      return collect(negation.getInput(), !negated, places);
    auto binary = dyn_cast<ds::BinaryOp>(op);
    if (binary && elementOf(binary.getLhs()).isInteger(1) &&
        binary.getKind() == (negated ? ds::BinaryKind::bit_or : ds::BinaryKind::bit_and)) {
      collect(binary.getLhs(), negated, places);
      return collect(binary.getRhs(), negated, places);
    }
    if (isa<ds::BroadcastOp, ds::ReshapeOp>(op) && keepsPlaces(op, sizes))
      return collect(op->getOperand(0), negated, places);
    if (binary && collectComparison(binary, negated, places))
      return;
    if (auto cast = dyn_cast<ds::CastOp>(op))
      if (auto two = numbers(cast.getInput()))
        if (collectNumbers(*two, (two->yes != 0) != negated, (two->no != 0) != negated, places))
          return;
    if (auto recipe = recipeOf(condition)) {
      // Conditions inside of the recipe are no values of the program.
      SeenPlaces stored = seen(recipe.getYielded(), negated);
      if (stored.others.empty() && intersect(places, stored.band, stored.capacity))
        return;
    }
    if (isa<ds::SelectOp, ds::ConstantOp, ds::SourceOp, ds::SliceOp>(op))
      if (auto two = numbers(condition))
        if (collectNumbers(*two, (two->yes != 0) != negated, (two->no != 0) != negated, places))
          return;
  }
  places.others.push_back({condition, negated});
}

/// A comparison of positions, or of one of two numbers with a third.
bool MaskReader::collectComparison(ds::BinaryOp op, bool negated, SeenPlaces &places) {
  if (sizes.lookup(op.getResult()) && isWhole(op.getResult())) // recipes count nothing
    if (auto band = bandOf(op, negated, sizes); band && intersect(places, *band))
      return true;
  for (bool isLeft : {true, false}) {
    Value varied = isLeft ? op.getLhs() : op.getRhs();
    auto number = uniformOf(isLeft ? op.getRhs() : op.getLhs());
    auto two = number && isPlain(elementOf(varied)) ? numbers(varied) : std::nullopt;
    if (!two)
      continue;
    auto holds = [&](double x) -> std::optional<bool> {
      double a = isLeft ? x : *number, b = isLeft ? *number : x;
      switch (op.getKind()) {
      case ds::BinaryKind::eq: return a == b;
      case ds::BinaryKind::ne: return a != b;
      case ds::BinaryKind::lt: return a < b;
      case ds::BinaryKind::le: return a <= b;
      case ds::BinaryKind::gt: return a > b;
      case ds::BinaryKind::ge: return a >= b;
      default: return std::nullopt;
      }
    };
    auto yes = holds(two->yes), no = holds(two->no);
    if (yes && no && collectNumbers(*two, *yes != negated, *no != negated, places))
      return true;
  }
  return false;
}

/// Adds where one of the two numbers stands, as far as that is one band and conditions beside it.
bool MaskReader::collectNumbers(const TwoNumbers &two, bool holdsForYes, bool holdsForNo, SeenPlaces &places) {
  if (holdsForYes == holdsForNo)
    return false;
  SeenPlaces where = two.where;
  if (holdsForNo) {
    // The opposite of one bound is a bound; that of more is no band.
    bool isCondition = where.others.size() == 1 && !where.band;
    bool isBound = where.others.empty() && bool(where.band.lower) != bool(where.band.upper);
    if (isCondition) {
      Literal other = where.others.pop_back_val();
      collect(other.value, !other.negated, where);
    } else if (isBound) {
      Band band = where.band;
      where.band = band.lower ? Band{std::nullopt, *band.lower - SizeExpr(1), band.positions}
                              : Band{*band.upper + SizeExpr(1), std::nullopt, band.positions};
    } else {
      return false;
    }
  }
  if (!intersect(places, where.band, where.capacity))
    return false;
  places.others.append(where.others);
  return true;
}

bool MaskReader::exchange(TwoNumbers &two) {
  SeenPlaces places;
  if (!collectNumbers(two, false, true, places))
    return false;
  two = {places, two.no, two.yes};
  return true;
}

std::optional<TwoNumbers> MaskReader::changed(Value value, Value operand, llvm::function_ref<double(double)> change) {
  auto two = isPlain(elementOf(value)) ? numbers(operand) : std::nullopt;
  if (!two)
    return std::nullopt;
  two->yes = roundTo(elementOf(value), change(two->yes));
  two->no = roundTo(elementOf(value), change(two->no));
  return std::isnan(two->yes) || std::isnan(two->no) ? std::nullopt : two;
}

std::optional<TwoNumbers> MaskReader::numbers(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || steps-- <= 0)
    return std::nullopt;
  if (auto table = readTable(value))
    return table;
  if (auto recipe = recipeOf(value)) {
    // Conditions inside of the recipe are no values of the program.
    auto two = numbers(recipe.getYielded());
    return two && two->where.others.empty() ? two : std::nullopt;
  }
  if (auto select = dyn_cast<ds::SelectOp>(op)) {
    auto yes = uniformOf(select.getOnTrue()), no = uniformOf(select.getOnFalse());
    if (!yes || !no)
      return std::nullopt;
    return TwoNumbers{seen(select.getCondition(), false), *yes, *no};
  }
  if (auto cast = dyn_cast<ds::CastOp>(op)) {
    if (elementOf(cast.getInput()).isInteger(1) && isPlain(elementOf(value)))
      return TwoNumbers{seen(cast.getInput(), false), 1, 0};
    return changed(value, cast.getInput(), [&](double x) { return castNumber(x, elementOf(value)); });
  }
  if (isa<ds::BroadcastOp, ds::ReshapeOp>(op))
    return keepsPlaces(op, sizes) ? numbers(op->getOperand(0)) : std::nullopt;
  if (ds::UnaryOp negation = unaryOf(value, ds::UnaryKind::logical_not)) {
    auto two = numbers(negation.getInput());
    return two ? std::optional(TwoNumbers{two->where, double(two->yes == 0), double(two->no == 0)}) : std::nullopt;
  }
  if (ds::UnaryOp negation = unaryOf(value, ds::UnaryKind::neg))
    return changed(value, negation.getInput(), [](double x) { return -x; });
  auto binary = dyn_cast<ds::BinaryOp>(op);
  if (!binary)
    return std::nullopt;
  auto left = uniformOf(binary.getLhs()), right = uniformOf(binary.getRhs());
  Value varied = left ? binary.getRhs() : binary.getLhs();
  // What the number's axes enlarge has places of its own.
  if (left.has_value() == right.has_value() || rankOf(left ? binary.getLhs() : binary.getRhs()) > rankOf(varied))
    return std::nullopt;
  switch (binary.getKind()) {
  case ds::BinaryKind::add: return changed(value, varied, [&](double x) { return x + (left ? *left : *right); });
  case ds::BinaryKind::mul: return changed(value, varied, [&](double x) { return x * (left ? *left : *right); });
  case ds::BinaryKind::sub: return changed(value, varied, [&](double x) { return left ? *left - x : x - *right; });
  default: return std::nullopt;
  }
}

/// What a constant holds where it is a table of two numbers.
static std::optional<ds::Diagonals> readDiagonals(DenseElementsAttr elements) {
  if (!elements || elements.isSplat())
    return std::nullopt;
  auto numbers = [&](auto values, auto convert) {
    return ds::findDiagonals(cast<RankedTensorType>(elements.getType()),
                             [&](int64_t i) { return convert(*(values.begin() + i)); });
  };
  if (isa<FloatType>(elements.getElementType()))
    return numbers(elements.getValues<APFloat>(), [](APFloat number) {
      bool losesInfo;
      number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      return number.convertToDouble();
    });
  bool isUnsigned = elements.getElementType().isUnsignedInteger() || elements.getElementType().isInteger(1);
  for (const APInt &number : elements.getValues<APInt>())
    if (isUnsigned ? number.getActiveBits() > 52 : number.getSignificantBits() > 53)
      return std::nullopt; // two numbers of which may be one double
  return numbers(elements.getValues<APInt>(), [&](const APInt &number) {
    return isUnsigned ? static_cast<double>(number.getLimitedValue()) : static_cast<double>(number.getSExtValue());
  });
}

std::optional<MaskReader::Table> MaskReader::tableOf(Value value) {
  Operation *op = value.getDefiningOp();
  auto whole = [](std::optional<ds::Diagonals> elements) {
    return elements ? std::optional(Table{*elements, 0, 0}) : std::nullopt;
  };
  if (auto constant = dyn_cast_if_present<ds::ConstantOp>(op))
    return whole(readDiagonals(dyn_cast<DenseElementsAttr>(constant.getValue())));
  if (auto source = dyn_cast_if_present<ds::SourceOp>(op))
    return whole(ds::diagonalsFrom(source->getDiscardableAttr(ds::diagonalsAttr)));
  if (auto recipe = recipeOf(value))
    return tableOf(recipe.getYielded());
  if (auto cast = dyn_cast_if_present<ds::CastOp>(op)) {
    auto table = tableOf(cast.getInput());
    if (!table || !(elementOf(value).isInteger(1) || isPlain(elementOf(value))))
      return std::nullopt;
    for (double *number : {&table->elements.inside, &table->elements.outside})
      *number = elementOf(value).isInteger(1) ? *number != 0 : castNumber(*number, elementOf(value));
    bool areTwo = table->elements.inside < table->elements.outside || table->elements.inside > table->elements.outside;
    return areTwo ? table : std::nullopt;
  }
  if (auto slice = dyn_cast_if_present<ds::SliceOp>(op)) {
    auto starts = sizesFromAttribute(slice.getStarts());
    auto table = tableOf(slice.getInput());
    size_t rank = slice.getSteps().size();
    if (!table || !starts || slice.getSteps()[rank - 1] != 1 || slice.getSteps()[rank - 2] != 1)
      return std::nullopt;
    table->row = table->row + (*starts)[rank - 2];
    table->column = table->column + (*starts)[rank - 1];
    return table;
  }
  if (isa_and_present<ds::BroadcastOp, ds::ReshapeOp>(op) && keepsPlaces(op, sizes))
    return tableOf(op->getOperand(0));
  return std::nullopt;
}

/// A table that is cut to the rows and columns of the scores: rows from the number of places before them on, and all
/// columns. As many as the table has, no more: what it is cut to is written as the lesser of both.
std::optional<TwoNumbers> MaskReader::readTable(Value value) {
  auto table = tableOf(value);
  SizeVector shape = shapeOf(value, sizes);
  if (!table || shape.size() < 2)
    return std::nullopt;
  const ds::Diagonals &stored = table->elements;
  SizeExpr height = stored.rows, past = table->row;
  if (past == SizeExpr::min(height, columns - rows))
    past = columns - rows;
  const SizeExpr &cutRows = shape[shape.size() - 2];
  bool hasColumns = shape.back() == columns || shape.back() == SizeExpr::min(SizeExpr(stored.columns), columns);
  bool hasRows = cutRows == rows || cutRows == SizeExpr::min(SizeExpr::max(height - past, 0), rows) ||
                 cutRows == SizeExpr::min(height, past + rows) - SizeExpr::min(height, past);
  // Rows and their past are within the columns, and these within the table.
  bool isInside = past.isKnownNonNegative() && (columns - past - rows).isKnownNonNegative();
  if (!table->column.isConstant(0) || !hasColumns || !hasRows || !isInside)
    return std::nullopt;
  TwoNumbers two{{}, stored.inside, stored.outside};
  if (stored.lower)
    two.where.band.lower = SizeExpr(*stored.lower) + past;
  if (stored.upper)
    two.where.band.upper = SizeExpr(*stored.upper) + past;
  bool holdsAll = (SizeExpr(stored.columns) - columns).isKnownNonNegative() &&
                  (SizeExpr(stored.rows) - past - rows).isKnownNonNegative();
  if (!holdsAll && stored.rows < stored.columns)
    return std::nullopt; // more columns than the rows' places reach may be right, or not
  if (!holdsAll)
    two.where.capacity = stored.columns;
  return two;
}

std::optional<ds::ScoreWindow> windowOf(const SeenPlaces &places, const SizeExpr &rows, const SizeExpr &columns) {
  const Band &band = places.band;
  if (!band)
    return std::nullopt;
  // The places that rows have as a model means them: from 0 on, or up to the last column.
  const SizeExpr &bound = band.upper ? *band.upper : *band.lower;
  ds::ScoreWindow window;
  SizeExpr past = columns - rows;
  window.positions = band.positions;
  if (band.positions)
    window.past = 0;
  else if (!bound.isConstant(0) && (bound - past).constant())
    window.past = past;
  else if (!bound.constant())
    window.past = bound;
  window.capacity = places.capacity;
  constexpr int64_t farthest = int64_t(1) << 40;
  if (band.upper)
    window.right = (*band.upper - window.past).constant();
  if (band.lower)
    window.left = (window.past - *band.lower).constant();
  auto isNear = [](std::optional<int64_t> reach) { return reach && std::abs(*reach) < farthest; };
  if ((band.upper && !isNear(window.right)) || (band.lower && !isNear(window.left)))
    return std::nullopt;
  return window;
}

} // namespace deepstride
