// Registration and verifiers of the dist dialect.
#include "dialects/dist/DistDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace deepstride;

#include "dialects/dist/DistDialect.cpp.inc"
#include "dialects/dist/DistEnums.cpp.inc"
#include "dialects/dist/DistInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/dist/DistTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

void dist::DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/dist/DistTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
}

SizeExpr dist::meshSize(StringRef axis) { return SizeExpr::symbol((SizeExpr::meshPrefix + axis).str()); }
SizeExpr dist::meshIndex(StringRef axis) { return SizeExpr::symbol((SizeExpr::meshPrefix + axis + ".index").str()); }

SizeExpr dist::LayoutAttr::shard(const SizeExpr &ranks) const {
  return SizeExpr::ceilDiv(SizeExpr(getElements()), ranks * SizeExpr(getBlock())) * SizeExpr(getBlock());
}

LogicalResult dist::LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> offsets,
                                       int64_t elements, int64_t block, int64_t begin, int64_t end) {
  if (block < 1 || elements < 0 || elements % block != 0)
    return emitError() << "expects a multiple of the block as number of elements, found " << elements << " by "
                       << block;
  for (auto [number, offset] : llvm::enumerate(offsets))
    if (offset % block != 0 || offset < (number == 0 ? 0 : offsets[number - 1]) || offset > elements)
      return emitError() << "expects growing offsets that are multiples of " << block << " up to " << elements
                         << ", found " << offset;
  if (begin < 0 || begin > elements || (end != -1 && (end < begin || end > elements)))
    return emitError() << "expects a range inside of 0 to " << elements << ", or to -1, found " << begin << " to "
                       << end;
  return success();
}

/// C1 and C2, and what all layouts have to do with the tensors that lie in their spaces.
static LogicalResult verifyStart(dist::StartInterface start) {
  Operation *op = start;
  Value pending = op->getResult(0);
  if (!pending.hasOneUse() || !isa<dist::WaitOp>(*pending.getUsers().begin()))
    return op->emitOpError("C1: expects exactly one dist.wait to use the result");
  if (start.siteName().empty())
    return op->emitOpError("C2: expects a site name");
  if (start.sourceValues().empty())
    return op->emitOpError("C3: expects a source");
  Type element = getElementTypeOrSelf(start.sourceValues().front());
  for (Value value : start.sourceValues())
    if (getElementTypeOrSelf(value) != element)
      return op->emitOpError("C3: expects sources of one element type, found ")
             << element << " and " << getElementTypeOrSelf(value);
  Value condition = start.conditionValue();
  if (condition &&
      !(isa<BlockArgument>(condition) && isa<FunctionOpInterface>(condition.getParentBlock()->getParentOp())))
    return op->emitOpError("C11: expects an argument of the entry as condition");
  return success();
}

static LogicalResult verifyReduced(dist::StartInterface start) {
  Type element = getElementTypeOrSelf(start.sourceValues().front());
  if (!isa<FloatType>(element) && !element.isSignlessInteger(32) && !element.isSignlessInteger(64))
    return start->emitOpError("C3: expects a float, i32 or i64 element type, found ") << element;
  Type given = start.wireType();
  bool travels = given.isF32() || given.isF16() || given.isBF16();
  if (given != element &&
      (!isa<FloatType>(element) || !travels || given.getIntOrFloatBitWidth() >= element.getIntOrFloatBitWidth()))
    return start->emitOpError("C18: expects a narrower float to travel than ") << element << ", found " << given;
  return success();
}

/// C4: the tensors of `values`, an offset each, lie behind one another.
static LogicalResult verifyPlaces(Operation *op, ArrayAttr layouts, TypeRange tensors) {
  size_t next = 0;
  for (auto layout : layouts.getAsRange<dist::LayoutAttr>()) {
    ArrayRef<int64_t> offsets = layout.getOffsets();
    for (auto [number, offset] : llvm::enumerate(offsets)) {
      auto type = next < tensors.size() ? cast<RankedTensorType>(tensors[next++]) : RankedTensorType();
      if (!type)
        return op->emitOpError("C4: expects a tensor for each offset, found ") << tensors.size();
      int64_t end = number + 1 < offsets.size() ? offsets[number + 1] : layout.getElements();
      if (!type.hasStaticShape() || offset + type.getNumElements() > end)
        return op->emitOpError("C4: expects a tensor of at most ")
               << end - offset << " elements at " << offset << ", found " << type;
    }
  }
  if (next != tensors.size())
    return op->emitOpError("C4: expects an offset for each tensor, found ")
           << next << " for " << tensors.size() << " tensors";
  return success();
}

