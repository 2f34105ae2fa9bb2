// ds-add-head: a fresh linear layer on an output of a model that is to be fine-tuned. Works on the one entry of a
// module, before ds-promote-parameters makes states of its weight and bias.
//
//   return %pooled            %w = ds.weight @head.weight, %b = ds.weight @head.bias
//                       =>    %head = %pooled x %w + %b; return %pooled, %head
#include "dialects/ds/DsBuilder.h"
#include "passes/Report.h"
#include "passes/training/Parameters.h"
#include "passes/training/Passes.h"

#include <cmath>

using namespace mlir;

namespace deepstride {

#define GEN_PASS_DEF_ADDHEAD
#include "passes/training/Passes.h.inc"

namespace {

/// Uniform in [0, 1) with 24 bits, by SplitMix64 (Steele, Lea and Flood 2014).
double uniform(uint64_t seed, uint64_t index) {
  uint64_t x = seed + 0x9e3779b97f4a7c15 * (index + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ (x >> 31)) >> 40) * 0x1p-24;
}

struct AddHead : impl::AddHeadBase<AddHead>, PassReport {
  using Base::Base;

  void runOnOperation() override {
    auto entry = entryOf(getOperation());
    if (failed(entry))
      return signalPassFailure();
    if (classes < 1)
      return fail(*entry, "--head: expected at least one class, found " + std::to_string(classes));
    for (unsigned i = 0; i < entry->getNumResults(); ++i)
      if (auto own = entry->getResultAttrOfType<StringAttr>(i, ds::nameAttr); own && own.getValue() == "head")
        return fail(*entry, "--head: the model has an output 'head' already");
    auto number = outputNamed(*entry, output, "head");
    if (failed(number))
      return signalPassFailure();
    add(*entry, *number);
  }

  void fail(Operation *op, const Twine &why) {
    op->emitError() << why;
    signalPassFailure();
  }

  ds::WeightOp weight(OpBuilder &builder, func::FuncOp entry, StringRef name, ArrayRef<int64_t> shape,
                      ArrayRef<float> values) {
    auto type = RankedTensorType::get(shape, builder.getF32Type());
    OpBuilder at(entry);
    auto recipe = ds::RecipeOp::create(at, entry.getLoc(), name);
    at.createBlock(&recipe.getBody());
    Value stored = ds::ConstantOp::create(at, entry.getLoc(), DenseElementsAttr::get(type, values));
    ds::YieldOp::create(at, entry.getLoc(), ValueRange{stored});
    auto op = ds::WeightOp::create(builder, entry.getLoc(), type, FlatSymbolRefAttr::get(&getContext(), name));
    op->setAttr(ds::valueNameAttr, builder.getStrArrayAttr({name}));
    return op;
  }

  void add(func::FuncOp entry, unsigned number) {
    auto analysis = SizeAnalysis::run(entry);
    if (failed(analysis))
      return signalPassFailure();
    Operation *end = entry.getBody().front().getTerminator();
    DsBuilder b(OpBuilder(end), *analysis);
    b.setLocation(entry.getLoc());
    Value x = end->getOperand(number);
    auto features = b.rank(x) > 0 ? b.sizes(x).back().constant() : std::nullopt;
    if (!b.element(x) || !b.element(x).isF32() || b.rank(x) < 2 || !features || *features < 1)
      return fail(entry,
                  "--head: expected an output of f32 [..., features], found '" + output + "' of " + brief(b.sizes(x)));
    for (StringRef name : {"head.weight", "head.bias"})
      if (getOperation().lookupSymbol(name))
        return fail(entry, "--head: the model has a tensor '" + name + "' already");
    // As PyTorch begins linear layers: uniform within 1 / sqrt(features); the bias begins with 0.
    double bound = 1 / std::sqrt(static_cast<double>(*features));
    SmallVector<float> values;
    for (int64_t i = 0; i < *features * classes; ++i)
      values.push_back(static_cast<float>((2 * uniform(seed, static_cast<uint64_t>(i)) - 1) * bound));
    Value matrix = weight(b.getBuilder(), entry, "head.weight", {*features, classes}, values);
    Value vector = weight(b.getBuilder(), entry, "head.bias", {classes}, SmallVector<float>(classes, 0));
    for (Value value : {matrix, vector})
      if (failed(b.getAnalysis().visit(value.getDefiningOp())))
        return signalPassFailure();
    Value head = b.add(b.matmul(x, matrix), vector);
    if (!head)
      return signalPassFailure();
    end->insertOperands(end->getNumOperands(), head);
    unsigned count = entry.getNumResults();
    (void)entry.insertResult(count, head.getType(),
                             b.getBuilder().getDictionaryAttr(
                                 b.getBuilder().getNamedAttr(ds::nameAttr, b.getBuilder().getStringAttr("head"))));
    note(("head: " + Twine(*features) + " features to " + Twine(classes) + " classes").str());
  }
};
} // namespace

} // namespace deepstride
