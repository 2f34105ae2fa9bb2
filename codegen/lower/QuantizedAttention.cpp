// Attention whose scores and weights are quantized: two products, a softmax between them, and elementwise ops before,
// between and behind them. One grid item is one head. A thread makes keys and values of what is in memory, or of rows
// that it puts together as ds.attention's kernel does, and packs them, then computes a few rows at a time, of which
// scores and weights never leave scratch. What is done to an element and in which order is what kernels of their own
// do, so that results have the same bits.
#include "codegen/lower/QuantizedAttention.h"

#include "codegen/lower/QuantizedAttentionLowering.h"

using namespace mlir;

namespace deepstride {

QuantizedAttention::Steps QuantizedAttention::stepsBehind(Value value) {
  Steps steps;
  for (Operation *op : k.ops())
    if (isLineStep(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
          return operand == value || llvm::is_contained(steps.ops, operand.getDefiningOp());
        }))
      steps.ops.push_back(op);
  steps.operands.insert(value);
  for (Operation *op : steps.ops)
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp<ds::ConstantOp>() && !llvm::is_contained(steps.ops, operand.getDefiningOp()))
        steps.operands.insert(operand);
  return steps;
}

LogicalResult QuantizedAttention::verify(const Steps &steps, Value from, bool readsMemory) {
  for (Operation *op : steps.ops)
    if (SizeVector sizes = k.sizesOf(op->getResult(0));
        sizes != k.sizesOf(from) && (from != ops.scores.getResult() || sizes != k.sizesOf(ops.softmax.getResult())))
      return op->emitOpError("expects results as large as what it follows in its kernel");
  for (Value operand : steps.operands)
    if (operand != from && !(readsMemory && isa<BlockArgument>(operand)))
      return from.getDefiningOp()->emitOpError("is followed by ops of what its kernel does not have in memory");
  return success();
}

FailureOr<std::unique_ptr<MicroKernel>> QuantizedAttention::kernelOf(ds::MatmulOp op) {
  ds::ProductTypes types{k.elementOf(op.getLhs()), k.elementOf(op.getRhs()), k.elementOf(op.getResult())};
  auto kernel = scheduledKernel(k, op, types, /*isPacked=*/false);
  if (failed(kernel))
    return failure();
  if (!*kernel || !llvm::isa<VectorKernel>(**kernel) || op.getTranspose()[0])
    return op.emitOpError("shares a kernel with a softmax, and has no schedule of vectors, or moves its left operand");
  return kernel;
}

LogicalResult QuantizedAttention::run() {
  auto inner = kernelOf(ops.scores);
  if (failed(inner))
    return failure();
  auto outer = kernelOf(ops.weighted);
  if (failed(outer))
    return failure();
  scoring = std::move(*inner);
  weighting = std::move(*outer);
  for (auto [operand, value] : {std::pair(&queries, ops.scores.getLhs()), std::pair(&keys, ops.scores.getRhs()),
                                std::pair(&values, ops.weighted.getRhs())}) {
    *operand = HeadOperand::of(k, value, /*isQuery=*/operand == &queries);
    if (!*operand)
      return ops.softmax.emitOpError("shares a kernel with products of what is neither a window of memory nor rows");
    if (ArrayRef(k.sizesOf(value)).drop_back(2) != ArrayRef(batch))
      return ops.softmax.emitOpError("shares a kernel with products whose operands broadcast");
  }
  keys->setTokens(ops.scores.getTranspose()[1] ? 0 : 1);
  values->setTokens(ops.weighted.getTranspose()[1] ? 1 : 0);
  if (!keys->isDivisible() || !values->isDivisible())
    return ops.softmax.emitOpError("shares a kernel with keys or values whose tokens are not the rows that are joined");
  repeat = keys->repeat();
  if (values->repeat() != repeat)
    return ops.softmax.emitOpError("shares a kernel with keys that other heads share than values");
  ofScores = stepsBehind(ops.scores.getResult());
  ofWeights = stepsBehind(ops.softmax.getResult());
  ofResult = stepsBehind(ops.weighted.getResult());
  if (failed(verify(ofScores, ops.scores.getResult(), /*readsMemory=*/true)) ||
      failed(verify(ofWeights, ops.softmax.getResult(), /*readsMemory=*/false)) ||
      failed(verify(ofResult, ops.weighted.getResult(), /*readsMemory=*/false)))
    return failure();
  SizeVector ofValues = k.sizesOf(ops.weighted.getRhs());
  bool mayRepeat = k.sizesOf(ops.softmax.getResult()) != k.sizesOf(ops.scores.getResult());
  if (mayRepeat && ofValues[batch.size() + (ops.weighted.getTranspose()[1] ? 1 : 0)] != keyCount)
    return ops.weighted.emitOpError("shares a kernel with scores of another number of keys");
  // A row of scores stands where its weights will.
  SmallVector<unsigned> results; // but for keys and values
  for (auto [number, value] : llvm::enumerate(k.yielded()))
    if (!keys->yields(value) && !values->yields(value))
      results.push_back(static_cast<unsigned>(number));
  if (results.size() != 1 || k.elementOf(ops.softmax.getResult()) != computeType(k.elementOf(ops.softmax.getResult())))
    return ops.softmax.emitOpError("shares a kernel that yields more than its result, its keys and its values, or "
                                   "rounds its weights");
  Value yielded = k.yielded()[results.front()];
  auto transpose = yielded.getDefiningOp<ds::TransposeOp>();
  made = transpose ? transpose.getInput() : yielded;
  if (made != (ofResult.ops.empty() ? Value(ops.weighted.getResult()) : ofResult.ops.back()->getResult(0)))
    return ops.weighted.emitOpError("shares a kernel that yields something else");
  View stored = k.broadcastView(k.outputBuffer(results.front()), k.sizesOf(yielded), k.sizesOf(yielded));
  target = stored;
  if (transpose)
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      target.axes[static_cast<size_t>(from)] = stored.axes[to];
  emit();
  return success();
}

LogicalResult lowerQuantizedAttention(KernelBuilder &builder, ds::SoftmaxProducts ops) {
  return QuantizedAttention(builder, ops).run();
}

} // namespace deepstride
