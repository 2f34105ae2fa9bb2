#include "frontends/onnx/convert/Assumptions.h"
#include "test/unit/support/Seed.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace deepstride;
using namespace deepstride::onnx;

namespace {

SizeExpr parse(const std::string &text) { return *SizeExpr::parse(text); }

/// What follows for `condition` from conditions that hold; a leading '!' is one that does not.
std::optional<bool> implied(std::vector<std::string> assumed, const std::string &condition) {
  Assumptions assumptions;
  assumptions.bound(parse("flag[0]"), 0, 1);
  assumptions.bound(parse("small[0]"), -128, 127);
  for (std::string &text : assumed) {
    bool holds = text[0] != '!';
    assumptions.add(parse(holds ? text : text.substr(1)), holds);
  }
  return assumptions.implied(parse(condition));
}

TEST(Assumptions, TheSameConditionIsDecidedTheSameWay) {
  EXPECT_EQ(implied({"eq(sr[0], 16000)"}, "eq(sr[0], 16000)"), true);
  EXPECT_EQ(implied({"!eq(sr[0], 16000)"}, "eq(sr[0], 16000)"), false);
  EXPECT_EQ(implied({"!eq(sr[0], 16000)"}, "1 - eq(sr[0], 16000)"), true);
  EXPECT_EQ(implied({"lt(mod(n, m), 3)"}, "lt(mod(n, m), 3)"), true);
  EXPECT_EQ(implied({}, "eq(sr[0], 16000)"), std::nullopt);
  EXPECT_EQ(implied({"eq(sr[0], 16000)"}, "eq(other[0], 16000)"), std::nullopt);
}

TEST(Assumptions, RangesDecideOtherConditions) {
  EXPECT_EQ(implied({"eq(sr[0], 16000)"}, "eq(sr[0], 8000)"), false);
  EXPECT_EQ(implied({"!eq(sr[0], 16000)"}, "eq(sr[0], 8000)"), std::nullopt);
  EXPECT_EQ(implied({"eq(sr[0], 16000)"}, "lt(sr[0], 16001)"), true);
  EXPECT_EQ(implied({"eq(sr[0], 16000)"}, "eq(mod(sr[0], 7), 5)"), true);
  EXPECT_EQ(implied({"eq(floordiv(n, 64), 1)"}, "eq(floordiv(n, 64), 2)"), false);
  EXPECT_EQ(implied({"lt(8, n)"}, "lt(4, n)"), true);
  EXPECT_EQ(implied({"!lt(4, n)"}, "lt(8, n)"), false);
  EXPECT_EQ(implied({"lt(4, n)"}, "lt(8, n)"), std::nullopt);
  EXPECT_EQ(implied({"lt(4, n)", "!lt(5, n)"}, "eq(n, 5)"), true);
  EXPECT_EQ(implied({"lt(n, m)"}, "lt(m, n)"), false);
  EXPECT_EQ(implied({"lt(n, m)"}, "eq(m, n)"), false);
  EXPECT_EQ(implied({"lt(n, m)"}, "lt(n + 3, m)"), std::nullopt);
  EXPECT_EQ(implied({"!eq(n, 0)"}, "lt(0, n)"), true); // a size is never negative
  EXPECT_EQ(implied({"!eq(x[0], 0)"}, "lt(0, x[0])"), std::nullopt);
}

TEST(Assumptions, ConnectivesAreTakenApart) {
  EXPECT_EQ(implied({"eq(n, 1)*lt(4, m)"}, "lt(4, m)"), true);
  EXPECT_EQ(implied({"!eq(n, 1)*lt(4, m)"}, "lt(4, m)"), std::nullopt);
  EXPECT_EQ(implied({"!max(eq(n, 1), lt(4, m))"}, "eq(n, 1)"), false);
  EXPECT_EQ(implied({"max(eq(n, 1), lt(4, m))"}, "eq(n, 1)"), std::nullopt);
  EXPECT_EQ(implied({"eq(n, 1)"}, "max(eq(n, 1), lt(4, m))"), true);
  EXPECT_EQ(implied({"!eq(n, 1)"}, "eq(n, 1)*lt(4, m)"), false);
  EXPECT_EQ(implied({"flag[0]"}, "1 - flag[0]"), false);
  EXPECT_EQ(implied({"flag[0]"}, "eq(flag[0], 0)"), false);
  EXPECT_EQ(implied({}, "eq(small[0], 300)"), false); // its type cannot hold that
  EXPECT_EQ(implied({}, "eq(small[0], 127)"), std::nullopt);
}

TEST(Assumptions, KnowsWhatASymbolMustBe) {
  Assumptions assumptions;
  assumptions.bound(parse("flag[0]"), 0, 1);
  EXPECT_EQ(assumptions.valueOf(parse("flag[0]")), std::nullopt);
  assumptions.add(parse("flag[0]"), false);
  EXPECT_EQ(assumptions.valueOf(parse("flag[0]")), 0);
  assumptions.add(parse("eq(sr[0], 16000)"), true);
  EXPECT_EQ(assumptions.valueOf(parse("sr[0]")), 16000);
  assumptions.add(parse("eq(n + m, 3)"), true);
  EXPECT_EQ(assumptions.valueOf(parse("n")), std::nullopt);
  EXPECT_EQ(describe(assumptions.list().drop_front()), "eq(16000, sr[0]) holds and eq(3, m + n) holds");
}

TEST(Assumptions, HugeNumbersAreLeftAlone) {
  EXPECT_EQ(implied({"eq(x[0], 9223372036854775807)"}, "eq(x[0], 9223372036854775807)"), true);
  EXPECT_EQ(implied({"lt(x[0], -9223372036854775807)"}, "eq(x[0], 5)"), std::nullopt);
}

using Point = std::map<std::string, int64_t>; // values of symbols, and of the elements of inputs of one

int64_t valueAt(const SizeExpr &size, const Point &point);

int64_t valueAt(const SizeAtom &atom, const Point &point) {
  if (atom.kind() != SizeAtom::Kind::Call)
    return point.at(atom.name().str());
  int64_t a = valueAt(atom.arguments()[0], point), b = valueAt(atom.arguments()[1], point);
  if (atom.name() == "eq")
    return a == b;
  if (atom.name() == "lt")
    return a < b;
  if (atom.name() == "max")
    return std::max(a, b);
  EXPECT_EQ(atom.name().str(), "floordiv"); // of sizes by 2
  return a / b;
}

int64_t valueAt(const SizeExpr &size, const Point &point) {
  int64_t sum = 0;
  for (const auto &[monomial, coefficient] : size.polynomial()) {
    int64_t term = coefficient;
    for (const SizeAtom &atom : monomial)
      term *= valueAt(atom, point);
    sum += term;
  }
  return sum;
}

/// Whatever is said to follow is so at every point at which the assumptions are.
TEST(Assumptions, WhatFollowsIsTrueEverywhere) {
  std::mt19937 random(randomSeed());
  auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  auto number = [&] { return SizeExpr(pick(9) - 2); };
  auto term = [&]() -> SizeExpr {
    SizeExpr n = SizeExpr::symbol("n"), m = SizeExpr::symbol("m"), x = SizeExpr::element("x", 0);
    SizeExpr choices[] = {n, m, x, n + m, n - m, n * SizeExpr(2) - x, SizeExpr::floorDiv(n, 2), n * m};
    return choices[pick(8)] + number();
  };
  std::function<SizeExpr(int)> condition = [&](int depth) -> SizeExpr {
    int kind = pick(depth > 0 ? 7 : 4);
    if (kind < 2)
      return SizeExpr::eq(term(), pick(3) ? number() : term());
    if (kind < 4)
      return pick(2) ? SizeExpr::lt(term(), number()) : SizeExpr::lt(number(), term());
    if (kind == 4)
      return SizeExpr(1) - condition(depth - 1);
    SizeExpr a = condition(depth - 1), b = condition(depth - 1);
    return kind == 5 ? a * b : SizeExpr::max(a, b);
  };
  auto at = [](const SizeExpr &expression, const Point &point) { return valueAt(expression, point) != 0; };
  std::vector<Point> points;
  for (int n = 0; n < 8; ++n)
    for (int m = 0; m < 8; ++m)
      for (int x = -6; x < 7; ++x) {
        points.push_back({{"n", n}, {"m", m}, {"x", x}});
      }
  int known = 0;
  for (int round = 0; round < 400; ++round) {
    const auto &truth = points[static_cast<size_t>(pick(static_cast<int>(points.size())))];
    Assumptions assumptions;
    for (int i = 0; i < 4; ++i) {
      SizeExpr assumed = condition(2);
      if (assumed.constant())
        continue;
      if (auto follows = assumptions.implied(assumed)) {
        ++known;
        for (const auto &point : points)
          if (llvm::all_of(assumptions.list(),
                           [&](const auto &item) { return at(item.condition, point) == item.holds; }))
            ASSERT_EQ(at(assumed, point), *follows)
                << describe(assumptions.list()) << " => " << assumed.str() << " at n=" << point.at("n")
                << " m=" << point.at("m") << " x=" << point.at("x");
        continue;
      }
      assumptions.add(assumed, at(assumed, truth));
    }
  }
  EXPECT_GT(known, 20);
}

} // namespace
