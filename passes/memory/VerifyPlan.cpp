// An abstract interpreter of buffer plans. For each buffer it knows which values lie there; a launch must find its
// operands where the plan says, and what it writes replaces what was there. A workspace buffer loses its contents at
// every launch outside of its lifetime. Loops are followed to a fixed point: the result holds for all numbers of turns.
#include "passes/memory/VerifyPlan.h"

#include "dialects/dist/DistDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "passes/memory/BufferCopies.h"
#include "passes/memory/KernelAccess.h"
#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;

namespace deepstride {
namespace {

struct BufferFacts {
  StringRef role;
  int64_t index = -1, first = 0, last = 0;
  std::optional<SizeExpr> bytes; // where the plan states them or the program's border does
};

struct Collective {
  SmallVector<int64_t> sources, destinations;

  bool reads(int64_t buffer) const { return llvm::is_contained(sources, buffer); }
  bool writes(int64_t buffer) const { return llvm::is_contained(destinations, buffer); }
  std::set<int64_t> all() const {
    std::set<int64_t> buffers(sources.begin(), sources.end());
    buffers.insert(destinations.begin(), destinations.end());
    return buffers;
  }
};

/// What is known at one point of the program.
struct Memory {
  llvm::DenseSet<std::pair<int64_t, Value>> holds;  // which buffers hold which values; without views and weights
  llvm::MapVector<Operation *, Collective> pending; // by start
  llvm::MapVector<Attribute, Value> defined;        // what a computed symbol got its value from

  void forget(llvm::function_ref<bool(int64_t, Value)> isGone) {
    for (auto next = holds.begin(); next != holds.end();) {
      auto fact = next++;
      if (isGone(fact->first, fact->second))
        holds.erase(fact);
    }
  }
  void clear(int64_t buffer) {
    forget([&](int64_t number, Value) { return number == buffer; });
  }
  void keepWhatIsIn(const Memory &other) {
    forget([&](int64_t buffer, Value value) { return !other.holds.contains({buffer, value}); });
    defined.remove_if([&](const auto &symbol) { return other.defined.lookup(symbol.first) != symbol.second; });
  }
};

/// Starts that one wait ends write into ranges of one buffer.
bool bringsTheSame(Operation *op, Operation *other) {
  auto start = dyn_cast<dist::StartInterface>(op);
  return start && cast<dist::WaitOp>(start.waitOp()).waitsFor(other);
}

bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

class PlanInterpreter {
public:
  PlanInterpreter(func::FuncOp entry, llvm::function_ref<void(Operation *, const Twine &)> violation)
      : entry(entry), violation(violation) {}
  void run();

private:
  bool readPlan();
  void interpret(Block &block, Memory &memory);
  void interpret(ds::LaunchOp launch, Memory &memory);
  void interpret(scf::IfOp branch, Memory &memory);
  void interpret(scf::WhileOp loop, Memory &memory);
  void start(dist::StartInterface start, Memory &memory);
  void wait(dist::WaitOp wait, Memory &memory);
  void define(ds::DefineOp define, Memory &memory);

  SmallVector<int64_t> placesOf(Value value, const Memory &memory) const;
  void hand(Memory &memory, ValueRange names, ValueRange values);
  void expect(Operation *op, const Memory &memory, int64_t buffer, Value value, const Twine &what);
  void checkWrite(Operation *op, const Memory &memory, int64_t buffer, Value value);
  void write(Operation *op, Memory &memory, int64_t buffer, Value value);
  SizeExpr bytesOf(Value value) const;
  bool fits(Operation *writer, int64_t buffer, Value value);
  bool isRoom(const SizeExpr &bytes, Value value) const;
  void checkAliases(ds::LaunchOp launch, ArrayRef<int64_t> list);
  bool isBuffer(Operation *op, int64_t buffer);
  void report(Operation *op, const Twine &rule) {
    if (quiet == 0)
      violation(op, rule);
  }

