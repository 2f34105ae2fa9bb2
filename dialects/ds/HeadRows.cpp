// Follows windows and row ops back to a buffer. Row ops keep sizes, so that the strides of what they read are those of
// what they yield; the windows behind them apply to their tables, too.
#include "dialects/ds/HeadRows.h"

#include "dialects/ds/Norms.h"

using namespace mlir;
using namespace deepstride;
using namespace deepstride::ds;

bool ds::holdsRows(Type element) { return element.isF16() || element.isBF16() || element.isF32() || element.isF64(); }

bool ds::isRowOp(Operation *op) {
  if (!op || op->getNumResults() != 1)
    return false;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !holdsRows(type.getElementType()))
    return false;
  auto isLine = [](Value value) { return !value || cast<RankedTensorType>(value.getType()).getRank() == 1; };
  auto isLast = [&](uint64_t axis) { return static_cast<int64_t>(axis) + 1 == type.getRank(); };
  if (auto layer = dyn_cast<LayerNormOp>(op))
    return isLast(layer.getAxis()) && isLine(layer.getScale()) && isLine(layer.getBias());
  if (auto rms = dyn_cast<RmsNormOp>(op))
    return isLast(rms.getAxis()) && isLine(rms.getScale());
  return isa<RotaryOp>(op);
}

/// A table that broadcasts to `sizes` along all axes but the last.
static std::optional<StridedWindow> tableOver(ArrayRef<SizeExpr> own, ArrayRef<SizeExpr> sizes) {
  StridedWindow lines = StridedWindow::whole(own);
  StridedWindow window{0, SizeVector(sizes.begin(), sizes.end()), SizeVector(sizes.size(), SizeExpr(0))};
  size_t missing = sizes.size() - own.size();
  for (size_t axis = 0; axis + 1 < own.size(); ++axis) {
    if (own[axis].isConstant(1))
      continue;
    if (own[axis] != sizes[axis + missing])
      return std::nullopt;
    window.strides[axis + missing] = lines.strides[axis];
  }
  window.strides.back() = 1;
  return window;
}

/// Whether rows are shown whole and in their order.
static bool keepsRows(Operation *op, const SizeExpr &before, const SizeExpr &after, ArrayRef<SizeExpr> starts) {
  if (before != after)
    return false;
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    auto permutation = transpose.getPermutation();
    return !permutation.empty() && permutation.back() == static_cast<int64_t>(permutation.size()) - 1;
  }
  auto slice = dyn_cast<SliceOp>(op);
  return !slice || (slice.getSteps().back() == 1 && starts.back().isConstant(0));
}

std::optional<HeadRows> ds::headRows(Value value, llvm::function_ref<bool(Value)> isSource,
                                     llvm::function_ref<SizeVector(Value)> sizesOf,
                                     llvm::function_ref<SizeVector(ArrayAttr)> startsOf) {
  SmallVector<Operation *> ops;
  for (; !isSource(value); value = ops.back()->getOperand(0)) {
    Operation *op = value.getDefiningOp();
    if (!isWindowOp(op) && !isRowOp(op))
      return std::nullopt;
    ops.push_back(op);
  }
  HeadRows rows{value, StridedWindow::whole(sizesOf(value)), {}};
  for (Operation *op : llvm::reverse(ops)) {
    SizeVector before = sizesOf(op->getOperand(0)), after = sizesOf(op->getResult(0));
    if (isRowOp(op)) {
      RowStep step{op, {}};
      if (!rows.window.strides.back().isConstant(1))
        return std::nullopt;
      if (auto rotary = dyn_cast<RotaryOp>(op))
        for (Value table : {rotary.getCosines(), rotary.getSines()}) {
          auto window = tableOver(sizesOf(table), after);
          if (!window)
            return std::nullopt;
          step.tables.push_back(*window);
        }
      rows.steps.push_back(step);
      continue;
    }
    auto slice = dyn_cast<SliceOp>(op);
    SizeVector starts = slice ? startsOf(slice.getStarts()) : SizeVector();
    if (!rows.steps.empty() && (before.empty() || after.empty() || !keepsRows(op, before.back(), after.back(), starts)))
      return std::nullopt;
    auto show = [&](StridedWindow &window) {
      auto shown = windowThrough(op, window, after, starts);
      if (shown)
        window = *shown;
      return shown.has_value();
    };
    bool isReached = show(rows.window);
    for (RowStep &step : rows.steps)
      for (StridedWindow &table : step.tables)
        isReached = isReached && show(table);
    if (!isReached)
      return std::nullopt;
  }
  return rows;
}

static bool isZero(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return splat && isa<FloatType>(splat.getElementType()) && splat.getSplatValue<APFloat>().isPosZero();
}

/// Whether a number is added behind the tokens, and nothing elsewhere.
static bool addsTokens(PadOp pad) {
  auto low = sizesFromAttribute(pad.getLow()), high = sizesFromAttribute(pad.getHigh());
  auto isNone = [](const SizeExpr &size) { return size.isConstant(0); };
  return pad.getKind() == PadKind::constant && low && high && llvm::all_of(*low, isNone) && isNone((*high)[0]) &&
         isNone((*high)[1]) && isNone((*high)[3]);
}

