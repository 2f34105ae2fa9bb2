// Bytes follow from how the runtime builds collectives (runtime/comm): a reduction is an exchange of parts and a sum at
// their owner, and an all-reduce gathers the sums. So a rank sends each other one what that one owns of the range, and
// receives as much from each of what it owns itself; a gather goes the other way. With a codec of 1 bit, each of both
// ways takes a bit for an element of the space, and a scale in f32. What rows take depends on the data: at most this.
// An all-to-all sends what a reduction does. Of a broadcast, the tensors lie in what the root owns; of a send to a
// neighbour, in what rank 0 does.
#include "codegen/CollectivePlan.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace deepstride {
namespace {

struct Traffic {
  SizeExpr sent, received; // elements
};

/// What `others` ranks and this one exchange of a part's range.
Traffic trafficOf(dist::StartInterface start, const EntryPlan::CollectivePart &part, const SizeExpr &ranks,
                  const SizeExpr &index) {
  SizeExpr first = index * part.shard, all = part.end - part.begin;
  SizeExpr own = part.shard;
  if (!part.begin.isConstant(0) || part.end != ranks * part.shard) // a bucket within the space
    own = SizeExpr::max(SizeExpr::min(part.end, first + part.shard) - SizeExpr::max(part.begin, first), 0);
  SizeExpr toOwners = all - own, fromOwner = (ranks - SizeExpr(1)) * own;
  if (isa<dist::ReduceScatterStartOp, dist::AllToAllStartOp>(start))
    return {toOwners, fromOwner};
  if (isa<dist::AllGatherStartOp, dist::BroadcastStartOp>(start))
    return {fromOwner, toOwners};
  return {toOwners + fromOwner, toOwners + fromOwner};
}

/// What goes to the rank `by` further on, and comes from the one as far back, where there are such.
Traffic trafficOf(dist::SendRecvStartOp start, const SizeExpr &elements, const SizeExpr &ranks, const SizeExpr &index) {
  auto by = static_cast<int64_t>(start.getBy());
  SizeExpr distance(by < 0 ? -by : by), none(0), one(1);
  if (start.getRotate()) {
    SizeExpr all = SizeExpr::select(SizeExpr::mod(distance, ranks), elements, none);
    return {all, all};
  }
  SizeExpr above = SizeExpr::select(SizeExpr::lt(index + distance, ranks), elements, none);
  SizeExpr below = SizeExpr::select(SizeExpr::lt(index, distance), none, elements);
  return by > 0 ? Traffic{above, below} : Traffic{below, above};
}

/// Whole tensors, each a part of its own, of which one rank owns everything: `first` is where that begins, by shards.
void addTensors(EntryPlan::Collective &plan, dist::StartInterface start, const SizeAnalysis &analysis,
                const SizeExpr &first) {
  bool isInTurn = isa<dist::SendRecvStartOp>(start); // sources are read, and other tensors written
  ValueRange sources = start.sourceValues();
  ArrayRef<int64_t> buffers = start->getAttrOfType<DenseI64ArrayAttr>("buffers").asArrayRef();
  for (auto [number, source] : llvm::enumerate(sources)) {
    int64_t read = buffers[number], written = buffers[sources.size() + number];
    EntryPlan::CollectivePart &part = plan.parts.emplace_back();
    part.shard = product(analysis.facts(source).sizes);
    part.begin = first * part.shard;
    part.end = part.begin + part.shard;
    bool isElsewhere = !isInTurn && read != written;
    part.whole.push_back({isInTurn ? read : written, isElsewhere ? read : -1, part.begin, part.shard});
    if (isInTurn)
      part.own = written;
  }
}

/// The most that a table which travels by rows takes: numbers of rows, then the whole of it, or rows that are fewer
/// bytes than all ranks together would send each other one of the whole, of a rank no more than it has. `ways`: 2 of an
/// all-reduce, whose sums come back.
void boundRows(EntryPlan::Collective &plan, const EntryPlan::CollectivePart &part, const SizeExpr &ranks, int64_t width,
               int64_t ways) {
  SizeExpr others = ranks - SizeExpr(1), numbers = others * SizeExpr(8);
  SizeExpr rows =
      SizeExpr::floorDiv(part.whole[0].count, SizeExpr(part.rowLength)) * SizeExpr(8 + part.rowLength * width);
  SizeExpr limit = (part.end - part.begin) * SizeExpr(ways * width);
  plan.sent = numbers + SizeExpr::max(plan.sent, others * SizeExpr::min(rows, limit));
  plan.received = numbers + SizeExpr::max(plan.received, SizeExpr::min(others * rows, limit));
}

int64_t wireBytes(dist::StartInterface start) { return (start.wireType().getIntOrFloatBitWidth() + 7) / 8; }

/// What an element takes, and what a part takes besides: of both ways to and from one other rank.
SizeExpr bytesOf(dist::StartInterface start, const SizeExpr &elements, const SizeExpr &others) {
  if (start.codecKind() == dist::Codec::one_bit)
    return SizeExpr::ceilDiv(elements, SizeExpr(8)) + others * SizeExpr(8);
  return elements * SizeExpr(wireBytes(start));
}

} // namespace

