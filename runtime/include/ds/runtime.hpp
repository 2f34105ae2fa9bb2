// The runtime for C++17: ds/runtime.h and ds/trainer.h with owners in the place of handles and exceptions in the place
// of statuses. Header only, so that the library's interface stays C. See docs/embedding.md for a whole program.
//
// What is said in the C headers about threads, lifetimes and memory holds here, too. Objects can be moved, not copied;
// one that was moved from can be destroyed and assigned to, nothing else. Names of tensors, packages and so on are
// copied, their elements never.
#ifndef DEEPSTRIDE_RUNTIME_HPP
#define DEEPSTRIDE_RUNTIME_HPP

#include "ds/runtime.h"
#include "ds/trainer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ds {
// Apart from what a static library holds under the same names.
inline namespace client {

class Error : public std::runtime_error {
public:
  Error(ds_status_code code, const std::string &message) : std::runtime_error(message), code(code) {}
  ds_status_code getCode() const noexcept { return code; }

private:
  ds_status_code code;
};

// Throws what a status says; takes it over.
inline void check(ds_status *status) {
  if (!status)
    return;
  std::unique_ptr<ds_status, void (*)(ds_status *)> owner(status, ds_status_free);
  throw Error(ds_status_get_code(status), ds_status_message(status));
}

// Elements of somebody else's, one after the other.
template <typename T> class Span {
public:
  Span() = default;
  Span(T *data, std::size_t size) : first(data), count(size) {}

  T *data() const { return first; }
  std::size_t size() const { return count; }
  bool empty() const { return count == 0; }
  T *begin() const { return first; }
  T *end() const { return first + count; }
  T &operator[](std::size_t index) const { return first[index]; }

private:
  T *first = nullptr;
  std::size_t count = 0;
};

// The ds_type of a C++ type. float16 and kin have none: their tensors are made from a ds_type and read by data().
template <typename T> constexpr ds_type typeOf() {
  using Element = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Element, float>)
    return DS_F32;
  else if constexpr (std::is_same_v<Element, double>)
    return DS_F64;
  else if constexpr (std::is_same_v<Element, bool>)
    return DS_I1;
  else {
    static_assert(std::is_integral_v<Element>, "no such element type: give a ds_type");
    constexpr bool isSigned = std::is_signed_v<Element>;
    if constexpr (sizeof(Element) == 1)
      return isSigned ? DS_I8 : DS_U8;
    else if constexpr (sizeof(Element) == 2)
      return isSigned ? DS_I16 : DS_U16;
    else if constexpr (sizeof(Element) == 4)
      return isSigned ? DS_I32 : DS_U32;
    else
      return isSigned ? DS_I64 : DS_U64;
  }
}

// A dense row-major tensor in somebody else's memory: an input, a buffer for an output, or a result, which is valid as
// long as what it came from. An empty name goes by position.
class Tensor {
public:
  Tensor(std::string name, ds_type type, void *data, std::vector<std::int64_t> shape)
      : label(std::move(name)), elements(type), memory(data), dimensions(std::move(shape)) {}
  template <typename T, typename = std::enable_if_t<!std::is_const_v<T> && !std::is_void_v<T>>>
  Tensor(std::string name, T *data, std::vector<std::int64_t> shape)
      : Tensor(std::move(name), typeOf<T>(), data, std::move(shape)) {}
  // For inputs, which are not written.
  template <typename T, typename = std::enable_if_t<!std::is_void_v<T>>>
  Tensor(std::string name, const T *data, std::vector<std::int64_t> shape)
      : Tensor(std::move(name), typeOf<T>(), const_cast<T *>(data), std::move(shape)) {}
  explicit Tensor(const ds_tensor &tensor)
      : Tensor(tensor.name ? tensor.name : "", tensor.type, tensor.data,
               std::vector<std::int64_t>(tensor.shape, tensor.shape + tensor.rank)) {}

  const std::string &name() const { return label; }
  ds_type type() const { return elements; }
  const std::vector<std::int64_t> &shape() const { return dimensions; }
  void *data() const { return memory; }

  std::size_t size() const { // elements
    std::size_t count = 1;
    for (std::int64_t dimension : dimensions)
      count *= static_cast<std::size_t>(dimension);
    return count;
  }
  std::size_t bytes() const { return size() * ds_type_size(elements); }

