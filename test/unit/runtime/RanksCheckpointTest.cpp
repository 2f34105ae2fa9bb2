// Checkpoints of tensors that ranks hold parts of: saved by some ranks, read in any ranges.
#include "test/unit/runtime/LocalRanks.h"
#include "test/unit/runtime/PackageBuilder.h"
#include "test/unit/support/Listing.h"
#include "test/unit/support/Seed.h"

#include "runtime/core/MappedFile.h"
#include "runtime/training/Checkpoint.h"
#include "runtime/training/CheckpointFolder.h"
#include "runtime/training/CheckpointTools.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;

namespace {

struct Logical {
  std::string part, name;
  Tensor tensor;
};
using Parts = std::vector<CheckpointPart>;

class RanksCheckpoint : public testing::Test {
protected:
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }

  std::vector<Logical> drawTensors() {
    std::vector<Logical> all;
    for (int64_t i = 0, count = draw(1, 8); i < count; ++i) {
      ElementType type =
          std::vector{ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::I8}[draw(0, 3)];
      Shape shape = draw(0, 9) == 0 ? Shape{} : draw(0, 9) == 0 ? Shape{0, 3} : Shape{draw(1, 40), draw(1, 30)};
      Logical one = {draw(0, 1) ? "parameters" : "optimizer", concat("/t", i, "/w"), Tensor(type, shape)};
      for (size_t j = 0; j < one.tensor.bytes(); ++j)
        one.tensor.data()[j] = static_cast<uint8_t>(engine());
      all.push_back(std::move(one));
    }
    return all;
  }

  // Each tensor is cut at random places and its pieces go to random ranks, or all ranks hold it. Pieces lie in memory
  // of their own, as those of ranks do.
  std::vector<Parts> cut(const std::vector<Logical> &tensors, unsigned world) {
    std::vector<Parts> parts(world, Parts{{"parameters", {}}, {"optimizer", {}}});
    for (const Logical &one : tensors) {
      int64_t count = one.tensor.count();
      std::vector<int64_t> cuts = {0, count};
      bool isShared = draw(0, 3) == 0;
      for (int64_t i = draw(0, world); i > 0 && !isShared; --i)
        cuts.push_back(draw(0, count));
      std::sort(cuts.begin(), cuts.end());
      for (size_t i = 0; i + 1 < cuts.size(); ++i)
        for (unsigned rank = 0, owner = static_cast<unsigned>(draw(0, world - 1)); rank < world; ++rank)
          if (isShared || rank == owner)
            put(parts[rank][one.part == "optimizer"], one, cuts[i], cuts[i + 1]);
    }
    return parts;
  }

  void put(CheckpointPart &part, const Logical &one, int64_t begin, int64_t end) {
    ElementType type = one.tensor.getType();
    size_t size = typeSize(type);
    memory.emplace_back(type, Shape{end - begin});
    if (end > begin)
      std::memcpy(memory.back().data(), one.tensor.data() + static_cast<size_t>(begin) * size, memory.back().bytes());
    part.tensors.emplace_back(one.name, type, one.tensor.getShape(), begin, end, memory.back().data());
  }

  std::vector<std::string> save(const std::vector<Parts> &parts, const SaveOptions &options = {}) {
    return LocalRanks(static_cast<unsigned>(parts.size())).run([&](Ranks &ranks) {
      saveCheckpoint(run, progress, parts[ranks.rank()], options, ranks);
    });
  }

  void expectSame(const Checkpoint &checkpoint, const std::vector<Logical> &tensors) {
    ASSERT_EQ(checkpoint.items().size(), tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) { // both by name
      const Tensor &tensor = tensors[i].tensor;
      ASSERT_EQ(checkpoint.items()[i].name, tensors[i].name);
      EXPECT_EQ(checkpoint.items()[i].type, tensor.getType());
      EXPECT_EQ(checkpoint.items()[i].shape, tensor.getShape());
      EXPECT_TRUE(checkpoint.tensor(i).isIn(tensors[i].part));
      EXPECT_EQ(std::memcmp(checkpoint.view(i).data, tensor.data(), tensor.bytes()), 0) << tensors[i].name;
    }
  }

  std::vector<std::string> listing() const { return listingOf(run); }

  std::mt19937 engine{randomSeed()};
  TemporaryFolder folder;
  std::string run = folder.file("run");
  TrainingProgress progress;
  std::deque<Tensor> memory;
};

