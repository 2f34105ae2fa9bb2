// Size expressions: canonical form, text round trip, and agreement with plain integer arithmetic on random expressions.
#include "dialects/ds/SizeExpr.h"

#include "llvm/Support/ConvertUTF.h"
#include "gtest/gtest.h"

#include <functional>
#include <random>

using namespace deepstride;

static SizeExpr symbol(const char *name) { return SizeExpr::symbol(name); }

static std::string canonical(const char *text) {
  auto parsed = SizeExpr::parse(text);
  return parsed ? parsed->str() : "<error>";
}

TEST(SizeExprTest, EqualPolynomialsCompareEqual) {
  SizeExpr b = symbol("batch"), s = symbol("seq");
  EXPECT_EQ((b + s) * (b - s), b * b - s * s);
  EXPECT_EQ(b * s * SizeExpr(12), SizeExpr(3) * s * SizeExpr(4) * b);
  EXPECT_EQ(b - b, SizeExpr(0));
  EXPECT_NE(b, s);
  EXPECT_EQ(product({b, s, 2}), SizeExpr(2) * b * s);
  EXPECT_EQ(product({}), SizeExpr(1));
}

TEST(SizeExprTest, ConstantsFold) {
  EXPECT_EQ(canonical("2*3 + 4"), "10");
  EXPECT_EQ(canonical("floordiv(-7, 2)"), "-4");
  EXPECT_EQ(canonical("ceildiv(7, 2)"), "4");
  EXPECT_EQ(canonical("mod(-7, 3)"), "2");
  EXPECT_EQ(canonical("mod(7, -3) + mod(-7, -3)"), "-3");
  EXPECT_EQ(canonical("mod(7, -1)"), "0");
  EXPECT_EQ(canonical("mod((-9223372036854775807 - 1), -1)"), "0");
  EXPECT_EQ(canonical("floordiv(7, -1)"), "-7");
  EXPECT_EQ(canonical("floordiv(7, -2)"), "-4");
  EXPECT_EQ(canonical("ceildiv(7, -2)"), "-3");
  EXPECT_EQ(canonical("min(3, 5) + max(3, 5)"), "8");
  EXPECT_EQ(canonical("select(lt(1, 2), 7, 8)"), "7");
  EXPECT_EQ(canonical("eq(batch, batch)"), "1");
  for (int64_t end : {INT64_MIN, INT64_MAX}) { // whose differences are no numbers of 64 bits
    EXPECT_EQ(SizeExpr::max(end, 0), std::max<int64_t>(end, 0));
    EXPECT_EQ(SizeExpr::min(0, end), std::min<int64_t>(end, 0));
    EXPECT_EQ(SizeExpr::lt(end, 1), SizeExpr(end < 1));
    EXPECT_EQ(SizeExpr::lt(1, end), SizeExpr(1 < end));
    EXPECT_EQ(SizeExpr::eq(end, 1), SizeExpr(0));
    EXPECT_EQ(SizeExpr::eq(end, end), SizeExpr(1));
  }
}

TEST(SizeExprTest, DivisionsCancel) {
  EXPECT_EQ(canonical("floordiv(batch*seq*12, 12*batch + 1)"), "floordiv(12*batch*seq, 12*batch + 1)");
  EXPECT_EQ(canonical("floordiv(batch*max(seq, 2), max(2, seq))"), "batch");
  EXPECT_EQ(canonical("mod(batch*max(seq, 2), max(2, seq))"), "0");
  EXPECT_EQ(canonical("floordiv(4*batch + 3, 4)"), "batch");
  EXPECT_EQ(canonical("max(batch + 1, batch)"), "batch + 1");
  EXPECT_EQ(canonical("min(batch, batch + seq)"), "batch");
  EXPECT_EQ(canonical("max(0, min(64, past + seq) - min(64, past))"), "min(max(-past + 64, 0), seq)");
}

