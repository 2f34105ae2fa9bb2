// The states of one session: named tensors that calls update in place, and that can be saved and restored.
#ifndef DEEPSTRIDE_RUNTIME_CORE_STATESTORE_H
#define DEEPSTRIDE_RUNTIME_CORE_STATESTORE_H

#include "runtime/core/Binding.h"
#include "runtime/core/Package.h"
#include "runtime/core/StateFiles.h"
#include "runtime/core/StatePlaces.h"
#include "runtime/core/Tensor.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ds {

// A state as calls see it. Written in place, it cannot be rolled back: a call that fails after it began to write leaves
// the state unusable until it is restored or reset.
struct State {
  Tensor tensor;
  bool isNew = true;      // made by the call that runs: until the call succeeds, its value is the initial one
  bool isWritten = false; // by the call that runs; set before the first byte may change
  bool isShared = false;  // its memory is a unit's, where other states lie, too
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

// What this rank holds of a tensor that ranks may share: its elements [begin, end) in row-major order.
struct StatePiece {
  std::string name;
  ElementType type = ElementType::F32;
  Shape shape; // of the whole tensor
  int64_t begin = 0, end = 0;
  void *data = nullptr; // of element `begin`

  bool isWhole() const { return begin == 0 && end == elementCount(shape); }
};

// Bytes of states that are there, by what they are for. Residuals: what codecs have left out of messages. Other states
// of a training: running statistics.
struct HeldBytes {
  uint64_t parameters = 0, gradients = 0, optimizer = 0, residuals = 0, others = 0;
};

// To the nearest, ties to even: as kernels round.
void roundFloats(const float *values, int64_t count, ElementType to, void *rounded);

// What a state is for, by its name and part. Of a package that trains; all states of others have values of their own.
StateClass classOf(const StateInfo &info);

class StateStore {
public:
  explicit StateStore(const Package &package, const Mesh &mesh = {}, const StatePlaces &places = {})
      : package(package), mesh(mesh), places(places) {}

  // The state for the call that runs, made from its initial constant or zeros when it is met first. Entries that name
  // the same state share it. Valid until the states are reset. Throws Error: ShapeMismatch when the shape is not that
  // of an earlier call, BadState when the state may be half written.
  State &acquire(const StateInfo &info, const Shape &shape);

  // The regions of a file that a state is; null for other memory.
  struct InFile {
    StateFiles *files = nullptr;
    StateFiles::Pieces pieces;
  };
  bool hasFiles() const { return parameterFiles || optimizerFiles; }
  InFile inFile(const void *memory);

  // A call of an entry begins, which may use states of files only between use and done of these.
  void beginCall(size_t entry);
  // The call is over: what it wrote is the states' value.
  void endCall();
  // The call failed: states that it met first are forgotten, so that they start anew; others that it had begun to write
  // are refused from now on, saying why.
  void failCall(const std::string &why);

  // All states whose shape is known: those that a call has used and those whose shape does not depend on a call. Sorted
  // by name, and without those of which other ranks hold a part; valid until the next call, restore or reset. Throws
  // Error(BadState) when one may be half written.
  std::vector<NamedView> views();

  // The same, and what this rank holds of the tensors that ranks share. Tensors of which it holds nothing are left out.
  std::vector<StatePiece> pieces();
  // Bytes of them that will not be looked at again need not be in memory, where they live in a file.
  void release(const void *memory, size_t bytes) const;

  // Of a package that trains; a unit's memory counts once, with what no tensor covers.
  HeldBytes heldBytes() const;
  PlacedBytes placedBytes() const;
  // States of files that stay whole though they exceed the size of a piece, since something works on all of one.
  const std::set<std::string> &uncut() const { return uncutStates; }
  // Throws Error(OutOfMemory) where the device has no room for so many bytes besides its states.
  void requireDevice(const std::string &what, uint64_t bytes) const;

