// What the launcher makes of its options and files, without starting anything.
#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/launch/ChildProcess.h"
#include "tools/ds-run/launch/Environment.h"
#include "tools/ds-run/launch/LaunchOptions.h"
#include "tools/ds-run/launch/RankLines.h"
#include "tools/ds-run/launch/RunPlan.h"
#include "tools/ds-run/launch/StartCommand.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;

namespace {

std::string parsedVariables(const std::string &text) {
  Variables variables;
  try {
    parseEnvironment(text, "env", variables);
  } catch (const Error &error) {
    return error.what();
  }
  std::string result;
  for (const auto &[name, value] : variables)
    result += name + "[" + value + "]";
  return result;
}

TEST(Environment, ReadsEachLine) {
  const std::pair<const char *, const char *> cases[] = {
      {"A=1\nB=2\n", "A[1]B[2]"},
      {"A=x=y==z", "A[x=y==z]"}, // '=' belongs to the value
      {"\n\n# comment\n   # another\n  A=1\r\n \t\n", "A[1]"},
      {"A=# no comment", "A[# no comment]"},
      {"A=", "A[]"},
      {"A= b  ", "A[ b  ]"},
      {"A='b'", "A['b']"},
      {"A=1\nB=2\nA=3", "A[3]B[2]"},
      {"", ""},
      {"A", "env:1: found 'A', expected NAME=VALUE with a name of letters, digits and _"},
      {"\n=1", "env:2: found '=1', expected NAME=VALUE with a name of letters, digits and _"},
      {"A B=1", "env:1: found 'A B=1', expected NAME=VALUE with a name of letters, digits and _"},
      {"1A=1", "env:1: found '1A=1', expected NAME=VALUE with a name of letters, digits and _"},
      {"DS_RANK=1", "env:1: 'DS_RANK' is set for each rank by what starts it"},
      {"A=1\nSLURM_PROCID=0", "env:2: 'SLURM_PROCID' is set for each rank by what starts it"},
      {"OMPI_COMM_WORLD_SIZE=4", "env:1: 'OMPI_COMM_WORLD_SIZE' is set for each rank by what starts it"},
  };
  for (auto [text, expected] : cases)
    EXPECT_EQ(parsedVariables(text), expected) << text;
  EXPECT_EQ(parsedVariables(std::string("A=x\0y", 5)), "env:1: the value of 'A' has a zero byte");
}

TEST(Environment, ExportsByPrefix) {
  setenv("NCCL_DEBUG", "x", 1);
  setenv("UCX_TLS", "y", 1);
  setenv("XNCCL", "z", 1);
  Variables variables;
  variables.set("OWN", "1");
  std::vector<std::string> names = exportedNames(variables);
  auto has = [&](const char *name) { return std::count(names.begin(), names.end(), name); };
  EXPECT_TRUE(has("NCCL_DEBUG") && has("UCX_TLS") && has("OWN"));
  EXPECT_FALSE(has("XNCCL") || has("PATH") || has("HOME"));
  variables.set("UCX_TLS", "own");
  std::vector<std::string> whole = environmentWith(variables);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), "UCX_TLS=own"), 1);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), "UCX_TLS=y"), 0);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), "XNCCL=z"), 1);
}

Arguments split(std::vector<std::string> words) {
  CLI::App app;
  LaunchOptions options;
  addLaunchOptions(app, options);
  std::vector<char *> pointers = {const_cast<char *>("ds-run")};
  for (std::string &word : words)
    pointers.push_back(word.data());
  return splitArguments(static_cast<int>(pointers.size()), pointers.data(), app);
}

TEST(LaunchOptions, AreTakenOutOfTheCommand) {
  using Words = std::vector<std::string>;
  Arguments found = split({"train", "-n", "4", "m.dsp", "--hostfile=h", "--data", "x", "--dry-run", "--log-dir", "l"});
  EXPECT_EQ(found.launch, (Words{"-n", "4", "--hostfile=h", "--dry-run", "--log-dir", "l"}));
  EXPECT_EQ(found.command, (Words{"train", "m.dsp", "--data", "x"}));
  EXPECT_FALSE(found.hasProgram);
  found = split({"-n4", "m.dsp", "--ranksx=4", "--timeout", "3", "--", "--ranks"});
  EXPECT_EQ(found.launch, (Words{"-n4", "--timeout", "3"}));
  EXPECT_EQ(found.command, (Words{"m.dsp", "--ranksx=4", "--", "--ranks"}));
  found = split({"--ranks=2", "--exec", "cmd", "--ranks", "3", "--exec"});
  EXPECT_EQ(found.launch, (Words{"--ranks=2"}));
  EXPECT_TRUE(found.command.empty() && found.hasProgram);
  EXPECT_EQ(found.program, (Words{"cmd", "--ranks", "3", "--exec"}));
  EXPECT_EQ(split({"m.dsp", "--ranks"}).launch, (Words{"--ranks"})); // the parser misses its value
}

