// ds-schedule-quantization: mixture of quantization (MoQ). What computes on weights reads what they are rounded to, at
// a width that each call is given; the update keeps the weights themselves. Works on the entries of a training step,
// whose gradients are already ops: that of an image is its weight's.
//
//   @micro(x, ..., w) { ... ds.linear %x, %w ... }
//                     =>  @micro(x, ..., w, quantize_levels) { %image = scf.if ...   ds.linear %x, %image ... }
//                         @quantize(w, quantize_levels) -> image
#include "dialects/ds/Quantized.h"
#include "dialects/ds/UnitAttrs.h"
#include "passes/Report.h"
#include "passes/training/Blocks.h"
#include "passes/training/Passes.h"
#include "passes/training/Quantizers.h"
#include "passes/training/Signature.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/xxhash.h"
#include <numeric>

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_SCHEDULEQUANTIZATION
#include "passes/training/Passes.h.inc"

namespace {

int64_t elementsOf(const Parameter &parameter) {
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
  int64_t blockOf(const Parameter &parameter) const { return blocks.lookup(parameter.name); }
  bool isQuantized(const Parameter &parameter) const { return blocks.contains(parameter.name); }

  QuantizerSettings settings;
  llvm::DenseMap<StringAttr, int64_t> blocks; // of what is quantized
  int64_t blockCount = 1;
};

/// Which parameters are quantized, in which block.
LogicalResult ScheduleQuantization::choose(func::FuncOp eval) {
  count("parameters quantized", 0);
  for (unsigned i = 0; i < eval.getNumArguments(); ++i)
    if (auto part = eval.getArgAttrOfType<StringAttr>(i, ds::partAttr); part && part.getValue() == "shard")
      return eval.emitError()
             << "quantize_training: images are computed of whole parameters, which ranks have parts of "
                "with zero_optimization.stage 3; expected stage 0 to 2";
  SmallVector<StringRef> odd;
  int64_t common = 0; // divisor of all numbers of elements
  for (const Parameter &parameter : parametersOf(eval)) {
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

/// Whatever reads a parameter reads its image.
LogicalResult ScheduleQuantization::rewrite(func::FuncOp entry) {
  auto sizes = SizeAnalysis::run(entry);
  if (failed(sizes))
    return failure();
  auto inputs = addInputs(entry, *sizes);
  if (failed(inputs))
    return failure();
  Block &body = entry.getBody().front();
  DsBuilder b(OpBuilder(&body, body.begin()), *sizes);
  b.setLocation(entry.getLoc());
  if (settings.isStochastic)
    inputs->random.micro = b.scalar(b.i64(), 0);
  Quantizer quantizer(b, settings, *inputs);
  for (const Parameter &parameter : parametersOf(entry)) {
    if (!isQuantized(parameter))
      continue;
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : parameter.value.getUses())
      uses.push_back(&use);
    if (uses.empty())
      continue;
    Value image = quantizer.image(parameter.value, blockOf(parameter), streamOf(parameter.name.getValue()));
    if (!image)
      return failure();
    for (OpOperand *use : uses)
      use->set(image);
  }
  return success();
}

/// The entry that hands out images, for who exports them.
LogicalResult ScheduleQuantization::buildQuantize(func::FuncOp eval) {
  SymbolTable symbols(getOperation());
  if (Operation *other = symbols.lookup("quantize"); other && failed(symbols.renameToUnique(other, {})))
    return failure();
  OpBuilder builder(&getContext());
  auto quantize = func::FuncOp::create(eval.getLoc(), "quantize", builder.getFunctionType({}, {}));
  quantize->setAttr(ds::entryAttr, builder.getUnitAttr());
  getOperation().push_back(quantize);
  Block *body = quantize.addEntryBlock();
  builder.setInsertionPointToStart(body);
  func::ReturnOp::create(builder, quantize.getLoc());
  Signature signature(quantize);
  SizeAnalysis sizes;
  DsBuilder b(OpBuilder(body->getTerminator()), sizes);
  b.setLocation(eval.getLoc());
  auto inputs = addInputs(quantize, sizes);
  if (failed(inputs))
    return failure();
  if (settings.isStochastic)
    inputs->random.micro = b.scalar(b.i64(), 0);
  Quantizer quantizer(b, settings, *inputs);
  for (const Parameter &parameter : parametersOf(eval)) {
    if (!isQuantized(parameter))
      continue;
    auto type = cast<RankedTensorType>(parameter.value.getType());
    SizeVector shape(type.getShape().begin(), type.getShape().end());
    Value own = signature.state(parameter.name, type.getElementType(), shape);
    sizes.set(own, TensorFacts{type.getElementType(), shape, std::nullopt});
    quantize.setArgAttr(cast<BlockArgument>(own).getArgNumber(), ds::initialAttr,
                        eval.getArgAttr(parameter.value.getArgNumber(), ds::initialAttr));
    Value image = quantizer.image(own, blockOf(parameter), streamOf(parameter.name.getValue()));
    if (!image)
      return failure();
    signature.result(image, parameter.name);
  }
  signature.finish();
  return success();
}

} // namespace
} // namespace deepstride
