// deepstride._core.Engine: ds/engine.h as a Python object. What DeepSpeed's names mean is in deepstride/_training.py.
#include "ds/engine.h"
#include "python/src/Status.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <unistd.h>
#include <vector>

namespace nb = nanobind;

namespace {

using Input = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

ds_type typeNamed(const std::string &name) {
  for (int type = 0; const char *known = ds_type_name(static_cast<ds_type>(type)); ++type)
    if (known == name)
      return static_cast<ds_type>(type);
  refuse("no type '" + name + "'");
  return DS_F32;
}

// (name, type, array) of each input of a micro-batch, for as long as a call runs.
class Batch {
public:
  explicit Batch(nb::list given) {
    size_t count = nb::len(given);
    names.reserve(count);
    arrays.reserve(count);
    shapes.reserve(count);
    for (nb::handle item : given) {
      auto [name, type, array] = nb::cast<std::tuple<std::string, std::string, Input>>(item);
      names.push_back(name);
      arrays.push_back(array);
      std::vector<int64_t> &shape = shapes.emplace_back();
      for (size_t axis = 0; axis < array.ndim(); ++axis)
        shape.push_back(static_cast<int64_t>(array.shape(axis)));
      tensors.push_back({sizeof(ds_tensor), names.back().c_str(), typeNamed(type), shape.size(), shape.data(),
                         const_cast<void *>(array.data())});
    }
  }
  std::vector<ds_tensor> tensors;

private:
  std::vector<std::string> names;
  std::vector<Input> arrays;
  std::vector<std::vector<int64_t>> shapes;
};

class Engine {
public:
  Engine(const std::string &path, unsigned threads, const std::optional<std::string> &config, uint64_t seed,
         bool isAlone) {
    ds_package *package = nullptr;
    withoutGil([&] { return ds_package_load(path.c_str(), nullptr, &package); });
    ds_engine_options options = {sizeof(ds_engine_options), threads, config ? config->c_str() : nullptr, seed, isAlone};
    ds_engine *created = nullptr;
    ds_status *status;
    {
      nb::gil_scoped_release release;
      status = ds_engine_create(package, &options, &created);
      ds_package_free(package);
    }
    check(status);
    handle.reset(created);
  }
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;
  ~Engine() {
    if (getpid() != process) // forked: the threads that would be waited for are not here
      (void)handle.release();
  }

  void close() {
    nb::gil_scoped_release release; // ranks wait for what others still need
    handle.reset();
  }

  ds_engine *get() const {
    if (!handle)
      refuse("the engine is closed");
    return handle.get();
  }

  nb::list notes() const {
    nb::list texts;
    for (size_t i = 0; const char *text = ds_engine_note(get(), i); ++i)
      texts.append(text);
    return texts;
  }

  // (name, type, texts of sizes, bound or 0) of each input of a micro-batch.
  nb::list inputs() const {
    nb::list infos;
    for (size_t i = 0; const ds_tensor_info *info = ds_engine_input(get(), i); ++i) {
      nb::list sizes;
      for (size_t axis = 0; axis < info->rank; ++axis)
        sizes.append(info->shape[axis]);
      infos.append(nb::make_tuple(info->name, ds_type_name(info->type), sizes, info->bound));
    }
    return infos;
  }

  double microBatch(nb::list given) {
    Batch batch(given);
    double loss = 0;
    withoutGil([&] { return ds_engine_micro_batch(get(), batch.tensors.data(), batch.tensors.size(), &loss); });
    return loss;
  }

  // (loss, counted, correct); the last two -1 where the loss is not of classes.
  nb::tuple evaluate(nb::list given) {
    Batch batch(given);
    ds_evaluation found = {};
    found.struct_size = sizeof(found);
    withoutGil([&] { return ds_engine_evaluate(get(), batch.tensors.data(), batch.tensors.size(), &found, nullptr); });
    return nb::make_tuple(found.loss, found.counted, found.correct);
  }

  nb::tuple step() {
    ds_step done = {};
    done.struct_size = sizeof(done);
    withoutGil([&] { return ds_engine_step(get(), &done); });
    return nb::make_tuple(done.step, done.samples, done.loss, done.learning_rate, done.momentum, done.grad_norm,
                          done.loss_scale, done.is_skipped != 0);
  }

  void save(const std::string &folder, const std::optional<std::string> &tag, const std::optional<std::string> &state) {
    withoutGil([&] {
      return ds_engine_save(get(), folder.c_str(), tag ? tag->c_str() : nullptr, state ? state->c_str() : nullptr);
    });
  }

  std::optional<std::string> load(const std::string &folder, const std::optional<std::string> &tag) {
    const char *state = nullptr;
    withoutGil([&] { return ds_engine_load(get(), folder.c_str(), tag ? tag->c_str() : nullptr, &state); });
    return state ? std::optional<std::string>(state) : std::nullopt;
  }

private:
  struct Freer {
    void operator()(ds_engine *engine) const { ds_engine_free(engine); }
  };
  std::unique_ptr<ds_engine, Freer> handle;
  pid_t process = getpid();
};

} // namespace

void addEngine(nb::module_ &module) {
  nb::class_<Engine>(module, "Engine")
      .def(nb::init<const std::string &, unsigned, const std::optional<std::string> &, uint64_t, bool>(),
           nb::arg("path"), nb::arg("threads"), nb::arg("config").none(), nb::arg("seed"), nb::arg("alone"))
      .def("close", &Engine::close)
      .def_prop_ro("rank", [](const Engine &own) { return ds_engine_rank(own.get()); })
      .def_prop_ro("world", [](const Engine &own) { return ds_engine_world(own.get()); })
      .def_prop_ro("notes", &Engine::notes)
      .def_prop_ro("inputs", &Engine::inputs)
      .def_prop_ro("micro_batch_size", [](const Engine &own) { return ds_engine_micro_batch_size(own.get()); })
      .def_prop_ro("micro_batches", [](const Engine &own) { return ds_engine_micro_batches(own.get()); })
      .def_prop_ro("micro_batches_done", [](const Engine &own) { return ds_engine_micro_batches_done(own.get()); })
      .def_prop_ro("steps", [](const Engine &own) { return ds_engine_steps(own.get()); })
      .def_prop_ro("skipped_steps", [](const Engine &own) { return ds_engine_skipped_steps(own.get()); })
      .def_prop_ro("learning_rate", [](const Engine &own) { return ds_engine_learning_rate(own.get()); })
      .def_prop_ro("momentum", [](const Engine &own) { return ds_engine_momentum(own.get()); })
      .def_prop_ro("loss_scale", [](const Engine &own) { return ds_engine_loss_scale(own.get()); })
      .def("micro_batch", &Engine::microBatch, nb::arg("inputs"))
      .def("evaluate", &Engine::evaluate, nb::arg("inputs"))
      .def("step", &Engine::step)
      .def("save", &Engine::save, nb::arg("folder"), nb::arg("tag").none(), nb::arg("client_state").none())
      .def("load", &Engine::load, nb::arg("folder"), nb::arg("tag").none());
}
