// Numbers the buffers of every entry function and says for each its role, size and the launches between which it lives.
// Works on what ds-outline-kernels leaves: launches, views, branches, loops, collectives. Where in the workspace a
// buffer lies is left to the runtime, which knows the sizes.
//
//   %1 = ds.launch @k0(%0) sizes ["n"] ...
// becomes
//   %1 = ds.launch @k0(%0) sizes ["n"] {buffers = array<i64: 0, 1>, index = 0} ...
#include "passes/Report.h"
#include "passes/memory/BufferCopies.h"
#include "passes/memory/Passes.h"
#include "passes/memory/States.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace deepstride {
#define GEN_PASS_DEF_PLANBUFFERS
#include "passes/memory/Passes.h.inc"
} // namespace deepstride

using namespace mlir;
using namespace deepstride;

namespace {

struct Buffer {
  StringRef role;
  int64_t index = -1;         // of the input, output or state
  FlatSymbolRefAttr constant; // the recipe of a constant
  SizeExpr bytes;
  int64_t first = 0, last = 0;
};

class BufferPlanner {
public:
  explicit BufferPlanner(func::FuncOp function) : function(function), builder(function.getContext()) {}

  LogicalResult run();
  unsigned workspaceCount = 0;

private:
  LogicalResult visit(Block &block);
  void visitStart(dist::StartInterface start);
  void demand(Block &block);
  void demand(Value value, int64_t buffer) { destinations[ds::throughReshapes(value)] = buffer; }
  LogicalResult visitBranch(scf::IfOp branch);
  static Value fromAround(scf::IfOp branch, unsigned result);
  LogicalResult visitLoop(scf::WhileOp loop);
  int64_t bufferOf(Value value);
  int64_t newBuffer(Buffer buffer);
  int64_t newWorkspace(Value value);
  void use(Value value) {
    Buffer &buffer = buffers[bufferOf(value)];
    buffer.last = std::max(buffer.last, clock);
  }
  void assignResults(Operation *op);

