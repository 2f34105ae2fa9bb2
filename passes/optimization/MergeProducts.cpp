// ds-merge-products: makes one product of the projections of an attention that have the same input. Works on ds.linear
// ops of one block whose weights are constants of the package, after weights are quantized and before they are packed.
// Reading the parts where they lie is left to ds-fuse-deep, and so are gates, which are elementwise after two products.
//
//   %q = ds.linear %x, %wq                        %0 = ds.linear %x, @"wq.merged"
//   %k = ds.linear %x, %wk                    =>  %q = ds.slice %0 starts [0, 0] sizes ["n", 64] steps [1, 1]
//                                                 %k = ds.slice %0 starts [0, 64] sizes ["n", 64] steps [1, 1]
#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Provenance.h"
#include "dialects/ds/StridedWindow.h"
#include "passes/Report.h"
#include "passes/graph/Matching.h"
#include "passes/graph/Parameters.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/AttentionRegions.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/ProductSteps.h"
#include "passes/optimization/SoftmaxRegions.h"
#include "passes/optimization/WindowChains.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_MERGEPRODUCTS
#include "passes/optimization/Passes.h.inc"

namespace {

using Group = SmallVector<ds::LinearOp>;

int64_t columnsOf(ds::LinearOp op) { return cast<RankedTensorType>(op.getWeight().getType()).getDimSize(1); }

/// What the recipes of a product's weight, scales and zero points are called; null where one is no weight.
ArrayAttr recipesOf(ds::LinearOp op) {
  SmallVector<Attribute> names;
  for (Value value : {op.getWeight(), op.getScales(), op.getZeroPoints()}) {
    if (!value)
      continue;
    auto weight = value.getDefiningOp<ds::WeightOp>();
    if (!weight)
      return {};
    names.push_back(weight.getRecipeAttr());
  }
  return ArrayAttr::get(op.getContext(), names);
}

class ProductMerger {
public:
  ProductMerger(ModuleOp module, PassReport &report) : module(module), report(report), recipes(module) {}

  LogicalResult run() {
    module.walk([&](Operation *op) {
      if (auto weight = dyn_cast<ds::WeightOp>(op))
        readers[weight.getRecipeAttr()].insert(op->user_begin(), op->user_end());
      else // a state that begins as a weight
        op->getAttrDictionary().walk([&](FlatSymbolRefAttr symbol) { readers[symbol].insert(op); });
    });
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(ds::entryAttr) && failed(collect(function)))
        return failure();
    dropShared();
    for (Group &group : groups)
      if (group.size() > 1)
        merge(group);
    eraseUnusedRecipes(module);
    return success();
  }

private:
  static void stays(ds::LinearOp op, const Twine &reason) {
    op.emitRemark() << "is not merged with products of the same input: " << reason;
  }

  LogicalResult collect(func::FuncOp function) {
    auto result = SizeAnalysis::run(function);
    if (failed(result))
      return failure();
    analyses[function] = std::move(*result);
    llvm::SmallPtrSet<Operation *, 16> seen;
    function.walk([&](Operation *op) {
      Group open;
      SmallVector<Value> operands;
      auto softmax = dyn_cast<ds::SoftmaxOp>(op);
      if (auto attention = dyn_cast<ds::AttentionOp>(op)) {
        operands = {attention.getQuery(), attention.getKey(), attention.getValue()};
      } else if (auto products = softmax ? productsAround(softmax) : std::nullopt) {
        operands = {products->scores.getLhs(), products->scores.getRhs(), products->weighted.getRhs()};
        SmallVector<Operation *> steps = stepsBefore(*products);
        inAttention.insert(steps.begin(), steps.end());
      }
      for (Value operand : operands)
        if (ds::LinearOp op = projectionOf(operand); op && seen.insert(op).second)
          open.push_back(op);
      while (open.size() > 1) {
        ds::LinearOp first = open.front();
        auto isBeside = [&](ds::LinearOp op) {
          return op.getInput() == first.getInput() && op->getBlock() == first->getBlock();
        };
        Group beside;
        llvm::copy_if(open, std::back_inserter(beside), isBeside);
        llvm::erase_if(open, isBeside);
        if (beside.size() > 1)
          add(beside, analyses[function]);
      }
    });
    return success();
  }

  /// Those of the group that are like the first of them that another one is like.
  void add(const Group &beside, SizeAnalysis &analysis) {
    int64_t total = 0;
    for (ds::LinearOp op : beside)
      total += columnsOf(op);
    auto isLike = [&](ds::LinearOp op, ds::LinearOp other) { return !obstacle(op, other, total, analysis); };
    const auto *lead = llvm::find_if(beside, [&](ds::LinearOp op) {
      return isLike(op, op) && llvm::count_if(beside, [&](ds::LinearOp other) { return isLike(other, op); }) > 1;
    });
    if (lead == beside.end())
      lead = llvm::find_if(beside, [&](ds::LinearOp op) { return isLike(op, op); });
    Group group;
    for (ds::LinearOp op : beside)
      if (auto reason = obstacle(op, lead == beside.end() ? op : *lead, total, analysis))
        stays(op, *reason);
      else
        group.push_back(op);
    groups.push_back(group);
  }

