// The table of keys: sound in itself, and what docs/config.md shows.
#include "frontends/config/Values.h"
#include "test/unit/config/Support.h"

#include <cstdlib>
#include <set>

using namespace ds::config;

TEST(ConfigKeys, DefaultsAreLegal) {
  for (const KeySpec &key : keys()) {
    if (key.fallback.empty() || key.use == KeyUse::Alias || key.fallback == "\"constant\"")
      continue;
    Problems problems;
    JsonNode value = parseJson(std::string(key.fallback), problems);
    ASSERT_TRUE(problems.empty()) << key.path;
    EXPECT_EQ(checkValue(key, value).error, "") << key.path;
  }
}

TEST(ConfigKeys, StandInSectionsAndMeanSomething) {
  std::set<std::string_view> done;
  std::string_view last;
  for (const KeySpec &key : keys()) {
    EXPECT_FALSE(key.effect.empty()) << key.path;
    EXPECT_TRUE(key.path == last || done.insert(key.path).second)
        << key.path << ": rows of a path must follow each other";
    last = key.path;
    if (size_t dot = key.path.rfind('.'); dot != std::string_view::npos) {
      const KeySpec *section = findKey(key.path.substr(0, dot));
      ASSERT_TRUE(section) << key.path;
      EXPECT_EQ(section->type, KeyType::Section) << key.path;
    }
    if (key.use == KeyUse::Alias) {
      EXPECT_TRUE(findKey(key.fallback)) << key.path;
    }
  }
}

// With DS_UPDATE=1 in the environment the page is written anew.
TEST(ConfigKeys, AreThoseOfTheDocumentation) {
  const std::string begin = "<!-- keys: from frontends/config/Keys.def, by DS_UPDATE=1 build/bin/ds-config-unit -->\n",
                    end = "<!-- end of keys -->\n";
  std::ifstream stream(DS_CONFIG_DOCS);
  std::string page{std::istreambuf_iterator<char>(stream), {}};
  size_t from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  from += begin.size();
  std::string expected = "\n" + keysMarkdown() + "\n";
  if (std::getenv("DS_UPDATE") && page.substr(from, to - from) != expected)
    std::ofstream(DS_CONFIG_DOCS) << page.substr(0, from) + expected + page.substr(to);
  else
    EXPECT_EQ(page.substr(from, to - from), expected) << "repair with: DS_UPDATE=1 build/bin/ds-config-unit";
}
