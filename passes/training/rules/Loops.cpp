// The derivative of a counted loop: a loop that walks back. What an iteration hands to the next one hands its gradient
// back; what all iterations read collects a sum. Nothing is computed again: the loop keeps a row per iteration of each
// value that the way back reads, but for what only moves elements of something kept.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/training/rules/LoopReversal.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace deepstride {

/// The rows that one iteration reads or writes: one along an axis, which another iteration never touches.
static bool isRowOf(ArrayAttr starts, ArrayRef<SizeExpr> sizes, StringRef counter) {
  auto list = sizesFromAttribute(starts);
  if (!list)
    return false;
  for (auto [start, size] : llvm::zip_equal(*list, sizes)) {
    SizeExpr count = SizeExpr::symbol(counter);
    if (size.isConstant(1) && (!(start - count).dependsOn(counter) || !(start + count).dependsOn(counter)))
      return true;
  }
  return false;
}

/// Whether a value counts iterations, from the first one on or from the last one.
bool LoopReversal::countsIterations(Value value) const {
  auto difference = value.getDefiningOp<arith::SubIOp>();
  return value == body->getArgument(0) ||
         (difference && difference.getLhs().getDefiningOp<ds::SizeOp>() && difference.getRhs() == body->getArgument(0));
}

/// counter = 0; while (counter < trip) { define(counter); ...; counter + 1 }
bool LoopReversal::findForm() {
  scf::ConditionOp condition = loop.getConditionOp();
  auto compare = condition.getCondition().getDefiningOp<arith::CmpIOp>();
  auto size = compare ? compare.getRhs().getDefiningOp<ds::SizeOp>() : ds::SizeOp();
  body = loop.getAfterBody();
  bool isCounted = size && compare.getPredicate() == arith::CmpIPredicate::slt &&
                   compare.getLhs() == loop.getBeforeArguments()[0] && condition.getArgs() == loop.getBeforeArguments();
  auto expression = isCounted ? sizeFromAttribute(size.getValue()) : std::nullopt;
  if (!expression)
    return false;
  trip = *expression;
  llvm::StringSet<> used;
  loop->getParentOfType<func::FuncOp>().walk([&](ds::DefineOp define) { used.insert(define.getSymbol()); });
  auto fresh = [&](std::string name) {
    while (!used.insert(name).second)
      name += "_";
    return name;
  };
  auto rename = [&](StringRef name) { namesBack[name] = SizeExpr::symbol(backSymbol = fresh(name.str() + "_back")); };
  for (ds::DefineOp define : body->getOps<ds::DefineOp>()) {
    rename(define.getSymbol());
    if (countsIterations(define.getValue()))
      symbol = define.getSymbol().str();
  }
  if (symbol.empty()) { // no row was asked for yet
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(body);
    symbol = fresh("count");
    ds::DefineOp::create(builder, loop.getLoc(), symbol, body->getArgument(0));
    rename(symbol);
  }
  backSymbol = namesBack[symbol].asAtom()->name().str();
  return true;
}

/// Whether a carried value only collects a row of each iteration, and begins with nothing that varies.
bool LoopReversal::isCollected(unsigned place) {
  Value argument = body->getArgument(place);
  auto insert = body->getTerminator()->getOperand(place).getDefiningOp<ds::InsertOp>();
  return insert && argument.hasOneUse() && insert.getInto() == argument && insert->hasOneUse() &&
         !d.wants(loop.getInits()[place]) && isRowOf(insert.getStarts(), b.sizes(insert.getUpdate()), symbol);
}

void LoopReversal::findCarries() {
  for (unsigned place = 1; place < body->getNumArguments(); ++place)
    if (isa<FloatType>(getElementTypeOrSelf(body->getArgument(place))) && !isCollected(place))
      carries.push_back({Carry::Handed, body->getArgument(place), place});
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(loop.getAfter(), used);
  for (Value value : used) {
    if (!d.wants(value))
      continue;
    SmallVector<Operation *> readers;
    for (Operation *user : value.getUsers())
      if (loop.getAfter().isAncestor(user->getParentRegion()))
        readers.push_back(user);
    auto slice = readers.size() == 1 ? dyn_cast<ds::SliceOp>(readers[0]) : ds::SliceOp();
    bool isRow = slice && slice->getBlock() == body && llvm::all_of(slice.getSteps(), [](int64_t s) { return s == 1; });
    if (isRow && isRowOf(slice.getStarts(), b.sizes(slice), symbol))
      carries.push_back({Carry::Rows, value, 0, slice});
    else
      carries.push_back({Carry::Shared, value});
  }
}

ArrayAttr LoopReversal::renamed(ArrayAttr sizes) {
  SmallVector<Attribute> next;
  for (Attribute size : sizes) {
    auto text = dyn_cast<StringAttr>(size);
    auto expression = text ? SizeExpr::parse(text.getValue(), &namesBack) : std::nullopt;
    next.push_back(expression ? toAttribute(b.getContext(), *expression) : size);
  }
  return builder.getArrayAttr(next);
}

/// Rules write the sizes that they find, which name numbers of the way there.
void LoopReversal::rename() {
  back->walk([&](Operation *op) {
    for (NamedAttribute named : llvm::to_vector(op->getAttrs()))
      if (auto sizes = dyn_cast<ArrayAttr>(named.getValue()); sizes && !named.getName().getValue().starts_with("ds."))
        op->setAttr(named.getName(), renamed(sizes));
    if (auto size = dyn_cast<ds::SizeOp>(op))
      size.setValueAttr(renamed(builder.getArrayAttr({size.getValueAttr()}))[0]);
  });
}