TEST_F(RanksCheckpoint, SavedBySomeReadByOthers) {
  for (int round = 0; round < 25; ++round) {
    unsigned world = static_cast<unsigned>(draw(1, 8)), readers = static_cast<unsigned>(draw(1, 8));
    std::vector<Logical> tensors = drawTensors();
    progress.step = round;
    SaveOptions options;
    options.fileBytes = static_cast<uint64_t>(draw(100, 100000));
    EXPECT_EQ(save(cut(tensors, world), options), std::vector<std::string>(world));
    expectSame(Checkpoint(run, ""), tensors);
    EXPECT_TRUE(verifyCheckpoint(run, "").empty());
    for (unsigned reader = 0; reader < readers; ++reader) {
      Checkpoint checkpoint(run, "");
      for (size_t i = 0; i < tensors.size(); ++i) {
        const Tensor &tensor = tensors[i].tensor;
        int64_t begin = tensor.count() * reader / readers, end = tensor.count() * (reader + 1) / readers;
        Tensor own(tensor.getType(), {end - begin});
        checkpoint.checkRange(i, tensor.getType(), begin, end);
        checkpoint.readRange(i, tensor.getType(), begin, end, own.data());
        EXPECT_EQ(std::memcmp(own.data(), tensor.data() + static_cast<size_t>(begin) * typeSize(tensor.getType()),
                              own.bytes()),
                  0);
      }
    }
  }
}

TEST_F(RanksCheckpoint, OneProcessAndSharedTensorsGiveWhatEarlierProgramsRead) {
  Logical one = {"parameters", "w", tensor<float>(ElementType::F32, {2, 2}, {1, 2, 3, 4})};
  std::vector<Parts> shared(3, Parts{{"parameters", {{"w", one.tensor.view()}}}});
  ASSERT_EQ(save(shared), std::vector<std::string>(3));
  std::string ofThree = readFile(run + "/global_step0/checkpoint.json");
  saveCheckpoint(run, progress, shared[0], {"one"});
  EXPECT_EQ(readFile(run + "/one/checkpoint.json"), ofThree);
  EXPECT_NE(ofThree.find("\"version\": 1,"), std::string::npos);
  EXPECT_FALSE(isThere(run + "/global_step0/parameters-rank1.safetensors"));
}

TEST_F(RanksCheckpoint, TensorsMayBeCalledLikePiecesOfOthers) {
  std::vector<Logical> tensors;
  for (const char *name : {"w", "w[0:4]", "w[0:4][]", "w[4:6]"}) { // by name
    tensors.push_back({"parameters", name, Tensor(ElementType::F32, {2, 3})});
    for (size_t j = 0; j < tensors.back().tensor.bytes(); ++j)
      tensors.back().tensor.data()[j] = static_cast<uint8_t>(engine());
  }
  std::vector<Parts> parts(2, Parts{{"parameters", {}}, {"optimizer", {}}});
  put(parts[0][0], tensors[0], 0, 4);
  for (size_t i = 1; i < tensors.size(); ++i)
    put(parts[0][0], tensors[i], 0, 6);
  put(parts[1][0], tensors[0], 4, 6);
  EXPECT_EQ(save(parts), std::vector<std::string>(2));
  expectSame(Checkpoint(run, ""), tensors);
  EXPECT_TRUE(verifyCheckpoint(run, "").empty());
}

TEST_F(RanksCheckpoint, ARankReadsOnlyWhatItNeeds) {
  Logical one = {"parameters", "w", Tensor(ElementType::F32, {4, 300000})};
  std::memset(one.tensor.data(), 7, one.tensor.bytes());
  std::vector<Parts> parts(2, Parts{{"parameters", {}}});
  put(parts[0][0], one, 0, 700000);
  put(parts[1][0], one, 700000, 1200000);
  ASSERT_EQ(save(parts), std::vector<std::string>(2));
  std::string path = run + "/global_step0/parameters-rank1.safetensors", bytes = readFile(path);
  SafetensorsReader reader(path);
  ASSERT_EQ(reader.items()[0].name, "w[700000:1200000]");
  size_t damaged = static_cast<size_t>(reader.offset(0)) + 1500000; // element 1075000
  bytes[damaged] ^= 1;
  writeFile(path, bytes);
  Checkpoint checkpoint(run, "");
  std::vector<float> own(1200000);
  EXPECT_EQ(errorOf([&] { checkpoint.readRange(0, ElementType::F32, 500000, 900000, own.data()); }), "");
  EXPECT_EQ(errorOf([&] { checkpoint.readRange(0, ElementType::F32, 900000, 1100000, own.data()); }),
            concat(path,
                   ": tensor 'w[700000:1200000]': checksum mismatch in bytes 1048576 to 2000000 of 2000000, "
                   "which begin at byte ",
                   reader.offset(0) + 1048576, " of the file"));
  EXPECT_EQ(verifyCheckpoint(run, "").size(), 1u);
  EXPECT_EQ(errorOf([&] { checkpoint.readRange(0, ElementType::F32, 5, 1200001, own.data()); }),
            "tensor 'w': elements 5 to 1200001, expected some of 1200000");
  EXPECT_NE(inspectCheckpoint(checkpoint).find("  w  f32 [4, 300000], elements 700000 to 1200000\n"),
            std::string::npos);
  EXPECT_EQ(inspectCheckpointJson(checkpoint)["tensors"][0]["pieces"][1]["begin"], 700000);
}

