// The kernel of attention in parts: what its files share.
#ifndef DEEPSTRIDE_CODEGEN_LOWER_QUANTIZEDATTENTIONLOWERING_H
#define DEEPSTRIDE_CODEGEN_LOWER_QUANTIZEDATTENTIONLOWERING_H

#include "codegen/lower/HeadOperand.h"
#include "codegen/tile/Gemm.h"
#include "dialects/ds/SoftmaxProducts.h"

namespace deepstride {

class QuantizedAttention {
public:
  QuantizedAttention(KernelBuilder &k, ds::SoftmaxProducts ops)
      : k(k), ops(ops), query(k.sizesOf(ops.scores.getLhs())), result(k.sizesOf(ops.weighted.getResult())),
        batch(llvm::ArrayRef(result).drop_back(2)), keyCount(k.sizesOf(ops.scores.getResult()).back()) {}
  llvm::LogicalResult run();

private:
  /// Elementwise ops of a row between two ops of the kernel.
  struct Steps {
    llvm::SmallVector<mlir::Operation *> ops;
    llvm::SetVector<mlir::Value> operands; // that none of them gives
  };
  /// Rows [first, first + count) of a head; `number`: of the first among those under a sweep.
  struct RowBlock {
    llvm::ArrayRef<mlir::Value> head;
    mlir::Value first, count, number;
  };
  /// Keys that have scores. Where they may not be all: what rows do with them.
  struct KeyBlock {
    RowRange range;
    mlir::Value count;
    mlir::Value findsGreatest = {}, addsUp = {}, weighs = {}, isLast = {}; // i1
  };
  Steps stepsBehind(mlir::Value value);
  llvm::LogicalResult verify(const Steps &steps, mlir::Value from, bool readsMemory);
  llvm::FailureOr<std::unique_ptr<MicroKernel>> kernelOf(ds::MatmulOp op);
  /// Whether there is one block of keys, whatever the sizes are.
  bool isOnly() const { return atOnce == keyCount; }
  void reserve();
  void emit();
  void emitSweeps(const HeadGroup &group, mlir::Value shared);
  void emitKeys(const HeadGroup &group, const KeyBlock &keys);
  void emitStart(const RowBlock &rows);
  void emitRows(const RowBlock &rows, const KeyBlock &keys);
  void emitScores(const RowBlock &rows, const KeyBlock &keys, mlir::Value row, const Line &target);
  void emitWeights(const KeyBlock &keys, mlir::Value row, const Line &line);
  void emitCodes(const Line &weights);
  void emitProducts(const RowBlock &rows, const KeyBlock &keys);

  mlir::Value headOffset(const View &view, llvm::ArrayRef<mlir::Value> head) {
    return k.offsetAt(view, llvm::to_vector(llvm::seq<unsigned>(0, head.size())), head);
  }
  mlir::Value scratchFor(mlir::Value value, const SizeExpr &elements) {
    return k.scratchOf(storageType(k.elementOf(value)), elements);
  }
  /// What holds all columns of a matrix as panels.
  mlir::Value panelsFor(const MicroKernel &micro, const SizeExpr &depth, const SizeExpr &columns, int64_t width) {
    return k.scratchOf(storageType(micro.panel), panelSpace(micro, depth, 1) * (columns + SizeExpr(width)));
  }
  void pack(const MicroKernel &micro, ds::MatmulOp op, const Matrix &matrix, mlir::Value depth, mlir::Value columns,
            mlir::Value panels);
  void multiply(const MicroKernel &micro, ds::MatmulOp op, const Matrix &rows, mlir::Value count, mlir::Value depth,
                mlir::Value columns, mlir::Value panels,
                llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value)> sink,
                llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> start = nullptr);
  mlir::Value both(mlir::Value x, mlir::Value y) { return mlir::arith::AndIOp::create(k.b, k.loc, x, y); }
  mlir::Value equals(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpIOp::create(k.b, k.loc, mlir::arith::CmpIPredicate::eq, x, y);
  }

  KernelBuilder &k;
  ds::SoftmaxProducts ops;
  SizeVector query, result, batch;
  SizeExpr keyCount; // of weights, too, however that size is written: a run refuses others
  SizeExpr atOnce = 0;
  mlir::Value rowsAtOnce, blocks; // how many times as many a sweep has
  std::unique_ptr<MicroKernel> scoring, weighting;
  std::optional<HeadOperand> queries, keys, values;
  Steps ofScores, ofWeights, ofResult;
  int64_t repeat = 1; // heads that share keys and values
  mlir::Value made;   // what is stored, before a transpose moves it
  View target;
  mlir::Value sums, weights, left, products, keyPanels, valuePanels; // scratch
  mlir::Value scoreStride, productStride;
  // Where keys may be several blocks: scores, sums and products of the rows under a sweep, and cells that say where
  // begins what is packed (-1: nothing is).
  mlir::Value greatest, totals, begun, packedKeys, packedValues;
};

} // namespace deepstride

#endif
