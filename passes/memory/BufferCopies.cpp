// Decides, for every place where buffers meet, whether the value there may be written in place. Works on functions
// before outlining, from each terminator backwards: what ends in a state, an output, a loop's carried value or a
// branch's result asks its writer to write there at once, and an update (insert, scatter) asks the same of what it
// updates. It may, when every reader of what lies there is done, or reads only the element that it writes.
#include "passes/memory/BufferCopies.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/ds/Norms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <deque>

using namespace mlir;

namespace deepstride {

/// Calls back for every op that reads the value, through views. A collective reads its source until its wait.
static void forEachReader(Value value, llvm::function_ref<void(OpOperand &, Operation *)> visit) {
  for (OpOperand &use : value.getUses()) {
    if (auto view = dyn_cast<ds::ReshapeOp>(use.getOwner())) {
      forEachReader(view.getResult(), visit);
      continue;
    }
    visit(use, use.getOwner());
    if (auto start = dyn_cast<dist::StartInterface>(use.getOwner()))
      visit(use, start.waitOp());
  }
}

/// Where an op begins to write: the destinations of a collective are its own from the start on.
static Operation *beginOf(Operation *writer) {
  auto wait = dyn_cast<dist::WaitOp>(writer);
  return wait ? wait.getStart() : writer;
}

namespace {

/// A buffer that is known before its values are: a state, an output, what a loop carries, the result of a branch.
struct Slot {
  std::string name;
  SmallVector<Value> versions; // all that lies in it at some time, without views

  bool holds(Value value) const { return llvm::is_contained(versions, value); }
};

class CopyInserter {
public:
  CopyInserter(func::FuncOp function, SizeAnalysis &analysis) : function(function), analysis(analysis) {}

  unsigned run();

private:
  void visit(Block &block, ArrayRef<Slot *> ends);
  void visitLoop(scf::WhileOp loop);
  void visitBranch(scf::IfOp branch);
  void startBranch(scf::IfOp branch, unsigned result, Slot &slot);
  void separateEmpties(Operation *terminator);
  void finish(Operation *terminator, ArrayRef<Slot *> ends);
  void sink(OpOperand &operand, const Slot &slot);
  Operation *save(Operation *terminator, unsigned number, ArrayRef<Slot *> ends, llvm::SmallDenseSet<unsigned> &seen);

  bool land(Value root, Slot &slot, Operation *end);
  bool landUpdate(Value root, Slot &slot);
  void startLoop(scf::WhileOp loop, unsigned carried, Slot &slot);
  std::optional<unsigned> carriedBy(scf::WhileOp loop, unsigned result);

  bool isFree(const Slot &slot, Operation *writer, Value written = {});
  std::optional<StringRef> obstacle(Value value, Operation *writer, Value written = {});
  bool readsAsItWrites(Operation *writer, Value written, OpOperand &use);
  bool readsSameIndex(Operation *writer, Value operand);

  Value copyInto(OpOperand &operand, Operation *before);
  Slot &newSlot(const Twine &name) { return slots.emplace_back(Slot{name.str(), {}}); }
  void put(Value value, Slot &slot) {
    slot.versions.push_back(value);
    placed[value] = &slot;
    assert(getElementTypeOrSelf(value) == getElementTypeOrSelf(slot.versions.front()) &&
           "what lies in a slot has one type, so that elements of one index lie in one place");
  }
  bool because(const Twine &reason) {
    why = reason.str();
    return false;
  }