TEST(SizeExprTest, ADivisionByZeroStaysOne) {
  EXPECT_EQ(canonical("floordiv(batch*seq, seq)"), "floordiv(batch*seq, seq)");
  EXPECT_EQ(canonical("ceildiv(batch*seq, seq)"), "ceildiv(batch*seq, seq)");
  EXPECT_EQ(canonical("mod(batch*seq, seq)"), "mod(batch*seq, seq)");
  EXPECT_EQ(SizeExpr::exactQuotient(symbol("a") * symbol("b"), symbol("b")), symbol("a"));
  EXPECT_FALSE(SizeExpr::exactQuotient(symbol("a") + SizeExpr(1), symbol("b")));
}

TEST(SizeExprTest, WhatLeaves64BitsIsNotWrapped) {
  SizeExpr large = int64_t(1) << 40, n = symbol("n");
  SizeExpr product = large * large * n, sum = SizeExpr(INT64_MAX) + SizeExpr(1);
  for (const SizeExpr &size : {product, sum, SizeExpr(INT64_MIN) - SizeExpr(1)}) {
    EXPECT_FALSE(size.constant()) << size.str();
    EXPECT_EQ(SizeExpr::parse(size.str()), size) << size.str();
  }
  EXPECT_FALSE(SizeExpr::exactProduct(large, large));
  EXPECT_FALSE(SizeExpr::exactSum(INT64_MAX, n, INT64_MAX)->range().high <= INT64_MAX);
  SizeExpr least = SizeExpr(INT64_MIN) * n + SizeExpr(INT64_MIN);
  EXPECT_EQ(SizeExpr::parse(least.str()), least) << least.str();
}

TEST(SizeExprTest, RangesFollowElements) {
  SizeExpr n = symbol("n"), x = SizeExpr::element("x", 0, 32), y = SizeExpr::element("y", 0);
  auto fits = [](const SizeExpr &size, int bits) {
    SizeRange range = size.range();
    __extension__ using Wide = __int128;
    return range.low >= -(Wide(1) << (bits - 1)) && range.high < (Wide(1) << (bits - 1));
  };
  EXPECT_TRUE(fits(x, 32));
  EXPECT_FALSE(fits(x + SizeExpr(1), 32));
  EXPECT_TRUE(fits(x * SizeExpr(1000003), 64));
  EXPECT_FALSE(fits(y + SizeExpr(1), 64));
  EXPECT_FALSE(fits(y * y, 64));
  EXPECT_TRUE(fits(SizeExpr::min(SizeExpr::max(y * y, 0), 7), 4));
  EXPECT_TRUE(fits(SizeExpr::mod(y, 16), 5));
  EXPECT_TRUE(fits(n * SizeExpr(4096), 64));
  EXPECT_FALSE(fits(n, 32));
  EXPECT_TRUE(fits(SizeExpr::within(y * y, -8, 7), 4));
  EXPECT_TRUE(SizeExpr::within(y * y, -8, 7).mayFail());
  EXPECT_FALSE(SizeExpr::within(n, 0, INT64_MAX).mayFail());
  EXPECT_TRUE(SizeExpr::assumed(7, 0, INT64_MAX).mayFail());
  // Two dimensions may be the rows and columns of a tensor, three are multiplied for other reasons, too.
  EXPECT_TRUE(fits(n * symbol("m") * SizeExpr(100), 64));
  EXPECT_FALSE(fits(n * n * n, 64));
  EXPECT_FALSE(fits(SizeExpr::max(n * symbol("m"), 1) * n, 64));
  SizeExpr power = n * n * n * n * n * n * n * n;
  EXPECT_TRUE(power.range().low == 0 && power.range().high > INT64_MAX);
}

