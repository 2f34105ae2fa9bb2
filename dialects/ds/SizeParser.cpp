// Recursive descent over the size grammar of docs/package-format.md, with a nesting limit so that no text can exhaust
// the stack.
#include "dialects/ds/SizeExpr.h"

#include "llvm/ADT/StringExtras.h"

namespace deepstride {

class SizeParser {
public:
  SizeParser(llvm::StringRef text, const llvm::StringMap<SizeExpr> *bindings) : rest(text), bindings(bindings) {}

  std::optional<SizeExpr> parseAll() {
    auto result = parseSum();
    skipSpace();
    return rest.empty() ? result : std::nullopt;
  }

private:
  static constexpr int depthLimit = 100;
  llvm::StringRef rest;
  const llvm::StringMap<SizeExpr> *bindings;
  int depth = 0;

  void skipSpace() { rest = rest.ltrim(); }
  bool take(char c) {
    skipSpace();
    return rest.consume_front(llvm::StringRef(&c, 1));
  }

  std::optional<SizeExpr> parseSum() {
    if (++depth > depthLimit)
      return std::nullopt;
    auto sum = parseProduct();
    while (sum) {
      bool plus = take('+');
      if (!plus && !take('-'))
        break;
      auto term = parseProduct();
      if (!term)
        return std::nullopt;
      sum = plus ? *sum + *term : *sum - *term;
    }
    --depth;
    return sum;
  }

  std::optional<SizeExpr> parseProduct() {
    auto result = parseFactor();
    while (result && take('*')) {
      auto factor = parseFactor();
      if (!factor)
        return std::nullopt;
      result = *result * *factor;
    }
    return result;
  }

  std::optional<SizeExpr> parseFactor() {
    bool negative = false;
    while (take('-'))
      negative = !negative;
    auto result = parsePrimary();
    return result && negative ? SizeExpr(0) - *result : result;
  }

  std::optional<SizeExpr> parsePrimary() {
    skipSpace();
    if (rest.empty())
      return std::nullopt;
    if (llvm::isDigit(rest[0])) {
      int64_t value;
      if (rest.consumeInteger(10, value))
        return std::nullopt;
      return SizeExpr(value);
    }
    if (take('(')) {
      auto inner = parseSum();
      return inner && take(')') ? inner : std::nullopt;
    }
    if (take('`')) {
      auto name = parseQuoted();
      return name ? parseElement(*name) : std::nullopt;
    }
    bool isUnknown = rest.consume_front("?");
    llvm::StringRef name =
        rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == ':' || c == '/'; });
    if (name.empty())
      return std::nullopt;
    rest = rest.drop_front(name.size());
    if (isUnknown)
      return SizeExpr::unknown(name);
    return take('(') ? parseCall(name) : parseElement(name);
  }

  /// Behind the opening backtick; two of them are one of the name.
  std::optional<std::string> parseQuoted() {
    std::string name;
    while (true) {
      size_t end = rest.find('`');
      if (end == llvm::StringRef::npos)
        return std::nullopt;
      name += rest.take_front(end);
      rest = rest.drop_front(end + 1);
      if (!rest.consume_front("`"))
        return name;
      name += '`';
    }
  }

  /// A symbol, or with an index behind it an element of the input of that name.
  std::optional<SizeExpr> parseElement(llvm::StringRef name) {
    if (!rest.consume_front("[")) {
      if (bindings)
        if (auto found = bindings->find(name); found != bindings->end())
          return found->second;
      return SizeExpr::symbol(name);
    }
    int64_t index;
    if (rest.empty() || !llvm::isDigit(rest[0]) || rest.consumeInteger(10, index) || !rest.consume_front("]"))
      return std::nullopt;
    return SizeExpr::element(name, index);
  }

  std::optional<SizeExpr> parseCall(llvm::StringRef function) {
    llvm::SmallVector<SizeExpr, 3> arguments;
    do {
      auto argument = parseSum();
      if (!argument)
        return std::nullopt;
      arguments.push_back(*argument);
    } while (take(','));
    if (!take(')'))
      return std::nullopt;
    static constexpr llvm::StringLiteral functions[] = {"floordiv", "ceildiv", "mod", "min",
                                                        "max",      "eq",      "lt",  "select"};
    if (!llvm::is_contained(functions, function) || arguments.size() != (function == "select" ? 3 : 2))
      return std::nullopt;
    return SizeExpr::build(function, arguments);
  }
};

std::optional<SizeExpr> SizeExpr::parse(llvm::StringRef text, const llvm::StringMap<SizeExpr> *bindings) {
  return SizeParser(text, bindings).parseAll();
}

} // namespace deepstride
