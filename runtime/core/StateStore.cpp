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

void checkFits(const StateInfo &info, ElementType type, const Shape &shape, const Tensor &tensor) {
  if (tensor.getType() != type || tensor.getShape() != shape)
    fail(ErrorCode::ShapeMismatch, "state '", info.name, "': found ", typeName(tensor.getType()), " ",
         listText(tensor.getShape()), " from an earlier call or file, expected ", typeName(type), " ", listText(shape));
}

} // namespace

Tensor &StateStore::acquire(const StateInfo &info, const Shape &shape) {
  auto known = tensors.find(info.name);
  if (known != tensors.end()) {
    checkFits(info, info.type, shape, known->second);
    return known->second;
  }
  Tensor tensor(info.type, shape);
  std::memset(tensor.data(), 0, tensor.bytes());
  if (info.initial) {
    const ConstantInfo &constant = package.variant().constants[*info.initial];
    if (constant.bytes != tensor.bytes())
      fail(ErrorCode::BadPackage, "state '", info.name, "': initial constant '", constant.name, "' has ",
           constant.bytes, " bytes, expected ", tensor.bytes());
    if (tensor.bytes() != 0)
      std::memcpy(tensor.data(), package.constant(*info.initial), tensor.bytes());
  }
  return tensors.emplace(info.name, std::move(tensor)).first->second;
}

const StateInfo *StateStore::find(const std::string &name) const {
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      if (state.name == name)
        return &state;
  return nullptr;
}

std::vector<NamedTensor> StateStore::save() {
  for (const EntryInfo &entry : package.variant().entries)
    for (const StateInfo &state : entry.states)
      if (hasConstantShape(state))
        acquire(state, evaluateShape(state.shape, {}));
  std::vector<NamedTensor> result;
  for (const auto &[name, tensor] : tensors)
    result.push_back({name, tensor.clone()});
  return result;
}

void StateStore::restore(const std::vector<NamedTensor> &given) {
  std::map<std::string, Tensor> accepted;
  for (const NamedTensor &item : given) {
    const StateInfo *info = find(item.name);
    if (!info)
      fail(ErrorCode::BadFile, "the package has no state '", item.name, "'");
    bool isWidened = npyType(info->type) != info->type && item.tensor.getType() == npyType(info->type);
    Tensor tensor = isWidened ? item.tensor.converted(info->type) : item.tensor.clone();
    checkFits(*info, info->type, tensor.getShape(), tensor);
    if (info->shape.size() != tensor.getShape().size() ||
        (hasConstantShape(*info) && evaluateShape(info->shape, {}) != tensor.getShape()))
      fail(ErrorCode::ShapeMismatch, "state '", info->name, "': wrong shape, found ", listText(tensor.getShape()),
           ", expected ", shapeText(info->shape));
    accepted[item.name] = std::move(tensor);
  }
  for (auto &[name, tensor] : accepted)
    tensors[name] = std::move(tensor);
}

} // namespace ds
