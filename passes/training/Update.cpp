// All parameters are updated behind one branch, so that a step that overflowed leaves every bit as it was.
#include "passes/training/Update.h"

#include "dialects/ds/Provenance.h"
#include "passes/training/Layers.h"
#include "passes/training/Signature.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <set>

using namespace mlir;

namespace deepstride {

namespace {
class UpdateBuilder {
public:
  UpdateBuilder(func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                const MicroStates &micro)
      : model(model), analysis(analysis), settings(settings), micro(micro) {}
  LogicalResult run();

private:
  Value ifItRan(DsBuilder &b, const Parameter &parameter, Value gradient);
  LogicalResult updateAll(DsBuilder &b, func::FuncOp update, ArrayRef<Value> states, Value isFinite, Value factor,
                          const StepNumbers &numbers, SmallVector<Value> &next);

  func::FuncOp model;
  const SizeAnalysis &analysis;
  const UpdateSettings &settings;
  const MicroStates &micro;
  llvm::DenseMap<int64_t, Value> ran; // blocks that have gradients
};

/// What is computed of a gradient; 0 where its block was dropped in all micro-batches, and has written none.
Value UpdateBuilder::ifItRan(DsBuilder &b, const Parameter &parameter, Value computed) {
  auto layer = micro.layers.find(parameter.name.getValue());
  return layer == micro.layers.end() ? computed
                                     : b.select(ran.lookup(layer->second), computed, b.scalar(b.element(computed), 0));
}

LogicalResult UpdateBuilder::updateAll(DsBuilder &b, func::FuncOp update, ArrayRef<Value> states, Value isFinite,
                                       Value factor, const StepNumbers &numbers, SmallVector<Value> &next) {
  Location where = update.getLoc();
  OpBuilder &builder = b.getBuilder();
  Value condition = tensor::ExtractOp::create(builder, where, isFinite, ValueRange{});
  SmallVector<Parameter> parameters = parametersOf(model);
  size_t own = settings.optimizer.states().size() + 2; // the parameter and its gradient
  auto module = update->getParentOfType<ModuleOp>();
  SmallVector<StringRef> names;
  for (const Parameter &parameter : parameters)
    names.push_back(parameter.name.getValue());
  auto isSpared = [&](StringRef name) {
    return !settings.noDecay.empty() && isNamedBy(module, name, settings.noDecay);
  };
  if (!settings.noDecay.empty() && llvm::none_of(names, isSpared))
    return model.emitError() << "--no-decay: '" << settings.noDecay << "' matches no parameter; those are "
                             << listed(names);
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
      b.setLocation(withParameter(where, WorkRole::Update, parameter.name.getValue()));
      Value gradient = ifItRan(b, parameter, mine[1]);
      gradient = b.mul(gradient, b.cast(factor, b.element(gradient)));
      bool decays = !isSpared(parameter.name.getValue());
      SmallVector<Value> updated =
          updateParameter(b, settings.optimizer, numbers, mine[0], gradient, mine.drop_front(2), decays);
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

LogicalResult UpdateBuilder::run() {
  OpBuilder builder(model.getContext());
  auto update = func::FuncOp::create(model.getLoc(), "update", builder.getFunctionType({}, {}));
  update->setAttr(ds::entryAttr, builder.getUnitAttr());
  model->getParentOfType<ModuleOp>().push_back(update);
  Block *body = update.addEntryBlock();
  builder.setInsertionPointToStart(body);
  func::ReturnOp::create(builder, update.getLoc());
  Signature signature(update);
  SizeAnalysis sizes;
  DsBuilder b(OpBuilder(body->getTerminator()), sizes);
  Location common = withPart(model.getLoc(), WorkRole::Update, "optimizer");
  b.setLocation(common);
  auto known = [&](Value value, Type element, const SizeVector &shape) {
    sizes.set(value, TensorFacts{element, shape, std::nullopt});
    return value;
  };
  auto number = [&](StringRef name) { return known(signature.input(name, b.f64(), {}), b.f64(), {}); };
  StepNumbers numbers{number("learning_rate"), number("momentum"), number("step")};
  Value scale = number("loss_scale");
  std::set<int64_t> gated;
  for (const auto &entry : micro.layers)
    gated.insert(entry.second);
  for (int64_t layer : gated)
    ran[layer] = known(signature.input(nameOfLayer(layerRan, layer), b.i1(), {}), b.i1(), {});
  SmallVector<Value> states;
  SmallVector<std::string> names;
  Value squares;
  for (const Parameter &parameter : parametersOf(model)) {
    Type element = getElementTypeOrSelf(parameter.value);
    SizeVector shape = analysis.facts(parameter.value).sizes;
    auto add = [&](const std::string &name) {
      names.push_back(name);
      return states.emplace_back(known(signature.state(name, element, shape), element, shape));
    };
    Value own = add(parameter.name.str());
    update.setArgAttr(cast<BlockArgument>(own).getArgNumber(), ds::initialAttr,
                      model.getArgAttr(parameter.value.getArgNumber(), ds::initialAttr));
    Value gradient = add(parameter.stateName("gradient"));
    for (StringRef suffix : settings.optimizer.states())
      add(parameter.stateName(suffix));
    b.setLocation(withParameter(model.getLoc(), WorkRole::Update, parameter.name.getValue()));
    // A norm fits f32 where the sum of its squares does not, and is added up in f64.
    Value length = b.reduce(ds::ReduceKind::l2, gradient, axesFrom(0, b.rank(gradient)), /*keep=*/false);
    length = b.cast(ifItRan(b, parameter, length), b.f64());
    Value sum = b.mul(length, length);
    squares = squares ? b.add(squares, sum) : sum;
  }
  b.setLocation(common);
  Value norm = b.div(b.unary(ds::UnaryKind::sqrt, squares), scale), none = b.scalar(b.f64(), 0);
  Value isFinite = b.binary(ds::BinaryKind::eq, b.sub(norm, norm), none);
  // A batch without rows, or a norm that the loss does not depend on, spoils statistics without spoiling gradients.
  SmallVector<std::tuple<Value, Value, Parameter>> statistics; // (running, moved, of the model)
  for (const Parameter &statistic : statisticsOf(model)) {
    if (!micro.moved.contains(statistic.name.getValue()))
      continue;
    Type element = getElementTypeOrSelf(statistic.value);
    SizeVector shape = analysis.facts(statistic.value).sizes;
    auto add = [&](const std::string &name) { return known(signature.state(name, element, shape), element, shape); };
    Value running = add(statistic.name.str()), now = add(statistic.stateName(movedSuffix));
    for (StringRef attribute : {ds::initialAttr, ds::statisticAttr})
      update.setArgAttr(cast<BlockArgument>(running).getArgNumber(), attribute,
                        model.getArgAttr(statistic.value.getArgNumber(), attribute));
    Value off = b.reduce(ds::ReduceKind::sum, b.sub(now, now), axesFrom(0, b.rank(now)), /*keep=*/false);
    isFinite = b.binary(ds::BinaryKind::bit_and, isFinite, b.binary(ds::BinaryKind::eq, off, b.scalar(element, 0)));
    statistics.emplace_back(running, now, statistic);
  }
  Value factor = b.div(b.scalar(b.f64(), 1), scale);
  if (settings.clip > 0) {
    Value ratio = b.div(b.scalar(b.f64(), settings.clip), b.add(norm, 1e-6));
    factor = b.mul(factor, b.binary(ds::BinaryKind::min, ratio, 1));
  }
  SmallVector<Value> next;
  if (!factor || failed(updateAll(b, update, states, isFinite, factor, numbers, next)))
    return failure();
  signature.result(norm, "grad_norm");
  signature.result(isFinite, "finite");
  size_t own = settings.optimizer.states().size() + 2, place = 0;
  for (auto [index, name] : llvm::enumerate(names))
    if (index % own != 1)
      signature.newState(next[place++], name);
  for (const auto &[running, now, statistic] : statistics)
    signature.newState(b.select(isFinite, now, running), statistic.name);
  signature.finish();
  return success();
}

} // namespace

LogicalResult buildUpdate(func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                          const MicroStates &micro) {
  return UpdateBuilder(model, analysis, settings, micro).run();
}

} // namespace deepstride
