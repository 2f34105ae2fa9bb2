// Loops of the program: what Loop, Scan and the recurrent operators become. The counter is a size symbol that every
// iteration defines anew, so an iteration reads and writes its part of a tensor by ds.slice and ds.insert.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_LOOPBUILDER_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_LOOPBUILDER_H

#include "frontends/onnx/convert/Node.h"
#include "llvm/ADT/StringSet.h"

namespace deepstride::onnx {

/// A part of a result that one iteration gives: a box along one axis.
struct LoopRow {
  mlir::Value value;
  int64_t axis;
  SizeExpr start;
};

/// What an iteration gives.
struct LoopStep {
  Values carried;        // of the shapes of the first values
  mlir::Value condition; // one bool without axes; null where the loop goes on
  llvm::SmallVector<LoopRow> rows;
};

struct LoopSpec {
  Values inits;
  std::optional<SizeExpr> trip; // at most so many iterations; never negative
  mlir::Value first;            // the condition of the first iteration, one bool without axes; null where it runs
  /// Of the results that rows make up, along the axis of the rows; what no row covers is zero. Without it the results
  /// are as long as the trip; a loop that ends by a condition then gives none.
  std::optional<SizeExpr> rowCount;
};

struct LoopResult {
  Values carried, rows;
  bool isConditional = false; // ends by its condition; rows are missing without a row count
  mlir::Value count;          // of iterations, an i64 scalar
};

/// Converts one iteration. The carried values' elements are unknown, the counter is a symbol.
using LoopBody = llvm::function_ref<std::optional<LoopStep>(const SizeExpr &iteration, mlir::ValueRange carried)>;

/// Nothing after a diagnostic: the body cannot be converted, or a carried value changes its shape.
std::optional<LoopResult> buildLoop(Node &n, const LoopSpec &spec, LoopBody body);

/// The subgraph of that name; null after a diagnostic.
mlir::Region *findGraph(Node &n, llvm::StringRef name);

/// Names a value that the program computes at this point; nothing where the value was refused.
void define(Node &n, llvm::StringRef symbol, mlir::Value value);
/// The symbols that the code of a block gives values, and whether a size depends on one of them.
llvm::StringSet<> symbolsOf(mlir::Block &block);
bool isOver(const SizeExpr &size, const llvm::StringSet<> &symbols);

} // namespace deepstride::onnx

#endif