TEST_F(RanksCheckpoint, EveryFlippedByteAndMissingFileIsFound) {
  std::vector<Logical> tensors = drawTensors();
  tensors.push_back({"parameters", "z", Tensor(ElementType::F32, {64})});
  std::memset(tensors.back().tensor.data(), 1, 256);
  std::vector<Parts> parts = cut(tensors, 4);
  put(parts[3][0], {"parameters", "zz", tensors.back().tensor.clone()}, 0, 64);
  ASSERT_EQ(save(parts), std::vector<std::string>(4));
  for (const auto &entry : std::filesystem::directory_iterator(run + "/global_step0")) {
    std::string path = entry.path().string(), whole = readFile(path);
    for (int i = 0; i < 60; ++i) {
      std::string damaged = whole;
      damaged[engine() % whole.size()] ^= static_cast<char>(1 << engine() % 8);
      writeFile(path, damaged);
      std::vector<std::string> faults = verifyCheckpoint(run, "");
      ASSERT_FALSE(faults.empty()) << path;
      EXPECT_EQ(faults[0].find(path + ": "), 0u) << faults[0];
    }
    writeFile(path, whole);
    if (entry.path().filename() != checkpointInfoName) {
      std::filesystem::rename(path, path + ".away");
      EXPECT_EQ(verifyCheckpoint(run, ""), std::vector<std::string>{path + ": missing"});
      std::filesystem::rename(path + ".away", path);
    }
  }
  EXPECT_TRUE(verifyCheckpoint(run, "").empty());
}

TEST_F(RanksCheckpoint, PiecesMustBeAllOfATensor) {
  Logical one = {"parameters", "w", Tensor(ElementType::F32, {10})};
  std::vector<Parts> parts(3, Parts{{"parameters", {}}});
  put(parts[0][0], one, 0, 3);
  put(parts[1][0], one, 5, 10);
  auto all = [](const std::string &message) { // on whichever ranks it is found first
    return [=](const std::vector<std::string> &found) {
      for (const std::string &text : found)
        EXPECT_NE(text.find(message), std::string::npos) << text;
    };
  };
  all("tensor 'w': no rank holds elements 3 to 5 of 10")(save(parts));
  put(parts[2][0], one, 2, 9); // what two hold, the first of them writes
  EXPECT_EQ(save(parts), std::vector<std::string>(3));
  Logical other = {"parameters", "w", Tensor(ElementType::F32, {2, 5})};
  put(parts[2][0], other, 9, 10);
  all("ranks disagree: rank 2 has tensor 'w' in parameters f32 [2, 5], rank 0 in parameters f32 [10]")(save(parts));
  EXPECT_EQ(listing(), (std::vector<std::string>{"global_step0", "latest"}));
}

// A text that was changed and given a new checksum.
TEST_F(RanksCheckpoint, TablesWithHolesAreRefused) {
  CheckpointInfo info;
  info.files = {{"parameters.safetensors", 100, 20, std::string(64, 'a')}};
  auto refusal = [&](std::vector<std::pair<int64_t, int64_t>> ranges) {
    std::vector<CheckpointPiece> pieces;
    for (auto [begin, end] : ranges)
      pieces.push_back({"parameters.safetensors", begin, end, {std::string(64, 'b')}});
    info.tensors = {{"w", ElementType::F32, {10}, pieces}};
    return errorOf([&] { writeCheckpointInfo(info); });
  };
  EXPECT_EQ(refusal({{0, 4}, {4, 10}}), "");
  EXPECT_EQ(refusal({{0, 4}, {5, 10}}),
            "tensors[0].pieces[1]: found elements 5 to 10, expected some from 4 to at most 10");
  EXPECT_EQ(refusal({{0, 4}, {3, 10}}),
            "tensors[0].pieces[1]: found elements 3 to 10, expected some from 4 to at most 10");
  EXPECT_EQ(refusal({{0, 4}, {4, 11}}),
            "tensors[0].pieces[1]: found elements 4 to 11, expected some from 4 to at most 10");
  EXPECT_EQ(refusal({{0, 4}, {4, 9}}), "tensors[0].pieces: found 9 elements, expected 10");
}

