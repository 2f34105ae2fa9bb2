// Statistics move beside the gradients: a step that overflows must leave them, so that a micro-batch writes another
// state, from which the update takes them.
#include "passes/training/RunningStatistics.h"

using namespace mlir;

namespace deepstride {

static SmallVector<ds::RunningStatisticOp> statisticOpsOf(func::FuncOp function) {
  SmallVector<ds::RunningStatisticOp> ops;
  function.walk([&](ds::RunningStatisticOp op) { ops.push_back(op); });
  return ops;
}

static void replace(ds::RunningStatisticOp op, Value used, Value moved) {
  op.getUsed().replaceAllUsesWith(used);
  op.getMoved().replaceAllUsesWith(moved);
  op.erase();
}

LogicalResult checkRunningStatistics(func::FuncOp model) {
  for (const Parameter &statistic : statisticsOf(model))
    for (ds::RunningStatisticOp op : statisticOpsOf(model))
      if (op.getRunning() == statistic.value && op->getParentOp() != model)
        return op.emitError() << "a batch normalization in a branch or a loop cannot move its running statistic "
                              << "'" << statistic.name.getValue() << "'; --freeze keeps it as it is";
  return success();
}

void useRunningStatistics(func::FuncOp eval) {
  for (ds::RunningStatisticOp op : statisticOpsOf(eval))
    replace(op, op.getRunning(), op.getRunning());
}

void useBatchStatistics(func::FuncOp function) {
  for (ds::RunningStatisticOp op : statisticOpsOf(function))
    replace(op, op.getBatch(), op.getRunning());
}

FailureOr<SmallVector<MovedStatistic>> moveRunningStatistics(func::FuncOp micro, SizeAnalysis &analysis,
                                                             Signature &signature, Value isFirst) {
  llvm::MapVector<Value, MovedStatistic> moved;
  for (const Parameter &statistic : statisticsOf(micro))
    moved[statistic.value] = {statistic, {}};
  for (ds::RunningStatisticOp op : statisticOpsOf(micro)) {
    auto state = moved.find(op.getRunning());
    if (state == moved.end()) {
      replace(op, op.getBatch(), op.getRunning());
      continue;
    }
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    auto &[statistic, value] = state->second;
    if (!value) {
      Type element = b.element(statistic.value);
      SizeVector sizes = b.sizes(statistic.value);
      Value before = signature.state(statistic.stateName(movedSuffix), element, sizes);
      analysis.set(before, TensorFacts{element, sizes, std::nullopt});
      value = isFirst ? b.select(isFirst, statistic.value, before) : statistic.value;
    }
    double momentum = op.getMomentum().convertToDouble();
    value = b.add(b.mul(value, momentum), b.mul(op.getBatch(), 1 - momentum));
    if (!value)
      return failure();
    replace(op, op.getBatch(), value);
  }
  SmallVector<MovedStatistic> results;
  for (auto &[running, statistic] : moved)
    if (statistic.value)
      results.push_back(statistic);
  return results;
}

} // namespace deepstride
