// Makes scf.while from a converted iteration:
//
//   scf.while (counter, carried..., collected..., condition)
//     before: counter < trip and condition
//     after:  define the counter's symbol, iterate, insert the rows into what is collected
#include "frontends/onnx/convert/LoopBuilder.h"

#include "dialects/ds/Contents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace deepstride::onnx {

void define(Node &n, StringRef symbol, Value value) {
  if (!value) // refused; nothing that uses the symbol will be kept
    return;
  ds::DefineOp::create(n.b.getBuilder(), n.b.getLocation(), symbol, value);
}

llvm::StringSet<> symbolsOf(Block &block) {
  llvm::StringSet<> symbols;
  block.walk([&](Operation *op) {
    if (auto define = dyn_cast<ds::DefineOp>(op))
      symbols.insert(define.getSymbol());
    if (auto nonZero = dyn_cast<ds::NonZeroOp>(op))
      symbols.insert(nonZero.getCount());
  });
  return symbols;
}

bool isOver(const SizeExpr &size, const llvm::StringSet<> &symbols) {
  return llvm::any_of(size.symbols(), [&](const SizeAtom &symbol) {
    return symbol.kind() == SizeAtom::Kind::Symbol && symbols.contains(symbol.name());
  });
}

namespace {
class LoopMaker {
public:
  LoopMaker(Node &n, const LoopSpec &spec) : n(n), b(n.b), builder(n.b.getBuilder()), spec(spec) {}

  std::optional<LoopResult> make(LoopBody body);

private:
  bool convert(LoopBody body);
  bool keepShapes(LoopStep &step);
  bool collect(const LoopStep &step);
  bool isFixed(const TensorFacts &row);
  Value carry(const TensorFacts &facts);
  void check();

  Node &n;
  DsBuilder &b;
  OpBuilder &builder;
  const LoopSpec &spec;
  Block *block = nullptr;
  Values yielded;
  SmallVector<TensorFacts> collected;
  bool isConditional = false;
};
} // namespace

/// A carried tensor of the iteration; nothing is known of its elements.
Value LoopMaker::carry(const TensorFacts &facts) {
  Value argument = block->addArgument(facts.type(), b.getLocation());
  b.getAnalysis().set(argument, {facts.elementType, facts.sizes, std::nullopt});
  return argument;
}

/// One size that is not known to differ is left to the run: a reshape states that it is the same.
bool LoopMaker::keepShapes(LoopStep &step) {
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(spec.inits, step.carried))) {
    Value &value = std::get<1>(pair);
    TensorFacts first = b.facts(std::get<0>(pair)), next = b.facts(value);
    bool isKept = first.elementType == next.elementType && first.rank() == next.rank();
    unsigned unknown = 0;
    for (int64_t axis = 0; isKept && axis < first.rank(); ++axis)
      if (first.sizes[axis] != next.sizes[axis]) {
        ++unknown;
        isKept = unknown == 1 && !(first.sizes[axis] - next.sizes[axis]).constant();
      }
    if (!isKept)
      return n.reject("carried value " + Twine(index) + ": expected an iteration to keep its type and shape, " +
                      describe(first) + ", found " + describe(next) +
                      "; legal in a loop of few iterations whose number is known when the model is compiled");
    if (!unknown)
      continue;
    value = b.reshape(value, first.sizes);
    // What is collected may have the size in question, too.
    for (LoopRow &row : step.rows) {
      SizeVector sizes = b.sizes(row.value);
      for (SizeExpr &size : sizes)
        for (auto [wanted, found] : llvm::zip_equal(first.sizes, next.sizes))
          if (size == found)
            size = wanted;
      if (sizes != b.sizes(row.value))
        row.value = b.reshape(row.value, sizes);
    }
  }
  return !llvm::is_contained(step.carried, Value()) &&
         llvm::none_of(step.rows, [](const LoopRow &row) { return !row.value; });
}

/// Whether every iteration gives rows of one size.
bool LoopMaker::isFixed(const TensorFacts &row) {
  llvm::StringSet<> inner = symbolsOf(*block);
  for (const SizeExpr &size : row.sizes)
    if (isOver(size, inner))
      return n.reject("expected every iteration to give a part of one shape, found " + describe(row) +
                      ", whose size differs");
  return true;
}

bool LoopMaker::collect(const LoopStep &step) {
  SizeExpr count = spec.rowCount ? *spec.rowCount : *spec.trip;
  if (auto known = count.constant(); known && *known > INT32_MAX && !step.rows.empty())
    return n.reject("expected a loop that ends, found a trip count of " + Twine(*known) + " and no condition");
  for (const LoopRow &row : step.rows) {
    TensorFacts facts = b.facts(row.value);
    if (!isFixed(facts))
      return false;
    SizeVector starts(facts.sizes.size(), SizeExpr(0));
    starts[row.axis] = row.start;
    facts.sizes[row.axis] = count;
    Value into = carry(facts);
    yielded.push_back(b.create<ds::InsertOp>({row.value, into}, row.value, into, b.list(starts)));
    if (!yielded.back())
      return false;
    collected.push_back(facts);
  }
  return true;
}

