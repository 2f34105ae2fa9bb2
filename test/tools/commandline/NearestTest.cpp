// What was meant by a name that is none, and what shells and manual pages are told.
#include "tools/commandline/Nearest.h"
#include "tools/commandline/Description.h"

#include <gtest/gtest.h>

using namespace ds::commandline;

namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(editDistance("bench", "bench"), 0u);
  EXPECT_EQ(editDistance("bnech", "bench"), 1u); // neighbours that changed places
  EXPECT_EQ(editDistance("profle", "profile"), 1u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(editDistance("ab", "ba"), editDistance("ba", "ab"));
}

TEST(Nearest, NamesWhatIsNearOnly) {
  std::vector<std::string> commands = {"bench", "inspect", "eval", "on"};
  EXPECT_EQ(nearest("bnech", commands), "bench");
  EXPECT_EQ(nearest("inspct", commands), "inspect");
  EXPECT_EQ(nearest("inspector", commands), "inspect");
  EXPECT_EQ(nearest("inspectors", commands), "");
  EXPECT_EQ(nearest("evil", commands), "eval");
  EXPECT_EQ(nearest("veil", commands), ""); // two steps are too far for a short word
  EXPECT_EQ(nearest("", commands), "");
  EXPECT_EQ(nearest("xy", commands), ""); // nothing of 'on' is left
  EXPECT_EQ(nearest(std::string(100000, 'a'), commands), "");
  EXPECT_EQ(didYouMean("bensh", commands), ", did you mean 'bench'?");
  EXPECT_EQ(didYouMean("frobnicate", commands), "");
}

TEST(Description, TellsChoicesFromNames) {
  EXPECT_EQ(choicesOf("shm|tcp"), (std::vector<std::string>{"shm", "tcp"}));
  EXPECT_EQ(choicesOf("lr-range|on|f16").size(), 3u);
  EXPECT_TRUE(choicesOf("FILE").empty());
  EXPECT_TRUE(choicesOf("data=N|data").empty());
  EXPECT_TRUE(choicesOf("word").empty());
  EXPECT_TRUE(isPath("FILE.npz"));
  EXPECT_FALSE(isPath("NAME"));
}

TEST(Description, ManualPagesAreSafeFromTheirText) {
  ProgramText program{"x-y", "1", "does a\\b", {}, {}, {".note"}};
  program.main.options = {{{"-a", "--all"}, "FILE", false, ".hidden 'quoted'"}, {{"--opt"}, "on|off", true, "help"}};
  std::string page = manPage(program);
  EXPECT_NE(page.find("x\\-y \\- does a\\eb\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n\\&.hidden 'quoted'\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\n\\&.note\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\\fB\\-\\-opt\\fR[=\\fIon|\\:off\\fR]"), std::string::npos) << page;
}

} // namespace
