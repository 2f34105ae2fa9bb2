// ds/engine.h for C++17, as ds/runtime.hpp is for ds/runtime.h: training as a ds_config.json says.
//
//   ds::Engine engine(package);
//   while (engine.steps() < steps) {
//     for (std::int64_t i = 0; i < engine.microBatches(); ++i)
//       engine.microBatch({{"x", x, {4, 8}}, {"labels", labels, {4}}});
//     ds_step record = engine.step();
//   }
#ifndef DEEPSTRIDE_ENGINE_HPP
#define DEEPSTRIDE_ENGINE_HPP

#include "ds/engine.h"
#include "ds/runtime.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ds {
inline namespace client {

class Engine {
public:
  struct Options {
    unsigned threads = 0;
    std::string config; // a ds_config.json; empty: the compiled one
    std::uint64_t seed = 0;
    bool isAlone = false;
  };
  explicit Engine(const Package &package) : Engine(package, Options()) {}
  Engine(const Package &package, const Options &options) {
    ds_engine_options given = {sizeof(given), options.threads, orNull(options.config), options.seed, options.isAlone};
    ds_engine *made = nullptr;
    check(ds_engine_create(package.c(), &given, &made));
    handle.reset(made);
  }

  unsigned rank() const { return ds_engine_rank(handle.get()); }
  unsigned world() const { return ds_engine_world(handle.get()); }
  std::vector<std::string> notes() const {
    std::vector<std::string> texts;
    for (std::size_t i = 0; const char *text = ds_engine_note(handle.get(), i); ++i)
      texts.emplace_back(text);
    return texts;
  }
  std::vector<TensorInfo> inputs() const {
    std::vector<TensorInfo> infos;
    for (std::size_t i = 0; i < ds_engine_input_count(handle.get()); ++i)
      infos.emplace_back(*ds_engine_input(handle.get(), i));
    return infos;
  }
  std::int64_t microBatchSize() const { return ds_engine_micro_batch_size(handle.get()); }
  std::int64_t microBatches() const { return ds_engine_micro_batches(handle.get()); }
  std::int64_t microBatchesDone() const { return ds_engine_micro_batches_done(handle.get()); }

  // The loss of this rank's next micro-batch of the step.
  double microBatch(const std::vector<Tensor> &inputs) {
    std::vector<ds_tensor> in = detail::cTensors(inputs);
    double loss = 0;
    check(ds_engine_micro_batch(handle.get(), in.data(), in.size(), &loss));
    return loss;
  }
  ds_step step() {
    ds_step done = {};
    done.struct_size = sizeof(done);
    check(ds_engine_step(handle.get(), &done));
    return done;
  }
  ds_evaluation evaluate(const std::vector<Tensor> &inputs) {
    std::vector<ds_tensor> in = detail::cTensors(inputs);
    ds_evaluation found = {};
    found.struct_size = sizeof(found);
    check(ds_engine_evaluate(handle.get(), in.data(), in.size(), &found, nullptr));
    return found;
  }

  std::int64_t steps() const { return ds_engine_steps(handle.get()); }
  std::int64_t skippedSteps() const { return ds_engine_skipped_steps(handle.get()); }
  double learningRate() const { return ds_engine_learning_rate(handle.get()); } // of the next step
  double momentum() const { return ds_engine_momentum(handle.get()); }
  double lossScale() const { return ds_engine_loss_scale(handle.get()); }

  // As Trainer's.
  void save(const std::string &folder, const std::string &tag = "", const std::string &clientState = "") {
    check(ds_engine_save(handle.get(), folder.c_str(), orNull(tag), orNull(clientState)));
  }
  std::string load(const std::string &folder, const std::string &tag = "") {
    const char *clientState = nullptr;
    check(ds_engine_load(handle.get(), folder.c_str(), orNull(tag), &clientState));
    return clientState ? clientState : "";
  }

  ds_engine *c() const { return handle.get(); }

private:
  static const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

  detail::Handle<ds_engine, ds_engine_free> handle;
};

} // namespace client
} // namespace ds
#endif
