// Shares no code with the planner or its verifier: kernels are looked at for the few forms that the test's programs
// have.
#include "test/unit/passes/memory/PlanMachine.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/ds/DsDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>
#include <random>

using namespace mlir;

namespace deepstride::test {
namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccd;
  return x ^ (x >> 33);
}

uint64_t hashOf(StringRef text) {
  uint64_t hash = 7;
  for (char c : text)
    hash = mix(hash, static_cast<uint64_t>(c));
  return hash;
}

int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

Value rootOf(Value value) {
  while (auto view = value.getDefiningOp<ds::ReshapeOp>())
    value = view.getInput();
  return value;
}

ds::KernelOp kernelOf(ds::LaunchOp launch) {
  return launch->getParentOfType<ModuleOp>().lookupSymbol<ds::KernelOp>(launch.getKernel());
}

/// Which argument the kernel leaves in place but for a part; -1 for none.
int64_t partlyWritten(ds::KernelOp kernel) {
  Value target;
  kernel.walk([&](ds::InsertOp op) { target = op.getInto(); });
  kernel.walk([&](ds::ScatterNdOp op) { target = op.getInput(); });
  kernel.walk([&](ds::ScatterElementsOp op) { target = op.getInput(); });
  return target ? static_cast<int64_t>(cast<BlockArgument>(target).getArgNumber()) : -1;
}

/// Element i of every result needs element i of the argument only, and lies where that does if the argument has the
/// buffer of the given result.
bool isPointwise(ds::KernelOp kernel, unsigned argument, unsigned result) {
  auto read = cast<RankedTensorType>(kernel.getBody().getArgument(argument).getType());
  for (Operation &op : kernel.getBody().front()) {
    if (auto binary = dyn_cast<ds::BinaryOp>(op); binary && binary.getKind() == ds::BinaryKind::div)
      return false; // of integers in these programs
    if (!isa<ds::UnaryOp, ds::BinaryOp, ds::CastOp, ds::YieldOp, ds::ConstantOp>(op))
      return false;
  }
  ValueRange yielded = kernel.getBody().front().getTerminator()->getOperands();
  return bytesOf(yielded[result]) == bytesOf(kernel.getBody().getArgument(argument)) &&
         llvm::all_of(yielded.getTypes(),
                      [&](Type type) { return cast<RankedTensorType>(type).getShape() == read.getShape(); });
}

/// The walk that both runs share; what a tensor is, is theirs.
class Run {
public:
  Run(func::FuncOp entry, uint64_t choices) : entry(entry), random(choices) {}
  virtual ~Run() = default;

protected:
  virtual void launch(ds::LaunchOp op) = 0;
  virtual void start(dist::StartInterface op) = 0;
  virtual void wait(dist::WaitOp op) = 0;
  virtual uint64_t read(Operation *op, Value tensor) = 0;
  virtual void hand(ValueRange, ValueRange) {}

  void block(Block &body) {
    for (Operation &op : body) {
      if (auto found = dyn_cast<ds::LaunchOp>(op))
        launch(found);
      else if (auto found = dyn_cast<dist::StartInterface>(op))
        start(found);
      else if (auto found = dyn_cast<dist::WaitOp>(op))
        wait(found);
      else if (auto found = dyn_cast<tensor::ExtractOp>(op))
        observed.hashes.push_back(read(found, found.getTensor()));
      else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        Region &region = branch->getRegion(random() % 2);
        if (region.empty())
          continue;
        block(region.front());
        hand(branch.getResults(), region.front().getTerminator()->getOperands());
      } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        hand(loop.getBeforeArguments(), loop.getInits());
        for (uint64_t trips = random() % 4;; --trips) {
          block(*loop.getBeforeBody());
          if (trips == 0)
            break;
          hand(loop.getAfterArguments(), loop.getConditionOp().getArgs());
          block(*loop.getAfterBody());
          hand(loop.getBeforeArguments(), loop.getYieldedValues());
        }
        hand(loop.getResults(), loop.getConditionOp().getArgs());
      }
    }
  }

  uint64_t argument(unsigned number) { return mix(hashOf("argument"), number); }

  func::FuncOp entry;
  Observed observed;
  std::mt19937_64 random;
};

class ProgramRun : public Run {
public:
  using Run::Run;