  func::FuncOp function;
  Builder builder;
  SizeAnalysis analysis;
  std::vector<Buffer> buffers;
  llvm::DenseMap<Value, int64_t> ids;
  llvm::DenseMap<Value, int64_t> destinations; // values that must be written into an existing buffer
  llvm::DenseMap<Attribute, int64_t> constants;
  int64_t clock = 0;
};

int64_t BufferPlanner::newBuffer(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return static_cast<int64_t>(buffers.size()) - 1;
}

int64_t BufferPlanner::newWorkspace(Value value) {
  const TensorFacts &facts = analysis.facts(value);
  ++workspaceCount;
  return newBuffer(
      {"workspace", -1, {}, product(facts.sizes) * SizeExpr(elementBytes(facts.elementType)), clock, clock});
}

int64_t BufferPlanner::bufferOf(Value value) {
  if (auto reshape = value.getDefiningOp<ds::ReshapeOp>())
    return bufferOf(reshape.getInput());
  if (auto weight = value.getDefiningOp<ds::WeightOp>()) {
    auto [entry, isNew] = constants.try_emplace(weight.getRecipeAttr(), 0);
    if (isNew)
      entry->second = newBuffer({"constant", -1, weight.getRecipeAttr(), {}, 0, 0});
    return entry->second;
  }
  auto found = ids.find(value);
  assert(found != ids.end() && "every value gets its buffer before its uses");
  return found->second;
}

void BufferPlanner::assignResults(Operation *op) {
  for (Value result : op->getResults()) {
    if (!isa<RankedTensorType>(result.getType()) || ids.contains(result))
      continue;
    auto destination = destinations.find(result);
    ids[result] = destination == destinations.end() ? newWorkspace(result) : destination->second;
    Buffer &buffer = buffers[ids[result]];
    buffer.last = std::max(buffer.last, clock);
  }
}

/// The results of a launch or of a collective that are one of its inputs, in part rewritten, with these.
static SmallVector<std::pair<Value, Value>> updates(Operation *op) {
  SmallVector<std::pair<Value, Value>> pairs;
  for (Value result : op->getResults())
    if (OpOperand *target = isa<dist::WaitOp>(op) ? updateTarget(result) : nullptr)
      pairs.emplace_back(result, target->get());
  auto launch = dyn_cast<ds::LaunchOp>(op);
  if (auto inPlace = launch ? launch->getAttrOfType<DenseI64ArrayAttr>("in_place") : DenseI64ArrayAttr())
    for (auto [result, input] : llvm::zip_equal(launch.getResults(), inPlace.asArrayRef()))
      if (input >= 0)
        pairs.push_back({result, launch.getInputs()[input]});
  return pairs;
}

/// What a side of a branch hands on as it came: it lies where the result does. Null where every side writes its own.
Value BufferPlanner::fromAround(scf::IfOp branch, unsigned result) {
  for (Region &region : branch->getRegions())
    if (!region.empty() && isa<RankedTensorType>(branch.getResult(result).getType()))
      if (Value root = ds::throughReshapes(region.front().getTerminator()->getOperand(result));
          !branch->isAncestor(root.getParentRegion()->getParentOp()))
        return root;
  return {};
}

/// A value that must end in a buffer begins there: what an update changes, the first value of what a loop carries, and
/// what a branch hands on.
/// ds-outline-kernels has made sure that it can.
void BufferPlanner::demand(Block &block) {
  for (Operation &op : llvm::reverse(block)) {
    for (auto [result, input] : updates(&op))
      if (auto destination = destinations.find(result); destination != destinations.end())
        demand(input, destination->second);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      for (unsigned result = 0; result < branch.getNumResults(); ++result)
        if (auto destination = destinations.find(branch.getResult(result)); destination != destinations.end())
          if (Value root = fromAround(branch, result))
            demand(root, destination->second);
    auto loop = dyn_cast<scf::WhileOp>(op);
    if (!loop)
      continue;
    for (auto [handed, result] : llvm::zip_equal(loop.getConditionOp().getArgs(), loop.getResults())) {
      auto destination = destinations.find(result);
      auto carried = dyn_cast<BlockArgument>(ds::throughReshapes(handed));
      if (destination != destinations.end() && carried && carried.getOwner() == loop.getBeforeBody())
        demand(loop.getInits()[carried.getArgNumber()], destination->second);
    }
  }
}

LogicalResult BufferPlanner::visit(Block &block) {
  demand(block);
  for (Operation &op : block) {
    if (auto launch = dyn_cast<ds::LaunchOp>(op)) {
      SmallVector<int64_t> list;
      for (Value input : launch.getInputs()) {
        use(input);
        list.push_back(bufferOf(input));
      }
      for (auto [result, input] : updates(launch))
        ids[result] = bufferOf(input);
      assignResults(launch);
      for (Value result : launch.getResults())
        list.push_back(bufferOf(result));
      launch->setAttr("buffers", builder.getDenseI64ArrayAttr(list));
      launch->setAttr("index", builder.getI64IntegerAttr(clock++));
    } else if (auto empty = dyn_cast<ds::EmptyOp>(op)) {
      assignResults(empty);
      empty->setAttr("buffer", builder.getI64IntegerAttr(bufferOf(empty)));
    } else if (auto start = dyn_cast<dist::StartInterface>(op)) {
      visitStart(start);
    } else if (auto wait = dyn_cast<dist::WaitOp>(op)) {
      for (dist::StartInterface start : wait.getStarts())
        for (Value source : start.sourceValues())
          use(source);
      for (Value result : wait.getResults())
        use(result);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (failed(visitBranch(branch)))
        return failure();
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      if (failed(visitLoop(loop)))
        return failure();
    } else if (isa<ds::ReshapeOp, ds::WeightOp, scf::YieldOp, scf::ConditionOp, func::ReturnOp>(op)) {
      continue;
    } else {
      for (Value operand : op.getOperands())
        if (isa<RankedTensorType>(operand.getType())) {
          use(operand);
          if (op.getName().getStringRef() == "tensor.extract" || isa<ds::DefineOp>(op))
            op.setAttr("buffer", builder.getI64IntegerAttr(bufferOf(operand)));
        }
      for (Value result : op.getResults())
        if (isa<RankedTensorType>(result.getType()))
          return op.emitOpError("has no place in the memory phase");
    }
  }
  return success();
}

/// The destinations exist from the start on, the sources stay until the wait.
void BufferPlanner::visitStart(dist::StartInterface start) {
  Operation *wait = start.waitOp();
  for (Value operand : start->getOperands())
    use(operand);
  for (auto [result, into] : updates(wait))
    ids[result] = bufferOf(into);
  assignResults(wait);
  SmallVector<int64_t> list;
  for (Value source : start.sourceValues())
    list.push_back(bufferOf(source));
  for (Value result : wait->getResults())
    list.push_back(bufferOf(result));
  start->setAttr("buffers", builder.getDenseI64ArrayAttr(list));
  if (Value condition = start.conditionValue())
    start->setAttr("condition_buffer", builder.getI64IntegerAttr(bufferOf(condition)));
}

LogicalResult BufferPlanner::visitBranch(scf::IfOp branch) {
  for (unsigned result = 0; result < branch.getNumResults(); ++result)
    if (Value root = fromAround(branch, result); root && !destinations.contains(branch.getResult(result)))
      ids[branch.getResult(result)] = bufferOf(root);
  assignResults(branch);
  for (Region &region : branch->getRegions()) {
    if (region.empty())
      continue;
    for (auto [result, yielded] : llvm::zip(branch.getResults(), region.front().getTerminator()->getOperands()))
      if (isa<RankedTensorType>(result.getType()))
        demand(yielded, ids[result]);
    if (failed(visit(region.front())))
      return failure();
  }
  for (Value result : branch.getResults())
    if (isa<RankedTensorType>(result.getType()))
      use(result);
  return success();
}

// A carried value keeps the buffer of its first value. What the loop reads from outside lives until the loop ends: the
// next iteration reads it again.
LogicalResult BufferPlanner::visitLoop(scf::WhileOp loop) {
  int64_t start = clock;
  auto hand = [&](ValueRange from, ValueRange to) {
    for (auto [source, target] : llvm::zip_equal(from, to))
      if (isa<RankedTensorType>(source.getType())) {
        use(source);
        ids[target] = bufferOf(source);
      }
  };
  hand(loop.getInits(), loop.getBeforeArguments());
  size_t outside = buffers.size();
  if (failed(visit(*loop.getBeforeBody())))
    return failure();
  hand(loop.getConditionOp().getArgs(), loop.getAfterArguments());
  for (auto [argument, yielded] : llvm::zip_equal(loop.getBeforeArguments(), loop.getYieldedValues()))
    if (isa<RankedTensorType>(argument.getType()))
      demand(yielded, ids[argument]);
  if (failed(visit(*loop.getAfterBody())))
    return failure();
  for (size_t i = 0; i < outside; ++i)
    if (buffers[i].last >= start)
      buffers[i].last = std::max(buffers[i].last, clock);
  for (Value argument : loop.getBeforeArguments())
    if (isa<RankedTensorType>(argument.getType()))
      use(argument);
  hand(loop.getConditionOp().getArgs(), loop.getResults());
  return success();
}

LogicalResult BufferPlanner::run() {
  auto result = SizeAnalysis::run(function);
  if (failed(result))
    return failure();
  analysis = std::move(*result);
  if (failed(checkStates(function, analysis)))
    return failure();
  llvm::DenseMap<Attribute, int64_t> states;
  int64_t inputs = 0, outputs = 0;
  for (BlockArgument argument : function.getArguments()) {
    if (Attribute state = function.getArgAttr(argument.getArgNumber(), ds::stateAttr)) {
      int64_t index = static_cast<int64_t>(states.size());
      states[state] = ids[argument] = newBuffer({"state", index, {}, {}, 0, 0});
    } else {
      ids[argument] = newBuffer({"input", inputs++, {}, {}, 0, 0});
    }
  }
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    Attribute state = function.getResultAttr(operand.getOperandNumber(), ds::stateAttr);
    demand(operand.get(), state ? states[state] : newBuffer({"output", outputs++, {}, {}, 0, 0}));
  }
  if (failed(visit(function.getBody().front())))
    return failure();

