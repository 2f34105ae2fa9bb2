// ds-gate-layers: blocks of a residual stream that a training step may drop (Zhang and He, 2010.13369, section 4).
// Works on the one entry of a module, before ds-build-training-step.
//
//   %y = add %x, f(%x)    =>    %y = scf.if %gate { add %x, f(%x) * %scale } else { %x }
#include "dialects/dist/DistDialect.h"
#include "passes/Report.h"
#include "passes/training/Layers.h"
#include "passes/training/Passes.h"
#include "passes/training/ResidualBlocks.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_GATELAYERS
#include "passes/training/Passes.h.inc"

namespace {

class LayerGates {
public:
  LayerGates(func::FuncOp entry, SizeAnalysis &analysis)
      : entry(entry), analysis(analysis), signature(entry), b(OpBuilder(entry.getContext()), analysis) {}

  LogicalResult gate(ArrayRef<ResidualBlock> blocks);

private:
  Value input(StringRef kind, size_t number, Type type);
  LogicalResult gate(size_t number, const ResidualBlock &block, Value runs, Value scale);

  func::FuncOp entry;
  SizeAnalysis &analysis;
  Signature signature;
  DsBuilder b;
};

Value LayerGates::input(StringRef kind, size_t number, Type type) {
  Value value = signature.input(nameOfLayer(kind, static_cast<int64_t>(number)), type, {});
  analysis.set(value, TensorFacts{type, {}, std::nullopt});
  return value;
}

LogicalResult LayerGates::gate(ArrayRef<ResidualBlock> blocks) {
  SmallVector<std::pair<Value, Value>> inputs;
  for (auto [number, block] : llvm::enumerate(blocks)) {
    Value runs = input(layerGate, number, b.i1());
    // Ranks drop the same layers: the trainer draws for a round of micro-batches.
    entry.setArgAttr(cast<BlockArgument>(runs).getArgNumber(), dist::uniformAttr, b.getBuilder().getUnitAttr());
    inputs.emplace_back(runs, input(layerScale, number, b.element(block.output)));
  }
  // Last ones first: a block's input is the output of the one before as long as that one is no branch.
  for (size_t number = blocks.size(); number-- > 0;)
    if (failed(gate(number, blocks[number], inputs[number].first, inputs[number].second)))
      return failure();
  return success();
}

LogicalResult LayerGates::gate(size_t number, const ResidualBlock &block, Value runs, Value scale) {
  OpBuilder &builder = b.getBuilder();
  Operation *end = block.output.getDefiningOp();
  Location where = end->getLoc();
  builder.setInsertionPoint(end);
  b.setLocation(where);
  Value gate = tensor::ExtractOp::create(builder, where, runs, ValueRange{});
  SmallVector<Value> handed = {block.output};
  llvm::append_range(handed, block.escaping);
  auto types = llvm::map_to_vector(handed, [](Value value) { return value.getType(); });
  auto branch = scf::IfOp::create(builder, where, types, gate, /*withElseRegion=*/true);
  branch->setAttr(layerAttr, builder.getI64IntegerAttr(static_cast<int64_t>(number)));
  for (auto [value, result] : llvm::zip_equal(handed, branch.getResults())) {
    TensorFacts facts = analysis.facts(value);
    facts.contents.reset();
    analysis.set(result, facts);
    value.replaceUsesWithIf(result, [&](OpOperand &use) {
      return !block.ops.contains(entry.getBody().front().findAncestorOpInBlock(*use.getOwner()));
    });
  }
  builder.setInsertionPointToEnd(branch.thenBlock());
  auto yield = scf::YieldOp::create(builder, where, handed);
  for (Operation *op : block.ops)
    op->moveBefore(yield);
  // Each term by itself: with a scale of 1 the sums have the bits that they had.
  for (OpOperand *term : block.added) {
    builder.setInsertionPoint(term->getOwner());
    b.setLocation(term->getOwner()->getLoc());
    Value scaled = b.mul(term->get(), scale);
    if (!scaled)
      return failure();
    term->set(scaled);
  }
  builder.setInsertionPointToEnd(branch.elseBlock());
  SmallVector<Value> instead = {block.input};
  for (Value value : block.escaping)
    instead.push_back(b.empty(b.element(value), b.sizes(value)));
  if (llvm::is_contained(instead, Value()))
    return failure();
  scf::YieldOp::create(builder, where, instead);
  return success();
}

struct GateLayers : impl::GateLayersBase<GateLayers>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    auto entry = entryOf(getOperation());
    if (failed(entry) || failed(run(*entry)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp entry) {
    Operation *end = entry.getBody().front().getTerminator();
    SmallVector<Value> judged(end->getOperands());
    if (!output.empty()) {
      auto number = outputNamed(entry, output, "loss or --logits");
      if (failed(number))
        return failure();
      judged = {judged[*number]};
    }
    ResidualBlocks found = findResidualBlocks(entry, judged);
    if (found.postNorm)
      return found.postNorm->emitError()
             << "progressive_layer_drop: expected blocks of pre-norm form (x + f(norm(x))), found a norm of a residual "
                "sum that the next block adds to (post-norm): what a dropped block leaves would be normalized without "
                "it";
    if (found.blocks.empty())
      return entry.emitError() << "progressive_layer_drop: expected blocks x + f(x) of a residual stream, found none: "
                               << found.nearest;
    for (unsigned i = 0; i < entry.getNumArguments(); ++i)
      if (auto own = entry.getArgAttrOfType<StringAttr>(i, ds::nameAttr))
        for (StringRef kind : {layerGate, layerScale, layerFirst, layerRan})
          if (own.getValue().starts_with(kind))
            return entry.emitError() << "expected inputs with other names than those that training adds, found '"
                                     << own.getValue() << "'";
    for (const ResidualBlock &block : found.blocks)
      for (Operation *op : block.ops) {
        WalkResult walk = op->walk([&](ds::RunningStatisticOp norm) {
          if (!isa<BlockArgument>(norm.getRunning()))
            return WalkResult::advance();
          norm.emitError() << "progressive_layer_drop: this batch normalization in block '" << block.name
                           << "' moves a running statistic, which it cannot where the block is dropped; --freeze keeps "
                              "the statistic as it is";
          return WalkResult::interrupt();
        });
        if (walk.wasInterrupted())
          return failure();
      }
    auto analysis = SizeAnalysis::run(entry);
    if (failed(analysis))
      return failure();
    LayerGates gates(entry, *analysis);
    SmallVector<StringRef> names;
    for (const ResidualBlock &block : found.blocks)
      names.push_back(block.name);
    if (failed(gates.gate(found.blocks)))
      return failure();
    // What an output alone reads of a block came before the block's end.
    sortTopologically(&entry.getBody().front());
    entry.setType(FunctionType::get(&getContext(), entry.getBody().front().getArgumentTypes(), entry.getResultTypes()));
    getOperation()->setAttr(layersAttr, Builder(&getContext()).getStrArrayAttr(names));
    count("blocks", static_cast<int64_t>(names.size()));
    for (auto [number, name] : llvm::enumerate(names))
      note(("block " + Twine(number) + ": " + name).str());
    return success();
  }
};

} // namespace

} // namespace deepstride
