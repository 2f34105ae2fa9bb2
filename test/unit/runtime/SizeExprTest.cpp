#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/SizeExpr.h"

#include <gtest/gtest.h>
#include <limits>

using namespace ds;
using ds::test::errorOf;

namespace {

const SymbolTable table = {{{"batch", 0},
                            {"seq", 1},
                            {"a-b (c)", 3},
                            {"max", 4},
                            {"x.y:0/z", 5},
                            {"shape[0]", 6},
                            {"a`b", 7},
                            {"a'b", 8},
                            {"", 9}},
                           {{{"shape", 0}, 2}, {{"a`b", 12}, 10}}};
const std::vector<int64_t> values = {2, 7, 5, 11, 13, -3, 17, 19, 23, 29, 31};

int64_t evaluate(const std::string &text) { return SizeExpr::parse(text, table).evaluate(values); }

TEST(SizeExpr, EvaluatesTheGrammar) {
  EXPECT_EQ(evaluate("12"), 12);
  EXPECT_EQ(evaluate("batch*seq + 1"), 15);
  EXPECT_EQ(evaluate("1-2-3"), -4);
  EXPECT_EQ(evaluate("2*(seq-batch)*3"), 30);
  EXPECT_EQ(evaluate("-batch*-3"), 6);
  EXPECT_EQ(evaluate("--batch"), 2);
  EXPECT_EQ(evaluate("shape[0]*4"), 20);
  EXPECT_EQ(evaluate("`a-b (c)`+1"), 12);
  EXPECT_EQ(evaluate("`max`+max(1, 2)"), 15);
  EXPECT_EQ(evaluate("x.y:0/z"), -3);
  EXPECT_EQ(evaluate("`shape[0]`"), 17);
  EXPECT_EQ(evaluate("`shape`[0]"), 5);
  EXPECT_EQ(evaluate("`a``b`*100 + `a'b`"), 1923);
  EXPECT_EQ(evaluate("`a``b`[12] + ``"), 60);
  EXPECT_EQ(evaluate(" min( batch , seq ) "), 2);
  EXPECT_EQ(evaluate("eq(batch,2)+lt(seq,batch)"), 1);
}

TEST(SizeExpr, DividesTowardsMinusInfinity) {
  EXPECT_EQ(evaluate("floordiv(7,2)"), 3);
  EXPECT_EQ(evaluate("floordiv(-7,2)"), -4);
  EXPECT_EQ(evaluate("floordiv(7,-2)"), -4);
  EXPECT_EQ(evaluate("ceildiv(7,2)"), 4);
  EXPECT_EQ(evaluate("ceildiv(-7,2)"), -3);
  EXPECT_EQ(evaluate("ceildiv(-7,-2)"), 4);
  EXPECT_EQ(evaluate("mod(-7,3)"), 2);
  EXPECT_EQ(evaluate("mod(7,-3)"), -2);
  EXPECT_EQ(evaluate("mod(6,3)"), 0);
  EXPECT_EQ(evaluate("mod(batch,-1)"), 0);
  EXPECT_EQ(evaluate("floordiv(batch,-1)"), -2);
}

TEST(SizeExpr, SelectDoesNotEvaluateTheOtherBranch) {
  EXPECT_EQ(evaluate("select(eq(batch,2), seq, floordiv(1,0))"), 7);
  EXPECT_EQ(evaluate("select(batch-2, mod(1,0), 9) + 1"), 10);
  EXPECT_EQ(evaluate("select(1, select(0, 1, 2), 3)"), 2);
}

TEST(SizeExpr, DiagnosesArithmetic) {
  EXPECT_NE(errorOf([] { evaluate("9223372036854775807 + batch"); }).find("overflows"), std::string::npos);
  EXPECT_NE(errorOf([] { evaluate("-9223372036854775807 - batch"); }).find("batch=2"), std::string::npos);
  EXPECT_NE(errorOf([] { evaluate("4611686018427387904*batch"); }).find("overflows"), std::string::npos);
  EXPECT_NE(errorOf([] { evaluate("floordiv(seq, batch-2)"); }).find("divides by zero"), std::string::npos);
  EXPECT_NE(errorOf([] { evaluate("floordiv(-9223372036854775807-1, -1)"); }).find("overflows"), std::string::npos);
  EXPECT_NE(errorOf([] { evaluate("-(-9223372036854775807-1)"); }).find("overflows"), std::string::npos);
}

TEST(SizeExpr, DiagnosesSyntax) {
  for (const char *text : {"", "1+", "(1", "1)", "1 2", "foo", "foo(1,2)", "min(1)", "min(1,2,3)", "`batch", "shape[",
                           "shape[0", "shape[x]", "shape[1]", "*2", "9223372036854775808", "batch seq", "a,b", "\xff"})
    EXPECT_NE(errorOf([&] { evaluate(text); }), "") << text;
  EXPECT_NE(errorOf([] { evaluate("batch + foo"); }).find("unknown symbol 'foo'"), std::string::npos);
}

TEST(SizeExpr, LimitsNestingAndLength) {
  EXPECT_EQ(evaluate(std::string(90, '(') + "1" + std::string(90, ')')), 1);
  EXPECT_NE(errorOf([] { evaluate(std::string(5000, '(') + "1" + std::string(5000, ')')); }).find("nested"),
            std::string::npos);
  EXPECT_NE(errorOf([] { evaluate(std::string(100000, '-') + "1"); }).find("too long"), std::string::npos);
  std::string chain = "1";
  for (int i = 0; i < 10000; ++i)
    chain += "+1";
  EXPECT_EQ(evaluate(chain), 10001);
}

TEST(SizeExpr, KnowsItsSymbols) {
  SizeExpr expr = SizeExpr::parse("seq*batch+seq", table);
  EXPECT_EQ(expr.symbols(), (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(SizeExpr::parse("3*4", table).isConstant());
  uint32_t symbol = 9;
  EXPECT_TRUE(SizeExpr::parse("seq", table).isSymbol(symbol));
  EXPECT_EQ(symbol, 1u);
  EXPECT_FALSE(expr.isSymbol(symbol));
}

} // namespace
