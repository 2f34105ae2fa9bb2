// ds_trainer_* as a user of the installed library sees it, over a package whose training step is written by hand: the
// loss is the sum of x * w, so that gradients are sums of x, whatever w is.
#include "test/unit/runtime/PackageBuilder.h"

#include "ds/trainer.h"
#include "runtime/training/Checkpoint.h"
#include "runtime/training/CompiledSettings.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ds::test;
using Json = nlohmann::json;

namespace {

std::string messageOf(ds_status *status) {
  std::string text = status ? ds_status_message(status) : "";
  ds_status_free(status);
  return text;
}

// "2: message"
std::string codeAndMessage(ds_status *status) {
  std::string code = std::to_string(ds_status_get_code(status));
  return code + ": " + messageOf(status);
}

const std::string invalid = std::to_string(DS_STATUS_INVALID_ARGUMENT) + ": ";

std::vector<float> valuesOf(const ds_tensor *tensor) {
  const auto *data = static_cast<const float *>(tensor->data);
  return {data, data + 4};
}
using Floats = std::vector<float>;

class TrainerApiTest : public ::testing::Test {
protected:
  TrainerApiTest() { open(trainingManifest()); }
  ~TrainerApiTest() override { close(); }

  void open(const Json &manifest) {
    close();
    EXPECT_EQ(messageOf(ds_package_load(writePackage(folder.path(), manifest).c_str(), nullptr, &package)), "");
    EXPECT_EQ(messageOf(ds_trainer_create(package, nullptr, &trainer)), "");
    ds_package_free(package); // the trainer keeps what it needs
    package = nullptr;
  }
  void close() {
    ds_trainer_free(trainer);
    trainer = nullptr;
  }
  std::string backward(double weight = 1, double *loss = nullptr) {
    return codeAndMessage(ds_trainer_backward(trainer, inputs, 2, weight, loss));
  }
  Floats weights() { return valuesOf(ds_trainer_parameter(trainer, 0)); }
  Floats gradient() { return valuesOf(ds_trainer_gradient(trainer, 0)); }
  Floats running() { return valuesOf(ds_trainer_state(trainer, 1)); }
  float *gradientData() { return static_cast<float *>(ds_trainer_gradient(trainer, 0)->data); }