/// Makes the op whose body is to be filled; null where sizes are refused.
scf::WhileOp LoopReversal::startWayBack() {
  Location where = b.getLocation();
  SmallVector<Value> inits = {arith::ConstantIntOp::create(builder, where, 0, 64)};
  SmallVector<Type> types = {builder.getI64Type()};
  for (const Carry &carry : carries) {
    Value given = carry.kind == Carry::Handed ? d.gradient(carry.place) : Value();
    facts.push_back(b.facts(carry.value));
    facts.back().contents.reset();
    inits.push_back(given ? given : d.zeros(facts.back().elementType, facts.back().sizes));
    types.push_back(facts.back().type());
    if (!inits.back())
      return {};
  }
  auto op = scf::WhileOp::create(builder, where, types, inits);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locations(types.size(), where);
  Block *check = builder.createBlock(&op.getBefore(), {}, types, locations);
  Value end = ds::SizeOp::create(builder, where, builder.getI64Type(), toAttribute(b.getContext(), trip));
  Value goesOn = arith::CmpIOp::create(builder, where, arith::CmpIPredicate::slt, check->getArgument(0), end);
  scf::ConditionOp::create(builder, where, goesOn, check->getArguments());
  back = builder.createBlock(&op.getAfter(), {}, types, locations);
  for (auto [argument, carried] : llvm::zip_equal(back->getArguments().drop_front(), facts))
    b.getAnalysis().set(argument, carried);
  return op;
}

/// Fills the body with the derivatives of the other one's ops, in terms of its values; false after a diagnostic.
bool LoopReversal::fillWayBack() {
  Location where = b.getLocation();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(back);
  Value step = back->getArgument(0), one = arith::ConstantIntOp::create(builder, where, 1, 64);
  Value last =
      ds::SizeOp::create(builder, where, builder.getI64Type(), toAttribute(b.getContext(), trip - SizeExpr(1)));
  iteration = arith::SubIOp::create(builder, where, last, step);
  for (bool counts : {true, false}) // what is known at once comes first
    for (ds::DefineOp define : body->getOps<ds::DefineOp>())
      if (countsIterations(define.getValue()) == counts) {
        StringRef name = namesBack[define.getSymbol()].asAtom()->name();
        bool isForward = define.getValue() == body->getArgument(0);
        ds::DefineOp::create(builder, where, name, !counts ? define.getValue() : isForward ? iteration : step);
      }
  SmallVector<Value> sources, results, seeds, next = {arith::AddIOp::create(builder, where, step, one)};
  Operation *yield = body->getTerminator();
  auto argumentOf = [&](size_t carry) { return back->getArgument(static_cast<unsigned>(carry) + 1); };
  for (auto [number, carry] : llvm::enumerate(carries)) {
    sources.push_back(carry.kind == Carry::Rows ? carry.row.getResult() : carry.value);
    if (carry.kind != Carry::Handed)
      continue;
    results.push_back(yield->getOperand(carry.place));
    seeds.push_back(argumentOf(number));
  }
  for (unsigned place = 1; place < body->getNumArguments(); ++place)
    if (Value given = d.gradient(place); given && isCollected(place)) {
      auto insert = yield->getOperand(place).getDefiningOp<ds::InsertOp>();
      SizeVector box = b.sizes(insert.getUpdate());
      results.push_back(insert.getUpdate());
      seeds.push_back(
          b.slice(given, *sizesFromAttribute(insert.getStarts()), box, SmallVector<int64_t>(box.size(), 1)));
    }
  ReverseSweep sweep(*body, sources);
  if (failed(sweep.run(results, seeds, b)))
    return d.fail(), false;
  b.setLocation(where);
  for (auto [number, carry] : llvm::enumerate(carries)) {
    Value found = sweep.gradient(sources[number]), before = argumentOf(number);
    if (carry.kind == Carry::Handed)
      next.push_back(found ? found : d.zeros(facts[number].elementType, facts[number].sizes));
    else if (!found)
      next.push_back(before);
    else if (carry.kind == Carry::Shared)
      next.push_back(b.add(before, found));
    else
      next.push_back(b.create<ds::InsertOp>({found, before}, found, before, carry.row.getStarts()));
  }
  if (llvm::is_contained(next, Value()))
    return d.refuse("with such sizes yet"), false;
  scf::YieldOp::create(builder, where, next);
  return true;
}

void LoopReversal::run() {
  if (!findForm())
    return d.refuse("where a condition may end it");
  findCarries();
  scf::WhileOp reverse = startWayBack();
  if (!reverse)
    return d.refuse("with such sizes yet");
  if (!fillWayBack())
    return;
  back->walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      findRead(operand);
  });
  SmallVector<Value> inits(loop.getInits());
  if (!keepRows())
    return;
  useKept();
  rename();
  // Facts of the way back were those of the way there.
  if (d.isRefused() || failed(b.getAnalysis().visit(loop)) || failed(b.getAnalysis().visit(reverse)))
    return d.fail();
  for (auto [number, carry] : llvm::enumerate(carries))
    d.giveTo(carry.kind == Carry::Handed ? inits[carry.place] : carry.value,
             reverse.getResult(static_cast<unsigned>(number) + 1));
}

static void differentiateLoop(scf::WhileOp loop, Derivative &d) { LoopReversal(loop, d).run(); }

void addLoopRules(RuleTable &table) { table.add(differentiateLoop); }

} // namespace deepstride
