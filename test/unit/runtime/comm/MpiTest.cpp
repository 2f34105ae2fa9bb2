// Ranks over MPI, as mpirun starts them.
#include "test/unit/support/Seed.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace {

struct Outcome {
  int code;
  std::string text;
};

Outcome run(const std::string &command) {
  Outcome outcome = {-1, ""};
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> bytes;
  while (size_t taken = pipe ? fread(bytes.data(), 1, bytes.size(), pipe) : 0)
    outcome.text.append(bytes.data(), taken);
  if (pipe)
    outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

std::string mpirun(int ranks, const std::string &arguments, const std::string &environment = "") {
  return environment + " timeout -k 5 60 " DS_MPIRUN " --allow-run-as-root --oversubscribe -n " +
         std::to_string(ranks) + " " DS_MPI_RANKS " " + arguments;
}

class Mpi : public ::testing::Test {
protected:
  void SetUp() override {
    if (std::getenv("SANITIZED"))
      GTEST_SKIP() << "MPI itself is not built for sanitizers";
  }
};

TEST_F(Mpi, HasTheBitsAndBytesOfTheFormula) {
  for (int ranks : {1, 2, 4}) {
    std::string seed = std::to_string(randomSeed());
    SCOPED_TRACE("DS_SEED=" + seed);
    Outcome outcome = run(mpirun(ranks, seed));
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_NE(outcome.text.find("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " is right"),
                std::string::npos)
          << outcome.text;
  }
}

TEST_F(Mpi, ARankThatIsSlowOrStoppedIsNamed) {
  Outcome slow = run(mpirun(3, "1 loop", "DS_TIMEOUT=2 DS_HOST=here"));
  EXPECT_NE(slow.code, 0);
  EXPECT_NE(slow.text.find("all_reduce 'grad' at '/loss/MatMul': rank 2 (host here) did not arrive in 2 s"),
            std::string::npos)
      << slow.text;
  Outcome stopped = run(mpirun(3, "1 stop", "DS_HOST=here"));
  EXPECT_NE(stopped.code, 0);
  EXPECT_NE(stopped.text.find("all_reduce 'grad' at '/loss/MatMul': rank 2 (host here) is stopped"), std::string::npos)
      << stopped.text;
}

TEST_F(Mpi, ADeadRankEndsTheJob) {
  Outcome outcome = run(mpirun(3, "1 die", "DS_HOST=here"));
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "hangs"; // of timeout
  EXPECT_NE(outcome.text.find("signal 9"), std::string::npos) << outcome.text;
}

TEST_F(Mpi, IsNotMixedUpWithOtherLaunchers) {
  Outcome outcome = run("DS_RANK=1 DS_WORLD=4 DS_TRANSPORT=mpi " DS_MPI_RANKS " 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.text.find("rank 1: MPI has it as rank 0 of 1, expected rank 1 of 4"), std::string::npos)
      << outcome.text;
}

} // namespace