  std::optional<StringRef> obstacle(ds::LinearOp op, ds::LinearOp first, int64_t total, SizeAnalysis &analysis) {
    if (op.getPanel() || op.getTransposed())
      return "its weight is packed or transposed";
    if (!recipesOf(op))
      return "its weight is no constant that is stored in the package";
    if (op.getBias() && !isFoldable(parameterSourceOf(op.getBias())))
      return "its bias is no constant of the package";
    auto elementOf = [](Value value) {
      return value ? cast<RankedTensorType>(value.getType()).getElementType() : Type();
    };
    if (elementOf(op.getWeight()) != elementOf(first.getWeight()) ||
        elementOf(op.getResult()) != elementOf(first.getResult()) ||
        elementOf(op.getScales()) != elementOf(first.getScales()))
      return "its types are others";
    if (op.getGroup() != first.getGroup() || op.getWide() != first.getWide() ||
        !op.getZeroPoints() != !first.getZeroPoints())
      return "its weight is quantized in another way";
    if (!haveLikeSteps(op, first))
      return "its sums become numbers in another way";
    ds::StridedWindow window = ds::StridedWindow::whole(asSymbols(analysis.facts(op.getResult()).sizes));
    SizeExpr stride = total; // rows of the parts are as far apart as those of the whole
    for (size_t axis = window.sizes.size() - 1; axis-- > 0; stride = stride * window.sizes[axis])
      window.strides[axis] = stride;
    return reasonForMemory(steppedResult(op), window, analysis);
  }

  /// What needs a part in memory as it was: reading it in place is what merging pays for.
  std::optional<StringRef> reasonForMemory(Value value, const ds::StridedWindow &window, SizeAnalysis &analysis) {
    auto moves = [&](Operation *op) { return isFusablePointwise(op) && !inAttention.contains(op); };
    for (OpOperand &use : value.getUses()) {
      Operation *reader = use.getOwner();
      if (inAttention.contains(reader))
        continue;
      if (reader->getBlock() != value.getParentBlock() || !readsWindows(use))
        return "something needs its result in memory";
      if (!ds::isWindowOp(reader))
        continue;
      Value shown = reader->getResult(0);
      if (isa<ds::ReshapeOp>(reader)) {
        auto reshaped = ds::windowThrough(reader, window, asSymbols(analysis.facts(shown).sizes), {});
        if (!reshaped)
          return "its rows are joined with its columns";
        if (auto reason = reasonForMemory(shown, *reshaped, analysis))
          return reason;
      } else if (llvm::all_of(reader->getUsers(), moves)) {
        return "elementwise ops move what they read of it";
      } // else it is read in place, or copied as it was before
    }
    return std::nullopt;
  }

  /// Weights that something else reads, too, would be stored twice. Equal groups, as of entries for different
  /// conditions, read one joined weight.
  void dropShared() {
    llvm::DenseMap<Operation *, Attribute> grouped;
    bool isStable = false;
    while (!isStable) {
      isStable = true;
      grouped.clear();
      for (Group &group : groups)
        for (ds::LinearOp op : group)
          if (group.size() > 1)
            grouped[op] = namesOf(group);
      for (Group &group : groups)
        llvm::erase_if(group, [&](ds::LinearOp op) {
          if (group.size() < 2)
            return false;
          for (Attribute name : recipesOf(op))
            for (Operation *reader : readers[name])
              if (reader != op && grouped.lookup(reader) != grouped[op]) {
                stays(op, "something else reads its weight, which would be stored twice");
                isStable = false;
                return true;
              }
          return false;
        });
    }
  }

  static Attribute namesOf(const Group &group) {
    SmallVector<Attribute> names;
    for (ds::LinearOp op : group)
      names.push_back(recipesOf(op));
    return ArrayAttr::get(names.front().getContext(), names);
  }

