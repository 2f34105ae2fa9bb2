// ds-list-parameters: what the model learns, or has learned, by name, with its size and the node that reads it first.
// Runs before anything is folded; later passes put several weights into one recipe, or codes in the place of floats.
//
//   %y = ds.matmul %x, %w ... loc("/encoder/MatMul")   =>   module attributes
//        where %w = ds.weight @w : tensor<4x8xf32>            {ds.parameters = {w = {elements = 32, node =
//        "/encoder/MatMul"}}}
#include "dialects/ds/Provenance.h"
#include "passes/Report.h"
#include "passes/training/Passes.h"
#include "passes/training/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <limits>

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_LISTPARAMETERS
#include "passes/training/Passes.h.inc"

namespace {
struct ListParameters : impl::ListParametersBase<ListParameters>, PassReport {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function->hasAttr(ds::entryAttr) || function.isExternal())
        continue;
      function.walk<WalkOrder::PreOrder>([&](Operation *op) { order.try_emplace(op, order.size()); });
      for (BlockArgument argument : function.getArguments()) {
        auto state = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), ds::stateAttr);
        bool learns = state && function.getArgAttr(argument.getArgNumber(), ds::initialAttr) &&
                      !function.getArgAttr(argument.getArgNumber(), ds::statisticAttr);
        if (learns)
          add(state, argument);
      }
      function.walk([&](Operation *op) {
        if (auto weight = dyn_cast<ds::WeightOp>(op))
          addStored(weight.getRecipeAttr().getAttr(), weight.getResult());
        else if (auto names = op->getAttrOfType<ArrayAttr>(ds::valueNameAttr); names && isa<ds::ConstantOp>(op))
          addStored(cast<StringAttr>(names[0]), op->getResult(0));
      });
    }
    NamedAttrList list;
    Builder b(&getContext());
    for (auto &[name, parameter] : found) {
      NamedAttrList fields;
      fields.set("elements", b.getI64IntegerAttr(parameter.elements));
      fields.set("node", b.getStringAttr(parameter.node));
      list.set(name, fields.getDictionary(&getContext()));
    }
    if (!found.empty())
      module->setAttr(parametersAttr, list.getDictionary(&getContext()));
    count("parameters", static_cast<int64_t>(found.size()));
    found.clear();
    order.clear();
  }

  void addStored(StringAttr name, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    Type element = type.getElementType();
    bool isLearnable = isa<FloatType>(element) ||
                       (element.isInteger() && !element.isInteger(1) && element.getIntOrFloatBitWidth() <= 8);
    if (isLearnable && type.getNumElements() > 1 && !isStatistic(value))
      add(name, value);
  }

  void add(StringAttr name, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<OpOperand *> uses = roleUsesOf(value);
    bool isState = isa<BlockArgument>(value); // learned whatever it acts as
    if (uses.empty() && isState)
      for (OpOperand &use : value.getUses())
        uses.push_back(&use);
    if ((uses.empty() && !isState) || !type.hasStaticShape())
      return;
    Parameter &parameter = found[name];
    parameter.elements = type.getNumElements();
    for (OpOperand *use : uses)
      if (size_t place = order.lookup(use->getOwner()); place < parameter.place) {
        parameter.place = place;
        parameter.node = workPlacesOf(use->getOwner()).front().node;
      }
  }

  struct Parameter {
    int64_t elements = 0;
    std::string node;
    size_t place = std::numeric_limits<size_t>::max(); // of the node, in `order`
  };
  llvm::MapVector<StringAttr, Parameter> found;
  llvm::DenseMap<Operation *, size_t> order; // of the programs, one after another
};
} // namespace

} // namespace deepstride
