#include "passes/training/Communication.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace deepstride {

Values Pending::finish(DsBuilder &b) const {
  SmallVector<Type> types;
  SmallVector<Attribute> sizes;
  for (const TensorFacts &facts : results) {
    types.push_back(facts.type());
    sizes.push_back(toAttribute(b.getContext(), facts.sizes));
  }
  auto wait = dist::WaitOp::create(b.getBuilder(), b.getLocation(), types, pending, b.getBuilder().getArrayAttr(sizes));
  for (auto [result, facts] : llvm::zip_equal(wait.getResults(), results))
    b.getAnalysis().set(result, facts);
  return Values(wait.getResults());
}

static StringAttr text(DsBuilder &b, StringRef value) { return b.getBuilder().getStringAttr(value); }

Pending Communication::allReduce(dist::Reduction reduction, ValueRange values, StringRef site) {
  Pending result;
  SmallVector<int64_t> offsets;
  int64_t elements = 0;
  for (Value value : values) {
    TensorFacts facts = b.facts(value);
    facts.contents.reset();
    offsets.push_back(elements);
    elements += llvm::divideCeil(*product(facts.sizes).constant(), unitBlock) * unitBlock;
    result.results.push_back(std::move(facts));
  }
  // A single number travels by itself, not with a block.
  int64_t block = values.size() == 1 ? 1 : unitBlock;
  if (values.size() == 1)
    elements = *product(b.sizes(values.front())).constant();
  auto layout = dist::LayoutAttr::get(b.getContext(), offsets, elements, block, 0, -1);
  result.pending = dist::AllReduceStartOp::create(
      b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()), reduction, values, dist::CodecAttr(),
      ValueRange(), text(b, site), text(b, "data"), b.getBuilder().getArrayAttr(layout));
  return result;
}

Pending Communication::allReduceInBits(ArrayRef<Unit> spaces, ValueRange tensors, ValueRange errors, StringRef site) {
  Pending result;
  for (ValueRange values : {tensors, errors})
    for (Value value : values) {
      result.results.push_back(b.facts(value));
      result.results.back().contents.reset();
    }
  SmallVector<Attribute> layouts;
  for (const Unit &space : spaces)
    layouts.push_back(space.layout(b.getContext()));
  result.pending = dist::AllReduceStartOp::create(
      b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()), dist::Reduction::mean, tensors,
      dist::CodecAttr::get(b.getContext(), dist::Codec::one_bit), errors, text(b, site), text(b, "data"),
      b.getBuilder().getArrayAttr(layouts));
  return result;
}

Pending Communication::reduceScatter(const Unit &unit, ValueRange tensors, StringRef site) {
  Pending result;
  result.results.push_back({unit.element, {unit.shard()}, std::nullopt});
  result.pending = dist::ReduceScatterStartOp::create(
      b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()), dist::Reduction::sum, tensors,
      ValueRange(), text(b, site), text(b, "data"), b.getBuilder().getArrayAttr(unit.layout(b.getContext())));
  return result;
}

Pending Communication::allGather(const Unit &unit, Value shard, ArrayRef<TensorFacts> tensors, StringRef site) {
  Pending result;
  llvm::append_range(result.results, tensors);
  result.pending = dist::AllGatherStartOp::create(
      b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()), shard, text(b, site), text(b, "data"),
      b.getBuilder().getArrayAttr(unit.layout(b.getContext())));
  return result;
}

} // namespace deepstride
