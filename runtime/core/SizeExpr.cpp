#include "runtime/core/SizeExpr.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>

namespace ds {

// Recursive descent that emits postfix code. select is compiled to jumps, so that the branch that is not taken may
// divide by zero.
class SizeExprParser {
public:
  SizeExprParser(const std::string &text, const SymbolTable &symbols) : text(text), symbols(symbols) {
    expr.source = text;
  }

  SizeExpr run() {
    if (text.size() > maxLength)
      error("expression is too long");
    parseExpr();
    skipSpace();
    if (at != text.size())
      error("unexpected text");
    for (const auto &[index, name] : names) {
      expr.used.push_back(index);
      expr.usedNames.push_back(name);
    }
    return std::move(expr);
  }

private:
  using Op = SizeExpr::Op;
  static constexpr size_t maxLength = size_t(1) << 16;
  static constexpr unsigned maxNesting = 100;

  [[noreturn]] void error(const std::string &what) const {
    std::string shown = text.size() > 120 ? text.substr(0, 117) + "..." : text;
    fail(ErrorCode::BadPackage, "size expression '", shown, "': ", what, " at character ", at + 1);
  }

  void skipSpace() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }

  bool take(char c) {
    skipSpace();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  void expect(char c) {
    if (!take(c))
      error(std::string("expected '") + c + "'");
  }

  size_t emit(Op op, int64_t operand = 0) {
    expr.program.push_back({op, operand});
    return expr.program.size() - 1;
  }

  void parseExpr() {
    if (++nesting > maxNesting)
      error("nested deeper than 100");
    parseTerm();
    while (true) {
      if (take('+')) {
        parseTerm();
        emit(Op::Add);
      } else if (take('-')) {
        parseTerm();
        emit(Op::Sub);
      } else {
        break;
      }
    }
    --nesting;
  }

  void parseTerm() {
    parseFactor();
    while (take('*')) {
      parseFactor();
      emit(Op::Mul);
    }
  }

  void parseFactor() {
    unsigned negations = 0;
    while (take('-'))
      ++negations;
    skipSpace();
    if (at >= text.size())
      error("expected a value");
    if (std::isdigit(static_cast<unsigned char>(text[at]))) {
      emit(Op::Constant, parseInteger());
    } else if (take('(')) {
      parseExpr();
      expect(')');
    } else if (text[at] == '`') {
      emitSymbol(parseQuoted());
    } else {
      parseName();
    }
    if (negations % 2)
      emit(Op::Neg);
  }

  // A backtick of the name is written twice.
  std::string parseQuoted() {
    std::string name;
    while (true) {
      size_t end = text.find('`', at + 1);
      if (end == std::string::npos)
        error("backtick without its partner");
      name += text.substr(at + 1, end - at - 1);
      at = end + 1;
      if (at >= text.size() || text[at] != '`')
        return name;
      name += '`';
    }
  }

  int64_t parseInteger() {
    int64_t value = 0;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at)
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(text[at] - '0'), &value))
        error("integer does not fit 64 bits");
    return value;
  }

  void parseName() {
    auto isStart = [](unsigned char c) { return std::isalpha(c) || c == '_'; };
    auto isRest = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == ':' || c == '/'; };
    size_t begin = at;
    if (!isStart(text[at]))
      error("expected a value");
    while (at < text.size() && isRest(text[at]))
      ++at;
    size_t end = at;
    if (take('(')) {
      --at;
      return parseFunction(text.substr(begin, end - begin));
    }
    at = end;
    emitSymbol(text.substr(begin, end - begin));
  }

  // A symbol of that name, or with an index behind it an element of the input of that name.
  void emitSymbol(const std::string &name) {
    if (at >= text.size() || text[at] != '[') {
      auto found = symbols.named.find(name);
      return emitSymbol(name, found == symbols.named.end() ? nullptr : &found->second);
    }
    ++at;
    if (at >= text.size() || !std::isdigit(static_cast<unsigned char>(text[at])))
      error("expected an index");
    auto index = static_cast<uint64_t>(parseInteger());
    expect(']');
    auto found = symbols.elements.find({name, index});
    emitSymbol(name + "[" + std::to_string(index) + "]", found == symbols.elements.end() ? nullptr : &found->second);
  }

  void emitSymbol(const std::string &name, const uint32_t *index) {
    if (!index)
      error("unknown symbol '" + name + "'");
    names.emplace(*index, name);
    emit(Op::Symbol, *index);
  }

  void parseFunction(const std::string &name) {
    static const std::map<std::string, Op> binary = {
        {"floordiv", Op::FloorDiv}, {"ceildiv", Op::CeilDiv}, {"mod", Op::Mod}, {"min", Op::Min},
        {"max", Op::Max},           {"eq", Op::Eq},           {"lt", Op::Lt}};
    if (name == "select") {
      expect('(');
      parseExpr();
      size_t toElse = emit(Op::JumpIfZero);
      expect(',');
      parseExpr();
      size_t toEnd = emit(Op::Jump);
      expr.program[toElse].operand = static_cast<int64_t>(expr.program.size());
      expect(',');
      parseExpr();
      expr.program[toEnd].operand = static_cast<int64_t>(expr.program.size());
      expect(')');
      return;
    }
    auto found = binary.find(name);
    if (found == binary.end())
      error("unknown function '" + name + "'");
    expect('(');
    parseExpr();
    expect(',');
    parseExpr();
    expect(')');
    emit(found->second);
  }

  const std::string &text;
  const SymbolTable &symbols;
  SizeExpr expr;
  std::map<uint32_t, std::string> names;
  size_t at = 0;
  unsigned nesting = 0;
};

