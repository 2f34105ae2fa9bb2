// ds-narrow-integer-products: integers of 32 bits that hold no more than 16 are multiplied as 16 bits. Quantized models
// subtract a zero point from 8-bit numbers and multiply the differences; as 32-bit numbers these take four times the
// memory and an eighth of the speed. What an operand holds is read off the ops that make it, up to casts from narrow
// types and constants. The left operand becomes i16, a weight the narrowest type that holds it.
//
//   %x = ds.binary sub (ds.cast %u8 to i32), %zero         %n = ds.cast %x to i16
//   %y = ds.linear %x, %w                              =>  %y = ds.linear %n, %w8 : (i16, i8) -> i32
#include "passes/Report.h"
#include "passes/graph/Recipes.h"
#include "passes/optimization/IntegerRanges.h"
#include "passes/optimization/Passes.h"

#include "dialects/ds/DsDialect.h"

namespace deepstride {
#define GEN_PASS_DEF_NARROWINTEGERPRODUCTS
#include "passes/optimization/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct NarrowIntegerProducts : deepstride::impl::NarrowIntegerProductsBase<NarrowIntegerProducts>, PassReport {
  void runOnOperation() override {
    count("products narrowed", 0);
    IntegerRanges ranges(getOperation());
    RecipeBook recipes(getOperation());
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (isa<ds::MatmulOp, ds::LinearOp, ds::ConvOp>(op) && !op->getParentOfType<ds::RecipeOp>())
        products.push_back(op);
    });
    for (Operation *op : products)
      narrow(op, ranges, recipes);
    eraseUnusedRecipes(getOperation());
  }

  static Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

  void narrow(Operation *op, IntegerRanges &ranges, RecipeBook &recipes) {
    if (!elementOf(op->getResult(0)).isSignlessInteger(32) || !elementOf(op->getOperand(0)).isSignlessInteger(32))
      return;
    // Convolutions gather their operand, so that their filters are what is read along K.
    unsigned left = isa<ds::ConvOp>(op) ? 1 : 0, right = 1 - left;
    auto matmul = dyn_cast<ds::MatmulOp>(op);
    auto x = ranges.of(op->getOperand(left)), y = ranges.of(op->getOperand(right));
    auto remark = [&](const Twine &reason) { op->emitRemark() << "product not narrowed: " << reason; };
    for (auto [range, name] : {std::pair(x, "left"), std::pair(y, "right")})
      if (!range || !range->fits(16, false))
        return remark(Twine("the ") + name + " operand may be anything beyond 16 bits");
    if (matmul && matmul.getTranspose()[0])
      return remark("the left operand is transposed");
    auto integer = [&](unsigned bits, bool isUnsigned) {
      return IntegerType::get(&getContext(), bits, isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
    };
    Type i16 = integer(16, false), stored = i16;
    if (isa<ds::LinearOp>(op) && op->getOperand(right).getDefiningOp<ds::WeightOp>())
      stored = y->fits(8, false) ? integer(8, false) : y->fits(8, true) ? integer(8, true) : i16;
    convert(op->getOpOperand(left), i16, recipes);
    convert(op->getOpOperand(right), stored, recipes);
    count("products narrowed");
  }

  /// Parameters are stored in the type, other values converted.
  static void convert(OpOperand &operand, Type element, RecipeBook &recipes) {
    Value value = operand.get();
    OpBuilder builder(operand.getOwner());
    auto type = cast<RankedTensorType>(value.getType()).clone(element);
    auto cast = ds::CastOp::create(builder, value.getLoc(), type, value, TypeAttr::get(element));
    operand.set(cast);
    if (!isa_and_present<ds::WeightOp, ds::ConstantOp>(value.getDefiningOp()) || !isStorable(cast))
      return;
    if (Value constant = recipes.store(builder, cast)) {
      operand.set(constant);
      cast->erase();
    }
  }
};

} // namespace
