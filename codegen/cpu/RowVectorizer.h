// One linalg.generic on strided memrefs as loops in native vectors: what ds-vectorize-rows does with each.
#ifndef DEEPSTRIDE_CODEGEN_CPU_ROWVECTORIZER_H
#define DEEPSTRIDE_CODEGEN_CPU_ROWVECTORIZER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace deepstride {

/// How an operand meets the innermost loop.
enum class Reach { Broadcast, Contiguous, Repeated, Spread, Strided };

class RowVectorizer {
public:
  RowVectorizer(mlir::linalg::GenericOp op, int64_t lanes) : op(op), b(op), loc(op.getLoc()), lanes(lanes) {}
  void run();

private:
  Reach reachOf(mlir::OpOperand &operand);
  int64_t repeatsOf(mlir::OpOperand &operand);
  mlir::Value load(mlir::OpOperand &operand, llvm::ArrayRef<mlir::Value> at, int64_t width);
  bool isVectorizable();
  bool folds();
  int64_t lanesOfWidest();
  mlir::Value endOfVectors(mlir::Value from, mlir::Value to, int64_t width);
  void emitInner(llvm::ArrayRef<mlir::Value> outer, mlir::Value from, mlir::Value to);
  void emitSpan(llvm::ArrayRef<mlir::Value> outer, mlir::Value from, mlir::Value to, int64_t width,
                llvm::MutableArrayRef<mlir::Value> carried, int64_t chains = 1);
  bool mayMask();
  void emitMasked(llvm::ArrayRef<mlir::Value> outer, mlir::Value from, mlir::Value to);
  mlir::Value combineLike(mlir::Operation *combine, mlir::Value x, mlir::Value y);
  mlir::Operation *combineOf(unsigned number) {
    return op.getBody()->getTerminator()->getOperand(number).getDefiningOp();
  }
  bool hasExtremes();
  // Reductions: codegen/cpu/RowReductions.cpp.
  llvm::SmallVector<mlir::Value> emitChains(llvm::ArrayRef<mlir::Value> outer, mlir::Value from, mlir::Value to,
                                            llvm::ArrayRef<mlir::Value> initial, int64_t width);
  void emitReduction(llvm::ArrayRef<mlir::Value> outer, mlir::Value from, mlir::Value split, mlir::Value to,
                     bool vectorizable);
  llvm::SmallVector<mlir::Value> emitExtremes(llvm::ArrayRef<mlir::Value> outer, mlir::Value from, mlir::Value to,
                                              llvm::ArrayRef<mlir::Value> initial);
  llvm::SmallVector<mlir::Value> emitBody(llvm::ArrayRef<mlir::Value> indices, int64_t width,
                                          llvm::ArrayRef<mlir::Value> carried);
  mlir::Value widen(mlir::Value scalar, int64_t width);
  // Loads: codegen/cpu/RowLoads.cpp.
  mlir::Value loadRepeated(mlir::OpOperand &operand, llvm::ArrayRef<mlir::Value> at, int64_t width);
  mlir::Value loadSpread(mlir::OpOperand &operand, llvm::ArrayRef<mlir::Value> at, int64_t width);
  bool isTransposed(mlir::OpOperand &operand);
  void transposeSquare(mlir::OpOperand &operand, llvm::ArrayRef<mlir::Value> corner);
  void emitTile(llvm::ArrayRef<mlir::Value> outer);
  llvm::SmallVector<mlir::Value> position(mlir::OpOperand &operand, llvm::ArrayRef<mlir::Value> indices);

  mlir::linalg::GenericOp op;
  mlir::OpBuilder b;
  mlir::Location loc;
  int64_t lanes;
  static constexpr int64_t chainCount = 4;
  unsigned rank = 0;
  bool reduces = false;
  llvm::SmallVector<mlir::Value> bounds;
  std::optional<unsigned> tiled; // the loop of ds.tile
  int64_t block = 0;
  llvm::DenseMap<unsigned, mlir::Value> squares; // transposed squares of operands, by number
  mlir::Value squareRow;                         // the row of the squares that is read
  mlir::Value mask;                              // of the places that exist, where a row ends within a vector
  bool compares = false;                         // extremes are compared, not combined; NaN is flagged
  mlir::Value flags;                             // NaN in lanes where one was seen
  llvm::SmallVector<mlir::Value> compared;       // of the last chain
};

} // namespace deepstride

#endif
