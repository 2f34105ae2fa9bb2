// Restoring states: everything is checked before the first byte changes.
#include "runtime/core/StateStore.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>

namespace ds {
namespace {

void checkFits(const TensorSource::Item &item, const StateInfo &info) {
  if (item.type != info.type && item.type != npyType(info.type))
    fail(ErrorCode::ShapeMismatch, "state '", info.name, "': wrong type, found ", typeName(item.type), ", expected ",
         typeName(info.type));
  bool isSameRank = info.shape.size() == item.shape.size();
  for (size_t axis = 0; isSameRank && axis < item.shape.size(); ++axis)
    isSameRank = !info.shape[axis].isConstant() || info.shape[axis].evaluate({}) == item.shape[axis];
  if (!isSameRank)
    fail(ErrorCode::ShapeMismatch, "state '", info.name, "': wrong shape, found ", listText(item.shape), ", expected ",
         shapeText(info.shape));
}

// Of which elements of a unit's tensor a rank holds what, in the unit's space.
const UnitTensor *tensorNamed(const UnitInfo &unit, const std::string &suffix, const std::string &name) {
  for (const UnitTensor &tensor : unit.tensors)
    if (tensor.name + suffix == name)
      return &tensor;
  return nullptr;
}

} // namespace

void TensorSource::checkRange(size_t item, ElementType as, int64_t, int64_t) const { check(item, as); }

void TensorSource::readRange(size_t item, ElementType as, int64_t begin, int64_t end, void *data) const {
  Tensor whole(as, items()[item].shape);
  read(item, as, whole.data());
  size_t size = typeSize(as);
  if (end > begin)
    std::memcpy(data, whole.data() + static_cast<size_t>(begin) * size, static_cast<size_t>(end - begin) * size);
}

// A state of that name, or a tensor in a part of a unit.
StateStore::Target StateStore::targetOf(const TensorSource::Item &item) {
  Target target;
  const UnitTensor *shared = nullptr;
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states) {
      if (isRounded(state))
        continue;
      if (state.name == item.name && state.part != StatePart::View && state.part != StatePart::Shard) {
        checkFits(item, state); // entries may know different ones of its sizes
        // Entries that never learn of units hold the tensor that lies in one, too.
        if (!target.info || shared || state.part != StatePart::Own)
          target.info = &state;
        shared = nullptr;
      } else if ((state.part == StatePart::Shard || state.part == StatePart::Worker) && !target.info) {
        shared = tensorNamed(package.variant().units[state.unit], logicalSuffix(state), item.name);
        target.info = shared ? &state : nullptr;
      }
    }
  if (!target.info)
    fail(ErrorCode::BadFile, "the package has no state '", item.name, "'");
  target.shape = item.shape;
  target.end = elementCount(item.shape);
  if (shared) {
    StateInfo logical = *target.info;
    logical.name = item.name;
    logical.shape.clear();
    bool isWorker = target.info->part == StatePart::Worker;
    if (isWorker) // any number of ranks
      logical.shape.push_back(SizeExpr::constant(item.shape.empty() ? 1 : std::max<int64_t>(item.shape[0], 1)));
    for (int64_t size : shared->shape)
      logical.shape.push_back(SizeExpr::constant(size));
    checkFits(item, logical);
    if (isWorker) {
      int64_t count = elementCount(shared->shape), ranks = item.shape[0];
      target.rows = ranks == mesh.ranks ? 0 : ranks;
      target.begin = target.rows ? 0 : mesh.rank * count;
      target.end = target.rows ? ranks * count : target.begin + count;
      target.offset = shared->offset;
      return target;
    }
    takeRange(*shared, target);
  }
  return target;
}

// What this rank owns of it.
void StateStore::takeRange(const UnitTensor &tensor, Target &target) const {
  int64_t shard = package.variant().units[target.info->unit].shard(mesh.ranks), first = mesh.rank * shard;
  target.begin = std::clamp<int64_t>(first - tensor.offset, 0, target.end);
  target.end = std::clamp<int64_t>(first + shard - tensor.offset, target.begin, target.end);
  target.offset = std::max<int64_t>(tensor.offset - first, 0);
}