  TemporaryFolder folder;
  ds_package *package = nullptr;
  ds_trainer *trainer = nullptr;
  alignas(64) float x[8] = {1, 1, 1, 1, 2, 0, 0, 0};
  alignas(64) int64_t labels[2] = {0, 2};
  int64_t shape[2] = {2, 4}, rows[1] = {2};
  ds_tensor inputs[2] = {{sizeof(ds_tensor), "x", DS_F32, 2, shape, x},
                         {sizeof(ds_tensor), "labels", DS_I64, 1, rows, labels}};
};

TEST_F(TrainerApiTest, Describes) {
  ASSERT_EQ(ds_trainer_input_count(trainer), 2u);
  EXPECT_STREQ(ds_trainer_input(trainer, 0)->name, "x");
  EXPECT_STREQ(ds_trainer_input(trainer, 0)->shape[0], "n");
  EXPECT_STREQ(ds_trainer_input(trainer, 1)->name, "labels");
  EXPECT_EQ(ds_trainer_input(trainer, 1)->type, DS_I64);
  EXPECT_EQ(ds_trainer_input(trainer, 2), nullptr);
  ASSERT_EQ(ds_trainer_parameter_count(trainer), 1u);
  EXPECT_STREQ(ds_trainer_parameter(trainer, 0)->name, "w");
  EXPECT_EQ(ds_trainer_parameter(trainer, 0)->rank, 1u);
  EXPECT_EQ(ds_trainer_parameter(trainer, 0)->shape[0], 4);
  EXPECT_EQ(weights(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(gradient(), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(ds_trainer_parameter(trainer, 1), nullptr);
  EXPECT_EQ(ds_trainer_gradient(trainer, 1), nullptr);
  ASSERT_EQ(ds_trainer_state_count(trainer), 2u);
  EXPECT_STREQ(ds_trainer_state(trainer, 0)->name, "w/sum");
  EXPECT_STREQ(ds_trainer_state(trainer, 1)->name, "m");
  EXPECT_EQ(running(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(ds_trainer_state(trainer, 2), nullptr);
  EXPECT_EQ(ds_trainer_learning_rate(trainer), 1e-3);
  EXPECT_EQ(ds_trainer_momentum(trainer), 0.9);
  EXPECT_EQ(ds_trainer_loss_scale(trainer), 1);
}

TEST_F(TrainerApiTest, AddsGradientsUpUntilTheyBeginAnew) {
  double loss = 0, norm = 0;
  int isFinite = -1;
  ASSERT_EQ(backward(0.5, &loss), "0: ");
  EXPECT_EQ(loss, 12);
  ASSERT_EQ(backward(2), "0: ");
  EXPECT_EQ(gradient(), (Floats{7.5, 2.5, 2.5, 2.5}));
  ASSERT_EQ(messageOf(ds_trainer_set_learning_rate(trainer, 2)), "");
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, &norm, &isFinite)), "");
  EXPECT_EQ(norm, 75); // squared, in this package
  EXPECT_EQ(isFinite, 1);
  EXPECT_EQ(weights(), (Floats{-14, -3, -2, -1}));
  EXPECT_EQ(gradient(), (Floats{7.5, 2.5, 2.5, 2.5}));
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
  EXPECT_EQ(valuesOf(ds_trainer_state(trainer, 0)), (Floats{15, 5, 5, 5}));
  EXPECT_EQ(ds_trainer_steps(trainer), 2);
  ASSERT_EQ(messageOf(ds_trainer_zero_gradients(trainer)), "");
  EXPECT_EQ(gradient(), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(codeAndMessage(ds_trainer_step(trainer, nullptr, nullptr)).find(invalid + "step: there are no gradients"),
            0u);
  EXPECT_EQ(ds_trainer_steps(trainer), 2);
}

TEST_F(TrainerApiTest, WhatIsWrittenToTensorsCounts) {
  gradientData()[1] = 10;
  ASSERT_EQ(backward(), "0: ");
  EXPECT_EQ(gradient(), (Floats{3, 11, 1, 1}));
  static_cast<float *>(ds_trainer_parameter(trainer, 0)->data)[0] = 100;
  ds_evaluation evaluation = {sizeof(evaluation), 0, 0, 0};
  ds_outputs *outputs = nullptr;
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(messageOf(ds_trainer_forward(trainer, inputs, 2, &evaluation, &outputs)), "");
    EXPECT_EQ(evaluation.loss, 309);
    EXPECT_EQ(evaluation.counted, 2);
    EXPECT_EQ(evaluation.correct, 1);
    ASSERT_EQ(ds_outputs_count(outputs), 1u);
    EXPECT_STREQ(ds_outputs_get(outputs, 0)->name, "y");
    EXPECT_EQ(ds_outputs_get(outputs, 0)->shape[0], 2);
    EXPECT_EQ(valuesOf(ds_outputs_get(outputs, 0)), (Floats{100, 2, 3, 4}));
  }
  ds_outputs_free(outputs);
  EXPECT_EQ(gradient(), (Floats{3, 11, 1, 1}));
  ds_evaluation old = {2 * sizeof(size_t), 0, 7, 0}; // of an older header
  ASSERT_EQ(messageOf(ds_trainer_forward(trainer, inputs, 2, &old, nullptr)), "");
  EXPECT_EQ(old.loss, 309);
  EXPECT_EQ(old.counted, 7);
  ASSERT_EQ(messageOf(ds_trainer_forward(trainer, inputs, 2, nullptr, nullptr)), "");
}

TEST_F(TrainerApiTest, RefusesWhatIsWrong) {
  auto refused = [&](ds_status *status, const std::string &text) {
    std::string found = codeAndMessage(status);
    EXPECT_EQ(found.find(invalid), 0u) << found;
    EXPECT_NE(found.find(text), std::string::npos) << found;
  };
  double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  refused(ds_trainer_backward(trainer, inputs, 2, nan, nullptr), "weight: found nan");
  refused(ds_trainer_backward(trainer, inputs, 2, infinity, nullptr), "weight: found inf");
  refused(ds_trainer_backward(trainer, inputs, 1, 1, nullptr), "wrong number of inputs of a micro-batch, found 1");
  refused(ds_trainer_backward(trainer, nullptr, 2, 1, nullptr), "inputs is null");
  refused(ds_trainer_forward(trainer, nullptr, 2, nullptr, nullptr), "inputs is null");
  refused(ds_trainer_forward(trainer, inputs, 3, nullptr, nullptr), "found 3, expected 2");
  refused(ds_trainer_set_learning_rate(trainer, -1), "learning rate: found -1");
  refused(ds_trainer_set_learning_rate(trainer, nan), "learning rate: found nan");
  refused(ds_trainer_set_momentum(trainer, 1), "momentum: found 1");
  refused(ds_trainer_set_momentum(trainer, nan), "momentum: found nan");
  labels[1] = 3;
  const char *label = "input 'labels': sample 1 of the micro-batch, element 0: found label 3, expected 0 to 2";
  refused(ds_trainer_backward(trainer, inputs, 2, 1, nullptr), label);
  refused(ds_trainer_forward(trainer, inputs, 2, nullptr, nullptr), label);
  labels[1] = -100;
  EXPECT_EQ(backward(), "0: ");
  inputs[0].name = "z";
  refused(ds_trainer_backward(trainer, inputs, 2, 1, nullptr), "micro-batch: input 0: no input 'z'");
  inputs[0].name = "labels";
  refused(ds_trainer_backward(trainer, inputs, 2, 1, nullptr), "input 'labels' is given twice");
  inputs[0].name = inputs[1].name = nullptr;
  EXPECT_EQ(backward(), "0: ");
  ds_tensor right = inputs[1];
  for (ds_type type : {DS_F32, DS_I32}) {
    inputs[1].type = type;
    EXPECT_EQ(backward().find(std::to_string(DS_STATUS_SHAPE_MISMATCH)), 0u);
  }
  inputs[1] = right;
  inputs[1].rank = 0;
  EXPECT_NE(backward().find("wrong rank"), std::string::npos);
  inputs[1] = right;
  inputs[1].data = nullptr;
  EXPECT_NE(backward().find("no data"), std::string::npos);
  inputs[1] = right;
  inputs[1].struct_size = 8;
  refused(ds_trainer_backward(trainer, inputs, 2, 1, nullptr), "struct_size");
  inputs[1] = right;
  rows[0] = 1;
  EXPECT_NE(backward().find("'n' differs"), std::string::npos);
  rows[0] = -1;
  EXPECT_NE(backward(), "0: ");
  rows[0] = 2;
  EXPECT_EQ(gradient(), (Floats{6, 2, 2, 2}));
  ds_evaluation bad = {1, 0, 0, 0};
  refused(ds_trainer_forward(trainer, inputs, 2, &bad, nullptr), "ds_evaluation.struct_size is 1");
}

TEST_F(TrainerApiTest, NullIsRefused) {
  ds_trainer *none = nullptr;
  const char *state = nullptr;
  for (ds_status *status :
       {ds_trainer_create(nullptr, nullptr, &none), ds_trainer_create(nullptr, nullptr, nullptr),
        ds_trainer_forward(nullptr, inputs, 2, nullptr, nullptr), ds_trainer_backward(nullptr, inputs, 2, 1, nullptr),
        ds_trainer_zero_gradients(nullptr), ds_trainer_set_learning_rate(nullptr, 1),
        ds_trainer_set_momentum(nullptr, 0), ds_trainer_step(nullptr, nullptr, nullptr),
        ds_trainer_save(nullptr, "x", nullptr, nullptr), ds_trainer_save(trainer, nullptr, nullptr, nullptr),
        ds_trainer_load(nullptr, "x", nullptr, &state), ds_trainer_load(trainer, nullptr, nullptr, nullptr)})
    EXPECT_EQ(codeAndMessage(status).find(invalid), 0u);
  EXPECT_EQ(none, nullptr);
  ds_trainer_free(nullptr);
  EXPECT_EQ(ds_trainer_input_count(nullptr), 0u);
  EXPECT_EQ(ds_trainer_input(nullptr, 0), nullptr);
  EXPECT_EQ(ds_trainer_parameter_count(nullptr), 0u);
  EXPECT_EQ(ds_trainer_parameter(nullptr, 0), nullptr);
  EXPECT_EQ(ds_trainer_gradient(nullptr, 0), nullptr);
  EXPECT_EQ(ds_trainer_state_count(nullptr), 0u);
  EXPECT_EQ(ds_trainer_state(nullptr, 0), nullptr);
  EXPECT_EQ(ds_trainer_learning_rate(nullptr), 0);
  EXPECT_EQ(ds_trainer_momentum(nullptr), 0);
  EXPECT_EQ(ds_trainer_steps(nullptr), 0);
  EXPECT_EQ(ds_trainer_skipped_steps(nullptr), 0);
  EXPECT_EQ(ds_trainer_loss_scale(nullptr), 0);
}

TEST_F(TrainerApiTest, OtherPackagesAreRefused) {
  TemporaryFolder other;
  ds_package *plain = nullptr;
  ds_trainer *none = nullptr;
  ASSERT_EQ(messageOf(ds_package_load(writePackage(other.path()).c_str(), nullptr, &plain)), "");
  EXPECT_NE(codeAndMessage(ds_trainer_create(plain, nullptr, &none)).find("--mode=train"), std::string::npos);
  ds_trainer_options options = {sizeof(options), 5000};
  EXPECT_NE(codeAndMessage(ds_trainer_create(plain, &options, &none)).find("threads: found 5000"), std::string::npos);
  options.struct_size = 0;
  EXPECT_NE(codeAndMessage(ds_trainer_create(plain, &options, &none)).find("struct_size"), std::string::npos);
  EXPECT_EQ(none, nullptr);
  ds_package_free(plain);
}

TEST_F(TrainerApiTest, GradientsThatAreHalfAddedAreRefused) {
  const void *memory = gradientData();
  ASSERT_EQ(backward(), "0: ");
  x[0] = 1001; // fails when the gradients have been written
  std::string failure = backward();
  EXPECT_EQ(failure.find(std::to_string(DS_STATUS_EXECUTION)), 0u) << failure;
  x[0] = 1;
  for (const std::string &found :
       {backward(), codeAndMessage(ds_trainer_step(trainer, nullptr, nullptr)),
        codeAndMessage(ds_trainer_save(trainer, folder.file("run").c_str(), nullptr, nullptr))})
    EXPECT_EQ(found.find(std::to_string(DS_STATUS_BAD_STATE)), 0u) << found;
  EXPECT_EQ(messageOf(ds_trainer_forward(trainer, inputs, 2, nullptr, nullptr)), "");
  EXPECT_EQ(weights(), (Floats{1, 2, 3, 4}));
  ASSERT_EQ(messageOf(ds_trainer_zero_gradients(trainer)), "");
  EXPECT_EQ(messageOf(ds_trainer_save(trainer, folder.file("run").c_str(), nullptr, nullptr)), "");
  ASSERT_EQ(backward(), "0: ");
  EXPECT_EQ(gradientData(), memory);
  EXPECT_EQ(gradient(), (Floats{3, 1, 1, 1}));
}

TEST_F(TrainerApiTest, AStepThatOverflowsChangesNothing) {
  ASSERT_EQ(backward(), "0: ");
  gradientData()[2] = std::numeric_limits<float>::infinity();
  int isFinite = -1;
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, &isFinite)), "");
  EXPECT_EQ(isFinite, 0);
  EXPECT_EQ(weights(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(ds_trainer_steps(trainer), 1);
  EXPECT_EQ(ds_trainer_skipped_steps(trainer), 1);
}

// Each micro-batch moves it halfway to 1; the step keeps that, once, and from what is there.
TEST_F(TrainerApiTest, StepsKeepWhatStatisticsMovedTo) {
  ASSERT_EQ(backward(), "0: ");
  ASSERT_EQ(backward(), "0: ");
  EXPECT_EQ(running(), (Floats{1, 2, 3, 4}));
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
  EXPECT_EQ(running(), (Floats{1, 1.25, 1.5, 1.75}));
  static_cast<float *>(ds_trainer_state(trainer, 1)->data)[0] = 9;
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), ""); // by the same gradients
  EXPECT_EQ(running(), (Floats{9, 1.25, 1.5, 1.75}));
  ASSERT_EQ(backward(), "0: ");
  ASSERT_EQ(messageOf(ds_trainer_zero_gradients(trainer)), "");
  ASSERT_EQ(backward(), "0: ");
  gradientData()[2] = std::numeric_limits<float>::infinity();
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
  EXPECT_EQ(running(), (Floats{9, 1.25, 1.5, 1.75}));
  gradientData()[2] = 1;
  ASSERT_EQ(backward(), "0: ");
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
  EXPECT_EQ(running(), (Floats{5, 1.125, 1.25, 1.375}));
}

