// The resolved configuration in a package, and how a file that is given to it may differ.
#include "frontends/config/Keys.h"
#include "runtime/core/Error.h"
#include "test/unit/config/Support.h"

using namespace ds;
using namespace ds::config;
using namespace ds::config::test;

namespace {
std::string refusal(const std::string &json) {
  try {
    fromJson(json);
  } catch (const Error &error) {
    return error.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string &what, const std::string &by) {
  size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in " << text;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

std::string text(const std::vector<Difference> &differences) {
  std::string text;
  for (const Difference &one : differences)
    text += one.text() + "\n";
  return text;
}
} // namespace

TEST(ConfigPackage, IsTheSameAfterWritingAndReading) {
  for (const std::string &fixture : fixtures()) {
    TrainingConfig before = legal(fixture), after = fromJson(toJson(before));
    EXPECT_EQ(toJson(after), toJson(before));
    EXPECT_EQ(optimizerText(after.optimizer), optimizerText(before.optimizer));
    EXPECT_EQ(after.microBatch, before.microBatch);
    EXPECT_EQ(after.lossScale.initial, before.lossScale.initial);
    EXPECT_TRUE(changes(before, after).allowed.empty());
    EXPECT_TRUE(changes(before, after).refused.empty());
  }
}

TEST(ConfigPackage, RefusesWhatItDidNotWrite) {
  std::string json = toJson(legal(fixture("minimal.json")));
  const std::string start = "training configuration: ";
  EXPECT_EQ(refusal("{}"), start + "file: missing");
  EXPECT_EQ(refusal("[]"), start + "document: found [], expected an object of 3 keys at most");
  EXPECT_EQ(refusal(replaced(json, "\"key\":\"fp16.hysteresis\"", "\"key\":\"fp16.hysteresi\"")),
            start + "fp16.hysteresi: found an unknown key");
  EXPECT_EQ(refusal(replaced(json, "\"key\":\"fp16.hysteresis\"", "\"key\":\"fp16.enabled\"")),
            start + "fp16.enabled: found twice, expected once");
  EXPECT_EQ(refusal(replaced(json, "\"key\":\"fp16.hysteresis\"", "\"key\":\"sparse_gradients\"")),
            start + "sparse_gradients: found 2, expected true or false");
  EXPECT_EQ(refusal(replaced(json, "\"ranks\":1", "\"ranks\":2")),
            start + "train_batch_size: found 8, expected the product of 8, 1 and 2");
  EXPECT_EQ(refusal(replaced(json, "\"origin\":\"file\"", "\"origin\":\"moon\"")),
            start + "keys[0].origin: found \"moon\", expected file, derived or default");
}

TEST(ConfigChanges, AllowsTheInputsOfTheStep) {
  TrainingConfig before = legal(with(R"("fp16": {"enabled": true})"));
  TrainingConfig after = legal(with(R"("fp16": {"enabled": true, "loss_scale_window": 5}, "steps_per_print": 3,
      "scheduler": {"type": "WarmupLR"})",
                                    R"({"type": "AdamW", "params": {"lr": 0.5, "betas": [0.8, 0.999]}})"));
  Differences found = changes(before, after);
  EXPECT_EQ(text(found.refused), "");
  EXPECT_EQ(text(found.allowed), "optimizer.params.lr: compiled with 0.001, given 0.5\n"
                                 "optimizer.params.betas[0]: compiled with 0.9, given 0.8\n"
                                 "scheduler.type: compiled with \"constant\", given \"WarmupLR\"\n"
                                 "scheduler.params.warmup_min_lr: compiled with nothing, given 0.0\n"
                                 "scheduler.params.warmup_max_lr: compiled with nothing, given 0.001\n"
                                 "scheduler.params.warmup_num_steps: compiled with nothing, given 1000\n"
                                 "scheduler.params.warmup_type: compiled with nothing, given \"log\"\n"
                                 "fp16.loss_scale_window: compiled with 1000, given 5\n"
                                 "steps_per_print: compiled with 10, given 3\n");
}

TEST(ConfigChanges, RefusesWhatIsCode) {
  TrainingConfig before = legal(with(""));
  TrainingConfig after = legal(with(R"("gradient_clipping": 1, "bf16": {"enabled": true})",
                                    R"({"type": "Adam", "params": {"betas": [0.9, 0.99], "weight_decay": 0.1}})"));
  EXPECT_EQ(text(changes(before, after).refused), "optimizer.params.betas[1]: compiled with 0.999, given 0.99\n"
                                                  "optimizer.params.weight_decay: compiled with 0.0, given 0.1\n"
                                                  "gradient_clipping: compiled with 0.0, given 1.0\n"
                                                  "bf16.enabled: compiled with false, given true\n");
  TrainingConfig lamb = legal(with("", R"({"type": "Lamb"})"));
  EXPECT_EQ(text(changes(before, lamb).refused), "optimizer.type: compiled with \"adamw\", given \"lamb\"\n");
  TrainingConfig plain = legal(with("", R"({"type": "SGD"})")), momentum = legal(with("", R"({"type": "Momentum"})"));
  EXPECT_EQ(text(changes(plain, momentum).refused), "optimizer.params.momentum: compiled with 0.0, given 0.9\n");
}

TEST(ConfigChanges, KnowsWhatThePackageCanDo) {
  TrainingConfig before = legal(with("")), after = legal(with(R"("gradient_accumulation_steps": 4)"));
  EXPECT_EQ(text(changes(before, after).refused), "");
  PackageTraits fixed;
  fixed.accumulates = fixed.hasDynamicBatch = false;
  EXPECT_EQ(text(changes(before, after, fixed).refused), "train_micro_batch_size_per_gpu: compiled with 8, given 2\n"
                                                         "gradient_accumulation_steps: compiled with 1, given 4\n");
}
