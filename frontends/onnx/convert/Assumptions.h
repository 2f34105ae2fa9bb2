// What is assumed of sizes and small inputs while one outcome of a model's branches is converted, and what follows from
// that for other conditions: n > 8 says that n > 4, and an input that is 16000 is not 8000.
#ifndef DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_ASSUMPTIONS_H
#define DEEPSTRIDE_FRONTENDS_ONNX_CONVERT_ASSUMPTIONS_H

#include "dialects/ds/SizeExpr.h"

#include "llvm/ADT/SmallVector.h"

#include <set>

namespace deepstride::onnx {

class Assumptions {
public:
  struct Item {
    SizeExpr condition; // 0 or 1 in every call
    bool holds;
  };

  /// Assumes the condition, or that it does not hold. Assumptions that contradict each other are the caller's mistake:
  /// ask `implied` first.
  void add(const SizeExpr &condition, bool holds);
  /// The values that a size, such as a symbol, can have at all.
  void bound(const SizeExpr &size, int64_t low, int64_t high);
  /// What follows for a condition; nothing where both are possible as far as we can tell.
  std::optional<bool> implied(const SizeExpr &condition) const;
  /// The one value that a symbol or an element can have; nothing for other sizes.
  std::optional<int64_t> valueOf(const SizeExpr &symbol) const;

  llvm::ArrayRef<Item> list() const { return items; }
  bool empty() const { return items.empty(); }

private:
  struct Range {
    int64_t low = INT64_MIN, high = INT64_MAX;
    std::set<int64_t> excluded;
  };
  /// sign * sum + constant: a polynomial without its constant, of a sign that the first term decides, so that n - 4 and
  /// 7 - n are found to be about the same.
  struct Form {
    SizeExpr sum;
    int64_t constant, sign;
  };

  static std::optional<Form> formOf(const SizeExpr &difference);
  Range &rangeOf(const SizeExpr &sum);
  std::optional<Range> rangeOfDifference(const SizeExpr &difference) const;
  void learn(const SizeExpr &condition, bool holds);
  void learn(const SizeAtom &atom, bool holds);
  void restrict(const SizeExpr &difference, int64_t low, int64_t high);
  void exclude(const SizeExpr &difference);
  void settle(const SizeExpr &sum, Range &range);
  std::optional<bool> follow(const SizeExpr &condition) const;
  std::optional<bool> follow(const SizeAtom &atom) const;

  llvm::SmallVector<Item> items;
  llvm::StringMap<Range> ranges;      // by the sum's text
  std::map<SizeAtom, int64_t> values; // of symbols and elements that can have one value only
};

/// "eq(n, 1) holds and lt(4, m) does not hold"
std::string describe(llvm::ArrayRef<Assumptions::Item> items);

} // namespace deepstride::onnx

#endif
