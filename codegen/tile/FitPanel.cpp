#include "codegen/tile/FitPanel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace deepstride {

namespace {
/// The bytes of one step: for each vector of columns two vectors of four bytes a column.
struct FittedStep {
  KernelBuilder &k;
  int64_t lanes;
  SmallVector<Value> bytes;

  VectorType type(int64_t count, unsigned bits) const { return VectorType::get({count}, k.b.getIntegerType(bits)); }

  /// The most that four numbers of one sign come to: of bytes 0, 1 of either half, or 2, 3.
  Value greatestSum() const {
    auto isByte = type(4 * lanes, 8), isWord = type(2 * lanes, 16);
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(isByte));
    Value low = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(isWord, k.b.getI16IntegerAttr(255)));
    Value byte = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(isWord, k.b.getI16IntegerAttr(8)));
    auto pairSums = [&](Value magnitudes) -> Value {
      Value words = vector::BitCastOp::create(k.b, k.loc, isWord, magnitudes);
      Value even = arith::AndIOp::create(k.b, k.loc, words, low);
      return arith::AddIOp::create(k.b, k.loc, even, arith::ShRUIOp::create(k.b, k.loc, words, byte));
    };
    Value most;
    for (size_t v = 0; v < bytes.size(); v += 2) {
      Value above, below; // sums of what is above and below 0
      for (Value half : {bytes[v], bytes[v + 1]}) {
        Value positive = arith::MaxSIOp::create(k.b, k.loc, half, zero);
        Value sumAbove = pairSums(positive), sumBelow = pairSums(arith::SubIOp::create(k.b, k.loc, positive, half));
        above = above ? arith::AddIOp::create(k.b, k.loc, above, sumAbove).getResult() : sumAbove;
        below = below ? arith::AddIOp::create(k.b, k.loc, below, sumBelow).getResult() : sumBelow;
      }
      Value either = arith::MaxSIOp::create(k.b, k.loc, above, below);
      most = most ? arith::MaxSIOp::create(k.b, k.loc, most, either).getResult() : either;
    }
    return vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::MAXSI, most);
  }

  /// Two steps whose numbers add up to those of this one, halves that differ by one at most.
  std::pair<FittedStep, FittedStep> shared() const {
    auto isByte = type(4 * lanes, 8);
    Value one = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(isByte, k.b.getI8IntegerAttr(1)));
    FittedStep lower{k, lanes, {}}, upper{k, lanes, {}};
    for (Value half : bytes) {
      lower.bytes.push_back(arith::ShRSIOp::create(k.b, k.loc, half, one));
      upper.bytes.push_back(arith::SubIOp::create(k.b, k.loc, half, lower.bytes.back()));
    }
    return {lower, upper};
  }

  void store(Value target, Value number) const {
    Value from = k.mul(number, k.constant(4 * lanes * static_cast<int64_t>(bytes.size())));
    for (auto [place, half] : llvm::enumerate(bytes))
      storeLanes(k, half, target, k.add(from, k.constant(4 * lanes * static_cast<int64_t>(place))), {});
  }
};
} // namespace

/// Calls `ifTrue` or `ifFalse`, which yield how many steps there are afterwards.
static Value choose(KernelBuilder &k, Value condition, llvm::function_ref<Value()> ifTrue,
                    llvm::function_ref<Value()> ifFalse) {
  auto branch = scf::IfOp::create(k.b, k.loc, k.b.getIndexType(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(k.b, k.loc, ifTrue());
  k.b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(k.b, k.loc, ifFalse());
  return branch.getResult(0);
}

std::pair<Value, Value> emitFitPanel(KernelBuilder &k, const VectorKernel &stored, const MicroKernel &fitted,
                                     Value depth, const Panel &panel, Value target, Value places) {
  constexpr int64_t most = 128; // 128 * 255 fits 16 bits
  int64_t lanes = stored.lanes(), perHalf = stored.interleave, width = panelWidth(stored, panel.vectors);
  auto bytes = VectorType::get({perHalf * lanes}, k.b.getI8Type());
  Value zero = k.constant(0), one = k.constant(1), steps = k.divide(depth, k.constant(fitted.interleave));
  auto isAbove = [&](Value sum, int64_t limit) -> Value {
    Value bound = arith::ConstantOp::create(k.b, k.loc, k.b.getI16IntegerAttr(static_cast<int16_t>(limit)));
    return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sgt, sum, bound);
  };
  // How many more than 3/2 of so many steps were written, twice that.
  auto isShort = [&](Value step, Value written, int64_t slack) -> Value {
    Value excess = k.sub(k.mul(written, k.constant(2)), k.mul(step, k.constant(3)));
    return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sle, excess, k.constant(slack));
  };
  constexpr int64_t slack = 32;
  OpBuilder::InsertionGuard guard(k.b);
  Type index = k.b.getIndexType();
  auto loop = scf::WhileOp::create(k.b, k.loc, TypeRange{index, index}, ValueRange{zero, zero});
  for (Region *region : {&loop.getBefore(), &loop.getAfter()})
    k.b.createBlock(region, {}, TypeRange{index, index}, {k.loc, k.loc});
  k.b.setInsertionPointToStart(loop.getBeforeBody());
  Value goesOn = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, loop.getBeforeArguments()[0], steps);
  scf::ConditionOp::create(
      k.b, k.loc,
      arith::AndIOp::create(k.b, k.loc, goesOn,
                            isShort(loop.getBeforeArguments()[0], loop.getBeforeArguments()[1], slack)),
      loop.getBeforeArguments());
  k.b.setInsertionPointToStart(loop.getAfterBody());
  Value step = loop.getAfterArguments()[0], written = loop.getAfterArguments()[1];
  FittedStep whole{k, lanes, {}};
  for (int64_t v = 0; v < panel.vectors; ++v)
    for (int64_t half = 0; half < 2; ++half) {
      Value row = k.add(k.mul(step, k.constant(2)), k.constant(half));
      Value place = k.add(k.mul(row, k.constant(width * perHalf)), k.constant(v * lanes * perHalf));
      whole.bytes.push_back(loadLanes(k, bytes, panel.buffer, k.add(panel.offset, place), {}));
    }
  auto add = [&](const FittedStep &part, Value number) {
    part.store(target, number);
    Value along = k.mul(step, k.constant(fitted.interleave));
    memref::StoreOp::create(k.b, k.loc, arith::IndexCastOp::create(k.b, k.loc, k.b.getI32Type(), along), places,
                            number);
    return k.add(number, one);
  };
  auto addShared = [&](const FittedStep &part, Value number) {
    auto [lower, upper] = part.shared();
    return add(upper, add(lower, number));
  };
  Value sum = whole.greatestSum();
  // Of four numbers of one sign, halves that are rounded up come to two more than half of the sum.
  Value now = choose(
      k, isAbove(sum, most),
      [&] {
        std::pair<FittedStep, FittedStep> halves = whole.shared();
        return choose(
            k, isAbove(sum, 2 * most - 4), [&] { return addShared(halves.second, addShared(halves.first, written)); },
            [&] { return add(halves.second, add(halves.first, written)); });
      },
      [&] { return add(whole, written); });
  scf::YieldOp::create(k.b, k.loc, ValueRange{k.add(step, one), now});
  k.b.setInsertionPointAfter(loop);
  Value isWhole = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, loop.getResult(0), steps);
  isWhole = arith::AndIOp::create(k.b, k.loc, isWhole, isShort(steps, loop.getResult(1), 0));
  return {isWhole, loop.getResult(1)};
}

} // namespace deepstride
