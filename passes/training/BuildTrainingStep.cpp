// ds-build-training-step: makes the entries of training of a model whose parameters are states. Works on the one entry
// of a module, after its blocks are recomposed and before anything is fused.
//
//   @main(x, w) -> y        @eval(x, labels, w) -> loss, counted, correct, y
//                     =>    @micro(x, labels, scale, first, last, w, w/gradient) -> loss, w/gradient
//                           @update(rate, momentum, step, scale, w, w/gradient, w/exp_avg, ...) -> norm, finite, w, ...
#include "dialects/ds/Provenance.h"
#include "passes/Report.h"
#include "passes/training/CompressedUpdate.h"
#include "passes/training/Curvature.h"
#include "passes/training/Dropout.h"
#include "passes/training/Layers.h"
#include "passes/training/Loss.h"
#include "passes/training/Parameters.h"
#include "passes/training/Passes.h"
#include "passes/training/ReduceGradients.h"
#include "passes/training/ReverseSweep.h"
#include "passes/training/RoundParameters.h"
#include "passes/training/RunningStatistics.h"
#include "passes/training/ShareParameters.h"
#include "passes/training/Signature.h"
#include "passes/training/SparseTables.h"
#include "passes/training/Update.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_BUILDTRAININGSTEP
#include "passes/training/Passes.h.inc"

namespace {

class StepBuilder {
public:
  StepBuilder(ModuleOp module, const UpdateSettings &update, const BuildTrainingStepOptions &options,
              PassReport &report)
      : module(module), update(update), options(options), report(report) {}

  LogicalResult run() {
    auto entry = entryOf(module);
    if (failed(entry))
      return failure();
    eval = *entry;
    if (failed(checkNames(eval, options.labels, update.optimizer)) || failed(freeNames()))
      return failure();
    keepWideParameters(eval);
    if (failed(checkRunningStatistics(eval)))
      return failure();
    auto found = SizeAnalysis::run(eval);
    if (failed(found))
      return failure();
    analysis = std::move(*found);
    if (failed(findShared()) || failed(addLoss()))
      return failure();
    func::FuncOp micro = eval.clone(), curvature = options.layers > 0 ? eval.clone() : func::FuncOp();
    finishEval();
    removeDropouts(eval);
    removeGates(eval);
    if (curvature)
      removeGates(curvature); // of all blocks, as evaluation has them
    useRunningStatistics(eval);
    micro.setName("micro");
    module.insert(std::next(eval->getIterator()), micro);
    if (curvature) {
      curvature.setName("curvature");
      module.push_back(curvature);
    }
    if (failed(buildMicro(micro)) || (curvature && failed(addCurvature(curvature))))
      return failure();
    if (failed(buildUpdate(eval, analysis, update, {moved, layers, units})))
      return failure();
    if (update.optimizer.compresses && failed(buildCompressedUpdate(eval, analysis, update, {moved, layers, units})))
      return failure();
    return share(micro);
  }

private:
  DsBuilder builderAt(Operation *op, SizeAnalysis &sizes) {
    DsBuilder b(OpBuilder(op), sizes);
    b.setLocation(op->getLoc());
    return b;
  }

  bool keepsMasters() const { return update.sharing.rounded && update.sharing.areStatesShared(); }
  LogicalResult freeNames();
  LogicalResult findShared();
  LogicalResult share(func::FuncOp micro);
  LogicalResult addLoss();
  void finishEval();
  LogicalResult buildMicro(func::FuncOp micro);
  LogicalResult addCurvature(func::FuncOp curvature);