TEST(SizeExprTest, ComparisonsThatPickAnOperandAreMinimaAndMaxima) {
  EXPECT_EQ(canonical("select(lt(a, b), a, b)"), canonical("min(a, b)"));
  EXPECT_EQ(canonical("select(lt(a, b), b, a)"), canonical("max(a, b)"));
  EXPECT_EQ(canonical("select(lt(-length, 0), 0, -length)"), "0");
  EXPECT_EQ(canonical("select(lt(a, b), b, c)"), "select(lt(a, b), b, c)");
}

TEST(SizeExprTest, BroadcastingTwiceIsBroadcastingOnce) {
  SizeExpr a = symbol("a"), b = symbol("b"), c = symbol("c");
  auto broadcast = [](const SizeExpr &x, const SizeExpr &y) { return SizeExpr::select(SizeExpr::eq(x, 1), y, x); };
  SizeExpr all = broadcast(broadcast(a, b), c);
  EXPECT_EQ(broadcast(all, a), all);
  EXPECT_EQ(broadcast(all, b), all);
  EXPECT_EQ(broadcast(all, c), all);
  EXPECT_NE(broadcast(all, symbol("d")), all);
  // tf2onnx joins shapes by their maximum: x with the mask's m, layer after layer.
  SizeExpr x = symbol("x"), m = SizeExpr::min(SizeExpr(1000000000), symbol("m"));
  SizeExpr once = SizeExpr::max(broadcast(x, m), x);
  EXPECT_EQ(once.str(), "select(eq(1, x), max(1, min(1000000000, m)), x)");
  EXPECT_EQ(broadcast(once, m), broadcast(x, m));
  EXPECT_EQ(SizeExpr::max(broadcast(once, m), once), once);
  EXPECT_EQ(broadcast(x, once), once);
  EXPECT_EQ(broadcast(broadcast(x, m), once), broadcast(x, m));
  EXPECT_EQ(broadcast(m, SizeExpr::max(m, 1)), m);
  EXPECT_EQ(broadcast(broadcast(a, b), symbol("d")), broadcast(a, broadcast(b, symbol("d"))));
  EXPECT_NE(SizeExpr::select(SizeExpr::eq(all, 2), a, all), all);
}

TEST(SizeExprTest, NamesThatAreNoIdentifiersAreQuoted) {
  SizeExpr odd = symbol("past sequence + 1");
  EXPECT_EQ(odd.str(), "`past sequence + 1`");
  EXPECT_EQ(SizeExpr::parse(odd.str()), odd);
  EXPECT_EQ(symbol("max").str(), "`max`");
  // Names are told apart whatever they hold; elements of inputs are no dimensions.
  std::vector<std::string> names = {"x[0]", "x",   "`x`",          "a'b",   "a`b", "a``b", "",
                                    "`",    "``",  " x",           "x ",    "?0",  "?0_1", "min",
                                    "3",    "a b", "\xe5\xaf\xb8", "x[0]`", "a+b", "\n",   "within"};
  for (const std::string &name : names) {
    EXPECT_EQ(SizeExpr::parse(symbol(name.c_str()).str()), symbol(name.c_str())) << name;
    EXPECT_EQ(symbol(name.c_str()).asAtom()->name(), name);
    SizeExpr element = SizeExpr::element(name, 7);
    EXPECT_EQ(SizeExpr::parse(element.str()), element) << element.str();
    EXPECT_EQ(element.asAtom()->kind(), SizeAtom::Kind::Element);
    for (const std::string &other : names) {
      EXPECT_EQ(symbol(name.c_str()) == symbol(other.c_str()), name == other) << name << " and " << other;
      EXPECT_NE(SizeExpr::element(name, 0), symbol(other.c_str()));
      EXPECT_NE(SizeExpr::unknown("0"), symbol(other.c_str()));
    }
  }
  EXPECT_EQ(symbol("shape[3]").str(), "`shape[3]`");
  EXPECT_EQ(SizeExpr::element("shape", 3).str(), "shape[3]");
  EXPECT_EQ(SizeExpr::element("my shape", 3).str(), "`my shape`[3]");
  EXPECT_EQ(SizeExpr::parse(SizeExpr::unknown("0_1").str()), SizeExpr::unknown("0_1"));
  EXPECT_EQ(canonical("unk__4/dim.0:1"), "unk__4/dim.0:1");
}

