// The states of one session: named tensors that calls update in place, and that can be saved and restored.
#ifndef DEEPSTRIDE_RUNTIME_CORE_STATESTORE_H
#define DEEPSTRIDE_RUNTIME_CORE_STATESTORE_H

#include "runtime/core/Package.h"
#include "runtime/core/Tensor.h"

#include <map>
#include <string>
#include <vector>

namespace ds {

class StateStore {
public:
  explicit StateStore(const Package &package) : package(package) {}

  // The state's tensor, made from its initial constant or zeros when it is met first. Entries that name the same state
  // share it. Throws Error(ShapeMismatch) when the shape is not that of an earlier call.
  Tensor &acquire(const StateInfo &info, const Shape &shape);

  // Copies of all states whose shape is known: those that a call has used and those of constant shape. Sorted by name.
  std::vector<NamedTensor> save();

  // Takes the tensors as the states' values. All or nothing: throws Error when a name is unknown or a type or constant
  // shape does not fit. f32 is accepted where the state's type is one that npz lacks.
  void restore(const std::vector<NamedTensor> &tensors);

  // Back to the initial values.
  void reset() { tensors.clear(); }

private:
  const StateInfo *find(const std::string &name) const;

  const Package &package;
  std::map<std::string, Tensor> tensors;
};

} // namespace ds
#endif
