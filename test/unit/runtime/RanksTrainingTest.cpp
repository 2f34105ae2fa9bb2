// Steps of training on several ranks, against one process that accumulates the same micro-batches. The package by hand
// has no collectives: gradients are added in rank order while ranks meet to gather losses.
#include "test/unit/runtime/LocalRanks.h"
#include "test/unit/runtime/PackageBuilder.h"
#include "test/unit/support/Seed.h"

#include "runtime/training/Score.h"
#include "runtime/training/TrainingRun.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;

namespace {

// Rows of four floats and a label, drawn from a seed.
class Rows : public Dataset {
public:
  Rows(int64_t samples, uint32_t seed, bool isExact) : values(static_cast<size_t>(samples) * 4) {
    count = samples;
    list = {{"x", ElementType::F32, {4}, std::nullopt, {}}, {"labels", ElementType::I64, {}, std::nullopt, {}}};
    std::mt19937 engine(seed);
    for (float &value : values)
      value =
          isExact ? static_cast<float>(static_cast<int>(engine() % 17) - 8) : std::normal_distribution<float>()(engine);
  }
  std::vector<float> values;
  int64_t badLabel = -1;

protected:
  void readRow(size_t field, int64_t sample, void *to) const override {
    if (field == 0)
      std::memcpy(to, &values[static_cast<size_t>(sample) * 4], 16);
    else
      storeDouble(ElementType::I64, to, 0, sample == badLabel ? 9 : 1);
  }
  std::string place(int64_t) const override { return "rows"; }
};

struct Values {
  std::vector<float> w, running;
};

struct Outcome {
  std::vector<StepRecord> records;
  Values end;
  LoaderPosition position;
  std::string message;
};

struct Case {
  unsigned world = 1;
  int64_t accumulation = 1, micro = 1, steps = 5, epochs = 0;
  double lr = 0.1, predivide = 1;
  uint64_t seed = 3;
};

std::vector<float> stateOf(Trainer &trainer, const std::string &name) {
  std::vector<float> values(4);
  trainer.session().withStates([&](StateStore &states) {
    for (const NamedView &state : states.views())
      if (state.name == name)
        std::memcpy(values.data(), state.view.data, 16);
  });
  return values;
}

class RanksTraining : public testing::Test {
protected:
  // Sums of all ranks' gradients in rank order go to all of them.
  static void reduce(const std::vector<Trainer *> &trainers) {
    std::vector<float> sum(4);
    for (size_t rank = 0; rank < trainers.size(); ++rank) {
      std::vector<float> own = stateOf(*trainers[rank], "w/gradient");
      for (size_t i = 0; i < 4; ++i)
        sum[i] = rank == 0 ? own[i] : sum[i] + own[i];
    }
    for (Trainer *trainer : trainers)
      trainer->session().withStates([&](StateStore &states) {
        for (NamedView &state : states.views())
          if (state.name == "w/gradient")
            std::memcpy(const_cast<void *>(state.view.data), sum.data(), 16);
      });
  }

  std::vector<Outcome> train(const Case &one, const std::shared_ptr<Dataset> &data) {
    LocalRanks hub(one.world);
    std::vector<Outcome> outcomes(one.world);
    std::vector<std::unique_ptr<Trainer>> trainers;
    std::vector<Trainer *> all;
    for (unsigned rank = 0; rank < one.world; ++rank)
      all.push_back(trainers.emplace_back(std::make_unique<Trainer>(package, SessionOptions{1, nullptr})).get());
    hub.meeting = [&](const std::string &what) {
      if (what == "losses")
        reduce(all);
    };
    std::vector<std::string> messages = hub.run([&](Ranks &ranks) {
      Trainer &trainer = *all[ranks.rank()];
      BatchReader reader(data, Sampler(data->samples(), one.seed, true, one.epochs), one.micro, LastBatch::Smaller);
      RunSettings settings;
      settings.schedule.lr = one.lr;
      settings.accumulation = one.accumulation;
      settings.predivide = one.predivide;
      TrainingRun run(trainer, settings, reader, ranks);
      trainer.touchStates();
      Outcome &outcome = outcomes[ranks.rank()];
      for (int64_t step = 0; step < one.steps; ++step) {
        trainer.zeroGradients(); // the package's own entry does not
        trainer.beginStatistics();
        std::optional<StepRecord> record = run.step();
        if (!record)
          break;
        outcome.records.push_back(*record);
        if (record->overflowed)
          outcome.message = run.findFault();
      }
      outcome.position = reader.position();
      outcome.end = {stateOf(trainer, "w"), stateOf(trainer, "m")};
    });
    for (unsigned rank = 0; rank < one.world; ++rank)
      if (!messages[rank].empty())
        outcomes[rank].message = messages[rank];
    return outcomes;
  }

