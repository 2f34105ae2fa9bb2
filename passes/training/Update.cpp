// All parameters are updated behind one branch, so that a step that overflowed leaves every bit as it was.
#include "passes/training/Update.h"

#include "dialects/ds/Provenance.h"
#include "passes/training/Communication.h"
#include "passes/training/GradientNorm.h"
#include "passes/training/Layers.h"
#include "passes/training/SharedTrust.h"
#include "passes/training/Signature.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <set>

using namespace mlir;

namespace deepstride {

namespace {

/// What the optimizer updates in one go: a parameter, or this rank's part of a unit.
struct Piece {
  std::string name; // of the parameter, for messages and profiles, or of the unit
  bool decays = true;
  Value value, gradient, ran; // ran: without which the gradient is 0; null: it is always there
  std::string valueName;
  Value image; // what is read of the value, in fewer bits; null: the value itself
  std::string imageName;
  SmallVector<Value> states;
  SmallVector<std::string> stateNames;
};

class UpdateBuilder {
public:
  UpdateBuilder(func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                const MicroStates &micro)
      : model(model), analysis(analysis), settings(settings), micro(micro) {}
  LogicalResult run();

private:
  bool isSpared(StringRef name) const;
  LogicalResult checkSpared();
  Value known(Value value, const TensorFacts &facts);
  Value state(const std::string &name, const TensorFacts &facts);
  Value ranOf(StringRef parameter) const;
  Location at(const Piece &piece);

  void markUniform(Value argument);
  void addInputs();
  void addParameters();
  void addUnits();
  Value norm(DsBuilder &b);
  Value addStatistics(DsBuilder &b);
  SmallVector<Value> updatePieces(DsBuilder &b, Value factor);
  LogicalResult updateAll(DsBuilder &b, Value isFinite, Value factor);
  void gather(DsBuilder &b);

  func::FuncOp model;
  const SizeAnalysis &analysis;
  const UpdateSettings &settings;
  const MicroStates &micro;

