// Sums of a stream and what is computed of it, x + f(x), in the order of an entry.
#ifndef DEEPSTRIDE_PASSES_TRAINING_RESIDUALSUMS_H
#define DEEPSTRIDE_PASSES_TRAINING_RESIDUALSUMS_H

#include "dialects/ds/DsDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

#include <optional>
#include <string>
#include <vector>

namespace deepstride {

/// One residual sum: output = input + (what is computed of the input, and vectors such as a bias).
struct Residual {
  mlir::Value input, output;
  llvm::SetVector<mlir::Operation *> ops; // from the input to the output, sums included
  llvm::SmallVector<mlir::OpOperand *> added;
  bool addsOthers = false; // of the stream's sizes, not computed of it
  std::string signature;   // the ops and their types
};

class ResidualSums {
public:
  /// Finds those that what is judged depends on.
  ResidualSums(mlir::func::FuncOp entry, mlir::ValueRange judged);

  llvm::ArrayRef<Residual> sums() const { return residuals; }
  /// Whether a value is one in question, or adds it to what comes from elsewhere.
  bool isReached(mlir::Value value, llvm::function_ref<bool(mlir::Value)> isIt) const;
  /// The norm of a residual sum, as another one's stream: the form that cannot drop what it adds (post-norm). Null
  /// where there is none.
  mlir::Operation *postNorm() const;

  bool isLive(mlir::Operation *op) const { return live.contains(op); }
  /// An op of the entry's body: one inside of a region is part of that.
  mlir::Operation *topLevel(mlir::Operation *op) const { return body.findAncestorOpInBlock(*op); }

private:
  bool add(ds::BinaryOp sum);
  std::optional<Residual> residualAt(ds::BinaryOp sum, llvm::SmallVectorImpl<mlir::Operation *> &sums) const;
  bool isInner(ds::BinaryOp sum) const;
  llvm::SetVector<mlir::Operation *> between(mlir::Value from, llvm::ArrayRef<mlir::OpOperand *> to,
                                             mlir::Operation *end) const;
  bool isPlaceOfStream(mlir::Value value) const {
    return isReached(value, [&](mlir::Value sum) { return outputs.contains(sum); });
  }

  mlir::Block &body;
  llvm::DenseSet<mlir::Operation *> live;
  std::vector<Residual> residuals;
  llvm::DenseSet<mlir::Value> outputs; // of residuals
};

} // namespace deepstride

#endif