TEST_F(TrainerApiTest, KeepsTheLossScaleOfFp16) {
  open(trainingManifest({{"fp16.enabled", true},
                         {"fp16.initial_scale_power", 3},
                         {"fp16.loss_scale", 0},
                         {"fp16.hysteresis", 1},
                         {"optimizer.params.lr", 0.25},
                         {"optimizer.params.betas", {0.5, 0.75}}}));
  EXPECT_EQ(ds_trainer_learning_rate(trainer), 0.25);
  EXPECT_EQ(ds_trainer_momentum(trainer), 0.5);
  EXPECT_EQ(ds_trainer_loss_scale(trainer), 8);
  ASSERT_EQ(backward(), "0: ");
  EXPECT_EQ(gradient(), (Floats{24, 8, 8, 8}));
  double norm = 0;
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, &norm, nullptr)), "");
  EXPECT_EQ(norm, 12);
  EXPECT_EQ(weights(), (Floats{0.25, 1.75, 2.75, 3.75}));
  gradientData()[0] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
  EXPECT_EQ(ds_trainer_loss_scale(trainer), 8); // of the gradients that are there
  ASSERT_EQ(messageOf(ds_trainer_zero_gradients(trainer)), "");
  EXPECT_EQ(ds_trainer_loss_scale(trainer), 4);
}

