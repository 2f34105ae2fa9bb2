// States that lie in units, and what this rank holds of the tensors in them.
#include "runtime/core/StateStore.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace ds {

// What launches do not take element by element, or messages carry.
static std::set<uint32_t> wholeBuffers(const EntryInfo &entry) {
  std::set<uint32_t> whole;
  for (const LaunchInfo &launch : entry.launches) {
    std::set<uint32_t> touched(launch.operands.begin(), launch.operands.end());
    for (const LaunchResult &result : launch.results)
      touched.insert(result.buffer);
    for (uint32_t buffer : launch.elementwise)
      touched.erase(buffer);
    whole.insert(touched.begin(), touched.end());
  }
  for (const CollectiveInfo &collective : entry.collectives)
    for (const CollectivePartInfo &part : collective.parts) {
      for (const CollectivePiece &piece : part.whole)
        whole.insert({piece.buffer, piece.source.value_or(piece.buffer)});
      for (const auto &buffer : {part.own, part.workerError, part.serverError})
        if (buffer)
          whole.insert(*buffer);
    }
  return whole;
}

void StateStore::checkPart(const StateInfo &info, const Shape &shape) const {
  const UnitInfo &unit = package.variant().units[info.unit];
  bool isWorker = info.part == StatePart::Worker;
  Shape expected = {unit.shard(mesh.ranks) * (isWorker ? mesh.ranks : 1)};
  if (info.part != StatePart::Tensor && shape != expected)
    fail(ErrorCode::BadPackage, "state '", info.name, "': found ", listText(shape), ", expected ", listText(expected),
         isWorker ? ", all" : ", the part", " of unit '", unit.name, "' of one of ", mesh.ranks, " ranks");
}

// Elements [first, first + count) of the unit's space: tensors begin with their constants where they are parameters,
// everything else with zeros.
void StateStore::fill(const StateInfo &info, int64_t first, int64_t count, uint8_t *data) {
  size_t width = typeSize(info.type);
  std::memset(data, 0, static_cast<size_t>(count) * width);
  if (!logicalSuffix(info).empty())
    return;
  for (const UnitTensor &tensor : package.variant().units[info.unit].tensors) {
    int64_t begin = std::max(first, tensor.offset);
    int64_t end = std::min(first + count, tensor.offset + elementCount(tensor.shape));
    if (!tensor.initial || begin >= end)
      continue;
    const ConstantInfo &constant = package.variant().constants[*tensor.initial];
    const size_t bytes = typeSize(constant.type);
    package.requireVerified(*tensor.initial, static_cast<uint64_t>(begin - tensor.offset) * bytes,
                            static_cast<uint64_t>(end - tensor.offset) * bytes);
    const uint8_t *values = package.constant(*tensor.initial) + static_cast<size_t>(begin - tensor.offset) * bytes;
    uint8_t *place = data + static_cast<size_t>(begin - first) * width;
    if (isRounded(info) && constant.type == ElementType::F32)
      roundFloats(reinterpret_cast<const float *>(values), end - begin, info.type, place);
    else if (constant.type == info.type)
      std::memcpy(place, values, static_cast<size_t>(end - begin) * width);
    else
      fail(ErrorCode::BadPackage, "state '", tensor.name, "': initial constant '", constant.name, "' is of type ",
           typeName(constant.type), ", expected ", typeName(info.type));
    package.releaseConstant(*tensor.initial); // a model in training would be in memory twice
  }
}

uint8_t *StateStore::spaceOf(const StateInfo &info) {
  AlignedBuffer &space = spaces[{info.unit, info.suffix}];
  if (space.capacity() == 0) {
    int64_t count = mesh.ranks * package.variant().units[info.unit].shard(mesh.ranks);
    if (places.of(classOf(info)) == nullptr || places.of(classOf(info))->place == StatePlace::Device)
      requireDevice("state '" + info.name + "' with its unit", byteCount(info.type, {count}));
    space.reserve(byteCount(info.type, {count}));
    fill(info, 0, count, space.data());
  }
  return space.data();
}