  ModuleOp module;
  const UpdateSettings &update;
  const BuildTrainingStepOptions &options;
  PassReport &report;
  func::FuncOp eval;
  SizeAnalysis analysis;
  llvm::StringSet<> moved;           // statistics that micro-batches move
  llvm::StringMap<int64_t> layers;   // parameters whose gradients a dropped block does not write
  SmallVector<Unit> units, messages; // what ranks share, whose gradients travel together
};

/// Weights may be called as the entries will be: their recipes step aside, states keep their names.
LogicalResult StepBuilder::freeNames() {
  SymbolTable symbols(module);
  for (StringRef name : {"eval", "micro", "update", "curvature", "local_norm", "update_compressed"})
    if (Operation *other = symbols.lookup(name); other && other != eval)
      if (failed(symbols.renameToUnique(other, {})))
        return failure();
  return success();
}

/// Units: what ranks share, and what travels together.
LogicalResult StepBuilder::findShared() {
  const SharingSettings &sharing = update.sharing;
  auto module = eval->getParentOfType<ModuleOp>();
  auto isSpared = [&](StringRef name) { return !update.noDecay.empty() && isNamedBy(module, name, update.noDecay); };
  units = findUnits(eval, analysis, isSpared, sharing.areParametersShared() ? sharing.persistence : 0,
                    sharing.modelPersistence);
  messages = units;
  if (sharing.hasSparseTables)
    messages = setTablesApart(eval, analysis, units, findSparseTables(eval, analysis, sharing.stage));
  if (!sharing.areStatesShared())
    return success();
  if (!sharing.areGradientsShared())
    units = messages; // at stage 1 a rank owns ranges of what travels
  auto refuse = [&](const Twine &what) {
    return eval.emitError() << "zero_optimization.stage " << sharing.stage << ": " << what;
  };
  if (update.optimizer.compresses)
    return refuse("momentum is compressed as a whole, of which ranks would have parts; expected stage 0 of 1-bit "
                  "optimizers");
  if (sharing.areParametersShared() && options.layers > 0)
    return refuse("eigenvalues are computed of whole parameters, expected stage 0 to 2");
  for (const Parameter &parameter : parametersOf(eval)) {
    if (!product(analysis.facts(parameter.value).sizes).constant())
      return refuse("expected parameters of constant size, found '" + parameter.name.getValue() + "'");
    if (parameter.name.getValue().starts_with("zero/")) // as Unit::stateName has it
      return refuse("expected no parameter whose name begins with 'zero/', as those of shared states do, found '" +
                    parameter.name.getValue() + "'");
  }
  for (Unit &unit : units)
    if (unit.element.isF32())
      unit.rounded = sharing.rounded;
  report.count("units", units.size());
  return success();
}

LogicalResult StepBuilder::share(func::FuncOp micro) {
  if (FloatType rounded = update.sharing.rounded)
    for (func::FuncOp entry : {eval, micro})
      roundParameters(entry, rounded, /*areStored=*/keepsMasters());
  if (!update.sharing.areStatesShared())
    return success();
  auto module = eval->getParentOfType<ModuleOp>();
  module.lookupSymbol<func::FuncOp>("update")->setAttr(ds::unitsAttr, describeUnits(eval, analysis, units));
  SmallVector<Parameter> parameters = parametersOf(eval); // whose names stay where the arguments go
  if (update.sharing.areParametersShared() && (failed(gatherParameters(eval, units, update.sharing, "eval")) ||
                                               failed(gatherParameters(micro, units, update.sharing, "micro"))))
    return failure();
  markStates(module, units, parameters, update.optimizer.states(), update.sharing);
  return success();
}

LogicalResult StepBuilder::addLoss() {
  Operation *end = eval.getBody().front().getTerminator();
  DsBuilder b = builderAt(end, analysis);
  b.setLocation(withPart(end->getLoc(), WorkRole::Forward, "loss"));
  bool isOutput = options.loss != "cross_entropy" && options.loss != "mse";
  auto number = outputNamed(eval, isOutput ? options.loss : options.logits, isOutput ? "loss" : "logits");
  if (failed(number))
    return failure();
  Value value = end->getOperand(*number);
  // A reference in f64 rounds its outputs; what is judged is what it computed.
  if (auto cast = value.getDefiningOp<ds::CastOp>(); cast && getElementTypeOrSelf(cast.getInput()).isF64())
    value = cast.getInput();
  Loss loss{value, {}};
  if (isOutput) {
    if (!isa<FloatType>(b.element(value)) || !product(b.sizes(value)).isConstant(1))
      return eval.emitError() << "--loss: expected an output of one float, found '" << options.loss << "' of "
                              << value.getType();
    loss.mean = b.reshape(value, {});
  } else {
    for (unsigned i = 0; i < eval.getNumArguments(); ++i)
      if (auto own = eval.getArgAttrOfType<StringAttr>(i, ds::nameAttr); own && own.getValue() == options.labels)
        return eval.emitError() << "--labels: '" << options.labels << "' is an input of the model already";
    SizeVector sizes = b.sizes(value);
    bool isClasses = options.loss == "cross_entropy";
    if (options.shiftLabels && sizes.size() < 3)
      return eval.emitError() << "--shift-labels: expected logits of at least 3 axes, [batch, length, classes], found '"
                              << options.logits << "' of " << value.getType();
    if (!isa<FloatType>(b.element(value)) || sizes.size() < (isClasses ? 2 : 1))
      return eval.emitError() << "--logits: expected floats of [..., classes], found '" << options.logits << "' of "
                              << value.getType();
    if (isClasses)
      sizes.pop_back();
    Type element = isClasses ? b.i64() : b.f32();
    BlockArgument labels = cast<BlockArgument>(Signature(eval).input(options.labels, element, sizes));
    analysis.set(labels, TensorFacts{element, sizes, std::nullopt});
    OpBuilder own(module.getContext());
    NamedAttrList judged;
    judged.set("labels", own.getStringAttr(options.labels));
    if (auto classes = isClasses ? b.sizes(value).back().constant() : std::nullopt)
      judged.set("classes", own.getI64IntegerAttr(*classes));
    judged.set("ignored_label", own.getI64IntegerAttr(options.ignoreIndex));
    judged.set("shifts_labels", own.getBoolAttr(options.shiftLabels));
    module->setAttr(ds::trainingAttr, judged.getDictionary(module.getContext()));
    loss = isClasses ? crossEntropy(b, value, labels, options.ignoreIndex, options.shiftLabels)
                     : meanSquaredError(b, value, labels);
  }
  if (!loss.mean)
    return failure();
  if (b.element(loss.mean).getIntOrFloatBitWidth() < 32)
    loss.mean = b.cast(loss.mean, b.f32());
  // What entries hand out of it is told apart by name.
  OpBuilder at(end);
  SmallVector<Value> operands = {loss.mean};
  SmallVector<Attribute> names = {at.getStringAttr("loss")};
  for (auto [name, counted] : {std::pair("counted", loss.counted), std::pair("correct", loss.correct)})
    if (counted) {
      operands.push_back(counted);
      names.push_back(at.getStringAttr(name));
    }
  eval->setAttr("ds.loss", at.getArrayAttr(names));
  llvm::append_range(operands, end->getOperands());
  end->setOperands(operands);
  return success();
}

/// Losses and counts first, then the model's own outputs.
void StepBuilder::finishEval() {
  Operation *end = eval.getBody().front().getTerminator();
  Signature signature(eval);
  auto names = cast<ArrayAttr>(eval->removeAttr("ds.loss"));
  for (auto [number, value] : llvm::enumerate(llvm::to_vector(end->getOperands()))) {
    if (number < names.size()) {
      signature.result(value, cast<StringAttr>(names[number]).getValue());
      continue;
    }
    auto own = eval.getResultAttrOfType<StringAttr>(static_cast<unsigned>(number - names.size()), ds::nameAttr);
    std::string name = own ? own.str() : "output" + std::to_string(number - names.size());
    if (llvm::is_contained(names.getAsValueRange<StringAttr>(), name))
      name = "model/" + name;
    signature.result(value, name);
  }
  eval.setName("eval");
  signature.finish();
}

LogicalResult StepBuilder::buildMicro(func::FuncOp micro) {
  micro->removeAttr("ds.loss");
  auto found = SizeAnalysis::run(micro);
  if (failed(found))
    return failure();
  SizeAnalysis sizes = std::move(*found);
  Block &body = micro.getBody().front();
  Operation *end = body.getTerminator();
  Value loss = end->getOperand(0);
  DsBuilder b = builderAt(end, sizes);
  b.setLocation(withPart(end->getLoc(), WorkRole::Backward, "loss"));
  Signature signature(micro);
  SmallVector<Parameter> parameters = parametersOf(micro);
  Type number = b.element(loss);
  auto scalarInput = [&](StringRef name, Type type) {
    Value input = signature.input(name, type, {});
    sizes.set(input, TensorFacts{type, {}, std::nullopt});
    return input;
  };
  // What the loss counts: 1 / micro-batches of a step, times the loss scale.
  Value weight = b.cast(scalarInput("loss_weight", b.f64()), number);
  Value isFirst = options.accumulates ? scalarInput("first", b.i1()) : Value();
  bool sendsOnce = (options.accumulates || update.optimizer.compresses) && !update.sharing.areGradientsShared();
  Value isLast = sendsOnce ? scalarInput("last", b.i1()) : Value();
  if (isLast) // the trainer counts rounds, of which ranks have as many
    micro.setArgAttr(cast<BlockArgument>(isLast).getArgNumber(), dist::uniformAttr, UnitAttr::get(micro.getContext()));
  RandomState random;
  if (hasDropout(micro))
    random = {scalarInput("random_seed", b.i64()), scalarInput("random_step", b.i64()),
              scalarInput("random_micro", b.i64())};
  auto statistics = moveRunningStatistics(micro, sizes, signature, isFirst);
  if (failed(statistics))
    return failure();
  LayerGradients layered(micro, parameters);
  ReverseSweep sweep(body, llvm::map_to_vector(parameters, [](const Parameter &p) -> Value { return p.value; }));
  if (failed(sweep.run(loss, weight, b)))
    return failure();
  report.count("ops reversed", sweep.opCount());
  signature.result(loss, "loss");
  SmallVector<Value> gradients;
  for (const Parameter &parameter : parameters) {
    b.setLocation(withParameter(micro.getLoc(), WorkRole::Backward, parameter.name.getValue()));
    Type element = b.element(parameter.value);
    Value gradient = sweep.gradient(parameter.value);
    if (!gradient) {
      micro.emitRemark() << "the loss does not depend on '" << parameter.name.getValue() << "': its gradient is 0";
      gradient = b.broadcast(b.scalar(element, 0), b.sizes(parameter.value));
    }
    Type kept = update.sharing.gradientOf(element);
    // Where the gradient is complete, not at the end: what it is computed of is needed no longer.
    OpBuilder::InsertionGuard guard(b.getBuilder());
    if (Operation *complete = gradient.getDefiningOp(); complete && complete->getBlock() == &body)
      b.getBuilder().setInsertionPointAfter(complete);
    if (update.sharing.areGradientsShared()) {
      gradients.push_back(b.cast(gradient, kept));
      continue;
    }
    std::string name = parameter.stateName("gradient");
    Value before = signature.state(name, kept, b.sizes(parameter.value));
    sizes.set(before, TensorFacts{kept, b.sizes(parameter.value), std::nullopt});
    // Parts of units have gradients of dropped blocks besides: zeros.
    bool isInBranch = !update.sharing.areStatesShared() &&
                      layered.addUp(parameter, gradient, before, options.accumulates, signature, b);
    if (isFirst && !isInBranch)
      gradient = b.select(isFirst, gradient, b.add(b.cast(before, element), gradient));
    if (!gradient)
      return failure();
    gradients.push_back(b.cast(gradient, kept));
  }
  layers = layered.layers();
  if (failed(reduceGradients(b, signature, {messages, parameters, gradients, isFirst, isLast}, update.sharing)))
    return failure();
  for (const auto &[statistic, value] : *statistics) {
    signature.newState(value, statistic.stateName(movedSuffix));
    moved.insert(statistic.name.getValue());
  }
  signature.finish();
  return random.seed ? expandDropouts(micro, sizes, random) : success();
}

LogicalResult StepBuilder::addCurvature(func::FuncOp curvature) {
  curvature->removeAttr("ds.loss");
  auto blocks = findBlocks(curvature, {options.layerName, options.layers});
  return failed(blocks) ? failure() : buildCurvature(curvature, *blocks, options.stability);
}

struct BuildTrainingStep : impl::BuildTrainingStepBase<BuildTrainingStep>, PassReport {
  using Base::Base;
  /// Null where there is no name.
  FailureOr<Type> floatNamed(StringRef option, StringRef name) {
    Builder builder(&getContext());
    Type type = llvm::StringSwitch<Type>(name)
                    .Case("f32", builder.getF32Type())
                    .Case("f16", builder.getF16Type())
                    .Case("bf16", builder.getBF16Type())
                    .Default({});
    if (!type && !name.empty())
      return getOperation().emitError() << option << ": expected f32, f16 or bf16, found '" << name << "'";
    return type;
  }
  UpdateSettings update(const OptimizerSettings &settings, Type wireType, Type gradientType) {
    SharingSettings sharing{shareStage, reduceBucket, gatherBucket, overlaps,
                            prefetch,   maxLive,      persistence,  modelPersistence};
    sharing.hasSparseTables = sparseTables;
    sharing.maxReuse = maxReuse;
    sharing.wire = wireType;
    sharing.gradients = gradientType;
    if (rounds == "bf16")
      sharing.rounded = BFloat16Type::get(&getContext());
    else if (rounds == "f16")
      sharing.rounded = Float16Type::get(&getContext());
    return {settings, clip, noDecay.getValue(), sharing};
  }
  void runOnOperation() override {
    BuildTrainingStepOptions options;
    options.loss = loss;
    options.logits = logits;
    options.labels = labels;
    options.shiftLabels = shiftLabels;
    options.ignoreIndex = ignoreIndex;
    options.accumulates = accumulates;
    options.layerName = layerName;
    options.layers = layers;
    options.stability = stability;
    std::string error;
    if (!rounds.empty() && rounds != "bf16" && rounds != "f16") {
      getOperation().emitError() << "rounds: expected bf16 or f16, found '" << rounds << "'";
      return signalPassFailure();
    }
    auto settings = OptimizerSettings::parse(optimizer, error);
    if (!settings)
      getOperation().emitError() << error;
    auto wireType = floatNamed("wire", wire), gradientType = floatNamed("gradients-in", gradientsIn);
    if (succeeded(gradientType) && *gradientType && settings && settings->compresses) {
      getOperation().emitError() << "gradients-in: expected none of 1-bit optimizers, found '" << gradientsIn << "'";
      gradientType = failure();
    }
    if (!settings || failed(wireType) || failed(gradientType) ||
        failed(StepBuilder(getOperation(), update(*settings, *wireType, *gradientType), options, *this).run()))
      return signalPassFailure();
  }
};
} // namespace

} // namespace deepstride
