// ds-schedule-quantization: mixture of quantization (MoQ). What computes on weights reads what they are rounded to, at
// a width that each call is given; the update keeps the weights themselves. Works on the entries of a training step,
// whose gradients are already ops: that of an image is its weight's.
//
//   @micro(x, ..., w) { ... ds.linear %x, %w ... }
//                     =>  @micro(x, ..., w, quantize_levels) { %image = scf.if ...   ds.linear %x, %image ... }
//                         @quantize(w, quantize_levels) -> image
#include "dialects/dist/DistDialect.h"
#include "dialects/ds/Quantized.h"
#include "dialects/ds/UnitAttrs.h"
#include "passes/Report.h"
#include "passes/training/Blocks.h"
#include "passes/training/Passes.h"
#include "passes/training/Quantizers.h"
#include "passes/training/Signature.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/xxhash.h"
#include <numeric>

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_SCHEDULEQUANTIZATION
#include "passes/training/Passes.h.inc"

namespace {

int64_t elementsOf(const WholeParameter &parameter) {
  return cast<RankedTensorType>(parameter.value.getType()).getNumElements();
}

/// Streams of dropouts are below 2^31.
int64_t streamOf(StringRef name) {
  return (int64_t(1) << 31) | static_cast<int64_t>(llvm::xxh3_64bits(name) & 0x7fffffff);
}

struct ScheduleQuantization : impl::ScheduleQuantizationBase<ScheduleQuantization>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    settings = {groups, scheme == "symmetric", rounding == "stochastic", mixed};
    if ((scheme != "symmetric" && scheme != "asymmetric") || (rounding != "nearest" && rounding != "stochastic") ||
        groups < 1) {
      getOperation().emitError("ds-schedule-quantization: expected groups of at least 1, scheme symmetric or "
                               "asymmetric, rounding nearest or stochastic, found ")
          << groups.getValue() << ", '" << scheme << "' and '" << rounding << "'";
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    auto eval = symbols.lookup<func::FuncOp>("eval");
    if (!eval) {
      getOperation().emitError("ds-schedule-quantization: expected the entries of a training step, found no 'eval'");
      return signalPassFailure();
    }
    if (failed(choose(eval)) || failed(buildQuantize(eval)))
      return signalPassFailure();
    for (StringRef name : {"eval", "micro", "curvature"})
      if (auto entry = symbols.lookup<func::FuncOp>(name); entry && failed(rewrite(entry)))
        return signalPassFailure();
  }

private:
  LogicalResult choose(func::FuncOp eval);
  FailureOr<QuantizerInputs> addInputs(func::FuncOp entry, SizeAnalysis &sizes);
  LogicalResult rewrite(func::FuncOp entry);
  LogicalResult buildQuantize(func::FuncOp eval);
  bool isQuantized(const WholeParameter &parameter) const { return blocks.contains(parameter.name); }
  /// Made where the builder stands; null where a shape rule has refused.
  Value imageOf(const WholeParameter &parameter, Quantizer &quantizer) const;
  FailureOr<Quantizer> quantizerOf(func::FuncOp entry, DsBuilder &b);

  QuantizerSettings settings;
  llvm::DenseMap<StringAttr, int64_t> blocks; // of what is quantized
  int64_t blockCount = 1;
};

/// Which parameters are quantized, in which block.
LogicalResult ScheduleQuantization::choose(func::FuncOp eval) {
  count("parameters quantized", 0);
  SmallVector<StringRef> odd;
  int64_t common = 0; // divisor of all numbers of elements
  llvm::SmallDenseSet<StringAttr> seen;
  for (const WholeParameter &parameter : wholeParametersOf(eval)) {
    if (!seen.insert(parameter.name).second)
      continue;
    int64_t rank = cast<RankedTensorType>(parameter.value.getType()).getRank(), elements = elementsOf(parameter);
    if (rank < 2 || elements == 0) {
      eval.emitRemark() << "'" << parameter.name.getValue() << "' is not quantized: it has "
                        << (elements == 0 ? "no elements"
                            : rank == 1   ? "1 dimension"
                                          : "no dimension");
      continue;
    }
    common = std::gcd(common, elements);
    if (elements % settings.groups != 0)
      odd.push_back(parameter.name.getValue());
    blocks[parameter.name] = 0;
    count("parameters quantized");
  }
  if (blocks.empty())
    return eval.emitError() << "quantize_training: no parameter has 2 dimensions or more, which are those that it "
                               "quantizes";
  if (!odd.empty()) {
    int64_t most = std::min(settings.groups, common);
    while (common % most != 0)
      --most;
    return eval.emitError() << "quantize_groups: found " << settings.groups
                            << ", expected a divisor of every number of elements, as it is not of " << listed(odd)
                            << "; the greatest below it is " << most;
  }
  auto layersOf = findBlocks(eval, {layerName, layers});
  if (failed(layersOf))
    return failure();
  for (auto &[name, block] : blocks) {
    block = layersOf->of.lookup(name);
    blockCount = std::max(blockCount, block + 1);
  }
  OpBuilder builder(&getContext());
  NamedAttrList list;
  for (auto [name, block] : blocks)
    list.set(name, builder.getI64IntegerAttr(block));
  getOperation()->setAttr(ds::quantizedAttr, list.getDictionary(&getContext()));
  return success();
}