std::vector<StateStore::Target> StateStore::targetsOf(const TensorSource &source) {
  std::vector<Target> targets;
  for (size_t i = 0; i < source.items().size(); ++i) {
    targets.push_back(targetOf(source.items()[i]));
    targets.back().item = i;
  }
  addRounded(source, targets);
  for (const Target &target : targets) {
    ElementType type = isRounded(*target.info) ? ElementType::F32 : target.info->type;
    annotated("state '" + source.items()[target.item].name + "'", [&] {
      if (target.isWhole())
        source.check(target.item, type);
      else if (target.begin < target.end) // of what other ranks hold, nothing is read
        source.checkRange(target.item, type, target.begin, target.end);
    });
  }
  // Memory next, so that running out of it changes nothing either. Only a state of another shape needs some.
  for (size_t i = 0; i < targets.size(); ++i) {
    Target &target = targets[i];
    const StateInfo &info = *target.info;
    auto known = states.find(info.name);
    if (info.part == StatePart::Shard || info.part == StatePart::Worker) {
      if (known == states.end()) {
        Shape shape = {package.variant().units[info.unit].shard(mesh.ranks) *
                       (info.part == StatePart::Worker ? mesh.ranks : 1)};
        State state;
        state.tensor = firstValue(info, shape);
        state.isNew = false;
        known = states.emplace(info.name, std::move(state)).first;
      }
      target.state = &known->second;
      target.data = known->second.tensor.data() + static_cast<size_t>(target.offset) * typeSize(info.type);
    } else if (known != states.end() && known->second.tensor.getType() == info.type &&
               known->second.tensor.getShape() == target.shape) {
      target.state = &known->second;
      target.data = known->second.tensor.data();
    } else {
      if (info.part == StatePart::Own)
        target.tensor = allocate(info, target.shape);
      else
        target.tensor = firstValue(info, target.shape);
      target.data = target.tensor.data();
    }
  }
  return targets;
}

// Of the rows that another number of ranks had: what all of them had left out together stays the same.
void StateStore::readMean(const TensorSource &source, size_t item, const Target &target) {
  const ElementType type = target.info->type;
  const int64_t count = target.end / target.rows;
  Tensor row(type, {count});
  std::vector<double> sum(static_cast<size_t>(count));
  for (int64_t rank = 0; rank < target.rows && count > 0; ++rank) {
    source.readRange(item, type, rank * count, (rank + 1) * count, row.data());
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += loadDouble(type, row.data(), i);
  }
  for (size_t i = 0; i < sum.size(); ++i)
    storeDouble(type, target.data, i, sum[i] / static_cast<double>(target.rows));
}

void StateStore::readTarget(const TensorSource &source, const Target &target) const {
  auto read = [&](ElementType type, void *data) {
    if (target.isWhole())
      source.read(target.item, type, data);
    else if (target.begin < target.end)
      source.readRange(target.item, type, target.begin, target.end, data);
  };
  if (target.rows) {
    readMean(source, target.item, target);
  } else if (isRounded(*target.info)) {
    Tensor master(ElementType::F32, {target.end - target.begin});
    read(ElementType::F32, master.data());
    roundFloats(reinterpret_cast<const float *>(master.data()), master.count(), target.info->type, target.data);
  } else {
    read(target.info->type, target.data);
  }
}

void StateStore::restore(const TensorSource &source) {
  const std::vector<TensorSource::Item> &items = source.items();
  std::vector<Target> targets = targetsOf(source);
  size_t reached = 0;
  try {
    for (; reached < targets.size(); ++reached) {
      Target &target = targets[reached];
      annotated("state '" + items[target.item].name + "'", [&] { readTarget(source, target); });
      // What is in a file goes there now: all states together may be more than memory.
      if (reached + 1 == targets.size() || targets[reached + 1].memory() != target.memory())
        touched(target.memory());
    }
  } catch (const std::exception &error) {
    for (size_t i = 0; i <= reached; ++i)
      if (targets[i].state)
        targets[i].state->fault = concat("restoring failed: ", error.what());
    throw;
  }
  for (Target &target : targets) {
    State &state = target.state ? *target.state : states[target.info->name];
    if (!target.state) {
      state.tensor = std::move(target.tensor);
      state.isShared = target.info->part == StatePart::Tensor;
    }
    state.isNew = false;
    state.fault.clear();
  }
}

} // namespace ds
