#include "passes/training/CompressedUpdate.h"

#include "dialects/ds/Provenance.h"
#include "passes/training/Communication.h"
#include "passes/training/FrozenUpdate.h"
#include "passes/training/GradientNorm.h"
#include "passes/training/Layers.h"
#include "passes/training/Signature.h"

#include <set>

using namespace mlir;

namespace deepstride {

/// Elements from which a tensor has a scale of its own, which is then less than 1 % of what it sends at 4 ranks.
static constexpr int64_t ownScale = 16384;
/// A byte has the signs of so many elements.
static constexpr int64_t bitBlock = 8;

SmallVector<Unit> findMessages(func::FuncOp model, const SizeAnalysis &analysis, const OptimizerSettings &optimizer) {
  SmallVector<Parameter> parameters = parametersOf(model);
  SmallVector<Unit> messages;
  auto put = [&](const std::string &name, Type element, unsigned number) {
    auto known =
        llvm::find_if(messages, [&](const Unit &unit) { return unit.name == name && unit.element == element; });
    if (known == messages.end()) {
      Unit fresh;
      fresh.name = name;
      fresh.element = element;
      fresh.block = bitBlock;
      messages.push_back(std::move(fresh));
      known = std::prev(messages.end());
    }
    int64_t count = product(analysis.facts(parameters[number].value).sizes).constant().value_or(0);
    known->parameters.push_back(number);
    known->offsets.push_back(known->elements);
    known->elements += llvm::divideCeil(count, bitBlock) * bitBlock;
  };
  for (const Unit &unit : findUnits(model, analysis, [](StringRef) { return false; }))
    for (unsigned number : unit.parameters) {
      bool isLarge = product(analysis.facts(parameters[number].value).sizes).constant().value_or(0) >= ownScale;
      bool isOne = optimizer.kind == OptimizerKind::Lamb;
      put(isOne ? "all" : isLarge ? parameters[number].name.str() : unit.name + " small", unit.element, number);
    }
  llvm::StringMap<int> sameNames; // of several element types, or a parameter that is called as a unit
  for (Unit &message : messages)
    if (int count = sameNames[message.name]++; count > 0)
      message.name += " (" + std::to_string(count) + ")";
  return messages;
}

namespace {

std::string nameOfError(const Unit &message, StringRef suffix) {
  return ("one_bit/" + message.name + "/" + suffix).str();
}

class CompressedBuilder {
public:
  CompressedBuilder(func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                    const MicroStates &micro)
      : model(model), analysis(analysis), settings(settings), micro(micro) {}

  LogicalResult buildNorm();
  LogicalResult buildUpdate(ArrayRef<Unit> messages);

private:
  DsBuilder begin(StringRef name);
  Value known(Value value, const TensorFacts &facts);
  Value number(StringRef name);
  Value state(const std::string &name, const TensorFacts &facts);
  TensorFacts factsOf(const Parameter &parameter) const;
  Value ranOf(const Parameter &parameter) const;
  Value gradientOf(DsBuilder &b, const Parameter &parameter);
  Value norm(DsBuilder &b);
  Value areStatisticsFinite(DsBuilder &b);
  void keepStatistics();
  SmallVector<Value> addErrors(ArrayRef<Unit> messages);
  void addPieces(DsBuilder &b);
  LogicalResult moveMomenta(DsBuilder &b, Value factor);
  void exchange(DsBuilder &b, ArrayRef<Unit> messages);

  func::FuncOp model;
  const SizeAnalysis &analysis;
  const UpdateSettings &settings;
  const MicroStates &micro;
  SmallVector<Parameter> parameters = parametersOf(model);

