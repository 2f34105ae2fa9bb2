// Integer expressions over named symbols: the sizes of tensors whose shape is known only when a package runs.
// Kept in a canonical form (a polynomial over atoms), so that two expressions that are equal as polynomials compare
// equal; that comparison is the dimension-equality analysis. The text form is the one of docs/package-format.md.
#ifndef DEEPSTRIDE_DIALECTS_DS_SIZEEXPR_H
#define DEEPSTRIDE_DIALECTS_DS_SIZEEXPR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace deepstride {

class SizeExpr {
public:
  SizeExpr() = default; // zero
  SizeExpr(int64_t value);

  /// A symbol by its plain name; names that are no identifiers print in backticks.
  static SizeExpr symbol(llvm::StringRef name);

  /// Parses the text form; symbols found in `bindings` are replaced by those expressions. Nothing on a syntax error.
  static std::optional<SizeExpr> parse(llvm::StringRef text, const llvm::StringMap<SizeExpr> *bindings = nullptr);

  std::string str() const;
  /// The text for a person to read: at most 80 characters, of a longer one the beginning and the end.
  std::string brief() const;
  std::optional<int64_t> constant() const;
  bool isConstant(int64_t value) const { return constant() == value; }
  /// True where no assignment of non-negative dimensions makes the value negative (element symbols may be negative).
  bool isKnownNonNegative() const;
  /// True where some symbol is the element of a run-time input or computed by the code, not a dimension.
  bool dependsOn(llvm::StringRef symbolName) const;
  /// The plain names of all symbols, each once, in order of appearance.
  std::vector<std::string> symbols() const;

  bool operator==(const SizeExpr &other) const { return terms == other.terms; }
  bool operator!=(const SizeExpr &other) const { return terms != other.terms; }

  friend SizeExpr operator+(const SizeExpr &a, const SizeExpr &b);
  friend SizeExpr operator-(const SizeExpr &a, const SizeExpr &b);
  friend SizeExpr operator*(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr floorDiv(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr ceilDiv(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr mod(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr min(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr max(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr eq(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr lt(const SizeExpr &a, const SizeExpr &b);
  static SizeExpr select(const SizeExpr &condition, const SizeExpr &a, const SizeExpr &b);

  using Monomial = std::vector<std::string>; // atoms in printed form, sorted, repeated by power
  /// The canonical polynomial: coefficients by monomial, none of them zero.
  const std::map<Monomial, int64_t> &polynomial() const { return terms; }

private:
  std::map<Monomial, int64_t> terms; // no zero coefficients

  bool isKnownNonNegative(int substitutions) const;
  static SizeExpr atom(std::string text);
  static SizeExpr call(llvm::StringRef name, llvm::ArrayRef<SizeExpr> arguments);
  void addTerm(const Monomial &monomial, int64_t coefficient);
  std::optional<SizeExpr> cutLength() const;
  std::optional<SizeExpr> dividedBy(const SizeExpr &divisor) const;
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
