// What surrounds calls in the C API: versions, pins that end, cancellation and times of launches.
#include "test/unit/runtime/ApiFixture.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace ds::test;

namespace {

const std::string cancelled = std::to_string(DS_STATUS_CANCELLED) + ": ";

TEST(VersionApi, TheLibraryIsOfTheHeadersVersion) {
  std::string text = std::to_string(DS_RUNTIME_VERSION_MAJOR) + "." + std::to_string(DS_RUNTIME_VERSION_MINOR) + "." +
                     std::to_string(DS_RUNTIME_VERSION_PATCH);
  EXPECT_EQ(ds_runtime_version(), text);
  EXPECT_EQ(ds_runtime_version_number(), static_cast<unsigned>(DS_RUNTIME_VERSION_NUMBER));
  EXPECT_EQ(ds_runtime_abi(), static_cast<unsigned>(DS_RUNTIME_ABI));
}

TEST(PackageApi, NoPackageHasNothing) {
  EXPECT_EQ(ds_package_variant_count(nullptr), 0u);
  EXPECT_EQ(ds_package_variant_name(nullptr, 0), nullptr);
  EXPECT_EQ(ds_package_chosen_variant(nullptr), nullptr);
  EXPECT_EQ(ds_package_entry_count(nullptr), 0u);
  EXPECT_EQ(ds_package_entry_name(nullptr, 0), nullptr);
  EXPECT_EQ(ds_package_tensor_count(nullptr, 0, DS_INPUTS), 0u);
  EXPECT_EQ(ds_package_tensor(nullptr, 0, DS_INPUTS, 0), nullptr);
}

TEST_F(ApiTest, UnpinsDimensions) {
  auto run = [&] { return messageOf(ds_session_run(session, 0, &input, 1, &outputs)); };
  EXPECT_EQ(messageOf(ds_session_unpin(session, "rows")), ""); // was not pinned
  ASSERT_EQ(messageOf(ds_session_pin(session, "rows", 3)), "");
  EXPECT_NE(run().find("'rows' differs"), std::string::npos);
  ASSERT_EQ(messageOf(ds_session_unpin(session, "rows")), "");
  EXPECT_EQ(run(), "");
  EXPECT_EQ(messageOf(ds_session_unpin(session, "none")), "the package has no dimension 'none'");
  EXPECT_NE(messageOf(ds_session_unpin(session, nullptr)).find("null"), std::string::npos);
  EXPECT_NE(messageOf(ds_session_unpin(nullptr, "rows")).find("null"), std::string::npos);
}

struct Seen {
  std::vector<std::string> kernels;
  std::vector<size_t> launches;
  int64_t total = 0, first = 0, last = 0;

  static void tell(void *context, const ds_launch_event *event) {
    Seen &seen = *static_cast<Seen *>(context);
    EXPECT_GE(event->struct_size, sizeof(ds_launch_event));
    if (seen.kernels.empty())
      seen.first = event->start;
    seen.kernels.push_back(std::string(event->entry) + " " + event->kernel + " " + event->site);
    seen.launches.push_back(event->launch);
    EXPECT_GE(event->start, seen.last);
    EXPECT_GE(event->nanoseconds, 0);
    seen.last = event->start + event->nanoseconds;
    seen.total += event->nanoseconds;
  }
};

TEST_F(ApiTest, TellsTimesOfLaunches) {
  Seen seen;
  ASSERT_EQ(messageOf(ds_session_observe(session, Seen::tell, &seen)), "");
  auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
  std::chrono::nanoseconds took = std::chrono::steady_clock::now() - before;
  EXPECT_EQ(seen.kernels, (std::vector<std::string>{"main scale_rows /layer/Mul", "main add /layer/Add"}));
  EXPECT_EQ(seen.launches, (std::vector<size_t>{0, 1}));
  EXPECT_GE(seen.first, std::chrono::nanoseconds(before.time_since_epoch()).count());
  EXPECT_LE(seen.last - seen.first, took.count());
  EXPECT_LE(seen.total, seen.last - seen.first);
  ASSERT_EQ(messageOf(ds_session_observe(session, nullptr, nullptr)), "");
  ASSERT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
  EXPECT_EQ(seen.kernels.size(), 2u);
  EXPECT_NE(messageOf(ds_session_observe(nullptr, Seen::tell, &seen)).find("null"), std::string::npos);
}

// advance: total += x; y = x[indices]; late += x.
TEST_F(ApiTest, ACancelledCallIsAFailedOne) {
  int64_t four = 4, one = 1;
  alignas(64) int64_t indices[1] = {0};
  ds_tensor inputs[2] = {{sizeof(ds_tensor), "x", DS_F32, 1, &four, data},
                         {sizeof(ds_tensor), "indices", DS_I64, 1, &one, indices}};
  auto run = [&] { return codeAndMessage(ds_session_run(session, 10, inputs, 2, &outputs)); };
  ASSERT_EQ(messageOf(ds_session_cancel(session)), ""); // concerns none that begins later
  ASSERT_EQ(run(), "0: ");
  auto cancel = [](void *context, const ds_launch_event *) {
    messageOf(ds_session_cancel(static_cast<ds_session *>(context)));
  };
  ASSERT_EQ(messageOf(ds_session_observe(session, cancel, session)), "");
  EXPECT_EQ(run(), cancelled + "entry 'advance': the call was cancelled");
  ASSERT_EQ(messageOf(ds_session_observe(session, nullptr, nullptr)), "");
  EXPECT_EQ(static_cast<const float *>(ds_outputs_get(outputs, 0)->data)[0], 1); // of the call before
  std::string refused = run();
  EXPECT_EQ(refused.find(std::to_string(DS_STATUS_BAD_STATE) + ": "), 0u) << refused;
  EXPECT_NE(refused.find("'total' may be half written"), std::string::npos) << refused;
  ASSERT_EQ(messageOf(ds_session_reset_states(session)), "");
  EXPECT_EQ(run(), "0: ");
  EXPECT_NE(messageOf(ds_session_cancel(nullptr)).find("null"), std::string::npos);
}

TEST_F(ApiTest, CancelsCallsThatRunAndThatWait) {
  struct Gate {
    std::atomic<int> cancels{0}, inside{0};

    // Lets no launch end before somebody has cancelled.
    static void hold(void *context, const ds_launch_event *) {
      Gate &gate = *static_cast<Gate *>(context);
      int before = gate.cancels;
      ++gate.inside;
      while (gate.cancels == before)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } gate;
  ASSERT_EQ(messageOf(ds_session_observe(session, Gate::hold, &gate)), "");
  std::string found[2];
  std::atomic<int> ended{0};
  auto call = [&](int number) {
    ds_outputs *own = nullptr;
    found[number] = codeAndMessage(ds_session_run(session, 0, &input, 1, &own));
    EXPECT_EQ(own, nullptr);
    ++ended;
  };
  std::thread first(call, 0);
  while (gate.inside == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::thread second(call, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20)); // usually it waits by now; if not, it is held, too
  while (ended != 2) {
    EXPECT_EQ(messageOf(ds_session_cancel(session)), "");
    ++gate.cancels;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  first.join();
  second.join();
  for (const std::string &text : found)
    EXPECT_EQ(text, cancelled + "entry 'main': the call was cancelled");
  ASSERT_EQ(messageOf(ds_session_observe(session, nullptr, nullptr)), "");
  EXPECT_EQ(messageOf(ds_session_run(session, 0, &input, 1, &outputs)), "");
}

} // namespace
