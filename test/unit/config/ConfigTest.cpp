// What legal files mean, and where each value comes from.
#include "test/unit/config/Support.h"

#include <sstream>

using namespace ds;
using namespace ds::config;
using namespace ds::config::test;

TEST(Config, ReadsBert) {
  TrainingConfig config = legal(fixture("bert.json"));
  EXPECT_EQ(config.trainBatch, 16384);
  EXPECT_EQ(config.microBatch, 64);
  EXPECT_EQ(config.accumulation, 256);
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::Lamb);
  EXPECT_EQ(config.optimizer.lr, 4e-3);
  EXPECT_EQ(config.gradientClipping, 1);
  EXPECT_FALSE(config.optimizer.correctsBias);
  EXPECT_TRUE(config.isFp16);
  EXPECT_EQ(config.lossScale.constant, 0);
  EXPECT_EQ(config.lossScale.initial, 65536);
  EXPECT_EQ(config.schedule.kind, ScheduleKind::Constant);
  EXPECT_EQ(optimizerText(config.optimizer),
            "lamb,beta2=0.999,epsilon=1e-08,bias_correction=false,min_coeff=0.08,max_coeff=0.5,epsilon_inside=false,"
            "weight_decay=0.01");
}

TEST(Config, ReadsGpt2) {
  TrainingConfig config = legal(fixture("gpt2.json"));
  EXPECT_EQ(config.accumulation, 32);
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::Adam);
  EXPECT_TRUE(config.optimizer.isDecoupled);
  EXPECT_EQ(config.optimizer.lr, 1.5e-4);
  EXPECT_EQ(config.gradientClipping, 1);
  EXPECT_EQ(config.lossScale.window, 1000);
  EXPECT_EQ(config.lossScale.hysteresis, 2);
  EXPECT_EQ(config.zero.stage, 1);
  EXPECT_EQ(noteOf(config, "zero_optimization.stage"), "without effect on one rank, from true");
  EXPECT_EQ(optimizerText(config.optimizer), "adamw,beta2=0.999,epsilon=1e-08,bias_correction=true,weight_decay=0");
}

TEST(Config, ReadsTheMinimalFile) {
  TrainingConfig config = legal(fixture("minimal.json"));
  EXPECT_EQ(config.microBatch, 8);
  EXPECT_EQ(config.gradientClipping, 0);
  EXPECT_EQ(config.stepsPerPrint, 10);
}

TEST(Config, ReadsQuantization) {
  TrainingConfig off = legal(fixture("minimal.json"));
  EXPECT_FALSE(off.quantization.isEnabled);
  EXPECT_EQ(valueOf(off, "quantize_training.enabled"), "false");
  EXPECT_EQ(off.find("quantize_training.quantize_groups"), nullptr);
  TrainingConfig config = legal(with(R"("quantize_training": {"enabled": true, "quantizer_kernel": true,
      "quantize_groups": 8, "quantize_bits": {"start_bits": 12, "target_bits": 4}, "quantize_verbose": true,
      "quantize_type": "asymmetric", "quantize_schedule": {"quantize_period": 400, "schedule_offset": 0},
      "quantize_algo": {"rounding": "stochastic"}, "fp16_mixed_quantize": {"enabled": true}})"));
  const QuantizationSettings &found = config.quantization;
  EXPECT_TRUE(found.isEnabled && found.isVerbose && found.isStochastic && found.isMixed && !found.isSymmetric);
  EXPECT_EQ(found.groups, 8);
  EXPECT_EQ(found.startBits, 12);
  EXPECT_EQ(found.targetBits, 4);
  EXPECT_EQ(found.period, 400);
  EXPECT_EQ(found.offset, 0);
  EXPECT_EQ(found.changeRatio, 0.001);
  EXPECT_EQ(noteOf(config, "quantize_training.quantizer_kernel"), "without effect in a compiled step");
  EXPECT_EQ(noteOf(config, "quantize_training.quantize_type"), "means quantize_training.quantize_algo.q_type");
  TrainingConfig defaults = legal(with(R"("quantize_training": {"enabled": true})"));
  EXPECT_EQ(defaults.quantization.startBits, 16);
  EXPECT_EQ(defaults.quantization.targetBits, 8);
  EXPECT_EQ(defaults.quantization.period, 1000);
  EXPECT_EQ(defaults.quantization.offset, 1000);
  EXPECT_FALSE(defaults.quantization.isMixed);
  EXPECT_EQ(toJson(fromJson(toJson(config))), toJson(config));
}