  func::FuncOp entry;
  llvm::function_ref<void(Operation *, const Twine &)> violation;
  SizeAnalysis analysis;
  SymbolTableCollection symbols;
  DominanceInfo dominance;
  SmallVector<ds::ReshapeOp> views;
  std::vector<BufferFacts> buffers;
  llvm::DenseMap<Attribute, SmallVector<int64_t>> constants; // buffers by recipe
  llvm::DenseMap<Operation *, Memory> heads;                 // of loops, as their last fixed points were
  int quiet = 0;                                             // not 0 while a loop's fixed point is looked for
};

bool PlanInterpreter::isBuffer(Operation *op, int64_t buffer) {
  bool isLegal = buffer >= 0 && buffer < static_cast<int64_t>(buffers.size());
  if (!isLegal)
    report(op, "buffer " + Twine(buffer) + " is in the plan");
  return isLegal;
}

SizeExpr PlanInterpreter::bytesOf(Value value) const {
  const TensorFacts &facts = analysis.facts(value);
  return product(facts.sizes) * SizeExpr(elementBytes(facts.elementType));
}

bool PlanInterpreter::isRoom(const SizeExpr &bytes, Value value) const {
  auto room = (bytes - bytesOf(value)).constant();
  return room && *room >= 0;
}

bool PlanInterpreter::fits(Operation *writer, int64_t buffer, Value value) {
  if (!buffers[buffer].bytes || isRoom(*buffers[buffer].bytes, value))
    return true;
  // What is read as a view later, or handed on by a branch, has that size in other words.
  if (llvm::any_of(value.getUses(), [&](OpOperand &use) {
        Operation *user = use.getOwner();
        if (isa<ds::ReshapeOp>(user))
          return fits(writer, buffer, user->getResult(0));
        return isa<scf::YieldOp>(user) && isa<scf::IfOp>(user->getParentOp()) &&
               fits(writer, buffer, user->getParentOp()->getResult(use.getOperandNumber()));
      }))
    return true;
  // A view that was made before states that two sizes are equal: a loop goes on with a view of what it was given.
  SmallVector<SizeExpr> equal = {*buffers[buffer].bytes};
  for (size_t known = 0; known < equal.size(); ++known)
    for (ds::ReshapeOp view : views)
      if (dominance.properlyDominates(view.getOperation(), writer))
        for (auto [from, to] : {std::pair<Value, Value>(view.getInput(), view.getResult()),
                                std::pair<Value, Value>(view.getResult(), view.getInput())})
          if (bytesOf(from) == equal[known] && !llvm::is_contained(equal, bytesOf(to)))
            equal.push_back(bytesOf(to));
  return llvm::any_of(equal, [&](const SizeExpr &bytes) { return isRoom(bytes, value); });
}

/// The buffers that hold a value. A weight lies where its recipe's constant is, at all times.
SmallVector<int64_t> PlanInterpreter::placesOf(Value value, const Memory &memory) const {
  Value root = ds::throughReshapes(value);
  if (auto weight = root.getDefiningOp<ds::WeightOp>())
    return constants.lookup(weight.getRecipeAttr());
  SmallVector<int64_t> places;
  for (const auto &[buffer, held] : memory.holds)
    if (held == root)
      places.push_back(buffer);
  return places;
}

/// From here on `names` are what `values` were until now.
void PlanInterpreter::hand(Memory &memory, ValueRange names, ValueRange values) {
  SmallVector<std::pair<int64_t, Value>> facts;
  llvm::SmallDenseSet<Value> renewed;
  for (auto [name, value] : llvm::zip_equal(names, values)) {
    if (!isTensor(name))
      continue;
    renewed.insert(name);
    for (int64_t buffer : placesOf(value, memory))
      facts.push_back({buffer, name});
  }
  memory.forget([&](int64_t, Value value) { return renewed.contains(value); });
  memory.holds.insert(facts.begin(), facts.end());
}

void PlanInterpreter::expect(Operation *op, const Memory &memory, int64_t buffer, Value value, const Twine &what) {
  if (!isBuffer(op, buffer))
    return;
  if (!llvm::is_contained(placesOf(value, memory), buffer))
    report(op, "buffer " + Twine(buffer) + " holds " + what);
  for (const auto &[start, collective] : memory.pending)
    if (collective.writes(buffer))
      report(op, "nothing reads buffer " + Twine(buffer) + " before the collective's wait");
}

void PlanInterpreter::checkWrite(Operation *op, const Memory &memory, int64_t buffer, Value value) {
  StringRef role = buffers[buffer].role;
  if (role == "input" || role == "constant")
    report(op, "nothing writes " + Twine(role) + " buffer " + Twine(buffer));
  for (const auto &[start, collective] : memory.pending)
    if ((collective.reads(buffer) || collective.writes(buffer)) && !bringsTheSame(op, start))
      report(op, "buffer " + Twine(buffer) + " is the collective's from its start to its wait");
  if (!fits(op, buffer, value))
    report(op, "a value fits into buffer " + Twine(buffer));
}

void PlanInterpreter::write(Operation *op, Memory &memory, int64_t buffer, Value value) {
  if (!isBuffer(op, buffer))
    return;
  checkWrite(op, memory, buffer, value);
  memory.clear(buffer);
  memory.holds.insert({buffer, value});
}

void PlanInterpreter::checkAliases(ds::LaunchOp launch, ArrayRef<int64_t> list) {
  auto kernel = symbols.lookupNearestSymbolFrom<ds::KernelOp>(launch, launch.getKernelAttr());
  ArrayRef<int64_t> in = list.take_front(launch.getInputs().size()), out = list.drop_front(in.size());
  SmallVector<int64_t> updated = updatedArguments(kernel), none(out.size(), -1);
  auto stated = launch->getAttrOfType<DenseI64ArrayAttr>("in_place");
  if ((stated ? stated.asArrayRef() : ArrayRef(none)) != ArrayRef(updated))
    report(launch, "in_place names what the kernel updates");
  for (auto [number, buffer] : llvm::enumerate(out)) {
    if (updated[number] >= 0 && in[updated[number]] != buffer)
      report(launch, "an update has the buffer of what it updates");
    if (llvm::is_contained(out.drop_front(number + 1), buffer))
      report(launch, "results have buffers of their own");
    for (auto [argument, read] : llvm::enumerate(in)) {
      if (read != buffer)
        continue;
      bool isTarget = updated[number] == int64_t(argument) && kernel.getBody().getArgument(argument).hasOneUse();
      // Elements of other widths lie elsewhere, though their index is the same.
      bool isSameWidth =
          elementBytes(launch.getInputs()[argument].getType()) == elementBytes(launch.getResult(number).getType());
      if (!isTarget && !(isSameWidth && readsOnlyWhatItWrites(kernel, argument)))
        report(launch, "a kernel does not write over what it reads elsewhere");
    }
  }
}

void PlanInterpreter::interpret(ds::LaunchOp launch, Memory &memory) {
  auto list = launch->getAttrOfType<DenseI64ArrayAttr>("buffers");
  auto index = launch->getAttrOfType<IntegerAttr>("index");
  size_t inputs = launch.getInputs().size();
  if (!list || !index || list.size() != static_cast<int64_t>(inputs + launch.getResults().size()))
    return report(launch, "every value between kernels has a buffer");
  auto isDead = [&](int64_t number) { // its bytes may be another's
    const BufferFacts &buffer = buffers[number];
    return buffer.role == "workspace" && (index.getInt() < buffer.first || buffer.last < index.getInt());
  };
  memory.forget([&](int64_t buffer, Value) { return isDead(buffer); });
  for (const auto &[start, collective] : memory.pending)
    for (int64_t buffer : collective.all())
      if (isDead(buffer))
        report(launch, "buffer " + Twine(buffer) + " lives until the collective's wait");
  for (auto [number, input] : llvm::enumerate(launch.getInputs()))
    expect(launch, memory, list[number], input, "operand " + Twine(number));
  if (llvm::any_of(list.asArrayRef(), [&](int64_t buffer) { return !isBuffer(launch, buffer); }))
    return;
  checkAliases(launch, list);
  for (auto [number, result] : llvm::enumerate(launch.getResults())) {
    write(launch, memory, list[inputs + number], result);
    if (isDead(list[inputs + number]))
      report(launch, "buffer " + Twine(list[inputs + number]) + " lives while it is written");
  }
}

void PlanInterpreter::start(dist::StartInterface start, Memory &memory) {
  auto list = start->getAttrOfType<DenseI64ArrayAttr>("buffers");
  ValueRange results = start.waitOp()->getResults(), sources = start.sourceValues();
  if (!list || list.size() != static_cast<int64_t>(sources.size() + results.size()))
    return report(start, "every collective has a buffer for each source and result");
  Collective collective{SmallVector<int64_t>(list.asArrayRef().take_front(sources.size())),
                        SmallVector<int64_t>(list.asArrayRef().drop_front(sources.size()))};
  for (auto [buffer, source] : llvm::zip_equal(collective.sources, sources))
    expect(start, memory, buffer, source, "the source");
  if (Value condition = start.conditionValue()) {
    auto buffer = start->getAttrOfType<IntegerAttr>("condition_buffer");
    expect(start, memory, buffer ? buffer.getInt() : -1, condition, "the condition");
  }
  if (llvm::any_of(list.asArrayRef(), [&](int64_t buffer) { return !isBuffer(start, buffer); }))
    return;
  for (auto [number, result] : llvm::enumerate(results)) {
    int64_t buffer = collective.destinations[number];
    bool isOpen = llvm::any_of(memory.pending, [&](const auto &open) { return bringsTheSame(start, open.first); });
    if (OpOperand *target = updateTarget(result); target && !isOpen)
      expect(start, memory, buffer, target->get(), "what the collective writes into");
    if (llvm::count(collective.destinations, buffer) != 1)
      report(start, "results have buffers of their own");
    bool isSource = number < collective.sources.size() && collective.sources[number] == buffer;
    if (!(isSource && (start.mayReplaceSources() || start.isInPlace())) && collective.reads(buffer))
      report(start, "a collective does not write over what it reads elsewhere");
    checkWrite(start, memory, buffer, result);
  }
  for (int64_t buffer : collective.destinations)
    if (!collective.reads(buffer))
      memory.clear(buffer); // nobody knows before the wait
  memory.pending.insert({start, std::move(collective)});
}

void PlanInterpreter::wait(dist::WaitOp wait, Memory &memory) {
  SmallVector<int64_t> destinations;
  for (dist::StartInterface start : wait.getStarts()) {
    if (!memory.pending.contains(start))
      return report(wait, "every wait has a start before it");
    Collective collective = memory.pending.lookup(start);
    memory.pending.erase(start);
    for (auto [buffer, source] : llvm::zip_equal(collective.sources, start.sourceValues()))
      expect(wait, memory, buffer, source, "the source until the wait");
    if (!destinations.empty() && destinations != collective.destinations)
      report(wait, "what several starts bring lies in one buffer");
    destinations = collective.destinations;
  }
  for (auto [buffer, result] : llvm::zip_equal(destinations, wait.getResults()))
    write(wait, memory, buffer, result);
}

void PlanInterpreter::define(ds::DefineOp define, Memory &memory) {
  Value &value = memory.defined[define.getSymbolAttr()];
  if (value == define.getValue())
    return; // the same once more
  value = define.getValue();
  memory.forget([&](int64_t number, Value) { // allocated anew
    return buffers[number].bytes && buffers[number].bytes->dependsOn(define.getSymbol());
  });
}

/// What results and values from inside mean behind a branch or a loop.
void forgetInner(Operation *op, Memory &memory) {
  memory.forget([&](int64_t, Value value) { return op->isAncestor(value.getParentRegion()->getParentOp()); });
}

void PlanInterpreter::interpret(scf::IfOp branch, Memory &memory) {
  std::vector<Memory> ends;
  for (Region &region : branch->getRegions()) {
    ends.push_back(memory);
    if (region.empty())
      continue;
    interpret(region.front(), ends.back());
    hand(ends.back(), branch.getResults(), region.front().getTerminator()->getOperands());
  }
  memory = ends[0];
  memory.keepWhatIsIn(ends[1]);
  forgetInner(branch, memory);
}

void PlanInterpreter::interpret(scf::WhileOp loop, Memory &memory) {
  Memory head = memory, exit;
  hand(head, loop.getBeforeArguments(), loop.getInits());
  head.defined.clear(); // an iteration defines anew
  // While the fixed point of a loop around this one is looked for, what that holds only shrinks, and with it what is
  // held here: what the last fixed point lacked is in no later one. Starting there, a nest takes polynomial time.
  if (auto last = heads.find(loop); last != heads.end())
    head.keepWhatIsIn(last->second);
  auto iterate = [&] {
    Memory now = head;
    interpret(*loop.getBeforeBody(), now);
    exit = now;
    hand(now, loop.getAfterArguments(), loop.getConditionOp().getArgs());
    interpret(*loop.getAfterBody(), now);
    hand(now, loop.getBeforeArguments(), loop.getYieldedValues());
    return now;
  };
  ++quiet;
  // What an iteration computed is not there for the next one, but for what it hands on.
  for (Memory next = head;; head = next) {
    next.keepWhatIsIn(iterate());
    if (next.holds == head.holds)
      break;
  }
  --quiet;
  if (quiet == 0)
    iterate(); // once more, to report
  heads[loop] = head;
  hand(exit, loop.getResults(), loop.getConditionOp().getArgs());
  memory = exit;
  memory.defined.clear();
  forgetInner(loop, memory);
}

void PlanInterpreter::interpret(Block &block, Memory &memory) {
  const auto pending = memory.pending;
  for (Operation &op : block) {
    if (auto launch = dyn_cast<ds::LaunchOp>(op))
      interpret(launch, memory);
    else if (auto collective = dyn_cast<dist::StartInterface>(op))
      start(collective, memory);
    else if (auto end = dyn_cast<dist::WaitOp>(op))
      wait(end, memory);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      interpret(branch, memory);
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      interpret(loop, memory);
    else if (!isa<ds::ReshapeOp>(op) && !op.hasTrait<OpTrait::IsTerminator>()) {
      auto buffer = op.getAttrOfType<IntegerAttr>("buffer");
      int64_t number = buffer ? buffer.getInt() : -1;
      for (Value operand : op.getOperands())
        if (isTensor(operand)) // a condition or a size that the entry itself reads
          expect(&op, memory, number, operand, "what the entry reads");
      if (isa<ds::EmptyOp>(op))
        write(&op, memory, number, op.getResult(0)); // whatever lies there
    }
    if (auto size = dyn_cast<ds::DefineOp>(op))
      define(size, memory);
  }
  if (memory.pending.size() != pending.size() ||
      llvm::any_of(pending, [&](const auto &open) { return !memory.pending.contains(open.first); }))
    report(block.getTerminator(), "a collective ends in the block where it started");
}

/// Reads `ds.buffers`; false where it is none.
bool PlanInterpreter::readPlan() {
  auto plan = entry->getAttrOfType<ArrayAttr>("ds.buffers");
  if (!plan) {
    report(entry, "every entry has a buffer plan");
    return false;
  }
  static constexpr StringRef roles[] = {"input", "output", "state", "constant", "workspace"};
  for (Attribute attribute : plan) {
    auto fields = dyn_cast<DictionaryAttr>(attribute);
    auto number = [&](StringRef name) {
      auto value = fields.getAs<IntegerAttr>(name);
      return value ? value.getInt() : -1;
    };
    BufferFacts facts;
    if (auto role = fields ? fields.getAs<StringAttr>("role") : StringAttr())
      facts.role = role;
    if (fields && facts.role == "workspace" && fields.get("bytes"))
      facts.bytes = sizeFromAttribute(fields.get("bytes"));
    if (!llvm::is_contained(roles, facts.role) || (facts.role == "workspace" && !facts.bytes)) {
      report(entry, "every buffer has a role, and a workspace its bytes");
      return false;
    }
    facts.index = number("index"), facts.first = number("first"), facts.last = number("last");
    if (Attribute recipe = fields.get("recipe"); recipe && facts.role == "constant")
      constants[recipe].push_back(static_cast<int64_t>(buffers.size()));
    buffers.push_back(std::move(facts));
  }
  return true;
}

void PlanInterpreter::run() {
  if (!readPlan())
    return;
  auto result = SizeAnalysis::run(entry);
  if (failed(result))
    return report(entry, "sizes can be inferred");
  analysis = std::move(*result);
  entry.walk([&](ds::ReshapeOp view) { views.push_back(view); });

  // The border: which buffer is which argument, and where the program's results must lie in the end.
  std::map<std::pair<StringRef, int64_t>, int64_t> border;
  for (auto [number, buffer] : llvm::enumerate(buffers))
    if (buffer.role != "workspace" && buffer.role != "constant" &&
        !border.try_emplace({buffer.role, buffer.index}, number).second)
      return report(entry, "two buffers are " + Twine(buffer.role) + " " + Twine(buffer.index));
  auto find = [&](StringRef role, int64_t index) {
    auto found = border.find({role, index});
    if (found == border.end())
      report(entry, "there is a buffer for " + Twine(role) + " " + Twine(index));
    return found == border.end() ? -1 : found->second;
  };
  Memory memory;
  int64_t inputs = 0, states = 0, outputs = 0;
  llvm::MapVector<Attribute, std::pair<int64_t, Value>> ends; // of states
  for (BlockArgument argument : entry.getArguments()) {
    Attribute state = entry.getArgAttr(argument.getArgNumber(), ds::stateAttr);
    int64_t buffer = state ? find("state", states++) : find("input", inputs++);
    if (buffer < 0)
      return;
    memory.holds.insert({buffer, argument});
    buffers[buffer].bytes = bytesOf(argument);
    if (state)
      ends[state] = {buffer, argument};
  }
  Operation *terminator = entry.getBody().front().getTerminator();
  SmallVector<std::pair<int64_t, Value>> expected;
  for (OpOperand &operand : terminator->getOpOperands()) {
    Attribute state = entry.getResultAttr(operand.getOperandNumber(), ds::stateAttr);
    if (state) {
      ends[state].second = operand.get();
      continue;
    }
    int64_t buffer = find("output", outputs++);
    if (buffer < 0)
      return;
    buffers[buffer].bytes = bytesOf(operand.get());
    expected.push_back({buffer, operand.get()});
  }
  std::set<int64_t> indices;
  entry.walk([&](ds::LaunchOp launch) {
    if (auto index = launch->getAttrOfType<IntegerAttr>("index"); index && !indices.insert(index.getInt()).second)
      report(launch, "launches have numbers of their own, found " + Twine(index.getInt()) + " twice");
  });
  interpret(entry.getBody().front(), memory);
  for (const auto &[state, end] : ends)
    expected.push_back(end);
  for (const auto &[buffer, value] : expected)
    expect(terminator, memory, buffer, value, "a result of the program at its end");
}

} // namespace

void verifyPlan(func::FuncOp entry, llvm::function_ref<void(Operation *, const Twine &)> violation) {
  PlanInterpreter(entry, violation).run();
}

} // namespace deepstride