TEST(Launch, ResumesWhateverTheCommandSaid) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(resumed({"train", "m.dsp", "--steps=3"}, ""), (Words{"train", "m.dsp", "--steps=3", "--resume"}));
  EXPECT_EQ(resumed({"train", "--resume=a", "m.dsp"}, "a"), (Words{"train", "m.dsp", "--resume"}));
  EXPECT_EQ(resumed({"train", "--resume", "a", "m.dsp"}, "a"), (Words{"train", "m.dsp", "--resume"}));
  EXPECT_EQ(resumed({"train", "m.dsp", "--resume"}, ""), (Words{"train", "m.dsp", "--resume"}));
  EXPECT_EQ(resumed({"train", "--resume", "--tag", "a"}, ""), (Words{"train", "--tag", "a", "--resume"}));
}

TEST(StartCommand, NamesHostsInOrder) {
  std::vector<Host> hosts = {{"b", {0, 1}}, {"a", {3}}};
  std::string text = shellText(mpirunCommand(hosts, {"NCCL_DEBUG", "X"}, {"/bin/ds-run", "train", "m.dsp"}));
  EXPECT_NE(text.find("-n 3 --host b:2,a:1 --map-by slot --bind-to none -x NCCL_DEBUG -x X /bin/ds-run train m.dsp"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.rfind("mpirun ", 0), 0u);
  EXPECT_EQ(shellText(srunCommand(hosts, 3, 0, {"p"})),
            "srun --ntasks=3 --kill-on-bad-exit=1 --distribution=arbitrary --nodelist=b,b,a --nodes=2 p");
  EXPECT_EQ(shellText(srunCommand({}, 3, 2, {"p"})), "srun --ntasks=3 --kill-on-bad-exit=1 --nodes=2 p");
  EXPECT_EQ(shellText({"A=b c", "A=d", "it's", "", "$x", "--o=a b", "x'=y z"}),
            "A='b c' A=d 'it'\\''s' '' '$x' --o='a b' 'x'\\''=y z'");
}

TEST(RankLines, TellsEqualLinesOnce) {
  RankLines lines(3);
  EXPECT_EQ(lines.add(1, "note\n"), "note\n");
  EXPECT_EQ(lines.add(0, "note\n"), "");
  EXPECT_EQ(lines.add(0, "note\n"), "note\n"); // said by it twice
  EXPECT_EQ(lines.add(2, "note\n"), "");
  EXPECT_EQ(lines.add(2, "note\n"), "");
  EXPECT_EQ(lines.add(2, "other\n"), "other\n");
  EXPECT_FALSE(lines.isWaiting());
}

TEST(RankLines, NamesTheRanksOfAnError) {
  RankLines lines(3);
  EXPECT_EQ(lines.add(2, "ds-run: error: a: b\n"), "");
  EXPECT_EQ(lines.add(0, "ds-run: error: a: b\n"), "");
  EXPECT_EQ(lines.add(1, "ds-run: error: c\n"), "");
  EXPECT_TRUE(lines.isWaiting());
  EXPECT_EQ(lines.flush(), "ds-run: error: ranks 0, 2: a: b\nds-run: error: rank 1: c\n");
  EXPECT_EQ(lines.add(1, "ds-run: error: a: b\n"), ""); // told
  EXPECT_TRUE(lines.hasError(1));
  RankLines all(2);
  EXPECT_EQ(all.add(1, "ds-run: error: x\n") + all.add(0, "ds-run: error: x\n"), "ds-run: error: x\n");
  EXPECT_FALSE(all.isWaiting());
  RankLines one(1);
  EXPECT_EQ(one.add(0, "ds-run: error: x\n"), "ds-run: error: x\n");
  EXPECT_EQ(one.add(0, "ds-run: error: rank 0: y\n"), "ds-run: error: rank 0: y\n"); // mpirun's
  EXPECT_FALSE(RankLines(1).hasError(0));
}

TEST(RankLines, LeavesOutWhatFollowsFromAnotherRanksError) {
  RankLines lines(3);
  lines.add(0, "ds-run: error: rank 0: all_reduce 'g': rank 2 did not arrive; rank 2 failed: x.npy: no such file\n");
  lines.add(2, "ds-run: error: x.npy: no such file\n");
  EXPECT_EQ(lines.flush(), "ds-run: error: rank 2: x.npy: no such file\n");
  lines.add(1, "ds-run: error: rank 1: all_reduce 'h': rank 2 did not arrive; rank 2 failed: x.npy: no such file\n");
  EXPECT_EQ(lines.flush(), "");
  // Where the rank says nothing itself, the others do.
  RankLines dead(3);
  dead.add(0, "ds-run: error: rank 0: all_reduce 'g': rank 2 has ended\n");
  dead.add(1, "ds-run: error: rank 1: all_reduce 'g': rank 2 has ended\n");
  EXPECT_EQ(dead.flush(), "ds-run: error: ranks 0, 1: all_reduce 'g': rank 2 has ended\n");
}

TEST(Launch, MemoryIsBlamedOnlyWhereTheKernelHasEndedProcessesForIt) {
  EXPECT_EQ(causeOfKill(3, 3), "");
  EXPECT_EQ(causeOfKill(3, 4),
            ": the kernel's out-of-memory killer was at work, fewer ranks or smaller batches need less memory");
  EXPECT_EQ(causeOfKill(std::nullopt, 4), ", perhaps for want of memory");
  EXPECT_EQ(causeOfKill(3, std::nullopt), ", perhaps for want of memory");
}

} // namespace
