// What ds_config.json says about ranks: sizes that are divided when their number is known, keys of ZeRO.
#include "frontends/config/Keys.h"
#include "runtime/core/Error.h"
#include "test/unit/config/Support.h"
#include "test/unit/support/Seed.h"

#include <random>

using namespace ds;
using namespace ds::config;
using namespace ds::config::test;

namespace {
ReadOptions ranks(int64_t count) {
  ReadOptions options;
  options.ranks = count;
  options.ranksFrom = "--ranks";
  return options;
}

ReadOptions open() {
  ReadOptions options;
  options.areRanksOpen = true;
  return options;
}

std::string sized(const std::string &members) { return "{" + members + R"(, "optimizer": {"type": "SGD"}})"; }

std::string divided(TrainingConfig config, int64_t count, std::optional<int64_t> pinned = std::nullopt) {
  try {
    resolveFor(config, count, "--ranks", pinned);
  } catch (const Error &error) {
    return error.what();
  }
  return concat(config.trainBatch, " = ", config.microBatch, " x ", config.accumulation, " x ", config.ranks);
}
} // namespace

TEST(ConfigRanks, SizesAreDividedWhenTheNumberIsKnown) {
  TrainingConfig train = fromJson(toJson(legal(sized(R"("train_batch_size": 24)"), open())));
  EXPECT_EQ(divided(train, 1), "24 = 24 x 1 x 1");
  EXPECT_EQ(divided(train, 3), "24 = 8 x 1 x 3");
  EXPECT_EQ(divided(train, 3, 4), "24 = 4 x 2 x 3");
  EXPECT_EQ(divided(train, 5), "c.json:1: train_batch_size: found 24, expected a multiple of 5 ranks (--ranks)");
  TrainingConfig micro = legal(sized(R"("train_micro_batch_size_per_gpu": 4, "train_batch_size": 24)"), open());
  EXPECT_EQ(divided(micro, 3), "24 = 4 x 2 x 3");
  EXPECT_EQ(divided(micro, 4), "c.json:1: train_batch_size: found 24, expected a multiple of "
                               "train_micro_batch_size_per_gpu 4 x 4 ranks (--ranks); with 4 ranks (--ranks) "
                               "micro-batch x accumulation may be 1x6, 2x3, 3x2, 6x1");
  EXPECT_EQ(divided(micro, 5), "c.json:1: train_batch_size: found 24, expected a multiple of 5 ranks (--ranks); with "
                               "train_micro_batch_size_per_gpu 4 legal sizes are multiples of 20");
  TrainingConfig product = legal(sized(R"("train_micro_batch_size_per_gpu": 4)"), open());
  EXPECT_EQ(divided(product, 8), "32 = 4 x 1 x 8");
}

TEST(ConfigRanks, ThreeSizesSayTheirNumber) {
  const std::string three = R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
                               "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2})";
  TrainingConfig config = legal(sized(three), open());
  EXPECT_EQ(config.ranks, 8);
  EXPECT_EQ(noteOf(config, "zero_optimization.stage"), "");
  EXPECT_EQ(divided(config, 8), "64 = 4 x 2 x 8");
  EXPECT_EQ(divided(config, 1), "c.json:1: train_batch_size: found 64, but train_micro_batch_size_per_gpu 4 x "
                                "gradient_accumulation_steps 2 x 1 rank (--ranks) is 8; with 1 rank (--ranks) "
                                "micro-batch x accumulation may be 1x64, 2x32, 4x16, 8x8, 16x4, 32x2, 64x1");
  EXPECT_EQ(errorsOf(sized(R"("train_batch_size": 60, "train_micro_batch_size_per_gpu": 4,
                              "gradient_accumulation_steps": 2)"),
                     open()),
            "c.json:1:2: train_batch_size: found 60, expected a multiple of train_micro_batch_size_per_gpu 4 x "
            "gradient_accumulation_steps 2, so that some number of ranks fits");
}

