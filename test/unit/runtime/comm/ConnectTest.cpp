// What the environment says about ranks, and ranks that do not find each other.
#include "test/unit/runtime/comm/Ranks.h"

#include "runtime/comm/Starter.h"
#include "runtime/core/Error.h"

#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <map>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

const char *const variables[] = {"DS_RANK",       "DS_WORLD",
                                 "DS_LOCAL_RANK", "DS_TRANSPORT",
                                 "DS_RENDEZVOUS", "DS_HOST",
                                 "DS_TIMEOUT",    "OMPI_COMM_WORLD_RANK",
                                 "SLURM_PROCID",  "OMPI_COMM_WORLD_SIZE",
                                 "SLURM_NTASKS",  "OMPI_COMM_WORLD_LOCAL_RANK",
                                 "SLURM_LOCALID", "SLURM_STEP_ID",
                                 "DS_STARTER"};

class Environment : public ::testing::Test {
protected:
  void SetUp() override { set({}); }
  void TearDown() override { set({}); }

  static void set(const std::map<std::string, std::string> &values) {
    for (const char *name : variables)
      unsetenv(name);
    for (const auto &[name, value] : values)
      setenv(name.c_str(), value.c_str(), 1);
  }

  static std::map<std::string, std::string> changed(const std::string &name, const std::string &value) {
    std::map<std::string, std::string> result = {
        {"DS_RANK", "1"},          {"DS_WORLD", "4"},     {"DS_LOCAL_RANK", "0"}, {"DS_TRANSPORT", "shm"},
        {"DS_RENDEZVOUS", "fd:7"}, {"DS_TIMEOUT", "2.5"}, {"DS_HOST", "b"}};
    result[name] = value;
    return result;
  }

