// A tensor of a unit begins at a block, and so does what a rank owns: no block has elements of two tensors or two
// ranks.
#include "passes/training/SharedTrust.h"

#include "passes/training/Communication.h"
#include "passes/training/GradientNorm.h"

using namespace mlir;

namespace deepstride {

static_assert(unitBlock == normBlock);

/// Blocks of the tensor that begins at the offset of this number.
static int64_t blocksOf(const Unit &unit, size_t number) {
  int64_t end = number + 1 < unit.offsets.size() ? unit.offsets[number + 1] : unit.elements;
  return (end - unit.offsets[number]) / unitBlock;
}

/// A number for each of this rank's blocks, of one for each tensor of a unit.
static Value spread(DsBuilder &b, const Unit &unit, ArrayRef<Value> ofTensors, const SizeExpr &blocks) {
  SmallVector<Value> ofBlocks;
  for (auto [number, value] : llvm::enumerate(ofTensors))
    ofBlocks.push_back(b.broadcast(value, {SizeExpr(blocksOf(unit, number))}));
  Value all = ofBlocks.size() == 1 ? ofBlocks.front() : b.concat(0, ofBlocks);
  SizeExpr rest = dist::meshSize("data") * blocks - SizeExpr(unit.elements / unitBlock);
  all = b.pad(ds::PadKind::constant, all, b.scalar(b.f64(), 0), {SizeExpr(0)}, {rest});
  return b.slice(all, {dist::meshIndex("data") * blocks}, {blocks}, {1});
}

SmallVector<Value> applyTrust(DsBuilder &b, const OptimizerSettings &settings, ArrayRef<SharedLambStep> steps) {
  SmallVector<const Unit *> units;
  SmallVector<Value> norms;
  for (const SharedLambStep &step : steps) {
    for (Value value : {step.parameters, step.step.update}) {
      units.push_back(step.unit);
      norms.push_back(blockNorms(b, value));
      if (!norms.back())
        return {};
    }
  }
  bool isMixed = llvm::any_of(norms, [&](Value value) { return b.element(value) != b.element(norms.front()); });
  if (isMixed)
    for (Value &value : norms)
      value = b.cast(value, b.f64());
  Values gathered = Communication(b).gatherBlocks(units, norms, "trust").finish(b);
  ValueRange all = gathered;
  SmallVector<Value> next;
  for (const SharedLambStep &step : steps) {
    size_t count = step.unit->offsets.size();
    SmallVector<Value> ratios;
    for (size_t i = 0; i < count; ++i)
      ratios.push_back(trustRatio(b, settings, all[i], all[count + i]));
    all = all.drop_front(2 * count);
    SizeExpr elements = step.unit->shard();
    SizeExpr blocks = SizeExpr::exactQuotient(elements, SizeExpr(unitBlock)).value_or(SizeExpr(0));
    Value factor = b.mul(spread(b, *step.unit, ratios, blocks), step.step.rate);
    factor = b.reshape(b.cast(factor, step.unit->element), {blocks, SizeExpr(1)});
    Value change = b.mul(b.reshape(step.step.update, {blocks, SizeExpr(unitBlock)}), factor);
    next.push_back(b.sub(step.parameters, b.reshape(change, {elements})));
    if (!next.back())
      return {};
  }
  return next;
}

} // namespace deepstride