SizeExpr SizeExpr::parse(const std::string &text, const SymbolTable &symbols) {
  return SizeExprParser(text, symbols).run();
}

SizeExpr SizeExpr::constant(int64_t value) {
  SizeExpr expr;
  expr.source = std::to_string(value);
  expr.program.push_back({Op::Constant, value});
  return expr;
}

bool SizeExpr::isSymbol(uint32_t &symbol) const {
  if (program.size() != 1 || program[0].op != Op::Symbol)
    return false;
  symbol = static_cast<uint32_t>(program[0].operand);
  return true;
}

// Null, or what went wrong.
const char *SizeExpr::apply(Op op, int64_t a, int64_t b, int64_t &result) {
  const char *overflow = "overflows 64 bits";
  switch (op) {
  case Op::Add: return __builtin_add_overflow(a, b, &result) ? overflow : nullptr;
  case Op::Sub: return __builtin_sub_overflow(a, b, &result) ? overflow : nullptr;
  case Op::Mul: return __builtin_mul_overflow(a, b, &result) ? overflow : nullptr;
  case Op::Min: result = std::min(a, b); return nullptr;
  case Op::Max: result = std::max(a, b); return nullptr;
  case Op::Eq: result = a == b; return nullptr;
  case Op::Lt: result = a < b; return nullptr;
  default: break;
  }
  if (b == 0)
    return "divides by zero";
  if (b == -1) // INT64_MIN / -1 is the one quotient that does not fit
    return op == Op::Mod ? (result = 0, nullptr) : __builtin_sub_overflow(int64_t(0), a, &result) ? overflow : nullptr;
  int64_t quotient = a / b, remainder = a % b;
  bool differentSigns = (remainder < 0) != (b < 0);
  if (op == Op::Mod)
    result = remainder != 0 && differentSigns ? remainder + b : remainder;
  else if (op == Op::FloorDiv)
    result = quotient - (remainder != 0 && differentSigns);
  else
    result = quotient + (remainder != 0 && !differentSigns);
  return nullptr;
}

int64_t SizeExpr::evaluate(const std::vector<int64_t> &values) const {
  constexpr size_t inlineStack = 32;
  int64_t small[inlineStack];
  std::vector<int64_t> large;
  int64_t *stack = small;
  if (program.size() > inlineStack) {
    large.resize(program.size());
    stack = large.data();
  }
  size_t top = 0;
  auto explain = [&](const char *what) {
    std::string where = concat("size expression '", source, "' ", what);
    for (size_t i = 0; i < used.size(); ++i)
      where += concat(i ? ", " : " for ", usedNames[i], "=", values[used[i]]);
    fail(ErrorCode::ShapeMismatch, where);
  };
  for (size_t pc = 0; pc < program.size(); ++pc) {
    const Step &step = program[pc];
    switch (step.op) {
    case Op::Constant: stack[top++] = step.operand; break;
    case Op::Symbol: stack[top++] = values[static_cast<size_t>(step.operand)]; break;
    case Op::Neg:
      if (__builtin_sub_overflow(int64_t(0), stack[top - 1], &stack[top - 1]))
        explain("overflows 64 bits");
      break;
    case Op::JumpIfZero:
      if (stack[--top] == 0)
        pc = static_cast<size_t>(step.operand) - 1;
      break;
    case Op::Jump: pc = static_cast<size_t>(step.operand) - 1; break;
    default: {
      int64_t result = 0;
      --top;
      if (const char *problem = apply(step.op, stack[top - 1], stack[top], result))
        explain(problem);
      stack[top - 1] = result;
    }
    }
  }
  return stack[0];
}

} // namespace ds
