// ds_engine_* as it is misused. Its steps are those of ds-run train: test/integration/engine_cases.py.
#include "test/unit/runtime/PackageBuilder.h"

#include "ds/engine.h"

#include <gtest/gtest.h>

using namespace ds::test;

namespace {

std::string messageOf(ds_status *status) {
  std::string text = status ? std::to_string(ds_status_get_code(status)) + ": " + ds_status_message(status) : "";
  ds_status_free(status);
  return text;
}

const std::string invalid = std::to_string(DS_STATUS_INVALID_ARGUMENT) + ": ";

TEST(EngineApiTest, TakesNullForAnEmptyOne) {
  EXPECT_EQ(ds_engine_rank(nullptr), 0u);
  EXPECT_EQ(ds_engine_world(nullptr), 1u);
  EXPECT_EQ(ds_engine_note(nullptr, 0), nullptr);
  EXPECT_EQ(ds_engine_input_count(nullptr), 0u);
  EXPECT_EQ(ds_engine_input(nullptr, 0), nullptr);
  EXPECT_EQ(ds_engine_micro_batches(nullptr), 0);
  EXPECT_EQ(ds_engine_steps(nullptr), 0);
  EXPECT_EQ(ds_engine_learning_rate(nullptr), 0);
  ds_engine_free(nullptr);
  for (ds_status *status :
       {ds_engine_micro_batch(nullptr, nullptr, 0, nullptr), ds_engine_step(nullptr, nullptr),
        ds_engine_evaluate(nullptr, nullptr, 0, nullptr, nullptr), ds_engine_save(nullptr, "x", nullptr, nullptr),
        ds_engine_load(nullptr, "x", nullptr, nullptr)})
    EXPECT_EQ(messageOf(status), invalid + "engine is null");
}

TEST(EngineApiTest, IsForPackagesOfTraining) {
  TemporaryFolder folder;
  ds_package *package = nullptr;
  ASSERT_EQ(messageOf(ds_package_load(writePackage(folder.path(), testManifest()).c_str(), nullptr, &package)), "");
  ds_engine *engine = nullptr;
  EXPECT_NE(messageOf(ds_engine_create(package, nullptr, &engine)).find("was not compiled for training"),
            std::string::npos);
  EXPECT_EQ(engine, nullptr);
  EXPECT_NE(messageOf(ds_engine_create(package, nullptr, nullptr)), "");
  EXPECT_NE(messageOf(ds_engine_create(nullptr, nullptr, &engine)), "");
  ds_engine_options options = {};
  options.struct_size = 1;
  EXPECT_NE(messageOf(ds_engine_create(package, &options, &engine)).find("struct_size"), std::string::npos);
  options.struct_size = sizeof(options);
  options.threads = 100000;
  EXPECT_NE(messageOf(ds_engine_create(package, &options, &engine)), "");
  EXPECT_EQ(engine, nullptr);
  ds_package_free(package);
}

} // namespace
