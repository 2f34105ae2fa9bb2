// Emits rows of heads into buffers: copies of what lies elsewhere, norms and rotations on the way.
#include "codegen/kernel/HeadRows.h"

#include "codegen/lower/Copies.h"
#include "codegen/lower/Rows.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

std::optional<RowSource> RowSource::of(KernelBuilder &k, Value value) {
  auto rows = ds::headRows(
      value, [](Value from) { return isa<BlockArgument>(from); }, [&](Value from) { return k.sizesOf(from); },
      [](ArrayAttr starts) { return *sizesFromAttribute(starts); });
  if (!rows || rows->window.strides.empty() || !rows->window.strides.back().isConstant(1))
    return std::nullopt;
  for (const ds::RowStep &step : rows->steps)
    for (Value operand : step.op->getOperands().drop_front())
      if (!isa<BlockArgument>(operand))
        return std::nullopt;
  return RowSource(k, std::move(*rows));
}

void RowSource::reserve() {
  if (llvm::any_of(rows.steps, [](const ds::RowStep &step) { return ds::isNorm(step.op); }))
    line = k->scratchOf(storageType(k->elementOf(rows.source)), rows.window.sizes.back());
}

Value RowSource::offsetOf(const ds::StridedWindow &window, ArrayRef<Value> at) {
  Value offset = k->index(window.offset);
  for (auto [index, stride] : llvm::zip(at, window.strides))
    if (!stride.isConstant(0))
      offset = k->add(offset, k->mul(index, k->index(stride)));
  return offset;
}

Matrix RowSource::matrix(ArrayRef<Value> at) {
  return {k->bufferOf(rows.source), offsetOf(rows.window, at), k->index(rows.window.strides[at.size() - 1]),
          k->constant(1)};
}

void RowSource::emit(ArrayRef<Value> at, Value count, Value target, Value offset, Value isAway) {
  const SizeExpr &width = rows.window.sizes.back();
  bool isOnePiece = isStored() && rows.window.strides[at.size() - 1] == width;
  if (isOnePiece && isAway)
    return emitCopyAway(*k, k->bufferOf(rows.source), offsetOf(rows.window, at), target, offset,
                        k->mul(count, k->index(width)), isAway);
  if (isOnePiece)
    return emitCopy(*k, k->bufferOf(rows.source), offsetOf(rows.window, at), target, offset,
                    k->mul(count, k->index(width)), /*isStreamed=*/true);
  k->loop(k->constant(0), count, k->constant(1), [&](Value row) {
    SmallVector<Value> here(at);
    here.back() = k->add(here.back(), row);
    emitRow(here, target, k->add(offset, k->mul(row, k->index(width))));
  });
}

void RowSource::emitRow(ArrayRef<Value> at, Value target, Value offset) {
  const SizeExpr &width = rows.window.sizes.back();
  Value zero = k->constant(0), from = k->bufferOf(rows.source), place = offsetOf(rows.window, at);
  for (const ds::RowStep &step : rows.steps) {
    if (auto rotary = dyn_cast<ds::RotaryOp>(step.op)) {
      emitRotaryRow(*k, rotary,
                    {from, place, target, offset, offsetOf(step.tables[0], at), offsetOf(step.tables[1], at)});
      from = target;
      place = offset;
      continue;
    }
    // Norms walk over whole buffers.
    emitCopy(*k, from, place, line, zero, k->index(width));
    SizeVector shape = {SizeExpr(1), width};
    RowSpace space(*k, shape, {1});
    View view = k->broadcastView(line, shape, shape);
    emitNormRow(*k, space, step.op, view, view, {zero});
    from = line;
    place = zero;
  }
  if (from != target)
    emitCopy(*k, from, place, target, offset, k->index(width));
}

namespace {
/// Reads and writes of a rotation: pairs lie half a row apart, or beside each other.
struct RotaryPairs {
  KernelBuilder &k;
  Type element;
  int64_t half;
  bool isInterleaved;

