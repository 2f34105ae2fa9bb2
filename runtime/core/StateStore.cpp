#include "runtime/core/StateStore.h"

#include "runtime/core/Binding.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>

namespace ds {
namespace {

bool hasConstantShape(const StateInfo &info) {
  return std::all_of(info.shape.begin(), info.shape.end(), [](const SizeExpr &dim) { return dim.isConstant(); });
}

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

void checkUsable(const std::string &name, const State &state) {
  if (!state.fault.empty())
    fail(ErrorCode::BadState, "state '", name, "' may be half written (", state.fault,
         "), restore it or reset the states");
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

State &StateStore::acquire(const StateInfo &info, const Shape &shape) {
  auto known = states.find(info.name);
  if (known != states.end()) {
    const Tensor &tensor = known->second.tensor;
    checkUsable(info.name, known->second);
    if (tensor.getType() != info.type || tensor.getShape() != shape)
      fail(ErrorCode::ShapeMismatch, "state '", info.name, "': found ", typeName(tensor.getType()), " ",
           listText(tensor.getShape()), " from an earlier call or file, expected ", typeName(info.type), " ",
           listText(shape));
    return known->second;
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
  State &state = states[info.name];
  state.tensor = std::move(tensor);
  return state;
}

void StateStore::endCall() {
  for (auto &[name, state] : states)
    state.isNew = state.isWritten = false;
}

void StateStore::failCall(const std::string &why) {
  for (auto item = states.begin(); item != states.end();) {
    State &state = item->second;
    if (state.isNew) {
      item = states.erase(item);
      continue;
    }
    if (state.isWritten)
      state.fault = why;
    state.isWritten = false;
    ++item;
  }
}

std::vector<NamedView> StateStore::views() {
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      if (hasConstantShape(state) && states.count(state.name) == 0)
        acquire(state, evaluateShape(state.shape, {})).isNew = false;
  std::vector<NamedView> result;
  for (const auto &[name, state] : states) {
    checkUsable(name, state);
    result.push_back({name, state.tensor.view()});
  }
  return result;
}

void StateStore::zero(const std::string &name) {
  auto known = states.find(name);
  if (known == states.end())
    return;
  std::memset(known->second.tensor.data(), 0, known->second.tensor.bytes());
  known->second.fault.clear();
}

void StateStore::copy(const std::string &from, const std::string &to) {
  auto source = states.find(from), target = states.find(to);
  if (source == states.end() || target == states.end())
    return;
  checkUsable(from, source->second);
  const Tensor &tensor = source->second.tensor;
  if (target->second.tensor.bytes() != tensor.bytes())
    fail(ErrorCode::ShapeMismatch, "state '", to, "': found ", target->second.tensor.bytes(), " bytes, expected ",
         tensor.bytes(), " as of '", from, "'");
  std::memcpy(target->second.tensor.data(), tensor.data(), tensor.bytes());
  target->second.fault.clear();
}

const StateInfo &StateStore::infoFor(const TensorSource::Item &item) const {
  const StateInfo *info = nullptr;
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states) {
      if (state.name != item.name)
        continue;
      checkFits(item, state); // entries may know different ones of its sizes
      info = &state;
    }
  if (!info)
    fail(ErrorCode::BadFile, "the package has no state '", item.name, "'");
  return *info;
}

void StateStore::restore(const TensorSource &source) {
  struct Target {
    const StateInfo *info;
    State *state; // null: the tensor below becomes the state's
    Tensor tensor;
  };
  const std::vector<TensorSource::Item> &items = source.items();
  std::vector<Target> targets;
  for (const TensorSource::Item &item : items)
    targets.push_back({&infoFor(item), nullptr, {}});
  for (size_t i = 0; i < items.size(); ++i)
    annotated("state '" + items[i].name + "'", [&] { source.check(i, targets[i].info->type); });
  // Memory next, so that running out of it changes nothing either. Only a state of another shape needs some.
  for (size_t i = 0; i < items.size(); ++i) {
    auto known = states.find(items[i].name);
    if (known != states.end() && known->second.tensor.getType() == targets[i].info->type &&
        known->second.tensor.getShape() == items[i].shape)
      targets[i].state = &known->second;
    else
      targets[i].tensor.reset(targets[i].info->type, items[i].shape);
  }
  size_t reached = 0;
  try {
    for (; reached < items.size(); ++reached) {
      Target &target = targets[reached];
      annotated("state '" + items[reached].name + "'", [&] {
        source.read(reached, target.info->type, (target.state ? target.state->tensor : target.tensor).data());
      });
    }
  } catch (const std::exception &error) {
    for (size_t i = 0; i <= reached; ++i)
      if (targets[i].state)
        targets[i].state->fault = concat("restoring failed: ", error.what());
    throw;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    State &state = states[items[i].name];
    if (!targets[i].state)
      state.tensor = std::move(targets[i].tensor);
    state.isNew = false;
    state.fault.clear();
  }
}

} // namespace ds
