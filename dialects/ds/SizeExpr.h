// Integer expressions over named symbols: the sizes of tensors whose shape is known only when a package runs.
// Kept in a canonical form (a polynomial over atoms), so that two expressions that are equal as polynomials compare
// equal; that comparison is the dimension-equality analysis. The text form is the one of docs/package-format.md.
#ifndef DEEPSTRIDE_DIALECTS_DS_SIZEEXPR_H
#define DEEPSTRIDE_DIALECTS_DS_SIZEEXPR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deepstride {

class SizeExpr;

/// Bounds of a value, both inclusive. They saturate far outside of 64 bits.
struct SizeRange {
  __extension__ using Wide = __int128;
  Wide low, high;
};

/// What sizes are made of: a symbol, or a function of sizes. Immutable; copies share it.
class SizeAtom {
public:
  enum class Kind {
    Symbol,  // a dimension, or a number that the program computes (ds.define): never negative
    Element, // of an integer input: may be negative
    Unknown, // a size that only a type knows to be dynamic
    Call,
  };
  /// Forms a call without simplifying it; SizeExpr's functions do.
  static SizeAtom call(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments);

  Kind kind() const;
  /// The plain name of a symbol, of an element's input, or of a function.
  llvm::StringRef name() const;
  /// Which element of its input.
  int64_t index() const;
  llvm::ArrayRef<SizeExpr> arguments() const;
  /// The canonical text: equal atoms have equal texts, and different ones different texts.
  llvm::StringRef text() const;

  bool operator==(const SizeAtom &other) const { return node == other.node || text() == other.text(); }
  bool operator!=(const SizeAtom &other) const { return !(*this == other); }
  bool operator<(const SizeAtom &other) const { return node != other.node && text() < other.text(); }

private:
  friend class SizeExpr;
  struct Node;
  explicit SizeAtom(Node node);
  static SizeAtom symbol(Kind kind, llvm::StringRef name, int64_t index, SizeRange range);
  std::shared_ptr<const Node> node;
};

class SizeExpr {
public:
  /// The largest dimension that the runtime binds.
  static constexpr int64_t largestDimension = int64_t(1) << 40;
  /// Symbols of such names are sizes of a mesh of ranks, 1 to `largestMesh`, and with ".index" a rank's place in it.
  static constexpr llvm::StringLiteral meshPrefix = "mesh.";
  static constexpr int64_t largestMesh = 1 << 20;

  SizeExpr() = default; // zero
  SizeExpr(int64_t value);

  /// A symbol by its plain name, which may be any text; names that are no identifiers print in backticks.
  static SizeExpr symbol(llvm::StringRef name);
  /// An element of the run-time input of that name, by its place; `bits` is the width of the input's integers.
  static SizeExpr element(llvm::StringRef input, int64_t index, unsigned bits = 64);
  /// A size of which nothing is known; no symbol has its name.
  static SizeExpr unknown(llvm::StringRef name);

  /// Parses the text form; symbols found in `bindings` are replaced by those expressions. Nothing on a syntax error.
  static std::optional<SizeExpr> parse(llvm::StringRef text, const llvm::StringMap<SizeExpr> *bindings = nullptr);

  std::string str() const;
  /// The text for a person to read: at most 80 characters, of a longer one the beginning and the end.
  std::string brief() const;
  std::optional<int64_t> constant() const;
  bool isConstant(int64_t value) const { return constant() == value; }
  /// True where no assignment of non-negative dimensions makes the value negative (elements of inputs may be negative).
  bool isKnownNonNegative() const;
  /// Bounds of the value, where no dimension exceeds `largestDimension` and no product of two 2^56.
  SizeRange range() const;
  /// True where the value depends on elements of inputs.
  bool isOverElements() const;
  /// True where evaluation may be refused: by a division by zero, or by a bound that `within` states.
  bool mayFail() const;
  /// True where some symbol has that name.
  bool dependsOn(llvm::StringRef symbolName) const;
  /// All symbols, elements and unknown sizes, each once, in order of appearance.
  std::vector<SizeAtom> symbols() const;

