// States of files keep their values whatever is read ahead, written behind or guessed wrongly, and no more of them are
// in memory than was asked for.
#include "runtime/core/StateFiles.h"
#include "runtime/core/Error.h"
#include "test/unit/support/Seed.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <random>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

using namespace ds;

namespace {

// Pages of a mapping that are in the page cache.
size_t cachedPages(const uint8_t *memory, size_t bytes) {
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> present((bytes + page - 1) / page);
  EXPECT_EQ(mincore(const_cast<uint8_t *>(memory), bytes, present.data()), 0);
  size_t count = 0;
  for (unsigned char flag : present)
    count += flag & 1;
  return count;
}

// Of a state in one piece.
StateFiles::Region *regionOf(StateFiles &files, const std::shared_ptr<uint8_t> &state) {
  StateFiles::Pieces pieces = files.at(state.get());
  EXPECT_EQ(pieces.regions.size(), 1u);
  return pieces.regions.at(0);
}

class StateFilesTest : public testing::Test {
protected:
  // Where the build is: a disk, as opposed to a folder of temporary files in memory.
  StateFilesTest() : folder(std::filesystem::current_path() / ("states-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder);
  }
  ~StateFilesTest() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
};

TEST_F(StateFilesTest, KeepValuesInWhateverOrderTheyAreUsed) {
  std::mt19937_64 random(randomSeed());
  constexpr size_t count = 9, bytes = 40'000;
  StateFiles files(folder, 3);
  std::vector<std::shared_ptr<uint8_t>> states;
  std::vector<std::vector<uint8_t>> expected(count, std::vector<uint8_t>(bytes));
  for (size_t i = 0; i < count; ++i)
    states.push_back(files.add("s" + std::to_string(i), bytes, bytes));
  for (int call = 0; call < 60; ++call) {
    files.beginCall(random() % 3);
    bool isDrawn = random() % 3 == 0;
    for (size_t launch = 0; launch < 12; ++launch) {
      std::vector<size_t> used = {isDrawn ? random() % count : launch % count};
      if (random() % 2)
        used.push_back((used[0] + 1 + random() % (count - 1)) % count);
      std::vector<StateFiles::Region *> turn;
      for (size_t i : used)
        turn.push_back(regionOf(files, states[i]));
      files.use(turn);
      bool writes = random() % 2;
      for (size_t i : used) {
        ASSERT_EQ(std::memcmp(states[i].get(), expected[i].data(), bytes), 0) << "call " << call << ", state " << i;
        if (writes)
          for (size_t k = 0; k < 100; ++k)
            expected[i][random() % bytes] = static_cast<uint8_t>(random());
        std::memcpy(states[i].get(), expected[i].data(), writes ? bytes : 0);
      }
      files.done(turn, writes);
    }
    files.endCall();
    if (size_t i = random() % count; random() % 4 == 0) { // as a checkpoint is restored
      expected[i][random() % bytes] = 1;
      std::memcpy(states[i].get(), expected[i].data(), bytes);
      files.touched(states[i].get());
    }
    if (random() % 5 == 0) { // as one is saved
      files.looked();
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(std::memcmp(states[i].get(), expected[i].data(), bytes), 0) << "call " << call << ", state " << i;
    }
  }
}

TEST_F(StateFilesTest, PiecesOfAStateComeAndGoByThemselves) {
  std::mt19937_64 random(randomSeed());
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = 10 * page + 10, piece = 3 * page;
  constexpr size_t count = 3, buffers = 4;
  StateFiles files(folder, buffers);
  std::vector<std::shared_ptr<uint8_t>> states;
  std::vector<std::vector<uint8_t>> expected(count, std::vector<uint8_t>(bytes));
  for (size_t i = 0; i < count; ++i)
    states.push_back(files.add("s" + std::to_string(i), bytes, piece + 1)); // whole pages, rounded down
  EXPECT_EQ(files.counters().bytes, count * 11 * page);
  for (int call = 0; call < 40; ++call) {
    files.beginCall(0);
    size_t skipped = random() % 8 == 0 ? random() % 4 : 4;
    for (size_t part = 0; part < 4; ++part) { // as an update goes through the first two
      if (part == skipped)
        continue;
      std::vector<StateFiles::Region *> turn;
      for (size_t i : {0, 1}) {
        StateFiles::Pieces pieces = files.at(states[i].get());
        ASSERT_EQ(pieces.bytes, piece);
        ASSERT_EQ(pieces.regions.size(), 4u);
        turn.push_back(pieces.regions[part]);
      }
      files.use(turn);
      for (size_t i : {0, 1})
        for (size_t at = part * piece; at < std::min(bytes, (part + 1) * piece); ++at) {
          ASSERT_EQ(states[i].get()[at], expected[i][at]) << "call " << call << ", state " << i << ", byte " << at;
          states[i].get()[at] = expected[i][at] = static_cast<uint8_t>(random());
        }
      files.done(turn, true);
    }
    files.endCall();
    if (random() % 4 == 0) { // as a checkpoint is restored, then saved
      size_t i = random() % count, at = random() % bytes;
      states[i].get()[at] = expected[i][at] = 1;
      files.touched(states[i].get());
      files.looked();
      for (size_t k = 0; k < count; ++k)
        ASSERT_EQ(std::memcmp(states[k].get(), expected[k].data(), bytes), 0) << "call " << call << ", state " << k;
      files.release(states[0].get() + random() % piece, bytes - piece);
    }
  }
  StateFiles::Counters counters = files.counters();
  EXPECT_LE(counters.resident, buffers + 1); // and one that was restored between calls
  EXPECT_LE(counters.residentBytes, (buffers + 1) * piece);
  states[1].reset();
  EXPECT_EQ(files.counters().bytes, (count - 1) * 11 * page);
  EXPECT_EQ(std::memcmp(states[0].get(), expected[0].data(), bytes), 0);
}

TEST_F(StateFilesTest, FirstValuesTakeNoMoreMemoryThanThereAreBuffers) {
  constexpr size_t count = 12, bytes = size_t(3) << 20, buffers = 3;
  StateFiles files(folder, buffers);
  std::vector<std::shared_ptr<uint8_t>> states;
  for (size_t i = 0; i < count; ++i) {
    states.push_back(files.add("s", bytes, bytes));
    std::memset(states[i].get(), 1, bytes);
  }
  for (const auto &state : states) // faster than a disk
    files.touched(state.get());
  EXPECT_GT(files.counters().resident, 0u);
  EXPECT_LE(files.counters().resident, buffers);
  EXPECT_LE(files.counters().residentBytes, buffers * bytes);
}

TEST_F(StateFilesTest, OnlyAsManyAreInMemoryAsThereAreBuffers) {
  constexpr size_t count = 12, bytes = size_t(1) << 20, buffers = 3;
  StateFiles files(folder, buffers);
  std::vector<std::shared_ptr<uint8_t>> states;
  for (size_t i = 0; i < count; ++i)
    states.push_back(files.add("s", bytes, bytes));
  int calls = 0;
  auto call = [&] {
    ++calls;
    files.beginCall(0);
    for (size_t i = 0; i < count; ++i) {
      std::vector<StateFiles::Region *> turn = {regionOf(files, states[i])};
      files.use(turn);
      std::memset(states[i].get(), calls, bytes);
      files.done(turn, true);
    }
    files.endCall();
  };
  while (calls < 4)
    call();
  StateFiles::Counters counters = files.counters();
  EXPECT_EQ(counters.bytes, count * bytes);
  EXPECT_LE(counters.resident, buffers);
  EXPECT_GE(counters.read, 4 * (count - buffers) * bytes);
  EXPECT_LE(counters.read, 4 * (count + buffers) * bytes);
  EXPECT_GE(counters.written, 4 * (count - buffers) * bytes);
  struct statfs system = {};
  ASSERT_EQ(statfs(folder.c_str(), &system), 0);
  if (system.f_type != TMPFS_MAGIC) { // which is memory
    // On a busy machine the kernel keeps pages that it was asked to drop, now and then: not after each of ten calls.
    auto cached = [&] {
      size_t pages = 0;
      for (const auto &state : states)
        pages += cachedPages(state.get(), bytes);
      return pages;
    };
    const size_t most = buffers * bytes / static_cast<size_t>(sysconf(_SC_PAGESIZE));
    while (cached() > most && calls < 14)
      call();
    EXPECT_LT(calls, 14) << cached() << " pages";
  }
  for (const auto &state : states)
    for (size_t at = 0; at < bytes; at += 4096)
      ASSERT_EQ(state.get()[at], calls);
}

TEST_F(StateFilesTest, WhatIsReadAheadIsThereBeforeItIsUsed) {
  constexpr size_t count = 6, bytes = 8192;
  StateFiles files(folder, 2);
  std::vector<std::shared_ptr<uint8_t>> states;
  for (size_t i = 0; i < count; ++i)
    states.push_back(files.add("s", bytes, bytes));
  uint64_t before = 0, first = 0; // how many were there in time; what the first call, which knows no order yet, read
  for (int call = 0; call < 2; ++call) {
    files.beginCall(0);
    for (size_t i = 0; i < count; ++i) {
      if (call == 1) { // it and the next one come while nobody asks for them; after the last one, the first
        uint64_t expected = first + (i + 2) * bytes;
        for (int wait = 0; files.counters().read < expected && wait < 2000; ++wait)
          usleep(1000);
        before += files.counters().read >= expected;
      }
      std::vector<StateFiles::Region *> turn = {regionOf(files, states[i])};
      files.use(turn);
      files.done(turn, false);
    }
    if (call == 0)
      first = files.counters().read;
    files.endCall();
  }
  EXPECT_EQ(before, count);
}

TEST_F(StateFilesTest, LeaveNothingBehind) {
  {
    StateFiles files(folder, 2);
    auto state = files.add("s", 1000, 1000);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    EXPECT_TRUE(files.at(state.get() + 1).regions.empty());
    state.reset();
    EXPECT_EQ(files.counters().bytes, 0u);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

std::string messageOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST_F(StateFilesTest, RefuseWhatCannotBe) {
  EXPECT_EQ(messageOf([&] { StateFiles(folder / "none", 2); }),
            "nvme_path: cannot write to '" + (folder / "none").string() + "': No such file or directory");
  StateFiles files(folder, 1);
  auto a = files.add("a", 10, 10), b = files.add("b", 10, 10);
  files.beginCall(0);
  EXPECT_EQ(messageOf([&] { files.use({regionOf(files, a), regionOf(files, b)}); }),
            "buffer_count: found 1, expected at least 2: 'b' is needed beside as many other states of files");
  files.endCall();
  files.beginCall(0);
  files.use({regionOf(files, b)});
  files.done({regionOf(files, b)}, true);
  files.endCall();
  std::string full = messageOf([&] { files.add("huge", size_t(1) << 61, size_t(1) << 61); });
  EXPECT_NE(full.find("has no room for state 'huge' of 2305843009213693952 bytes: "), std::string::npos) << full;
}

} // namespace
