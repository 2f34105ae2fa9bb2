// deepstride._core: the C API as Python objects. Packages and sessions keep their handles, arrays of results keep the
// memory that they are in, and calls leave other threads of Python running. Everything that has a choice is in Python.
#include "python/src/Status.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <unistd.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

using Input = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

class Package {
public:
  Package(const std::string &path, bool isVerified, const std::optional<std::string> &variant, bool isMapped) {
    ds_load_options options = {};
    options.struct_size = sizeof(options);
    options.skip_verification = !isVerified;
    options.variant = variant ? variant->c_str() : nullptr;
    options.map_weights = isMapped;
    ds_package *loaded = nullptr;
    withoutGil([&] { return ds_package_load(path.c_str(), &options, &loaded); });
    handle.reset(loaded);
  }

  const ds_package *get() const { return handle.get(); }

  nb::list variants() const {
    nb::list names;
    for (size_t i = 0; const char *name = ds_package_variant_name(get(), i); ++i)
      names.append(name);
    return names;
  }

  std::string variant() const { return ds_package_chosen_variant(get()); }

  nb::list entries() const {
    nb::list names;
    for (size_t i = 0; const char *name = ds_package_entry_name(get(), i); ++i)
      names.append(name);
    return names;
  }

  // (name, type, texts of sizes or None where the rank varies, bound or 0) for each tensor.
  nb::list tensors(size_t entry, int list) const {
    nb::list infos;
    for (size_t i = 0; const ds_tensor_info *info = ds_package_tensor(get(), entry, ds_tensor_list(list), i); ++i) {
      nb::object shape = nb::none();
      if (info->rank != DS_RANK_VARIES) {
        nb::list sizes;
        for (size_t axis = 0; axis < info->rank; ++axis)
          sizes.append(info->shape[axis]);
        shape = sizes;
      }
      infos.append(nb::make_tuple(info->name, ds_type_name(info->type), shape, info->bound));
    }
    return infos;
  }

private:
  struct Freer {
    void operator()(ds_package *package) const { ds_package_free(package); }
  };
  std::unique_ptr<ds_package, Freer> handle;
};

struct OutputsFreer {
  void operator()(ds_outputs *outputs) const { ds_outputs_free(outputs); }
};
using Outputs = std::unique_ptr<ds_outputs, OutputsFreer>;

// Memory of results that no array uses any more, for the next call. One is enough: who keeps results needs new memory
// anyway, and who drops them needs one set.
class Spare {
public:
  Outputs take() {
    std::lock_guard<std::mutex> lock(mutex);
    return std::move(outputs);
  }
  void give(Outputs unused) {
    std::lock_guard<std::mutex> lock(mutex);
    outputs = std::move(unused);
  }

private:
  std::mutex mutex;
  Outputs outputs;
};

// What the arrays of one call share: they own its results.
struct Results {
  Outputs outputs;
  std::shared_ptr<Spare> spare;

  ~Results() {
    if (outputs)
      spare->give(std::move(outputs));
  }
};

using nb::dlpack::dtype_code;

struct TypeCode {
  ds_type type;
  dtype_code code;
  uint8_t bits;
};

// Types of the runtime and of DLPack. Integers narrower than a byte lie in bytes, so they are bytes to others.
constexpr TypeCode typeCodes[] = {
    {DS_F64, dtype_code::Float, 64},
    {DS_F32, dtype_code::Float, 32},
    {DS_F16, dtype_code::Float, 16},
    {DS_BF16, dtype_code::Bfloat, 16},
    {DS_I64, dtype_code::Int, 64},
    {DS_I32, dtype_code::Int, 32},
    {DS_I16, dtype_code::Int, 16},
    {DS_I8, dtype_code::Int, 8},
    {DS_U64, dtype_code::UInt, 64},
    {DS_U32, dtype_code::UInt, 32},
    {DS_U16, dtype_code::UInt, 16},
    {DS_U8, dtype_code::UInt, 8},
    {DS_I1, dtype_code::Bool, 8},
    {DS_F8E4M3FN, dtype_code::Float8_E4M3FN, 8},
    {DS_F8E4M3FNUZ, dtype_code::Float8_E4M3FNUZ, 8},
    {DS_F8E5M2, dtype_code::Float8_E5M2, 8},
    {DS_F8E5M2FNUZ, dtype_code::Float8_E5M2FNUZ, 8},
    {DS_F8E8M0, dtype_code::Float8_E8M0FNU, 8},
    {DS_F4E2M1, dtype_code::UInt, 8},
    {DS_I4, dtype_code::Int, 8},
    {DS_U4, dtype_code::UInt, 8},
    {DS_I2, dtype_code::Int, 8},
    {DS_U2, dtype_code::UInt, 8},
};

nb::dlpack::dtype dtypeOf(ds_type type, bool isForNumpy) {
  for (const TypeCode &known : typeCodes)
    if (known.type == type) {
      bool isFloat = known.code == dtype_code::Bfloat || known.code >= dtype_code::Float8_E3M4;
      // NumPy lacks these: it gets the bits, which deepstride._arrays names.
      dtype_code code = isForNumpy && isFloat ? dtype_code::UInt : known.code;
      return {static_cast<uint8_t>(code), known.bits, 1};
    }
  return {};
}

ds_type typeNamed(const std::string &name) {
  for (const TypeCode &known : typeCodes)
    if (ds_type_name(known.type) == name)
      return known.type;
  refuse("no type '" + name + "'");
  return DS_F32;
}

ds_type typeOf(const std::string &input, nb::dlpack::dtype dtype) {
  for (const TypeCode &known : typeCodes) // the first of a code is the type that has it by itself
    if (static_cast<uint8_t>(known.code) == dtype.code && known.bits == dtype.bits && dtype.lanes == 1)
      return known.type;
  refuse("input '" + input + "': expected elements of a type that packages have, found " + std::to_string(dtype.bits) +
         " bits of DLPack's type code " + std::to_string(dtype.code));
  return DS_F32;
}

