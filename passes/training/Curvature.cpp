// H u is the gradient of the sum of gradients times u: a second sweep over what the first one left, by the same rules.
#include "passes/training/Curvature.h"

#include "passes/training/Dropout.h"
#include "passes/training/ReverseSweep.h"
#include "passes/training/RunningStatistics.h"
#include "passes/training/Signature.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

namespace {
/// A parameter of a layer, and its part of the vector.
struct Part {
  Parameter parameter;
  Value direction, isChosen, u;
};
} // namespace

/// The value where it is finite, else 0.
static Value finite(DsBuilder &b, Value x) {
  Value zero = b.scalar(b.element(x), 0);
  return b.select(b.binary(BinaryKind::eq, b.sub(x, x), zero), x, zero);
}

static Value total(DsBuilder &b, Value x) {
  return b.cast(b.reduce(ReduceKind::sum, x, axesFrom(0, b.rank(x)), /*keep=*/false), b.f64());
}

LogicalResult buildCurvature(func::FuncOp model, const Blocks &blocks, double stability) {
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (auto name = model.getArgAttrOfType<StringAttr>(i, ds::nameAttr);
        name && (name.getValue() == "curvature_block" || name.getValue() == "loss_weight"))
      return model.emitError() << "expected inputs of other names than those that training adds, found '"
                               << name.getValue() << "'";
  llvm::StringSet<> names;
  for (const Parameter &parameter : parametersOf(model))
    names.insert(parameter.name.getValue());
  for (const Parameter &parameter : parametersOf(model))
    if (std::string own = parameter.stateName(directionSuffix); blocks.isInLayer(parameter) && names.contains(own))
      return model.emitError() << "'" << own << "' is a parameter, and the name of what training keeps of '"
                               << parameter.name.getValue() << "'";
  removeDropouts(model);
  useBatchStatistics(model);
  auto found = SizeAnalysis::run(model);
  if (failed(found))
    return failure();
  SizeAnalysis sizes = std::move(*found);
  Block &body = model.getBody().front();
  Operation *end = body.getTerminator();
  Value loss = end->getOperand(0);
  DsBuilder b(OpBuilder(end), sizes);
  b.setLocation(model.getLoc());
  Signature signature(model);
  auto input = [&](StringRef name, Type type) {
    Value value = signature.input(name, type, {});
    sizes.set(value, TensorFacts{type, {}, std::nullopt});
    return value;
  };
  Value block = input("curvature_block", b.i64()), weight = b.cast(input("loss_weight", b.f64()), b.element(loss));
  SmallVector<Part> parts;
  Value squares;
  for (const Parameter &parameter : parametersOf(model)) {
    if (!blocks.isInLayer(parameter))
      continue;
    Type element = b.element(parameter.value);
    SizeVector shape = b.sizes(parameter.value);
    Value direction = signature.state(parameter.stateName(directionSuffix), element, shape);
    sizes.set(direction, TensorFacts{element, shape, std::nullopt});
    Value isChosen = b.binary(BinaryKind::eq, block, static_cast<double>(blocks.of.lookup(parameter.name)));
    Value v = b.select(isChosen, finite(b, direction), b.scalar(element, 0));
    Value square = total(b, b.mul(v, v));
    squares = squares ? b.add(squares, square) : square;
    parts.push_back({parameter, direction, isChosen, v});
  }
  Value length = b.add(b.unary(UnaryKind::sqrt, squares), stability);
  SmallVector<Value> values;
  for (Part &part : parts) {
    part.u = b.div(part.u, b.cast(length, b.element(part.u)));
    values.push_back(part.parameter.value);
  }
  ReverseSweep first(body, values);
  if (failed(first.run(loss, weight, b)))
    return failure();
  b.setLocation(model.getLoc());
  Value slope; // of the loss along u
  for (Part &part : parts)
    if (Value gradient = first.gradient(part.parameter.value)) {
      Value sum = b.reduce(ReduceKind::sum, b.mul(gradient, part.u), axesFrom(0, b.rank(gradient)), /*keep=*/false);
      slope = slope ? b.add(slope, sum) : sum;
    }
  if (!slope)
    return model.emitError() << "eigenvalue: the loss depends on no parameter of a layer";
  ReverseSweep second(body, values);
  if (failed(second.run(slope, b.scalar(b.element(slope), 1), b)))
    return failure();
  b.setLocation(model.getLoc());
  Value eigenvalue = b.scalar(b.f64(), 0);
  SmallVector<Value> next;
  for (Part &part : parts) {
    Value product = second.gradient(part.parameter.value);
    product = product ? finite(b, product) : b.broadcast(b.scalar(b.element(part.u), 0), b.sizes(part.u));
    eigenvalue = b.add(eigenvalue, total(b, b.mul(product, part.u)));
    next.push_back(b.select(part.isChosen, product, part.direction));
  }
  if (!eigenvalue || llvm::is_contained(next, Value()))
    return failure();
  signature.result(eigenvalue, "eigenvalue");
  for (auto [part, value] : llvm::zip_equal(parts, next))
    signature.newState(value, part.parameter.stateName(directionSuffix));
  signature.finish();
  return success();
}

} // namespace deepstride
