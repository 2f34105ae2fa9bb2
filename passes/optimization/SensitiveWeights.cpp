#include "passes/optimization/SensitiveWeights.h"

#include "dialects/ds/StridedWindow.h"
#include "passes/optimization/AttentionRegions.h"
#include "passes/optimization/Calibration.h"

using namespace mlir;

namespace deepstride {

namespace {

bool isSoftmax(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto softmax = dyn_cast<ds::SoftmaxOp>(op))
      return !softmax.getLog();
    if (!ds::isWindowOp(op) && !isa<ds::CastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return false;
}

/// Products that give an attention its values, and nothing else: of a joint projection two thirds are less sensitive.
llvm::DenseSet<Operation *> valueProducts(ModuleOp module) {
  llvm::DenseSet<Operation *> values, others;
  auto add = [](llvm::DenseSet<Operation *> &set, Value value) {
    if (ds::LinearOp op = projectionOf(value))
      set.insert(op);
  };
  module.walk([&](Operation *op) {
    if (auto attention = dyn_cast<ds::AttentionOp>(op)) {
      add(values, attention.getValue());
      add(others, attention.getQuery());
      add(others, attention.getKey());
    } else if (auto product = dyn_cast<ds::MatmulOp>(op)) { // --reference leaves attention in parts
      bool hasWeights = isSoftmax(product.getLhs());
      add(hasWeights ? values : others, product.getRhs());
      add(others, product.getLhs());
    }
  });
  for (Operation *op : others)
    values.erase(op);
  return values;
}

} // namespace

llvm::DenseMap<Attribute, StringRef> sensitiveWeights(ModuleOp module, const std::string &keep, bool keepsType) {
  std::vector<std::pair<ds::LinearOp, Attribute>> products;
  module.walk([&](ds::LinearOp op) {
    if (ProductWeight found = weightOf(op, keep); found.reason.empty())
      products.emplace_back(op, found.weight.getRecipeAttr());
  });
  llvm::DenseMap<Attribute, StringRef> sensitive;
  llvm::DenseSet<Operation *> values = valueProducts(module);
  llvm::DenseSet<Value> inputs;
  for (auto [op, weight] : products)
    if (values.contains(op)) {
      sensitive[weight] = "values of attention";
      inputs.insert(op.getInput());
    }
  if (keepsType)
    for (auto [op, weight] : products)
      if (inputs.contains(op.getInput()))
        sensitive.try_emplace(weight, "beside values of attention");
  inputs.clear();
  constexpr size_t share = 4;
  for (auto [op, weight] : ArrayRef(products).take_back(products.size() / share))
    inputs.insert(op.getInput());
  for (auto [op, weight] : products) // those of one input stay alike, so that they can be joined
    if (inputs.contains(op.getInput()))
      sensitive.try_emplace(weight, "among the last quarter of products");
  return sensitive;
}

} // namespace deepstride