  // Of the entry that is being made.
  func::FuncOp entry;
  std::optional<Signature> signature;
  SizeAnalysis sizes;
  llvm::DenseMap<int64_t, Value> ran; // by block: whether it has gradients
  StepNumbers numbers;
  SmallVector<FrozenParameter> pieces; // by parameter
  SmallVector<Value> nextErrors;
};

/// An entry with the inputs that both have.
DsBuilder CompressedBuilder::begin(StringRef name) {
  OpBuilder builder(model.getContext());
  entry = func::FuncOp::create(model.getLoc(), name, builder.getFunctionType({}, {}));
  entry->setAttr(ds::entryAttr, builder.getUnitAttr());
  model->getParentOfType<ModuleOp>().push_back(entry);
  Block *body = entry.addEntryBlock();
  builder.setInsertionPointToStart(body);
  func::ReturnOp::create(builder, entry.getLoc());
  signature.emplace(entry);
  sizes = {};
  ran.clear();
  std::set<int64_t> gated;
  for (const auto &layer : micro.layers)
    gated.insert(layer.second);
  Type i1 = IntegerType::get(model.getContext(), 1);
  for (int64_t layer : gated)
    ran[layer] = known(signature->input(nameOfLayer(layerRan, layer), i1, {}), {i1, {}, std::nullopt});
  DsBuilder b(OpBuilder(body->getTerminator()), sizes);
  b.setLocation(withPart(model.getLoc(), WorkRole::Update, "optimizer"));
  return b;
}

Value CompressedBuilder::known(Value value, const TensorFacts &facts) {
  sizes.set(value, facts);
  return value;
}

Value CompressedBuilder::number(StringRef name) {
  Type f64 = Float64Type::get(model.getContext());
  return known(signature->input(name, f64, {}), {f64, {}, std::nullopt});
}

Value CompressedBuilder::state(const std::string &name, const TensorFacts &facts) {
  return known(signature->state(name, facts.elementType, facts.sizes), facts);
}

TensorFacts CompressedBuilder::factsOf(const Parameter &parameter) const {
  TensorFacts facts = analysis.facts(parameter.value);
  facts.contents.reset();
  return facts;
}

Value CompressedBuilder::ranOf(const Parameter &parameter) const {
  auto layer = micro.layers.find(parameter.name.getValue());
  return layer == micro.layers.end() ? Value() : ran.lookup(layer->second);
}

Value CompressedBuilder::norm(DsBuilder &b) {
  int64_t elements = 0;
  for (const Parameter &parameter : parameters) // with the rest of a block of each
    elements += product(factsOf(parameter).sizes).constant().value_or(0) + normBlock;
  GradientNorm norm(elements);
  for (const Parameter &parameter : parameters) {
    b.setLocation(withParameter(model.getLoc(), WorkRole::Update, parameter.name.getValue()));
    norm.add(b, state(parameter.stateName("gradient"), factsOf(parameter)), ranOf(parameter));
  }
  b.setLocation(withPart(model.getLoc(), WorkRole::Update, "optimizer"));
  return norm.finish(b, [&](Value number, bool isMaximum) {
    return Communication(b)
        .allReduce(isMaximum ? dist::Reduction::max : dist::Reduction::sum, number, isMaximum ? "norm/max" : "norm/sum")
        .finish(b)
        .front();
  });
}

/// Null where micro-batches move none.
Value CompressedBuilder::areStatisticsFinite(DsBuilder &b) {
  Value areFinite;
  for (const Parameter &statistic : statisticsOf(model)) {
    if (!micro.moved.contains(statistic.name.getValue()))
      continue;
    TensorFacts facts = factsOf(statistic);
    Value now = state(statistic.stateName(movedSuffix), facts);
    Value off = b.reduce(ds::ReduceKind::sum, b.sub(now, now), axesFrom(0, b.rank(now)), /*keep=*/false);
    Value isOne = b.binary(ds::BinaryKind::eq, off, b.scalar(facts.elementType, 0));
    areFinite = areFinite ? b.binary(ds::BinaryKind::bit_and, areFinite, isOne) : isOne;
  }
  return areFinite;
}

LogicalResult CompressedBuilder::buildNorm() {
  DsBuilder b = begin("local_norm");
  Value scale = number("loss_scale"), ranks = number("ranks");
  Value all = norm(b);
  Value length = b.div(b.mul(all, b.unary(ds::UnaryKind::sqrt, ranks)), scale);
  Value isFinite = b.binary(ds::BinaryKind::eq, b.sub(length, length), b.scalar(b.f64(), 0));
  if (Value areFinite = areStatisticsFinite(b))
    isFinite = b.binary(ds::BinaryKind::bit_and, isFinite, areFinite);
  if (!isFinite)
    return failure();
  signature->result(length, "grad_norm");
  signature->result(isFinite, "finite");
  signature->finish();
  return success();
}

/// Two of each message, in its order.
SmallVector<Value> CompressedBuilder::addErrors(ArrayRef<Unit> messages) {
  SmallVector<Value> errors;
  Builder builder(model.getContext());
  for (const Unit &message : messages)
    for (auto [part, suffix] : {std::pair("worker", "worker_error"), std::pair("shard", "server_error")}) {
      SizeExpr size = message.shard();
      if (StringRef(part) == "worker")
        size = dist::meshSize("data") * size;
      errors.push_back(state(nameOfError(message, suffix), {message.element, {size}, std::nullopt}));
      unsigned argument = cast<BlockArgument>(errors.back()).getArgNumber();
      entry.setArgAttr(argument, ds::unitAttr, builder.getStringAttr(message.name));
      entry.setArgAttr(argument, ds::partAttr, builder.getStringAttr(part));
      entry.setArgAttr(argument, ds::suffixAttr, builder.getStringAttr("/" + Twine(suffix)));
    }
  return errors;
}

/// This rank's gradient of a parameter; 0 where its block has not run.
Value CompressedBuilder::gradientOf(DsBuilder &b, const Parameter &parameter) {
  TensorFacts facts = factsOf(parameter);
  Value gradient = state(parameter.stateName("gradient"), facts), isThere = ranOf(parameter);
  return isThere ? b.select(isThere, gradient, b.scalar(facts.elementType, 0)) : gradient;
}

void CompressedBuilder::keepStatistics() {
  for (const Parameter &statistic : statisticsOf(model)) {
    if (!micro.moved.contains(statistic.name.getValue()))
      continue;
    TensorFacts facts = factsOf(statistic);
    Value running = state(statistic.name.str(), facts), now = state(statistic.stateName(movedSuffix), facts);
    for (StringRef attribute : {ds::initialAttr, ds::statisticAttr})
      entry.setArgAttr(cast<BlockArgument>(running).getArgNumber(), attribute,
                       model.getArgAttr(statistic.value.getArgNumber(), attribute));
    signature->newState(now, statistic.name);
  }
}

/// Parameters with their states.
void CompressedBuilder::addPieces(DsBuilder &b) {
  auto module = model->getParentOfType<ModuleOp>();
  for (const Parameter &parameter : parameters) {
    TensorFacts facts = factsOf(parameter);
    b.setLocation(withParameter(model.getLoc(), WorkRole::Update, parameter.name.getValue()));
    FrozenParameter &piece = pieces.emplace_back();
    piece.value = state(parameter.name.str(), facts);
    entry.setArgAttr(cast<BlockArgument>(piece.value).getArgNumber(), ds::initialAttr,
                     model.getArgAttr(parameter.value.getArgNumber(), ds::initialAttr));
    piece.decays = settings.noDecay.empty() || !isNamedBy(module, parameter.name.getValue(), settings.noDecay);
    piece.momentum = state(parameter.stateName("exp_avg"), facts);
    piece.square = state(parameter.stateName("exp_avg_sq"), facts);
    if (settings.optimizer.kind != OptimizerKind::Lamb)
      continue;
    TensorFacts number{b.f64(), {}, std::nullopt};
    piece.fresh = state(parameter.stateName("exp_avg_sq_fresh"), facts);
    piece.scale = state(parameter.stateName("momentum_scale"), number);
    piece.factor = state(parameter.stateName("trust_factor"), number);
    piece.trustAverage = state(parameter.stateName("trust_average"), number);
  }
  b.setLocation(withPart(model.getLoc(), WorkRole::Update, "optimizer"));
  if (settings.optimizer.kind == OptimizerKind::Lamb)
    beginFrozen(b, pieces);
}

/// What this rank's gradients make of the momentum.
LogicalResult CompressedBuilder::moveMomenta(DsBuilder &b, Value factor) {
  for (auto [parameter, piece] : llvm::zip_equal(parameters, pieces)) {
    b.setLocation(withParameter(model.getLoc(), WorkRole::Update, parameter.name.getValue()));
    Value gradient = b.mul(gradientOf(b, parameter), b.cast(factor, b.element(piece.momentum)));
    piece.local = localMomentum(b, numbers, piece, gradient);
    if (!piece.local)
      return failure();
  }
  return success();
}

/// Momentum as the mean over ranks: one message for each element type.
void CompressedBuilder::exchange(DsBuilder &b, ArrayRef<Unit> messages) {
  SmallVector<Value> errors = addErrors(messages);
  nextErrors.resize(errors.size());
  SmallVector<Type> elements;
  for (const Unit &message : messages)
    if (!llvm::is_contained(elements, message.element))
      elements.push_back(message.element);
  for (Type element : elements) {
    SmallVector<Unit> spaces;
    SmallVector<Value> tensors, own;
    SmallVector<size_t> places;
    for (auto [place, message] : llvm::enumerate(messages)) {
      if (message.element != element)
        continue;
      spaces.push_back(message);
      places.push_back(place);
      own.append({errors[2 * place], errors[2 * place + 1]});
      for (unsigned number : message.parameters)
        tensors.push_back(pieces[number].local);
    }
    std::string site = "momentum";
    if (element != elements.front())
      llvm::raw_string_ostream(site) << "/" << element;
    Values results = Communication(b).allReduceInBits(spaces, tensors, own, site).finish(b);
    size_t next = 0;
    for (const Unit &space : spaces)
      for (unsigned number : space.parameters)
        pieces[number].common = results[next++];
    for (size_t place : places) {
      nextErrors[2 * place] = results[next++];
      nextErrors[2 * place + 1] = results[next++];
    }
  }
}

LogicalResult CompressedBuilder::buildUpdate(ArrayRef<Unit> messages) {
  DsBuilder b = begin("update_compressed");
  numbers = {number("learning_rate"), number("momentum"), Value()};
  Value length = number("grad_norm"), scale = number("loss_scale"), ranks = number("ranks");
  Value factor = b.div(ranks, scale); // gradients as if there were no other ranks
  if (settings.clip > 0) {
    Value ratio = b.div(b.scalar(b.f64(), settings.clip), b.add(length, 1e-6));
    factor = b.mul(factor, b.binary(ds::BinaryKind::min, ratio, 1));
  }
  addPieces(b);
  if (failed(moveMomenta(b, factor)))
    return failure();
  b.setLocation(withPart(model.getLoc(), WorkRole::Update, "optimizer"));
  exchange(b, messages);
  for (auto [parameter, piece] : llvm::zip_equal(parameters, pieces)) {
    b.setLocation(withParameter(model.getLoc(), WorkRole::Update, parameter.name.getValue()));
    SmallVector<Value> updated = updateFrozen(b, settings.optimizer, numbers, piece);
    if (llvm::is_contained(updated, Value()))
      return failure();
    SmallVector<std::string> names = {parameter.name.str(), parameter.stateName("exp_avg")};
    for (StringRef suffix : settings.optimizer.frozenStates())
      names.push_back(parameter.stateName(suffix));
    for (auto [value, name] : llvm::zip_equal(updated, names))
      signature->newState(value, name);
  }
  size_t place = 0;
  for (const Unit &message : messages)
    for (StringRef suffix : {"worker_error", "server_error"})
      signature->newState(nextErrors[place++], nameOfError(message, suffix));
  keepStatistics();
  entry->setAttr(ds::unitsAttr, describeUnits(model, analysis, messages));
  signature->finish();
  return success();
}

} // namespace

LogicalResult buildCompressedUpdate(func::FuncOp model, const SizeAnalysis &analysis, const UpdateSettings &settings,
                                    const MicroStates &micro) {
  for (const Parameter &parameter : parametersOf(model)) {
    if (!product(analysis.facts(parameter.value).sizes).constant())
      return model.emitError() << "1-bit optimizers: expected parameters of constant size, found '"
                               << parameter.name.getValue() << "'";
    Type element = analysis.facts(parameter.value).elementType;
    if (!element.isF32() && !element.isF64())
      return model.emitError() << "1-bit optimizers: expected parameters of f32 or f64, found '"
                               << parameter.name.getValue() << "' of " << element;
    if (parameter.name.getValue().starts_with("one_bit/"))
      return model.emitError() << "1-bit optimizers: expected no parameter whose name begins with 'one_bit/', found '"
                               << parameter.name.getValue() << "'";
  }
  CompressedBuilder builder(model, analysis, settings, micro);
  return failed(builder.buildNorm()) ? failure()
                                     : builder.buildUpdate(findMessages(model, analysis, settings.optimizer));
}

} // namespace deepstride