  // Throws Error(DS_STATUS_INVALID_ARGUMENT) where T is not the type of the elements.
  template <typename T> Span<T> as() const {
    if (typeOf<T>() != elements)
      throw Error(DS_STATUS_INVALID_ARGUMENT,
                  "tensor '" + label + "': elements are " + typeName(elements) + ", not " + typeName(typeOf<T>()));
    return {static_cast<T *>(memory), size()};
  }

  // For the C functions; lives as long as this tensor.
  ds_tensor c() const {
    return {sizeof(ds_tensor), label.empty() ? nullptr : label.c_str(),
            elements,          dimensions.size(),
            dimensions.data(), memory};
  }

private:
  static std::string typeName(ds_type type) { return ds_type_name(type) ? ds_type_name(type) : "no type"; }

  std::string label;
  ds_type elements;
  void *memory;
  std::vector<std::int64_t> dimensions;
};

namespace detail {
template <typename T, void (*Free)(T *)> struct Freer {
  void operator()(T *object) const { Free(object); }
};
template <typename T, void (*Free)(T *)> using Handle = std::unique_ptr<T, Freer<T, Free>>;

inline std::vector<ds_tensor> cTensors(const std::vector<Tensor> &tensors) {
  std::vector<ds_tensor> found;
  found.reserve(tensors.size());
  for (const Tensor &tensor : tensors)
    found.push_back(tensor.c());
  return found;
}
} // namespace detail

// An input, output or state as a package describes it.
struct TensorInfo {
  explicit TensorInfo(const ds_tensor_info &info)
      : name(info.name), type(info.type), isRankKnown(info.rank != DS_RANK_VARIES), bound(info.bound) {
    if (isRankKnown)
      shape.assign(info.shape, info.shape + info.rank);
  }

  std::string name;
  ds_type type;
  bool isRankKnown;
  std::vector<std::string> shape; // "128", "batch", "past + 1"
  std::int64_t bound;             // of integers; 0 for none
};

// A file of a package in memory, which must outlive the package and what is made of it.
struct File {
  std::string name;
  const void *data;
  std::size_t size;
};

class Package {
public:
  explicit Package(const std::string &path) : Package(path, options()) {}
  Package(const std::string &path, const ds_load_options &options) {
    ds_package *loaded = nullptr;
    check(ds_package_load(path.c_str(), &options, &loaded));
    handle.reset(loaded);
  }
  explicit Package(const std::vector<File> &files) : Package(files, options()) {}
  Package(const std::vector<File> &files, const ds_load_options &options) {
    std::vector<ds_file> list;
    for (const File &file : files)
      list.push_back({sizeof(ds_file), file.name.c_str(), file.data, file.size});
    ds_package *loaded = nullptr;
    check(ds_package_load_memory(list.data(), list.size(), &options, &loaded));
    handle.reset(loaded);
  }

  // To be changed and given to a constructor.
  static ds_load_options options() { return {sizeof(ds_load_options), 0, nullptr, 0}; }

  std::string variant() const { return ds_package_chosen_variant(handle.get()); }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < ds_package_entry_count(handle.get()); ++i)
      names.push_back(ds_package_entry_name(handle.get(), i));
    return names;
  }
  // The number of an entry; throws Error(DS_STATUS_INVALID_ARGUMENT).
  std::size_t entry(const std::string &name) const {
    std::string legal;
    for (std::size_t i = 0; i < ds_package_entry_count(handle.get()); ++i) {
      std::string found = ds_package_entry_name(handle.get(), i);
      if (found == name)
        return i;
      legal += (legal.empty() ? "" : ", ") + found;
    }
    throw Error(DS_STATUS_INVALID_ARGUMENT, "no entry '" + name + "', expected one of " + legal);
  }
  std::vector<TensorInfo> inputs(std::size_t entry = 0) const { return list(entry, DS_INPUTS); }
  std::vector<TensorInfo> outputs(std::size_t entry = 0) const { return list(entry, DS_OUTPUTS); }
  std::vector<TensorInfo> states(std::size_t entry = 0) const { return list(entry, DS_STATES); }

  ds_package *c() const { return handle.get(); }

private:
  std::vector<TensorInfo> list(std::size_t entry, ds_tensor_list which) const {
    std::vector<TensorInfo> infos;
    for (std::size_t i = 0; i < ds_package_tensor_count(handle.get(), entry, which); ++i)
      infos.emplace_back(*ds_package_tensor(handle.get(), entry, which, i));
    return infos;
  }

  detail::Handle<ds_package, ds_package_free> handle;
};

// What calls gave. Tensors are valid until the outputs are used for another call or destroyed; moving changes nothing.
class Outputs {
public:
  Outputs() = default;

