// The C API as a user of the installed library sees it.
#include "test/unit/runtime/ApiFixture.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace ds::test;

namespace {

TEST_F(ApiTest, DescribesThePackage) {
  EXPECT_STREQ(ds_package_chosen_variant(package), "x86-64");
  EXPECT_EQ(ds_package_variant_count(package), 1u);
  EXPECT_STREQ(ds_package_variant_name(package, 0), "x86-64");
  EXPECT_EQ(ds_package_variant_name(package, 1), nullptr);
  EXPECT_STREQ(ds_package_entry_name(package, 8), "lookup");
  EXPECT_EQ(ds_package_entry_name(package, 15), nullptr);
  ASSERT_EQ(ds_package_tensor_count(package, 8, DS_INPUTS), 2u);
  const ds_tensor_info *info = ds_package_tensor(package, 8, DS_INPUTS, 1);
  EXPECT_STREQ(info->name, "indices");
  EXPECT_EQ(info->type, DS_I64);
  EXPECT_STREQ(info->shape[0], "count");
  EXPECT_EQ(info->bound, 3);
  EXPECT_EQ(ds_package_tensor(package, 8, DS_INPUTS, 2), nullptr);
  EXPECT_EQ(ds_package_tensor_count(package, 99, DS_STATES), 0u);
  EXPECT_STREQ(ds_package_tensor(package, 5, DS_STATES, 0)->name, "total");
  EXPECT_EQ(ds_type_size(DS_BF16), 2u);
  EXPECT_STREQ(ds_type_name(DS_I1), "i1");
}

TEST_F(ApiTest, RunsAndUsesOutputsAgain) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
    ASSERT_EQ(ds_outputs_count(outputs), 1u);
    const ds_tensor *y = ds_outputs_get(outputs, 0);
    EXPECT_STREQ(y->name, "y");
    EXPECT_EQ(y->rank, 2u);
    EXPECT_EQ(y->shape[0], 2);
    EXPECT_EQ(static_cast<const float *>(y->data)[7], 10);
    EXPECT_EQ(ds_outputs_get(outputs, 1), nullptr);
  }
}

