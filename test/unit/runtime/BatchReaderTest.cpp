#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Error.h"
#include "runtime/training/BatchReader.h"

#include <gtest/gtest.h>
#include <set>

using namespace ds;
using namespace ds::test;

namespace {

// Sample i has the rows [i, i] and i.
class Counting : public Dataset {
public:
  explicit Counting(int64_t samples, std::optional<int64_t> batchSize = std::nullopt) {
    count = samples;
    list = {{"x", ElementType::F32, {2}, std::nullopt, batchSize}, {"y", ElementType::I64, {}, std::nullopt, {}}};
  }
  int64_t broken = -1;

protected:
  void readRow(size_t field, int64_t sample, void *to) const override {
    if (sample == broken)
      fail(ErrorCode::ShapeMismatch, "is broken");
    for (int64_t i = 0; i < (field == 0 ? 2 : 1); ++i)
      storeDouble(list[field].type, to, static_cast<size_t>(i), double(sample));
  }
  std::string place(int64_t) const override { return "counting"; }
};

BatchReader reader(int64_t samples, int64_t batch, LastBatch last, int64_t epochs, bool isShuffled = true) {
  return {std::make_shared<Counting>(samples), Sampler(samples, 5, isShuffled, epochs), batch, last};
}

std::vector<std::vector<int64_t>> all(BatchReader &from) {
  std::vector<std::vector<int64_t>> batches;
  for (Batch batch; from.next(batch);)
    batches.push_back(batch.samples);
  return batches;
}

TEST(BatchReader, GathersRows) {
  BatchReader batches = reader(5, 2, LastBatch::Smaller, 1);
  Batch batch;
  ASSERT_TRUE(batches.next(batch));
  EXPECT_EQ(batch.epoch, 0);
  ASSERT_EQ(batch.views().size(), 2u);
  EXPECT_EQ(batch.tensors[0].getShape(), (Shape{2, 2}));
  EXPECT_EQ(batch.tensors[1].getShape(), (Shape{2}));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(loadDouble(ElementType::F32, batch.tensors[0].data(), 2 * i + 1), double(batch.samples[i]));
    EXPECT_EQ(loadInteger(ElementType::I64, batch.tensors[1].data(), i), batch.samples[i]);
  }
}

TEST(BatchReader, LastBatchIsSmallerOrSkipped) {
  BatchReader smaller = reader(5, 2, LastBatch::Smaller, 2, false),
              skipped = reader(5, 2, LastBatch::Skipped, 2, false);
  using Batches = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(all(smaller), (Batches{{0, 1}, {2, 3}, {4}, {0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(all(skipped), (Batches{{0, 1}, {2, 3}, {0, 1}, {2, 3}}));
  EXPECT_EQ(smaller.batchesPerEpoch(), 3);
  EXPECT_EQ(skipped.batchesPerEpoch(), 2);
  BatchReader few = reader(3, 8, LastBatch::Smaller, 1, false);
  EXPECT_EQ(all(few), (Batches{{0, 1, 2}}));
  BatchReader exact = reader(4, 2, LastBatch::Skipped, 1, false);
  EXPECT_EQ(all(exact), (Batches{{0, 1}, {2, 3}}));
}

TEST(BatchReader, EachEpochHasEachSampleOnce) {
  BatchReader batches = reader(103, 8, LastBatch::Smaller, 3);
  std::multiset<int64_t> seen;
  for (const std::vector<int64_t> &batch : all(batches))
    seen.insert(batch.begin(), batch.end());
  for (int64_t i = 0; i < 103; ++i)
    EXPECT_EQ(seen.count(i), 3u);
}

TEST(BatchReader, GoesOnWhereItStopped) {
  for (LastBatch last : {LastBatch::Smaller, LastBatch::Skipped})
    for (size_t stop = 0; stop <= 12; ++stop) {
      BatchReader whole = reader(11, 3, last, 3), first = reader(11, 3, last, 3), second = reader(11, 3, last, 3);
      std::vector<std::vector<int64_t>> expected = all(whole), found;
      Batch batch;
      for (size_t i = 0; i < stop && first.next(batch); ++i)
        found.push_back(batch.samples);
      second.seek(first.position());
      EXPECT_EQ(second.position(), first.position());
      for (const std::vector<int64_t> &rest : all(second))
        found.push_back(rest);
      EXPECT_EQ(found, expected) << stop;
    }
}

TEST(BatchReader, ErrorsLeaveThePlace) {
  auto data = std::make_shared<Counting>(4);
  data->broken = 3;
  BatchReader batches(data, Sampler(4, 0, false), 2, LastBatch::Smaller);
  Batch batch;
  ASSERT_TRUE(batches.next(batch));
  EXPECT_EQ(errorOf([&] { batches.next(batch); }), "counting: sample 3: 'x': is broken");
  EXPECT_EQ(batches.position(), (LoaderPosition{0, 2}));
}

TEST(BatchReader, NamesItsSamples) {
  Batch batch;
  batch.epoch = 2;
  batch.samples = {4};
  EXPECT_EQ(batch.where(), "epoch 2, sample 4");
  for (int64_t i = 0; i < 9; ++i)
    batch.samples.push_back(i);
  EXPECT_EQ(batch.where(), "epoch 2, samples 4, 0, 1, 2, 3, 4, 5, 6 and 2 more");
}

TEST(BatchReader, RefusesWhatGivesNoBatch) {
  EXPECT_EQ(errorOf([] { reader(3, 0, LastBatch::Smaller, 1); }), "found batches of 0, expected 1 to 16777216");
  EXPECT_EQ(errorOf([] { reader(3, 4, LastBatch::Skipped, 1); }),
            "found 3 samples, expected at least one batch of 4, since smaller ones are skipped");
  auto fixed = std::make_shared<Counting>(5, 2);
  EXPECT_EQ(errorOf([&] { BatchReader(fixed, Sampler(5, 0, false), 3, LastBatch::Skipped); }),
            "found batches of 3, expected 2: input 'x' has no other size");
  EXPECT_EQ(
      errorOf([&] { BatchReader(fixed, Sampler(5, 0, false), 2, LastBatch::Smaller); }),
      "found 5 samples, expected a multiple of 2, or that a smaller last batch is skipped: input 'x' has no other "
      "size");
  EXPECT_EQ(errorOf([&] { BatchReader(fixed, Sampler(4, 0, false), 2, LastBatch::Skipped); }),
            "found a sampler of 4 samples, expected 5");
  BatchReader batches = reader(3, 2, LastBatch::Smaller, 1);
  EXPECT_EQ(errorOf([&] { batches.seek({0, 4}); }),
            "cannot go on at sample 4 of epoch 0: the data has 3 samples an epoch");
}

} // namespace