/// C4, or C5 without layouts.
static LogicalResult verifyPlacesOrOne(dist::StartInterface start) {
  if (ArrayAttr layouts = start.layoutList())
    return verifyPlaces(start, layouts, start.sourceValues().getTypes());
  if (start.sourceValues().size() != 1)
    return start->emitOpError("C5: expects one source where there are no layouts, found ")
           << start.sourceValues().size();
  return success();
}

/// C12 to C14.
static LogicalResult verifySparseRows(dist::StartInterface start) {
  if (start.sourceValues().size() != 1)
    return start->emitOpError("C12: expects one source with sparse_rows, found ") << start.sourceValues().size();
  auto type = cast<RankedTensorType>(start.sourceValues().front().getType());
  if (!type.hasStaticShape() || type.getRank() == 0 || ShapedType::getNumElements(type.getShape().drop_front()) == 0)
    return start->emitOpError("C12: expects rows of constant size with sparse_rows, found ") << type;
  if (start.reductionKind() == dist::Reduction::max)
    return start->emitOpError("C13: expects sum or mean with sparse_rows, found max");
  if (auto layouts = start.layoutList())
    for (auto layout : layouts.getAsRange<dist::LayoutAttr>())
      if (layout.getBegin() != 0 || layout.getEnd() != -1)
        return start->emitOpError("C14: expects a whole layout with sparse_rows, found one from ")
               << layout.getBegin() << " to " << layout.getEnd();
  return success();
}

/// C8 to C14.
static LogicalResult verifyCodec(dist::AllReduceStartOp start) {
  size_t errors = start.getErrors().size();
  bool isInBits = start.getCodec() == dist::Codec::one_bit;
  if (!isInBits && errors != 0)
    return start.emitOpError("C10: expects no errors without the codec one_bit, found ") << errors;
  if (!isInBits)
    return start.getCodec() ? verifySparseRows(start) : success();
  if (start.getCondition())
    return start.emitOpError("C11: expects no condition with the codec one_bit");
  if (start.getWire())
    return start.emitOpError("C18: expects no type that travels with the codec one_bit, found ") << *start.getWire();
  Type element = getElementTypeOrSelf(start.getSources().front());
  if (!element.isF32() && !element.isF64())
    return start.emitOpError("C8: expects f32 or f64 with a codec, found ") << element;
  if (start.getReduction() != dist::Reduction::mean)
    return start.emitOpError("C8: expects the mean with a codec, found ")
           << dist::stringifyReduction(start.getReduction());
  if (!start.getLayoutsAttr())
    return start.emitOpError("C9: expects layouts with a codec");
  for (auto layout : start.getLayoutsAttr().getAsRange<dist::LayoutAttr>()) {
    if (layout.getBlock() % 8 != 0)
      return start.emitOpError("C9: expects a block that is a multiple of 8, found ") << layout.getBlock();
    if (layout.getBegin() != 0 || layout.getEnd() != -1)
      return start.emitOpError("C9: expects whole layouts, found one from ")
             << layout.getBegin() << " to " << layout.getEnd();
  }
  if (errors != 2 * start.getLayoutsAttr().size())
    return start.emitOpError("C10: expects two errors for each layout, found ")
           << errors << " for " << start.getLayoutsAttr().size();
  for (Type type : start.getErrors().getTypes())
    if (cast<RankedTensorType>(type).getRank() != 1 || getElementTypeOrSelf(type) != element)
      return start.emitOpError("C10: expects errors that are vectors of ") << element << ", found " << type;
  return success();
}

LogicalResult dist::AllReduceStartOp::verify() {
  if (failed(verifyStart(*this)) || failed(verifyReduced(*this)) || failed(verifyCodec(*this)))
    return failure();
  return verifyPlacesOrOne(*this);
}

LogicalResult dist::ReduceScatterStartOp::verify() {
  if (failed(verifyStart(*this)) || failed(verifyReduced(*this)) ||
      failed(verifyPlaces(*this, getLayouts(), getSources().getTypes())))
    return failure();
  if (!getInto().empty() && getInto().size() != getLayouts().size())
    return emitOpError("C6: expects a tensor to write into for each layout, or none, found ")
           << getInto().size() << " for " << getLayouts().size();
  if (getCodec() && (!getInPlace() || *getCodec() != dist::Codec::sparse_rows))
    return emitOpError("C19: expects no codec but sparse_rows, and that in place, found ")
           << dist::stringifyCodec(*getCodec());
  if (getCodec() && failed(verifySparseRows(*this)))
    return failure();
  if (getInPlace() ? !getInto().empty() : bool(getCondition()))
    return emitOpError("C6: expects nothing to write into in place, and a condition only there");
  return success();
}

