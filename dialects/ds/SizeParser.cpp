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

  static std::vector<std::string> symbolsIn(llvm::StringRef text) {
    SizeParser parser(text, nullptr);
    parser.parseSum();
    return std::move(parser.seen);
  }

private:
  static constexpr int depthLimit = 64;
  llvm::StringRef rest;
  const llvm::StringMap<SizeExpr> *bindings;
  std::vector<std::string> seen;
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
      size_t end = rest.find('`');
      if (end == llvm::StringRef::npos)
        return std::nullopt;
      llvm::StringRef name = rest.take_front(end);
      rest = rest.drop_front(end + 1);
      return lookUp(name);
    }
    size_t length = 0;
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == ':' || c == '/'; };
    while (length < rest.size() && isWord(rest[length]))
      ++length;
    if (length == 0)
      return std::nullopt;
    llvm::StringRef name = rest.take_front(length);
    if (rest.drop_front(length).starts_with("[")) {
      size_t end = rest.find(']', length);
      if (end == llvm::StringRef::npos)
        return std::nullopt;
      name = rest.take_front(end + 1);
    }
    rest = rest.drop_front(name.size());
    return take('(') ? parseCall(name) : lookUp(name);
  }

  std::optional<SizeExpr> lookUp(llvm::StringRef name) {
    if (!llvm::is_contained(seen, name))
      seen.push_back(name.str());
    if (bindings)
      if (auto found = bindings->find(name); found != bindings->end())
        return found->second;
    return SizeExpr::symbol(name);
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
    if (function == "select" && arguments.size() == 3)
      return SizeExpr::select(arguments[0], arguments[1], arguments[2]);
    if (arguments.size() != 2)
      return std::nullopt;
    using Binary = SizeExpr (*)(const SizeExpr &, const SizeExpr &);
    Binary build = llvm::StringSwitch<Binary>(function)
                       .Case("floordiv", &SizeExpr::floorDiv)
                       .Case("ceildiv", &SizeExpr::ceilDiv)
                       .Case("mod", &SizeExpr::mod)
                       .Case("min", &SizeExpr::min)
                       .Case("max", &SizeExpr::max)
                       .Case("eq", &SizeExpr::eq)
                       .Case("lt", &SizeExpr::lt)
                       .Default(nullptr);
    return build ? std::optional<SizeExpr>(build(arguments[0], arguments[1])) : std::nullopt;
  }
};

std::optional<SizeExpr> SizeExpr::parse(llvm::StringRef text, const llvm::StringMap<SizeExpr> *bindings) {
  return SizeParser(text, bindings).parseAll();
}

std::vector<std::string> SizeExpr::symbols() const { return SizeParser::symbolsIn(str()); }

bool SizeExpr::dependsOn(llvm::StringRef symbolName) const { return llvm::is_contained(symbols(), symbolName); }

} // namespace deepstride
