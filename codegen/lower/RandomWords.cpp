// Philox in integers of 64 bits, so that one instruction multiplies the low halves of lanes to whole products. Upper
// halves are cleared where they would count: before products, whose instruction reads none, and at the end. What all
// places share is computed once: keys, and the part of the first round that the step is multiplied in. The last round
// makes one word.
#include "codegen/lower/RandomWords.h"

using namespace mlir;

namespace deepstride {

namespace {
struct Words {
  OpBuilder &b;
  Location loc;

  Value number(uint64_t value) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); }
  Value lower(Value x) { return arith::AndIOp::create(b, loc, x, number(0xffffffff)); }
  Value upper(Value x) { return arith::ShRUIOp::create(b, loc, x, number(32)); }
  Value product(Value x, uint64_t factor) { return arith::MulIOp::create(b, loc, lower(x), number(factor)); }
  Value mixed(Value x, Value y, Value z) {
    return arith::XOrIOp::create(b, loc, x, arith::XOrIOp::create(b, loc, y, z));
  }
  Value sum(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
};
constexpr uint64_t firstFactor = 0xd2511f53, secondFactor = 0xcd9e8d57, firstStep = 0x9e3779b9, secondStep = 0xbb67ae85;
} // namespace

RandomWords::RandomWords(KernelBuilder &k, Value seed, Value step, Value micro, Value stream)
    : micro(micro), stream(stream) {
  Words w{k.b, k.loc};
  Value key[] = {w.lower(seed), w.upper(seed)};
  for (auto &own : keys) {
    std::copy(key, key + 2, own);
    key[0] = w.lower(w.sum(key[0], w.number(firstStep)));
    key[1] = w.lower(w.sum(key[1], w.number(secondStep)));
  }
  low = w.product(step, secondFactor);
  high = w.upper(low);
}

Value RandomWords::at(OpBuilder &b, Location loc, Value place) const {
  Words w{b, loc};
  Value far = arith::ShLIOp::create(b, loc, w.upper(place), w.number(24));
  Value first = w.product(place, firstFactor);
  Value c[] = {w.mixed(w.sum(far, micro), high, keys[0][0]), low, w.mixed(w.upper(first), stream, keys[0][1]), first};
  for (unsigned round = 1; round + 1 < rounds; ++round) {
    first = w.product(c[0], firstFactor);
    Value second = w.product(c[2], secondFactor);
    Value next[] = {w.mixed(w.upper(second), c[1], keys[round][0]), second,
                    w.mixed(w.upper(first), c[3], keys[round][1]), first};
    std::copy(next, next + 4, c);
  }
  return w.lower(w.mixed(w.upper(w.product(c[2], secondFactor)), c[1], keys[rounds - 1][0]));
}

} // namespace deepstride
