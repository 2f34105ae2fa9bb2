// A process that is killed while it saves, at any moment, leaves a checkpoint that loads.
#include "test/unit/runtime/PackageBuilder.h"
#include "test/unit/support/Seed.h"

#include "runtime/core/Error.h"
#include "runtime/training/Checkpoint.h"
#include "runtime/training/CheckpointFolder.h"
#include "runtime/training/CheckpointTools.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace ds;
using namespace ds::test;

namespace {

// Every element and the numbers say which step it is, so that a mixture of two saves shows.
void saveStep(const std::string &folder, int64_t step) {
  Tensor a(ElementType::F32, {20000}), b(ElementType::I64, {3000});
  for (Tensor *tensor : {&a, &b})
    for (int64_t i = 0; i < tensor->count(); ++i)
      storeDouble(tensor->getType(), tensor->data(), static_cast<size_t>(i), double(step));
  TrainingProgress progress;
  progress.step = step;
  SaveOptions options;
  options.keep = 2;
  options.tag = step % 3 == 0 ? "best" : ""; // replaced again and again
  saveCheckpoint(folder, progress, {{"parameters", {{"a", a.view()}}}, {"optimizer", {{"b", b.view()}}}}, options);
}

void expectWhole(const std::string &folder, int64_t &newest) {
  Checkpoint checkpoint(folder, "");
  int64_t step = checkpoint.progress().step;
  for (size_t i = 0; i < checkpoint.items().size(); ++i) {
    TensorView view = checkpoint.view(i);
    for (int64_t j = 0; j < elementCount(view.shape); j += 499)
      ASSERT_EQ(loadDouble(view.type, view.data, static_cast<size_t>(j)), double(step));
  }
  EXPECT_EQ(checkpoint.items().size(), 2u);
  EXPECT_GE(step, newest) << "a checkpoint that was the latest is gone";
  newest = step;
  for (const std::string &tag : checkpointTags(folder))
    EXPECT_TRUE(verifyCheckpoint(folder, tag).empty()) << tag;
}

TEST(KilledSave, LeavesACheckpointThatLoads) {
  TemporaryFolder folder;
  std::string run = folder.file("run");
  std::mt19937 random(randomSeed());
  int64_t newest = 1;
  // Some are killed in their first save and some in a later one, on machines of any speed.
  auto before = std::chrono::steady_clock::now();
  saveStep(run, newest);
  int64_t longest = 4 * std::chrono::nanoseconds(std::chrono::steady_clock::now() - before).count();
  int idle = 0;
  for (int i = 0; i < 200; ++i) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int64_t step = newest + 1;; ++step)
        saveStep(run, step);
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(int64_t(random()) % longest));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saving process ended on its own";
    int64_t known = newest;
    std::string message = errorOf([&] { expectWhole(run, newest); });
    idle = newest == known ? idle + 1 : 0;
    if (idle % 10 == 9)
      longest *= 2;
    ASSERT_EQ(message, "") << "after kill " << i;
    if (HasFailure())
      return;
  }
  // What the killed ones left, the next save removes.
  EXPECT_GT(newest, 10);
  saveStep(run, newest + 1);
  for (const auto &entry : std::filesystem::directory_iterator(run))
    EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
}

} // namespace
