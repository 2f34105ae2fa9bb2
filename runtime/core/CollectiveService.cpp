// The collective services of EntryRunner: from the manifest's buffers and sizes to a request of the communicator.
#include "runtime/core/EntryRunner.h"

#include <algorithm>
#include <cstring>

namespace ds {
namespace {

CollectiveOp opOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce: return CollectiveOp::AllReduce;
  case CollectiveKind::ReduceScatter: return CollectiveOp::ReduceScatter;
  case CollectiveKind::AllGather: return CollectiveOp::AllGather;
  case CollectiveKind::AllToAll: return CollectiveOp::AllToAll;
  case CollectiveKind::Broadcast: return CollectiveOp::Broadcast;
  case CollectiveKind::SendRecv: return CollectiveOp::SendRecv;
  }
  return CollectiveOp::AllReduce;
}

Reduction reductionOf(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum: return Reduction::Sum;
  case ReductionKind::Mean: return Reduction::Mean;
  case ReductionKind::Max: return Reduction::Max;
  }
  return Reduction::Sum;
}

Codec codecOf(CodecKind kind) {
  switch (kind) {
  case CodecKind::None: return Codec::None;
  case CodecKind::OneBit: return Codec::OneBit;
  case CodecKind::SparseRows: return Codec::SparseRows;
  }
  return Codec::None;
}

// What is read of `whole` and written into `own`, not the other way.
bool writesOwn(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll || kind == CollectiveKind::SendRecv;
}

// A world of one owns all of the space: what is combined is the value itself.
void runAlone(const CollectiveRequest &request) {
  if (request.op == CollectiveOp::SendRecv && !request.rotates)
    return;                                                     // there is no neighbour
  const bool isScatter = request.op != CollectiveOp::AllGather; // from `whole` to `own`
  size_t width = typeSize(request.type);
  for (const CollectivePart &part : request.parts) {
    auto *own = static_cast<uint8_t *>(part.own);
    if (!own)
      continue;
    int64_t at = part.begin;
    auto clear = [&](int64_t end) { // what no tensor covers
      if (isScatter && at < end)
        std::memset(own + static_cast<size_t>(at) * width, 0, static_cast<size_t>(end - at) * width);
    };
    for (const Segment &segment : part.whole) {
      clear(segment.offset);
      uint8_t *place = own + static_cast<size_t>(segment.offset) * width;
      size_t bytes = static_cast<size_t>(segment.count) * width;
      if (bytes != 0 && place != segment.data)
        std::memmove(isScatter ? static_cast<void *>(place) : segment.data, isScatter ? segment.data : place, bytes);
      at = segment.offset + segment.count;
    }
    clear(part.end);
  }
}

} // namespace

void *EntryRunner::memoryOf(uint32_t buffer, ElementType type, int64_t count) {
  uint64_t bytes = byteCount(type, {count});
  if (!buffers[buffer] || bufferBytes[buffer] < bytes)
    fail(ErrorCode::BadPackage, "buffer ", buffer, " does not hold ", bytes, " bytes");
  settle(buffer);
  return buffers[buffer];
}

void EntryRunner::settle(uint32_t buffer) {
  if (!arrivals.empty() && entry.buffers[buffer].role == BufferRole::State)
    arrivals.settle(buffers[buffer], bufferBytes[buffer]);
}

std::vector<State *> EntryRunner::statesOf(const CollectiveInfo &info) const {
  std::vector<State *> result;
  for (const CollectivePartInfo &part : info.parts) {
    result.push_back(boundStates[entry.buffers[*part.own].index]);
    for (const CollectivePiece &piece : part.whole)
      result.push_back(boundStates[entry.buffers[piece.buffer].index]);
  }
  return result;
}

void EntryRunner::willWrite(uint32_t buffer) {
  if (const BufferInfo &target = entry.buffers[buffer]; target.role == BufferRole::State)
    boundStates[target.index]->isWritten = true;
}