  /// The atom, where the expression is one atom and nothing else; valid as long as the expression.
  const SizeAtom *asAtom() const;
  /// True where the value is the minimum of `whole` and of sizes that are at least `least`.
  bool isMinimumOf(const SizeExpr &whole, int64_t least) const;
  /// How deep calls are nested; 0 where there are none.
  unsigned depth() const;
  /// The arguments, where the expression is one call of that function; empty for anything else.
  llvm::ArrayRef<SizeExpr> argumentsOf(llvm::StringRef function) const;
  /// The expression with calls replaced, inner ones first: `replace` gets the function and its arguments and gives the
  /// replacement, or nothing to keep the call.
  using Replace = llvm::function_ref<std::optional<SizeExpr>(llvm::StringRef, llvm::ArrayRef<SizeExpr>)>;
  SizeExpr replacingCalls(Replace replace) const;

  bool operator==(const SizeExpr &other) const { return terms == other.terms; }
  bool operator!=(const SizeExpr &other) const { return !(terms == other.terms); }

  // Sums and products whose coefficients do not fit 64 bits stay unsimplified: evaluating them diagnoses the overflow.
  friend SizeExpr operator+(const SizeExpr &a, const SizeExpr &b);
  friend SizeExpr operator-(const SizeExpr &a, const SizeExpr &b);
  friend SizeExpr operator*(const SizeExpr &a, const SizeExpr &b);
  /// The same, or nothing where the result could not be simplified.
  static std::optional<SizeExpr> exactSum(const SizeExpr &a, const SizeExpr &b, int64_t factor = 1); // a + factor*b
  static std::optional<SizeExpr> exactProduct(const SizeExpr &a, const SizeExpr &b);

  static SizeExpr floorDiv(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr ceilDiv(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr mod(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr min(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr max(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr eq(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr lt(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr select(const SizeExpr &condition, const SizeExpr &a, const SizeExpr &b);
  /// The value, which must not be below `low` or above `high`. Where it is, the element wrapped: a `within` is some
  /// number from `low` to `high`, and what is known of `value` says nothing of it. Not for programs, and not parsed:
  /// what a size relies on there is a constraint.
  static SizeExpr within(const SizeExpr &value, int64_t low, int64_t high);
  /// The same, kept where the value is known to be inside: for one that is right only for sizes.
  static SizeExpr assumed(const SizeExpr &value, int64_t low, int64_t high);
  /// a / b as a polynomial, if it is one; where b is 0 it says nothing.
  static std::optional<SizeExpr> exactQuotient(const SizeExpr &a, const SizeExpr &b);

  using Monomial = std::vector<SizeAtom>; // sorted, repeated by power
  /// The canonical polynomial: coefficients by monomial, none of them zero.
  const std::map<Monomial, int64_t> &polynomial() const { return terms; }

private:
  std::map<Monomial, int64_t> terms; // no zero coefficients

  SizeExpr(SizeAtom atom) { terms[{std::move(atom)}] = 1; }
  bool isKnownNonNegative(int substitutions) const;
  static SizeExpr call(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments);
  static SizeExpr build(llvm::StringRef function, llvm::ArrayRef<SizeExpr> arguments);
  static SizeExpr unsimplified(const SizeExpr &size);
  bool addTerm(const Monomial &monomial, int64_t coefficient);
  std::optional<SizeExpr> cutLength() const;
  friend class SizeAtom;
  friend class SizeParser;
};

using SizeVector = std::vector<SizeExpr>;

/// "[a, b]" with the brief text of each size.
std::string brief(llvm::ArrayRef<SizeExpr> sizes);

/// The product of all sizes; 1 for none.
SizeExpr product(llvm::ArrayRef<SizeExpr> sizes);

/// Size lists in attributes: 64-bit integers for constants, strings for everything else.
mlir::Attribute toAttribute(mlir::MLIRContext *context, const SizeExpr &size);
mlir::ArrayAttr toAttribute(mlir::MLIRContext *context, llvm::ArrayRef<SizeExpr> sizes);
std::optional<SizeExpr> sizeFromAttribute(mlir::Attribute attribute);
std::optional<SizeVector> sizesFromAttribute(mlir::ArrayAttr attribute);

} // namespace deepstride

#endif
