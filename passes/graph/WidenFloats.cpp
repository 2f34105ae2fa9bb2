// ds-widen-floats: computes in f64 what a function computes in narrower floats. Values are cast where they enter
// (inputs, weights) and where they leave (results); everything between changes its type. Recipes, and so what is
// stored, stay.
//
//   %1 = ds.unary exp %x : (tensor<4xf32>) -> ...         %0 = ds.cast %x to f64
//   return %1                                         =>  %1 = ds.unary exp %0 : (tensor<4xf64>) -> ...
//                                                         %2 = ds.cast %1 to f32
#include "dialects/ds/DsDialect.h"
#include "passes/Report.h"
#include "passes/graph/Passes.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_WIDENFLOATS
#include "passes/graph/Passes.h.inc"

/// The f64 tensor type for a narrower float tensor, else nothing. Floats of eight bits and less are storage: a program
/// that rounds to them means it.
static RankedTensorType widened(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto element = tensor ? dyn_cast<FloatType>(tensor.getElementType()) : FloatType();
  if (!element || element.isF64() || element.getWidth() <= 8)
    return {};
  return RankedTensorType::get(tensor.getShape(), Float64Type::get(type.getContext()));
}

static ElementsAttr widenElements(DenseElementsAttr elements) {
  auto toDouble = [](APFloat value) {
    bool losesInfo;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return value.bitcastToAPInt();
  };
  return elements.mapValues(Float64Type::get(elements.getContext()), function_ref<APInt(const APFloat &)>(toDouble));
}

namespace {
struct WidenFloats : impl::WidenFloatsBase<WidenFloats>, PassReport {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (op != function)
        ops.push_back(op);
    });
    SmallVector<std::pair<ds::BitcastOp, Type>> bitcasts;
    for (Operation *op : ops)
      if (auto bitcast = dyn_cast<ds::BitcastOp>(op))
        bitcasts.push_back({bitcast, bitcast.getInput().getType()});
    for (BlockArgument argument : function.getArguments())
      castAfter(argument);
    for (Operation *op : ops)
      if (!isa<ds::BitcastOp>(op))
        widen(op, function);
    for (auto [bitcast, type] : bitcasts)
      keepBits(bitcast, type);
  }

  void widen(Operation *op, func::FuncOp function) {
    if (auto constant = dyn_cast<ds::ConstantOp>(op)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!elements || !widened(constant.getType()))
        return;
      constant.setValueAttr(widenElements(elements));
      constant.getResult().setType(widened(constant.getType()));
      return;
    }
    if (isa<ds::WeightOp>(op))
      return castAfter(op->getResult(0));
    if (isa<func::ReturnOp>(op))
      return castBack(op, function);
    if (auto cast = dyn_cast<ds::CastOp>(op))
      if (widened(cast.getType()))
        cast.setTo(Float64Type::get(op->getContext()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (auto type = widened(argument.getType()))
            argument.setType(type);
    for (Value result : op->getResults())
      if (auto type = widened(result.getType())) {
        result.setType(type);
        count("widened");
      }
  }

  /// Bits are those of the type that the function was written with: cast back before, and to f64 after.
  static void keepBits(ds::BitcastOp bitcast, Type type) {
    OpBuilder builder(bitcast);
    if (bitcast.getInput().getType() != type)
      bitcast.getInputMutable().assign(ds::CastOp::create(builder, bitcast.getLoc(), type, bitcast.getInput(),
                                                          cast<RankedTensorType>(type).getElementType()));
    castAfter(bitcast.getResult());
  }

  static void castAfter(Value value) {
    auto type = widened(value.getType());
    if (!type)
      return;
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto cast = ds::CastOp::create(builder, value.getLoc(), type, value, type.getElementType());
    value.replaceAllUsesExcept(cast.getResult(), cast);
  }

  static void castBack(Operation *op, func::FuncOp function) {
    OpBuilder builder(op);
    for (auto [operand, type] : llvm::zip_equal(op->getOpOperands(), function.getResultTypes())) {
      if (operand.get().getType() == type)
        continue;
      auto cast = ds::CastOp::create(builder, op->getLoc(), type, operand.get(),
                                     cast_or_null<RankedTensorType>(type).getElementType());
      operand.set(cast.getResult());
    }
  }
};
} // namespace

} // namespace deepstride
