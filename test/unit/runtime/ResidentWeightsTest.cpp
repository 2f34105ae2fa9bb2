// What is copied of weights.bin, and where it lies.
#include "runtime/core/ResidentWeights.h"
#include "test/unit/support/Seed.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/resource.h>
#include <unistd.h>

using namespace ds;

namespace {

class ResidentWeightsTest : public testing::Test {
protected:
  // A constant of the variant, read by an entry where `isRead`.
  void add(uint64_t offset, uint64_t bytes, bool isRead) {
    ConstantInfo constant;
    constant.offset = offset;
    constant.bytes = bytes;
    variant.constants.push_back(constant);
    EntryInfo entry;
    if (isRead) {
      entry.buffers.emplace_back();
      entry.buffers.back().role = BufferRole::Constant;
      entry.buffers.back().index = static_cast<uint32_t>(variant.constants.size() - 1);
    }
    variant.entries.push_back(entry);
  }

  // Constants hold what the file holds, and lie to cache lines as there.
  void expectCopied(const ResidentWeights &weights, size_t index) {
    const ConstantInfo &constant = variant.constants[index];
    const uint8_t *copied = weights.constant(index);
    ASSERT_NE(copied, nullptr) << index;
    EXPECT_EQ(std::memcmp(copied, bytes.data() + constant.offset, constant.bytes), 0) << index;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copied) % 64, constant.offset % 64) << index;
  }

  void fill(size_t size) {
    uint64_t seed = randomSeed();
    std::mt19937_64 random(seed);
    bytes.resize(size);
    for (uint8_t &byte : bytes)
      byte = static_cast<uint8_t>(random() >> 13);
  }

  VariantInfo variant;
  std::vector<uint8_t> bytes;
};

constexpr uint64_t mebi = uint64_t(1) << 20;

TEST_F(ResidentWeightsTest, HoldWhatEntriesRead) {
  fill(24 * mebi);
  add(9 * mebi + 64, 5 * mebi + 3, true);
  add(0, 3 * mebi, true);
  add(3 * mebi, 1 * mebi, false);         // begins a state, say
  add(10 * mebi, 64, true);               // inside of the first
  add(14 * mebi + 10, mebi, true);        // begins inside of the first, and ends behind it
  add(23 * mebi + 17, mebi - 17, true);   // to the end, not at a line
  add(9 * mebi + 64, 5 * mebi + 3, true); // as the first
  add(20 * mebi, 0, true);
  for (unsigned threads : {1u, 3u}) {
    ResidentWeights weights(variant, MappedFile::over(bytes.data(), bytes.size()), threads);
    for (size_t index : {0, 1, 3, 4, 5, 6, 7})
      expectCopied(weights, index);
    EXPECT_EQ(weights.constant(2), nullptr);
    EXPECT_EQ(weights.constant(6), weights.constant(0)) << "not twice";
    EXPECT_GE(weights.bytes(), 10 * mebi);
    EXPECT_LE(weights.bytes(), 11 * mebi) << "nothing but what is read";
  }
}

TEST_F(ResidentWeightsTest, StayInTheFileWhereHugePagesAreTooLarge) {
  fill(4 * mebi);
  add(0, 4 * mebi - 64, true);
  ResidentWeights weights(variant, MappedFile::over(bytes.data(), bytes.size()), 2);
  EXPECT_EQ(weights.constant(0), nullptr);
  EXPECT_EQ(weights.bytes(), 0u);
}

TEST_F(ResidentWeightsTest, StayInTheFileWhereMemoryIsShort) {
  add(0, availableMemory(), true); // of a file that nobody reads
  ResidentWeights weights(variant, MappedFile::over(bytes.data(), 0), 1);
  EXPECT_EQ(weights.constant(0), nullptr);
}

// A limit of addresses is one of memory, of which what the process has is gone already.
TEST(AvailableMemory, EndsWhereAddressesDo) {
  auto underLimit = [] {
    size_t before = availableMemory();
    rlimit limit = {0, RLIM_INFINITY};
    std::ifstream file("/proc/self/statm");
    size_t pages = 0;
    file >> pages;
    limit.rlim_cur = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + (100 * mebi);
    setrlimit(RLIMIT_AS, &limit);
    size_t now = availableMemory();
    std::exit(before > 200 * mebi && now > 90 * mebi && now <= 100 * mebi ? 0 : 1);
  };
  EXPECT_EXIT(underLimit(), testing::ExitedWithCode(0), "");
}

} // namespace
