// ds-build-training-step: makes the entries of training of a model whose parameters are states. Works on the one entry
// of a module, after its blocks are recomposed and before anything is fused.
//
//   @main(x, w) -> y        @eval(x, labels, w) -> loss, counted, correct, y
//                     =>    @micro(x, labels, scale, first, w, w/gradient) -> loss, w/gradient
//                           @update(rate, momentum, step, scale, w, w/gradient, w/exp_avg, ...) -> norm, finite, w, ...
#include "passes/Report.h"
#include "passes/training/Loss.h"
#include "passes/training/Optimizers.h"
#include "passes/training/Passes.h"
#include "passes/training/ReverseSweep.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_BUILDTRAININGSTEP
#include "passes/training/Passes.h.inc"

namespace {

/// Arguments and results of an entry that is being made, with their attributes.
class Signature {
public:
  explicit Signature(func::FuncOp function) : function(function), builder(function.getContext()) {}

  Value input(StringRef name, Type element, ArrayRef<SizeExpr> sizes) {
    return argument(element, sizes, {{ds::nameAttr, builder.getStringAttr(name)}});
  }
  Value state(StringRef name, Type element, ArrayRef<SizeExpr> sizes) {
    return argument(element, sizes,
                    {{ds::nameAttr, builder.getStringAttr(name)}, {ds::stateAttr, builder.getStringAttr(name)}});
  }
  void result(Value value, StringRef name) { add(value, ds::nameAttr, name); }
  void newState(Value value, StringRef name) { add(value, ds::stateAttr, name); }

  /// Puts what was added in the place of the function's terminator.
  void finish() {
    Block &body = function.getBody().front();
    if (!body.empty() && body.back().hasTrait<OpTrait::IsTerminator>())
      body.back().erase();
    OpBuilder end = OpBuilder::atBlockEnd(&body);
    func::ReturnOp::create(end, function.getLoc(), values);
    function.setType(builder.getFunctionType(body.getArgumentTypes(), ValueRange(values).getTypes()));
    function.setAllResultAttrs(attributes);
  }

private:
  Value argument(Type element, ArrayRef<SizeExpr> sizes, ArrayRef<std::pair<StringRef, Attribute>> given) {
    SmallVector<int64_t> shape;
    for (const SizeExpr &size : sizes)
      shape.push_back(size.constant().value_or(ShapedType::kDynamic));
    NamedAttrList list;
    for (auto [name, value] : given)
      list.set(name, value);
    list.set(ds::dimsAttr, toAttribute(builder.getContext(), SizeVector(sizes)));
    unsigned number = function.getNumArguments();
    (void)function.insertArgument(number, RankedTensorType::get(shape, element),
                                  list.getDictionary(builder.getContext()), function.getLoc());
    return function.getArgument(number);
  }
  void add(Value value, StringRef attribute, StringRef name) {
    values.push_back(value);
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(attribute, builder.getStringAttr(name))));
  }

  func::FuncOp function;
  Builder builder;
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attributes;
};

struct Parameter {
  StringAttr name;
  BlockArgument value;
};

class StepBuilder {
public:
  StepBuilder(ModuleOp module, const OptimizerSettings &optimizer, const BuildTrainingStepOptions &options,
              PassReport &report)
      : module(module), optimizer(optimizer), options(options), report(report) {}

  LogicalResult run() {
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(ds::entryAttr)) {
        if (eval)
          return function.emitError() << "expected a model of one entry, found several";
        eval = function;
      }
    if (!eval)
      return module.emitError() << "expected a model, found no entry";
    auto found = SizeAnalysis::run(eval);
    if (failed(found))
      return failure();
    analysis = std::move(*found);
    if (failed(addLoss()))
      return failure();
    func::FuncOp micro = eval.clone();
    finishEval();
    micro.setName("micro");
    module.insert(std::next(eval->getIterator()), micro);
    if (failed(buildMicro(micro)))
      return failure();
    return buildUpdate();
  }