  Observed run() {
    std::vector<std::pair<Attribute, uint64_t>> states;
    for (BlockArgument value : entry.getArguments()) {
      values[value] = argument(value.getArgNumber());
      if (Attribute state = entry.getArgAttr(value.getArgNumber(), ds::stateAttr))
        states.push_back({state, values[value]});
    }
    block(entry.getBody().front());
    for (OpOperand &operand : entry.getBody().front().getTerminator()->getOpOperands()) {
      Attribute state = entry.getResultAttr(operand.getOperandNumber(), ds::stateAttr);
      if (!state)
        observed.hashes.push_back(of(operand.get()));
      for (auto &[name, hash] : states)
        if (name == state)
          hash = of(operand.get());
    }
    for (const auto &[name, hash] : states)
      observed.hashes.push_back(hash);
    return observed;
  }

private:
  uint64_t of(Value value) {
    value = rootOf(value);
    if (auto weight = value.getDefiningOp<ds::WeightOp>())
      return hashOf(weight.getRecipe());
    return values.lookup(value);
  }
  void launch(ds::LaunchOp op) override {
    uint64_t inputs = hashOf(op.getKernel());
    for (Value input : op.getInputs())
      inputs = mix(inputs, of(input));
    for (OpResult result : op->getResults())
      values[result] = mix(inputs, result.getResultNumber());
  }
  void start(dist::StartInterface) override {}
  void wait(dist::WaitOp op) override {
    dist::StartInterface start = op.getStart();
    uint64_t hash = hashOf(start.opName());
    for (dist::StartInterface each : op.getStarts())
      for (Value source : each.sourceValues())
        hash = mix(hash, of(source));
    OperandRange into = start.intoValues(); // of the last results
    const size_t first = op->getNumResults() - into.size();
    for (OpResult result : op.getResults()) {
      size_t number = result.getResultNumber();
      uint64_t own = number < first ? hash : mix(hash, of(into[static_cast<unsigned>(number - first)]));
      values[result] = mix(own, result.getResultNumber());
    }
  }
  uint64_t read(Operation *, Value tensor) override { return of(tensor); }
  void hand(ValueRange names, ValueRange from) override {
    std::vector<uint64_t> hashes;
    for (Value value : from)
      hashes.push_back(of(value));
    for (auto [name, hash] : llvm::zip_equal(names, hashes))
      values[name] = hash;
  }

  llvm::DenseMap<Value, uint64_t> values;
};

class PlanRun : public Run {
public:
  using Run::Run;

  Observed run() {
    for (auto fields : entry->getAttrOfType<ArrayAttr>("ds.buffers").getAsRange<DictionaryAttr>()) {
      auto number = [&](StringRef name) {
        auto value = fields.getAs<IntegerAttr>(name);
        return value ? value.getInt() : -1;
      };
      buffers.push_back({fields.getAs<StringAttr>("role").getValue(), number("index"), number("bytes"), number("first"),
                         number("last"), fields.getAs<FlatSymbolRefAttr>("recipe"), scrambled()});
    }
    int64_t inputs = 0, states = 0;
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      bool isState = bool(entry.getArgAttr(i, ds::stateAttr));
      if (Buffer *buffer = at(isState ? "state" : "input", isState ? states++ : inputs++))
        buffer->content = argument(i);
    }
    for (Buffer &buffer : buffers)
      if (buffer.recipe)
        buffer.content = hashOf(buffer.recipe.getValue());
    block(entry.getBody().front());
    int64_t outputs = 0;
    for (unsigned i = 0; i < entry.getNumResults(); ++i)
      if (!entry.getResultAttr(i, ds::stateAttr))
        show(at("output", outputs++));
    for (int64_t i = 0; i < states; ++i)
      show(at("state", i));
    return observed;
  }