LogicalResult dist::AllGatherStartOp::verify() {
  if (failed(verifyStart(*this)))
    return failure();
  if (getSources().size() != getLayouts().size())
    return emitOpError("C7: expects a source for each layout, found ")
           << getSources().size() << " for " << getLayouts().size();
  return verifyPlaces(*this, getLayouts(), (*getPending().getUsers().begin())->getResultTypes());
}

/// C15: what each rank gets of a space, or of one source, where its size is known.
static LogicalResult verifyBlocks(dist::AllToAllStartOp start) {
  if (ArrayAttr layouts = start.getLayoutsAttr())
    for (auto layout : layouts.getAsRange<dist::LayoutAttr>())
      if (layout.getBegin() != 0 || layout.getEnd() != -1)
        return start.emitOpError("C15: expects whole layouts, found one from ")
               << layout.getBegin() << " to " << layout.getEnd();
  auto wait = cast<dist::WaitOp>(dist::StartInterface(start).waitOp());
  ArrayAttr layouts = start.getLayoutsAttr(), stated = wait.getResultSizesAttr();
  size_t count = layouts ? layouts.size() : 1;
  if (!stated || stated.size() != count || wait.getNumResults() != count)
    return start.emitOpError("C15: expects a wait that states sizes of ") << count << " results";
  SizeExpr ranks = dist::meshSize(start.getAxis());
  for (auto [number, list] : llvm::enumerate(stated)) {
    auto sizes = isa<ArrayAttr>(list) ? sizesFromAttribute(cast<ArrayAttr>(list)) : std::nullopt;
    auto source = cast<RankedTensorType>(start.getSources().front().getType());
    if (!sizes || (!layouts && !source.hasStaticShape()))
      continue;
    SizeExpr block = layouts ? cast<dist::LayoutAttr>(layouts[number]).shard(ranks)
                             : SizeExpr::ceilDiv(SizeExpr(source.getNumElements()), ranks);
    if (product(*sizes) != ranks * block)
      return start.emitOpError("C15: expects a wait for ")
             << (ranks * block).str() << " elements, found " << product(*sizes).str();
  }
  return success();
}

LogicalResult dist::AllToAllStartOp::verify() {
  if (failed(verifyStart(*this)) || failed(verifyPlacesOrOne(*this)))
    return failure();
  return verifyBlocks(*this);
}

LogicalResult dist::BroadcastStartOp::verify() { return verifyStart(*this); }

LogicalResult dist::SendRecvStartOp::verify() {
  if (failed(verifyStart(*this)))
    return failure();
  auto by = static_cast<int64_t>(getBy());
  constexpr int64_t furthest = 4096; // more ranks there are not
  if (by == 0 || by < -furthest || by > furthest)
    return emitOpError("C16: expects another rank, at most ") << furthest << " away, found by " << by;
  if (getRotate() ? !getInto().empty() : getInto().getTypes() != getSources().getTypes())
    return emitOpError("C17: expects tensors of the types of the sources to write into, and none with rotate, found ")
           << getInto().getTypes();
  return success();
}

SmallVector<dist::StartInterface> dist::WaitOp::getStarts() {
  return llvm::map_to_vector(getPendings(),
                             [](Value pending) { return pending.getDefiningOp<dist::StartInterface>(); });
}

/// C2: several starts bring ranges of one space.
static LogicalResult verifyRanges(dist::WaitOp wait) {
  SmallVector<dist::LayoutAttr> before;
  Operation *first = wait.getStart(), *previous = nullptr;
  for (dist::StartInterface start : wait.getStarts()) {
    if (!isa<dist::ReduceScatterStartOp>(start) || start.layoutList().size() != 1 || start.isInPlace())
      return wait.emitOpError(
          "C2: expects several starts to be of dist.reduce_scatter_start with one layout each, not in place");
    if (previous && (previous->getBlock() != start->getBlock() || !previous->isBeforeInBlock(start)))
      return wait.emitOpError("C2: expects starts in the order of the program");
    previous = start;
    if (start.intoValues() != cast<dist::StartInterface>(first).intoValues())
      return wait.emitOpError("C2: expects several starts to write into the same tensor");
    auto layout = cast<dist::LayoutAttr>(start.layoutList()[0]);
    auto endOf = [](dist::LayoutAttr of) {
      return of.getEnd() < 0 ? std::numeric_limits<int64_t>::max() : of.getEnd();
    };
    for (dist::LayoutAttr other : before) {
      if (other.getElements() != layout.getElements() || other.getBlock() != layout.getBlock())
        return wait.emitOpError("C2: expects ranges of one space, found ") << other << " and " << layout;
      if (layout.getBegin() < endOf(other) && other.getBegin() < endOf(layout))
        return wait.emitOpError("C2: expects ranges that do not overlap, found ") << other << " and " << layout;
    }
    before.push_back(layout);
  }
  return success();
}