  static void expectSame(const StepRecord &found, const StepRecord &expected) {
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.samples, expected.samples);
    EXPECT_EQ(found.stepSamples, expected.stepSamples);
    EXPECT_EQ(found.microBatches, expected.microBatches);
    EXPECT_EQ(found.gradNorm, expected.gradNorm);
    EXPECT_EQ(found.skipped, expected.skipped);
  }

  TemporaryFolder folder;
  std::shared_ptr<const Package> package = Package::load(writePackage(folder.path(), trainingManifest()));
  std::mt19937 engine{randomSeed()};
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }
};

TEST_F(RanksTraining, BitsAreThoseOfOneProcess) {
  for (unsigned world : {2u, 3u, 4u, 8u}) {
    Case one;
    one.epochs = draw(1, 3);
    one.steps = 20;
    one.seed = static_cast<uint64_t>(draw(0, 1000));
    // Steps in which some ranks have no samples, and a last one of few, are among them.
    auto data = std::make_shared<Rows>(draw(5, 40), static_cast<uint32_t>(draw(0, 1 << 20)), /*isExact=*/false);
    SCOPED_TRACE(concat(world, " ranks, ", data->samples(), " samples, ", one.epochs, " epochs"));
    one.accumulation = world;
    Outcome expected = train(one, data)[0];
    EXPECT_EQ(expected.message, "");
    one.accumulation = 1;
    one.world = world;
    std::vector<Outcome> found = train(one, data);
    for (const Outcome &own : found) {
      EXPECT_EQ(own.message, "");
      ASSERT_EQ(own.records.size(), expected.records.size());
      for (size_t i = 0; i < own.records.size(); ++i)
        expectSame(own.records[i], expected.records[i]);
      EXPECT_EQ(own.end.w, expected.end.w);
      EXPECT_EQ(own.position, expected.position);
      EXPECT_EQ(own.end.running, found[0].end.running);
    }
  }
}

// Whole numbers and weights that are powers of 2: sums in any order are exact.
TEST_F(RanksTraining, AccumulationIsShared) {
  for (unsigned world : {2u, 4u}) {
    Case one;
    one.micro = draw(1, 3);
    one.steps = 6;
    one.lr = 0.125;
    one.accumulation = 4 * world;
    auto data = std::make_shared<Rows>(one.micro * 16 * draw(1, 3), static_cast<uint32_t>(draw(0, 1 << 20)), true);
    Outcome expected = train(one, data)[0];
    one.accumulation = 4;
    one.world = world;
    for (const Outcome &own : train(one, data)) {
      ASSERT_EQ(own.records.size(), 6u);
      for (size_t i = 0; i < 6; ++i)
        expectSame(own.records[i], expected.records[i]);
      EXPECT_EQ(own.end.w, expected.end.w);
    }
    one.predivide = 8; // a power of 2: only where they divide differs
    for (const Outcome &own : train(one, data))
      EXPECT_EQ(own.end.w, expected.end.w);
  }
}

// Of several rounds, with batches of other sizes at the ends of epochs.
TEST_F(RanksTraining, LossesAreAddedInTheOrderOfTheData) {
  for (unsigned world : {2u, 3u, 5u}) {
    Case one;
    one.micro = draw(2, 4);
    one.steps = 8;
    one.epochs = 3;
    one.lr = 0; // so that the order of gradients does not matter
    one.accumulation = 3 * world;
    auto data = std::make_shared<Rows>(draw(20, 60), static_cast<uint32_t>(draw(0, 1 << 20)), /*isExact=*/false);
    Outcome expected = train(one, data)[0];
    one.accumulation = 3;
    one.world = world;
    for (const Outcome &own : train(one, data)) {
      ASSERT_EQ(own.records.size(), expected.records.size());
      for (size_t i = 0; i < own.records.size(); ++i) {
        EXPECT_EQ(own.records[i].loss, expected.records[i].loss);
        EXPECT_EQ(own.records[i].samples, expected.records[i].samples);
        EXPECT_EQ(own.records[i].microBatches, expected.records[i].microBatches);
      }
      EXPECT_EQ(own.position, expected.position);
    }
  }
}