CollectivePart EntryRunner::partOf(const CollectiveInfo &info, const CollectivePartInfo &described) {
  CollectivePart part;
  part.shard = described.shard.evaluate(symbols);
  part.begin = described.begin.evaluate(symbols);
  part.end = described.end.evaluate(symbols);
  const int64_t ranks = communicator ? communicator->world() : 1, root = part.shard > 0 ? part.begin / part.shard : 0;
  if (info.kind == CollectiveKind::Broadcast && (root < 0 || root >= ranks))
    fail(ErrorCode::InvalidArgument, "comes from rank ", root, ", expected more ranks than ", ranks);
  const bool isRoot = info.kind != CollectiveKind::Broadcast || root == (communicator ? communicator->rank() : 0);
  if (part.begin < 0 || part.end < part.begin || part.end > part.shard * ranks)
    fail(ErrorCode::BadPackage, "range ", part.begin, " to ", part.end, " is not in the space");
  int64_t end = part.begin;
  for (const CollectivePiece &piece : described.whole) {
    Segment segment;
    segment.offset = piece.offset.evaluate(symbols);
    segment.count = piece.count.evaluate(symbols);
    if (segment.offset < end || segment.count < 0 || segment.offset + segment.count > part.end)
      fail(ErrorCode::BadPackage, "a tensor at ", segment.offset, " of ", segment.count, " elements is not in ", end,
           " to ", part.end);
    end = segment.offset + segment.count;
    segment.data = memoryOf(piece.buffer, info.type, segment.count);
    if (!writesOwn(info.kind) || !described.own)
      willWrite(piece.buffer);
    if (piece.source && segment.count != 0 && isRoot)
      std::memcpy(segment.data, memoryOf(*piece.source, info.type, segment.count),
                  byteCount(info.type, {segment.count}));
    part.whole.push_back(segment);
  }
  if (info.codec == CodecKind::OneBit)
    addErrors(info, described, part);
  part.rowLength = described.rowLength;
  if (part.rowLength > 0 && part.whole[0].count % part.rowLength != 0)
    fail(ErrorCode::BadPackage, "a tensor of ", part.whole[0].count, " elements in rows of ", part.rowLength,
         ", expected a divisor of that");
  if (described.own) {
    bool isOfAll = info.kind == CollectiveKind::AllToAll; // a block of each rank
    part.own = memoryOf(*described.own, info.type, isOfAll ? part.shard * ranks : part.shard);
    if (writesOwn(info.kind))
      willWrite(*described.own);
  }
  return part;
}

void EntryRunner::addErrors(const CollectiveInfo &info, const CollectivePartInfo &described, CollectivePart &part) {
  const int64_t elements = part.shard * (communicator ? communicator->world() : 1);
  if (part.shard % 8 != 0 || part.begin != 0 || part.end != elements)
    fail(ErrorCode::BadPackage, "a part of ", part.shard, " elements of a rank, from ", part.begin, " to ", part.end,
         ", expected whole bytes of bits, from 0 to ", elements);
  part.workerError = memoryOf(*described.workerError, info.type, elements);
  part.serverError = memoryOf(*described.serverError, info.type, part.shard);
  willWrite(*described.workerError);
  willWrite(*described.serverError);
}

void EntryRunner::startCollective(const ds_collective &request) {
  if (request.struct_size < sizeof(ds_collective) || request.site >= entry.collectives.size())
    fail(ErrorCode::BadPackage, "collective of site ", request.site, ", the manifest has ", entry.collectives.size());
  const CollectiveInfo &info = entry.collectives[request.site];
  annotated(concat(info.op, " '", info.site, "'"), [&] {
    if (openCollectives.count(&request))
      fail(ErrorCode::BadPackage, "started twice without a wait");
    openCollectives[&request] = {};
    if (info.condition && *static_cast<const uint8_t *>(memoryOf(*info.condition, ElementType::I1, 1)) == 0)
      return;
    CollectiveRequest call;
    call.op = opOf(info.kind);
    size_t slash = info.site.find('/'); // "gradients/block 3": of which tensors, and where
    call.value = slash == std::string::npos ? info.site : info.site.substr(slash + 1);
    call.site = info.site;
    call.type = info.type;
    call.wire = communicator && communicator->world() > 1 ? info.wire : info.type; // alone, nothing travels
    call.reduction = reductionOf(info.reduction);
    call.by = info.by;
    call.rotates = info.rotates;
    call.codec = codecOf(info.codec);
    OpenCollective opened;
    for (const CollectivePartInfo &part : info.parts) {
      for (const std::optional<uint32_t> &buffer : {part.own, part.workerError, part.serverError})
        if (buffer)
          addInFile(*buffer, opened.inFiles);
      for (const CollectivePiece &piece : part.whole)
        for (uint32_t buffer : {piece.buffer, piece.source.value_or(piece.buffer)})
          addInFile(buffer, opened.inFiles);
    }
    use(opened.inFiles);
    for (const CollectivePartInfo &part : info.parts)
      call.parts.push_back(partOf(info, part));
    if (communicator)
      opened.ticket = communicator->start(call);
    else
      runAlone(call);
    openCollectives[&request] = std::move(opened);
  });
}

void EntryRunner::waitCollective(const ds_collective &request) {
  auto open = openCollectives.find(&request);
  if (open == openCollectives.end())
    fail(ErrorCode::BadPackage, "waits for a collective that was not started");
  OpenCollective opened = std::move(open->second);
  openCollectives.erase(open);
  const CollectiveInfo &info = entry.collectives[request.site];
  if (opened.ticket && info.isDeferred && opened.inFiles.empty())
    return arrivals.add(*opened.ticket, statesOf(info));
  if (opened.ticket)
    communicator->wait(*opened.ticket);
  done(opened.inFiles, info.kind != CollectiveKind::AllGather);
}

} // namespace ds
