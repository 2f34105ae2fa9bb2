// Sources are mapped files; everything else is dialects/ds/HostTensor.h's business.
#include "dialects/ds/RecipeEvaluator.h"

using namespace mlir;

namespace deepstride {

FailureOr<HostTensor> RecipeEvaluator::readSource(ds::SourceOp source) {
  std::unique_ptr<llvm::MemoryBuffer> &file = files[source.getFile()];
  if (!file) {
    auto opened = llvm::MemoryBuffer::getFile(source.getFile(), /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!opened) {
      source.emitError("cannot read '") << source.getFile() << "': " << opened.getError().message();
      return failure();
    }
    file = std::move(*opened);
  }
  uint64_t offset = source.getOffset(), length = source.getLength();
  if (offset > file->getBufferSize() || length > file->getBufferSize() - offset) {
    source.emitError("expected ") << length << " bytes at offset " << offset << " of '" << source.getFile()
                                  << "', which has " << file->getBufferSize();
    return failure();
  }
  auto type = cast<RankedTensorType>(source.getType());
  return HostTensor{type.getElementType(), SmallVector<int64_t>(type.getShape()), file->getBufferStart() + offset,
                    nullptr};
}

FailureOr<HostTensor> RecipeEvaluator::evaluate(ds::RecipeOp recipe) {
  llvm::DenseMap<Value, HostTensor> values;
  for (Operation &op : recipe.getBody().front()) {
    if (auto yield = dyn_cast<ds::YieldOp>(op))
      return values.lookup(yield.getOperand(0));
    SmallVector<HostTensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    if (auto source = dyn_cast<ds::SourceOp>(op)) {
      auto range = readSource(source);
      if (failed(range))
        return failure();
      values[source] = std::move(*range);
      continue;
    }
    // Large weights exist, sizes that a model makes up of a few bytes are not among them.
    constexpr int64_t mostBytes = int64_t(1) << 34;
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    int64_t elementBytes = (type.getElementTypeBitWidth() + 7) / 8, bytes = elementBytes;
    for (int64_t size : type.getShape())
      if (llvm::MulOverflow(bytes, size, bytes) || bytes > mostBytes)
        return op.emitError("expected constants of at most ")
               << mostBytes << " bytes each that are computed while packaging, found a tensor of " << type;
    auto result = evaluateOnHost(&op, operands);
    if (!result && isa<ds::BinaryOp>(op) && isa<IntegerType>(type.getElementType()))
      return op.emitError("expected divisors of constants to be other than 0, found an integer division by 0");
    if (!result && isa<ds::GatherOp>(op))
      return op.emitError("expected indices of constants to be inside of their axis, found one that is not");
    if (!result && isa<ds::QuantizeWeightOp>(op))
      return op.emitError("expected weights that are finite, and triangles with a positive diagonal, found one to "
                          "quantize that is not so");
    if (!result)
      return op.emitError("cannot be evaluated while packaging");
    values[op.getResult(0)] = std::move(*result);
  }
  return failure();
}

} // namespace deepstride
