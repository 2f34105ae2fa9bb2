// States are told from inputs by their attributes.
#include "passes/training/Parameters.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/UnitAttrs.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace deepstride {

static SmallVector<Parameter> statesOf(func::FuncOp entry, bool areStatistics) {
  SmallVector<Parameter> states;
  for (BlockArgument argument : entry.getArguments()) {
    unsigned number = argument.getArgNumber();
    bool isStatistic = static_cast<bool>(entry.getArgAttr(number, ds::statisticAttr));
    if (entry.getArgAttr(number, ds::initialAttr) && isStatistic == areStatistics)
      states.push_back({entry.getArgAttrOfType<StringAttr>(number, ds::stateAttr), argument});
  }
  return states;
}

SmallVector<Parameter> parametersOf(func::FuncOp entry) { return statesOf(entry, /*areStatistics=*/false); }

SmallVector<Parameter> statisticsOf(func::FuncOp entry) { return statesOf(entry, /*areStatistics=*/true); }

SmallVector<WholeParameter> wholeParametersOf(func::FuncOp entry) {
  SmallVector<WholeParameter> found;
  for (const Parameter &parameter : parametersOf(entry))
    found.push_back({parameter.name, parameter.value});
  for (Operation &op : entry.getBody().front())
    if (auto names = op.getAttrOfType<ArrayAttr>(ds::gatheredAttr))
      for (auto [name, value] : llvm::zip_equal(names.getAsRange<StringAttr>(), op.getResults()))
        found.push_back({name, value});
  return found;
}

FailureOr<func::FuncOp> entryOf(ModuleOp model) {
  func::FuncOp entry;
  for (auto function : model.getOps<func::FuncOp>())
    if (function->hasAttr(ds::entryAttr)) {
      if (entry)
        return function.emitError() << "expected a model of one entry, found several";
      entry = function;
    }
  if (!entry)
    return model.emitError() << "expected a model, found no entry";
  return entry;
}

FailureOr<unsigned> outputNamed(func::FuncOp entry, StringRef name, StringRef option) {
  std::string legal;
  for (unsigned i = 0; i < entry.getNumResults(); ++i) {
    auto own = entry.getResultAttrOfType<StringAttr>(i, ds::nameAttr);
    if (own && own.getValue() == name)
      return i;
    legal += (legal.empty() ? "'" : ", '") + (own ? own.str() : "") + "'";
  }
  return entry.emitError() << "--" << option << ": expected an output of the model, found '" << name << "'; legal are "
                           << legal;
}

std::string listed(ArrayRef<StringRef> names) {
  constexpr size_t most = 4;
  std::string text;
  for (StringRef name : names.take_front(most))
    text += (text.empty() ? "'" : ", '") + name.str() + "'";
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

bool isNamedBy(ModuleOp module, StringRef name, StringRef expression) {
  llvm::Regex regex(expression);
  if (regex.match(name))
    return true;
  auto tied = module->getAttrOfType<DictionaryAttr>(ds::tiedAttr);
  return tied && llvm::any_of(tied, [&](NamedAttribute entry) {
           auto kept = cast<DictionaryAttr>(entry.getValue()).getAs<StringAttr>("of");
           return kept.getValue() == name && regex.match(entry.getName().getValue());
         });
}

LogicalResult checkNames(func::FuncOp model, StringRef labels, const OptimizerSettings &optimizer) {
  llvm::StringSet<llvm::MallocAllocator> inputs, states;
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    auto state = model.getArgAttrOfType<StringAttr>(i, ds::stateAttr);
    auto name = state ? state : model.getArgAttrOfType<StringAttr>(i, ds::nameAttr);
    if (name)
      (state ? states : inputs).insert(name.getValue());
  }
  if (!labels.empty())
    inputs.insert(labels);
  for (StringRef own : {"loss_weight", "first", "last", "random_seed", "random_step", "random_micro"})
    if (inputs.contains(own))
      return model.emitError() << "expected inputs and labels with other names than those that training adds, found '"
                               << own << "'";
  SmallVector<StringRef> suffixes = optimizer.states();
  llvm::append_range(suffixes, optimizer.frozenStates());
  suffixes.push_back("gradient");
  auto check = [&](const Parameter &own, ArrayRef<StringRef> kept) -> LogicalResult {
    for (StringRef suffix : kept)
      if (std::string name = own.stateName(suffix); states.contains(name))
        return model.emitError() << "'" << name << "' is a parameter, and the name of what training keeps of '"
                                 << own.name.getValue() << "'";
    return success();
  };
  for (const Parameter &parameter : parametersOf(model))
    if (failed(check(parameter, suffixes)))
      return failure();
  for (const Parameter &statistic : statisticsOf(model))
    if (failed(check(statistic, {movedSuffix})))
      return failure();
  return success();
}

void keepWideParameters(func::FuncOp model) {
  auto module = model->getParentOfType<ModuleOp>();
  SmallVector<Type> types(model.getArgumentTypes());
  SmallVector<Parameter> states = parametersOf(model);
  llvm::append_range(states, statisticsOf(model));
  for (Parameter parameter : states) {
    auto cast = parameter.value.hasOneUse() ? dyn_cast<ds::CastOp>(*parameter.value.user_begin()) : ds::CastOp();
    if (!cast || !getElementTypeOrSelf(cast).isF64() || getElementTypeOrSelf(parameter.value).isF64())
      continue;
    unsigned number = parameter.value.getArgNumber();
    auto recipe = module.lookupSymbol<ds::RecipeOp>(model.getArgAttrOfType<FlatSymbolRefAttr>(number, ds::initialAttr));
    Operation *yield = recipe.getBody().front().getTerminator();
    OpBuilder builder(yield);
    yield->setOperand(
        0, ds::CastOp::create(builder, yield->getLoc(), cast.getType(), yield->getOperand(0), builder.getF64Type()));
    types[number] = cast.getType();
    parameter.value.setType(cast.getType());
    cast.getResult().replaceAllUsesWith(parameter.value);
    cast.erase();
  }
  model.setFunctionType(FunctionType::get(module.getContext(), types, model.getResultTypes()));
}

} // namespace deepstride