TEST(SizeExprTest, WrongTextsAreRefused) {
  for (const char *text : {"", "1 +", "batch seq", "(1", "1)", "foo(1)", "min(1)", "select(1, 2)", "`open", "x[1", "*2",
                           "99999999999999999999", "-"})
    EXPECT_FALSE(SizeExpr::parse(text)) << text;
  EXPECT_FALSE(SizeExpr::parse(std::string(1000, '(') + "1" + std::string(1000, ')')));
}

TEST(SizeExprTest, BindingsReplaceSymbols) {
  llvm::StringMap<SizeExpr> bindings;
  bindings["d0"] = symbol("batch") * symbol("seq");
  bindings["d1"] = 4;
  EXPECT_EQ(SizeExpr::parse("d0*d1 + d2", &bindings)->str(), "4*batch*seq + d2");
}

TEST(SizeExprTest, SymbolsAreListedOnce) {
  auto expr = SizeExpr::parse("min(b, a*a) + a*`odd name`");
  ASSERT_TRUE(expr);
  EXPECT_EQ(expr->symbols().size(), 3u);
  EXPECT_TRUE(expr->dependsOn("odd name"));
  EXPECT_FALSE(expr->dependsOn("c"));
}

TEST(SizeExprTest, DimensionsAreNotNegativeElementsMayBe) {
  EXPECT_TRUE((symbol("batch") * symbol("seq") + SizeExpr(1)).isKnownNonNegative());
  EXPECT_FALSE(SizeExpr::element("shape", 0).isKnownNonNegative());
  EXPECT_FALSE((symbol("batch") - SizeExpr(1)).isKnownNonNegative());
}

TEST(SizeExprTest, WhatWrappedHasAnySign) {
  SizeExpr n = symbol("n"), square = n * n;
  EXPECT_FALSE(SizeExpr::within(square, INT32_MIN, INT32_MAX).isKnownNonNegative());
  EXPECT_TRUE(SizeExpr::within(square, 0, 255).isKnownNonNegative());
  // A float rounds, which keeps the sign.
  EXPECT_TRUE(SizeExpr::within(square, -(1 << 24), 1 << 24).isKnownNonNegative());
  EXPECT_EQ(SizeExpr::lt(SizeExpr::within(square, INT32_MIN, INT32_MAX), 0).argumentsOf("lt").size(), 2u);
}