LogicalResult dist::WaitOp::verify() {
  if (getPendings().empty() || !llvm::all_of(getStarts(), [](StartInterface start) { return start != nullptr; }))
    return emitOpError("C1: expects the start of a collective");
  if (getPendings().size() > 1 && failed(verifyRanges(*this)))
    return failure();
  StartInterface start = getStart();
  Type element = getElementTypeOrSelf(start.sourceValues().front());
  bool isOfTensors = start.mayReplaceSources() || start.isInPlace() || isa<SendRecvStartOp>(start);
  size_t count = start.layoutList() ? start.layoutList().size() : 1;
  if (isOfTensors) {
    SmallVector<Type> types(start.sourceValues().getTypes());
    if (auto combined = dyn_cast<AllReduceStartOp>(*start))
      llvm::append_range(types, combined.getErrors().getTypes());
    count = types.size();
    if (getResultTypes() != TypeRange(types))
      return emitOpError("C1: expects results of the types of the sources and errors, ") << types;
  }
  bool isGather = isa<AllGatherStartOp>(start); // whose own verifier counts
  if (getDeferred() && !isGather)
    return emitOpError("C3: expects a deferred wait to be that of dist.all_gather_start, found ") << start->getName();
  if ((!isGather && getNumResults() != count) ||
      llvm::any_of(getResultTypes(), [&](Type type) { return getElementTypeOrSelf(type) != element; }))
    return emitOpError("C1: expects ") << count << " results of element type " << element;
  return success();
}

// The interface, of each start.
#define DS_START(Op, name, reduction, codec, wire, into, condition, inPlace, replaces, layoutsOf)                      \
  StringRef dist::Op::opName() { return name; }                                                                        \
  StringRef dist::Op::siteName() { return getSite(); }                                                                 \
  StringRef dist::Op::meshAxis() { return getAxis(); }                                                                 \
  OperandRange dist::Op::sourceValues() { return getSources(); }                                                       \
  OperandRange dist::Op::intoValues() { return into; }                                                                 \
  Value dist::Op::conditionValue() { return condition; }                                                               \
  bool dist::Op::isInPlace() { return inPlace; }                                                                       \
  bool dist::Op::mayReplaceSources() { return replaces; }                                                              \
  std::optional<dist::Reduction> dist::Op::reductionKind() { return reduction; }                                       \
  std::optional<dist::Codec> dist::Op::codecKind() { return codec; }                                                   \
  Type dist::Op::wireType() {                                                                                          \
    TypeAttr narrower = wire;                                                                                          \
    return narrower ? narrower.getValue() : getElementTypeOrSelf(getSources().front());                                \
  }                                                                                                                    \
  ArrayAttr dist::Op::layoutList() { return layoutsOf; }

DS_START(AllReduceStartOp, "all_reduce", getReduction(), getCodec(), getWireAttr(), getErrors(), getCondition(),
         getCondition() != nullptr, true, getLayoutsAttr())
DS_START(ReduceScatterStartOp, "reduce_scatter", getReduction(), getCodec(), getWireAttr(), getInto(), getCondition(),
         getInPlace(), false, getLayouts())
DS_START(AllGatherStartOp, "all_gather", std::nullopt, std::nullopt, TypeAttr(),
         getOperation()->getOperands().take_front(0), getCondition(), false, false, getLayouts())
DS_START(AllToAllStartOp, "all_to_all", std::nullopt, std::nullopt, TypeAttr(),
         getOperation()->getOperands().take_front(0), Value(), false, false, getLayoutsAttr())
DS_START(BroadcastStartOp, "broadcast", std::nullopt, std::nullopt, TypeAttr(),
         getOperation()->getOperands().take_front(0), Value(), false, true, ArrayAttr())
DS_START(SendRecvStartOp, "send_recv", std::nullopt, std::nullopt, TypeAttr(), getInto(), Value(), false, false,
         ArrayAttr())
#undef DS_START