  SmallVector<Attribute> plan;
  const int64_t lastLaunch = std::max<int64_t>(clock - 1, 0); // collectives behind it count to it
  for (const Buffer &buffer : buffers) {
    NamedAttrList fields;
    fields.append("role", builder.getStringAttr(buffer.role));
    if (buffer.index >= 0)
      fields.append("index", builder.getI64IntegerAttr(buffer.index));
    if (buffer.constant)
      fields.append("recipe", buffer.constant);
    if (buffer.role == "workspace") {
      fields.append("bytes", toAttribute(function.getContext(), buffer.bytes));
      fields.append("first", builder.getI64IntegerAttr(std::min(buffer.first, lastLaunch)));
      fields.append("last", builder.getI64IntegerAttr(std::min(buffer.last, lastLaunch)));
    }
    plan.push_back(fields.getDictionary(function.getContext()));
  }
  function->setAttr("ds.buffers", builder.getArrayAttr(plan));
  return success();
}

struct PlanBuffers : deepstride::impl::PlanBuffersBase<PlanBuffers>, PassReport {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(ds::entryAttr))
        continue;
      BufferPlanner planner(function);
      if (failed(planner.run()))
        return signalPassFailure();
      count("workspace buffers", planner.workspaceCount);
    }
  }
};

} // namespace
