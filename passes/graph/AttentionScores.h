// What lies between the two products of an attention: scales, a cap, masks that add, choose or multiply.
#ifndef DEEPSTRIDE_PASSES_GRAPH_ATTENTIONSCORES_H
#define DEEPSTRIDE_PASSES_GRAPH_ATTENTIONSCORES_H

#include "passes/graph/Matching.h"

namespace deepstride {

/// Walks through multiplications and divisions by constants, collecting them in `scale`.
mlir::Value peelScale(mlir::Value value, double &scale);

/// Something that is added to the scores: a mask, or minus it, or a choice between 0 and `low`.
struct ScoreTerm {
  mlir::Value value;     // what is added, or null where `condition` says where
  bool negated = false;  // subtracted instead
  mlir::Value condition; // `low` where it holds if `lowWhenTrue`, 0 elsewhere
  double low = 0;
  bool lowWhenTrue = true;
  int64_t rank = 4; // of the scores that it is added to
};

/// One number of run time that the scores are multiplied with, or divided by.
struct ScoreScale {
  mlir::Value value;
  bool divides;
};

/// scores = factor * cap(scale * scales * product) + the terms, the term added last first.
struct AttentionScores {
  ds::MatmulOp product;
  double scale = 1;
  llvm::SmallVector<ScoreScale> scales;
  std::optional<double> cap;
  llvm::SmallVector<ScoreTerm> terms;
  mlir::Value factor; // multiplies the scores
  int64_t factorRank = 4;
  bool takesOut = false;  // the factor is 0 where the last term's condition puts `low`, 1 elsewhere
  bool widened = false;   // the product is cast to a wider float
  bool wideTerms = false; // which a term or the factor has, too
  SizeVector sizes;       // of the product, with batch and heads split where a reshape splits them

  bool isScaled() const { return scale != 1 || !scales.empty(); }
};

/// Walks from the operand of a softmax to the product. On failure `mismatch` says what kept a near miss from matching;
/// it is empty where no product is near.
std::optional<AttentionScores> matchScores(mlir::Value value, const SizeAnalysis &sizes, std::string &mismatch);

} // namespace deepstride

#endif
