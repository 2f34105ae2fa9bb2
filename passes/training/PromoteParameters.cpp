// ds-promote-parameters: makes states of the weights that a model learns, before anything folds them. Works on the
// entries of a module. What a weight acts as, passes/training/Roles.h says.
//
//   func.func @main(%x) { %w = ds.weight @w            func.func @main(%x, %w {ds.state = "w", ds.initial = @w}) {
//     %y = ds.matmul %x, %w ... }                 =>     %y = ds.matmul %x, %w ... }
#include "passes/NamePattern.h"
#include "passes/Report.h"
#include "passes/training/Parameters.h"
#include "passes/training/Passes.h"
#include "passes/training/Roles.h"

#include "dialects/ds/DsDialect.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_PROMOTEPARAMETERS
#include "passes/training/Passes.h.inc"

namespace {

bool holdsWideFloats(ds::WeightOp weight) {
  Type element = getElementTypeOrSelf(weight);
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() >= 32;
}

struct PromoteParameters : impl::PromoteParametersBase<PromoteParameters>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    count("parameters", 0);
    promoted.clear();
    freezes = false;
    for (auto [name, text] : {std::pair("train", &train), std::pair("freeze", &freeze)})
      if (std::string error = text->empty() ? "" : reasonAgainstPattern(*text); !error.empty()) {
        getOperation().emitError() << name << ": expected a regular expression, found '" << text->getValue()
                                   << "': " << error;
        return signalPassFailure();
      }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ds::entryAttr))
        promote(function);
    count("parameters", static_cast<int64_t>(promoted.size()));
    if (!promoted.empty() && (freeze.empty() || freezes))
      return;
    if (!promoted.empty())
      getOperation().emitError() << "--freeze: '" << freeze << "' matches nothing that training changes; that is "
                                 << listed(promoted);
    else
      getOperation().emitError() << "no parameter to train: "
                                 << (train.empty() && freeze.empty()
                                         ? "no weight of 32 bits or more acts as weight, bias, scale or table"
                                         : "train and freeze leave none");
    signalPassFailure();
  }

  bool isNamed(ds::WeightOp weight, StringRef expression) {
    return isNamedBy(getOperation(), weight.getRecipe(), expression);
  }

  bool isFrozen(ds::WeightOp weight) { return !freeze.empty() && isNamed(weight, freeze); }

  /// Why a weight stays as it is; empty for a parameter.
  std::string reasonToStay(ds::WeightOp weight, bool mayBeFrozen) {
    if (!holdsWideFloats(weight))
      return "holds no floats of 32 bits or more";
    if (mayBeFrozen && isFrozen(weight))
      return "is named by --freeze";
    if (!train.empty())
      return isNamed(weight, train) ? "" : "is not named by --train";
    auto type = cast<RankedTensorType>(weight.getType());
    if (type.getRank() == 0)
      return "is a scalar";
    if (StringRef role = rotaryRoleOf(weight); !role.empty())
      return ("is a " + role).str();
    return roleOf(weight).empty() ? "acts as no weight, bias, scale or table" : "";
  }

  /// Makes weights of those numbers that --train names; the others stay constants.
  void storeScalars(func::FuncOp function) {
    SmallVector<ds::ConstantOp> stored;
    function.walk([&](ds::ConstantOp constant) {
      if (constant->removeAttr(ds::storedAttr) && !constant->use_empty())
        stored.push_back(constant);
    });
    SymbolTable symbols(getOperation());
    // By name and value: turns of a loop and calls of a function may hold copies.
    llvm::DenseMap<std::pair<Attribute, Attribute>, ds::RecipeOp> known;
    for (ds::ConstantOp constant : stored) {
      auto name = cast<StringAttr>(cast<ArrayAttr>(constant->getAttr(ds::valueNameAttr))[0]);
      auto [place, isNew] = known.try_emplace({name, constant.getValue()});
      if (train.empty() || !llvm::Regex(train.getValue()).match(name)) {
        if (!isNew)
          continue;
        count("kept");
        constant->emitRemark() << "'" << name.getValue() << "' is not trained: it "
                               << (train.empty() ? "is a scalar" : "is not named by --train");
        continue;
      }
      OpBuilder at(function);
      if (isNew) {
        ds::RecipeOp recipe = place->second = ds::RecipeOp::create(at, constant.getLoc(), name);
        at.createBlock(&recipe.getBody());
        Value value = ds::ConstantOp::create(at, constant.getLoc(), constant.getValue());
        ds::YieldOp::create(at, constant.getLoc(), ValueRange{value});
        symbols.insert(recipe);
      }
      at.setInsertionPoint(constant);
      auto symbol = SymbolRefAttr::get(place->second);
      auto weight = ds::WeightOp::create(at, constant.getLoc(), constant.getType(), symbol);
      constant.replaceAllUsesWith(weight.getResult());
      constant.erase();
    }
  }

  void promote(func::FuncOp function) {
    storeScalars(function);
    llvm::MapVector<StringAttr, SmallVector<ds::WeightOp>> weights;
    function.walk([&](ds::WeightOp weight) { weights[weight.getRecipeAttr().getAttr()].push_back(weight); });
    for (auto &[name, uses] : weights) {
      std::string reason;
      for (ds::WeightOp use : uses)
        if (reason = reasonToStay(use, /*mayBeFrozen=*/true); reason.empty())
          break; // one reader is enough
      freezes |= isFrozen(uses.front()) && holdsWideFloats(uses.front()) && llvm::any_of(uses, [&](ds::WeightOp use) {
                   return isRunning(use) || reasonToStay(use, /*mayBeFrozen=*/false).empty();
                 });
      bool moves = llvm::any_of(uses, isRunning) && !isFrozen(uses.front()) && holdsWideFloats(uses.front());
      StringRef role;
      for (ds::WeightOp use : uses)
        role = role.empty() ? roleOf(use) : role;
      if (moves) { // whatever else reads it
        if (!role.empty())
          uses.front()->emitWarning() << "'" << name.getValue() << "' is a running statistic, which moves with every "
                                      << "step, and a " << role << ", too: it is not trained";
        else if (reason.empty())
          uses.front()->emitRemark() << "'" << name.getValue()
                                     << "' is not trained: it is a running statistic, which moves with every step";
        count("running statistics");
        note(("running statistic, moves with every step: " + name.getValue()).str());
        makeState(function, name, uses, /*isStatistic=*/true);
        continue;
      }
      // As of a fresh model, whose exporter stored equal tensors once: who wants it trained would not know why it
      // stays.
      bool isBoth = reason.empty() && train.empty() && llvm::any_of(uses, isStatistic);
      if (isBoth)
        reason = ("acts as a " + role + " and as a statistic of a norm; --train names what is trained even so").str();
      if (!reason.empty()) {
        count("kept");
        (isBoth ? uses.front()->emitWarning() : uses.front()->emitRemark())
            << "'" << name.getValue() << "' is not trained: it " << reason;
        continue;
      }
      promoted.push_back(name.getValue());
      note((Twine("trained: ") + name.getValue() + " " + (role.empty() ? "parameter" : role)).str());
      makeState(function, name, uses, /*isStatistic=*/false);
    }
  }

  SmallVector<StringRef> promoted;
  bool freezes = false; // what would be trained or moved otherwise

  /// Puts an argument that is tied to a state of this name in the place of the weights.
  static void makeState(func::FuncOp function, StringAttr name, ArrayRef<ds::WeightOp> uses, bool isStatistic) {
    ds::WeightOp first = uses.front();
    auto type = cast<RankedTensorType>(first.getType());
    OpBuilder builder(function);
    NamedAttrList attributes;
    attributes.set(ds::dimsAttr, builder.getI64ArrayAttr(type.getShape()));
    attributes.set(ds::nameAttr, name);
    attributes.set(ds::stateAttr, name);
    attributes.set(ds::initialAttr, first.getRecipeAttr());
    if (isStatistic)
      attributes.set(ds::statisticAttr, builder.getUnitAttr());
    unsigned number = function.getNumArguments();
    if (failed(function.insertArgument(number, type, attributes.getDictionary(function.getContext()), first.getLoc())))
      return;
    for (ds::WeightOp use : uses) {
      use.getResult().replaceAllUsesWith(function.getArgument(number));
      use.erase();
    }
  }
};
} // namespace

} // namespace deepstride
