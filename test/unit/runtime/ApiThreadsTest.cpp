// The C API from several threads at once: what it says of them must hold, and the thread sanitizer watches.
#include "test/unit/runtime/ApiFixture.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

using namespace ds::test;

namespace {

struct Counts {
  std::atomic<int> done{0}, cancelled{0}, wrong{0}, launches{0};

  static void launched(void *context, const ds_launch_event *) { ++static_cast<Counts *>(context)->launches; }
};

// main: y = x * [1, 2, 3, 4] + x, into memory of the caller's.
void callOften(ds_session *session, float seed, int rounds, Counts &counts) {
  int64_t shape[2] = {2, 4};
  alignas(64) float x[8], y[8];
  ds_tensor input = {sizeof(ds_tensor), "x", DS_F32, 2, shape, x},
            output = {sizeof(ds_tensor), "y", DS_F32, 2, shape, y};
  for (int round = 0; round < rounds; ++round) {
    std::fill(std::begin(x), std::end(x), seed + static_cast<float>(round));
    std::fill(std::begin(y), std::end(y), -1.0f);
    ds_status *status = ds_session_run_into(session, 0, &input, 1, &output, 1, nullptr);
    ds_status_code code = ds_status_get_code(status);
    ds_status_free(status);
    counts.done += code == DS_STATUS_OK;
    counts.cancelled += code == DS_STATUS_CANCELLED;
    counts.wrong += code != DS_STATUS_OK && code != DS_STATUS_CANCELLED;
    for (int i = 0; i < 8 && code == DS_STATUS_OK; ++i)
      counts.wrong += y[i] != x[i] * static_cast<float>(i % 4 + 2);
  }
}

TEST_F(ApiTest, ThreadsShareASessionWhileOthersCancelAndObserve) {
  constexpr int rounds = 200, callers = 3;
  Counts shared, own;
  std::atomic<int> running{callers};
  std::atomic<bool> isFault{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i)
    threads.emplace_back([&, i] {
      callOften(session, static_cast<float>(100 * i), rounds, shared);
      --running;
    });
  threads.emplace_back([&] { // another session of the package is no concern of theirs
    ds_session *mine = nullptr;
    isFault = isFault || ds_session_create(package, nullptr, &mine);
    callOften(mine, 7, rounds, own);
    ds_session_free(mine);
  });
  auto meanwhile = [&](auto act) {
    threads.emplace_back([&, act]() mutable {
      while (running > 0) {
        ds_status *status = act();
        isFault = isFault || status;
        ds_status_free(status);
        std::this_thread::yield();
      }
    });
  };
  meanwhile([&] { return ds_session_cancel(session); });
  meanwhile([&, isWatched = false]() mutable {
    isWatched = !isWatched;
    return ds_session_observe(session, isWatched ? Counts::launched : nullptr, &shared);
  });
  meanwhile([&] { return ds_session_reset_states(session); });
  meanwhile([&] { return ds_session_save_states(session, (folder.path() + "/states.npz").c_str()); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_FALSE(isFault);
  EXPECT_EQ(shared.wrong + own.wrong, 0);
  EXPECT_EQ(shared.done + shared.cancelled, callers * rounds);
  EXPECT_EQ(own.done, rounds);
  ASSERT_EQ(messageOf(ds_session_observe(session, nullptr, nullptr)), "");
  EXPECT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
}

// Statuses, packages and outputs belong to nobody's thread: each thread loads, runs and frees its own.
TEST_F(ApiTest, ThreadsLoadAndFreeOnTheirOwn) {
  Counts counts;
  std::string path = writePackage(folder.path(), testManifest(), "other.dsp");
  std::atomic<int> refusals{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        ds_package *mine = nullptr;
        ds_session *run = nullptr;
        refusals += messageOf(ds_package_load("/nowhere\n.dsp", nullptr, &mine)) ==
                    "/nowhere\\x0a.dsp: not a package directory, nothing is there";
        counts.wrong += messageOf(ds_package_load(path.c_str(), nullptr, &mine)) != "";
        counts.wrong += messageOf(ds_session_create(mine, nullptr, &run)) != "";
        callOften(run, static_cast<float>(i), 5, counts);
        ds_package_free(mine);
        ds_session_free(run);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(refusals, 15);
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_EQ(counts.done, 3 * 5 * 5);
}

} // namespace
