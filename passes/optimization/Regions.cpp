// How a set of ops becomes a ds.fused: what must move out of its way, and which values it hands out.
#include "passes/optimization/Regions.h"

#include "dialects/ds/TileAccess.h"

using namespace mlir;

namespace deepstride {

/// Ops between the first and the last of a region: what is far apart is not worth keeping alive for.
static constexpr size_t spanLimit = 512;

bool isFusablePointwise(Operation *op) {
  auto element = dyn_cast<ds::PerElement>(op);
  return element && element.isPointwise() && element.joinsRegions() && !element.scannedOperand();
}

bool isSplat(Value value) {
  auto constant = value.getDefiningOp<ds::ConstantOp>();
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

/// Ops that take no time beside a tile of a product, so that each tile computes what all of its rows or columns share.
static bool isRepeatable(Operation *op) {
  if (auto binary = dyn_cast<ds::BinaryOp>(op))
    return llvm::is_contained({ds::BinaryKind::add, ds::BinaryKind::sub, ds::BinaryKind::mul}, binary.getKind());
  return isa<ds::CastOp>(op);
}

std::optional<StringRef> tileMismatch(Operation *op, Operation *anchor, const SizeAnalysis &analysis) {
  if (!isFusablePointwise(op) || isa<ds::BitcastOp>(op))
    return "it is not elementwise";
  const SizeVector &sizes = analysis.facts(anchor->getResult(0)).sizes;
  if (const SizeVector &own = analysis.facts(op->getResult(0)).sizes; own != sizes) {
    auto access = ds::tileAccess(own, sizes, cast<ds::Anchor>(anchor).rowAxes());
    if (!access || *access == ds::TileAccess::scalar) // numbers are computed once, for all that read them
      return "its result has other sizes";
    if (!isRepeatable(op))
      return "each tile would compute it again";
  }
  Type type = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  if (!ds::isTileElement(type) && !type.isInteger(1))
    return "its result is not what vectors hold";
  for (Value operand : op->getOperands())
    if (!isSplat(operand) && !ds::tileAccess(analysis.facts(operand).sizes, sizes, cast<ds::Anchor>(anchor).rowAxes()))
      return "an operand is neither as large nor one number, one for each column, or one for each row";
  return std::nullopt;
}

bool isRegionResult(Operation *op, const OpSet &region) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) { return !region.contains(user); });
}

std::optional<SmallVector<Operation *>> dependentsOf(const OpSet &region, Operation *last) {
  Operation *first = last;
  for (Operation *op : region)
    if (op->isBeforeInBlock(first))
      first = op;
  SmallVector<Operation *> moved;
  llvm::SmallPtrSet<Operation *, 16> late;
  size_t span = 0;
  for (Operation *op = first; op != last->getNextNode(); op = op->getNextNode()) {
    if (++span > spanLimit)
      return std::nullopt;
    bool isMember = region.contains(op);
    bool needs = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        needs |= operand.getDefiningOp() &&
                 (late.contains(operand.getDefiningOp()) || (!isMember && region.contains(operand.getDefiningOp())));
    });
    if (!needs)
      continue;
    if (isMember || !(isa<ds::FusedOp>(op) || (op->getNumRegions() == 0 && isPure(op))))
      return std::nullopt;
    late.insert(op);
    moved.push_back(op);
  }
  return moved;
}

bool takeBehind(OpSet &region, Operation *op, Operation *&last) {
  OpSet larger(region);
  larger.insert(op);
  Operation *end = last->isBeforeInBlock(op) ? op : last;
  if (!dependentsOf(larger, end))
    return false;
  region = std::move(larger);
  last = end;
  return true;
}

ds::FusedOp wrapRegion(const OpSet &region, Operation *last, ArrayRef<Operation *> moved, SizeAnalysis &analysis) {
  SmallVector<Operation *> ordered(region.begin(), region.end());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  SmallVector<Value> results;
  SmallVector<Attribute> names;
  bool hasNames = false;
  OpBuilder builder(last);
  for (Operation *op : ordered) {
    auto named = op->getAttrOfType<ArrayAttr>(ds::valueNameAttr);
    for (OpResult result : op->getResults()) {
      if (llvm::all_of(result.getUsers(), [&](Operation *user) { return region.contains(user); }))
        continue;
      results.push_back(result);
      bool isNamed = named && named.size() > result.getResultNumber();
      hasNames |= isNamed;
      names.push_back(isNamed ? named[result.getResultNumber()] : builder.getStringAttr(""));
    }
  }
  auto fused = ds::FusedOp::create(builder, last->getLoc(), TypeRange(ValueRange(results)));
  if (hasNames)
    fused->setAttr(ds::valueNameAttr, builder.getArrayAttr(names));
  for (auto [value, result] : llvm::zip_equal(results, fused.getResults())) {
    value.replaceUsesWithIf(result, [&](OpOperand &use) { return !region.contains(use.getOwner()); });
    analysis.set(result, analysis.facts(value));
  }
  for (Operation *op : llvm::reverse(moved))
    op->moveAfter(fused);
  Block &body = fused.getBody().emplaceBlock();
  for (Operation *op : ordered)
    op->moveBefore(&body, body.end());
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  ds::YieldOp::create(inner, last->getLoc(), results);
  return fused;
}

} // namespace deepstride