FailureOr<QuantizerInputs> ScheduleQuantization::addInputs(func::FuncOp entry, SizeAnalysis &sizes) {
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    if (auto name = entry.getArgAttrOfType<StringAttr>(i, ds::nameAttr);
        name && name.getValue().starts_with("quantize_"))
      return entry.emitError()
             << "expected inputs, labels and parameters of other names than those that quantize_training "
                "adds, which begin with 'quantize_', found '"
             << name.getValue() << "'";
  Signature signature(entry);
  OpBuilder builder(&getContext());
  auto input = [&](StringRef name, Type type, const SizeVector &shape) {
    Value value = signature.input(name, type, shape);
    sizes.set(value, TensorFacts{type, shape, std::nullopt});
    return value;
  };
  SizeVector perBlock = {SizeExpr(blockCount)};
  QuantizerInputs inputs;
  inputs.levels = input("quantize_levels", builder.getF64Type(), perBlock);
  if (settings.isMixed)
    inputs.shares = input("quantize_shares", builder.getF64Type(), perBlock);
  if (settings.isStochastic) {
    inputs.random.seed = input("quantize_seed", builder.getI64Type(), {});
    inputs.random.step = input("quantize_step", builder.getI64Type(), {});
  }
  return inputs;
}

FailureOr<Quantizer> ScheduleQuantization::quantizerOf(func::FuncOp entry, DsBuilder &b) {
  b.setLocation(entry.getLoc());
  auto inputs = addInputs(entry, b.getAnalysis());
  if (failed(inputs))
    return failure();
  if (settings.isStochastic)
    inputs->random.micro = b.scalar(b.i64(), 0);
  return Quantizer(b, settings, *inputs);
}

Value ScheduleQuantization::imageOf(const WholeParameter &parameter, Quantizer &quantizer) const {
  return quantizer.image(parameter.value, blocks.lookup(parameter.name), streamOf(parameter.name.getValue()));
}

/// Where a parameter is there: behind what gathers it, if anything does.
static void setInsertionPointBehind(Value parameter, OpBuilder &builder) {
  if (Operation *gathered = parameter.getDefiningOp())
    builder.setInsertionPointAfter(gathered);
}

/// The branch that the use is in, where the parameter is gathered for that branch alone; null: it is there for all.
static Block *branchOf(OpOperand &use) {
  auto wait = use.get().getDefiningOp<dist::WaitOp>();
  if (!wait || !wait.getStart().conditionValue())
    return nullptr;
  auto branch = dyn_cast<scf::IfOp>(wait->getBlock()->findAncestorOpInBlock(*use.getOwner()));
  return branch ? branch.thenBlock() : nullptr;
}

/// Whatever reads a parameter reads its image.
LogicalResult ScheduleQuantization::rewrite(func::FuncOp entry) {
  auto sizes = SizeAnalysis::run(entry);
  if (failed(sizes))
    return failure();
  Block &body = entry.getBody().front();
  DsBuilder b(OpBuilder(&body, body.begin()), *sizes);
  auto quantizer = quantizerOf(entry, b);
  if (failed(quantizer))
    return failure();
  for (const WholeParameter &parameter : wholeParametersOf(entry)) {
    if (!isQuantized(parameter))
      continue;
    llvm::MapVector<Block *, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : parameter.value.getUses())
      uses[branchOf(use)].push_back(&use);
    for (auto &[branch, readers] : uses) {
      if (branch)
        b.getBuilder().setInsertionPointToStart(branch);
      else
        setInsertionPointBehind(parameter.value, b.getBuilder());
      Value image = imageOf(parameter, *quantizer);
      if (!image)
        return failure();
      for (OpOperand *use : readers)
        use->set(image);
    }
  }
  return success();
}

/// What computes nothing for the results goes, checks of inputs too, and so do inputs that nothing reads any more.
static void eraseUnread(func::FuncOp entry) {
  Block &body = entry.getBody().front();
  llvm::SmallPtrSet<Operation *, 32> kept = {body.getTerminator()};
  for (Operation &op : llvm::reverse(body))
    if (kept.contains(&op))
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *source = operand.getDefiningOp(); source && source->getBlock() == &body)
            kept.insert(source);
      });
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!kept.contains(&op))
      op.erase();
  llvm::BitVector gone(entry.getNumArguments());
  for (unsigned i = 0; i < entry.getNumArguments(); ++i)
    if (entry.getArgument(i).use_empty())
      gone.set(i);
  (void)entry.eraseArguments(gone);
}

/// The entry that hands out images, for who exports them: an evaluation that ends where parameters are there.
LogicalResult ScheduleQuantization::buildQuantize(func::FuncOp eval) {
  SymbolTable symbols(getOperation());
  if (Operation *other = symbols.lookup("quantize"); other && failed(symbols.renameToUnique(other, {})))
    return failure();
  func::FuncOp quantize = eval.clone();
  quantize.setName("quantize");
  getOperation().push_back(quantize);
  quantize.walk([&](Operation *op) { // collectives are told apart by their sites
    if (auto site = op->getAttrOfType<StringAttr>("site"))
      if (StringRef place = site.getValue(); place.consume_front("eval/"))
        op->setAttr("site", StringAttr::get(&getContext(), "quantize/" + place));
  });
  auto sizes = SizeAnalysis::run(quantize);
  if (failed(sizes))
    return failure();
  Block &body = quantize.getBody().front();
  DsBuilder b(OpBuilder(&body, body.begin()), *sizes);
  auto quantizer = quantizerOf(quantize, b);
  if (failed(quantizer))
    return failure();
  Signature signature(quantize);
  llvm::SmallDenseSet<StringAttr> seen;
  for (const WholeParameter &parameter : wholeParametersOf(quantize)) {
    if (!isQuantized(parameter) || !seen.insert(parameter.name).second)
      continue;
    setInsertionPointBehind(parameter.value, b.getBuilder());
    Value image = imageOf(parameter, *quantizer);
    if (!image)
      return failure();
    signature.result(image, parameter.name);
  }
  signature.finish();
  eraseUnread(quantize);
  return success();
}

} // namespace
} // namespace deepstride
