// What is wrong with a file is said in one line: where, what was found, what would be legal.
#include "test/unit/config/Support.h"

#include <cstdio>
#include <filesystem>

using namespace ds::config;
using namespace ds::config::test;

namespace {
struct Case {
  std::string text, error;
};

void expectAll(const std::vector<Case> &cases) {
  for (const Case &one : cases)
    EXPECT_EQ(errorsOf(one.text), "c.json:" + one.error) << one.text;
}
} // namespace

TEST(ConfigRefusal, OfWhatIsNoJson) {
  expectAll({
      {"", "1:1: empty, expected a JSON object"},
      {" \n", "1:1: empty, expected a JSON object"},
      {"[1]", "1:1: found [1], expected a JSON object"},
      {"{\"a\": 1,\n}",
       "2:1: no JSON: syntax error while parsing object key - unexpected '}'; expected string literal; "
       "is there a comma too many before it?"},
      {"{ // no\n}",
       "1:3: no JSON: syntax error while parsing object key - invalid literal; last read: '{ /'; expected "
       "string literal; JSON has no comments"},
      {"{\"a\": NaN}",
       "1:7: no JSON: syntax error while parsing value - invalid literal; last read: '\"a\": N'; JSON has "
       "no NaN and no infinity"},
      {"{\"a\": 1e999}", "1:12: no JSON: number overflow parsing '1e999'"},
      {"{\"\xC3\x28\": 1}",
       "1:4: no JSON: syntax error while parsing object key - invalid string: ill-formed UTF-8 byte; "
       "last read: '\"?('; expected string literal"},
      {"{\"fp16\": {},\n \"fp16\": {}}", "2:2: fp16: given twice, the first time in line 1, column 2"},
      {std::string(100000, '['), "1:33: nested too deeply, expected at most 32 levels"},
  });
  EXPECT_EQ(errorsOf(std::string(1 << 21, ' ')), "c.json:1:1: has 2097152 bytes, expected at most 1048576");
}

TEST(ConfigRefusal, OfUnknownKeys) {
  expectAll({
      {with(R"("fp16": {"loss_scale_windw": 5})"),
       "1:65: fp16.loss_scale_windw: unknown key; did you mean fp16.loss_scale_window?"},
      {with(R"("loss_scale_window": 5)"), "1:56: loss_scale_window: unknown key; it belongs in section fp16"},
      {with(R"("fp16": {"gradient_clipping": 5})"),
       "1:65: fp16.gradient_clipping: unknown key; it belongs outside of any section"},
      {with(R"("lr": 5)"), "1:56: lr: unknown key; it belongs in section optimizer.params"},
      {with(R"("quantize_training": {"quantize-algo": {}})"),
       "1:78: quantize_training.quantize-algo: unknown key; did you mean quantize_training.quantize_algo?"},
      {with(R"("batch_size": 5)"), "1:56: batch_size: unknown key; did you mean train_batch_size?"},
      {with(R"("micro_batch_size": 5)"),
       "1:56: micro_batch_size: unknown key; did you mean train_micro_batch_size_per_gpu?"},
      {with(R"("zero": {"stage": 1})"), "1:56: zero: unknown key; did you mean zero_optimization?"},
      {with(R"("learning_rate": 1)"), "1:56: learning_rate: unknown key; did you mean optimizer.params.lr?"},
      {with("", R"({"type": "SGD", "params": {"Learning-Rate": 1}})"),
       "1:65: optimizer.params.Learning-Rate: unknown key; did you mean optimizer.params.lr?"},
      {with(R"("optimiser": {})"), "1:56: optimiser: unknown key; did you mean optimizer?"},
      {with(R"("clipping": 1)"), "1:56: clipping: unknown key; did you mean gradient_clipping?"},
      {with(R"("accumulation_steps": 1)"),
       "1:56: accumulation_steps: unknown key; did you mean gradient_accumulation_steps?"},
      {withSchedule("OneCycle", R"("cycle_min_lr": 1, "cycle_max_lr": 2, "max_mom": 0.9)"),
       "1:139: scheduler.params.max_mom: unknown key; did you mean scheduler.params.cycle_max_mom?"},
      {with(R"("bloc": 5)"), "1:56: bloc: unknown key; docs/config.md lists the legal ones"},
      {with(R"("something else": 5)"), "1:56: something else: unknown key; docs/config.md lists the legal ones"},
      {with(R"("a\nb": 5)"), "1:56: \"a\\nb\": unknown key; docs/config.md lists the legal ones"},
      {with("", R"({"type": "SGD", "params": {"max_coeff": 1}})"),
       "1:65: optimizer.params.max_coeff: SGD has no such key; those that have it: Lamb OneBitLamb"},
      {withSchedule("WarmupLR", R"("total_num_steps": 4)"),
       "1:101: scheduler.params.total_num_steps: WarmupLR has no such key; those that have it: WarmupDecayLR "
       "WarmupCosineLR"},
  });
}

