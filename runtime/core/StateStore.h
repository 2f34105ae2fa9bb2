// The states of one session: named tensors that calls update in place, and that can be saved and restored.
#ifndef DEEPSTRIDE_RUNTIME_CORE_STATESTORE_H
#define DEEPSTRIDE_RUNTIME_CORE_STATESTORE_H

#include "runtime/core/Package.h"
#include "runtime/core/Tensor.h"

#include <map>
#include <string>
#include <vector>

namespace ds {

// A state as calls see it. Written in place, it cannot be rolled back: a call that fails after it began to write leaves
// the state unusable until it is restored or reset.
struct State {
  Tensor tensor;
  bool isNew = true;      // made by the call that runs: until the call succeeds, its value is the initial one
  bool isWritten = false; // by the call that runs; set before the first byte may change
  std::string fault;      // what may have left it half written; empty: usable
};

// Named tensors that are read one at a time, straight to where they belong.
class TensorSource {
public:
  struct Item {
    std::string name;
    ElementType type = ElementType::F32;
    Shape shape;
  };
  virtual ~TensorSource() = default;

  virtual const std::vector<Item> &items() const = 0;
  // Reads all of an item and keeps nothing. Throws Error when it is damaged, or holds an integer that `as` cannot.
  virtual void check(size_t item, ElementType as) const = 0;
  // Reads an item into memory for its elements as `as`: its own type, or one that npyType widens to it.
  virtual void read(size_t item, ElementType as, void *data) const = 0;
  // The same for the elements from `begin` to `end` in row-major order. Sources that can touch nothing else.
  virtual void checkRange(size_t item, ElementType as, int64_t begin, int64_t end) const;
  virtual void readRange(size_t item, ElementType as, int64_t begin, int64_t end, void *data) const;
};

class StateStore {
public:
  explicit StateStore(const Package &package) : package(package) {}

  // The state for the call that runs, made from its initial constant or zeros when it is met first. Entries that name
  // the same state share it. Valid until the states are reset. Throws Error: ShapeMismatch when the shape is not that
  // of an earlier call, BadState when the state may be half written.
  State &acquire(const StateInfo &info, const Shape &shape);

  // The call is over: what it wrote is the states' value.
  void endCall();
  // The call failed: states that it met first are forgotten, so that they start anew; others that it had begun to write
  // are refused from now on, saying why.
  void failCall(const std::string &why);

  // All states whose shape is known: those that a call has used and those of constant shape. Sorted by name; valid
  // until the next call, restore or reset. Throws Error(BadState) when one may be half written.
  std::vector<NamedView> views();

  // Takes the tensors as the states' values, read into the states' own memory. Everything is checked first: an Error
  // for an unknown name, a type or constant shape that does not fit, or damaged data changes nothing. Should reading
  // fail even so, the states that it had reached are refused from then on. Where npz lacks the state's type, the one
  // that npyType gives is accepted.
  void restore(const TensorSource &source);

  // Zeros for a state that there is, in its own memory, whatever a failed call left in it.
  void zero(const std::string &name);
  // The value of one state for another of its size, in the memory of that, whatever a failed call left in it. Nothing
  // where there is not either. Throws Error(BadState) where the first one may be half written.
  void copy(const std::string &from, const std::string &to);
  // One state back to its initial value.
  void forget(const std::string &name) { states.erase(name); }
  // Back to the initial values.
  void reset() { states.clear(); }

private:
  const StateInfo &infoFor(const TensorSource::Item &item) const;

  const Package &package;
  std::map<std::string, State> states;
};

} // namespace ds
#endif
