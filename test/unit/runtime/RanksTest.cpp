// What the loop of training asks other ranks.
#include "test/unit/runtime/LocalRanks.h"
#include "test/unit/runtime/PackageBuilder.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;

namespace {

TEST(Ranks, GatherInRankOrder) {
  for (unsigned world : {1u, 2u, 5u}) {
    LocalRanks ranks(world);
    std::vector<std::string> failures = ranks.run([&](Ranks &own) {
      for (int64_t round = 0; round < 50; ++round) {
        std::vector<int64_t> all = own.gatherValues<int64_t>("numbers", {own.rank() * 10 + round, -round});
        for (unsigned rank = 0; rank < world; ++rank) {
          ASSERT_EQ(all[2 * rank], rank * 10 + round);
          ASSERT_EQ(all[2 * rank + 1], -round);
        }
        // Texts of several lengths, of none and with zeros.
        auto text = [&](unsigned rank) { return std::string((rank + static_cast<size_t>(round)) % 4, '\0') + "x"; };
        std::vector<std::string> texts = own.gatherTexts("texts", round % 7 == 6 ? "" : text(own.rank()));
        for (unsigned rank = 0; rank < world; ++rank)
          ASSERT_EQ(texts[rank], round % 7 == 6 ? "" : text(rank));
      }
    });
    EXPECT_EQ(failures, std::vector<std::string>(world));
  }
  EXPECT_EQ(Ranks::one().gatherTexts("text", "alone"), std::vector<std::string>{"alone"});
}

TEST(Ranks, DisagreementNamesTheFirstFactEverywhere) {
  auto disagreement = [](unsigned world, unsigned other, std::vector<std::pair<std::string, std::string>> facts) {
    return LocalRanks(world).run([&](Ranks &own) {
      const std::vector<std::pair<std::string, std::string>> same = {
          {"package", "aa"}, {"config", ""}, {"seed", "7"}, {"ranks", "3"}};
      requireAgreement(own, own.rank() == other ? facts : same);
    });
  };
  auto all = [](const std::string &message) { return std::vector<std::string>(3, message); };
  EXPECT_EQ(disagreement(3, 3, {}), all(""));
  EXPECT_EQ(disagreement(3, 2, {{"package", "aa"}, {"config", ""}, {"seed", "8"}, {"ranks", "4"}}),
            all("ranks disagree: rank 2 has seed 8, rank 0 7"));
  EXPECT_EQ(disagreement(3, 1, {{"package", "aa"}, {"config", "x"}, {"seed", "7"}, {"ranks", "3"}}),
            all("ranks disagree: rank 1 has config x, rank 0 nothing"));
  EXPECT_EQ(disagreement(3, 1, {{"package", "aa"}}), all("ranks disagree: rank 1 has nothing, rank 0 config nothing"));
  EXPECT_EQ(disagreement(3, 0, {{"package", "bb"}, {"config", ""}, {"seed", "7"}, {"ranks", "3"}}),
            all("ranks disagree: rank 1 has package aa, rank 0 bb"));
}

TEST(Ranks, AFailureReachesAll) {
  std::vector<std::string> messages = LocalRanks(3).run([](Ranks &own) {
    own.gatherValues<int>("first", {1});
    if (own.rank() == 1)
      fail(ErrorCode::Io, "no data");
    own.gatherValues<int>("second", {1});
  });
  EXPECT_EQ(messages, (std::vector<std::string>{"rank 1: no data", "no data", "rank 1: no data"}));
}

} // namespace
