// ds-promote-parameters: makes states of the weights that a model learns, before anything folds them. Works on the
// entries of a module. What a weight acts as is read off its first readers, seen through what only moves elements.
//
//   func.func @main(%x) { %w = ds.weight @w            func.func @main(%x, %w {ds.state = "w", ds.initial = @w}) {
//     %y = ds.matmul %x, %w ... }                 =>     %y = ds.matmul %x, %w ... }
#include "passes/Report.h"
#include "passes/training/Passes.h"

#include "dialects/ds/DsDialect.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_PROMOTEPARAMETERS
#include "passes/training/Passes.h.inc"

namespace {

/// Whether the op shows its first operand's elements, moved.
bool movesElements(Operation *op) {
  return isa<ds::ReshapeOp, ds::TransposeOp, ds::SliceOp, ds::CastOp, ds::BroadcastOp>(op);
}

/// Whether a value is computed from inputs of the entry.
bool isActivation(Value value) {
  SmallVector<Value> open = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
      if (!function || !function.getArgAttr(argument.getArgNumber(), ds::stateAttr))
        return true;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (op->getNumRegions() > 0)
      return true;
    llvm::append_range(open, op->getOperands());
  }
  return false;
}

/// Whether scores that end in a softmax are what a sum is part of: then what is added is a mask.
bool leadsToSoftmax(Operation *op) {
  for (unsigned step = 0; step < 6 && op; ++step) {
    if (isa<ds::SoftmaxOp, ds::AttentionOp>(op))
      return true;
    if (!op->hasOneUse() || !(movesElements(op) || isa<ds::BinaryOp, ds::SelectOp>(op)))
      return false;
    op = *op->user_begin();
  }
  return false;
}

/// At most one axis of more than one element.
bool isVector(Value value) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  return llvm::count_if(shape, [](int64_t size) { return size != 1; }) <= 1;
}

/// What a weight is to the op that reads it; empty where that is nothing a model learns.
StringRef roleAt(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (isa<ds::MatmulOp, ds::LinearOp, ds::ConvOp>(op))
    return number == 2 ? "bias" : "weight";
  if (isa<ds::GatherOp>(op))
    return number == 0 ? "table" : "";
  if (isa<ds::LayerNormOp, ds::RmsNormOp>(op))
    return number == 2 ? "bias" : number == 1 ? "scale" : "";
  if (isa<ds::ConcatOp>(op))
    return llvm::any_of(op->getOperands(), isActivation) ? "token" : "";
  auto binary = dyn_cast<ds::BinaryOp>(op);
  if (!binary || !isActivation(op->getOperand(1 - number)))
    return "";
  if (binary.getKind() == ds::BinaryKind::add)
    return isVector(use.get()) ? "bias" : leadsToSoftmax(op) ? "" : "table";
  return binary.getKind() == ds::BinaryKind::mul && isVector(use.get()) ? "scale" : "";
}

/// Whether what is learned may be seen through: a sum or product with other weights, as of two biases, or of a scale
/// and a deviation. What divides or is taken away, such as statistics of a norm, is not seen.
bool isPartOf(OpOperand &use) {
  Operation *op = use.getOwner();
  if (movesElements(op))
    return true;
  auto binary = dyn_cast<ds::BinaryOp>(op);
  if (!binary || isActivation(op->getOperand(1 - use.getOperandNumber())))
    return false;
  bool isSymmetric = binary.getKind() == ds::BinaryKind::add || binary.getKind() == ds::BinaryKind::mul;
  bool isFirst = binary.getKind() == ds::BinaryKind::sub || binary.getKind() == ds::BinaryKind::div;
  return isSymmetric || (isFirst && use.getOperandNumber() == 0);
}

StringRef roleOf(Value weight) {
  SmallVector<Value> open = {weight};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      if (StringRef role = roleAt(use); !role.empty())
        return role;
      if (isPartOf(use))
        open.push_back(use.getOwner()->getResult(0));
    }
  }
  return "";
}

struct PromoteParameters : impl::PromoteParametersBase<PromoteParameters>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    count("parameters", 0);
    std::string error;
    for (auto [name, text] : {std::pair("train", &train), std::pair("freeze", &freeze)})
      if (!text->getValue().empty() && !llvm::Regex(text->getValue()).isValid(error)) {
        getOperation().emitError() << name << ": expected a regular expression, found '" << text->getValue()
                                   << "': " << error;
        return signalPassFailure();
      }
    int64_t promoted = 0;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ds::entryAttr))
        promoted += promote(function);
    if (promoted > 0)
      return;
    getOperation().emitError() << "no parameter to train: "
                               << (train.empty() && freeze.empty()
                                       ? "no weight of the model acts as weight, bias, scale or table"
                                       : "train and freeze leave none");
    signalPassFailure();
  }

  /// Why a weight stays as it is; empty for a parameter.
  std::string reasonToStay(ds::WeightOp weight) {
    StringRef name = weight.getRecipe();
    Type element = getElementTypeOrSelf(weight);
    if (!isa<FloatType>(element) || element.getIntOrFloatBitWidth() < 32)
      return "holds no floats of 32 bits or more";
    if (!freeze.empty() && llvm::Regex(freeze.getValue()).match(name))
      return "is named by --freeze";
    if (!train.empty())
      return llvm::Regex(train.getValue()).match(name) ? "" : "is not named by --train";
    auto type = cast<RankedTensorType>(weight.getType());
    if (type.getNumElements() <= 1)
      return "is a scalar";
    return roleOf(weight).empty() ? "acts as no weight, bias, scale or table" : "";
  }

  int64_t promote(func::FuncOp function) {
    llvm::MapVector<StringAttr, SmallVector<ds::WeightOp>> weights;
    function.walk([&](ds::WeightOp weight) { weights[weight.getRecipeAttr().getAttr()].push_back(weight); });
    int64_t promoted = 0;
    for (auto &[name, uses] : weights) {
      std::string reason;
      for (ds::WeightOp use : uses)
        if (reason = reasonToStay(use); reason.empty())
          break; // one reader is enough
      if (!reason.empty()) {
        count("kept");
        uses.front()->emitRemark() << "'" << name.getValue() << "' is not trained: it " << reason;
        continue;
      }
      ++promoted;
      auto type = cast<RankedTensorType>(uses.front().getType());
      note((Twine("trained: ") + name.getValue() + " " +
            std::string(roleOf(uses.front()).empty() ? "parameter" : roleOf(uses.front())))
               .str());
      OpBuilder builder(function);
      SmallVector<Attribute> dims;
      for (int64_t size : type.getShape())
        dims.push_back(builder.getI64IntegerAttr(size));
      auto attributes = builder.getDictionaryAttr(
          {builder.getNamedAttr(ds::dimsAttr, builder.getArrayAttr(dims)), builder.getNamedAttr(ds::nameAttr, name),
           builder.getNamedAttr(ds::stateAttr, name),
           builder.getNamedAttr(ds::initialAttr, uses.front().getRecipeAttr())});
      unsigned number = function.getNumArguments();
      if (failed(function.insertArgument(number, type, attributes, uses.front().getLoc())))
        continue;
      for (ds::WeightOp use : uses) {
        use.getResult().replaceAllUsesWith(function.getArgument(number));
        use.erase();
      }
    }
    count("parameters", promoted);
    return promoted;
  }
};
} // namespace

} // namespace deepstride
