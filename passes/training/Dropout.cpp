// Philox in integer ops of 64 bits that hold 32: kernels need no state, and no result depends on threads.
#include "passes/training/Dropout.h"

#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;

static SmallVector<ds::DropoutOp> dropoutsOf(func::FuncOp function) {
  SmallVector<ds::DropoutOp> dropouts;
  function.walk([&](ds::DropoutOp op) { dropouts.push_back(op); });
  return dropouts;
}

/// Calls `body` for each attention, and each derivative of one, that drops weights.
template <typename Body> static void walkAttentions(func::FuncOp function, Body body) {
  auto visit = [&](auto op) {
    if (op.getDropout())
      body(op);
  };
  function.walk(
      [&](Operation *op) { llvm::TypeSwitch<Operation *>(op).Case<ds::AttentionOp, ds::AttentionGradientOp>(visit); });
}

bool hasDropout(func::FuncOp function) {
  bool found = !dropoutsOf(function).empty();
  walkAttentions(function, [&](auto) { found = true; });
  return found;
}

void removeDropouts(func::FuncOp function) {
  for (ds::DropoutOp op : dropoutsOf(function)) {
    op.getResult().replaceAllUsesWith(op.getInput());
    op.erase();
  }
  walkAttentions(function, [](auto op) {
    op.removeDropoutAttr();
    op.removeStreamAttr();
  });
}

namespace {
/// One tensor of random words.
class Philox {
public:
  explicit Philox(DsBuilder &b) : b(b), word(IntegerType::get(b.getContext(), 64, IntegerType::Unsigned)) {}

  /// The first word for each element of `sizes`, in ui64.
  Value run(const SizeVector &sizes, const RandomState &state, int64_t stream) {
    Value place = b.cast(b.reshape(b.iota(0, {product(sizes)}), sizes), word), seed = b.cast(state.seed, word);
    Value counter[4] = {low(place), low(b.add(low(b.cast(state.micro, word)), shift(high(place), 24, /*left=*/true))),
                        low(b.cast(state.step, word)), number(static_cast<uint64_t>(stream))};
    Value key[2] = {low(seed), high(seed)};
    constexpr unsigned rounds = 10;
    for (unsigned round = 0; round < rounds; ++round) {
      if (round > 0) {
        key[0] = low(b.add(key[0], number(0x9e3779b9)));
        key[1] = low(b.add(key[1], number(0xbb67ae85)));
      }
      Value first = b.mul(counter[0], number(0xd2511f53)), second = b.mul(counter[2], number(0xcd9e8d57));
      Value next[4] = {mixed(high(second), counter[1], key[0]), low(second), mixed(high(first), counter[3], key[1]),
                       low(first)};
      std::copy(next, next + 4, counter);
    }
    return counter[0];
  }

  Value number(uint64_t value) {
    return b.constant(
        DenseElementsAttr::get(RankedTensorType::get({}, word), IntegerAttr::get(word, APInt(64, value))));
  }

private:
  Value low(Value x) { return b.binary(BinaryKind::bit_and, x, number(0xffffffff)); }
  Value shift(Value x, uint64_t bits, bool left = false) {
    return b.binary(left ? BinaryKind::shift_left : BinaryKind::shift_right, x, number(bits));
  }
  Value high(Value x) { return shift(x, 32); }
  Value mixed(Value x, Value y, Value z) {
    return b.binary(BinaryKind::bit_xor, b.binary(BinaryKind::bit_xor, x, y), z);
  }

  DsBuilder &b;
  Type word;
};
} // namespace

Value randomWords(DsBuilder &b, const SizeVector &sizes, const RandomState &state, int64_t stream) {
  return Philox(b).run(sizes, state, stream);
}

LogicalResult expandDropouts(func::FuncOp function, SizeAnalysis &analysis, const RandomState &state) {
  for (auto [draw, op] : llvm::enumerate(dropoutsOf(function))) {
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    Operation *before = op->getPrevNode();
    Value x = op.getInput();
    double ratio = op.getRatio().convertToDouble();
    Philox philox(b);
    Value words = philox.run(b.sizes(x), state, static_cast<int64_t>(op.getStream()));
    auto threshold = static_cast<uint64_t>(std::llround(ratio * 4294967296.0));
    Value keeps = b.binary(BinaryKind::ge, words, philox.number(threshold));
    Value kept = b.select(keeps, b.mul(x, 1 / (1 - ratio)), b.scalar(b.element(x), 0));
    if (!kept)
      return failure();
    // Equal ops with other attributes are not merged: recomputing is what a mask costs that is not stored.
    OpBuilder marks(op);
    for (Operation *made = before ? before->getNextNode() : &op->getBlock()->front(); made != op;
         made = made->getNextNode())
      if (!isa<ds::ConstantOp>(made))
        made->setAttr("ds.draw", marks.getI64IntegerAttr(static_cast<int64_t>(draw)));
    op.getResult().replaceAllUsesWith(kept);
    op.erase();
  }
  walkAttentions(function, [&](auto op) {
    DsBuilder b(OpBuilder(op), analysis);
    b.setLocation(op.getLoc());
    auto stream = DenseElementsAttr::get(RankedTensorType::get({}, b.i64()), {*op.getStream()});
    op.getRandomMutable().assign({state.seed, state.step, state.micro, b.constant(stream)});
    op.removeStreamAttr();
  });
  return success();
}

} // namespace deepstride