EntryPlan::Collective planCollective(dist::StartInterface start, const SizeAnalysis &analysis) {
  SizeExpr ranks = dist::meshSize(start.meshAxis()), index = dist::meshIndex(start.meshAxis());
  Type element = getElementTypeOrSelf(start.sourceValues().front());
  EntryPlan::Collective plan;
  plan.op = start.opName().str();
  plan.site = start.siteName().str();
  plan.axis = start.meshAxis().str();
  plan.type = manifestType(element);
  if (auto reduction = start.reductionKind())
    plan.reduction = dist::stringifyReduction(*reduction).str();
  if (auto codec = start.codecKind())
    plan.codec = dist::stringifyCodec(*codec).str();
  if (start.wireType() != element)
    plan.wire = manifestType(start.wireType());

  if (auto condition = start->getAttrOfType<IntegerAttr>("condition_buffer"))
    plan.condition = condition.getInt();
  ArrayRef<int64_t> buffers = start->getAttrOfType<DenseI64ArrayAttr>("buffers").asArrayRef();
  size_t sources = start.sourceValues().size();
  ArrayRef<int64_t> read = buffers.take_front(sources), written = buffers.drop_front(sources);
  bool isGather = isa<dist::AllGatherStartOp>(start);
  bool isScatter = // whose results are parts
      isa<dist::ReduceScatterStartOp, dist::AllToAllStartOp>(start) && !start.isInPlace();
  ValueRange whole = isGather ? ValueRange(start.waitOp()->getResults()) : ValueRange(start.sourceValues());
  auto piece = [&](size_t number, const SizeExpr &offset) {
    int64_t buffer = (isScatter ? read : written)[number];
    bool isElsewhere = !isGather && !isScatter && read[number] != buffer;
    return EntryPlan::Piece{buffer, isElsewhere ? read[number] : -1, offset,
                            product(analysis.facts(whole[number]).sizes)};
  };
  if (auto broadcast = dyn_cast<dist::BroadcastStartOp>(*start)) {
    auto root = static_cast<int64_t>(broadcast.getRoot());
    addTensors(plan, start, analysis, root < 0 ? ranks + SizeExpr(root) : SizeExpr(root));
  } else if (auto turn = dyn_cast<dist::SendRecvStartOp>(*start)) {
    plan.by = static_cast<int64_t>(turn.getBy());
    plan.rotates = turn.getRotate();
    addTensors(plan, start, analysis, SizeExpr(0));
  } else if (ArrayAttr layouts = start.layoutList()) {
    size_t next = 0;
    for (auto [number, layout] : llvm::enumerate(layouts.getAsRange<dist::LayoutAttr>())) {
      EntryPlan::CollectivePart &part = plan.parts.emplace_back();
      part.shard = layout.shard(ranks);
      part.begin = SizeExpr(layout.getBegin());
      part.end = layout.getEnd() < 0 ? ranks * part.shard : SizeExpr(layout.getEnd());
      for (int64_t offset : layout.getOffsets())
        part.whole.push_back(piece(next++, SizeExpr(offset)));
      if (isGather || isScatter)
        part.own = (isGather ? read : written)[number];
      if (start.codecKind() == dist::Codec::one_bit) {
        part.workerError = written[sources + 2 * number];
        part.serverError = written[sources + 2 * number + 1];
      }
    }
  } else {
    EntryPlan::CollectivePart &part = plan.parts.emplace_back();
    part.whole.push_back(piece(0, SizeExpr(0)));
    part.shard = SizeExpr::ceilDiv(part.whole[0].count, ranks);
    part.end = ranks * part.shard;
    if (isScatter)
      part.own = written[0];
  }
  for (const EntryPlan::CollectivePart &part : plan.parts) {
    auto turn = dyn_cast<dist::SendRecvStartOp>(*start);
    Traffic traffic = turn ? trafficOf(turn, part.shard, ranks, index) : trafficOf(start, part, ranks, index);
    plan.sent = plan.sent + bytesOf(start, traffic.sent, ranks - SizeExpr(1));
    plan.received = plan.received + bytesOf(start, traffic.received, ranks - SizeExpr(1));
  }
  if (start.codecKind() == dist::Codec::sparse_rows) {
    auto table = cast<RankedTensorType>(start.sourceValues().front().getType());
    EntryPlan::CollectivePart &part = plan.parts.front();
    part.rowLength = ShapedType::getNumElements(table.getShape().drop_front());
    boundRows(plan, part, ranks, wireBytes(start), isa<dist::AllReduceStartOp>(start) ? 2 : 1);
  }
  return plan;
}

} // namespace deepstride