TEST(Config, PrintsEachValueWithItsOrigin) {
  TrainingConfig config = legal(fixture("bert.json"));
  std::ostringstream out;
  printConfig(config, out);
  std::string text = out.str();
  for (const char *line : {"train_batch_size                 = 16384                # c.json:2\n",
                           "gradient_accumulation_steps      = 256                  # derived: train_batch_size / "
                           "train_micro_batch_size_per_gpu / 1 rank (this is one process)\n",
                           "gradient_clipping                = 1.0                  # c.json:9; from "
                           "optimizer.params.max_grad_norm\n",
                           "optimizer.params.eps             = 1e-08                # default\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  EXPECT_EQ(joined(notes(config)), "c.json:9: optimizer.params.max_grad_norm = 1.0: means gradient_clipping");
}

TEST(Config, DerivesBatchSizes) {
  auto sizes = [](const std::string &members, int64_t ranks = 1) {
    ReadOptions options;
    options.ranks = ranks;
    TrainingConfig c = legal("{" + members + R"(, "optimizer": {"type": "SGD"}})", options);
    return std::vector<int64_t>{c.trainBatch, c.microBatch, c.accumulation};
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes(R"("train_batch_size": 12)"), (Sizes{12, 12, 1}));
  EXPECT_EQ(sizes(R"("train_micro_batch_size_per_gpu": 3)"), (Sizes{3, 3, 1}));
  EXPECT_EQ(sizes(R"("train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4)"), (Sizes{12, 3, 4}));
  EXPECT_EQ(sizes(R"("train_batch_size": 12, "gradient_accumulation_steps": 4)"), (Sizes{12, 3, 4}));
  EXPECT_EQ(sizes(R"("train_batch_size": 12, "train_micro_batch_size_per_gpu": 3)", 2), (Sizes{12, 3, 2}));
  EXPECT_EQ(sizes(R"("train_batch_size": 12, "train_micro_batch_size_per_gpu": 3,
                     "gradient_accumulation_steps": 2)",
                  2),
            (Sizes{12, 3, 2}));
  EXPECT_EQ(sizes(R"("train_batch_size": 8.0)"), (Sizes{8, 8, 1}));
}

TEST(Config, AdamIsDecoupledUnlessToldOtherwise) {
  auto rule = [](const std::string &optimizer) {
    std::string text = optimizerText(legal(with("", optimizer)).optimizer);
    return text.substr(0, text.find(','));
  };
  EXPECT_EQ(rule(R"({"type": "Adam"})"), "adamw");
  EXPECT_EQ(rule(R"({"type": "ADAM", "params": {"torch_adam": true}})"), "adamw");
  EXPECT_EQ(rule(R"({"type": "adam", "params": {"adam_w_mode": false}})"), "adam");
  EXPECT_EQ(rule(R"({"type": "AdamW", "params": {"adam_w_mode": false}})"), "adamw");
  EXPECT_EQ(rule(R"({"type": "OneBitAdam", "params": {"freeze_step": 5}})"), "one_bit_adam");
  EXPECT_EQ(rule(R"({"type": "ZeroOneAdam"})"), "adamw");
  EXPECT_EQ(rule(R"({"type": "OneBitLamb"})"), "one_bit_lamb");
}

TEST(Config, KnowsTheOtherOptimizers) {
  TrainingConfig sgd = legal(with("", R"({"type": "SGD", "params": {"lr": 0.1}})"));
  EXPECT_EQ(optimizerText(sgd.optimizer), "sgd,momentum=false,dampening=0,nesterov=false,weight_decay=0");
  TrainingConfig momentum = legal(with("", R"({"type": "Momentum", "params": {"nesterov": true}})"));
  EXPECT_EQ(momentum.optimizer.momentum, 0.9);
  EXPECT_EQ(optimizerText(momentum.optimizer), "sgd,momentum=true,dampening=0,nesterov=true,weight_decay=0");
  TrainingConfig adagrad = legal(with("", R"({"type": "Adagrad", "params": {"initial_accumulator_value": 0.1}})"));
  EXPECT_EQ(adagrad.optimizer.lr, 0.01);
  EXPECT_EQ(optimizerText(adagrad.optimizer), "adagrad,epsilon=1e-10,initial=0.1,lr_decay=0,weight_decay=0");
  TrainingConfig adam = legal(with("", R"({"type": "Adam", "params": {"betas": [0.8, 0.99], "eps": 1e-6}})"));
  EXPECT_EQ(adam.optimizer.momentum, 0.8);
  EXPECT_EQ(adam.optimizer.beta2, 0.99);
}

TEST(Config, ReadsSchedules) {
  ScheduleSettings cycle = legal(withSchedule("OneCycle", R"("cycle_min_lr": 0.1, "cycle_max_lr": 0.2,
      "cycle_first_step_size": 7, "cycle_first_stair_count": 3, "post_cycle_decay_step_size": 5)"))
                               .schedule;
  EXPECT_EQ(cycle.kind, ScheduleKind::OneCycle);
  EXPECT_EQ(cycle.cycleSecondStepSize, 7);
  EXPECT_EQ(cycle.cycleSecondStairCount, 3);
  EXPECT_EQ(cycle.decayStepSize, 5);
  EXPECT_EQ(cycle.momentum, 0.9);
  TrainingConfig warmup = legal(withSchedule("WarmupLR", R"("warmup_type": "linear", "warmup_num_steps": 9)"));
  EXPECT_TRUE(warmup.schedule.isWarmupLinear);
  EXPECT_EQ(warmup.schedule.warmupNumSteps, 9);
  EXPECT_EQ(noteOf(warmup, "optimizer.params.lr"), "replaced by the scheduler");
  EXPECT_EQ(legal(withSchedule("WarmupCosineLR", R"("total_num_steps": 9)")).schedule.totalNumSteps, 9);
  EXPECT_EQ(legal(withSchedule("LRRangeTest", R"("lr_range_test_staircase": true)")).schedule.isRangeStaircase, true);
  TrainingConfig plain = legal(with(
      R"("scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1, "cycle_max_lr": 2}})", R"({"type": "SGD"})"));
  EXPECT_FALSE(plain.schedule.cyclesMomentum);
  EXPECT_EQ(noteOf(plain, "scheduler.params.cycle_momentum"), "without effect: the optimizer has no momentum");
}

TEST(Config, LossScaleIsOneWithoutFp16) {
  EXPECT_EQ(legal(with(R"("fp16": {"enabled": false, "loss_scale": 0})")).lossScale.constant, 1);
  EXPECT_EQ(legal(with(R"("fp16": {"enabled": true, "loss_scale": 128})")).lossScale.constant, 128);
  EXPECT_TRUE(legal(with(R"("bfloat16": {"enabled": true})")).isBf16);
}

TEST(Config, AcceptsWhatOneRankDoesNotNeed) {
  TrainingConfig config =
      legal(with(R"("zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e8,
      "offload_optimizer": {"device": "none"}}, "sparse_gradients": false, "progressive_layer_drop": {"enabled": false,
      "theta": 0.4}, "flops_profiler": {"enabled": false, "profile_step": 5}, "aio": {}, "elasticity": {"enabled": false,
      "x": 1}, "compression_training": {"weight_quantization": {"shared_parameters": {"enabled": false}}})"));
  EXPECT_EQ(noteOf(config, "zero_optimization.reduce_bucket_size"), "without effect on one rank");
  EXPECT_EQ(noteOf(config, "zero_optimization.offload_optimizer.device"), "");
  EXPECT_EQ(noteOf(config, "progressive_layer_drop.theta"), "switched off");
  EXPECT_EQ(noteOf(config, "aio"), "empty");
  EXPECT_FALSE(config.find("aio")->isUsed);
  EXPECT_EQ(notes(config).size(), 10u);
}

TEST(Config, SaysWhereStatesLive) {
  TrainingConfig absent = legal(with(""));
  EXPECT_EQ(absent.zero.optimizerPlace.device, "none");
  EXPECT_EQ(legal(with(R"("zero_optimization": {"offload_optimizer": {}})")).zero.optimizerPlace.device, "cpu");
  EXPECT_EQ(legal(with(R"("zero_optimization": {"cpu_offload": true})")).zero.optimizerPlace.device, "cpu");
  TrainingConfig none =
      legal(with(R"("zero_optimization": {"cpu_offload": true, "offload_optimizer": {"device": "none"}})"));
  EXPECT_EQ(none.zero.optimizerPlace.device, "none");
  TrainingConfig config = legal(with(R"("zero_optimization": {"stage": 3,
      "offload_optimizer": {"device": "nvme", "nvme_path": "/disk", "buffer_count": 6},
      "offload_param": {"device": "nvme", "nvme_path": "/other", "max_in_cpu": 1e4, "buffer_size": 1e8}})"));
  EXPECT_EQ(config.zero.optimizerPlace.folder, "/disk");
  EXPECT_EQ(config.zero.optimizerPlace.buffers, 6);
  EXPECT_EQ(config.zero.optimizerPlace.inHost, 0);
  EXPECT_EQ(config.zero.parameterPlace.folder, "/other");
  EXPECT_EQ(config.zero.parameterPlace.buffers, 5);
  EXPECT_EQ(config.zero.parameterPlace.inHost, 10000);
  TrainingConfig idle =
      legal(with(R"("zero_optimization": {"offload_optimizer": {"device": "cpu", "buffer_count": 7}})"));
  EXPECT_EQ(noteOf(idle, "zero_optimization.offload_optimizer.buffer_count"), "without effect: the device is cpu");
  TrainingConfig inMemory = legal(with(R"("zero_optimization": {"stage": 2, "sub_group_size": 7})"));
  EXPECT_EQ(noteOf(inMemory, "zero_optimization.sub_group_size"),
            "without effect: an update works in place, and no states of the optimizer are in files");
}

TEST(Config, AcceptsDefaultsThatDoNothingAndSectionsThatAreSwitchedOff) {
  for (const std::string &text :
       {with("", R"({"type": "SGD", "params": {"dampening": 0}})"),
        with(R"("scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1, "cycle_max_lr": 2, "cycle_min_mom": 0.8,
                "decay_lr_rate": 0}})",
             R"({"type": "SGD"})"),
        with(R"("fp16": {"enabled": true, "loss_scale": 128, "hysteresis": 2, "loss_scale_window": 1000})"),
        with(R"("fp16": {"loss_scale_window": 1000, "hysteresis": 2}, "tensorboard": {})")})
    (void)legal(text);
  TrainingConfig off = legal(with(R"("fp16": {"enabled": false, "loss_scale_window": 10, "hysteresis": 2},
      "tensorboard": {"enabled": false, "output_path": "runs"})"));
  for (const char *key : {"fp16.loss_scale_window", "fp16.hysteresis", "tensorboard.output_path"}) {
    EXPECT_EQ(noteOf(off, key), "switched off");
    EXPECT_FALSE(off.find(key)->isUsed);
  }
  EXPECT_EQ(noteOf(off, "fp16.enabled"), "");
}