TEST_F(TrainerApiTest, OneMicroBatchAStep) {
  open(trainingManifest(Json::object(), /*accumulates=*/false));
  ASSERT_EQ(backward(), "0: ");
  EXPECT_EQ(backward().find(invalid + "the package was compiled for one micro-batch a step"), 0u);
  ASSERT_EQ(messageOf(ds_trainer_zero_gradients(trainer)), "");
  EXPECT_EQ(backward(), "0: ");
}

TEST_F(TrainerApiTest, SavesAndLoads) {
  std::string run = folder.file("run");
  ASSERT_EQ(backward(), "0: ");
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
  ASSERT_EQ(messageOf(ds_trainer_save(trainer, run.c_str(), nullptr, "{\"epoch\": [1, 2]}")), "");
  Floats saved = weights(), sums = valuesOf(ds_trainer_state(trainer, 0)), statistic = running();
  const void *memory = ds_trainer_parameter(trainer, 0)->data;
  static_cast<float *>(ds_trainer_state(trainer, 1)->data)[0] = 9;
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
  ASSERT_EQ(messageOf(ds_trainer_save(trainer, run.c_str(), "last", nullptr)), "");

  const char *state = "unchanged";
  for (const auto &[tag, text] : {std::pair("nothing", "no checkpoint 'nothing'"), std::pair("..", "'..'")}) {
    std::string found = messageOf(ds_trainer_load(trainer, run.c_str(), tag, &state));
    EXPECT_NE(found, "");
    EXPECT_STREQ(state, "unchanged");
    EXPECT_EQ(ds_trainer_steps(trainer), 2);
  }
  ASSERT_EQ(messageOf(ds_trainer_load(trainer, run.c_str(), "global_step1", &state)), "");
  EXPECT_STREQ(state, "{\"epoch\":[1,2]}");
  EXPECT_EQ(ds_trainer_steps(trainer), 1);
  EXPECT_EQ(weights(), saved);
  EXPECT_EQ(ds_trainer_parameter(trainer, 0)->data, memory);
  EXPECT_EQ(valuesOf(ds_trainer_state(trainer, 0)), sums);
  EXPECT_EQ(running(), statistic);
  EXPECT_EQ(gradient(), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(codeAndMessage(ds_trainer_step(trainer, nullptr, nullptr)).find(invalid), 0u);
  ASSERT_EQ(messageOf(ds_trainer_load(trainer, run.c_str(), nullptr, &state)), "");
  EXPECT_EQ(state, nullptr);
  EXPECT_EQ(ds_trainer_steps(trainer), 2);
  ASSERT_EQ(messageOf(ds_trainer_load(trainer, run.c_str(), nullptr, nullptr)), "");

  for (const char *text : {"", "{", "{\"a\": NaN}", "1 2", "\xff"}) {
    std::string found = codeAndMessage(ds_trainer_save(trainer, run.c_str(), "bad", text));
    EXPECT_EQ(found.find(invalid + "client_state:"), 0u) << found;
  }
  for (const char *tag : {"", "..", "a/b", "-x"})
    EXPECT_EQ(codeAndMessage(ds_trainer_save(trainer, run.c_str(), tag, nullptr)).find(invalid), 0u) << tag;
  EXPECT_EQ(codeAndMessage(ds_trainer_load(trainer, run.c_str(), "bad", nullptr)).find("0: "), std::string::npos);
}

TEST_F(TrainerApiTest, ADamagedCheckpointChangesNothing) {
  std::string run = folder.file("run"), file = run + "/global_step0/parameters.safetensors";
  ASSERT_EQ(messageOf(ds_trainer_save(trainer, run.c_str(), nullptr, nullptr)), "");
  std::string bytes = readFile(file);
  bytes.back() ^= 1;
  writeFile(file, bytes);
  ASSERT_EQ(backward(), "0: ");
  std::string found = codeAndMessage(ds_trainer_load(trainer, run.c_str(), nullptr, nullptr));
  EXPECT_EQ(found.find(std::to_string(DS_STATUS_BAD_FILE)), 0u) << found;
  EXPECT_EQ(gradient(), (Floats{3, 1, 1, 1}));
  EXPECT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
}

// What ds-run train keeps besides, a loop of one's own passes on.
TEST_F(TrainerApiTest, KeepsThePlaceInTheDataOfOthers) {
  std::string run = folder.file("run");
  ds::Tensor w = tensor<float>(ds::ElementType::F32, {4}, {5, 6, 7, 8}), sum = w.clone();
  ds::TrainingProgress progress;
  progress.step = 7;
  progress.samples = 70;
  progress.loader = {2, 5};
  progress.seed = 11;
  progress.trainer = {{"skipped", 3}, {"shuffled", true}};
  Json counts = {{"micro_batches", 9}, {"ran", {9, 4}}, {"gates", {{true, false}}}};
  auto save = [&](const std::string &tag) {
    ds::SaveOptions options;
    options.tag = tag;
    ds::saveCheckpoint(
        run, progress,
        {{"parameters", {{"w", w.view()}}}, {"statistics", {{"m", w.view()}}}, {"optimizer", {{"w/sum", sum.view()}}}},
        options);
    return codeAndMessage(ds_trainer_load(trainer, run.c_str(), tag.c_str(), nullptr));
  };
  progress.trainer["layers"] = counts;
  ASSERT_EQ(save("one"), "0: ");
  progress.trainer.erase("layers"); // which blocks ran is not known of the trainer's own steps
  EXPECT_EQ(weights(), (Floats{5, 6, 7, 8}));
  EXPECT_EQ(ds_trainer_skipped_steps(trainer), 3);
  ASSERT_EQ(backward(), "0: ");
  ASSERT_EQ(messageOf(ds_trainer_step(trainer, nullptr, nullptr)), "");
  ASSERT_EQ(messageOf(ds_trainer_save(trainer, run.c_str(), nullptr, nullptr)), "");
  ds::TrainingProgress found = ds::Checkpoint(run, "global_step8").progress();
  EXPECT_EQ(found.samples, 72);
  EXPECT_TRUE(found.loader == progress.loader);
  EXPECT_EQ(found.seed, 11u);
  EXPECT_EQ(found.trainer, progress.trainer);

  progress.trainer["skipped"] = 8;
  EXPECT_NE(save("two").find("trainer.skipped: found 8, expected 0 to 7"), std::string::npos);
  progress.trainer = Json::array();
  EXPECT_NE(save("three").find("trainer: expected an object"), std::string::npos);
  EXPECT_EQ(ds_trainer_steps(trainer), 8);
  progress.trainer = Json::object();
  ds::saveCheckpoint(run, progress, {{"parameters", {{"w", w.view()}}}, {"statistics", {{"m", w.view()}}}});
  EXPECT_NE(messageOf(ds_trainer_load(trainer, run.c_str(), nullptr, nullptr)).find("has no tensor 'w/sum'"),
            std::string::npos);
}

TEST(CompiledSettings, AreThoseOfTheManifestOrDefaults) {
  auto settings = [](const Json &config) {
    ds::Manifest manifest;
    manifest.training.emplace().config = config.is_string() ? config.get<std::string>() : config.dump();
    return ds::compiledSettings(manifest);
  };
  auto with = [&](const Json &values) {
    Json keys = Json::array();
    for (const auto &[key, value] : values.items())
      keys.push_back({{"key", key}, {"value", value}});
    return settings({{"keys", keys}});
  };
  EXPECT_EQ(ds::compiledSettings({}).lr, 1e-3);
  for (const Json &odd : {Json("{"), Json(), Json::array(), Json{{"keys", 1}}, Json{{"keys", {1, Json::object()}}}})
    EXPECT_EQ(settings(odd).momentum, 0.9);
  EXPECT_EQ(with({{"optimizer.params.momentum", 0.25}}).momentum, 0.25);
  EXPECT_EQ(with({{"optimizer.params.lr", "fast"}}).lr, 1e-3);
  EXPECT_EQ(with({{"fp16.enabled", false}, {"fp16.loss_scale", 4}}).lossScale.constant, 1);
  ds::LossScaleSettings scale = with({{"fp16.enabled", true},
                                      {"fp16.loss_scale", 4},
                                      {"fp16.loss_scale_window", 0},
                                      {"fp16.hysteresis", 3},
                                      {"fp16.min_loss_scale", 0.5},
                                      {"fp16.consecutive_hysteresis", true}})
                                    .lossScale;
  EXPECT_EQ(scale.constant, 4);
  EXPECT_EQ(scale.initial, 65536);
  EXPECT_EQ(scale.window, 1);
  EXPECT_EQ(scale.hysteresis, 3);
  EXPECT_EQ(scale.minimum, 0.5);
  EXPECT_TRUE(scale.isConsecutive);
}

} // namespace

// Of a package that another program has written.
TEST_F(TrainerApiTest, RefusesBlocksThatHaveNoWidth) {
  for (const char *blocks : {"2", "0", "-1", "n", "1000000000000"}) {
    Json manifest = trainingManifest();
    manifest["training"]["quantized"] = {{{"name", "w"}, {"block", 2}}};
    manifest["variants"][0]["entries"][0]["inputs"].push_back(
        {{"name", "quantize_levels"}, {"type", "f64"}, {"shape", {blocks}}});
    close();
    ds_package *changed = nullptr;
    std::string found = messageOf(ds_package_load(writePackage(folder.path(), manifest).c_str(), nullptr, &changed));
    if (found.empty())
      found = messageOf(ds_trainer_create(changed, nullptr, &trainer));
    ds_package_free(changed);
    EXPECT_NE(found.find("quantize_levels"), std::string::npos) << blocks << ": " << found;
  }
}