std::optional<PlacedRows> PlacedRows::of(Value value) {
  auto scatter = value.getDefiningOp<ScatterElementsOp>();
  if (!scatter || scatter.getKind() != ScatterKind::assign || scatter.getAxis() != 2 ||
      cast<RankedTensorType>(scatter.getType()).getRank() != 4)
    return std::nullopt;
  auto select = scatter.getInput().getDefiningOp<SelectOp>();
  auto before = select ? select.getCondition().getDefiningOp<BinaryOp>() : BinaryOp();
  auto token = before ? before.getLhs().getDefiningOp<IotaOp>() : IotaOp();
  auto places = scatter.getIndices().getDefiningOp<BroadcastOp>();
  auto isI64 = [](Value number) { return cast<RankedTensorType>(number.getType()).getElementType().isInteger(64); };
  if (!token || !places || before.getKind() != BinaryKind::lt || token.getAxis() != 2 || !isZero(select.getOnFalse()) ||
      !isI64(before.getRhs()) || !isI64(places.getInput()))
    return std::nullopt;
  PlacedRows rows{scatter,           select.getOnTrue().getDefiningOp<PadOp>(), select.getOnTrue(), before.getRhs(),
                  places.getInput(), {scatter, places, select, before, token}};
  if (rows.pad && !addsTokens(rows.pad))
    return std::nullopt;
  if (rows.pad) {
    rows.cache = rows.pad.getInput();
    rows.ops.push_back(rows.pad);
  }
  return rows;
}

bool PlacedRows::fit(llvm::function_ref<SizeVector(Value)> sizesOf) const {
  ScatterElementsOp op = scatter;
  SizeVector all = sizesOf(op.getResult()), added = sizesOf(op.getUpdates()), old = sizesOf(cache);
  auto are = [&](Value value, const SizeExpr &rows) {
    SizeVector sizes = sizesOf(value);
    return sizes.size() == 4 && sizes[0] == all[0] && sizes[1].isConstant(1) && sizes[2] == rows &&
           sizes[3].isConstant(1);
  };
  SizeVector tokens = sizesOf(ops[4]->getResult(0)), kept = sizesOf(ops[2]->getResult(0)),
             at = sizesOf(ops[1]->getResult(0));
  bool isWhole = kept == all && sizesOf(ops[2]->getOperand(1)) == all && at == added && tokens.size() == 4 &&
                 tokens[2] == all[2] && old.size() == 4; // nothing is broadcast but the condition
  for (size_t axis : {0, 1, 3})
    isWhole = isWhole && added[axis] == all[axis] && old[axis] == all[axis];
  return isWhole && are(lengths, SizeExpr(1)) && are(places, added[2]);
}

bool ds::placesRows(Operation *op) {
  auto joins = [](Operation *each) { return isa<PadOp, SelectOp, BinaryOp, IotaOp, BroadcastOp>(each); };
  if (isa_and_present<ScatterElementsOp>(op))
    return PlacedRows::of(op->getResult(0)).has_value();
  return op && joins(op) && flowsInto(op, joins, [](OpOperand &use) {
           auto rows =
               isa<ScatterElementsOp>(use.getOwner()) ? PlacedRows::of(use.getOwner()->getResult(0)) : std::nullopt;
           return rows && use.getOperandNumber() < 2;
         });
}

/// How often a reshape, a broadcast and a reshape repeat each head of what they read; 0 where they do something else.
static int64_t timesRepeated(ArrayRef<SizeExpr> rows, ArrayRef<SizeExpr> apart, ArrayRef<SizeExpr> repeated,
                             ArrayRef<SizeExpr> joined) {
  auto times = rows.size() == 4 && repeated.size() == 5 ? repeated[2].constant() : std::nullopt;
  if (!times || *times < 1)
    return 0;
  SizeVector once = {rows[0], rows[1], SizeExpr(1), rows[2], rows[3]}, all(once);
  all[2] = *times;
  SizeVector together = {rows[0], rows[1] * SizeExpr(*times), rows[2], rows[3]};
  return apart == ArrayRef(once) && repeated == ArrayRef(all) && joined == ArrayRef(together) ? *times : 0;
}

ShownHeads ShownHeads::of(Value value, llvm::function_ref<SizeVector(Value)> sizesOf) {
  ShownHeads heads{value, 1, false, {}};
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (transpose && transpose.getPermutation() == ArrayRef<int64_t>{0, 1, 3, 2}) {
    heads.rows = transpose.getInput();
    heads.isTurned = true;
    heads.ops.push_back(transpose);
  }
  auto joined = heads.rows.getDefiningOp<ReshapeOp>();
  auto repeated = joined ? joined.getInput().getDefiningOp<BroadcastOp>() : BroadcastOp();
  auto apart = repeated ? repeated.getInput().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!apart)
    return heads;
  if (int64_t times = timesRepeated(sizesOf(apart.getInput()), sizesOf(apart.getResult()),
                                    sizesOf(repeated.getResult()), sizesOf(joined.getResult()))) {
    heads.rows = apart.getInput();
    heads.repeat = times;
    heads.ops.append({joined, repeated, apart});
  }
  return heads;
}