TEST(ConfigRefusal, OfValues) {
  expectAll({
      {R"({"optimizer": {"type": "SGD"}, "train_batch_size": "auto"})",
       "1:52: train_batch_size: found \"auto\", expected an integer in [1, 2147483647]"},
      {with(R"("fp16": true)"), "1:64: fp16: found true, expected an object"},
      {with(R"("fp16": {"enabled": 1})"), "1:76: fp16.enabled: found 1, expected true or false"},
      {with(R"("fp16": {"hysteresis": 1.5})"), "1:79: fp16.hysteresis: found 1.5, expected an integer >= 1"},
      {with(R"("zero_optimization": {"sub_group_size": 9223372036854775807})"),
       "1:96: zero_optimization.sub_group_size: found 9223372036854775807, expected an integer >= 1, of 2^53 at most"},
      {with(R"("gradient_clipping": -1)"), "1:77: gradient_clipping: found -1, expected a number >= 0"},
      {with(R"("gradient_clipping": null)"), "1:77: gradient_clipping: found null, expected a number >= 0"},
      {with("", R"({"type": "Adam", "params": {"betas": [0.9, 1.0]}})"),
       "1:75: optimizer.params.betas: found [0.9,1.0], expected a list of two numbers in [0, 1)"},
      {with("", R"({"type": "Lion"})"), "1:47: optimizer.type: found \"Lion\", expected SGD, Momentum, Adagrad, Adam, "
                                        "AdamW, Lamb, OneBitAdam, OneBitLamb, ZeroOneAdam"},
      {with(R"("zero_optimization": {"stage": 4})"),
       "1:87: zero_optimization.stage: found 4, expected an integer in [0, 3]"},
  });
}

TEST(ConfigRefusal, OfBatchSizesThatDoNotFit) {
  std::string optimizer = R"("optimizer": {"type": "SGD"})";
  expectAll({
      {"{" + optimizer + "}", "1:1: train_batch_size: missing, expected it or train_micro_batch_size_per_gpu"},
      {"{" + optimizer + R"(, "gradient_accumulation_steps": 2})",
       "1:32: train_batch_size: missing, expected it or train_micro_batch_size_per_gpu; gradient_accumulation_steps "
       "alone "
       "gives no batch size"},
      {"{" + optimizer + R"(, "train_batch_size": 30, "train_micro_batch_size_per_gpu": 8,
                             "gradient_accumulation_steps": 2})",
       "1:32: train_batch_size: found 30, but train_micro_batch_size_per_gpu 8 x gradient_accumulation_steps 2 x 1 "
       "rank "
       "(this is one process) is 16; with 1 rank (this is one process) micro-batch x accumulation may be 1x30, 2x15, "
       "3x10, 5x6, 6x5, 10x3, 15x2, 30x1"},
      {"{" + optimizer + R"(, "train_batch_size": 720, "train_micro_batch_size_per_gpu": 7})",
       "1:32: train_batch_size: found 720, expected a multiple of train_micro_batch_size_per_gpu 7 x 1 rank (this is "
       "one "
       "process); with 1 rank (this is one process) micro-batch x accumulation may be 1x720, 2x360, 3x240, 4x180, ..., "
       "180x4, 240x3, 360x2, 720x1"},
      {"{" + optimizer +
           R"(, "gradient_accumulation_steps": 2147483647, "train_micro_batch_size_per_gpu": 2147483647})",
       "1:75: train_micro_batch_size_per_gpu: found 2147483647, which x gradient_accumulation_steps 2147483647 x 1 "
       "rank "
       "(this is one process) is more than 2147483647"},
  });
}

TEST(ConfigRefusal, OfContradictions) {
  expectAll({
      {R"({"train_batch_size": 8})",
       "1:1: optimizer.type: missing, expected SGD, Momentum, Adagrad, Adam, AdamW, Lamb, "
       "OneBitAdam, OneBitLamb, ZeroOneAdam"},
      {with(R"("scheduler": {"params": {"warmup_min_lr": 0}})"),
       "1:69: scheduler.type: missing, expected LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR, WarmupCosineLR"},
      {with(R"("fp16": {"enabled": true}, "bf16": {"enabled": true})"),
       "1:92: bf16.enabled: found true with fp16.enabled true, expected one of them"},
      {with(R"("fp16": {"enabled": true, "initial_scale_power": 2, "min_loss_scale": 8})"),
       "1:108: fp16.min_loss_scale: found 8.0 with fp16.initial_scale_power 2, expected at most 2 to that power"},
      {withSchedule("OneCycle", R"("cycle_min_lr": 2, "cycle_max_lr": 1)"),
       "1:101: scheduler.params.cycle_min_lr: found 2.0 with scheduler.params.cycle_max_lr 1.0, expected at most that"},
      {withSchedule("WarmupDecayLR"), "1:70: scheduler.params.total_num_steps: missing, expected an integer >= 1 for "
                                      "WarmupDecayLR"},
      {with("", R"({"type": "SGD", "params": {"nesterov": true}})"),
       "1:65: optimizer.params.nesterov: found true with optimizer.params.momentum 0.0, expected a momentum above 0"},
      {with(R"("gradient_clipping": 2)", R"({"type": "Lamb", "params": {"max_grad_norm": 1}})"),
       "1:66: optimizer.params.max_grad_norm: found 1.0, but gradient_clipping is 2.0 in line 1; expected one of them"},
  });
}

