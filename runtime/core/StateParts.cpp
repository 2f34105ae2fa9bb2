// States that lie in units, and what this rank holds of the tensors in them.
#include "runtime/core/StateStore.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace ds {

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
  if (!info.suffix.empty())
    return;
  for (const UnitTensor &tensor : package.variant().units[info.unit].tensors) {
    int64_t begin = std::max(first, tensor.offset);
    int64_t end = std::min(first + count, tensor.offset + elementCount(tensor.shape));
    if (!tensor.initial || begin >= end)
      continue;
    const ConstantInfo &constant = package.variant().constants[*tensor.initial];
    if (constant.type != info.type)
      fail(ErrorCode::BadPackage, "state '", tensor.name, "': initial constant '", constant.name, "' is of type ",
           typeName(constant.type), ", expected ", typeName(info.type));
    std::memcpy(data + static_cast<size_t>(begin - first) * width,
                package.constant(*tensor.initial) + static_cast<size_t>(begin - tensor.offset) * width,
                static_cast<size_t>(end - begin) * width);
    package.releaseConstant(*tensor.initial); // a model in training would be in memory twice
  }
}

uint8_t *StateStore::spaceOf(const StateInfo &info) {
  AlignedBuffer &space = spaces[{info.unit, info.suffix}];
  if (space.capacity() == 0) {
    int64_t count = mesh.ranks * package.variant().units[info.unit].shard(mesh.ranks);
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
    Tensor tensor(info.type, shape);
    fill(info, mesh.rank * shard, shard, tensor.data());
    return tensor;
  }
  case StatePart::Worker: {
    Tensor tensor(info.type, shape);
    fill(info, 0, mesh.ranks * shard, tensor.data());
    return tensor;
  }
  case StatePart::Own: break;
  }
  Tensor tensor(info.type, shape);
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
  }
  return tensor;
}

void StateStore::addPieces(const StateInfo &info, State &state, std::vector<StatePiece> &result) const {
  if (info.part == StatePart::View) // the tensors themselves are states
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
      result.push_back({tensor.name + info.suffix, info.type, tensor.shape, begin - tensor.offset,
                        std::max(begin, end) - tensor.offset,
                        state.tensor.data() + static_cast<size_t>(begin - first) * typeSize(info.type)});
  }
}

HeldBytes StateStore::heldBytes() const {
  std::map<std::string, const StateInfo *> infos;
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      infos[state.name] = &state;
  HeldBytes held;
  auto classOf = [&](const std::string &suffix, bool isParameter) -> uint64_t & {
    bool isResidual = suffix == "/worker_error" || suffix == "/server_error";
    return isParameter             ? held.parameters
           : suffix == "/gradient" ? held.gradients
           : isResidual            ? held.residuals
                                   : held.optimizer;
  };
  std::set<SpaceKey> counted;
  for (const auto &[name, state] : states) {
    const StateInfo &info = *infos.at(name);
    bool isInSpace = info.part == StatePart::Tensor || info.part == StatePart::View;
    if (isInSpace && !counted.emplace(info.unit, info.suffix).second)
      continue;
    if (isInSpace) {
      int64_t count = mesh.ranks * package.variant().units[info.unit].shard(mesh.ranks);
      classOf(info.suffix, info.suffix.empty()) += byteCount(info.type, {count});
      continue;
    }
    size_t slash = name.rfind('/');
    bool isPart = info.part == StatePart::Shard || info.part == StatePart::Worker;
    std::string suffix = isPart ? info.suffix : slash == std::string::npos ? std::string() : name.substr(slash);
    if (info.isStatistic || suffix == "/moved")
      held.others += state.tensor.bytes();
    else
      classOf(suffix, isPart ? suffix.empty() : info.initial.has_value()) += state.tensor.bytes();
  }
  return held;
}

} // namespace ds