private:
  DsBuilder builderAt(Operation *op, SizeAnalysis &sizes) {
    DsBuilder b(OpBuilder(op), sizes);
    b.setLocation(op->getLoc());
    return b;
  }

  /// The number of the result of that name.
  FailureOr<unsigned> resultOf(StringRef name, StringRef option) {
    std::string legal;
    for (unsigned i = 0; i < eval.getNumResults(); ++i) {
      auto own = eval.getResultAttrOfType<StringAttr>(i, ds::nameAttr);
      if (own && own.getValue() == name)
        return i;
      legal += (legal.empty() ? "'" : ", '") + (own ? own.str() : "") + "'";
    }
    return eval.emitError() << "--" << option << ": expected an output of the model, found '" << name << "'; legal are "
                            << legal;
  }

  LogicalResult addLoss();
  void finishEval();
  LogicalResult buildMicro(func::FuncOp micro);
  LogicalResult buildUpdate();
  LogicalResult updateAll(DsBuilder &b, func::FuncOp update, ArrayRef<Value> states, Value isFinite, Value factor,
                          const StepNumbers &numbers, SmallVector<Value> &next);
  static SmallVector<Parameter> parametersOf(func::FuncOp function) {
    SmallVector<Parameter> parameters;
    for (BlockArgument argument : function.getArguments())
      if (function.getArgAttr(argument.getArgNumber(), ds::initialAttr))
        parameters.push_back({function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ds::stateAttr), argument});
    return parameters;
  }
  static std::string stateName(const Parameter &parameter, StringRef suffix) {
    return (parameter.name.getValue() + "/" + suffix).str();
  }

  ModuleOp module;
  const OptimizerSettings &optimizer;
  const BuildTrainingStepOptions &options;
  PassReport &report;
  func::FuncOp eval;
  SizeAnalysis analysis;
};

LogicalResult StepBuilder::addLoss() {
  Operation *end = eval.getBody().front().getTerminator();
  DsBuilder b = builderAt(end, analysis);
  bool isOutput = options.loss != "cross_entropy" && options.loss != "mse";
  auto number = resultOf(isOutput ? options.loss : options.logits, isOutput ? "loss" : "logits");
  if (failed(number))
    return failure();
  Value value = end->getOperand(*number);
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
    if (!isa<FloatType>(b.element(value)) || sizes.size() < (options.shiftLabels ? 2u : 1u) + (isClasses ? 1 : 0))
      return eval.emitError() << "--logits: expected floats of [..., classes], found '" << options.logits << "' of "
                              << value.getType();
    if (isClasses)
      sizes.pop_back();
    Type element = isClasses ? b.i64() : b.f32();
    BlockArgument labels = cast<BlockArgument>(Signature(eval).input(options.labels, element, sizes));
    analysis.set(labels, TensorFacts{element, sizes, std::nullopt});
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
  ReverseSweep sweep(body, llvm::map_to_vector(parameters, [](const Parameter &p) -> Value { return p.value; }));
  if (failed(sweep.run(loss, weight, b)))
    return failure();
  b.setLocation(micro.getLoc());
  report.count("ops reversed", sweep.opCount());
  signature.result(loss, "loss");
  for (const Parameter &parameter : parameters) {
    Type element = b.element(parameter.value);
    Value gradient = sweep.gradient(parameter.value);
    if (!gradient) {
      micro.emitRemark() << "the loss does not depend on '" << parameter.name.getValue() << "': its gradient is 0";
      gradient = b.broadcast(b.scalar(element, 0), b.sizes(parameter.value));
    }
    std::string name = stateName(parameter, "gradient");
    Value before = signature.state(name, element, b.sizes(parameter.value));
    sizes.set(before, TensorFacts{element, b.sizes(parameter.value), std::nullopt});
    if (isFirst)
      gradient = b.select(isFirst, gradient, b.add(before, gradient));
    if (!gradient)
      return failure();
    signature.newState(gradient, name);
  }
  signature.finish();
  return success();
}

LogicalResult StepBuilder::updateAll(DsBuilder &b, func::FuncOp update, ArrayRef<Value> states, Value isFinite,
                                     Value factor, const StepNumbers &numbers, SmallVector<Value> &next) {
  Location where = update.getLoc();
  OpBuilder &builder = b.getBuilder();
  Value condition = tensor::ExtractOp::create(builder, where, isFinite, ValueRange{});
  SmallVector<Parameter> parameters = parametersOf(eval);
  size_t own = optimizer.states().size() + 2; // the parameter and its gradient
  llvm::Regex noDecay(options.noDecay);
  SmallVector<Type> types;
  SmallVector<Value> kept;
  for (auto [number, state] : llvm::enumerate(states))
    if (number % own != 1) {
      types.push_back(b.facts(state).type());
      kept.push_back(state);
    }
  auto branch = scf::IfOp::create(builder, where, types, condition, /*withElseRegion=*/true);
  auto fill = [&](Block &block, llvm::function_ref<LogicalResult(SmallVector<Value> &)> make) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&block);
    SmallVector<Value> values;
    if (failed(make(values)))
      return failure();
    scf::YieldOp::create(builder, where, values);
    return success();
  };
  LogicalResult isBuilt = fill(*branch.thenBlock(), [&](SmallVector<Value> &values) {
    for (auto [number, parameter] : llvm::enumerate(parameters)) {
      ArrayRef<Value> mine = states.slice(number * own, own);
      Value gradient = b.mul(mine[1], b.cast(factor, b.element(mine[1])));
      bool decays = options.noDecay.empty() || !noDecay.match(parameter.name.getValue());
      SmallVector<Value> updated =
          updateParameter(b, optimizer, numbers, mine[0], gradient, mine.drop_front(2), decays);
      if (updated.empty())
        return failure();
      llvm::append_range(values, updated);
    }
    return success();
  });
  if (failed(isBuilt) || failed(fill(*branch.elseBlock(), [&](SmallVector<Value> &values) {
        values = kept;
        return success();
      })))
    return failure();
  for (auto [result, state] : llvm::zip_equal(branch.getResults(), kept))
    b.getAnalysis().set(result, b.facts(state));
  next.assign(branch.getResults().begin(), branch.getResults().end());
  return success();
}