TEST(ConfigRefusal, OfQuantization) {
  auto moq = [](const std::string &members) {
    return with(R"("quantize_training": {"enabled": true, )" + members + "}");
  };
  expectAll({
      {moq(R"("quantize_bits": {"target_bits": -1})"),
       "1:128: quantize_training.quantize_bits.target_bits: found -1, expected an integer in [1, 24]"},
      {moq(R"("quantize_bits": {"start_bits": 4})"),
       "1:113: quantize_training.quantize_bits.target_bits: found 8 with quantize_training.quantize_bits.start_bits 4, "
       "expected at most that"},
      {moq(R"("quantize_bits": {"target_bits": 2}, "quantize_type": "asymmetric")"),
       "1:113: quantize_training.quantize_bits.target_bits: found 2 with quantize_training.quantize_algo.q_type "
       "\"asymmetric\", expected at least 3: ternary and binary weights are symmetric and rounded to nearest"},
      {moq(R"("quantize_bits": {"target_bits": 1}, "quantize_algo": {"rounding": "stochastic"})"),
       "1:113: quantize_training.quantize_bits.target_bits: found 1 with quantize_training.quantize_algo.rounding "
       "\"stochastic\", expected at least 3: ternary and binary weights are symmetric and rounded to nearest"},
      {moq(R"("quantize_groups": 0)"),
       "1:114: quantize_training.quantize_groups: found 0, expected an integer in [1, 2147483647]"},
      {moq(R"("fp16_mixed_quantize": {"quantize_change_ratio": 0.5})"),
       "1:119: quantize_training.fp16_mixed_quantize.quantize_change_ratio: found 0.5 without "
       "quantize_training.fp16_mixed_quantize.enabled, expected quantize_training.fp16_mixed_quantize.enabled true, or "
       "false to keep the section switched off"},
      {moq(R"("fp16_mixed_quantize": {"enabled": true, "quantize_change_ratio": 0})"),
       "1:161: quantize_training.fp16_mixed_quantize.quantize_change_ratio: found 0, expected a number in (0, 1]"},
      {moq(R"("eigenvalue": {"enabled": true})"), "1:110: quantize_training.eigenvalue.layer_num: found 0 with "
                                                  "quantize_training.eigenvalue.enabled true, expected "
                                                  "the number of layers, at least 1"},
      {moq(R"("eigenvalue": {"enabled": true, "layer_num": 2, "layer_name": ""})"),
       "1:143: quantize_training.eigenvalue.layer_name: found \"\" with quantize_training.eigenvalue.enabled true, "
       "expected the path of the layers, as bert.encoder.layer"},
      {with(R"("quantize_training": {"quantize_groups": 8})"),
       "1:78: quantize_training.quantize_groups: found 8 without quantize_training.enabled, expected "
       "quantize_training.enabled true, or false to keep the section switched off"},
  });
}

TEST(ConfigRefusal, OfPlacesThatStatesCannotHave) {
  expectAll({
      {with(R"("zero_optimization": {"offload_optimizer": {"device": "nvme"}})"),
       "1:100: zero_optimization.offload_optimizer.nvme_path: missing, expected a folder, for device nvme"},
      {with(R"("zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}})"),
       "1:108: zero_optimization.offload_param.device: found cpu at stage 2, expected none, or stage 3: below it "
       "parameters "
       "are "
       "whole where they are used"},
      {with(R"("zero_optimization": {"offload_optimizer": {"device": "disk"}})"),
       "1:110: zero_optimization.offload_optimizer.device: found \"disk\", expected none, cpu, nvme"},
      {with(R"("zero_optimization": {"offload_optimizer": {"buffer_count": 0}})"),
       "1:116: zero_optimization.offload_optimizer.buffer_count: found 0, expected an integer in [1, 2147483647]"},
  });
}

