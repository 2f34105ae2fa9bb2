// The hostfile and its filters, case by case, and against sets that a loop of the test's own draws.
#include "test/unit/runtime/PackageBuilder.h"
#include "test/unit/support/Seed.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/launch/Hostfile.h"
#include "tools/ds-run/launch/Ranks.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace ds;
using namespace ds::test;

namespace {

// "a:0,1 b:0"
std::string textOf(const std::vector<Host> &hosts) {
  std::string text;
  for (const Host &host : hosts) {
    text += (text.empty() ? "" : " ") + host.name + ":";
    for (size_t i = 0; i < host.slots.size(); ++i)
      text += (i ? "," : "") + std::to_string(host.slots[i]);
  }
  return text;
}

std::string parsed(const std::string &text) {
  try {
    return textOf(parseHostfile(text, "hosts"));
  } catch (const Error &error) {
    EXPECT_EQ(error.getCode(), ErrorCode::BadFile);
    return error.what();
  }
}

TEST(Hostfile, ReadsEachLine) {
  const std::pair<const char *, const char *> cases[] = {
      {"a slots=2\nb slots=1\n", "a:0,1 b:0"},
      {"b slots=1\na slots=1", "b:0 a:0"}, // in its order; no end of line
      {"\n# all\n  # of them\n\ta\tslots=3  # fast ones\r\n \r\n", "a:0,1,2"},
      {"10.0.0.7 slots=1\nnode-1.rack slots=01\n", "10.0.0.7:0 node-1.rack:0"},
      {"h\xc3\xb6st slots=1", "h\xc3\xb6st:0"},
      {"", "hosts: no host, expected lines of NAME slots=K"},
      {"# none\n", "hosts: no host, expected lines of NAME slots=K"},
      {"a slots=1\n\na slots=2", "hosts:3: host 'a' stands at hosts:1, too"},
      {"a", "hosts:1: found 'a', expected NAME slots=K"},
      {"a 4", "hosts:1: found 'a 4', expected NAME slots=K"},
      {"a slots = 4", "hosts:1: found 'a slots = 4', expected NAME slots=K"},
      {"a slots=4 max_slots=8", "hosts:1: found 'a slots=4 max_slots=8', expected NAME slots=K"},
      {"\na SLOTS=4", "hosts:2: found 'a SLOTS=4', expected NAME slots=K"},
      {"a slots=0", "hosts:1: host 'a' has slots=0, expected 1 to 4096"},
      {"a slots=", "hosts:1: host 'a' has slots=, expected 1 to 4096"},
      {"a slots=-1", "hosts:1: host 'a' has slots=-1, expected 1 to 4096"},
      {"a slots=2x", "hosts:1: host 'a' has slots=2x, expected 1 to 4096"},
      {"a slots=4097", "hosts:1: host 'a' has slots=4097, expected 1 to 4096"},
      {"a slots=99999999999999999999", "hosts:1: host 'a' has slots=99999999999999999999, expected 1 to 4096"},
  };
  for (auto [text, expected] : cases)
    EXPECT_EQ(parsed(text), expected) << text;
  for (const char *name : {"a:1", "a@b", "a,b", "-x", "a=b", "'a'", "a*2"})
    EXPECT_EQ(parsed(std::string(name) + " slots=1").rfind("hosts:1: found '", 0), 0u) << name;
  EXPECT_EQ(parsed(std::string("a\0b slots=1", 11)).find('\0'), std::string::npos);
  std::string large;
  for (int i = 0; i < 17; ++i)
    large += "h" + std::to_string(i) + " slots=4096\n";
  EXPECT_EQ(parsed(large), "hosts:17: more than 65536 slots");
}

std::string filtered(const HostFilter &filter) {
  try {
    return textOf(filterHosts(parseHostfile("a slots=4\nb slots=2\nc slots=3\n", "hosts"), filter));
  } catch (const Error &error) {
    EXPECT_EQ(error.getCode(), ErrorCode::InvalidArgument);
    return error.what();
  }
}

TEST(Hostfile, Filters) {
  struct Case {
    HostFilter filter;
    const char *expected;
  };
  const Case cases[] = {
      {{}, "a:0,1,2,3 b:0,1 c:0,1,2"},
      {{"c@a:3,1", "", {}, {}}, "a:3,1 c:0,1,2"}, // hosts as in the file, slots as in the filter
      {{"b:1", "", {}, {}}, "b:1"},
      {{"", "b", {}, {}}, "a:0,1,2,3 c:0,1,2"},
      {{"", "a:2,0@c:0,1,2", {}, {}}, "a:1,3 b:0,1"},
      {{"", "", 2, {}}, "a:0,1,2,3 b:0,1"},
      {{"", "", {}, 2}, "a:0,1 b:0,1 c:0,1"},
      {{"", "", 1, 3}, "a:0,1,2"},
      {{"a", "b", {}, {}}, "--include and --exclude: expected one of them, found both"},
      {{"a", "", 1, {}}, "--num_nodes: expected no --include beside it"},
      {{"", "a", {}, 1}, "--num_gpus: expected no --exclude beside it"},
      {{"d", "", {}, {}}, "--include: no host 'd', expected one of [a, b, c]"},
      {{"", "a@A", {}, {}}, "--exclude: no host 'A', expected one of [a, b, c]"},
      {{"b:2", "", {}, {}}, "--include: host 'b' has no slot '2', expected 0 to 1"},
      {{"b:", "", {}, {}}, "--include: host 'b' has no slot '', expected 0 to 1"},
      {{"b:x", "", {}, {}}, "--include: host 'b' has no slot 'x', expected 0 to 1"},
      {{"b:0,-1", "", {}, {}}, "--include: host 'b' has no slot '-1', expected 0 to 1"},
      {{"b:1,1", "", {}, {}}, "--include: slot 1 of host 'b' is named twice"},
      {{"b:1@b:0", "", {}, {}}, "--include: host 'b' is named twice"},
      {{"a@", "", {}, {}}, "--include: found 'a@', expected NODE[:SLOT,SLOT]@NODE..."},
      {{":0", "", {}, {}}, "--include: found ':0', expected NODE[:SLOT,SLOT]@NODE..."},
      {{"", "a@b@c", {}, {}}, "--exclude: found 'a@b@c', which leaves no slot"},
      {{"", "", 4, {}}, "--num_nodes: found 4, expected 1 to 3, the number of hosts"},
      {{"", "", {}, 3}, "--num_gpus: found 3, expected 1 to 2, the slots of host 'b'"},
      {{"", "", 0, {}}, "--num_nodes: found 0, expected 1 to 3, the number of hosts"},
  };
  for (const Case &c : cases)
    EXPECT_EQ(filtered(c.filter), c.expected);
}

TEST(Hostfile, NumbersRanksHostByHost) {
  auto hosts = filterHosts(parseHostfile("x slots=4\ny slots=2\nz slots=3\n", "h"), {"x:3,1@z", "", {}, {}});
  std::string text;
  for (const RankPlace &place : placeRanks(firstSlots(hosts, 4)))
    text += place.host + std::to_string(place.slot) + "/" + std::to_string(place.localRank) + " ";
  EXPECT_EQ(text, "x3/0 x1/1 z0/0 z1/1 ");
  EXPECT_EQ(slotCount(hosts), 5u);
}

TEST(Hostfile, KeepsWhatAnotherOneHasLeft) {
  auto selected = filterHosts(parseHostfile("x slots=4\ny slots=2\nz slots=3\n", "h"), {"x:3,1@y@z", "", {}, {}});
  EXPECT_EQ(textOf(leftOf(selected, parseHostfile("z slots=1\nw slots=9\nx slots=2", "h"))), "x:1 z:0");
  EXPECT_EQ(textOf(leftOf(selected, parseHostfile("x slots=9\ny slots=9\nz slots=9", "h"))), textOf(selected));
  EXPECT_EQ(textOf(leftOf(selected, parseHostfile("w slots=9", "h"))), "");
}

// A hostfile with random hosts, blanks and comments, and a filter of some of its slots.
TEST(Hostfile, RandomOnesAreWhatWasDrawn) {
  uint32_t seed = randomSeed();
  SCOPED_TRACE("DS_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
  const char *blanks[] = {" ", "\t", "  ", " \t "};
  for (int round = 0; round < 200; ++round) {
    std::string text, filter;
    std::map<std::string, std::set<unsigned>> named;
    std::vector<std::pair<std::string, unsigned>> drawn;
    for (unsigned i = 0, count = 1 + below(6); i < count; ++i) {
      drawn.emplace_back("n" + std::to_string(below(1000)) + "." + std::to_string(i), 1 + below(9));
      if (below(3) == 0)
        text += below(2) ? "\n" : "  # n0 slots=4\n";
      text += drawn.back().first + blanks[below(4)] + "slots=" + std::to_string(drawn.back().second);
      text += std::string(below(2) ? " #x" : "") + (below(2) ? "\n" : "\r\n");
      if (below(2) == 0 && i != 0)
        continue;
      filter += (filter.empty() ? "" : "@") + drawn.back().first;
      for (unsigned slot = 0; slot < drawn.back().second; ++slot)
        if (below(2) || slot == 0) {
          filter += (named[drawn.back().first].empty() ? ":" : ",") + std::to_string(slot);
          named[drawn.back().first].insert(slot);
        }
    }
    std::string kept, dropped;
    for (const auto &[name, slots] : drawn)
      for (unsigned slot = 0; slot < slots; ++slot)
        (named[name].count(slot) ? kept : dropped) += name + ":" + std::to_string(slot) + " ";
    auto hosts = parseHostfile(text, "h");
    auto listed = [](const std::vector<Host> &hosts) {
      std::string result;
      for (const RankPlace &place : placeRanks(hosts))
        result += place.host + ":" + std::to_string(place.slot) + " ";
      return result;
    };
    EXPECT_EQ(listed(filterHosts(hosts, {filter, "", {}, {}})), kept) << text << filter;
    if (!dropped.empty())
      EXPECT_EQ(listed(filterHosts(hosts, {"", filter, {}, {}})), dropped) << text << filter;
  }
}

} // namespace
