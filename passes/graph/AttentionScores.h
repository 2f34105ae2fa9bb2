// What lies between the two products of an attention: scales, a cap, masks that add, choose or multiply.
#ifndef DEEPSTRIDE_PASSES_GRAPH_ATTENTIONSCORES_H
#define DEEPSTRIDE_PASSES_GRAPH_ATTENTIONSCORES_H

#include "passes/graph/Matching.h"

namespace deepstride {

/// Walks through multiplications and divisions by constants, collecting them in `scale`.
mlir::Value peelScale(mlir::Value value, double &scale);

/// Something that changes the scores, as ds.attention has it in its steps, but not yet by a window.
struct ScoreTerm {
  ds::ScoreStepKind kind; // add, multiply, keep or hide
  mlir::Value value;      // what is added or multiplied with, or the condition
  bool negated = false;   // subtracted instead of added
  double low = 0;         // what a hidden score becomes
  int64_t rank = 4;       // of the scores that it changes
};

/// One number of run time that the scores are multiplied with, or divided by.
struct ScoreScale {
  mlir::Value value;
  bool divides;
};

/// scores = the terms around cap(scale * scales * product), the outermost one first.
struct AttentionScores {
  ds::MatmulOp product;
  double scale = 1;
  llvm::SmallVector<ScoreScale> scales;
  std::optional<double> cap;
  llvm::SmallVector<ScoreTerm> terms;
  bool widened = false;       // the product is cast from a float of 16 bits to f32
  bool hasAxisOfMask = false; // a mask gives the product's result an axis of 1 in front, or a longer one
  SizeVector sizes;           // of the product, with batch and heads split where a reshape splits them

  bool isScaled() const { return scale != 1 || !scales.empty(); }
  /// Whether the number has the query's type: one of a wider type may be no number of that.
  bool isOfQuery(const ScoreScale &number) const;
};

/// Walks from the operand of a softmax to the product. On failure `mismatch` says what kept a near miss from matching;
/// it is empty where no product is near.
std::optional<AttentionScores> matchScores(mlir::Value value, const SizeAnalysis &sizes, std::string &mismatch);

} // namespace deepstride

#endif
