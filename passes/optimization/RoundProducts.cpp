// ds-round-products: products of f32 with weights that packages hold are computed on operands that are rounded to bf16
// or f16, and summed in f32. The weight takes half the memory, and instructions that multiply pairs of bf16 do more
// work. Everything between products stays f32, as do rows that are rounded to f16: no instruction multiplies pairs of
// those.
//
//   %y = ds.linear %x, %w        %b = ds.cast %x to bf16
//                            =>  %y = ds.linear %b, %rounded {wide} : (bf16, bf16) -> f32
//
// What the program computes itself is rounded, too, with `computed`, once for all products that read it:
//
//   %y = ds.matmul %a, %b transpose [true, false]  =>  %y = ds.matmul %na, %nb transpose [true, false] {wide}
//
// Codes of quantized weights, and f16 that stands beside them, stay what they are: only rows are rounded.
#include "passes/Report.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/HalfRange.h"
#include "passes/optimization/Passes.h"
#include "passes/optimization/ProductCosts.h"

#include "dialects/ds/StridedWindow.h"

namespace deepstride {
#define GEN_PASS_DEF_ROUNDPRODUCTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct RoundProducts : deepstride::impl::RoundProductsBase<RoundProducts>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    count("products rounded", 0);
    if (type != "bf16" && type != "f16") {
      getOperation().emitError("ds-round-products: type: expected bf16 or f16, found '") << type << "'";
      return signalPassFailure();
    }
    std::string error;
    auto parsed = Machine::parse(machine, error);
    if (machine != "none" && !parsed) {
      getOperation().emitError("ds-round-products: ") << error;
      return signalPassFailure();
    }
    bool isFaster = type == "bf16" && (!parsed || multipliesPairs(*parsed));
    RecipeBook recipes(getOperation());
    HalfRange range(recipes);
    llvm::DenseMap<Value, Value> rounded; // rows that several products read
    SmallVector<ds::LinearOp> products;
    getOperation().walk([&](ds::LinearOp op) { products.push_back(op); });
    std::string first;
    llvm::DenseMap<Value, Value> widened; // what is rounded and f32 again
    for (ds::LinearOp op : products) {
      std::string reason = round(op, recipes, range, rounded);
      if (!reason.empty() && computed && !op.getScales() && !op.getPanel() &&
          roundComputed(op, isFaster, rounded, widened))
        reason = "";
      if (reason.empty()) {
        count("products rounded");
        continue;
      }
      op.emitRemark() << "product not rounded: " << reason;
      if (first.empty())
        first = reason;
    }
    if (range.isBroken)
      return signalPassFailure();
    if (computed)
      getOperation().walk([&](Operation *op) {
        if (isa<ds::MatmulOp, ds::ConvOp>(op) && roundComputed(op, isFaster, rounded, widened))
          count("products rounded");
      });
    eraseUnusedRecipes(getOperation());
    if (rounded.empty() && widened.empty() && !isRoundedBefore()) {
      bool hasFilters = getOperation().walk([](ds::ConvOp) { return WalkResult::interrupt(); }).wasInterrupted();
      if (first.empty())
        first = std::string("there is no product with a weight") +
                (hasFilters ? ", and no convolution was, which --report explains" : "");
      getOperation().emitError("ds-round-products: no product was rounded: ")
          << first << "; --precision=" << type << " would change nothing";
      signalPassFailure();
    }
  }

  /// Whether ds-round-attention or ds-round-filters, which come first, found something: either is enough.
  bool isRoundedBefore() {
    Type narrow = type == "f16" ? Type(Float16Type::get(&getContext())) : BFloat16Type::get(&getContext());
    auto isRounded = [&](Operation *op) {
      if (auto attention = dyn_cast<ds::AttentionOp>(op))
        return attention.getRounds().has_value();
      auto convolution = dyn_cast<ds::ConvOp>(op);
      return convolution &&
             (convolution.getWide() || (widenedFrom(convolution.getInput(), narrow) &&
                                        widenedFrom(ds::throughReshapes(convolution.getWeight()), narrow)));
    };
    return getOperation()
        .walk([&](Operation *op) { return isRounded(op) ? WalkResult::interrupt() : WalkResult::advance(); })
        .wasInterrupted();
  }

  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

  /// What a value of f32 was widened from, where that is of the type.
  static Value widenedFrom(Value value, Type narrow) {
    auto cast = value.getDefiningOp<ds::CastOp>();
    return cast && typeOf(cast.getInput()).getElementType() == narrow ? cast.getInput() : Value();
  }

  /// Replaces both operands of f32 by what they are as one of these types after the other, made once for each value.
  /// False where they are no f32.
  static bool castOperands(Operation *op, ArrayRef<Type> elements, llvm::DenseMap<Value, Value> &known) {
    auto operands = op->getOpOperands().take_front(2);
    if (!llvm::all_of(operands, [](OpOperand &operand) { return typeOf(operand.get()).getElementType().isF32(); }))
      return false;
    OpBuilder builder(op);
    for (OpOperand &operand : operands) {
      Value &found = known[operand.get()];
      if (Value narrow =
              found ? Value() : widenedFrom(operand.get(), elements.front())) // parameters are rounded already
        found = elements.back() == elements.front() ? narrow : operand.get();
      if (!found) {
        found = operand.get();
        builder.setInsertionPointAfterValue(found);
        for (Type element : elements)
          found =
              ds::CastOp::create(builder, op->getLoc(), typeOf(found).clone(element), found, TypeAttr::get(element));
      }
      operand.set(found);
    }
    return true;
  }

  /// Rounds operands that the program computes. False where they are no f32.
  bool roundComputed(Operation *op, bool isFaster, llvm::DenseMap<Value, Value> &rounded,
                     llvm::DenseMap<Value, Value> &widened) {
    OpBuilder builder(op);
    Type narrow = type == "f16" ? Type(builder.getF16Type()) : Type(builder.getBF16Type());
    auto convolution = dyn_cast<ds::ConvOp>(op);
    if (!isFaster || (convolution && convolution.hasFewFilters()))
      return castOperands(op, {narrow, builder.getF32Type()}, widened);
    if (!castOperands(op, {narrow}, rounded))
      return false;
    if (convolution)
      convolution.setWide(true);
    if (auto linear = dyn_cast<ds::LinearOp>(op))
      linear.setWide(true);
    auto matmul = dyn_cast<ds::MatmulOp>(op);
    if (!matmul)
      return true;
    matmul.setWide(true);
    if (!matmul.getTranspose()[0])
      return true;
    // Pairs lie along K: half the bytes are transposed, and are then read as rows.
    auto type = typeOf(matmul.getLhs());
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    SmallVector<int64_t> shape(type.getShape());
    std::swap(order[order.size() - 2], order.back());
    std::swap(shape[shape.size() - 2], shape.back());
    matmul.getLhsMutable().assign(
        ds::TransposeOp::create(builder, op->getLoc(), type.clone(shape), matmul.getLhs(), order));
    matmul.setTranspose({false, matmul.getTranspose()[1]});
    return true;
  }

  /// Why the product stays as it is; empty where it was replaced.
  std::string round(ds::LinearOp op, RecipeBook &recipes, HalfRange &range, llvm::DenseMap<Value, Value> &rounded) {
    bool isHalf = type == "f16";
    Type f32 = Float32Type::get(op.getContext());
    Type narrow = isHalf ? Type(Float16Type::get(op.getContext())) : BFloat16Type::get(op.getContext());
    if (op.getPanel())
      return "its weight is packed";
    bool isQuantized = op.getScales() != nullptr; // its codes stay what they are
    if (!typeOf(op.getInput()).getElementType().isF32())
      return "its operands are not f32";
    OpBuilder builder(op);
    auto cast = [&](Value value, Type element) {
      return ds::CastOp::create(builder, op.getLoc(), typeOf(value).clone(element), value, TypeAttr::get(element));
    };
    bool areHalves = op.getWide() && typeOf(op.getWeight()).getElementType().isF16(); // of ds-quantize-weights
    if (!isQuantized && !(isHalf && areHalves)) {
      if (!typeOf(op.getWeight()).getElementType().isF32())
        return "its operands are not f32";
      if (!isa_and_present<ds::WeightOp, ds::ConstantOp>(op.getWeight().getDefiningOp()))
        return "its weight is computed while the program runs";
      if (std::string reason = isHalf ? range.refuse(op.getWeight()) : ""; !reason.empty())
        return reason;
      auto narrowed = cast(op.getWeight(), narrow);
      Value weight = recipes.store(builder, narrowed);
      if (!weight)
        return "the recipe of its weight has too many ops";
      narrowed->erase();
      auto old = op.getWeight().getDefiningOp<ds::WeightOp>();
      op.getWeightMutable().assign(weight);
      if (old && old->use_empty())
        old.erase();
    }
    Value &input = rounded[op.getInput()];
    if (!input) { // right behind the rows: every product that reads them comes later
      builder.setInsertionPointAfterValue(op.getInput());
      input = cast(op.getInput(), narrow);
      if (isHalf)
        input = cast(input, f32);
    }
    op.getInputMutable().assign(input);
    if (!isQuantized || !isHalf) // codes by rows that were rounded to f16 are codes by f32
      op.setWide(true);
    return "";
  }
};

} // namespace