  /// What the parts have side by side: along the last axis, in one constant of the package.
  Value joined(OpBuilder &builder, ArrayRef<Value> parts) {
    auto type = cast<RankedTensorType>(parts.front().getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = 0;
    for (Value part : parts)
      shape.back() += cast<RankedTensorType>(part.getType()).getShape().back();
    auto concat = ds::ConcatOp::create(builder, parts.front().getLoc(), type.clone(shape), type.getRank() - 1, parts);
    std::string name = "merged";
    if (auto weight = parts.front().getDefiningOp<ds::WeightOp>())
      name = (weight.getRecipe() + ".merged").str();
    concat->setAttr(ds::valueNameAttr, builder.getStrArrayAttr({name}));
    Value stored = recipes.store(builder, concat);
    concat.erase();
    return stored;
  }

  /// The bias, or numbers that change no sum: x + -0 is x.
  static Value biasOf(OpBuilder &builder, ds::LinearOp op) {
    if (op.getBias())
      return op.getBias();
    Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
    auto type = RankedTensorType::get({columnsOf(op)}, element);
    Attribute none = builder.getZeroAttr(element);
    if (auto format = dyn_cast<FloatType>(element))
      none = FloatAttr::get(element, APFloat::getZero(format.getFloatSemantics(), /*Negative=*/true));
    return ds::ConstantOp::create(builder, op.getLoc(), SplatElementsAttr::get(type, none));
  }

  void merge(Group &group) {
    ds::LinearOp first =
        *llvm::min_element(group, [](ds::LinearOp a, ds::LinearOp b) { return a->isBeforeInBlock(b); });
    OpBuilder builder(first);
    SizeAnalysis &analysis = analyses[first->getParentOfType<func::FuncOp>()];
    auto join = [&](auto part) -> Value {
      SmallVector<Value> parts;
      for (ds::LinearOp op : group)
        parts.push_back(part(op));
      return parts.front() ? joined(builder, parts) : Value();
    };
    Value weight = join([](ds::LinearOp op) { return op.getWeight(); });
    Value scales = join([](ds::LinearOp op) { return op.getScales(); });
    Value zeroPoints = join([](ds::LinearOp op) { return op.getZeroPoints(); });
    bool hasBias = llvm::any_of(group, [](ds::LinearOp op) { return op.getBias() != nullptr; });
    Value bias = hasBias ? join([&](ds::LinearOp op) { return biasOf(builder, op); }) : Value();
    if (!weight || (first.getScales() && !scales) || (first.getZeroPoints() && !zeroPoints) || (hasBias && !bias))
      return stays(first, "the recipe of what they share would have too many ops");

    SmallVector<Location> places;
    SmallVector<int64_t> shares;
    for (ds::LinearOp op : group) {
      places.push_back(op.getLoc());
      shares.push_back(columnsOf(op));
    }
    auto type = cast<RankedTensorType>(first.getResult().getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = cast<RankedTensorType>(weight.getType()).getDimSize(1);
    auto whole =
        ds::LinearOp::create(builder, withShares(builder.getContext(), places, shares), type.clone(shape),
                             first.getInput(), weight, bias, scales, zeroPoints, IntegerAttr(), IntegerAttr(),
                             IntegerAttr(), IntegerAttr(), UnitAttr(), first.getGroupAttr(), first.getWideAttr());
    Value result = joinSteps(group, whole.getResult(),
                             [&](OpBuilder &at, ArrayRef<Value> parts) -> Value { return joined(at, parts); });
    if (!result) {
      eraseDeadOps(module);
      return stays(first, "the recipe of what they share would have too many ops");
    }
    if (result != whole.getResult())
      builder.setInsertionPointAfterValue(result);
    int64_t column = 0;
    for (ds::LinearOp op : group) {
      SizeVector sizes = analysis.facts(op.getResult()).sizes, starts(sizes.size());
      starts.back() = column;
      column += columnsOf(op);
      auto slice =
          ds::SliceOp::create(builder, op.getLoc(), steppedResult(op).getType(), result,
                              toAttribute(builder.getContext(), starts), toAttribute(builder.getContext(), sizes),
                              builder.getDenseI64ArrayAttr(SmallVector<int64_t>(sizes.size(), 1)));
      keepNames(steppedResult(op).getDefiningOp(), slice);
      steppedResult(op).replaceAllUsesWith(slice.getResult());
    }
    for (ds::LinearOp op : group) {
      SmallVector<Operation *> steps = stepsOf(op);
      for (Operation *step : llvm::reverse(steps))
        step->erase();
      SmallVector<Value> operands(op->operand_begin() + 1, op->operand_end());
      op.erase();
      for (Value operand : operands)
        if (auto unused = operand.getDefiningOp<ds::WeightOp>(); unused && unused->use_empty())
          unused.erase();
    }
    report.count("products merged", static_cast<int64_t>(group.size()));
  }

  ModuleOp module;
  PassReport &report;
  RecipeBook recipes;
  llvm::DenseMap<Operation *, SizeAnalysis> analyses;                   // by function
  llvm::DenseMap<Attribute, llvm::SmallPtrSet<Operation *, 2>> readers; // by recipe
  llvm::SmallPtrSet<Operation *, 32> inAttention; // what kernels of attention in parts compute of their operands
  SmallVector<Group> groups;
};

struct MergeProducts : impl::MergeProductsBase<MergeProducts>, PassReport {
  void runOnOperation() override {
    count("products merged", 0);
    if (failed(ProductMerger(getOperation(), *this).run()))
      signalPassFailure();
  }
};
} // namespace

} // namespace deepstride
