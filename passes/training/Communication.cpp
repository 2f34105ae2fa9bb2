#include "passes/training/Communication.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace deepstride {

Values Pending::finish(DsBuilder &b, bool isDeferred) const {
  SmallVector<Type> types;
  SmallVector<Attribute> sizes;
  for (const TensorFacts &facts : results) {
    types.push_back(facts.type());
    sizes.push_back(toAttribute(b.getContext(), facts.sizes));
  }
  auto wait = dist::WaitOp::create(b.getBuilder(), b.getLocation(), types, pending, b.getBuilder().getArrayAttr(sizes),
                                   isDeferred);
  for (auto [result, facts] : llvm::zip_equal(wait.getResults(), results))
    b.getAnalysis().set(result, facts);
  return Values(wait.getResults());
}

static TensorFacts factsOf(DsBuilder &b, Value value) {
  TensorFacts facts = b.facts(value);
  facts.contents.reset();
  return facts;
}

TypeAttr Communication::wireOf(Value tensor) const {
  bool isNarrower = wire && wire.getIntOrFloatBitWidth() < b.element(tensor).getIntOrFloatBitWidth();
  return isNarrower ? TypeAttr::get(wire) : TypeAttr();
}

static dist::CodecAttr rows(DsBuilder &b, bool isSparse) {
  return isSparse ? dist::CodecAttr::get(b.getContext(), dist::Codec::sparse_rows) : dist::CodecAttr();
}

static StringAttr text(DsBuilder &b, StringRef value) { return b.getBuilder().getStringAttr(value); }

Pending Communication::allReduce(dist::Reduction reduction, ValueRange values, StringRef site, Value condition,
                                 bool isSparse) {
  Pending result;
  SmallVector<int64_t> offsets;
  int64_t elements = 0;
  for (Value value : values) {
    result.results.push_back(factsOf(b, value));
    offsets.push_back(elements);
    elements += llvm::divideCeil(*product(result.results.back().sizes).constant(), unitBlock) * unitBlock;
  }
  // A single number travels by itself, not with a block.
  int64_t block = values.size() == 1 ? 1 : unitBlock;
  if (values.size() == 1)
    elements = *product(b.sizes(values.front())).constant();
  auto layout = dist::LayoutAttr::get(b.getContext(), offsets, elements, block, 0, -1);
  result.pending.push_back(
      dist::AllReduceStartOp::create(b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()), reduction,
                                     values, rows(b, isSparse), ValueRange(), condition, text(b, site), text(b, "data"),
                                     b.getBuilder().getArrayAttr(layout), wireOf(values.front())));
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
  result.pending.push_back(dist::AllReduceStartOp::create(
      b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()), dist::Reduction::mean, tensors,
      dist::CodecAttr::get(b.getContext(), dist::Codec::one_bit), errors, Value(), text(b, site), text(b, "data"),
      b.getBuilder().getArrayAttr(layouts), TypeAttr()));
  return result;
}

Value Communication::scatter(const Bucket &bucket, ValueRange tensors, ValueRange into, Value condition, bool isInPlace,
                             StringRef site) {
  Attribute layout = bucket.unit->layout(b.getContext(), bucket.first, bucket.last);
  return dist::ReduceScatterStartOp::create(b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()),
                                            dist::Reduction::sum, tensors, into, condition, isInPlace, text(b, site),
                                            text(b, "data"), b.getBuilder().getArrayAttr(layout),
                                            wireOf(tensors.front()), rows(b, isInPlace && bucket.unit->isSparse));
}

Pending Communication::reduceScatter(const Bucket &bucket, ValueRange tensors, StringRef site, Value into) {
  Pending result;
  result.results.push_back({b.element(tensors.front()), {bucket.unit->shard()}, std::nullopt});
  result.pending.push_back(
      scatter(bucket, tensors, into ? ValueRange(into) : ValueRange(), {}, /*isInPlace=*/false, site));
  return result;
}

Pending Communication::reduceInPlace(const Bucket &bucket, ValueRange tensors, StringRef site, Value condition) {
  Pending result;
  for (Value tensor : tensors)
    result.results.push_back(factsOf(b, tensor));
  result.pending.push_back(scatter(bucket, tensors, {}, condition, /*isInPlace=*/true, site));
  return result;
}

Pending Communication::allGather(const Bucket &bucket, Value shard, ArrayRef<TensorFacts> tensors, StringRef site,
                                 Value condition) {
  Pending result;
  llvm::append_range(result.results, tensors);
  Attribute layout = bucket.unit->layout(b.getContext(), bucket.first, bucket.last);
  result.pending.push_back(
      dist::AllGatherStartOp::create(b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()), shard,
                                     condition, text(b, site), text(b, "data"), b.getBuilder().getArrayAttr(layout)));
  return result;
}

Pending Communication::gatherBlocks(ArrayRef<const Unit *> units, ValueRange vectors, StringRef site) {
  Pending result;
  SmallVector<Attribute> layouts;
  for (auto [unit, vector] : llvm::zip_equal(units, vectors)) {
    SmallVector<int64_t> offsets;
    for (int64_t offset : unit->offsets)
      offsets.push_back(offset / unitBlock);
    int64_t blocks = unit->elements / unitBlock;
    layouts.push_back(dist::LayoutAttr::get(b.getContext(), offsets, blocks, /*block=*/1, 0, -1));
    for (size_t i = 0; i < offsets.size(); ++i) {
      int64_t end = i + 1 < offsets.size() ? offsets[i + 1] : blocks;
      result.results.push_back({b.element(vector), {SizeExpr(end - offsets[i])}, std::nullopt});
    }
  }
  result.pending.push_back(
      dist::AllGatherStartOp::create(b.getBuilder(), b.getLocation(), dist::PendingType::get(b.getContext()), vectors,
                                     Value(), text(b, site), text(b, "data"), b.getBuilder().getArrayAttr(layouts)));
  return result;
}

} // namespace deepstride