  func::FuncOp update;
  std::optional<Signature> signature;
  SizeAnalysis sizes;
  StepNumbers numbers;
  Value scale;
  SmallVector<Parameter> parameters;
  SmallVector<Piece> pieces;
  llvm::DenseMap<int64_t, Value> ran;                          // blocks that have gradients
  std::vector<std::pair<Value, std::string>> next;             // states besides those of pieces
  std::vector<std::tuple<Value, Value, Parameter>> statistics; // (running, moved, of the model)
};

Value UpdateBuilder::known(Value value, const TensorFacts &facts) {
  sizes.set(value, facts);
  return value;
}

Value UpdateBuilder::state(const std::string &name, const TensorFacts &facts) {
  return known(signature->state(name, facts.elementType, facts.sizes), facts);
}

bool UpdateBuilder::isSpared(StringRef name) const {
  return !settings.noDecay.empty() && isNamedBy(model->getParentOfType<ModuleOp>(), name, settings.noDecay);
}

LogicalResult UpdateBuilder::checkSpared() {
  SmallVector<StringRef> names;
  for (const Parameter &parameter : parameters)
    names.push_back(parameter.name.getValue());
  if (settings.noDecay.empty() || llvm::any_of(names, [&](StringRef name) { return isSpared(name); }))
    return success();
  return model.emitError() << "--no-decay: '" << settings.noDecay << "' matches no parameter; those are "
                           << listed(names);
}

Value UpdateBuilder::ranOf(StringRef parameter) const {
  auto layer = micro.layers.find(parameter);
  return layer == micro.layers.end() ? Value() : ran.lookup(layer->second);
}

Location UpdateBuilder::at(const Piece &piece) {
  return settings.sharing.areStatesShared() ? withPart(model.getLoc(), WorkRole::Update, "optimizer")
                                            : withParameter(model.getLoc(), WorkRole::Update, piece.name);
}

void UpdateBuilder::addInputs() {
  MLIRContext *context = model.getContext();
  Type f64 = Float64Type::get(context), i1 = IntegerType::get(context, 1);
  auto input = [&](StringRef name, Type type) { // all ranks get the same
    Value value = known(signature->input(name, type, {}), {type, {}, std::nullopt});
    markUniform(value);
    return value;
  };
  auto number = [&](StringRef name) { return input(name, f64); };
  numbers = {number("learning_rate"), number("momentum"), number("step")};
  scale = number("loss_scale");
  std::set<int64_t> gated;
  for (const auto &entry : micro.layers)
    gated.insert(entry.second);
  for (int64_t layer : gated)
    ran[layer] = input(nameOfLayer(layerRan, layer), i1);
}

void UpdateBuilder::markUniform(Value argument) {
  update.setArgAttr(cast<BlockArgument>(argument).getArgNumber(), dist::uniformAttr, UnitAttr::get(model.getContext()));
}

/// Each parameter with all of its states.
void UpdateBuilder::addParameters() {
  for (const Parameter &parameter : parameters) {
    TensorFacts facts = analysis.facts(parameter.value);
    facts.contents.reset();
    StringRef name = parameter.name.getValue();
    Piece &piece = pieces.emplace_back();
    piece.name = piece.valueName = name.str();
    piece.decays = !isSpared(name);
    piece.ran = ranOf(name);
    piece.value = state(piece.valueName, facts);
    update.setArgAttr(cast<BlockArgument>(piece.value).getArgNumber(), ds::initialAttr,
                      model.getArgAttr(parameter.value.getArgNumber(), ds::initialAttr));
    TensorFacts kept = facts;
    kept.elementType = settings.sharing.gradientOf(facts.elementType);
    piece.gradient = state(parameter.stateName("gradient"), kept);
    for (StringRef suffix : settings.optimizer.states()) {
      piece.stateNames.push_back(parameter.stateName(suffix));
      bool isNumber = OptimizerSettings::isNumber(suffix);
      TensorFacts number{Float64Type::get(model.getContext()), {}, std::nullopt};
      piece.states.push_back(state(piece.stateNames.back(), isNumber ? number : facts));
    }
  }
}

/// Each unit's part that this rank owns.
void UpdateBuilder::addUnits() {
  for (const Unit &unit : micro.units) {
    TensorFacts facts{unit.element, {unit.shard()}, std::nullopt};
    Piece &piece = pieces.emplace_back();
    piece.name = unit.name;
    piece.valueName = unit.ownStateName();
    piece.decays = !isSpared(parameters[unit.parameters.front()].name.getValue());
    piece.value = state(piece.valueName, facts);
    if (unit.rounded) {
      piece.imageName = unit.stateName();
      piece.image = state(piece.imageName, {unit.rounded, facts.sizes, std::nullopt});
    }
    for (StringRef suffix : settings.optimizer.states()) {
      piece.stateNames.push_back(unit.stateName(suffix));
      piece.states.push_back(state(piece.stateNames.back(), facts));
    }
    facts.elementType = settings.sharing.gradientOf(unit.element);
    piece.gradient = state(unit.stateName("gradient"), facts);
  }
}

Value UpdateBuilder::norm(DsBuilder &b) {
  int64_t elements = 0;
  for (const Parameter &parameter : parameters) // with the rest of a block of each
    elements += product(analysis.facts(parameter.value).sizes).constant().value_or(0) + normBlock;
  GradientNorm norm(elements);
  for (const Piece &piece : pieces) {
    b.setLocation(at(piece));
    norm.add(b, piece.gradient, piece.ran, b.element(piece.value));
  }
  b.setLocation(withPart(model.getLoc(), WorkRole::Update, "optimizer"));
  auto combine = [&](Value number, bool isMaximum) {
    return Communication(b)
        .allReduce(isMaximum ? dist::Reduction::max : dist::Reduction::sum, number, isMaximum ? "norm/max" : "norm/sum")
        .finish(b)
        .front();
  };
  Value all = settings.sharing.areStatesShared() ? norm.finish(b, combine) : norm.finish(b, nullptr);
  return b.div(all, scale);
}

/// Whether what micro-batches have moved statistics to is finite: a batch without rows, or a norm that the loss does
/// not depend on, spoils statistics without spoiling gradients. Null where there are none.
Value UpdateBuilder::addStatistics(DsBuilder &b) {
  Value isFinite;
  for (const Parameter &statistic : statisticsOf(model)) {
    if (!micro.moved.contains(statistic.name.getValue()))
      continue;
    TensorFacts facts = analysis.facts(statistic.value);
    facts.contents.reset();
    Value running = state(statistic.name.str(), facts), now = state(statistic.stateName(movedSuffix), facts);
    markUniform(now); // trainers give all ranks the same before an update
    for (StringRef attribute : {ds::initialAttr, ds::statisticAttr})
      update.setArgAttr(cast<BlockArgument>(running).getArgNumber(), attribute,
                        model.getArgAttr(statistic.value.getArgNumber(), attribute));
    Value off = b.reduce(ds::ReduceKind::sum, b.sub(now, now), axesFrom(0, b.rank(now)), /*keep=*/false);
    Value isOne = b.binary(ds::BinaryKind::eq, off, b.scalar(facts.elementType, 0));
    isFinite = isFinite ? b.binary(ds::BinaryKind::bit_and, isFinite, isOne) : isOne;
    statistics.emplace_back(running, now, statistic);
  }
  return isFinite;
}

/// The next value and states of each piece, one after the other; empty where a shape rule has refused.
SmallVector<Value> UpdateBuilder::updatePieces(DsBuilder &b, Value factor) {
  bool sharesTrust = settings.sharing.areStatesShared() && settings.optimizer.kind == OptimizerKind::Lamb;
  SmallVector<Value> values;
  SmallVector<SharedLambStep> steps;
  for (auto [number, piece] : llvm::enumerate(pieces)) {
    b.setLocation(at(piece));
    Value gradient = b.cast(piece.gradient, b.element(piece.value));
    if (piece.ran)
      gradient = b.select(piece.ran, gradient, b.scalar(b.element(gradient), 0));
    gradient = b.mul(gradient, b.cast(factor, b.element(gradient)));
    if (sharesTrust) {
      LambStep step = lambStep(b, settings.optimizer, numbers, piece.value, gradient, piece.states, piece.decays);
      steps.push_back({&micro.units[number], piece.value, std::move(step)});
      continue;
    }
    SmallVector<Value> updated =
        updateParameter(b, settings.optimizer, numbers, piece.value, gradient, piece.states, piece.decays);
    if (updated.empty())
      return {};
    llvm::append_range(values, updated);
    if (piece.image)
      values.push_back(b.cast(updated.front(), b.element(piece.image)));
  }
  SmallVector<Value> parameters = sharesTrust ? applyTrust(b, settings.optimizer, steps) : SmallVector<Value>();
  for (auto [parameter, step, piece] : llvm::zip(parameters, steps, pieces)) {
    values.push_back(parameter);
    llvm::append_range(values, step.step.states);
    if (piece.image)
      values.push_back(b.cast(parameter, b.element(piece.image)));
  }
  return values;
}

LogicalResult UpdateBuilder::updateAll(DsBuilder &b, Value isFinite, Value factor) {
  OpBuilder &builder = b.getBuilder();
  Location where = update.getLoc();
  Value condition = tensor::ExtractOp::create(builder, where, isFinite, ValueRange{});
  SmallVector<Value> kept;
  for (const Piece &piece : pieces) {
    kept.push_back(piece.value);
    llvm::append_range(kept, piece.states);
    if (piece.image)
      kept.push_back(piece.image);
  }
  auto types = llvm::map_to_vector(kept, [&](Value value) -> Type { return b.facts(value).type(); });
  auto branch = scf::IfOp::create(builder, where, types, condition, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(branch.thenBlock());
    SmallVector<Value> values = updatePieces(b, factor);
    if (values.empty())
      return failure();
    scf::YieldOp::create(builder, where, values);
    builder.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(builder, where, kept);
  }
  size_t place = 0;
  for (Piece &piece : pieces) {
    auto take = [&](Value &value) {
      Value result = branch.getResult(static_cast<unsigned>(place++));
      sizes.set(result, b.facts(value));
      value = result;
    };
    take(piece.value);
    llvm::for_each(piece.states, take);
    if (piece.image)
      take(piece.image);
  }
  return success();
}

/// The parameters that other ranks have updated. They may still be on their way when the next micro-batch begins.
void UpdateBuilder::gather(DsBuilder &b) {
  Communication communication(b);
  SmallVector<std::pair<Bucket, Pending>> pending;
  for (auto [unit, piece] : llvm::zip_equal(micro.units, pieces)) {
    if (settings.sharing.isShared(unit))
      continue;
    SmallVector<Bucket> buckets = cutUnit(unit, settings.sharing.gatherBucket);
    for (const Bucket &bucket : llvm::reverse(buckets)) {
      SmallVector<TensorFacts> facts;
      for (unsigned number : bucket.parameters()) {
        facts.push_back(analysis.facts(parameters[number].value));
        facts.back().contents.reset();
        facts.back().elementType = unit.readElement();
        Value whole = state(parameters[number].name.str(), facts.back());
        update.setArgAttr(cast<BlockArgument>(whole).getArgNumber(), ds::initialAttr,
                          model.getArgAttr(parameters[number].value.getArgNumber(), ds::initialAttr));
      }
      Value own = piece.image ? piece.image : piece.value;
      pending.emplace_back(bucket, communication.allGather(bucket, own, facts, "parameters/" + bucket.name));
    }
  }
  for (const auto &[bucket, gathered] : pending)
    for (auto [number, value] : llvm::zip_equal(bucket.parameters(), gathered.finish(b, settings.sharing.overlaps)))
      next.emplace_back(value, parameters[number].name.str());
}

LogicalResult UpdateBuilder::run() {
  OpBuilder builder(model.getContext());
  parameters = parametersOf(model);
  if (failed(checkSpared()))
    return failure();
  const SharingSettings &sharing = settings.sharing;
  update = func::FuncOp::create(model.getLoc(), "update", builder.getFunctionType({}, {}));
  update->setAttr(ds::entryAttr, builder.getUnitAttr());
  model->getParentOfType<ModuleOp>().push_back(update);
  Block *body = update.addEntryBlock();
  builder.setInsertionPointToStart(body);
  func::ReturnOp::create(builder, update.getLoc());
  signature.emplace(update);
  DsBuilder b(OpBuilder(body->getTerminator()), sizes);
  Location common = withPart(model.getLoc(), WorkRole::Update, "optimizer");
  b.setLocation(common);
  addInputs();
  if (sharing.areStatesShared())
    addUnits();
  else
    addParameters();
  Value length = norm(b);
  Value isFinite = b.binary(ds::BinaryKind::eq, b.sub(length, length), b.scalar(b.f64(), 0));
  if (Value areFinite = addStatistics(b))
    isFinite = b.binary(ds::BinaryKind::bit_and, isFinite, areFinite);
  Value factor = b.div(b.scalar(b.f64(), 1), scale);
  if (settings.clip > 0) {
    Value ratio = b.div(b.scalar(b.f64(), settings.clip), b.add(length, 1e-6));
    factor = b.mul(factor, b.binary(ds::BinaryKind::min, ratio, 1));
  }
  if (!factor || !isFinite || failed(updateAll(b, isFinite, factor)))
    return failure();
  b.setLocation(common);
  if (sharing.areStatesShared())
    gather(b);
  signature->result(length, "grad_norm");
  signature->result(isFinite, "finite");
  for (const Piece &piece : pieces) {
    signature->newState(piece.value, piece.valueName);
    if (piece.image)
      signature->newState(piece.image, piece.imageName);
    for (auto [value, name] : llvm::zip_equal(piece.states, piece.stateNames))
      signature->newState(value, name);
  }
  for (const auto &[value, name] : next)
    signature->newState(value, name);
  for (const auto &[running, now, statistic] : statistics)
    signature->newState(b.select(isFinite, now, running), statistic.name);
  signature->finish();
  return success();
}

} // namespace

LogicalResult buildUpdate(func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                          const MicroStates &micro) {
  return UpdateBuilder(model, analysis, settings, micro).run();
}

} // namespace deepstride
