#include "passes/NamePattern.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using llvm::StringRef;

namespace deepstride {

namespace {
/// How many characters, sets, anchors and parentheses an expression has once its repetitions are written out.
class PatternSize {
public:
  explicit PatternSize(StringRef expression) : rest(expression) {}

  uint64_t count() {
    while (!rest.empty())
      take();
    while (!outer.empty())
      close();
    return total;
  }

private:
  static constexpr uint64_t most = 1 << 20; // what is counted: two of them multiply within 64 bits

  void atom(uint64_t size) {
    last = std::min(size, most);
    total = std::min(total + last, most);
  }
  void close() {
    uint64_t inner = total;
    total = outer.pop_back_val();
    atom(inner + 2);
  }
  void take() {
    char c = rest.front();
    rest = rest.drop_front();
    if (c == '(') {
      outer.push_back(total);
      total = last = 0;
    } else if (c == ')' && !outer.empty()) {
      close();
    } else if (c == '{' && !rest.empty() && llvm::isDigit(rest.front())) {
      repeat();
    } else if (!StringRef("*+?|").contains(c)) {
      if (c == '\\')
        rest = rest.drop_front(rest.empty() ? 0 : 1);
      if (c == '[')
        skipSet();
      atom(1);
    }
  }
  /// `m}`, `m,}` or `m,n}`, where the last atom is there already.
  void repeat() {
    uint64_t least = 0, count = 0;
    if (rest.consumeInteger(10, least)) // beyond 64 bits
      least = most;
    count = least;
    if (rest.consume_front(",") && rest.consumeInteger(10, count))
      count = least + 1;
    rest.consume_front("}");
    count = std::min(std::max(count, least), most);
    total = std::min(total - last + last * count, most);
    last = std::min(last * count, most);
  }
  /// The rest of a set, whose first character may be `]`, and which may hold classes as `[:digit:]`.
  void skipSet() {
    rest.consume_front("^");
    rest.consume_front("]");
    while (!rest.empty() && !rest.consume_front("]")) {
      StringRef kind = rest.take_front(2);
      size_t length = 1;
      if (kind == "[:" || kind == "[." || kind == "[=")
        if (size_t end = rest.find(std::string{kind[1], ']'}, 2); end != StringRef::npos)
          length = end + 2;
      rest = rest.drop_front(length);
    }
  }

  StringRef rest;
  llvm::SmallVector<uint64_t> outer; // of groups that are open: what came before them
  uint64_t total = 0, last = 0;      // of the group, of its last atom
};
} // namespace

std::string reasonAgainstPattern(StringRef expression) {
  constexpr uint64_t most = 10000;
  uint64_t size = PatternSize(expression).count();
  if (size > most)
    return "with its repetitions written out it has more than " + std::to_string(most) + " characters";
  std::string reason;
  llvm::Regex(expression).isValid(reason);
  return reason;
}

} // namespace deepstride
