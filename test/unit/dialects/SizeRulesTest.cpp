// Rules of sizes on random expressions and values, 0 and 1 often among them: no simplification changes a value, also of
// what wraps, bounds hold, and broadcasts are NumPy's.
#include "dialects/ds/Inference.h"
#include "test/unit/dialects/SizeEvaluator.h"
#include "test/unit/support/Seed.h"

#include "mlir/IR/BuiltinOps.h"
#include "gtest/gtest.h"

#include <functional>
#include <random>

using namespace deepstride;
using deepstride::test::Number;
using deepstride::test::SizeEvaluator;

namespace {
using Bindings = std::map<std::string, int64_t>;
using Value = std::optional<Number>;

/// An expression beside what it means; nothing where it divides by zero or needs more than 128 bits.
struct Sample {
  SizeExpr expr;
  std::function<Value(const Bindings &)> value;
};

Number floorDivide(Number a, Number b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

class Generator {
public:
  /// `isWide` draws dimensions whose products wrap, and elements of integers that do.
  explicit Generator(unsigned seed, bool isWide = false) : random(seed), isWide(isWide) {}

  Sample sample(int depth) {
    if (depth == 0 || below(6) == 0)
      return leaf();
    Sample x = sample(depth - 1), y = sample(depth - 1);
    switch (below(isWide ? 18 : 14)) {
    case 0: return both(x, y, x.expr + y.expr, test::sumOf);
    case 1: return both(x, y, x.expr - y.expr, [](Number a, Number b) { return test::sumOf(a, -b); });
    case 2: return both(x, y, x.expr * y.expr, test::productOf);
    case 3: return divided(x, y, SizeExpr::floorDiv(x.expr, y.expr), floorDivide);
    case 4:
      return divided(x, y, SizeExpr::ceilDiv(x.expr, y.expr), [](Number a, Number b) { return -floorDivide(-a, b); });
    case 5:
      return divided(x, y, SizeExpr::mod(x.expr, y.expr), [](Number a, Number b) { return a - floorDivide(a, b) * b; });
    case 6: return both(x, y, SizeExpr::min(x.expr, y.expr), [](Number a, Number b) { return std::min(a, b); });
    case 7: return both(x, y, SizeExpr::max(x.expr, y.expr), [](Number a, Number b) { return std::max(a, b); });
    case 8: return both(x, y, SizeExpr::eq(x.expr, y.expr), [](Number a, Number b) -> Number { return a == b; });
    case 9: return both(x, y, SizeExpr::lt(x.expr, y.expr), [](Number a, Number b) -> Number { return a < b; });
    case 10:
      return chosen({SizeExpr::lt(x.expr, y.expr), [x, y](const Bindings &v) { return compare(x, y, v, true); }}, x, y);
    case 11: { // x broadcast with y
      Sample one{1, [](const Bindings &) { return Number(1); }};
      return chosen({SizeExpr::eq(x.expr, 1), [x, one](const Bindings &v) { return compare(x, one, v, false); }}, y, x);
    }
    case 12: { // rows of a table from v to v + u
      Sample n = leaf(), u = leaf(), v = leaf();
      SizeExpr cut = SizeExpr::min(n.expr, u.expr + v.expr) - SizeExpr::min(n.expr, v.expr);
      auto value = [n, u, v](const Bindings &s) -> Value {
        Number rows = *n.value(s), count = *u.value(s), from = *v.value(s);
        return std::max<Number>(0, std::min(rows, from + count) - std::min(rows, from));
      };
      return {SizeExpr::max(cut, 0), value};
    }
    case 13: return chosen(sample(depth - 1), x, y);
    default: { // an element: at most what its type holds
      unsigned bits = 8u << below(4);
      int64_t low = -(int64_t(1) << (bits - 2)) * 2, high = -(low + 1);
      return {SizeExpr::within(x.expr, low, high), [g = x.value, low, high](const Bindings &v) -> Value {
                Value a = g(v);
                return a ? Value(test::wrapped(*a, low, high)) : a;
              }};
    }
    }
  }

  Bindings values() {
    // A product of two dimensions is below 2^56.
    auto dimension = [&]() -> int64_t {
      return isWide && below(2) ? (int64_t(1) << (20 + below(8))) + below(1u << 20) : below(3) ? below(3) : below(50);
    };
    return {{"a", dimension()},
            {"b", dimension()},
            {"c", dimension()},
            {"e[0]", static_cast<int64_t>(below(9)) - 4},
            {"f[1]", static_cast<int64_t>(below(200)) - 100}};
  }
  unsigned below(unsigned count) { return random() % count; }
  Sample leaf() {
    static const char *names[] = {"a", "b", "c"};
    unsigned choice = below(8);
    if (choice < 3)
      return {SizeExpr::symbol(names[choice]), [choice](const Bindings &v) { return Number(v.at(names[choice])); }};
    if (choice == 3)
      return {SizeExpr::element("e", 0), [](const Bindings &v) { return Number(v.at("e[0]")); }};
    if (choice == 4)
      return {SizeExpr::element("f", 1, 32), [](const Bindings &v) { return Number(v.at("f[1]")); }};
    int64_t number = below(2) ? below(3) : static_cast<int64_t>(below(14)) - 3;
    return {number, [number](const Bindings &) { return Number(number); }};
  }

private:
  template <typename F> static Sample both(const Sample &x, const Sample &y, SizeExpr expr, F f) {
    return {std::move(expr), [f, g = x.value, h = y.value](const Bindings &v) -> Value {
              Value a = g(v), b = h(v);
              return a && b ? Value(f(*a, *b)) : Value();
            }};
  }
  template <typename F> static Sample divided(const Sample &x, const Sample &y, SizeExpr expr, F f) {
    return {std::move(expr), [f, g = x.value, h = y.value](const Bindings &v) -> Value {
              Value a = g(v), b = h(v);
              return a && b && *b != 0 ? Value(f(*a, *b)) : Value();
            }};
  }
  static Value compare(const Sample &x, const Sample &y, const Bindings &v, bool isLess) {
    Value a = x.value(v), b = y.value(v);
    return a && b ? Value(isLess ? *a < *b : *a == *b) : Value();
  }
  static Sample chosen(const Sample &condition, const Sample &x, const Sample &y) {
    return {SizeExpr::select(condition.expr, x.expr, y.expr),
            [c = condition.value, g = x.value, h = y.value](const Bindings &v) -> Value {
              Value met = c(v);
              return met ? *met ? g(v) : h(v) : met;
            }};
  }
  std::mt19937 random;
  bool isWide;
};

Value evaluate(const SizeExpr &expr, const Bindings &values) { return SizeEvaluator(expr.str(), values).run(); }
} // namespace

namespace {
std::string named(unsigned seed) { return "seed " + std::to_string(seed); }

/// Whether a range holds a value; bounds that are far outside of 64 bits stand for any beyond them.
bool holds(const SizeRange &range, Number value) {
  constexpr Number far = Number(1) << 119;
  return (value >= range.low || range.low < -far) && (value <= range.high || range.high > far);
}
} // namespace

TEST(SizeRulesTest, NoSimplificationChangesAValue) {
  unsigned seed = randomSeed();
  SCOPED_TRACE(named(seed));
  Generator generator(seed);
  for (int round = 0; round < 4000; ++round) {
    Sample sample = generator.sample(4);
    if (sample.expr.str().size() > 3000)
      continue;
    auto parsed = SizeExpr::parse(sample.expr.str());
    ASSERT_TRUE(parsed) << sample.expr.str();
    EXPECT_EQ(*parsed, sample.expr) << sample.expr.str() << " became " << parsed->str();
    bool isNonNegative = sample.expr.isKnownNonNegative();
    SizeRange range = sample.expr.range();
    for (int draw = 0; draw < 12; ++draw) {
      Bindings values = generator.values();
      Value expected = sample.value(values);
      if (!expected) // divides by zero: a value that does not matter may have been left out
        continue;
      Value found = evaluate(sample.expr, values);
      ASSERT_TRUE(found) << sample.expr.str() << " fails where its value is " << int64_t(*expected);
      ASSERT_EQ(int64_t(*found), int64_t(*expected)) << sample.expr.str();
      EXPECT_TRUE(!isNonNegative || *found >= 0) << sample.expr.str() << " is " << int64_t(*found);
      EXPECT_TRUE(holds(range, *found)) << sample.expr.str() << " is " << int64_t(*found);
    }
  }
}

// What wraps is another number than what it was made of: nothing that is known of that may be told of it.
TEST(SizeRulesTest, NoSimplificationChangesWhatWrapped) {
  unsigned seed = randomSeed(), wrapping = 0;
  SCOPED_TRACE(named(seed));
  Generator generator(seed, /*isWide=*/true);
  for (int round = 0; round < 6000; ++round) {
    Sample sample = generator.sample(4);
    std::string text = sample.expr.str();
    if (text.size() > 3000)
      continue;
    bool isNonNegative = sample.expr.isKnownNonNegative();
    SizeRange range = sample.expr.range();
    for (int draw = 0; draw < 12; ++draw) {
      Bindings values = generator.values();
      Value expected = sample.value(values);
      SizeEvaluator evaluator(text, values, /*wraps=*/true);
      Value found = evaluator.run();
      if (!expected || evaluator.isTooLarge())
        continue;
      wrapping += text.find("within(") != std::string::npos;
      ASSERT_TRUE(found) << text;
      ASSERT_TRUE(*found == *expected) << text << " is " << int64_t(*found) << ", not " << int64_t(*expected);
      EXPECT_TRUE(!isNonNegative || *found >= 0) << text << " is " << int64_t(*found);
      EXPECT_TRUE(holds(range, *found)) << text << " is " << int64_t(*found);
    }
  }
  EXPECT_GT(wrapping, 1000u);
}

TEST(SizeRulesTest, WhatCannotFailDoesNot) {
  unsigned seed = randomSeed();
  SCOPED_TRACE(named(seed));
  Generator generator(seed);
  for (int round = 0; round < 2000; ++round) {
    SizeExpr expr = generator.sample(3).expr;
    for (int draw = 0; draw < 10 && !expr.mayFail(); ++draw)
      EXPECT_TRUE(evaluate(expr, generator.values())) << expr.str();
  }
}

TEST(SizeRulesTest, ReplacedCallsMeanTheSame) {
  unsigned seed = randomSeed();
  SCOPED_TRACE(named(seed));
  Generator generator(seed);
  auto mirrored = [](llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments) -> std::optional<SizeExpr> {
    if (function != "min")
      return std::nullopt;
    return SizeExpr(0) - SizeExpr::max(SizeExpr(0) - arguments[0], SizeExpr(0) - arguments[1]);
  };
  for (int round = 0; round < 1000; ++round) {
    SizeExpr expr = generator.sample(3).expr, other = expr.replacingCalls(mirrored);
    for (int draw = 0; draw < 5; ++draw) {
      Bindings values = generator.values();
      Value before = evaluate(expr, values), after = evaluate(other, values);
      if (before && after)
        EXPECT_EQ(int64_t(*before), int64_t(*after)) << expr.str() << " became " << other.str();
    }
  }
}

namespace {
bool holds(const SizeConstraint &constraint, const Bindings &values) {
  Value lhs = evaluate(constraint.lhs, values), rhs = evaluate(constraint.rhs, values);
  if (!lhs || !rhs)
    return false;
  switch (constraint.relation) {
  case SizeConstraint::Relation::Equal: return *lhs == *rhs;
  case SizeConstraint::Relation::Broadcast: return *lhs == *rhs || *lhs == 1 || *rhs == 1;
  case SizeConstraint::Relation::AtLeast: return *lhs >= *rhs;
  }
  return false;
}
} // namespace

// A broadcast of a and b is legal where a == b, a == 1 or b == 1, and gives the other one: 0 beside 1 gives 0. The only
// legal case that is refused is a table that ends before its first row is cut: 0 rows beside 1.
TEST(SizeRulesTest, BroadcastsAreNumPys) {
  mlir::MLIRContext context;
  auto module = mlir::OwningOpRef<mlir::ModuleOp>(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
  unsigned seed = randomSeed();
  SCOPED_TRACE(named(seed));
  Generator generator(seed);
  unsigned legalCases = 0, guarded = 0;
  for (int round = 0; round < 6000; ++round) {
    SizeExpr a = generator.sample(2).expr, b = generator.below(2) ? generator.sample(2).expr : generator.leaf().expr;
    if (generator.below(2)) // one derived from the other
      a = SizeExpr::min(a, generator.below(2) ? b : SizeExpr::min(b, generator.leaf().expr));
    if (generator.below(2))
      std::swap(a, b);
    Inference inference(module->getOperation(), {}, /*quiet=*/true);
    auto result = inference.broadcast(SizeVector{a}, SizeVector{b});
    for (int draw = 0; draw < 20; ++draw) {
      Bindings values = generator.values();
      Value left = evaluate(a, values), right = evaluate(b, values);
      if (!left || !right || *left < 0 || *right < 0)
        continue;
      bool isLegal = *left == *right || *left == 1 || *right == 1, accepted = result.has_value(), isGuarded = false;
      for (const SizeConstraint &constraint : inference.constraints) {
        isGuarded |= constraint.relation == SizeConstraint::Relation::AtLeast;
        accepted &= holds(constraint, values);
      }
      if (isGuarded && isLegal && !accepted) {
        EXPECT_EQ(int64_t(*left + *right), 1) << a.str() << " and " << b.str();
        ++guarded;
        continue;
      }
      ASSERT_EQ(accepted, isLegal) << a.str() << " = " << int64_t(*left) << " and " << b.str() << " = "
                                   << int64_t(*right);
      if (!isLegal)
        continue;
      ++legalCases;
      Value found = evaluate(result->front(), values);
      ASSERT_TRUE(found) << result->front().str();
      EXPECT_EQ(int64_t(*found), int64_t(*left == 1 ? *right : *left))
          << a.str() << " and " << b.str() << " give " << result->front().str();
    }
  }
  EXPECT_GT(legalCases, 1000u);
  EXPECT_LT(guarded, legalCases / 10);
}

TEST(SizeRulesTest, TheSmallerOfTwoIsNotTheLarger) {
  mlir::MLIRContext context;
  auto module = mlir::OwningOpRef<mlir::ModuleOp>(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
  auto broadcast = [&](const char *a, const char *b) {
    Inference inference(module->getOperation(), {}, /*quiet=*/true);
    std::string result =
        (*inference.broadcast(SizeVector{*SizeExpr::parse(a)}, SizeVector{*SizeExpr::parse(b)}))[0].str();
    return result + "; " + std::to_string(inference.constraints.size());
  };
  // A text inside of the other's text is no part of it.
  EXPECT_EQ(broadcast("seq", "min(512, max(5, seq))"), "min(512, max(5, seq)); 1");
  EXPECT_EQ(broadcast("min(512, floordiv(seq, 2))", "seq"), "select(eq(1, seq), min(512, floordiv(seq, 2)), seq); 1");
  EXPECT_EQ(broadcast("min(512, seq)", "seq"), "seq; 1");
  EXPECT_EQ(broadcast("seq", "min(1, seq)"), "seq; 1");
  EXPECT_EQ(broadcast("min(n, seq)", "seq"), "select(eq(1, seq), min(n, seq), seq); 1");
  EXPECT_EQ(broadcast("min(max(512 - past, 0), seq)", "seq"), "seq; 2");
}
