// Turns ops over constants into recipes. The ops behind a value, up to weights and constants, are cloned into one new
// `ds.recipe`, each once; small values are evaluated at once instead. Choosing the values is the passes' business.
#include "passes/graph/Recipes.h"

#include "dialects/ds/DsBuilder.h"
#include "dialects/ds/HostTensor.h"
#include "dialects/ds/RecipeOps.h"

#include "mlir/IR/IRMapping.h"
#include "passes/graph/Matching.h"
#include "passes/graph/ShapeArithmetic.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace deepstride {

/// Recipes are evaluated op by op; one of more ops is computation that belongs into the program.
static constexpr size_t recipeLimit = 512;

static int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

static bool isStatic(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  return ranked && ranked.hasStaticShape() && ranked.getElementType().isIntOrFloat();
}

bool isStorable(Operation *op) {
  if (isa<ds::SourceOp, ds::ConstantOp>(op) || !isRecipeOp(op))
    return false;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t largest = 0;
  for (Type operand : op->getOperandTypes())
    largest = std::max(largest, cast<RankedTensorType>(operand).getNumElements());
  bool joins = isa<ds::ConcatOp, ds::PackOp>(op);
  return joins || type.getNumElements() <= largest || bytesOf(type) <= ds::ConstantOp::byteLimit;
}

bool areStorable(Operation *root) {
  return root && (isa<ds::ConstantOp, ds::WeightOp>(root) ||
                  (isStorable(root) && llvm::all_of(root->getOperands(), [](Value operand) {
                     return areStorable(operand.getDefiningOp());
                   })));
}

void eraseUnusedRecipes(ModuleOp module) {
  // Weights are not the only users: initial values of states are attributes of functions.
  llvm::DenseSet<Attribute> used;
  module.walk([&](Operation *op) {
    op->getAttrDictionary().walk([&](SymbolRefAttr symbol) { used.insert(symbol.getRootReference()); });
  });
  for (auto recipe : llvm::make_early_inc_range(module.getOps<ds::RecipeOp>()))
    if (!used.contains(recipe.getSymNameAttr()))
      recipe.erase();
}

/// A symbol name that tells which value the recipe makes.
static std::string nameOf(Operation *op) {
  if (auto names = op->getAttrOfType<ArrayAttr>(ds::valueNameAttr); names && !names.empty())
    if (auto name = dyn_cast<StringAttr>(names[0]); name && !name.empty())
      return name.str();
  return "folded";
}

/// The elements of a small result of small constants; null where the op cannot be evaluated.
static DenseElementsAttr evaluate(Operation *op, ArrayRef<DenseElementsAttr> operands) {
  SmallVector<HostTensor> tensors;
  for (DenseElementsAttr operand : operands)
    tensors.push_back(HostTensor::fromAttribute(operand));
  auto result = evaluateOnHost(op, tensors);
  return result ? result->toAttribute() : DenseElementsAttr();
}

DenseElementsAttr evaluateConstants(Operation *op) {
  if (!isStatic(op->getResult(0).getType()))
    return {};
  SmallVector<DenseElementsAttr> operands;
  for (Value operand : op->getOperands()) {
    auto constant = operand.getDefiningOp<ds::ConstantOp>();
    operands.push_back(constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr());
    if (!operands.back())
      return {};
  }
  return evaluate(op, operands);
}

Value RecipeBook::store(OpBuilder &builder, Operation *root) {
  llvm::SetVector<Operation *> order; // operands before users
  SmallVector<std::pair<Operation *, bool>> stack = {{root, false}};
  while (!stack.empty()) {
    auto [op, isDone] = stack.pop_back_val();
    if (isDone) {
      order.insert(op);
      continue;
    }
    if (order.contains(op))
      continue;
    if (order.size() > recipeLimit)
      return {};
    stack.push_back({op, true});
    for (Value operand : llvm::reverse(op->getOperands())) // popped in order
      stack.push_back({operand.getDefiningOp(), false});
  }

  // Small values: elements that later patterns can read, such as the square root of the head size.
  llvm::DenseMap<Operation *, DenseElementsAttr> known;
  for (Operation *op : order) {
    if (auto constant = dyn_cast<ds::ConstantOp>(op)) {
      known[op] = dyn_cast<DenseElementsAttr>(constant.getValue());
      continue;
    }
    SmallVector<DenseElementsAttr> operands;
    for (Value operand : op->getOperands())
      operands.push_back(known.lookup(operand.getDefiningOp()));
    bool isSmall = !isa<ds::WeightOp>(op) && bytesOf(cast<RankedTensorType>(op->getResult(0).getType())) <=
                                                 static_cast<int64_t>(ds::ConstantOp::byteLimit);
    if (isSmall && llvm::all_of(operands, [](DenseElementsAttr elements) { return !!elements; }))
      known[op] = evaluate(op, operands);
  }
  if (DenseElementsAttr elements = known.lookup(root)) {
    auto constant = ds::ConstantOp::create(builder, root->getLoc(), elements);
    keepNames(root, constant);
    return constant.getResult();
  }

  OpBuilder::InsertionGuard guard(builder);
  Operation *function = root;
  while (function->getParentOp() != symbols.getOp())
    function = function->getParentOp();
  OpBuilder recipes(function);
  auto recipe = ds::RecipeOp::create(recipes, root->getLoc(), nameOf(root));
  recipes.setInsertionPointToStart(&recipe.getBody().emplaceBlock());
  IRMapping mapping;
  for (Operation *op : order) {
    if (auto weight = dyn_cast<ds::WeightOp>(op)) {
      auto source = symbols.lookup<ds::RecipeOp>(weight.getRecipe());
      for (Operation &inner : source.getBody().front().without_terminator())
        recipes.clone(inner, mapping);
      mapping.map(weight.getResult(), mapping.lookup(source.getYielded()));
      continue;
    }
    Operation *copy = recipes.clone(*op, mapping);
    copy->removeDiscardableAttr(
        ds::valueNameAttr); // a recipe's text is its identity; names would tell equal ones apart
  }
  ds::YieldOp::create(recipes, root->getLoc(), mapping.lookup(root->getResult(0)));
  symbols.insert(recipe, Block::iterator(function));
  auto weight = ds::WeightOp::create(builder, root->getLoc(), root->getResult(0).getType(),
                                     FlatSymbolRefAttr::get(recipe.getSymNameAttr()));
  keepNames(root, weight);
  return weight.getResult();
}

Value RecipeBook::store(DsBuilder &builder, Value value) {
  Operation *root = value ? value.getDefiningOp() : nullptr;
  if (!root || isa<ds::ConstantOp, ds::WeightOp>(root))
    return value;
  Value result = areStorable(root) ? store(builder.getBuilder(), root) : Value();
  if (result)
    (void)builder.getAnalysis().visit(result.getDefiningOp());
  return result;
}

ds::RecipeOp RecipeBook::derive(ds::RecipeOp recipe, const Twine &suffix,
                                llvm::function_ref<Value(OpBuilder &, const IRMapping &)> build) {
  auto result = cast<ds::RecipeOp>(recipe->cloneWithoutRegions());
  result.setSymName((recipe.getSymName() + "." + suffix).str());
  OpBuilder b(result.getContext());
  b.setInsertionPointToStart(&result.getBody().emplaceBlock());
  IRMapping map;
  for (Operation &op : recipe.getBody().front().without_terminator())
    b.clone(op, map);
  ds::YieldOp::create(b, recipe.getLoc(), build(b, map));
  eraseDeadOps(result);
  symbols.insert(result, recipe->getIterator());
  return result;
}

} // namespace deepstride