namespace {
/// An expression beside the function that computes it with plain integers.
struct Sample {
  SizeExpr expr;
  std::function<int64_t(const int64_t *)> value;
};

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Sample randomSample(std::mt19937 &random, int depth) {
  if (depth == 0 || random() % 5 == 0) {
    int choice = random() % 4;
    if (choice == 3) {
      int64_t constant = static_cast<int64_t>(random() % 9) - 2;
      return {constant, [constant](const int64_t *) { return constant; }};
    }
    static const char *names[] = {"a", "b", "c"};
    return {symbol(names[choice]), [choice](const int64_t *dims) { return dims[choice]; }};
  }
  Sample x = randomSample(random, depth - 1), y = randomSample(random, depth - 1);
  auto f = x.value, g = y.value;
  int64_t divisor = 1 + random() % 6;
  switch (random() % 12) {
  case 0: return {x.expr + y.expr, [=](const int64_t *d) { return f(d) + g(d); }};
  case 1: return {x.expr - y.expr, [=](const int64_t *d) { return f(d) - g(d); }};
  case 2: return {x.expr * y.expr, [=](const int64_t *d) { return f(d) * g(d); }};
  case 3: return {SizeExpr::floorDiv(x.expr, divisor), [=](const int64_t *d) { return floorDivide(f(d), divisor); }};
  case 4: return {SizeExpr::ceilDiv(x.expr, divisor), [=](const int64_t *d) { return -floorDivide(-f(d), divisor); }};
  case 5:
    return {SizeExpr::mod(x.expr, divisor),
            [=](const int64_t *d) { return f(d) - floorDivide(f(d), divisor) * divisor; }};
  case 6: return {SizeExpr::min(x.expr, y.expr), [=](const int64_t *d) { return std::min(f(d), g(d)); }};
  case 7: return {SizeExpr::max(x.expr, y.expr), [=](const int64_t *d) { return std::max(f(d), g(d)); }};
  case 8: return {SizeExpr::lt(x.expr, y.expr), [=](const int64_t *d) -> int64_t { return f(d) < g(d); }};
  case 9:
    return {SizeExpr::select(SizeExpr::lt(x.expr, y.expr), x.expr, y.expr),
            [=](const int64_t *d) { return std::min(f(d), g(d)); }};
  case 10:
    return {SizeExpr::select(SizeExpr::eq(x.expr, 1), y.expr, x.expr),
            [=](const int64_t *d) { return f(d) == 1 ? g(d) : f(d); }};
  default:
    return {SizeExpr::select(SizeExpr::eq(x.expr, y.expr), x.expr, y.expr),
            [=](const int64_t *d) { return f(d) == g(d) ? f(d) : g(d); }};
  }
}
} // namespace

TEST(SizeExprTest, RandomExpressionsMeanWhatTheySay) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    Sample sample = randomSample(random, 4);
    std::string text = sample.expr.str();
    auto parsed = SizeExpr::parse(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, sample.expr) << text << " became " << parsed->str();
    int64_t dims[3] = {static_cast<int64_t>(random() % 20), static_cast<int64_t>(random() % 20),
                       static_cast<int64_t>(random() % 20)};
    llvm::StringMap<SizeExpr> bindings;
    bindings["a"] = dims[0];
    bindings["b"] = dims[1];
    bindings["c"] = dims[2];
    auto bound = SizeExpr::parse(text, &bindings);
    ASSERT_TRUE(bound) << text;
    ASSERT_TRUE(bound->constant()) << text << " became " << bound->str();
    EXPECT_EQ(*bound->constant(), sample.value(dims)) << text;
  }
}

TEST(SizeExprTest, BriefTextsKeepBothEnds) {
  EXPECT_EQ((SizeExpr::symbol("a") + SizeExpr(1)).brief(), "a + 1");
  EXPECT_EQ(SizeExpr::symbol(std::string(80, 'a')).brief(), std::string(80, 'a'));
  std::string letters = std::string(48, 'a') + "bcd" + std::string(29, 'd') + "e";
  EXPECT_EQ(SizeExpr::symbol(letters).brief(), std::string(48, 'a') + "..." + std::string(28, 'd') + "e");
  SizeExpr sum;
  for (int i = 0; i < 40; ++i)
    sum = sum + SizeExpr::symbol("d" + std::to_string(i)) * SizeExpr(i + 2);
  std::string whole = sum.str(), brief = sum.brief();
  EXPECT_EQ(brief, whole.substr(0, 48) + "..." + whole.substr(whole.size() - 29));
  EXPECT_EQ(deepstride::brief({SizeExpr(3), sum}), "[3, " + brief + "]");
  // Characters of several bytes are kept or left out as a whole, wherever the cut falls.
  for (std::string name = "n"; name.size() < 8; name += "n") {
    std::string text = name;
    for (int i = 0; i < 60; ++i)
      text += "\xe2\x82\xac";
    std::string cut = SizeExpr::symbol(text).brief();
    EXPECT_LE(cut.size(), 80u);
    const auto *begin = reinterpret_cast<const llvm::UTF8 *>(cut.data());
    EXPECT_TRUE(llvm::isLegalUTF8String(&begin, begin + cut.size())) << cut;
  }
}