  func::FuncOp function;
  SizeAnalysis &analysis;
  std::deque<Slot> slots;
  llvm::DenseMap<Value, Slot *> placed;
  llvm::DenseMap<std::pair<Operation *, unsigned>, Slot *> carriedSlots;
  std::string why; // the last reason against writing in place
  unsigned copies = 0;
};
} // namespace

/// Puts a copy in the place of an operand and says why. Where the operand is a view that stands behind `before`, what
/// it shows is copied, and seen through a view of the copy.
Value CopyInserter::copyInto(OpOperand &operand, Operation *before) {
  OpBuilder builder(before);
  Value view = operand.get(), value = view;
  bool isBehind = value.getDefiningOp<ds::ReshapeOp>() && before->getBlock() == value.getParentBlock() &&
                  before->isBeforeInBlock(value.getDefiningOp());
  if (isBehind)
    value = ds::throughReshapes(value);
  auto copy = ds::FusedOp::create(builder, value.getLoc(), value.getType());
  OpBuilder inner = OpBuilder::atBlockEnd(&copy.getBody().emplaceBlock());
  ds::YieldOp::create(inner, value.getLoc(), value);
  analysis.set(copy.getResult(0), analysis.facts(value));
  Value shown = copy.getResult(0);
  if (isBehind) {
    TensorFacts facts = analysis.facts(view);
    builder.setInsertionPointAfter(copy);
    shown = ds::ReshapeOp::create(builder, value.getLoc(), view.getType(), shown,
                                  toAttribute(function.getContext(), facts.sizes));
    analysis.set(shown, std::move(facts));
  }
  operand.set(shown);
  emitRemark(value.getLoc()) << "copy: " << why;
  ++copies;
  return copy.getResult(0);
}

/// Whether an elementwise kernel reads nothing of the operand but the element that it writes, which has the operand's
/// type: both lie in one slot. What is scanned is read by every thread as a whole.
bool CopyInserter::readsSameIndex(Operation *writer, Value operand) {
  const SizeVector &sizes = analysis.facts(operand).sizes;
  for (OpResult result : writer->getResults())
    if (!isInserted(result) && analysis.facts(result).sizes != sizes)
      return false;
  llvm::SmallDenseSet<Value> moved; // what is read at other places
  auto look = [&](Operation *op) {
    bool isMoved = llvm::any_of(op->getResults(), [&](Value result) { return moved.contains(result); });
    if (ds::insertedResult(op)) { // stored when the kernel's other results are
      moved.insert(op->getOperand(1));
      return;
    }
    if (isa<ds::ReshapeOp>(op) && llvm::all_of(op->getUsers(), ds::insertedResult))
      return;
    for (OpOperand &read : op->getOpOperands())
      if (isMoved || !isElementwise(op) || cast<ds::PerElement>(op).scannedOperand() == read.getOperandNumber() ||
          analysis.facts(read.get()).sizes != analysis.facts(op->getResult(0)).sizes)
        moved.insert(read.get());
  };
  if (auto fused = dyn_cast<ds::FusedOp>(writer)) {
    Block &body = fused.getBody().front();
    for (Value value : body.getTerminator()->getOperands()) // rows before a product are not stored when a tile is
      if (value.getParentBlock() == &body && ds::preparesRows(value.getDefiningOp()))
        return false;
    for (Operation &op : llvm::reverse(fused.getBody().front().without_terminator()))
      look(&op);
    return !moved.contains(operand);
  }
  if (!isElementwise(writer))
    return false;
  look(writer);
  return !moved.contains(operand);
}

/// Whether a reader that is the writer itself may still read what it writes over.
bool CopyInserter::readsAsItWrites(Operation *writer, Value written, OpOperand &use) {
  if (isa<scf::IfOp>(writer))
    return true; // each branch is looked at on its own
  if (isa<scf::WhileOp>(writer))
    return use.getOwner() == writer; // an iteration reads what it carries
  if (auto start = dyn_cast<dist::StartInterface>(writer)) {
    if (!written || use.getOwner() != writer)
      return false;
    if (OpOperand *target = updateTarget(written))
      return &use == target;
    // What is combined takes the place of its own source.
    return start.mayReplaceSources() && use.getOperandNumber() == start.sourceValues().getBeginOperandIndex() +
                                                                      cast<OpResult>(written).getResultNumber();
  }
  if (written && &use == updateTarget(written))
    return true;
  bool isPlain = !written || !updateTarget(written);
  if (llvm::any_of(writer->getResults(),
                   [&](OpResult result) { return updateTarget(result) && !(isPlain && isInserted(result)); }))
    return false;
  return readsSameIndex(writer, use.get());
}

/// What is against writing over the value; `written`: the result of the writer that takes its place, where it matters.
std::optional<StringRef> CopyInserter::obstacle(Value value, Operation *writer, Value written) {
  Block *block = writer->getBlock();
  std::optional<StringRef> found;
  forEachReader(value, [&](OpOperand &use, Operation *reader) {
    // Readers outside of the block were looked at when the op around it was to write here.
    Operation *at = block->findAncestorOpInBlock(*reader);
    auto wait = dyn_cast<dist::WaitOp>(reader);
    auto start = dyn_cast<dist::StartInterface>(writer);
    if (!at || (at != writer && at->isBeforeInBlock(writer)) || (start && wait == start.waitOp()))
      return;
    auto other = dyn_cast<dist::StartInterface>(reader); // of another range of the same space
    if (start && other && other != start && other.waitOp() == start.waitOp() &&
        llvm::is_contained(other.intoValues(), use.get()))
      return;
    if (at != writer)
      found = "is read after its update";
    else if (!found && !readsAsItWrites(writer, written, use))
      found = "is read at other places by its update";
  });
  return found;
}

bool CopyInserter::isFree(const Slot &slot, Operation *writer, Value written) {
  for (Value version : slot.versions) {
    Operation *birth = version.getDefiningOp();
    if (!birth)
      birth = version.getParentBlock()->getParentOp();
    Operation *at = writer->getBlock()->findAncestorOpInBlock(*birth);
    if (at && !at->isBeforeInBlock(writer))
      continue; // comes later
    if (auto reason = obstacle(version, writer, written))
      return because(slot.name + " " + *reason);
  }
  return true;
}

/// Gives the value the slot as its buffer, if its writer can write there and the value is `end`'s alone.
bool CopyInserter::land(Value root, Slot &slot, Operation *end) {
  Operation *writer = root.getDefiningOp();
  if (Slot *other = placed.lookup(root))
    return because(slot.name + " takes what lies in " + other->name);
  if (!writer)
    return because(slot.name + " takes a value that something else owns");
  if (isa<ds::WeightOp, ds::ConstantOp>(writer))
    return because(slot.name + " takes a constant");
  if (writer->getBlock() != end->getBlock())
    return because(slot.name + " takes a value from outside of its branch or loop");
  if (updateTarget(root))
    return landUpdate(root, slot);
  if (auto loop = dyn_cast<scf::WhileOp>(writer)) {
    auto carried = carriedBy(loop, cast<OpResult>(root).getResultNumber());
    if (!carried)
      return because(slot.name + " takes a value that its loop does not carry");
    if (!isFree(slot, loop))
      return false;
    startLoop(loop, *carried, slot);
    return true;
  }
  if (!isFree(slot, beginOf(writer), root))
    return false;
  put(root, slot);
  return true;
}

/// An update and what it updates have one buffer; a copy is updated where something else needs the old value.
bool CopyInserter::landUpdate(Value root, Slot &slot) {
  Operation *op = beginOf(root.getDefiningOp());
  if (!isFree(slot, op, root))
    return false;
  put(root, slot);
  OpOperand &target = *updateTarget(root);
  Value base = ds::throughReshapes(target.get());
  if (slot.holds(base))
    return true;
  if (auto reason = obstacle(base, op, root))
    (void)because(Twine("a value that is updated ") + *reason);
  else if (land(base, slot, op))
    return true;
  bool isThere = land(copyInto(target, op), slot, op);
  assert(isThere && "nothing reads a slot that is free for the update");
  (void)isThere;
  return true;
}

/// The carried value that a loop's result is.
std::optional<unsigned> CopyInserter::carriedBy(scf::WhileOp loop, unsigned result) {
  auto argument = dyn_cast<BlockArgument>(ds::throughReshapes(loop.getConditionOp().getArgs()[result]));
  if (!argument || argument.getOwner() != loop.getBeforeBody())
    return std::nullopt;
  return argument.getArgNumber();
}

/// Gives a carried value its buffer, in which it stays from its first value to the loop's result.
void CopyInserter::startLoop(scf::WhileOp loop, unsigned carried, Slot &slot) {
  OpOperand &init = loop.getInitsMutable()[carried];
  for (OpOperand &other : loop.getInitsMutable())
    if (&other != &init && slot.holds(ds::throughReshapes(other.get()))) {
      (void)because("a loop carries what lies in " + slot.name + " elsewhere");
      (void)copyInto(other, loop);
    }
  Value root = ds::throughReshapes(init.get());
  if (!slot.holds(root)) {
    bool isThere = false;
    if (obstacle(root, loop))
      (void)because("a loop starts from a value that is read later");
    else
      isThere = land(root, slot, loop);
    isThere = isThere || land(copyInto(init, loop), slot, loop);
    assert(isThere && "nothing but the loop reads a slot that is free for it");
    (void)isThere;
  }
  carriedSlots[{loop, carried}] = &slot;
  put(loop.getBeforeArguments()[carried], slot);
  for (auto [number, argument] : llvm::enumerate(loop.getAfterArguments()))
    if (carriedBy(loop, number) == carried) {
      put(argument, slot);
      put(loop.getResult(number), slot);
    }
}

void CopyInserter::visitLoop(scf::WhileOp loop) {
  SmallVector<Slot *> ends;
  for (unsigned i = 0; i < loop.getInits().size(); ++i) {
    if (isa<RankedTensorType>(loop.getInits()[i].getType()) && !carriedSlots.count({loop, i}))
      startLoop(loop, i, newSlot("carried value " + Twine(i) + " of a loop"));
    ends.push_back(carriedSlots.lookup({loop, i}));
  }
  visit(*loop.getBeforeBody(), {});
  visit(*loop.getAfterBody(), ends);
}

/// What a side hands on as it came lies in the result's slot from its beginning, if nothing reads it behind the branch:
/// that side does nothing.
void CopyInserter::startBranch(scf::IfOp branch, unsigned result, Slot &slot) {
  for (Region &region : branch->getRegions()) {
    if (region.empty())
      continue;
    Value root = ds::throughReshapes(region.front().getTerminator()->getOperand(result));
    bool isFromAround = !branch->isAncestor(root.getParentRegion()->getParentOp());
    if (isFromAround && !slot.holds(root) &&
        analysis.facts(root).sizes == analysis.facts(branch.getResult(result)).sizes && !obstacle(root, branch) &&
        land(root, slot, branch))
      return;
  }
}

void CopyInserter::visitBranch(scf::IfOp branch) {
  SmallVector<Slot *> ends;
  for (OpResult result : branch->getResults()) {
    bool isTensor = isa<RankedTensorType>(result.getType());
    if (isTensor && !placed.contains(result))
      put(result, newSlot("result " + Twine(result.getResultNumber()) + " of a branch"));
    ends.push_back(isTensor ? placed.lookup(result) : nullptr);
    if (isTensor)
      startBranch(branch, result.getResultNumber(), *ends.back());
  }
  for (Region &region : branch->getRegions())
    if (!region.empty())
      visit(region.front(), ends);
}

/// Moves an update behind the last reader of what it updates, where nothing needs its result before.
void CopyInserter::sink(OpOperand &operand, const Slot &slot) {
  Operation *terminator = operand.getOwner(), *writer = ds::throughReshapes(operand.get()).getDefiningOp(),
            *last = nullptr;
  Block *block = terminator->getBlock();
  if (!writer || writer->getBlock() != block || !(isa<ds::FusedOp>(writer) || isa<ds::ResultInference>(writer)))
    return;
  for (Value version : slot.versions)
    forEachReader(version, [&](OpOperand &, Operation *reader) {
      Operation *at = block->findAncestorOpInBlock(*reader);
      if (at && at != writer && at != terminator && writer->isBeforeInBlock(at) && (!last || last->isBeforeInBlock(at)))
        last = at;
    });
  if (last && llvm::all_of(writer->getUsers(), [&](Operation *user) {
        Operation *at = block->findAncestorOpInBlock(*user);
        return at != last && last->isBeforeInBlock(at);
      }))
    writer->moveAfter(last);
}

/// The first op that writes what will end in a slot as `root`, if it is in the block.
static Operation *firstWriter(Value root, Block *block) {
  Operation *writer = root.getDefiningOp();
  if (!writer || writer->getBlock() != block)
    return nullptr;
  if (OpOperand *target = updateTarget(root))
    if (Operation *earlier = firstWriter(ds::throughReshapes(target->get()), block))
      return earlier;
  return beginOf(writer);
}

/// An operand that lies in the slot of another one is copied before that slot is written. Returns the copy.
Operation *CopyInserter::save(Operation *terminator, unsigned number, ArrayRef<Slot *> ends,
                              llvm::SmallDenseSet<unsigned> &seen) {
  Value root = ds::throughReshapes(terminator->getOperand(number));
  for (unsigned other = 0; other < ends.size(); ++other) {
    if (other == number || !ends[other] || !ends[other]->holds(root))
      continue;
    if (!seen.insert(number).second)
      return nullptr;
    Value next = ds::throughReshapes(terminator->getOperand(other));
    if (next == root)
      return nullptr; // stays as it is
    Operation *before = save(terminator, other, ends, seen);
    if (!before)
      before = firstWriter(next, terminator->getBlock());
    (void)because(ends[number]->name + " takes the old value of " + ends[other]->name);
    return copyInto(terminator->getOpOperand(number), before ? before : terminator).getDefiningOp();
  }
  return nullptr;
}

/// What is empty lies where it is handed on, at no cost; equal ones became one op.
void CopyInserter::separateEmpties(Operation *terminator) {
  for (OpOperand &operand : terminator->getOpOperands())
    if (auto empty = operand.get().getDefiningOp<ds::EmptyOp>()) {
      OpBuilder builder(terminator);
      Value own = builder.clone(*empty)->getResult(0);
      analysis.set(own, analysis.facts(empty));
      operand.set(own);
    }
}

void CopyInserter::finish(Operation *terminator, ArrayRef<Slot *> ends) {
  separateEmpties(terminator);
  for (auto [operand, slot] : llvm::zip_equal(terminator->getOpOperands(), ends))
    if (slot)
      sink(operand, *slot);
  llvm::SmallDenseSet<unsigned> seen;
  for (unsigned i = 0; i < ends.size(); ++i)
    if (ends[i] && !ends[i]->holds(ds::throughReshapes(terminator->getOperand(i))) && !seen.contains(i))
      (void)save(terminator, i, ends, seen);
  // What is new first: a copy at the end of the block is the last to write its slot.
  for (auto [operand, slot] : llvm::zip_equal(terminator->getOpOperands(), ends)) {
    if (!slot)
      continue;
    Value root = ds::throughReshapes(operand.get());
    if (!slot->holds(root) && !land(root, *slot, terminator)) {
      bool isThere = land(copyInto(operand, terminator), *slot, terminator);
      assert(isThere && "old values that the terminator reads were saved");
      (void)isThere;
    }
  }
}

void CopyInserter::visit(Block &block, ArrayRef<Slot *> ends) {
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    ops.push_back(&op);
  if (!ends.empty())
    finish(block.getTerminator(), ends);
  for (Operation *op : llvm::reverse(ops)) {
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      visitLoop(loop);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      visitBranch(branch);
    else
      for (Value result : op->getResults())
        if (updateTarget(result) && !placed.contains(result))
          (void)landUpdate(result, newSlot("a value that is updated"));
  }
}

unsigned CopyInserter::run() {
  llvm::DenseMap<Attribute, Slot *> states;
  for (BlockArgument argument : function.getArguments())
    if (Attribute state = function.getArgAttr(argument.getArgNumber(), ds::stateAttr)) {
      states[state] = &newSlot("state '" + cast<StringAttr>(state).getValue() + "'");
      put(argument, *states[state]);
    }
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<Slot *> ends;
  for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
    auto name = function.getResultAttrOfType<StringAttr>(i, ds::nameAttr);
    if (Attribute state = function.getResultAttr(i, ds::stateAttr))
      ends.push_back(states[state]);
    else
      ends.push_back(&newSlot(name ? "output '" + name.getValue() + "'" : "output " + Twine(i)));
  }
  visit(function.getBody().front(), ends);
  return copies;
}

unsigned insertCopies(func::FuncOp function, SizeAnalysis &analysis) { return CopyInserter(function, analysis).run(); }

} // namespace deepstride