  static std::string fault(const std::map<std::string, std::string> &values) {
    set(values);
    try {
      ranksOfEnvironment();
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Environment, OfAProcessThatIsNoRank) { EXPECT_FALSE(ranksOfEnvironment()); }

TEST_F(Environment, OfOurLauncher) {
  set(changed("DS_RANK", "3"));
  std::optional<RankOptions> options = ranksOfEnvironment();
  ASSERT_TRUE(options);
  EXPECT_EQ(options->rank, 3u);
  EXPECT_EQ(options->world, 4u);
  EXPECT_EQ(options->localRank, 0u);
  EXPECT_EQ(options->transport, TransportKind::SharedMemory);
  EXPECT_EQ(options->descriptor, 7);
  EXPECT_EQ(options->timeout, 2500ms);
  EXPECT_EQ(options->host, "b");
}

TEST_F(Environment, OfTcp) {
  auto values = changed("DS_TRANSPORT", "tcp");
  values["DS_RENDEZVOUS"] = "fd:9@[::1]:4000";
  set(values);
  EXPECT_EQ(ranksOfEnvironment()->descriptor, 9);
  EXPECT_EQ(ranksOfEnvironment()->rendezvous, "[::1]:4000");
  values["DS_RENDEZVOUS"] = "10.0.0.1:4000";
  set(values);
  EXPECT_EQ(ranksOfEnvironment()->descriptor, -1);
  EXPECT_EQ(ranksOfEnvironment()->rendezvous, "10.0.0.1:4000");
}

TEST_F(Environment, OfMpirunAndSrun) {
  set({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  EXPECT_EQ(ranksOfEnvironment()->rank, 2u);
  EXPECT_EQ(ranksOfEnvironment()->localRank, 1u);
  EXPECT_EQ(ranksOfEnvironment()->transport, TransportKind::Mpi);
  set({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(ranksOfEnvironment()->rank, 5u);
  EXPECT_EQ(ranksOfEnvironment()->world, 6u);
  EXPECT_EQ(fault({{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "6"}, {"SLURM_STEP_ID", "0"}}),
            "SLURM_PROCID: expected a number of 0 to 5, found '6'");
  // A batch script, and a shell of one task.
  set({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "6"}});
  EXPECT_FALSE(ranksOfEnvironment());
  set({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_FALSE(ranksOfEnvironment());
}

TEST_F(Environment, FaultsAreNamed) {
  EXPECT_EQ(fault(changed("DS_RANK", "4")), "DS_RANK: expected a number of 0 to 3, found '4'");
  EXPECT_EQ(fault(changed("DS_RANK", "-1")), "DS_RANK: expected a number of 0 to 3, found '-1'");
  EXPECT_EQ(fault(changed("DS_WORLD", "")), "DS_WORLD: expected a number of 1 to 4096, found nothing");
  EXPECT_EQ(fault(changed("DS_WORLD", "99999999999999999999")),
            "DS_WORLD: expected a number of 1 to 4096, found '99999999999999999999'");
  EXPECT_EQ(fault(changed("DS_LOCAL_RANK", "x\n")), "DS_LOCAL_RANK: expected a number of 0 to 3, found 'x\\x0a'");
  EXPECT_EQ(fault(changed("DS_TRANSPORT", "udp")), "DS_TRANSPORT: expected shm, tcp or mpi, found 'udp'");
  EXPECT_EQ(fault(changed("DS_TRANSPORT", "")), "DS_TRANSPORT: expected shm, tcp or mpi, found nothing");
  for (const char *text : {"7", "fd:", "fd:x", "fd:7@h:1", "fd:99999999999"})
    EXPECT_EQ(fault(changed("DS_RENDEZVOUS", text)), concat("DS_RENDEZVOUS: expected fd:NUMBER, found '", text, "'"));
  for (const char *text : {"0", "nan", "-2", "1s", "1e9"})
    EXPECT_EQ(fault(changed("DS_TIMEOUT", text)),
              concat("DS_TIMEOUT: expected seconds, more than 0 and at most 1000000, found '", text, "'"));
  for (const char *text : {"7", "fd:", "fd:-1", "fd:99999999999"})
    EXPECT_EQ(fault(changed("DS_STARTER", text)), concat("DS_STARTER: expected fd:NUMBER, found '", text, "'"));
  auto tcp = changed("DS_TRANSPORT", "tcp");
  tcp["DS_RENDEZVOUS"] = "fd:7";
  EXPECT_EQ(fault(tcp), "DS_RENDEZVOUS: expected HOST:PORT or fd:NUMBER@HOST:PORT, found 'fd:7'");
}

std::string connectFault(const RankOptions &options) {
  try {
    connectRanks(options);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

// What a rank has said on a pipe, and whether it has closed its end.
std::pair<std::vector<Meeting>, bool> saidTo(int pipe, unsigned rank) {
  fcntl(pipe, F_SETFL, O_NONBLOCK);
  std::vector<Meeting> said;
  MeetingReport report;
  ssize_t count;
  while ((count = read(pipe, &report, sizeof(report))) == sizeof(report)) {
    EXPECT_EQ(report.rank, rank);
    said.push_back(report.meeting);
  }
  close(pipe);
  return {said, count == 0};
}

TEST(Connect, TellsTheStarter) {
  int memory = makeSharedSegment(2), ends[2][2];
  std::vector<std::thread> threads;
  for (unsigned rank : {0u, 1u}) {
    ASSERT_EQ(pipe(ends[rank]), 0);
    RankOptions options;
    options.world = 2;
    options.rank = rank;
    options.descriptor = dup(memory);
    options.starter = ends[rank][1];
    threads.emplace_back([options] { EXPECT_EQ(connectFault(options), ""); });
  }
  close(memory);
  for (unsigned rank : {0u, 1u})
    threads[rank].join();
  for (unsigned rank : {0u, 1u})
    EXPECT_EQ(saidTo(ends[rank][0], rank), std::pair(std::vector{Meeting::Seeking, Meeting::Found}, true));
}

TEST(Connect, TellsTheStarterOnlyWhatIsTrue) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  RankOptions options;
  options.world = 2;
  options.descriptor = 900;
  options.starter = ends[1];
  EXPECT_NE(connectFault(options), "");
  EXPECT_EQ(saidTo(ends[0], 0).first, std::vector{Meeting::Seeking});
  close(ends[1]);
  EXPECT_EQ(connectFault(options), concat("rank 0: DS_STARTER: descriptor ", ends[1], " is no open pipe"));
}

TEST(Connect, RefusesWhatIsNoSharedMemoryOfTheRanks) {
  RankOptions options;
  options.world = 2;
  options.descriptor = 900;
  EXPECT_EQ(connectFault(options), "rank 0: descriptor 900 of the ranks' shared memory: Bad file descriptor");
  options.descriptor = memfd_create("other", MFD_CLOEXEC);
  EXPECT_NE(connectFault(options).find("is no shared memory of 2 ranks: found 0 bytes"), std::string::npos);
  close(options.descriptor);
  options.rank = 2;
  EXPECT_EQ(connectFault(options), "rank 2 of 2 ranks");
}

TEST(Connect, RefusesAddressesThatAreNone) {
  RankOptions options;
  options.world = 2;
  options.rank = 1;
  options.transport = TransportKind::Tcp;
  for (const char *text : {"", "host", "host:", ":80", "host:0", "host:65536", "host:1x"}) {
    options.rendezvous = text;
    EXPECT_EQ(connectFault(options),
              concat("rank 1: address '", text, "': expected HOST:PORT with a port of 1 to 65535"));
  }
  options.rank = 0;
  options.descriptor = 900;
  EXPECT_EQ(connectFault(options), "rank 0: descriptor 900 is no socket that listens: it is not open");
}

} // namespace