  // Takes the tensors as the states' values, read into the states' own memory. Everything is checked first: an Error
  // for an unknown name, a type or constant shape that does not fit, or damaged data changes nothing. Should reading
  // fail even so, the states that it had reached are refused from then on. Where npz lacks the state's type, the one
  // that npyType gives is accepted.
  void restore(const TensorSource &source);

  // After somebody has written to what views and pieces showed: parameters that are rounded from masters of this rank
  // are rounded anew.
  void roundMasters();

  // The value of a state as it is; null where there is none yet.
  const Tensor *find(const std::string &name) const;
  // Zeros for a state that there is, in its own memory, whatever a failed call left in it.
  void zero(const std::string &name);
  // The value of one state for another of its size, in the memory of that, whatever a failed call left in it. Nothing
  // where there is not either. Throws Error(BadState) where the first one may be half written.
  void copy(const std::string &from, const std::string &to);
  // One state back to its initial value; of a part of a unit, all of that part.
  void forget(const std::string &name);
  // Back to the initial values.
  void reset();

private:
  // The flat memory of all tensors of a unit, with a suffix.
  using SpaceKey = std::pair<uint32_t, std::string>;
  // Where a tensor's elements [begin, end) are to be read to.
  struct Target {
    const StateInfo *info = nullptr;
    size_t item = 0;
    Shape shape;
    int64_t begin = 0, end = 0, offset = 0; // offset: of element `begin` in the state, of a part
    State *state = nullptr;                 // null: the tensor below becomes the state's
    Tensor tensor;
    uint8_t *data = nullptr;
    int64_t rows = 0; // of another number of ranks, whose mean this rank takes; 0: it takes the elements themselves

    bool isWhole() const { return begin == 0 && end == elementCount(shape); }
    const uint8_t *memory() { return state ? state->tensor.data() : tensor.data(); } // that holds `data`
  };

  template <typename Action> void forEachFiles(Action action) const {
    for (StateFiles *files : {parameterFiles.get(), optimizerFiles.get()})
      if (files)
        action(*files);
  }
  // Calls action(class, bytes, memory) for each state, once for the memory of a unit.
  template <typename Action> void forEachMemory(Action action) const;
  bool isElementwise(const StateInfo &info);
  std::shared_ptr<uint8_t> fileMemory(const StateInfo &info, size_t bytes);
  Tensor allocate(const StateInfo &info, const Shape &shape);
  void touched(const void *memory);
  uint8_t *spaceOf(const StateInfo &info);
  Tensor firstValue(const StateInfo &info, const Shape &shape);
  // Whether the state is what its unit's masters are rounded to.
  bool isRounded(const StateInfo &info) const;
  // Behind a tensor's name: masters are what parameters are called.
  std::string logicalSuffix(const StateInfo &info) const;
  void addRounded(const TensorSource &source, std::vector<Target> &targets) const;
  void takeRange(const UnitTensor &tensor, Target &target) const;
  void readTarget(const TensorSource &source, const Target &target) const;
  void fill(const StateInfo &info, int64_t first, int64_t count, uint8_t *data);
  void checkPart(const StateInfo &info, const Shape &shape) const;
  void addPieces(const StateInfo &info, State &state, std::vector<StatePiece> &result) const;
  void meetAll();
  void dropSpaces();
  std::vector<Target> targetsOf(const TensorSource &source);
  Target targetOf(const TensorSource::Item &item);
  static void readMean(const TensorSource &source, size_t item, const Target &target);

  const Package &package;
  Mesh mesh;
  StatePlaces places;
  std::unique_ptr<StateFiles> parameterFiles, optimizerFiles; // made when they are needed; outlive the states
  int64_t hostElements = 0;                                   // that files have left in host memory
  std::optional<std::set<std::string>> wholeStates; // of all entries, those that something works on as a whole
  std::set<std::string> uncutStates;
  std::map<SpaceKey, AlignedBuffer> spaces;
  std::map<std::string, State> states;
};

} // namespace ds
#endif
