#include "test/unit/runtime/PackageBuilder.h"
#include "test/unit/support/Listing.h"
#include "test/unit/support/Seed.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Session.h"
#include "runtime/training/Checkpoint.h"
#include "runtime/training/CheckpointFolder.h"
#include "runtime/training/CheckpointTools.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace ds;
using namespace ds::test;
using nlohmann::json;

namespace {

class CheckpointTest : public testing::Test {
protected:
  CheckpointTest() {
    progress.step = 7;
    progress.samples = 224;
    progress.loader = {2, 30};
    progress.seed = ~uint64_t(0);
    progress.lossScale = {65536, 9, 3, 2};
    progress.trainer = {{"skipped", 2}, {"rate", 0.1}};
    progress.clientState = {{"note", "\xc3\xa4"}, {"list", {1, 2.5, nullptr}}};
    for (size_t i = 0; i < large.bytes(); ++i)
      large.data()[i] = static_cast<uint8_t>(i * 7);
  }

  std::vector<CheckpointPart> parts() const {
    return {{"parameters", {{"/fc/w", w.view()}, {"b", b.view()}, {"large", large.view()}}},
            {"optimizer", {{"/fc/w/exp_avg", m.view()}, {"q", q.view()}}}};
  }
  std::string save(const std::string &tag = "", unsigned keep = 0) {
    return saveCheckpoint(run, progress, parts(), {tag, keep, uint64_t(1) << 40});
  }
  // The message of opening and checking all, without the folder.
  std::string loading(const std::string &tag = "") {
    std::string message = errorOf([&] {
      Checkpoint checkpoint(run, tag);
      for (size_t i = 0; i < checkpoint.items().size(); ++i)
        checkpoint.check(i, checkpoint.items()[i].type);
    });
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (size_t at; (at = message.find(run + "/")) != std::string::npos;)
      message.erase(at, run.size() + 1);
    return message;
  }
  std::vector<std::string> listing() const { return listingOf(run); }