TEST_F(ApiTest, ReportsWithCodeAndMessage) {
  ds_status *status = ds_session_run(session, 0, &input, 0, &outputs);
  EXPECT_EQ(ds_status_get_code(status), DS_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(messageOf(status), "entry 'main': wrong number of inputs, found 0, expected 1");
  EXPECT_EQ(outputs, nullptr);
  shape[1] = 3;
  status = ds_session_run(session, 0, &input, 1, &outputs);
  EXPECT_EQ(ds_status_get_code(status), DS_STATUS_SHAPE_MISMATCH);
  ds_status_free(status);
  EXPECT_NE(messageOf(ds_session_run(session, 99, &input, 1, &outputs)).find("no entry 99"), std::string::npos);
  EXPECT_NE(messageOf(ds_session_run(nullptr, 0, &input, 1, &outputs)).find("is null"), std::string::npos);
  ds_tensor old = input;
  old.struct_size = 8;
  EXPECT_NE(messageOf(ds_session_run(session, 0, &old, 1, &outputs)).find("struct_size"), std::string::npos);
  old = input;
  const unsigned noType = 77;
  std::memcpy(&old.type, &noType, sizeof(noType));
  EXPECT_NE(messageOf(ds_session_run(session, 0, &old, 1, &outputs)).find("no such type"), std::string::npos);
  EXPECT_EQ(ds_status_get_code(nullptr), DS_STATUS_OK);
  EXPECT_STREQ(ds_status_message(nullptr), "ok");
  ds_status_free(nullptr);
  ds_package *none = nullptr;
  status = ds_package_load("/nowhere", nullptr, &none);
  EXPECT_EQ(ds_status_get_code(status), DS_STATUS_BAD_PACKAGE);
  ds_status_free(status);
}

TEST_F(ApiTest, PinsDimensions) {
  EXPECT_EQ(messageOf(ds_session_pin(session, "rows", 2)), "");
  EXPECT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
  EXPECT_EQ(messageOf(ds_session_pin(session, "rows", 3)), "");
  EXPECT_NE(messageOf(ds_session_run(session, 0, &input, 1, &outputs)).find("'rows' differs"), std::string::npos);
  EXPECT_NE(messageOf(ds_session_pin(session, "none", 3)).find("no dimension 'none'"), std::string::npos);
}

TEST_F(ApiTest, SavesAndRestoresStates) {
  int64_t four = 4;
  ds_tensor x = {sizeof(ds_tensor), "x", DS_F32, 1, &four, data};
  ASSERT_EQ(messageOf(ds_session_run(session, 5, &x, 1, &outputs)), "");
  EXPECT_EQ(static_cast<float *>(ds_outputs_get(outputs, 0)->data)[0], 11);
  ASSERT_EQ(messageOf(ds_session_save_states(session, folder.file("s.npz").c_str())), "");
  ASSERT_EQ(messageOf(ds_session_reset_states(session)), "");
  ASSERT_EQ(messageOf(ds_session_restore_states(session, folder.file("s.npz").c_str())), "");
  ASSERT_EQ(messageOf(ds_session_run(session, 5, &x, 1, &outputs)), "");
  EXPECT_EQ(static_cast<float *>(ds_outputs_get(outputs, 0)->data)[0], 12);
  EXPECT_NE(messageOf(ds_session_restore_states(session, "/nowhere.npz")).find("/nowhere.npz"), std::string::npos);
}

TEST_F(ApiTest, OutputsSurviveAFailedCall) {
  alignas(64) float table[2] = {5, 6};
  alignas(64) int64_t indices[2] = {1, 0};
  int64_t two = 2, one = 1;
  ds_tensor inputs[2] = {{sizeof(ds_tensor), nullptr, DS_F32, 1, &two, table},
                         {sizeof(ds_tensor), nullptr, DS_I64, 1, &two, indices}};
  ASSERT_EQ(messageOf(ds_session_run(session, 8, inputs, 2, &outputs)), "");
  const ds_tensor *y = ds_outputs_get(outputs, 0);
  ASSERT_EQ(static_cast<const float *>(y->data)[0], 6);
  indices[1] = 7; // the first element is written before the second one fails
  indices[0] = 0;
  EXPECT_NE(messageOf(ds_session_run(session, 8, inputs, 2, &outputs)).find("index out of range"), std::string::npos);
  EXPECT_NE(messageOf(ds_session_run(session, 8, inputs, 1, &outputs)), "");
  ASSERT_EQ(ds_outputs_count(outputs), 1u);
  EXPECT_EQ(ds_outputs_get(outputs, 0), y);
  EXPECT_STREQ(y->name, "y");
  EXPECT_EQ(y->shape[0], 2);
  EXPECT_EQ(static_cast<const float *>(y->data)[0], 6);
  EXPECT_EQ(static_cast<const float *>(y->data)[1], 5);
  // The last call's outputs may be inputs of the next.
  ds_tensor fed[2] = {*y, inputs[1]};
  fed[0].name = nullptr;
  fed[1].shape = &one;
  ASSERT_EQ(messageOf(ds_session_run(session, 8, fed, 2, &outputs)), "");
  EXPECT_EQ(static_cast<const float *>(ds_outputs_get(outputs, 0)->data)[0], 6);
}

TEST_F(ApiTest, TakesTurnsWithTheMemoryOfOutputs) {
  const void *memory[4] = {};
  for (const void *&place : memory) {
    ASSERT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
    place = ds_outputs_get(outputs, 0)->data;
  }
  EXPECT_NE(memory[0], memory[1]);
  EXPECT_EQ(memory[0], memory[2]);
  EXPECT_EQ(memory[1], memory[3]);
}

TEST_F(ApiTest, InputsGoByTheirNames) {
  alignas(64) float table[2] = {5, 6};
  alignas(64) int64_t indices[1] = {1};
  int64_t two = 2, one = 1;
  ds_tensor first = {sizeof(ds_tensor), "table", DS_F32, 1, &two, table},
            second = {sizeof(ds_tensor), "indices", DS_I64, 1, &one, indices};
  auto run = [&](std::vector<ds_tensor> inputs) {
    std::string message = messageOf(ds_session_run(session, 8, inputs.data(), inputs.size(), &outputs));
    if (message.empty()) {
      EXPECT_EQ(static_cast<const float *>(ds_outputs_get(outputs, 0)->data)[0], 6);
    }
    return message;
  };
  EXPECT_EQ(run({first, second}), "");
  EXPECT_EQ(run({second, first}), "");
  ds_tensor unnamed = first;
  unnamed.name = nullptr;
  EXPECT_EQ(run({unnamed, second}), "");
  EXPECT_EQ(run({second, unnamed}), "entry 'lookup': input 'indices' is given twice"); // its position is taken
  EXPECT_EQ(run({second, second}), "entry 'lookup': input 'indices' is given twice");
  ds_tensor wrong = second;
  wrong.name = "index";
  EXPECT_EQ(run({first, wrong}), "entry 'lookup': input 1: no input 'index', expected one of [table, indices], or null "
                                 "to go by position");
  wrong.name = "";
  EXPECT_NE(run({first, wrong}), "");
}

TEST_F(ApiTest, AHalfWrittenStateHasACodeOfItsOwn) {
  int64_t four = 4, one = 1;
  alignas(64) int64_t indices[1] = {0};
  ds_tensor inputs[2] = {{sizeof(ds_tensor), "x", DS_F32, 1, &four, data},
                         {sizeof(ds_tensor), "indices", DS_I64, 1, &one, indices}};
  ASSERT_EQ(messageOf(ds_session_run(session, 10, inputs, 2, &outputs)), "");
  indices[0] = 4;
  ds_status *status = ds_session_run(session, 10, inputs, 2, &outputs);
  EXPECT_EQ(ds_status_get_code(status), DS_STATUS_EXECUTION);
  ds_status_free(status);
  indices[0] = 0;
  status = ds_session_run(session, 10, inputs, 2, &outputs);
  EXPECT_EQ(ds_status_get_code(status), DS_STATUS_BAD_STATE);
  EXPECT_NE(messageOf(status).find("index out of range"), std::string::npos);
  status = ds_session_save_states(session, folder.file("s.npz").c_str());
  EXPECT_EQ(ds_status_get_code(status), DS_STATUS_BAD_STATE);
  ds_status_free(status);
  ASSERT_EQ(messageOf(ds_session_reset_states(session)), "");
  EXPECT_EQ(messageOf(ds_session_run(session, 10, inputs, 2, &outputs)), "");
  EXPECT_EQ(messageOf(ds_session_save_states(session, folder.file("s.npz").c_str())), "");
}

TEST_F(ApiTest, RunsRanksAsThreads) {
  ds_group *group = nullptr;
  ASSERT_EQ(messageOf(ds_group_create(2, 30, &group)), "");
  float sums[2] = {};
  std::string errors[2];
  std::thread threads[2];
  for (unsigned rank = 0; rank < 2; ++rank)
    threads[rank] = std::thread([&, rank] {
      ds_session_options options = {sizeof(options), 1, group, rank};
      ds_session *own = nullptr;
      ds_outputs *results = nullptr;
      alignas(64) float value = 1 + static_cast<float>(rank);
      int64_t one = 1;
      ds_tensor x = {sizeof(ds_tensor), "x", DS_F32, 1, &one, &value};
      errors[rank] = messageOf(ds_session_create(package, &options, &own));
      errors[rank] += messageOf(ds_session_run(own, 6, &x, 1, &results));
      if (results)
        sums[rank] = *static_cast<float *>(ds_outputs_get(results, 0)->data);
      ds_outputs_free(results);
      ds_session_free(own);
    });
  for (std::thread &thread : threads)
    thread.join();
  ds_group_free(group);
  for (unsigned rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(errors[rank], "");
    EXPECT_EQ(sums[rank], 3);
  }
}

TEST_F(ApiTest, TheExampleProgramRuns) {
  std::string command = std::string(DS_EXAMPLE) + " " + folder.file("model.dsp") + " rows=2 n=4";
  FILE *pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char text[256] = {};
  size_t length = fread(text, 1, sizeof(text) - 1, pipe);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(std::string(text, length), "variant x86-64, entry main\ny: f32 [2, 4] sum 28\n");
}

TEST(GuardedApi, AGroupIsOneEntry) {
  TemporaryFolder folder;
  auto manifest = testManifest();
  manifest["format"] = 2;
  auto &entries = manifest["variants"][0]["entries"];
  for (int i : {0, 1}) {
    entries[i]["group"] = "both";
    entries[i]["guards"] = nlohmann::json::array({{{"condition", "eq(rows, 2)"}, {"holds", i == 0}}});
  }
  entries[1]["outputs"][0]["shape"][1] = "2*n";
  auto open = [&] {
    ds_package *package = nullptr;
    EXPECT_EQ(messageOf(ds_package_load(writePackage(folder.path(), manifest).c_str(), nullptr, &package)), "");
    return package;
  };
  ds_package *package = open();
  EXPECT_EQ(ds_package_entry_count(package), entries.size() - 1);
  EXPECT_STREQ(ds_package_entry_name(package, 0), "both");
  EXPECT_STREQ(ds_package_entry_name(package, 1), "reshape");
  EXPECT_EQ(ds_package_tensor_count(package, 1, DS_INPUTS), 2u);
  const ds_tensor_info *y = ds_package_tensor(package, 0, DS_OUTPUTS, 0);
  EXPECT_EQ(y->rank, 2u);
  EXPECT_STREQ(y->shape[0], "rows");
  EXPECT_STREQ(y->shape[1], "select((eq(rows, 2)), n, 2*n)");

  ds_session *session = nullptr;
  EXPECT_EQ(messageOf(ds_session_create(package, nullptr, &session)), "");
  alignas(64) float data[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  int64_t shape[2] = {2, 4};
  ds_tensor input = {sizeof(ds_tensor), "x", DS_F32, 2, shape, data};
  ds_outputs *outputs = nullptr;
  EXPECT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
  EXPECT_EQ(static_cast<const float *>(ds_outputs_get(outputs, 0)->data)[0], 2);
  EXPECT_STREQ(ds_outputs_get(outputs, 0)->name, "y");
  EXPECT_NE(messageOf(ds_session_run(session, 99, &input, 1, &outputs)).find("no entry 99"), std::string::npos);
  ds_outputs_free(outputs);
  ds_session_free(session);
  ds_package_free(package);

  entries[1]["outputs"][0]["shape"] = {"rows"};
  package = open();
  y = ds_package_tensor(package, 0, DS_OUTPUTS, 0);
  EXPECT_EQ(y->rank, DS_RANK_VARIES);
  EXPECT_EQ(y->shape, nullptr);
  ds_package_free(package);
}

} // namespace
