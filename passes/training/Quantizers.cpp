// Quotients by the step are true divisions: a power of 2 moves exponents only, so that (w 2^b) / (2 max|w|) and
// w / (2 max|w| / 2^b) are the same number.
#include "passes/training/Quantizers.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace deepstride {
using ds::BinaryKind;
using ds::ReduceKind;
using ds::UnaryKind;

const Quantizer::Numbers &Quantizer::numbersOf(int64_t block, Type type) {
  auto [found, isNew] = known.try_emplace({block, type.getAsOpaquePointer()});
  Numbers &numbers = found->second;
  if (!isNew)
    return numbers;
  OpBuilder::InsertionGuard guard(b.getBuilder()); // whichever image is the first: all of them read it
  b.getBuilder().setInsertionPointToStart(inputs.levels.getParentBlock());
  auto of = [&](Value list) { return b.reshape(b.sliceAxis(list, 0, block, 1), {}); };
  auto bit = [&](Value condition) -> Value {
    if (!condition)
      return {};
    return tensor::ExtractOp::create(b.getBuilder(), b.getLocation(), condition, ValueRange{});
  };
  Value levels = of(inputs.levels), one = b.scalar(b.f64(), 1);
  numbers.isSome = bit(b.binary(BinaryKind::gt, levels, 0));
  if (settings.hasFewLevels()) {
    numbers.isUniform = bit(b.binary(BinaryKind::gt, levels, 4));
    numbers.isTernary = b.binary(BinaryKind::gt, levels, 2);
  }
  Value half = b.mul(levels, 0.5), codes = settings.isSymmetric ? half : levels;
  numbers.perLevel = b.cast(b.div(one, codes), type);
  numbers.least = settings.isSymmetric ? b.cast(b.unary(UnaryKind::neg, half), type) : b.scalar(type, 0);
  numbers.most = b.cast(b.sub(codes, one), type);
  if (settings.isMixed) {
    Value share = of(inputs.shares);
    numbers.share = b.cast(share, type);
    numbers.rest = b.cast(b.sub(one, share), type);
  }
  return numbers;
}

Value Quantizer::image(Value weight, int64_t block, int64_t stream) {
  const Numbers numbers = numbersOf(block, b.element(weight));
  auto mixed = [&](Value image) {
    return settings.isMixed ? b.add(b.mul(weight, numbers.share), b.mul(image, numbers.rest)) : image;
  };
  auto none = [&] { return weight; };
  auto uniform = [&] {
    return mixed(settings.isSymmetric ? symmetric(weight, numbers, stream) : asymmetric(weight, numbers, stream));
  };
  if (!settings.hasFewLevels())
    return branch(numbers.isSome, weight, uniform, none);
  auto few = [&] { return mixed(fewLevels(weight, numbers)); };
  return branch(numbers.isUniform, weight, uniform, [&] { return branch(numbers.isSome, weight, few, none); });
}

/// One of two images, of which only that one is computed.
Value Quantizer::branch(Value bit, Value weight, llvm::function_ref<Value()> yes, llvm::function_ref<Value()> no) {
  if (!bit)
    return {};
  OpBuilder &builder = b.getBuilder();
  TensorFacts facts = b.facts(weight);
  auto choice = scf::IfOp::create(builder, b.getLocation(), TypeRange(facts.type()), bit, /*withElseRegion=*/true);
  for (auto [block, make] : {std::pair(choice.thenBlock(), yes), std::pair(choice.elseBlock(), no)}) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(block);
    Value image = make();
    if (!image)
      return {};
    scf::YieldOp::create(builder, b.getLocation(), image);
  }
  b.getAnalysis().set(choice.getResult(0), facts);
  return choice.getResult(0);
}

/// [groups, elements of each]
Value Quantizer::rows(Value weight) {
  return b.reshape(weight, {settings.groups, *product(b.sizes(weight)).constant() / settings.groups});
}

Value Quantizer::rounded(Value quotient, int64_t stream) {
  if (settings.isStochastic) {
    // The 24 upper bits, and half of what they leave: never a bound of the interval, exact in f32.
    Value words = b.binary(BinaryKind::shift_right, randomWords(b, b.sizes(quotient), inputs.random, stream), 8);
    Value draw = b.mul(b.cast(words, b.element(quotient)), 0x1p-24);
    quotient = b.add(quotient, b.add(draw, 0x1p-25 - 0.5));
  }
  return b.unary(UnaryKind::round, quotient);
}

Value Quantizer::clamped(Value code, const Numbers &numbers) {
  return b.binary(BinaryKind::min, b.binary(BinaryKind::max, code, numbers.least), numbers.most);
}

Value Quantizer::symmetric(Value weight, const Numbers &numbers, int64_t stream) {
  Value w = rows(weight), zero = b.scalar(b.element(w), 0);
  Value step = b.mul(b.reduce(ReduceKind::max, b.unary(UnaryKind::abs, w), {1}), numbers.perLevel);
  step = b.select(b.binary(BinaryKind::gt, step, zero), step, b.scalar(b.element(w), 1));
  Value code = clamped(rounded(b.div(w, step), stream), numbers);
  return b.reshape(b.mul(code, step), b.sizes(weight));
}

Value Quantizer::asymmetric(Value weight, const Numbers &numbers, int64_t stream) {
  Value w = rows(weight), zero = b.scalar(b.element(w), 0);
  Value low = b.reduce(ReduceKind::min, w, {1}), high = b.reduce(ReduceKind::max, w, {1});
  Value equal = b.unary(UnaryKind::abs, high); // the step of a group of equal elements
  equal = b.select(b.binary(BinaryKind::gt, equal, zero), equal, b.scalar(b.element(w), 1));
  Value step = b.mul(b.sub(high, low), numbers.perLevel);
  step = b.select(b.binary(BinaryKind::gt, step, zero), step, equal);
  Value first = b.unary(UnaryKind::round, b.div(low, step));
  Value code = clamped(rounded(b.div(b.sub(w, b.mul(first, step)), step), stream), numbers);
  return b.reshape(b.mul(b.add(code, first), step), b.sizes(weight));
}

/// Of 4 levels ternary, of 2 binary.
Value Quantizer::fewLevels(Value weight, const Numbers &numbers) {
  Value w = rows(weight), zero = b.scalar(b.element(w), 0), size = b.unary(UnaryKind::abs, w);
  Value mean = b.reduce(ReduceKind::mean, size, {1});
  Value isLarge = b.binary(BinaryKind::gt, size, b.mul(mean, 0.7));
  Value sum = b.reduce(ReduceKind::sum, b.select(isLarge, size, zero), {1});
  Value count = b.reduce(ReduceKind::sum, b.cast(isLarge, b.element(w)), {1});
  Value scale = b.select(numbers.isTernary, b.div(sum, b.binary(BinaryKind::max, count, 1)), mean);
  Value isZero = b.binary(BinaryKind::bit_and, numbers.isTernary, b.unary(UnaryKind::logical_not, isLarge));
  return b.reshape(b.mul(b.select(isZero, zero, b.unary(UnaryKind::sign, w)), scale), b.sizes(weight));
}

} // namespace deepstride