bool LoopMaker::convert(LoopBody body) {
  Location where = b.getLocation();
  Value counter = block->addArgument(builder.getI64Type(), where);
  std::string symbol = n.context.newCountSymbol();
  define(n, symbol, counter);
  SmallVector<Value> carried;
  for (Value init : spec.inits)
    carried.push_back(carry(b.facts(init)));
  auto step = body(SizeExpr::symbol(symbol), carried);
  b.setLocation(where);
  if (!step || llvm::is_contained(step->carried, Value()) || n.isRefused() || !keepShapes(*step))
    return false;
  Value one = arith::ConstantIntOp::create(builder, where, 1, 64);
  yielded.push_back(arith::AddIOp::create(builder, where, counter, one));
  yielded.append(step->carried);
  isConditional = spec.first || step->condition;
  if (!isConditional && !spec.trip)
    return n.reject("expected a trip count or a condition that ends the loop, found neither");
  if ((!isConditional || spec.rowCount) && !collect(*step))
    return false;
  if (isConditional) {
    Value condition = step->condition ? step->condition : b.scalar(b.i1(), 1);
    carry(b.facts(condition));
    yielded.push_back(condition);
  }
  scf::YieldOp::create(builder, where, yielded);
  return true;
}

/// The block that decides whether there is one more iteration.
void LoopMaker::check() {
  Location where = b.getLocation();
  Value goesOn;
  if (spec.trip) {
    Value trip = ds::SizeOp::create(builder, where, builder.getI64Type(), toAttribute(b.getContext(), *spec.trip));
    goesOn = arith::CmpIOp::create(builder, where, arith::CmpIPredicate::slt, block->getArgument(0), trip);
  }
  if (isConditional) {
    Value condition = tensor::ExtractOp::create(builder, where, block->getArguments().back(), ValueRange());
    goesOn = goesOn ? arith::AndIOp::create(builder, where, goesOn, condition).getResult() : condition;
  }
  scf::ConditionOp::create(builder, where, goesOn, block->getArguments());
}

std::optional<LoopResult> LoopMaker::make(LoopBody body) {
  constexpr unsigned depthLimit = 8;
  if (n.context.loopDepth >= depthLimit)
    return n.refuse("expected loops of at most " + Twine(depthLimit) + " levels");
  Location where = b.getLocation();
  if (llvm::is_contained(spec.inits, Value()))
    return std::nullopt;
  OperationState state(where, scf::WhileOp::getOperationName());
  Region *before = state.addRegion(), *after = state.addRegion();
  {
    OpBuilder::InsertionGuard guard(builder);
    block = builder.createBlock(after);
    ++n.context.loopDepth;
    bool isConverted = convert(body);
    --n.context.loopDepth;
    b.setLocation(where);
    if (!isConverted)
      return std::nullopt;
  }
  SmallVector<Type> types(block->getArgumentTypes());
  {
    OpBuilder::InsertionGuard guard(builder);
    block = builder.createBlock(before, {}, types, SmallVector<Location>(types.size(), where));
    check();
  }
  // What the body requires of sizes must hold only where it runs, which a symbol has to tell.
  if (spec.first && !isExact(b.facts(spec.first)))
    define(n, n.context.newCountSymbol(), spec.first);
  state.addOperands(arith::ConstantIntOp::create(builder, where, 0, 64).getResult());
  state.addOperands(spec.inits);
  for (const TensorFacts &facts : collected) {
    Value empty = b.broadcast(b.scalar(facts.elementType, 0), facts.sizes);
    if (!empty)
      return std::nullopt;
    state.addOperands(empty);
  }
  if (isConditional)
    state.addOperands(spec.first ? spec.first : b.scalar(b.i1(), 1));
  state.addTypes(types);
  for (auto [index, type] : llvm::enumerate(types))
    if (state.operands[index].getType() != type)
      return n.refuse("carried value " + Twine(index) + " has no type that the whole loop keeps");
  Operation *op = builder.create(state);
  LoopResult result;
  result.count = op->getResult(0);
  result.isConditional = isConditional;
  for (auto [index, value] : llvm::enumerate(op->getResults().drop_front())) {
    TensorFacts facts = b.facts(op->getOperand(index + 1));
    b.getAnalysis().set(value, {facts.elementType, facts.sizes, std::nullopt});
    if (index < spec.inits.size())
      result.carried.push_back(value);
    else if (index < spec.inits.size() + collected.size())
      result.rows.push_back(value);
  }
  return result;
}

std::optional<LoopResult> buildLoop(Node &n, const LoopSpec &spec, LoopBody body) {
  return LoopMaker(n, spec).make(body);
}

} // namespace deepstride::onnx