TEST(ConfigRefusal, OfFeaturesOfLaterParts) {
  expectAll({
      {with(R"("amp": {"enabled": true})"),
       "1:56: amp: found {\"enabled\":true}, which switches on what this version does "
       "not have (mixed precision by Apex)"},
      {with(R"("activation_checkpointing": {"cpu_checkpointing": true})"),
       "1:85: activation_checkpointing.cpu_checkpointing: found true, which switches on what this version does not "
       "have (keeps them in host memory); expected false"},
      {with("", R"({"type": "Adam", "params": {"amsgrad": true}})"),
       "1:66: optimizer.params.amsgrad: found true, which switches on what this version does not have (divides by the "
       "largest second average so far); expected false"},
  });
}

TEST(ConfigRefusal, IsStrictWhereAsked) {
  ReadOptions strict;
  strict.isStrict = true;
  EXPECT_EQ(errorsOf(fixture("gpt2.json"), strict),
            "c.json:18:3: zero_optimization.stage: found 1, which has no effect on "
            "one rank; expected no such key (strict)");
  EXPECT_EQ(errorsOf(with("", R"({"type": "OneBitAdam"})"), strict),
            "c.json:1:39: optimizer.type: found \"OneBitAdam\", which has no effect on one rank; expected no such key "
            "(strict)");
  legal(with(R"("zero_optimization": false, "sparse_gradients": false)"), strict);
}

TEST(ConfigRefusal, OfFiles) {
  std::string folder = std::filesystem::temp_directory_path().string();
  EXPECT_EQ(joined(readConfigFile(folder).errors), folder + ": found a directory, expected a JSON file");
  EXPECT_EQ(joined(readConfigFile("/nowhere/c.json").errors), "/nowhere/c.json: found nothing, expected a JSON file");
  EXPECT_EQ(joined(readConfigFile("/dev/zero").errors), "/dev/zero: found no regular file, expected a JSON file");
}

TEST(ConfigRefusal, StopsAfterAScreenful) {
  std::string members;
  for (int i = 0; i < 50000; ++i)
    members += (i ? ",\"unknown" : "\"unknown") + std::to_string(i) + "\":1";
  EXPECT_EQ(readConfig("{" + members + "}", "c.json").errors.size(), 20u);
}

// What a file asks for besides the defaults must happen.
TEST(ConfigRefusal, OfValuesThatDoNothing) {
  const std::string cycle = R"("cycle_min_lr": 1, "cycle_max_lr": 2, )";
  auto sgd = [&](const std::string &params) {
    return with(R"("scheduler": {"type": "OneCycle", "params": {)" + cycle + params + "}}", R"({"type": "SGD"})");
  };
  const std::vector<std::pair<std::string, std::string>> idle = {
      {with("", R"({"type": "SGD", "params": {"dampening": 0.1}})"),
       "optimizer.params.dampening: found 0.1 with optimizer.params.momentum 0.0, expected a momentum above 0"},
      {sgd(R"("cycle_min_mom": 0.7)"),
       "scheduler.params.cycle_min_mom: found 0.7 with optimizer.params.momentum 0.0, expected a momentum above 0"},
      {with(R"("scheduler": {"type": "OneCycle", "params": {)" + cycle + R"("cycle_max_mom": 0.95}})",
            R"({"type": "Adagrad"})"),
       "scheduler.params.cycle_max_mom: found 0.95 with optimizer.type \"Adagrad\", expected an optimizer with "
       "momentum"},
      {withSchedule("OneCycle", cycle + R"("cycle_momentum": false, "cycle_max_mom": 0.95)"),
       "scheduler.params.cycle_max_mom: found 0.95 with scheduler.params.cycle_momentum false, expected true for it"},
      {withSchedule("OneCycle", cycle + R"("decay_lr_rate": 0.1)"),
       "scheduler.params.decay_lr_rate: found 0.1 with scheduler.params.decay_step_size 0, expected at least 1 for it"},
      {with(R"("fp16": {"enabled": true, "loss_scale": 128, "hysteresis": 3})"),
       "fp16.hysteresis: found 3 with fp16.loss_scale 128.0, expected a loss_scale of 0, which adapts it"},
      {with(R"("fp16": {"enabled": true, "loss_scale": 128, "loss_scale_window": 10})"),
       "fp16.loss_scale_window: found 10 with fp16.loss_scale 128.0, expected a loss_scale of 0, which adapts it"},
      {with(R"("fp16": {"loss_scale_window": 10})"), "fp16.loss_scale_window: found 10 without fp16.enabled, expected "
                                                     "fp16.enabled true, or false to keep the section "
                                                     "switched off"},
      {with(R"("tensorboard": {"output_path": "runs"})"),
       "tensorboard.output_path: found \"runs\" without tensorboard.enabled, expected tensorboard.enabled true, or "
       "false "
       "to keep the section switched off"},
  };
  for (const auto &[text, expected] : idle) {
    std::string errors = errorsOf(text);
    EXPECT_NE(errors.find(": " + expected), std::string::npos) << text << "\n" << errors << "\nnot\n" << expected;
  }
}
