// Evaluates ops of the ds dialect on host tensors, element by element.
#include "dialects/ds/HostQuantization.h"
#include "dialects/ds/HostScalars.h"
#include "dialects/ds/HostTensor.h"

using namespace mlir;

namespace deepstride {

static std::optional<SmallVector<int64_t>> constants(ArrayAttr sizes) {
  SmallVector<int64_t> result;
  for (Attribute size : sizes) {
    auto value = sizeFromAttribute(size);
    if (!value || !value->constant())
      return std::nullopt;
    result.push_back(*value->constant());
  }
  return result;
}

/// The result of a pointwise op. Nothing for results of narrow floats, to which only kernels round, and where an
/// operand holds what would end a call.
static std::optional<HostTensor> computeOnHost(Operation *op, ArrayRef<HostTensor> operands,
                                               std::optional<unsigned> scanned) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto target = ElementInfo::of(type.getElementType());
  if (!target || (target->isFloat && target->width <= 8))
    return std::nullopt;
  SmallVector<ElementInfo> types;
  for (const HostTensor &operand : operands) {
    auto info = ElementInfo::of(operand.element);
    if (!info)
      return std::nullopt;
    types.push_back(*info);
  }
  auto read = [&](unsigned operand, int64_t at) {
    return readScalar(types[operand], operands[operand].data + at * operands[operand].elementBytes());
  };
  if (scanned)
    for (int64_t i = 0, n = operands[*scanned].count(); i < n; ++i)
      if (read(*scanned, i).integer == 0)
        return std::nullopt;

  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  int64_t width = result.elementBytes();
  HostScalars emitter;
  ScalarFunctions functions(emitter);
  SmallVector<HostScalar> values(operands.size());
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    for (unsigned operand = 0; operand < operands.size(); ++operand) {
      ArrayRef<int64_t> own = operands[operand].shape;
      values[operand] = read(operand, own == type.getShape() ? i : broadcastOffset(i, type.getShape(), own));
    }
    auto value = functions.pointwise(op, values, types, *target);
    if (!value)
      return std::nullopt;
    writeScalar(*target, result.owned->data() + i * width, *value);
  }
  return result;
}

/// The elements of ops without operands: an index, or sizes.
static std::optional<HostTensor> sizesOnHost(Operation *op, RankedTensorType type) {
  HostTensor result = HostTensor::allocate(type.getElementType(), type.getShape());
  auto set = [&](int64_t at, int64_t value) {
    writeNumber(result.element, result.owned->data() + at * result.elementBytes(), {static_cast<double>(value), value});
  };
  if (auto index = dyn_cast<ds::IotaOp>(op)) {
    int64_t size = result.shape[index.getAxis()], stride = 1;
    for (int64_t inner : ArrayRef(result.shape).drop_front(index.getAxis() + 1))
      stride *= inner;
    for (int64_t i = 0, n = result.count(); i < n; ++i)
      set(i, i / stride % size);
    return result;
  }
  auto values = constants(cast<ds::ShapeOp>(op).getValues());
  if (!values || static_cast<int64_t>(values->size()) != result.count())
    return std::nullopt;
  for (auto [i, value] : llvm::enumerate(*values))
    set(static_cast<int64_t>(i), value);
  return result;
}

std::optional<HostTensor> evaluateOnHost(Operation *op, ArrayRef<HostTensor> operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (auto constant = dyn_cast<ds::ConstantOp>(op))
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      return HostTensor::fromAttribute(dense);
  if (isa<ds::IotaOp, ds::ShapeOp>(op))
    return sizesOnHost(op, type);
  if (isa<ds::ReshapeOp>(op)) {
    HostTensor result = operands[0];
    result.shape = SmallVector<int64_t>(type.getShape());
    return result;
  }
  if (auto moved = dyn_cast<ds::TransposeOp>(op))
    return transposeOnHost(operands[0], moved.getPermutation());
  if (auto joined = dyn_cast<ds::ConcatOp>(op))
    return concatOnHost(operands, joined.getAxis());
  if (auto packed = dyn_cast<ds::PackOp>(op))
    return packOnHost(operands[0], packed.getPanel(), packed.getInterleave());
  if (auto quantized = dyn_cast<ds::QuantizeWeightOp>(op)) {
    QuantizationScheme scheme{static_cast<int64_t>(quantized.getBits()), static_cast<int64_t>(quantized.getGroup()),
                              quantized.getAsymmetric()};
    return quantizeOnHost(operands[0], quantized.getPart(), scheme, operands.size() > 1 ? &operands[1] : nullptr);
  }
  if (auto result = computeIntegersOnHost(op, operands))
    return result;
  if (auto result = castFloatsOnHost(op, operands))
    return result;
  if (isa<ds::BroadcastOp>(op))
    return broadcastOnHost(operands[0], type.getShape());
  if (auto taken = dyn_cast<ds::GatherOp>(op); taken && !taken.getScales())
    if (auto result = gatherOnHost(operands[0], operands[1], taken.getAxis(), type.getShape()))
      return *result;
  if (auto box = dyn_cast<ds::SliceOp>(op))
    if (auto starts = constants(box.getStarts()))
      return sliceOnHost(operands[0], *starts, type.getShape(), box.getSteps());
  auto isByteFloat = [](Type element) { return isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 8; };
  if (isa<ds::BitcastOp>(op) && (isByteFloat(type.getElementType()) || isByteFloat(operands[0].element))) {
    HostTensor result = operands[0];
    result.element = type.getElementType();
    return result;
  }
  auto element = dyn_cast<ds::PerElement>(op);
  if (element && element.isPointwise() && !isa<ds::BroadcastOp>(op))
    return computeOnHost(op, operands, element.scannedOperand());
  return evaluateChoiceOnHost(op, operands);
}

} // namespace deepstride