  TemporaryFolder folder;
  std::string run = folder.file("run");
  TrainingProgress progress;
  Tensor w = tensor<float>(ElementType::F32, {2, 2}, {1, 2, 3, 4}), b = tensor<double>(ElementType::F64, {}, {0.5}),
         m = tensor<float>(ElementType::F32, {2, 2}, {0, -1, NAN, INFINITY}),
         q = tensor<int8_t>(ElementType::I4, {3}, {-8, 0, 7}), large{ElementType::U8, {3, 1000000}};
};

using Names = std::vector<std::string>;

TEST_F(CheckpointTest, ReadsWhatItSaved) {
  EXPECT_EQ(save(), "global_step7");
  EXPECT_EQ(readFile(run + "/latest"), "global_step7\n");
  Checkpoint checkpoint(run, "");
  const TrainingProgress &found = checkpoint.progress();
  EXPECT_EQ(found.step, 7);
  EXPECT_EQ(found.samples, 224);
  EXPECT_EQ(found.loader, progress.loader);
  EXPECT_EQ(found.seed, progress.seed);
  EXPECT_EQ(found.lossScale, progress.lossScale);
  EXPECT_EQ(found.trainer, progress.trainer);
  EXPECT_EQ(found.clientState, progress.clientState);
  ASSERT_EQ(checkpoint.items().size(), 5u);
  EXPECT_EQ(checkpoint.items()[0].name, "/fc/w");
  for (size_t i = 0; i < 5; ++i)
    for (const CheckpointPart &part : parts())
      for (const HeldTensor &saved : part.tensors)
        if (saved.name == checkpoint.items()[i].name) {
          EXPECT_EQ(checkpoint.items()[i].type, saved.type);
          EXPECT_EQ(checkpoint.items()[i].shape, saved.shape);
          size_t bytes = byteCount(saved.type, saved.shape);
          EXPECT_EQ(std::memcmp(checkpoint.view(i).data, saved.data, bytes), 0);
          Tensor copy(saved.type, saved.shape);
          checkpoint.read(i, saved.type, copy.data());
          EXPECT_EQ(std::memcmp(copy.data(), saved.data, bytes), 0);
        }
  checkpoint.select([](const std::string &name) { return name == "b"; });
  ASSERT_EQ(checkpoint.items().size(), 1u);
  EXPECT_EQ(loadDouble(ElementType::F64, checkpoint.view(0).data, 0), 0.5);
}

TEST_F(CheckpointTest, SplitsLargeFiles) {
  saveCheckpoint(run, progress, parts(), {"t", 0, 20});
  EXPECT_TRUE(isThere(run + "/t/parameters.safetensors"));
  EXPECT_TRUE(isThere(run + "/t/parameters-3.safetensors"));
  EXPECT_EQ(loading("t"), "");
}

TEST_F(CheckpointTest, SameStateGivesTheSameBytes) {
  save("a");
  save("b");
  for (const char *file : {"checkpoint.json", "parameters.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(readFile(run + "/a/" + file), readFile(run + "/b/" + file)) << file;
}

TEST_F(CheckpointTest, ReplacesATagAndKeepsSome) {
  save();
  progress.samples = 999;
  save();
  EXPECT_EQ(Checkpoint(run, "").progress().samples, 999);
  EXPECT_EQ(listing(), (Names{"global_step7", "latest"}));
  for (progress.step = 8; progress.step < 13; ++progress.step)
    save();
  EXPECT_EQ(checkpointTags(run),
            (Names{"global_step7", "global_step8", "global_step9", "global_step10", "global_step11", "global_step12"}));
  // A run that goes back writes smaller steps, and what it wrote last is what remains.
  progress.step = 3;
  save("", 2);
  EXPECT_EQ(checkpointTags(run), (Names{"global_step3", "global_step12"}));
  save("best", 1);
  EXPECT_EQ(listing(), (Names{"best", "latest"}));
  EXPECT_EQ(latestTag(run), "best");
}

TEST_F(CheckpointTest, LeavesOtherFoldersAlone) {
  std::filesystem::create_directories(run + "/notes");
  writeFile(run + "/notes/a.txt", "mine");
  save("a");
  save("b", 1);
  EXPECT_EQ(listing(), (Names{"b", "latest", "notes"}));
  EXPECT_EQ(errorOf([&] { save("notes"); }), run + "/notes: is there and is no checkpoint, so that it is not replaced");
  EXPECT_EQ(listing(), (Names{"b", "latest", "notes"}));
}

TEST_F(CheckpointTest, MissingOnesAreErrorsThatListWhatIsThere) {
  EXPECT_EQ(loading(), run + ": no folder of checkpoints there");
  std::filesystem::create_directories(run);
  EXPECT_EQ(loading(), "latest: missing: no checkpoint was completed there; name one by its tag, there is none");
  save("a");
  save("b");
  EXPECT_EQ(loading("c"), run + ": no checkpoint 'c'; there are: a, b");
  std::filesystem::remove(run + "/latest");
  EXPECT_EQ(loading(), "latest: missing: no checkpoint was completed there; name one by its tag, there are: a, b");
  EXPECT_EQ(loading("a"), "");
  writeFile(run + "/latest", "gone\n");
  EXPECT_EQ(loading(), run + ": no checkpoint 'gone', which 'latest' names; there are: a, b");
  writeFile(run + "/latest", "../a\n");
  EXPECT_EQ(loading(), "latest: holds no tag; there are: a, b");
}

TEST_F(CheckpointTest, RefusesUnsafeNames) {
  for (const char *tag : {".", "..", "../x", "a/b", "a\\b", ".tmp-a", "-a", "a\nb", "\xff", "latest", "a "}) {
    EXPECT_NE(errorOf([&] { save(tag); }).find(": expected the name of a folder"), std::string::npos) << tag;
    EXPECT_NE(errorOf([&] { Checkpoint(run, tag); }).find(": expected the name of a folder"), std::string::npos);
  }
  EXPECT_FALSE(isThere(run));
  auto named = [&](const std::string &file, const std::string &name) {
    return errorOf([&] { saveCheckpoint(run, progress, {{file, {{name, w.view()}}}}); });
  };
  EXPECT_EQ(named("../x", "w"), "'../x': expected the name of a file");
  EXPECT_NE(named("x", "a\nb").find("expected a name of UTF-8 without control characters"), std::string::npos);
  EXPECT_NE(named("x", "").find("expected a name of UTF-8 without control characters"), std::string::npos);
  EXPECT_EQ(errorOf([&] { saveCheckpoint(run, progress, {{"x", {{"w", w.view()}}}, {"y", {{"w", w.view()}}}}); }),
            "tensor 'w' occurs twice");
}

TEST_F(CheckpointTest, AFailedSaveChangesNothing) {
  save();
  progress.samples = 1;
  progress.clientState = {{"loss", NAN}};
  EXPECT_EQ(errorOf([&] { save(); }), "client_state.loss: JSON has no NaN and no infinity");
  EXPECT_EQ(Checkpoint(run, "").progress().samples, 224);
  EXPECT_EQ(listing(), (Names{"global_step7", "latest"}));
}

TEST_F(CheckpointTest, AFullDiskChangesNothing) {
  save();
  progress.samples = 1;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (rlim_t bytes : {0, 100, 1000, 1000000}) {
    rlimit small{bytes, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    std::string same = errorOf([&] { save(); }), other = errorOf([&] { save("other"); });
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_NE(same.find("cannot write: File too large"), std::string::npos) << same;
    EXPECT_NE(other.find("cannot write: File too large"), std::string::npos) << other;
    EXPECT_EQ(Checkpoint(run, "").progress().samples, 224);
    EXPECT_EQ(listing(), (Names{"global_step7", "latest"}));
  }
  std::signal(SIGXFSZ, handler);
}

TEST_F(CheckpointTest, GoesToTheStatesOfASession) {
  auto package = Package::load(writePackage(folder.path()));
  Session session(package, {1, nullptr});
  Tensor total = tensor<float>(ElementType::F32, {4}, {7, 8, 9, 10});
  saveCheckpoint(run, progress, {{"parameters", {{"total", total.view()}, {"unknown", total.view()}}}});
  auto restore = [&](const Checkpoint &checkpoint) {
    return errorOf([&] { session.withStates([&](StateStore &states) { states.restore(checkpoint); }); });
  };
  Checkpoint checkpoint(run, "");
  EXPECT_EQ(restore(checkpoint), "the package has no state 'unknown'");
  checkpoint.select([](const std::string &name) { return name == "total"; });
  EXPECT_EQ(restore(checkpoint), "");
  session.withStates([&](StateStore &states) {
    std::vector<NamedView> views = states.views();
    auto found = std::find_if(views.begin(), views.end(), [](const NamedView &view) { return view.name == "total"; });
    ASSERT_NE(found, views.end());
    EXPECT_EQ(std::memcmp(found->view.data, total.data(), total.bytes()), 0);
  });
  std::string path = run + "/global_step7/parameters.safetensors", bytes = readFile(path);
  bytes[bytes.size() - 20] ^= 1;
  writeFile(path, bytes);
  Checkpoint damaged(run, "");
  damaged.select([](const std::string &name) { return name == "total"; });
  EXPECT_NE(restore(damaged).find("state 'total': " + path + ": tensor 'total': checksum mismatch"), std::string::npos);
}

TEST_F(CheckpointTest, OneProcessSavesAtATime) {
  CheckpointSave other(run, "other");
  EXPECT_EQ(errorOf([&] { save(); }), run + ": another process is saving a checkpoint there");
}

TEST_F(CheckpointTest, ReplacementWithoutExchangeCanBeCutInHalf) {
  save("a");
  save("b");
  std::filesystem::rename(run + "/b", run + "/.old-b");
  EXPECT_EQ(loading(), "");
  EXPECT_EQ(checkpointTags(run), (Names{"a", "b"}));
  save("c");
  EXPECT_EQ(listing(), (Names{"a", "b", "c", "latest"}));
  // Cut after the second rename, the new one counts.
  std::filesystem::copy(run + "/b", run + "/.old-a", std::filesystem::copy_options::recursive);
  save("c");
  EXPECT_EQ(listing(), (Names{"a", "b", "c", "latest"}));
}

// Each byte of the small file, and some of the large one: the message names the file, and the tensor and its place.
TEST_F(CheckpointTest, EveryFlippedByteIsFound) {
  save("t");
  std::mt19937 random(randomSeed());
  for (const char *name : {"checkpoint.json", "parameters.safetensors", "optimizer.safetensors"}) {
    std::string path = run + "/t/" + name, whole = readFile(path);
    size_t header = name[0] == 'c' ? 0 : SafetensorsReader(path).headerBytes();
    for (size_t i = 0; i < 200; ++i) {
      size_t place = i < 100 ? random() % std::min<size_t>(whole.size(), 700) : random() % whole.size();
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ (1 << random() % 8));
      writeFile(path, damaged);
      std::string message = loading("t");
      EXPECT_EQ(message.find(std::string("t/") + name), 0u) << place << ": " << message;
      if (header == 0)
        continue;
      EXPECT_NE(message.find(place < header ? "checksum mismatch in its header" : "': checksum mismatch in bytes "),
                std::string::npos)
          << place << ": " << message;
    }
    writeFile(path, whole);
  }
  EXPECT_EQ(loading("t"), "");
  std::string path = run + "/t/parameters.safetensors", bytes = readFile(path);
  SafetensorsReader reader(path);
  bytes[reader.offset(2) + 2500000] ^= 1;
  writeFile(path + ".new", bytes);
  std::filesystem::rename(path + ".new", path);
  EXPECT_EQ(loading("t"), concat("t/parameters.safetensors: tensor 'large': checksum mismatch in bytes 2097152 to "
                                 "3000000 of 3000000, which begin at byte ",
                                 reader.offset(2) + 2097152, " of the file"));
}

TEST_F(CheckpointTest, EveryTruncationIsFound) {
  large = Tensor(ElementType::U8, {1});
  large.data()[0] = 1;
  save("t");
  for (const char *name : {"checkpoint.json", "parameters.safetensors", "optimizer.safetensors"}) {
    std::string path = run + "/t/" + name, whole = readFile(path);
    for (size_t length = 0; length < whole.size(); length += 1 + length / 50) {
      writeFile(path, whole.substr(0, length));
      EXPECT_EQ(loading("t").find(std::string("t/") + name), 0u) << length;
    }
    writeFile(path, whole + "x");
    EXPECT_EQ(loading("t").find(std::string("t/") + name), 0u);
    std::filesystem::remove(path);
    EXPECT_NE(loading("t"), "");
    writeFile(path, whole);
  }
  EXPECT_EQ(loading("t"), "");
}

TEST_F(CheckpointTest, InfoOfAnotherShapeIsRefused) {
  CheckpointInfo info;
  info.progress = progress;
  std::string text = writeCheckpointInfo(info);
  EXPECT_EQ(readCheckpointInfo(text).progress.clientState, progress.clientState);
  EXPECT_EQ(errorOf([&] { readCheckpointInfo(text + " "); }), "does not end in its checksum (truncated?)");
  EXPECT_EQ(errorOf([] { readCheckpointInfo(""); }), "does not end in its checksum (truncated?)");
  info.progress.lossScale.scale = 0;
  EXPECT_EQ(errorOf([&] { writeCheckpointInfo(info); }), "loss_scale.scale: found 0.0, expected a number above 0");
  info.progress.lossScale.scale = 1;
  info.progress.step = -1;
  EXPECT_NE(errorOf([&] { writeCheckpointInfo(info); }).find("step: out of range, found -1"), std::string::npos);
}

TEST_F(CheckpointTest, ToolsVerifyInspectAndCompare) {
  save("a");
  Checkpoint first(run, "a");
  EXPECT_TRUE(verifyCheckpoint(run, "").empty());
  EXPECT_TRUE(compareCheckpoints(first, first).isNone());
  EXPECT_NE(inspectCheckpoint(first).find("step 7, 224 samples, epoch 2 at sample 30, seed 18446744073709551615"),
            std::string::npos);
  EXPECT_NE(inspectCheckpoint(first).find("  /fc/w/exp_avg  f32 [2, 2]\n"), std::string::npos);
  EXPECT_EQ(inspectCheckpointJson(first)["tensors"].size(), 5u);

  progress.step = 8;
  progress.trainer["skipped"] = 3;
  w = tensor<float>(ElementType::F32, {2, 2}, {1, 2.5, 3, 4.25});
  q = tensor<int8_t>(ElementType::I4, {2}, {1, 1});
  b = tensor<float>(ElementType::F32, {}, {0.5});
  std::vector<CheckpointPart> changed = parts();
  changed[0].tensors.pop_back();
  changed[0].tensors.push_back({"new", w.view()});
  saveCheckpoint(run, progress, changed, {"b"});
  CheckpointDifference difference = compareCheckpoints(first, Checkpoint(run, "b"));
  EXPECT_EQ(differenceText(difference), "step: 7 and 8\n"
                                        "trainer.skipped: 2 and 3\n"
                                        "/fc/w: 2 of 4 elements differ, by at most 0.5 (element 1)\n"
                                        "b: f64 [] and f32 []\n"
                                        "large: only in the first\n"
                                        "new: only in the second\n"
                                        "q: i4 [3] and i4 [2]\n"
                                        "1 tensors are equal, 5 differ\n");
  EXPECT_EQ(differenceJson(difference)["tensors"][0]["max_abs"], 0.5);

  for (const char *name : {"parameters.safetensors", "optimizer.safetensors"}) {
    std::string path = run + "/b/" + name, bytes = readFile(path);
    bytes.back() ^= 1;
    writeFile(path, bytes);
  }
  EXPECT_EQ(verifyCheckpoint(run, "b").size(), 2u);
  EXPECT_NE(errorOf([&] { verifyCheckpoint(run, "c"); }), "");
}

} // namespace
