// The messages of training over a real communicator: what arrives, what counts, and what a message says.
#include "test/unit/runtime/PackageBuilder.h"
#include "test/unit/support/Seed.h"

#include "runtime/comm/threads/ThreadRanks.h"
#include "runtime/training/CommunicatorRanks.h"

#include <gtest/gtest.h>
#include <thread>

using namespace ds;
using namespace ds::test;

namespace {

std::vector<std::string> onRanks(unsigned world, const std::function<void(CommunicatorRanks &)> &body) {
  ThreadRanks group(world, std::chrono::milliseconds(20000));
  std::vector<std::string> messages(world);
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      std::shared_ptr<Communicator> end = group.join(rank);
      CommunicatorRanks ranks(end);
      messages[rank] = errorOf([&] { body(ranks); });
      end->leave(messages[rank]);
    });
  for (std::thread &thread : threads)
    thread.join();
  return messages;
}

TEST(CommunicatorRanks, GatherBytesInRankOrder) {
  std::mt19937 random(randomSeed());
  for (unsigned world : {1u, 2u, 3u, 8u}) {
    std::vector<std::string> own;
    size_t length = random() % 5000;
    for (unsigned rank = 0; rank < world; ++rank)
      for (own.emplace_back(); own.back().size() < length;)
        own.back() += static_cast<char>(random());
    EXPECT_EQ(onRanks(world,
                      [&](CommunicatorRanks &ranks) {
                        EXPECT_EQ(ranks.world(), world);
                        for (int round = 0; round < 10; ++round) {
                          EXPECT_EQ(ranks.gatherTexts("texts", own[ranks.rank()]), own);
                          EXPECT_EQ(ranks.gatherTexts("nothing", ""), std::vector<std::string>(world));
                        }
                      }),
              std::vector<std::string>(world));
  }
}

TEST(CommunicatorRanks, AMissingRankIsNamedWithWhatWasGathered) {
  std::vector<std::string> messages = onRanks(3, [](CommunicatorRanks &ranks) {
    ranks.setStep(17);
    if (ranks.rank() == 1)
      throw std::runtime_error("no such sample");
    ranks.gatherValues<double>("losses", {1.0});
  });
  for (unsigned rank : {0u, 2u})
    for (const char *part : {"losses", "training", "step 17", "rank 1", "no such sample"})
      EXPECT_NE(messages[rank].find(part), std::string::npos) << messages[rank];
}

} // namespace