// A process that was forked has the memory of a session, but none of its threads, and locks as they were: to end a
// session there could wait for ever.
struct SessionFreer {
  pid_t process = getpid();
  void operator()(ds_session *session) const {
    if (getpid() == process)
      ds_session_free(session);
  }
};

class Session {
public:
  Session(const Package &package, unsigned threads) : spare(std::make_shared<Spare>()) {
    ds_session_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    ds_session *created = nullptr;
    withoutGil([&] { return ds_session_create(package.get(), &options, &created); });
    handle.reset(created);
  }

  void pin(const std::string &dimension, int64_t value) {
    withoutGil([&] { return ds_session_pin(handle.get(), dimension.c_str(), value); });
  }

  // One array per output, in the order of the package. `types` gives the type of an input where its array cannot.
  nb::list run(size_t entry, nb::list names, nb::list arrays, nb::list types, bool isForNumpy) {
    size_t count = nb::len(names);
    std::vector<std::string> texts(count);
    std::vector<Input> held;
    std::vector<std::vector<int64_t>> shapes(count);
    std::vector<ds_tensor> inputs;
    held.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      texts[i] = nb::cast<std::string>(names[i]);
      Input array;
      if (!nb::try_cast(arrays[i], array))
        refuse("input '" + texts[i] + "': expected an array in memory of the CPU, found " +
               nb::cast<std::string>(nb::str(nb::handle(arrays[i]).type())));
      held.push_back(array);
      for (size_t axis = 0; axis < array.ndim(); ++axis)
        shapes[i].push_back(static_cast<int64_t>(array.shape(axis)));
      ds_type type =
          nb::handle(types[i]).is_none() ? typeOf(texts[i], array.dtype()) : typeNamed(nb::cast<std::string>(types[i]));
      if (ds_type_size(type) * 8 != array.dtype().bits)
        refuse("input '" + texts[i] + "': expected elements of " + std::to_string(ds_type_size(type)) + " bytes");
      inputs.push_back({sizeof(ds_tensor), texts[i].c_str(), type, shapes[i].size(), shapes[i].data(),
                        const_cast<void *>(array.data())});
    }
    auto results = std::make_unique<Results>();
    results->spare = spare;
    ds_outputs *outputs = spare->take().release();
    ds_status *status;
    {
      nb::gil_scoped_release release;
      status = ds_session_run(handle.get(), entry, inputs.data(), count, &outputs);
    }
    results->outputs.reset(outputs);
    check(status);
    return arraysOf(std::move(results), isForNumpy);
  }

  void saveStates(const std::string &path) {
    withoutGil([&] { return ds_session_save_states(handle.get(), path.c_str()); });
  }
  void restoreStates(const std::string &path) {
    withoutGil([&] { return ds_session_restore_states(handle.get(), path.c_str()); });
  }
  void resetStates() {
    withoutGil([&] { return ds_session_reset_states(handle.get()); });
  }

private:
  static nb::list arraysOf(std::unique_ptr<Results> results, bool isForNumpy) {
    const ds_outputs *outputs = results->outputs.get();
    nb::capsule owner(results.get(), [](void *memory) noexcept { delete static_cast<Results *>(memory); });
    results.release();
    nb::list arrays;
    for (size_t i = 0; const ds_tensor *tensor = ds_outputs_get(outputs, i); ++i) {
      std::vector<size_t> shape(tensor->shape, tensor->shape + tensor->rank);
      nb::dlpack::dtype dtype = dtypeOf(tensor->type, isForNumpy);
      if (isForNumpy)
        arrays.append(
            nb::cast(nb::ndarray<nb::numpy>(tensor->data, shape.size(), shape.data(), owner, nullptr, dtype)));
      else
        arrays.append(
            nb::cast(nb::ndarray<nb::array_api>(tensor->data, shape.size(), shape.data(), owner, nullptr, dtype)));
    }
    return arrays;
  }

  std::unique_ptr<ds_session, SessionFreer> handle;
  std::shared_ptr<Spare> spare;
};

void translate(const std::exception_ptr &thrown, void *) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure &failure) {
    nb::object error = nb::module_::import_("deepstride._errors").attr("of_status")(int(failure.code), failure.message);
    PyErr_SetObject(error.type().ptr(), error.ptr());
  }
}

} // namespace

NB_MODULE(_core, module) {
  nb::register_exception_translator(translate);
  addEngine(module);
  module.def("runtime_version", [] { return std::string(ds_runtime_version()); });
  nb::class_<Package>(module, "Package")
      .def(nb::init<const std::string &, bool, const std::optional<std::string> &, bool>(), nb::arg("path"),
           nb::arg("verify"), nb::arg("variant").none(), nb::arg("mapped"))
      .def_prop_ro("variants", &Package::variants)
      .def_prop_ro("variant", &Package::variant)
      .def_prop_ro("entries", &Package::entries)
      .def("tensors", &Package::tensors, nb::arg("entry"), nb::arg("list"));
  nb::class_<Session>(module, "Session")
      .def(nb::init<const Package &, unsigned>(), nb::arg("package"), nb::arg("threads"))
      .def("pin", &Session::pin, nb::arg("dimension"), nb::arg("value"))
      .def("run", &Session::run, nb::arg("entry"), nb::arg("names"), nb::arg("arrays"), nb::arg("types"),
           nb::arg("numpy"))
      .def("save_states", &Session::saveStates, nb::arg("path"))
      .def("restore_states", &Session::restoreStates, nb::arg("path"))
      .def("reset_states", &Session::resetStates);
}