// Dividing again gives what reading the file for that number gives, or both refuse.
TEST(ConfigRanks, DividingAgainIsReadingAgain) {
  uint32_t seed = randomSeed();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937 engine(seed);
  auto draw = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(engine); };
  int legalCount = 0;
  for (int i = 0; i < 500; ++i) {
    std::string members;
    for (auto [key, most] : {std::pair("train_batch_size", 96), std::pair("train_micro_batch_size_per_gpu", 6),
                             std::pair("gradient_accumulation_steps", 4)})
      if (draw(3) > 1)
        members += concat(members.empty() ? "\"" : ", \"", key, "\": ", draw(most));
    int64_t count = draw(8);
    Reading before = readConfig(sized(members.empty() ? "\"steps_per_print\": 1" : members), "c.json", open());
    if (!before.config)
      continue;
    Reading again = readConfig(sized(members), "c.json", ranks(count));
    std::string found = divided(*before.config, count);
    ASSERT_EQ(again.config.has_value(), found.find("c.json") == std::string::npos) << members << " " << found;
    if (!again.config)
      continue;
    ++legalCount;
    EXPECT_EQ(found, divided(*again.config, count)) << members << ", DS_SEED=" << seed;
    EXPECT_EQ(found, concat(again.config->trainBatch, " = ", again.config->microBatch, " x ",
                            again.config->accumulation, " x ", count));
  }
  EXPECT_GT(legalCount, 20);
}

TEST(ConfigRanks, KeysActOnSeveral) {
  const std::string text = with(R"("zero_optimization": {"stage": 3, "reduce_bucket_size": 1e3,
      "allgather_bucket_size": 77, "stage3_prefetch_bucket_size": 5}, "communication_data_type": "bf16",
      "checkpoint": {"tag_validation": "fail"}, "gradient_predivide_factor": 2)");
  TrainingConfig several = legal(text, ranks(4));
  EXPECT_EQ(several.zero.stage, 3);
  EXPECT_EQ(several.zero.reduceBucket, 1000);
  EXPECT_EQ(several.zero.gatherBucket, 77);
  EXPECT_EQ(several.zero.prefetchBucket, 5);
  EXPECT_EQ(several.zero.persistence, 100000);
  EXPECT_TRUE(several.zero.overlaps);
  EXPECT_EQ(several.zero.wireType, "bf16");
  EXPECT_EQ(several.tagValidation, "FAIL");
  EXPECT_EQ(several.predivide, 2);
  EXPECT_EQ(joined(notes(several)), "c.json:1: optimizer.type = \"Adam\": decoupled decay, as AdamW");
  TrainingConfig one = several;
  resolveFor(one, 1, "one process");
  EXPECT_EQ(noteOf(one, "zero_optimization.reduce_bucket_size"), "without effect on one rank");
  EXPECT_FALSE(one.find("communication_data_type")->isUsed);
  resolveFor(one, 4, "--ranks");
  EXPECT_EQ(toJson(one), toJson(several));
}

TEST(ConfigRanks, NothingIsIdleWhereRanksAreOpen) {
  const std::string text = with(R"("zero_optimization": {"stage": 2, "reduce_bucket_size": 7})");
  TrainingConfig config = legal(text, open());
  EXPECT_EQ(noteOf(config, "zero_optimization.stage"), "");
  EXPECT_TRUE(config.find("zero_optimization.stage")->isUsed);
  EXPECT_EQ(noteOf(config, "zero_optimization.reduce_bucket_size"), "");
  EXPECT_EQ(noteOf(legal(with(R"("zero_optimization": true)"), open()), "zero_optimization.stage"), "from true");
  EXPECT_EQ(noteOf(legal(text, ranks(1)), "zero_optimization.stage"), "without effect on one rank");
  resolveFor(config, 1, "one process");
  EXPECT_EQ(noteOf(config, "zero_optimization.reduce_bucket_size"), "without effect on one rank");
}

TEST(ConfigRanks, DefaultsAreThoseOfTheTable) {
  TrainingConfig config = legal(with(""));
  EXPECT_EQ(config.zero.stage, 0);
  EXPECT_EQ(config.zero.reduceBucket, 500000000);
  EXPECT_TRUE(config.zero.overlaps);
  EXPECT_EQ(config.zero.wireType, "");
  EXPECT_EQ(config.zero.modelPersistence, int64_t(1) << 53);
  EXPECT_EQ(config.zero.maxReuse, 0); // though its default is shown
  for (int64_t given : {0, 5, 1000000000})
    EXPECT_EQ(legal(with(concat(R"("zero_optimization": {"stage3_max_reuse_distance": )", given, "}"))).zero.maxReuse,
              given);
  EXPECT_EQ(config.tagValidation, "WARN");
  EXPECT_EQ(config.predivide, 1);
  EXPECT_EQ(legal(with(R"("fp32_allreduce": true)")).zero.wireType, "fp32");
  EXPECT_EQ(legal(with(R"("allgather_size": 12)")).zero.gatherBucket, 12);
  EXPECT_EQ(config.zero.gradientType, "fp32");
}

