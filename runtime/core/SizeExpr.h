// Integer expressions over symbols (docs/package-format.md, "Size expressions"): parsed once into a flat program,
// evaluated with every overflow and division by zero diagnosed.
#ifndef DEEPSTRIDE_RUNTIME_CORE_SIZEEXPR_H
#define DEEPSTRIDE_RUNTIME_CORE_SIZEEXPR_H

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ds {

// Indices of symbols. Elements of inputs have a table of their own: a dimension may be named like one.
struct SymbolTable {
  std::unordered_map<std::string, uint32_t> named;               // dimensions and computed sizes
  std::map<std::pair<std::string, uint64_t>, uint32_t> elements; // input and place
};

class SizeExpr {
public:
  // Throws Error(BadPackage) naming the position, or the symbol that the table does not hold.
  static SizeExpr parse(const std::string &text, const SymbolTable &symbols);
  static SizeExpr constant(int64_t value);

  // The value for one value per symbol. Throws Error(ShapeMismatch) with the expression and the values it used.
  int64_t evaluate(const std::vector<int64_t> &values) const;

  const std::string &text() const { return source; }
  const std::vector<uint32_t> &symbols() const { return used; } // sorted, unique
  bool isConstant() const { return used.empty(); }
  // True when the expression is one symbol and nothing else.
  bool isSymbol(uint32_t &symbol) const;

private:
  friend class SizeExprParser;
  enum class Op : uint8_t {
    Constant,
    Symbol,
    Add,
    Sub,
    Mul,
    Neg,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
    Eq,
    Lt,
    JumpIfZero,
    Jump
  };
  struct Step {
    Op op;
    int64_t operand; // the constant, the symbol's index or the step to jump to
  };

  static const char *apply(Op op, int64_t a, int64_t b, int64_t &result);

  std::string source;
  std::vector<Step> program;
  std::vector<uint32_t> used;
  std::vector<std::string> usedNames;
};

} // namespace ds
#endif
