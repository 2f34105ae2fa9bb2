// What the derivative of a counted loop is made by: rules/Loops.cpp builds the loop that walks back, rules/LoopTape.cpp
// makes what it reads of the loop's body outlive the iterations.
#ifndef DEEPSTRIDE_PASSES_TRAINING_RULES_LOOPREVERSAL_H
#define DEEPSTRIDE_PASSES_TRAINING_RULES_LOOPREVERSAL_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "passes/training/ReverseSweep.h"

namespace deepstride {

class LoopReversal {
public:
  LoopReversal(mlir::scf::WhileOp loop, Derivative &d) : loop(loop), d(d), b(d.b), builder(d.b.getBuilder()) {}
  void run();

private:
  /// What the way back carries: the gradient of a carried value, of what all iterations read, or of what each reads a
  /// row of.
  struct Carry {
    enum Kind { Handed, Shared, Rows } kind;
    mlir::Value value;  // of the loop's body, or outside
    unsigned place = 0; // Handed: among the carried values
    ds::SliceOp row = {};
  };

  bool countsIterations(mlir::Value value) const;
  bool findForm();
  bool isCollected(unsigned place);
  void findCarries();
  mlir::scf::WhileOp startWayBack();
  bool fillWayBack();
  bool mayRepeat(mlir::Operation *op);
  void findRead(mlir::Value value);
  bool keepRows();
  mlir::Value onWayBack(mlir::Value value);
  void useKept();
  mlir::ArrayAttr renamed(mlir::ArrayAttr sizes);
  void rename();

  mlir::scf::WhileOp loop;
  Derivative &d;
  DsBuilder &b;
  mlir::OpBuilder &builder;
  mlir::Block *body = nullptr, *back = nullptr;
  std::string symbol, backSymbol;      // of a number of the iteration: in the body, on the way back
  llvm::StringMap<SizeExpr> namesBack; // of all symbols that the body defines
  SizeExpr trip;
  llvm::SmallVector<Carry> carries;
  llvm::SmallVector<TensorFacts> facts; // of each carry
  mlir::Value iteration;                // that the way back is at
  llvm::SetVector<mlir::Value> taped;   // of the body: a row per iteration is kept
  llvm::SmallVector<mlir::Value> tapes; // where the rows lie, for each
  mlir::IRMapping kept;                 // from values of the body to what is the same on the way back
};

} // namespace deepstride

#endif
