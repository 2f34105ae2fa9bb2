// Masks that hide places by the distance of column and row: read as the window that ds.attention has for them.
#ifndef DEEPSTRIDE_PASSES_GRAPH_ATTENTIONWINDOW_H
#define DEEPSTRIDE_PASSES_GRAPH_ATTENTIONWINDOW_H

#include "passes/graph/Positions.h"

namespace deepstride {

/// A condition, or its opposite.
struct Literal {
  mlir::Value value;
  bool negated;
};

/// What a condition says of places: they lie in a band, as far as there is one, and the others hold, too.
struct SeenPlaces {
  Band band;
  std::optional<int64_t> capacity; // the columns up to which a stored table says so
  llvm::SmallVector<Literal> others;
};

/// One number where a condition holds, another one elsewhere.
struct TwoNumbers {
  SeenPlaces where; // exactly these places have `yes`
  double yes, no;
};

/// Reads masks beside scores of `rows` and `columns`. A band is found only where the mask has these sizes, or is cut
/// from a table to them.
class MaskReader {
public:
  MaskReader(const SizeAnalysis &sizes, const SizeExpr &rows, const SizeExpr &columns)
      : sizes(sizes), rows(rows), columns(columns) {}

  SeenPlaces seen(mlir::Value condition, bool negated);
  /// Nothing where the value is something else, or not seen to be.
  std::optional<TwoNumbers> numbers(mlir::Value value);
  /// Turns the two numbers around; false where the places of the other one are no band and conditions beside it.
  bool exchange(TwoNumbers &numbers);

private:
  struct Table;
  void collect(mlir::Value condition, bool negated, SeenPlaces &places);
  bool collectComparison(ds::BinaryOp op, bool negated, SeenPlaces &places);
  bool collectNumbers(const TwoNumbers &numbers, bool holdsForYes, bool holdsForNo, SeenPlaces &places);
  std::optional<TwoNumbers> changed(mlir::Value value, mlir::Value operand, llvm::function_ref<double(double)> change);
  std::optional<Table> tableOf(mlir::Value value);
  std::optional<TwoNumbers> readTable(mlir::Value value);
  bool isWhole(mlir::Value value);

  const SizeAnalysis &sizes;
  SizeExpr rows, columns;
  int steps = 64;
};

/// Narrows `places` to the band, too; false where it is not seen which bound is the closer one.
bool intersect(SeenPlaces &places, const Band &band, std::optional<int64_t> capacity = std::nullopt);

/// The band as a window of ds.attention, seen from the last rows or columns where that tells what it is; nothing where
/// its width is not a constant.
std::optional<ds::ScoreWindow> windowOf(const SeenPlaces &places, const SizeExpr &rows, const SizeExpr &columns);

} // namespace deepstride

#endif
