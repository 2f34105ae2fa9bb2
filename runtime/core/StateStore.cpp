#include "runtime/core/StateStore.h"

#include "runtime/core/Binding.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace ds {
namespace {

void checkUsable(const std::string &name, const State &state) {
  if (!state.fault.empty())
    fail(ErrorCode::BadState, "state '", name, "' may be half written (", state.fault,
         "), restore it or reset the states");
}

} // namespace

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
  Tensor tensor = firstValue(info, shape);
  State &state = states[info.name];
  state.tensor = std::move(tensor);
  state.isShared = info.part == StatePart::Tensor || info.part == StatePart::View;
  return state;
}

void StateStore::beginCall(size_t entry) {
  forEachFiles([&](StateFiles &files) { files.beginCall(entry); });
}

void StateStore::endCall() {
  forEachFiles([](StateFiles &files) { files.endCall(); });
  for (auto &[name, state] : states)
    state.isNew = state.isWritten = false;
}

void StateStore::failCall(const std::string &why) {
  forEachFiles([](StateFiles &files) { files.endCall(); });
  for (auto item = states.begin(); item != states.end();) {
    State &state = item->second;
    if (state.isNew && !(state.isShared && state.isWritten)) {
      item = states.erase(item);
      continue;
    }
    if (state.isWritten)
      state.fault = why;
    state.isNew = state.isWritten = false;
    ++item;
  }
  dropSpaces();
}

// All states whose shape does not depend on a call.
void StateStore::meetAll() {
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      if (states.count(state.name) == 0 && std::all_of(state.shape.begin(), state.shape.end(),
                                                       [&](const SizeExpr &dim) { return isOfMesh(entry, dim); }))
        acquire(state, evaluateShape(state.shape, meshSymbols(entry, mesh))).isNew = false;
}

std::vector<NamedView> StateStore::views() {
  std::vector<NamedView> result;
  for (const StatePiece &piece : pieces())
    if (piece.isWhole())
      result.push_back({piece.name, {piece.type, piece.shape, piece.data}});
  return result;
}

std::vector<StatePiece> StateStore::pieces() {
  meetAll();
  std::map<std::string, const StateInfo *> infos;
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      infos[state.name] = &state;
  std::vector<StatePiece> result;
  for (auto &[name, state] : states) {
    checkUsable(name, state);
    addPieces(*infos.at(name), state, result);
  }
  forEachFiles([](StateFiles &files) { files.looked(); });
  std::sort(result.begin(), result.end(), [](const StatePiece &a, const StatePiece &b) { return a.name < b.name; });
  return result;
}

void StateStore::reset() {
  states.clear();
  spaces.clear();
}

void StateStore::forget(const std::string &name) {
  states.erase(name);
  dropSpaces();
}

void StateStore::dropSpaces() {
  // A space goes with the last state that lies in it.
  std::set<SpaceKey> used;
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      if (state.part != StatePart::Own && states.count(state.name))
        used.emplace(state.unit, state.suffix);
  for (auto space = spaces.begin(); space != spaces.end();)
    space = used.count(space->first) ? std::next(space) : spaces.erase(space);
}

const Tensor *StateStore::find(const std::string &name) const {
  auto known = states.find(name);
  return known == states.end() ? nullptr : &known->second.tensor;
}

void StateStore::zero(const std::string &name) {
  auto known = states.find(name);
  if (known == states.end())
    return;
  std::memset(known->second.tensor.data(), 0, known->second.tensor.bytes());
  touched(known->second.tensor.data());
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
  touched(target->second.tensor.data());
  target->second.fault.clear();
}

} // namespace ds