  Value read(Value buffer, Value place, int64_t width) {
    if (width == 1)
      return k.load(buffer, place, element);
    auto type = VectorType::get({width}, storageType(element));
    return fromStorage(k.b, k.loc, vector::LoadOp::create(k.b, k.loc, type, buffer, place), element);
  }
  void write(Value value, Value buffer, Value place, int64_t width) {
    if (width == 1)
      k.store(value, buffer, place, element);
    else
      vector::StoreOp::create(k.b, k.loc, toStorage(k.b, k.loc, value, element), buffer, place);
  }
  Value shuffle(Value x, Value y, llvm::function_ref<int64_t(int64_t)> from) {
    int64_t width = cast<VectorType>(x.getType()).getDimSize(0);
    auto mask = llvm::map_to_vector(llvm::seq<int64_t>(0, width), from);
    return vector::ShuffleOp::create(k.b, k.loc, x, y, mask);
  }

  /// The first and the second numbers of `width` pairs from `pair` on.
  std::pair<Value, Value> load(Value buffer, Value offset, Value pair, int64_t width) {
    if (!isInterleaved)
      return {read(buffer, k.add(offset, pair), width),
              read(buffer, k.add(k.add(offset, pair), k.constant(half)), width)};
    Value first = k.add(offset, k.mul(pair, k.constant(2)));
    Value x = read(buffer, first, width), y = read(buffer, k.add(first, k.constant(width)), width);
    if (width == 1)
      return {x, y};
    return {shuffle(x, y, [](int64_t lane) { return 2 * lane; }),
            shuffle(x, y, [](int64_t lane) { return 2 * lane + 1; })};
  }
  void store(Value a, Value b, Value buffer, Value offset, Value pair, int64_t width) {
    if (!isInterleaved) {
      write(a, buffer, k.add(offset, pair), width);
      write(b, buffer, k.add(k.add(offset, pair), k.constant(half)), width);
      return;
    }
    Value first = k.add(offset, k.mul(pair, k.constant(2)));
    if (width > 1) {
      // Every other lane of each: the lower half of the pairs, then the upper one.
      auto lower = [&](int64_t lane) { return lane / 2 + lane % 2 * width; };
      auto upper = [&](int64_t lane) { return width / 2 + lower(lane); };
      std::tie(a, b) = std::pair(shuffle(a, b, lower), shuffle(a, b, upper));
    }
    write(a, buffer, first, width);
    write(b, buffer, k.add(first, k.constant(width)), width);
  }
};
} // namespace

void emitRotaryRow(KernelBuilder &k, ds::RotaryOp op, const RotaryRow &row) {
  Type element = k.elementOf(op.getInput());
  int64_t size = *k.sizesOf(op.getInput()).back().constant(), lanes = k.target.lanes;
  int64_t width = op.getFirst() ? static_cast<int64_t>(*op.getFirst()) : size, half = width / 2;
  bool perPair = *k.sizesOf(op.getCosines()).back().constant() == half;
  Value cosines = k.bufferOf(op.getCosines()), sines = k.bufferOf(op.getSines());
  RotaryPairs pairs{k, element, half, op.getInterleaved()};
  auto walk = [&](int64_t begin, int64_t end, int64_t step) {
    k.loop(k.constant(begin), k.constant(end), k.constant(step), [&](Value pair) {
      auto [a, b] = pairs.load(row.from, row.fromOffset, pair, step);
      auto table = [&](Value buffer, Value offset) {
        if (!perPair)
          return pairs.load(buffer, offset, pair, step);
        Value both = pairs.read(buffer, k.add(offset, pair), step);
        return std::pair(both, both);
      };
      auto cosine = table(cosines, row.cosineOffset), sine = table(sines, row.sineOffset);
      auto mul = [&](Value x, Value y) -> Value { return arith::MulFOp::create(k.b, k.loc, x, y); };
      Value real = arith::SubFOp::create(k.b, k.loc, mul(a, cosine.first), mul(b, sine.first));
      Value imaginary = arith::AddFOp::create(k.b, k.loc, mul(b, cosine.second), mul(a, sine.second));
      pairs.store(real, imaginary, row.to, row.toOffset, pair, step);
    });
  };
  int64_t whole = ds::holdsRows(element) && lanes > 1 ? half / lanes * lanes : 0;
  if (whole)
    walk(0, whole, lanes);
  if (whole < half)
    walk(whole, half, 1);
  if (width < size && (row.from != row.to || row.fromOffset != row.toOffset)) {
    Value behind = k.constant(width);
    emitCopy(k, row.from, k.add(row.fromOffset, behind), row.to, k.add(row.toOffset, behind), k.constant(size - width));
  }
}

} // namespace deepstride