TEST_F(RanksCheckpoint, TagsAreValidated) {
  std::vector<Parts> parts = cut(drawTensors(), 3);
  std::vector<std::string> warnings(3);
  auto saving = [&](TagValidation validation) {
    return LocalRanks(3).run([&](Ranks &ranks) {
      SaveOptions options;
      options.tag = ranks.rank() == 2 ? "other" : "best";
      options.tags = validation;
      warnings[ranks.rank()].clear();
      EXPECT_EQ(saveCheckpoint(run, progress, parts[ranks.rank()], options, ranks, &warnings[ranks.rank()]), "best");
    });
  };
  const std::string text = "checkpoint.tag_validation: rank 2 would save under 'other', rank 0 under 'best'";
  for (const std::string &message : saving(TagValidation::Fail))
    EXPECT_NE(message.find(text), std::string::npos);
  EXPECT_FALSE(isThere(run));
  EXPECT_EQ(saving(TagValidation::Ignore), std::vector<std::string>(3));
  EXPECT_EQ(warnings[0], "");
  EXPECT_EQ(saving(TagValidation::Warn), std::vector<std::string>(3));
  EXPECT_EQ(warnings[0], text + ", which counts");
  EXPECT_EQ(listing(), (std::vector<std::string>{"best", "latest"}));
}

// A rank that cannot write, and one that is gone in the middle.
TEST_F(RanksCheckpoint, AFailureOfOneLeavesThePreviousOne) {
  std::vector<Logical> tensors = drawTensors();
  tensors.push_back({"parameters", "z", Tensor(ElementType::F32, {64})});
  std::vector<Parts> parts = cut(tensors, 3);
  Logical own = {"parameters", "zz", Tensor(ElementType::F32, {64})};
  put(parts[1][0], own, 0, 64);
  ASSERT_EQ(save(parts), std::vector<std::string>(3));
  std::vector<Parts> broken = parts;
  broken[1][0].tensors.emplace_back("a\nb", own.tensor.view());
  progress.step = 1;
  std::vector<std::string> messages = save(broken);
  EXPECT_EQ(messages[1], "tensor 'a\\x0ab': expected a name of UTF-8 without control characters");
  EXPECT_EQ(messages[0], "rank 1: " + messages[1]);
  EXPECT_EQ(messages[2], "rank 1: " + messages[1]);
  for (const char *site : {"checkpoint: tag", "checkpoint: tensors", "checkpoint: folder", "checkpoint: files"}) {
    LocalRanks hub(3);
    hub.meeting = [&](const std::string &what) {
      if (what == std::string(site) + ": lengths")
        fail(ErrorCode::Collective, "rank 1 is gone");
    };
    for (const std::string &message :
         hub.run([&](Ranks &ranks) { saveCheckpoint(run, progress, parts[ranks.rank()], {}, ranks); }))
      EXPECT_NE(message.find("rank 1 is gone"), std::string::npos) << site << ": " << message;
    EXPECT_EQ(listing(), (std::vector<std::string>{"global_step0", "latest"})) << site;
  }
  EXPECT_EQ(Checkpoint(run, "").progress().step, 0);
  EXPECT_TRUE(verifyCheckpoint(run, "").empty());
}

TEST_F(RanksCheckpoint, DifferencesAreOfLogicalTensors) {
  std::vector<Logical> tensors = drawTensors();
  tensors.push_back({"parameters", "z", tensor<float>(ElementType::F32, {4}, {1, 2, 3, 4})});
  SaveOptions options;
  options.tag = "a";
  ASSERT_EQ(save(cut(tensors, 4), options), std::vector<std::string>(4));
  options.tag = "b";
  ASSERT_EQ(save(cut(tensors, 3), options), std::vector<std::string>(3));
  EXPECT_TRUE(compareCheckpoints(Checkpoint(run, "a"), Checkpoint(run, "b")).isNone());
  tensors.back().tensor = tensor<float>(ElementType::F32, {4}, {1, 2, 3, 4.5});
  options.tag = "c";
  ASSERT_EQ(save(cut(tensors, 2), options), std::vector<std::string>(2));
  CheckpointDifference difference = compareCheckpoints(Checkpoint(run, "a"), Checkpoint(run, "c"));
  ASSERT_EQ(difference.tensors.size(), 1u);
  EXPECT_EQ(difference.tensors[0].name, "z");
  EXPECT_EQ(difference.tensors[0].place, 3);
}

} // namespace