Tensor StateStore::firstValue(const StateInfo &info, const Shape &shape) {
  if (info.part != StatePart::Own)
    checkPart(info, shape);
  const int64_t shard = info.part == StatePart::Own ? 0 : package.variant().units[info.unit].shard(mesh.ranks);
  switch (info.part) {
  case StatePart::Tensor:
    for (const UnitTensor &tensor : package.variant().units[info.unit].tensors)
      if (tensor.name + info.suffix == info.name)
        return Tensor::over(info.type, shape, spaceOf(info) + static_cast<size_t>(tensor.offset) * typeSize(info.type));
    fail(ErrorCode::BadPackage, "state '", info.name, "' is no tensor of its unit");
  case StatePart::View:
    return Tensor::over(info.type, shape, spaceOf(info) + static_cast<size_t>(mesh.rank * shard) * typeSize(info.type));
  case StatePart::Shard: {
    Tensor tensor = allocate(info, shape);
    bool isZeros = !logicalSuffix(info).empty() && inFile(tensor.data()).files;
    if (!isZeros) {
      fill(info, mesh.rank * shard, shard, tensor.data());
      touched(tensor.data());
    }
    return tensor;
  }
  case StatePart::Worker: {
    Tensor tensor = allocate(info, shape);
    fill(info, 0, mesh.ranks * shard, tensor.data());
    touched(tensor.data());
    return tensor;
  }
  case StatePart::Own: break;
  }
  Tensor tensor = allocate(info, shape);
  if (info.initial || !inFile(tensor.data()).files)
    std::memset(tensor.data(), 0, tensor.bytes());
  if (info.initial) {
    const ConstantInfo &constant = package.variant().constants[*info.initial];
    if (constant.shape != shape)
      fail(ErrorCode::ShapeMismatch, "state '", info.name, "': found ", listText(shape), ", expected ",
           listText(constant.shape), ", the shape of its first value '", constant.name, "'");
    if (constant.bytes != tensor.bytes())
      fail(ErrorCode::BadPackage, "state '", info.name, "': initial constant '", constant.name, "' has ",
           constant.bytes, " bytes, expected ", tensor.bytes());
    if (tensor.bytes() != 0) {
      std::memcpy(tensor.data(), package.constant(*info.initial), tensor.bytes());
      package.releaseConstant(*info.initial); // a model in training would be in memory twice
    }
    touched(tensor.data());
  }
  return tensor;
}

void StateStore::addPieces(const StateInfo &info, State &state, std::vector<StatePiece> &result) const {
  if (info.part == StatePart::View || isRounded(info)) // the tensors themselves are states, or masters are
    return;
  if (info.part == StatePart::Worker) {
    for (const UnitTensor &tensor : package.variant().units[info.unit].tensors) {
      Shape shape = tensor.shape;
      shape.insert(shape.begin(), mesh.ranks);
      int64_t count = elementCount(tensor.shape);
      result.push_back({tensor.name + info.suffix, info.type, shape, mesh.rank * count, (mesh.rank + 1) * count,
                        state.tensor.data() + static_cast<size_t>(tensor.offset) * typeSize(info.type)});
    }
    return;
  }
  if (info.part != StatePart::Shard) {
    const Tensor &tensor = state.tensor;
    result.push_back({info.name, info.type, tensor.getShape(), 0, tensor.count(), state.tensor.data()});
    return;
  }
  const UnitInfo &unit = package.variant().units[info.unit];
  int64_t shard = unit.shard(mesh.ranks), first = mesh.rank * shard;
  for (const UnitTensor &tensor : unit.tensors) {
    int64_t begin = std::max(first, tensor.offset);
    int64_t end = std::min(first + shard, tensor.offset + elementCount(tensor.shape));
    bool isEmpty = elementCount(tensor.shape) == 0 && tensor.offset >= first && tensor.offset < first + shard;
    if (begin < end || isEmpty)
      result.push_back({tensor.name + logicalSuffix(info), info.type, tensor.shape, begin - tensor.offset,
                        std::max(begin, end) - tensor.offset,
                        state.tensor.data() + static_cast<size_t>(begin - first) * typeSize(info.type)});
  }
}

StateClass classOf(const StateInfo &info) {
  size_t slash = info.name.rfind('/');
  bool isInUnit = info.part != StatePart::Own;
  std::string suffix = isInUnit ? info.suffix : slash == std::string::npos ? "" : info.name.substr(slash);
  if (info.isStatistic || suffix == "/moved")
    return StateClass::Other;
  if (isInUnit ? suffix.empty() : info.initial.has_value())
    return StateClass::Parameter;
  bool isResidual = suffix == "/worker_error" || suffix == "/server_error";
  return suffix == "/gradient" ? StateClass::Gradient : isResidual ? StateClass::Residual : StateClass::Optimizer;
}

template <typename Action> void StateStore::forEachMemory(Action action) const {
  std::map<std::string, const StateInfo *> infos;
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      infos[state.name] = &state;
  std::set<SpaceKey> counted;
  for (const auto &[name, state] : states) {
    const StateInfo &info = *infos.at(name);
    bool isInSpace = info.part == StatePart::Tensor || info.part == StatePart::View;
    if (isInSpace && !counted.emplace(info.unit, info.suffix).second)
      continue;
    int64_t count = isInSpace ? mesh.ranks * package.variant().units[info.unit].shard(mesh.ranks) : 0;
    action(classOf(info), isInSpace ? byteCount(info.type, {count}) : state.tensor.bytes(), state.tensor.data());
  }
}