private:
  struct Buffer {
    StringRef role;
    int64_t index, bytes, first, last;
    FlatSymbolRefAttr recipe;
    uint64_t content;
  };

  uint64_t scrambled() { return mix(hashOf("scrambled"), ++scrambles); }
  Buffer *at(StringRef role, int64_t index) {
    for (Buffer &buffer : buffers)
      if (buffer.role == role && buffer.index == index)
        return &buffer;
    return nullptr;
  }
  void show(Buffer *buffer) { observed.hashes.push_back(buffer ? buffer->content : scrambled()); }
  uint64_t read(int64_t number) {
    for (const auto &[start, collective] : pending)
      if (llvm::is_contained(collective.destinations, number))
        return scrambled();
    return buffers[number].content;
  }
  /// Whoever writes a workspace may hit the bytes of every other one that never lives beside it.
  void damage(const Buffer &written) {
    for (Buffer &buffer : buffers)
      if (written.role == "workspace" && buffer.role == "workspace" &&
          (buffer.last < written.first || written.last < buffer.first))
        buffer.content = scrambled();
  }
  void write(int64_t number, Value value, uint64_t content) {
    Buffer &buffer = buffers[number];
    damage(buffer);
    buffer.content = content;
    observed.isLegal &= buffer.role != "input" && buffer.role != "constant" &&
                        (buffer.role != "workspace" || bytesOf(value) <= buffer.bytes);
  }
  void collectivesMeddle() {
    for (const auto &[start, collective] : pending)
      for (int64_t buffer : collective.destinations) {
        damage(buffers[buffer]);
        if (!llvm::is_contained(collective.sources, buffer))
          buffers[buffer].content = scrambled();
      }
  }

  void launch(ds::LaunchOp op) override {
    int64_t index = op->getAttrOfType<IntegerAttr>("index").getInt();
    ArrayRef<int64_t> list = op->getAttrOfType<DenseI64ArrayAttr>("buffers").asArrayRef();
    auto scrambleTheDead = [&] {
      for (Buffer &buffer : buffers)
        if (buffer.role == "workspace" && (index < buffer.first || buffer.last < index))
          buffer.content = scrambled();
    };
    scrambleTheDead();
    ds::KernelOp kernel = kernelOf(op);
    ArrayRef<int64_t> in = list.take_front(op.getInputs().size()), out = list.drop_front(in.size());
    uint64_t hash = hashOf(op.getKernel());
    int64_t partly = partlyWritten(kernel);
    for (auto [number, buffer] : llvm::enumerate(in)) {
      bool isPart = static_cast<int64_t>(number) == partly;
      bool isTarget = isPart && kernel.getBody().getArgument(number).hasOneUse(), clashes = false;
      for (auto [result, written] : llvm::enumerate(out))
        clashes |= written == buffer && !isTarget && !isPointwise(kernel, number, result);
      hash = mix(hash, clashes ? scrambled() : read(isPart ? out.front() : buffer));
    }
    for (auto [number, buffer] : llvm::enumerate(out))
      write(buffer, op->getResult(number), mix(hash, number));
    scrambleTheDead();
    collectivesMeddle();
  }
  void start(dist::StartInterface op) override {
    ArrayRef<int64_t> list = op->getAttrOfType<DenseI64ArrayAttr>("buffers").asArrayRef();
    size_t sources = op.sourceValues().size();
    Collective collective;
    collective.sources.assign(list.begin(), list.begin() + sources);
    collective.destinations.assign(list.begin() + sources, list.end());
    bool isFirst = cast<dist::WaitOp>(op.waitOp()).getStart() == op; // others bring more of the same
    if (isFirst)
      for (int64_t buffer : ArrayRef(collective.destinations).take_back(op.intoValues().size()))
        collective.into.push_back(read(buffer));
    // Each destination is one buffer's, and only what is combined in place is read where it is written.
    for (auto [number, buffer] : llvm::enumerate(collective.destinations)) {
      bool isOfTensors = isa<dist::AllReduceStartOp, dist::BroadcastStartOp>(op) || op.isInPlace();
      bool isCombined = isOfTensors && number < sources && collective.sources[number] == buffer;
      observed.isLegal &= llvm::count(collective.destinations, buffer) == 1 &&
                          (isCombined || !llvm::is_contained(collective.sources, buffer));
    }
    pending[op] = std::move(collective); // which was read before it is its own
    collectivesMeddle();
  }
  void wait(dist::WaitOp op) override {
    dist::StartInterface first = op.getStart();
    Collective collective = pending[first];
    uint64_t hash = hashOf(first.opName());
    std::vector<int64_t> sources;
    for (dist::StartInterface start : op.getStarts()) {
      llvm::append_range(sources, pending[start].sources);
      observed.isLegal &= pending[start].destinations == collective.destinations;
      pending.erase(start);
    }
    for (int64_t source : sources)
      hash = mix(hash, read(source));
    const size_t own = collective.destinations.size() - collective.into.size(); // without another's
    for (auto [number, buffer] : llvm::enumerate(collective.destinations)) {
      uint64_t mixed = number < own ? hash : mix(hash, collective.into[number - own]);
      write(buffer, op.getResult(static_cast<unsigned>(number)), mix(mixed, number));
    }
  }
  uint64_t read(Operation *op, Value) override { return read(op->getAttrOfType<IntegerAttr>("buffer").getInt()); }

  std::vector<Buffer> buffers;
  struct Collective {
    SmallVector<int64_t> sources, destinations;
    SmallVector<uint64_t> into; // what destinations held before
  };
  std::map<Operation *, Collective> pending;
  uint64_t scrambles = 0;
};

} // namespace

Observed runPlan(func::FuncOp entry, uint64_t choices) { return PlanRun(entry, choices).run(); }
Observed runProgram(func::FuncOp entry, uint64_t choices) { return ProgramRun(entry, choices).run(); }

} // namespace deepstride::test