LogicalResult StepBuilder::buildUpdate() {
  OpBuilder builder(module.getContext());
  auto update = func::FuncOp::create(eval.getLoc(), "update", builder.getFunctionType({}, {}));
  update->setAttr(ds::entryAttr, builder.getUnitAttr());
  module.push_back(update);
  Block *body = update.addEntryBlock();
  builder.setInsertionPointToStart(body);
  func::ReturnOp::create(builder, update.getLoc());
  Signature signature(update);
  SizeAnalysis sizes;
  DsBuilder b = builderAt(body->getTerminator(), sizes);
  auto known = [&](Value value, Type element, const SizeVector &shape) {
    sizes.set(value, TensorFacts{element, shape, std::nullopt});
    return value;
  };
  auto number = [&](StringRef name) { return known(signature.input(name, b.f64(), {}), b.f64(), {}); };
  StepNumbers numbers{number("learning_rate"), number("momentum"), number("step")};
  Value scale = number("loss_scale");
  SmallVector<Value> states;
  SmallVector<std::string> names;
  Value squares;
  for (const Parameter &parameter : parametersOf(eval)) {
    Type element = getElementTypeOrSelf(parameter.value);
    SizeVector shape = analysis.facts(parameter.value).sizes;
    auto add = [&](const std::string &name) {
      names.push_back(name);
      return states.emplace_back(known(signature.state(name, element, shape), element, shape));
    };
    Value own = add(parameter.name.str());
    update.setArgAttr(cast<BlockArgument>(own).getArgNumber(), ds::initialAttr,
                      eval.getArgAttr(parameter.value.getArgNumber(), ds::initialAttr));
    Value gradient = add(stateName(parameter, "gradient"));
    for (StringRef suffix : optimizer.states())
      add(stateName(parameter, suffix));
    Value sum =
        b.cast(b.reduce(ds::ReduceKind::sum_square, gradient, axesFrom(0, b.rank(gradient)), /*keep=*/false), b.f64());
    squares = squares ? b.add(squares, sum) : sum;
  }
  Value norm = b.div(b.unary(ds::UnaryKind::sqrt, squares), scale), none = b.scalar(b.f64(), 0);
  Value isFinite = b.binary(ds::BinaryKind::eq, b.sub(norm, norm), none);
  Value factor = b.div(b.scalar(b.f64(), 1), scale);
  if (options.clip > 0) {
    Value ratio = b.div(b.scalar(b.f64(), options.clip), b.add(norm, 1e-6));
    factor = b.mul(factor, b.binary(ds::BinaryKind::min, ratio, 1));
  }
  SmallVector<Value> next;
  if (!factor || failed(updateAll(b, update, states, isFinite, factor, numbers, next)))
    return failure();
  signature.result(norm, "grad_norm");
  signature.result(isFinite, "finite");
  size_t own = optimizer.states().size() + 2, place = 0;
  for (auto [index, name] : llvm::enumerate(names))
    if (index % own != 1)
      signature.newState(next[place++], name);
  signature.finish();
  return success();
}

struct BuildTrainingStep : impl::BuildTrainingStepBase<BuildTrainingStep>, PassReport {
  using Base::Base;
  void runOnOperation() override {
    BuildTrainingStepOptions options;
    options.loss = loss;
    options.logits = logits;
    options.labels = labels;
    options.shiftLabels = shiftLabels;
    options.ignoreIndex = ignoreIndex;
    options.accumulates = accumulates;
    options.clip = clip;
    options.noDecay = noDecay;
    std::string error;
    auto settings = OptimizerSettings::parse(optimizer, error);
    if (!settings)
      getOperation().emitError() << error;
    if (!settings || failed(StepBuilder(getOperation(), *settings, options, *this).run()))
      return signalPassFailure();
  }
};
} // namespace

} // namespace deepstride
