#include "runtime/core/EntryRunner.h"

#include "runtime/core/BufferMemory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

namespace ds {
namespace {

bool isAligned(const void *data) { return reinterpret_cast<uintptr_t>(data) % 64 == 0; }

} // namespace

std::string resultText(int32_t code) {
  switch (code) {
  case DS_INDEX_OUT_OF_RANGE: return "index out of range";
  case DS_DIVISION_BY_ZERO: return "division by zero";
  case DS_SHAPE_MISMATCH: return "run-time sizes do not fit";
  case DS_INVALID_VALUE: return "run-time argument outside its legal values";
  case DS_SERVICE_FAILED: return "a service refused";
  default: return concat("unknown error code ", code);
  }
}

void CallWatch::check() const {
  if (cancellations && cancellations->load(std::memory_order_relaxed) != cancellationsBefore)
    fail(ErrorCode::Cancelled, "the call was cancelled");
}

const ds_services EntryRunner::services = {sizeof(ds_services), serveLaunch, serveDefine, serveStart, serveWait};

EntryRunner::EntryRunner(const Package &package, size_t index, ThreadPool &pool, StateStore &states,
                         AlignedBuffer &workspace, Communicator *communicator, Arrivals &arrivals)
    : package(package), entry(package.variant().entries[index]), number(index), function(package.entryFunction(index)),
      pool(pool), states(states), communicator(communicator), arrivals(arrivals), computed(entry),
      plans(entry, package.variant().constants, computed), boundStates(entry.states.size()), workspace(workspace),
      inputCopies(entry.inputs.size()) {}

void EntryRunner::run(const std::vector<TensorView> &inputs, const Pins &pins, std::vector<Tensor> &results,
                      const CallWatch &newWatch) {
  symbols = bindSymbols(entry, inputs, pins);
  if (communicator)
    for (size_t i = 0; i < symbols.size(); ++i)
      if (entry.symbols[i].kind == SymbolKind::Mesh)
        symbols[i] = isMeshIndex(entry.symbols[i]) ? communicator->rank() : communicator->world();
  plan = &plans.get(symbols);
  states.requireDevice("workspace of entry '" + entry.name + "'", plan->workspaceBytes);
  outputs = &results;
  watch = newWatch;
  failure.reset();
  bindBuffers(inputs);
  bindFiles();
  try {
    execute();
    finish();
  } catch (const std::exception &error) {
    // What is on its way reads and writes these buffers until this rank has left.
    bool isOnItsWay = std::any_of(openCollectives.begin(), openCollectives.end(),
                                  [](const auto &open) { return open.second.ticket.has_value(); });
    if (communicator && isOnItsWay)
      communicator->leave(error.what());
    dynamicBuffers.clear();
    openCollectives.clear();
    throw;
  }
  dynamicBuffers.clear();
}

// A caller's buffer is taken as it is; others become large enough.
void EntryRunner::shapeOutput(size_t index, Shape shape) {
  Tensor &output = (*outputs)[index];
  const TensorInfo &info = entry.outputs[index];
  annotated("output '" + info.name + "'", [&] {
    if (output.isBorrowed() && output.getShape() != shape)
      fail(ErrorCode::ShapeMismatch, "wrong shape of the buffer, found ", listText(output.getShape()), ", expected ",
           listText(shape));
    output.reset(info.type, std::move(shape));
  });
}

void EntryRunner::bindBuffers(const std::vector<TensorView> &inputs) {
  sizes = plan->sizes;
  bufferBytes = plan->bufferBytes;
  sizeKnown.resize(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    sizeKnown[i] = !computed.size[i];
  symbolKnown.resize(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i)
    symbolKnown[i] = entry.symbols[i].kind != SymbolKind::Computed;
  defined.clear();

  bool isApart = areBoundsWatched();
  if (!isApart)
    workspace.reserve(plan->workspaceBytes);
  outputs->resize(entry.outputs.size());
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    if (!computed.output[i])
      shapeOutput(i, plan->outputs[i]);

  buffers.assign(entry.buffers.size(), nullptr);
  for (size_t i = 0; i < entry.buffers.size(); ++i) {
    const BufferInfo &buffer = entry.buffers[i];
    switch (buffer.role) {
    case BufferRole::Constant:
      // Code only reads constants; the mapping is read-only, so a stray write is caught at once.
      buffers[i] = const_cast<uint8_t *>(package.constant(buffer.index));
      if (!buffers[i]) // no file to map: all constants of the package are empty
        buffers[i] = AlignedBuffer().data();
      if (isApart) {
        dynamicBuffers[i] = AlignedBuffer(bufferBytes[i]);
        if (bufferBytes[i] != 0)
          std::memcpy(dynamicBuffers[i].data(), buffers[i], bufferBytes[i]);
        buffers[i] = dynamicBuffers[i].data();
      }
      break;
    case BufferRole::Input: {
      const TensorView &input = inputs[buffer.index];
      buffers[i] = const_cast<void *>(input.data);
      if (!input.data || !isAligned(input.data)) {
        inputCopies[buffer.index].reserve(bufferBytes[i]);
        buffers[i] = inputCopies[buffer.index].data();
        if (bufferBytes[i] != 0)
          std::memcpy(buffers[i], input.data, bufferBytes[i]);
      }
      break;
    }
    case BufferRole::Output:
      if (!computed.output[buffer.index])
        buffers[i] = (*outputs)[buffer.index].data();
      break;
    case BufferRole::State: {
      State &state = states.acquire(entry.states[buffer.index], plan->states[buffer.index]);
      boundStates[buffer.index] = &state;
      buffers[i] = state.tensor.data();
      break;
    }
    case BufferRole::Workspace:
      if (!computed.size[buffer.bytes])
        buffers[i] =
            isApart ? (dynamicBuffers[i] = AlignedBuffer(bufferBytes[i])).data() : workspace.data() + plan->offsets[i];
      break;
    }
  }
}

void EntryRunner::bindFiles() {
  inFiles.clear();
  if (!states.hasFiles())
    return;
  inFiles.resize(entry.buffers.size());
  for (size_t i = 0; i < entry.buffers.size(); ++i)
    if (entry.buffers[i].role == BufferRole::State)
      inFiles[i] = states.inFile(buffers[i]);
  states.beginCall(number);
}

void EntryRunner::addInFile(uint32_t buffer, FileTurns &turns) const {
  if (inFiles.empty() || !inFiles[buffer].files)
    return;
  std::vector<StateFiles::Region *> &turn = turns[inFiles[buffer].files];
  for (StateFiles::Region *region : inFiles[buffer].pieces.regions)
    if (std::find(turn.begin(), turn.end(), region) == turn.end())
      turn.push_back(region);
}

// Elements of a state that are in one piece of a file.
WorkRange EntryRunner::pieceAt(uint32_t buffer, int64_t element) const {
  const StateFiles::Pieces &pieces = inFiles[buffer].pieces;
  auto elements = static_cast<int64_t>(pieces.bytes / typeSize(entry.states[entry.buffers[buffer].index].type));
  int64_t last = static_cast<int64_t>(pieces.regions.size()) - 1, piece = std::min(element / elements, last);
  return {piece * elements, piece == last ? std::numeric_limits<int64_t>::max() : (piece + 1) * elements};
}

void EntryRunner::addPiece(uint32_t buffer, int64_t element, FileTurns &turns) const {
  const StateFiles::Pieces &pieces = inFiles[buffer].pieces;
  WorkRange first = pieceAt(buffer, 0), range = pieceAt(buffer, element);
  StateFiles::Region *region = pieces.regions[static_cast<size_t>(range.begin / first.end)];
  std::vector<StateFiles::Region *> &turn = turns[inFiles[buffer].files];
  if (std::find(turn.begin(), turn.end(), region) == turn.end())
    turn.push_back(region);
}

void EntryRunner::use(const FileTurns &turns) {
  for (const auto &[files, turn] : turns)
    files->use(turn);
}

void EntryRunner::done(const FileTurns &turns, bool areWritten) {
  for (const auto &[files, turn] : turns)
    files->done(turn, areWritten);
}

void EntryRunner::execute() {
  ds_call call = {};
  call.struct_size = sizeof(call);
  call.rank = communicator ? communicator->rank() : 0;
  call.world = communicator ? communicator->world() : 1;
  call.buffers = buffers.data();
  call.sizes = sizes.data();
  call.services = &services;
  call.context = this;
  int32_t result = function(&call);
  if (failure)
    throw Error(*failure);
  if (result != DS_OK)
    fail(ErrorCode::Execution, "the entry itself: ", resultText(result));
}

void EntryRunner::finish() {
  if (!openCollectives.empty())
    fail(ErrorCode::BadPackage, "ended before it waited for the collective '",
         entry.collectives[openCollectives.begin()->first->site].site, "'");
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    for (const SizeExpr &dim : entry.outputs[i].shape)
      if (!isKnown(dim.symbols()))
        fail(ErrorCode::BadPackage, "ended before it defined the size of output '", entry.outputs[i].name, "'");
}

bool EntryRunner::isKnown(const std::vector<uint32_t> &used) const {
  for (uint32_t symbol : used)
    if (!symbolKnown[symbol])
      return false;
  return true;
}

int64_t EntryRunner::sizeAt(uint32_t index, const char *what) const {
  if (index >= sizes.size())
    fail(ErrorCode::BadPackage, what, ": no size ", index, ", the manifest has ", sizes.size());
  if (!sizeKnown[index])
    fail(ErrorCode::BadPackage, what, ": size '", entry.sizes[index].text(), "' is used before its symbol is defined");
  return sizes[index];
}

void EntryRunner::forgetSince(uint32_t symbol) {
  auto found = std::find(defined.begin(), defined.end(), symbol);
  for (auto later = found; later != defined.end(); ++later)
    symbolKnown[*later] = 0;
  if (found != defined.end())
    for (size_t i = 0; i < sizes.size(); ++i)
      sizeKnown[i] = sizeKnown[i] && isKnown(entry.sizes[i].symbols());
  defined.erase(found, defined.end());
}

void EntryRunner::define(uint32_t symbol, int64_t value) {
  if (symbol >= symbols.size() || entry.symbols[symbol].kind != SymbolKind::Computed)
    fail(ErrorCode::BadPackage, "defines symbol ", symbol, ", which is not a computed one");
  if (value < 0) // folding relies on it
    fail(ErrorCode::ShapeMismatch, "computed size '", entry.symbols[symbol].name, "' is negative, found ", value);
  if (symbolKnown[symbol] && symbols[symbol] == value)
    return;
  forgetSince(symbol);
  defined.push_back(symbol);
  symbols[symbol] = value;
  symbolKnown[symbol] = 1;
  auto concerns = [&](const SizeExpr &expr) {
    for (uint32_t used : expr.symbols())
      if (used == symbol)
        return isKnown(expr.symbols());
    return false;
  };
  std::vector<uint8_t> changed(sizes.size(), 0);
  for (const ConstraintInfo *constraint : computed.constraints)
    if (concerns(constraint->lhs) ? isKnown(constraint->rhs.symbols())
                                  : concerns(constraint->rhs) && isKnown(constraint->lhs.symbols()))
      checkConstraint(*constraint, symbols);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (computed.size[i] && concerns(entry.sizes[i])) {
      sizes[i] = entry.sizes[i].evaluate(symbols);
      sizeKnown[i] = changed[i] = 1;
    }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferInfo &buffer = entry.buffers[i];
    if (buffer.role == BufferRole::Workspace && changed[buffer.bytes]) {
      uint64_t bytes = workspaceSize(sizes[buffer.bytes]);
      if (!buffers[i] || bytes != bufferBytes[i])
        dynamicBuffers[i] = AlignedBuffer(bytes);
      bufferBytes[i] = bytes;
      buffers[i] = dynamicBuffers[i].data();
    }
    if (buffer.role != BufferRole::Output || !computed.output[buffer.index])
      continue;
    const TensorInfo &info = entry.outputs[buffer.index];
    bool isConcerned = false, isComplete = true;
    for (const SizeExpr &dim : info.shape) {
      isConcerned |= concerns(dim);
      isComplete &= isKnown(dim.symbols());
    }
    if (!isConcerned || !isComplete)
      continue;
    Tensor &output = (*outputs)[buffer.index];
    shapeOutput(buffer.index, evaluateShape(info.shape, symbols));
    bufferBytes[i] = output.bytes();
    buffers[i] = output.data();
  }
}

template <typename Action> int32_t EntryRunner::serve(Action action) noexcept {
  if (failure) // the entry went on after an error: nothing more happens
    return DS_SERVICE_FAILED;
  try {
    watch.check();
    action();
    return DS_OK;
  } catch (const Error &error) {
    failure = error;
  } catch (const std::bad_alloc &) {
    failure = Error(ErrorCode::OutOfMemory, "out of memory");
  } catch (const std::exception &error) {
    failure = Error(ErrorCode::Internal, error.what());
  }
  return DS_SERVICE_FAILED;
}

int32_t EntryRunner::serveLaunch(void *context, const ds_launch *request) {
  auto &runner = *static_cast<EntryRunner *>(context);
  return runner.serve([&] { runner.launch(*request); });
}

int32_t EntryRunner::serveDefine(void *context, uint32_t symbol, int64_t value) {
  auto &runner = *static_cast<EntryRunner *>(context);
  return runner.serve([&] { runner.define(symbol, value); });
}

int32_t EntryRunner::serveStart(void *context, const ds_collective *request) {
  auto &runner = *static_cast<EntryRunner *>(context);
  return runner.serve([&] { runner.startCollective(*request); });
}

int32_t EntryRunner::serveWait(void *context, const ds_collective *request) {
  auto &runner = *static_cast<EntryRunner *>(context);
  return runner.serve([&] { runner.waitCollective(*request); });
}

} // namespace ds