// Statistics move halfway with each micro-batch of a rank; the mean of ranks is kept, weighed by micro-batches.
TEST_F(RanksTraining, StatisticsAreTheMeanOverRanks) {
  auto data = std::make_shared<Rows>(5, 1, true);
  for (int64_t i = 0; i < 20; ++i)
    data->values[static_cast<size_t>(i)] = static_cast<float>(i / 4);
  Case one;
  one.world = 3;
  one.accumulation = 2;
  one.steps = 1;
  one.epochs = 1;
  Sampler order(5, one.seed, true, 1);
  auto x = [&](int64_t at) { return static_cast<double>(order.at(0, at)); };
  for (const Outcome &own : train(one, data))
    for (size_t i = 0; i < 4; ++i) {
      double first = static_cast<double>(i) + 1; // of the package
      double rank0 = ((first + x(0)) / 2 + x(3)) / 2, rank1 = ((first + x(1)) / 2 + x(4)) / 2,
             rank2 = (first + x(2)) / 2;
      EXPECT_EQ(own.end.running[i], static_cast<float>((2 * rank0 + 2 * rank1 + rank2) / 5));
    }
}

TEST_F(RanksTraining, FaultsAreFoundWhereverTheyAre) {
  auto data = std::make_shared<Rows>(8, 5, false);
  Case one;
  one.world = 4;
  one.accumulation = 2;
  one.steps = 1;
  data->values[4 * 6 + 1] = NAN;
  data->values[4 * 2 + 3] = INFINITY;
  Case alone = one;
  alone.world = 1;
  alone.accumulation = 8;
  std::string expected = train(alone, data)[0].message;
  EXPECT_EQ(expected, "step 0: tensor 'x', which was read, holds nan in sample 6 of the data, epoch 0, sample 6");
  for (const Outcome &own : train(one, data))
    EXPECT_EQ(own.message, expected);
  data->values[4 * 6 + 1] = 0;
  expected = train(alone, data)[0].message;
  EXPECT_NE(expected.find("holds inf in sample 2 of the data; "), std::string::npos) << expected;
  for (const Outcome &own : train(one, data))
    EXPECT_EQ(own.message, expected);
}

TEST_F(RanksTraining, AWrongLabelOfOneRankEndsAll) {
  auto data = std::make_shared<Rows>(8, 5, false);
  data->badLabel = Sampler(8, 3, true).at(0, 2);
  Case one;
  one.world = 4;
  std::vector<Outcome> all = train(one, data);
  std::string label = concat("input 'labels': sample ", data->badLabel,
                             " of the data, element 0: found label 9, expected 0 to 2, or -100 for none");
  EXPECT_EQ(all[2].message, label);
  EXPECT_EQ(all[0].message, "rank 2: " + label);
  EXPECT_EQ(all[3].message, "rank 2: " + label);
}

TEST_F(RanksTraining, ScoresAreThoseOfOneProcess) {
  for (int round = 0; round < 10; ++round) {
    auto data = std::make_shared<Rows>(draw(1, 30), static_cast<uint32_t>(round), false);
    int64_t batch = draw(1, 7);
    Trainer alone(package, {1, nullptr});
    Score expected = evaluate(alone, data, batch);
    EXPECT_EQ(expected.samples, data->samples());
    for (unsigned world : {2u, 3u, 8u}) {
      std::vector<std::string> messages = LocalRanks(world).run([&](Ranks &ranks) {
        Trainer trainer(package, {1, nullptr});
        Score found = evaluate(trainer, data, batch, ranks);
        EXPECT_EQ(found.loss, expected.loss);
        EXPECT_EQ(found.accuracy, expected.accuracy);
        EXPECT_EQ(found.samples, expected.samples);
        EXPECT_EQ(found.counted, expected.counted);
      });
      EXPECT_EQ(messages, std::vector<std::string>(world));
    }
  }
}

} // namespace