HeldBytes StateStore::heldBytes() const {
  HeldBytes held;
  forEachMemory([&](StateClass kind, uint64_t bytes, const uint8_t *) {
    switch (kind) {
    case StateClass::Parameter: held.parameters += bytes; break;
    case StateClass::Gradient: held.gradients += bytes; break;
    case StateClass::Optimizer: held.optimizer += bytes; break;
    case StateClass::Residual: held.residuals += bytes; break;
    case StateClass::Other: held.others += bytes; break;
    }
  });
  return held;
}

PlacedBytes StateStore::placedBytes() const {
  PlacedBytes placed;
  forEachMemory([&](StateClass kind, uint64_t bytes, const uint8_t *memory) {
    const PlaceSettings *settings = places.of(kind);
    bool isInFile = false;
    forEachFiles([&](StateFiles &files) { isInFile |= !files.at(memory).regions.empty(); });
    (isInFile                                             ? placed.file
     : !settings || settings->place == StatePlace::Device ? placed.device
                                                          : placed.host) += bytes;
  });
  forEachFiles([&](StateFiles &files) {
    StateFiles::Counters counters = files.counters();
    placed.read += counters.read;
    placed.written += counters.written;
    placed.resident += counters.resident;
    placed.residentBytes += counters.residentBytes;
    (&files == parameterFiles.get() ? placed.fileParameters : placed.fileOptimizer) += counters.bytes;
  });
  return placed;
}

void StateStore::requireDevice(const std::string &what, uint64_t bytes) const {
  if (places.deviceBytes == 0)
    return;
  uint64_t taken = placedBytes().device;
  if (bytes > places.deviceBytes || taken > places.deviceBytes - bytes)
    fail(ErrorCode::OutOfMemory, "--device-memory: ", what, " of ", bytes, " bytes does not fit beside states of ",
         taken, ", found ", places.deviceBytes, ", expected at least ", taken + bytes);
}

// Whether whatever works on the state takes it element by element, so that a part of it may be in memory at a time.
bool StateStore::isElementwise(const StateInfo &info) {
  if (!wholeStates) {
    wholeStates.emplace();
    for (const EntryInfo &entry : package.variant().entries)
      for (uint32_t buffer : wholeBuffers(entry))
        if (entry.buffers[buffer].role == BufferRole::State)
          wholeStates->insert(entry.states[entry.buffers[buffer].index].name);
  }
  return wholeStates->count(info.name) == 0;
}

// Null where a state of its class lives in memory.
std::shared_ptr<uint8_t> StateStore::fileMemory(const StateInfo &info, size_t bytes) {
  StateClass kind = classOf(info);
  const PlaceSettings *settings = places.of(kind);
  if (!settings || settings->place != StatePlace::File || bytes == 0)
    return nullptr;
  auto count = static_cast<int64_t>(bytes / typeSize(info.type));
  if (settings->staysInHost(hostElements, count)) {
    hostElements += count;
    return nullptr;
  }
  std::unique_ptr<StateFiles> &files = kind == StateClass::Parameter ? parameterFiles : optimizerFiles;
  if (!files)
    files = std::make_unique<StateFiles>(settings->folder, settings->buffers);
  bool isCut = settings->isLonger(count) && isElementwise(info);
  if (settings->isLonger(count) && !isCut)
    uncutStates.insert(info.name);
  return files->add(info.name, bytes, settings->pieceBytes(bytes, typeSize(info.type), isCut));
}

// Memory for a state that is not in a unit's space; of unknown contents, or zeros of a file.
Tensor StateStore::allocate(const StateInfo &info, const Shape &shape) {
  size_t bytes = byteCount(info.type, shape);
  if (std::shared_ptr<uint8_t> memory = fileMemory(info, bytes)) {
    uint8_t *data = memory.get();
    return Tensor::over(info.type, shape, data, std::move(memory));
  }
  const PlaceSettings *settings = places.of(classOf(info));
  if (!settings || settings->place == StatePlace::Device)
    requireDevice("state '" + info.name + "'", bytes);
  return {info.type, shape};
}

StateStore::InFile StateStore::inFile(const void *memory) {
  InFile found;
  forEachFiles([&](StateFiles &files) {
    if (StateFiles::Pieces pieces = files.at(memory); !pieces.regions.empty())
      found = {&files, std::move(pieces)};
  });
  return found;
}

void StateStore::release(const void *memory, size_t bytes) const {
  forEachFiles([&](StateFiles &files) { files.release(memory, bytes); });
}

// Somebody has written to it between calls.
void StateStore::touched(const void *memory) {
  forEachFiles([&](StateFiles &files) { files.touched(memory); });
}

} // namespace ds
