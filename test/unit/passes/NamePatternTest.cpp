// Sizes of expressions with their repetitions written out, against expressions that are made together with theirs.
#include "passes/NamePattern.h"

#include "gtest/gtest.h"

#include <random>

using namespace deepstride;

namespace {

constexpr double mostCharacters = 10000;

struct Pattern {
  std::string text;
  double size = 0;
};

class PatternMaker {
public:
  explicit PatternMaker(unsigned seed) : engine(seed) {}

  /// A sequence of up to four repeated atoms, groups at most `depth` deep.
  Pattern sequence(int depth) {
    Pattern result;
    for (int i = 1 + below(4); i-- > 0;) {
      Pattern part = repeated(depth);
      result.text += part.text;
      result.size += part.size;
    }
    return result;
  }

private:
  int below(int count) { return static_cast<int>(engine() % static_cast<unsigned>(count)); }

  Pattern atom(int depth) {
    static const char *const single[] = {"a", "x", "\\{", "\\(", ".", "[a-z]", "[]({]", "[^]]", "[[:digit:])]", "[(]"};
    if (depth > 0 && below(9) == 0)
      return {"()", 2};
    if (depth == 0 || below(2) == 0)
      return {single[below(std::size(single))], 1};
    Pattern inner = sequence(depth - 1);
    if (below(3) == 0) {
      Pattern other = sequence(depth - 1);
      inner = {inner.text + "|" + other.text, inner.size + other.size};
    }
    return {"(" + inner.text + ")", inner.size + 2};
  }

  Pattern repeated(int depth) {
    Pattern result = atom(depth);
    int least = below(20), more = below(20);
    std::string from = std::to_string(least);
    switch (below(7)) {
    case 0: return {result.text + "*", result.size};
    case 1: return {result.text + "?", result.size};
    case 2: least += 1; return {result.text + "{" + std::to_string(least) + "}", result.size * least};
    case 3: return {result.text + "{" + from + ",}", result.size * (least + 1)};
    case 4:
      more += 1;
      return {result.text + "{" + from + "," + std::to_string(least + more) + "}", result.size * (least + more)};
    default: return result;
    }
  }

  std::mt19937 engine;
};

TEST(NamePattern, CountsWhatRepetitionsWriteOut) {
  unsigned first = std::random_device()();
  int accepted = 0, refused = 0;
  for (unsigned seed = first; seed != first + 2000; ++seed) {
    Pattern pattern = PatternMaker(seed).sequence(3);
    std::string reason = reasonAgainstPattern(pattern.text);
    (reason.empty() ? accepted : refused)++;
    EXPECT_EQ(reason.empty(), pattern.size <= mostCharacters)
        << "seed " << seed << ": " << pattern.text << " of size " << pattern.size << ": " << reason;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 10);
}

TEST(NamePattern, TakesAllMemoryOfNoOne) {
  for (const char *text :
       {"((((a{255}){255}){255}){255})", "((((){255}){255}){255}){255}", "((a{1,}){200}){200}{99999999999999999999999}",
        "(((((((a{99}){99}){99}){99}){99}){99}){99}"})
    EXPECT_NE(reasonAgainstPattern(text), "") << text;
  EXPECT_NE(reasonAgainstPattern(std::string(10001, 'a')), "");
  EXPECT_EQ(reasonAgainstPattern(std::string(10000, 'a')), "");
}

TEST(NamePattern, LeavesOtherErrorsToTheLibrary) {
  for (const char *text : {"(", "a)", "[a", "a{3", "a{2,1}", "*", "a**", "\\", "", "a{256}", "[[:none:]]"})
    EXPECT_NE(reasonAgainstPattern(text), "") << text;
  for (const char *text : {"^encoder\\.layer\\.[0-9]+\\.", "a|b", "{", "a{x", "bias$", "(layer_(1|2)){1,3}", "[{]"})
    EXPECT_EQ(reasonAgainstPattern(text), "") << text;
}

} // namespace