  std::size_t size() const { return ds_outputs_count(handle.get()); }
  // Of any integral type: a literal 0 would be a null pointer to a name, too.
  template <typename Index, typename = std::enable_if_t<std::is_integral_v<Index>>>
  Tensor operator[](Index index) const {
    const ds_tensor *found = ds_outputs_get(handle.get(), static_cast<std::size_t>(index));
    if (!found)
      throw Error(DS_STATUS_INVALID_ARGUMENT,
                  "no output " + std::to_string(index) + ", expected less than " + std::to_string(size()));
    return Tensor(*found);
  }
  Tensor operator[](const std::string &name) const {
    std::string legal;
    for (std::size_t i = 0; i < size(); ++i) {
      if (name == ds_outputs_get(handle.get(), i)->name)
        return (*this)[i];
      legal += (legal.empty() ? "" : ", ") + std::string(ds_outputs_get(handle.get(), i)->name);
    }
    throw Error(DS_STATUS_INVALID_ARGUMENT, "no output '" + name + "', expected one of " + legal);
  }
  Tensor operator[](const char *name) const { return (*this)[std::string(name)]; }

  // Takes over what a C function puts into a ds_outputs *; gives it what is there for use.
  template <typename Call> void update(Call call) {
    ds_outputs *outputs = handle.get();
    check(call(&outputs)); // a call that fails leaves it as it was
    if (outputs != handle.get())
      handle.reset(outputs);
  }

private:
  detail::Handle<ds_outputs, ds_outputs_free> handle;
};

// N ranks as threads of this process.
class Group {
public:
  explicit Group(unsigned ranks, double timeoutSeconds = 60) {
    ds_group *made = nullptr;
    check(ds_group_create(ranks, timeoutSeconds, &made));
    handle.reset(made);
  }
  ds_group *c() const { return handle.get(); }

private:
  detail::Handle<ds_group, ds_group_free> handle;
};

class Session {
public:
  explicit Session(const Package &package, unsigned threads = 0) : Session(package, threads, nullptr, 0) {}
  Session(const Package &package, unsigned threads, const Group &group, unsigned rank)
      : Session(package, threads, group.c(), rank) {}

  void pin(const std::string &dimension, std::int64_t value) {
    check(ds_session_pin(handle.get(), dimension.c_str(), value));
  }
  void unpin(const std::string &dimension) { check(ds_session_unpin(handle.get(), dimension.c_str())); }

  Outputs run(const std::vector<Tensor> &inputs, std::size_t entry = 0) {
    Outputs outputs;
    run(inputs, outputs, entry);
    return outputs;
  }
  // The same into the memory of earlier outputs, whose present tensors may be inputs.
  void run(const std::vector<Tensor> &inputs, Outputs &outputs, std::size_t entry = 0) {
    runInto(inputs, {}, outputs, entry);
  }
  // A buffer for every output.
  void runInto(const std::vector<Tensor> &inputs, const std::vector<Tensor> &buffers, std::size_t entry = 0) {
    std::vector<ds_tensor> in = detail::cTensors(inputs), out = detail::cTensors(buffers);
    check(ds_session_run_into(handle.get(), entry, in.data(), in.size(), out.data(), out.size(), nullptr));
  }
  // Buffers for some of them.
  void runInto(const std::vector<Tensor> &inputs, const std::vector<Tensor> &buffers, Outputs &outputs,
               std::size_t entry = 0) {
    std::vector<ds_tensor> in = detail::cTensors(inputs), out = detail::cTensors(buffers);
    outputs.update([&](ds_outputs **kept) {
      return ds_session_run_into(handle.get(), entry, in.data(), in.size(), out.data(), out.size(), kept);
    });
  }

  void cancel() { check(ds_session_cancel(handle.get())); }

  // Of calls that begin later; an empty function ends it. It must not throw, and is kept until the session's end, since
  // a call may be under way.
  void observe(std::function<void(const ds_launch_event &)> observer) {
    if (!observer)
      return check(ds_session_observe(handle.get(), nullptr, nullptr));
    observers.push_back(std::move(observer));
    auto tell = [](void *context, const ds_launch_event *event) noexcept {
      (*static_cast<std::function<void(const ds_launch_event &)> *>(context))(*event);
    };
    check(ds_session_observe(handle.get(), tell, &observers.back()));
  }

  void saveStates(const std::string &path) { check(ds_session_save_states(handle.get(), path.c_str())); }
  void restoreStates(const std::string &path) { check(ds_session_restore_states(handle.get(), path.c_str())); }
  void resetStates() { check(ds_session_reset_states(handle.get())); }