TEST(ConfigRanks, WhatHasOneValueIsRefusedWithTheReason) {
  for (const auto &[members, error] : std::vector<std::pair<std::string, std::string>>{
           {R"("zero_optimization": {"stage": 1, "reduce_scatter": false})",
            "zero_optimization.reduce_scatter: found false, expected true: each rank gets its part of the sums only; "
            "all of them would be twice the bytes"},
           {R"("checkpoint": {"use_node_local_storage": true})",
            "checkpoint.use_node_local_storage: found true, expected false: each node saves for itself; a checkpoint "
            "is one folder that all ranks see"},
           {R"("fp32_allreduce": true, "communication_data_type": "fp16")",
            "communication_data_type: found fp16 with fp32_allreduce true, expected one of them"},
           {R"("prescale_gradients": true, "gradient_predivide_factor": 4)",
            "gradient_predivide_factor: found 4.0 with prescale_gradients true, which divides by all ranks before, "
            "expected one of them"}})
    EXPECT_NE(errorsOf(with(members), ranks(2)).find(error), std::string::npos) << errorsOf(with(members), ranks(2));
  EXPECT_NE(errorsOf(with(R"("zero_optimization": {"stage": 2})", R"({"type": "OneBitAdam"})"), ranks(2))
                .find("zero_optimization.stage: found 2 with optimizer.type OneBitAdam, expected 0 or 1"),
            std::string::npos);
  TrainingConfig idle = legal(with(R"("zero_optimization": {"stage": 0, "reduce_scatter": false,
                                      "stage3_max_live_parameters": 5})"),
                              ranks(2));
  EXPECT_EQ(noteOf(idle, "zero_optimization.reduce_scatter"), "without effect at stage 0");
  EXPECT_EQ(noteOf(idle, "zero_optimization.stage3_max_live_parameters"), "without effect below stage 3");
}

TEST(ConfigRanks, GradientsHaveOneNarrowType) {
  for (const char *type : {"fp16", "bf16", "fp32", "null"}) {
    std::string kept = *type == 'n' ? "null" : concat("\"", type, "\"");
    std::string members = concat(R"("data_types": {"grad_accum_dtype": )", kept, "}");
    TrainingConfig config = legal(with(members), ranks(2)); // and on one rank
    EXPECT_EQ(config.zero.gradientType, *type == 'n' ? "fp32" : type);
    EXPECT_TRUE(legal(with(members)).find("data_types.grad_accum_dtype")->isUsed) << type;
    for (const char *travels : {"fp16", "bf16", "fp32"}) {
      std::string both = with(concat(members, R"(, "communication_data_type": ")", travels, "\""));
      bool isLegal =
          *type == 'n' || type == std::string("fp32") || travels == std::string("fp32") || type == std::string(travels);
      std::string found = isLegal ? legal(both, ranks(2)).zero.wireType : errorsOf(both, ranks(2));
      EXPECT_NE(
          found.find(isLegal ? travels
                             : concat("communication_data_type: found ", travels, " with data_types.grad_accum_dtype ",
                                      type, ", expected ", type, ", fp32 or null")),
          std::string::npos)
          << found;
    }
  }
  for (const char *key : {R"("communication_data_type": "fp32")", R"("fp32_allreduce": true)"}) {
    TrainingConfig wider = legal(with(concat(R"("data_types": {"grad_accum_dtype": "bf16"}, )", key)), ranks(2));
    std::string path(key + 1, std::string(key + 1).find('"'));
    EXPECT_EQ(noteOf(wider, path), "without effect: gradients are kept in bf16");
  }
  EXPECT_NE(errorsOf(with(R"("data_types": {"grad_accum_dtype": "bf16"})", R"({"type": "OneBitAdam"})"), ranks(2))
                .find("data_types.grad_accum_dtype: found bf16 with optimizer.type OneBitAdam, expected fp32: "),
            std::string::npos);
}

TEST(ConfigRanks, StagesAreCode) {
  TrainingConfig compiled = legal(with(""), open()), given = legal(with(R"("zero_optimization": true)"), ranks(2));
  std::vector<Difference> refused = changes(compiled, given).refused;
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].text(), "zero_optimization.stage: compiled with 0, given 1");
  TrainingConfig same = legal(with(R"("zero_optimization": {"stage": 0, "reduce_bucket_size": 5e8})"), ranks(2));
  EXPECT_TRUE(changes(compiled, same).refused.empty());
  EXPECT_TRUE(changes(compiled, legal(with(R"("zero_optimization": true)"))).refused.empty());
}