  ds_session *c() const { return handle.get(); }

private:
  Session(const Package &package, unsigned threads, ds_group *group, unsigned rank) {
    ds_session_options options = {sizeof(options), threads, group, rank};
    ds_session *made = nullptr;
    check(ds_session_create(package.c(), &options, &made));
    handle.reset(made);
  }

  std::list<std::function<void(const ds_launch_event &)>> observers;
  detail::Handle<ds_session, ds_session_free> handle;
};

// A model in training, see ds/trainer.h.
class Trainer {
public:
  explicit Trainer(const Package &package, unsigned threads = 0) {
    ds_trainer_options options = {sizeof(options), threads};
    ds_trainer *made = nullptr;
    check(ds_trainer_create(package.c(), &options, &made));
    handle.reset(made);
  }

  std::vector<TensorInfo> inputs() const {
    std::vector<TensorInfo> infos;
    for (std::size_t i = 0; i < ds_trainer_input_count(handle.get()); ++i)
      infos.emplace_back(*ds_trainer_input(handle.get(), i));
    return infos;
  }
  // The trainer's own memory, to be read and written between calls.
  std::vector<Tensor> parameters() const { return list(ds_trainer_parameter_count, ds_trainer_parameter); }
  std::vector<Tensor> gradients() const { return list(ds_trainer_parameter_count, ds_trainer_gradient); }
  std::vector<Tensor> states() const { return list(ds_trainer_state_count, ds_trainer_state); }

  struct Evaluation {
    double loss;
    std::int64_t counted, correct; // -1 where the loss is not of classes
  };
  Evaluation forward(const std::vector<Tensor> &inputs, Outputs &outputs) {
    std::vector<ds_tensor> in = detail::cTensors(inputs);
    ds_evaluation found = {sizeof(found), 0, 0, 0};
    outputs.update(
        [&](ds_outputs **kept) { return ds_trainer_forward(handle.get(), in.data(), in.size(), &found, kept); });
    return {found.loss, found.counted, found.correct};
  }
  double backward(const std::vector<Tensor> &inputs, double weight = 1) {
    std::vector<ds_tensor> in = detail::cTensors(inputs);
    double loss = 0;
    check(ds_trainer_backward(handle.get(), in.data(), in.size(), weight, &loss));
    return loss;
  }
  void zeroGradients() { check(ds_trainer_zero_gradients(handle.get())); }

  struct Step {
    double gradientNorm;
    bool isFinite; // false: nothing was updated
  };
  Step step() {
    double norm = 0;
    int isFinite = 0;
    check(ds_trainer_step(handle.get(), &norm, &isFinite));
    return {norm, isFinite != 0};
  }

  void setSeed(std::uint64_t seed) { check(ds_trainer_set_seed(handle.get(), seed)); }
  void setLearningRate(double rate) { check(ds_trainer_set_learning_rate(handle.get(), rate)); }
  void setMomentum(double momentum) { check(ds_trainer_set_momentum(handle.get(), momentum)); }
  std::uint64_t seed() const { return ds_trainer_seed(handle.get()); }
  double learningRate() const { return ds_trainer_learning_rate(handle.get()); }
  double momentum() const { return ds_trainer_momentum(handle.get()); }
  double lossScale() const { return ds_trainer_loss_scale(handle.get()); }
  std::int64_t steps() const { return ds_trainer_steps(handle.get()); }
  std::int64_t skippedSteps() const { return ds_trainer_skipped_steps(handle.get()); }

  // An empty tag means global_step<steps>; clientState is JSON text, or empty.
  void save(const std::string &folder, const std::string &tag = "", const std::string &clientState = "") {
    check(ds_trainer_save(handle.get(), folder.c_str(), orNull(tag), orNull(clientState)));
  }
  // An empty tag means the latest. What save was given as clientState; empty where it was nothing.
  std::string load(const std::string &folder, const std::string &tag = "") {
    const char *clientState = nullptr;
    check(ds_trainer_load(handle.get(), folder.c_str(), orNull(tag), &clientState));
    return clientState ? clientState : "";
  }

  ds_trainer *c() const { return handle.get(); }

private:
  static const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }
  template <typename Count, typename Get> std::vector<Tensor> list(Count count, Get get) const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < count(handle.get()); ++i)
      tensors.emplace_back(*get(handle.get(), i));
    return tensors;
  }

  detail::Handle<ds_trainer, ds_trainer_free> handle;
};

} // namespace client
} // namespace ds
#endif
