// An evaluator of size texts that shares nothing with the compiler's: what simplification gave is judged by it.
#ifndef DEEPSTRIDE_TEST_UNIT_DIALECTS_SIZEEVALUATOR_H
#define DEEPSTRIDE_TEST_UNIT_DIALECTS_SIZEEVALUATOR_H

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace deepstride::test {

using Number = __int128;

/// What an integer of the interval from `low` to `high` holds instead of x.
inline Number wrapped(Number x, Number low, Number high) {
  Number span = high - low + 1, place = (x % span - low % span) % span;
  return low + (place < 0 ? place + span : place);
}

inline std::optional<Number> sumOf(Number x, Number y) {
  Number result;
  return __builtin_add_overflow(x, y, &result) ? std::optional<Number>() : result;
}
inline std::optional<Number> productOf(Number x, Number y) {
  Number result;
  return __builtin_mul_overflow(x, y, &result) ? std::optional<Number>() : result;
}

/// Nothing where a division by zero, a number of more than 128 bits, or a value outside of what `within` states is met;
/// the last wraps, if asked to.
class SizeEvaluator {
public:
  SizeEvaluator(std::string text, const std::map<std::string, int64_t> &values, bool wraps = false)
      : text(std::move(text)), values(values), wraps(wraps) {}

  std::optional<Number> run() {
    auto result = sum();
    skip();
    if (at != text.size())
      throw std::runtime_error("unexpected text in " + text);
    return result;
  }
  /// Whether some number had more than 128 bits.
  bool isTooLarge() const { return overflows; }

private:
  using Value = std::optional<Number>;
  std::string text;
  const std::map<std::string, int64_t> &values;
  bool wraps, overflows = false;
  size_t at = 0;

  void skip() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool take(char c) {
    skip();
    bool isNext = at < text.size() && text[at] == c;
    at += isNext;
    return isNext;
  }
  template <typename F> Value both(Value a, Value b, F f) {
    Value result = a && b ? f(*a, *b) : Value();
    overflows |= a && b && !result;
    return result;
  }

  Value sum() {
    Value result = product();
    while (true) {
      if (take('+'))
        result = both(result, product(), sumOf);
      else if (take('-'))
        result = both(result, product(), [](Number a, Number b) { return sumOf(a, -b); });
      else
        return result;
    }
  }
  Value product() {
    Value result = factor();
    while (take('*'))
      result = both(result, factor(), productOf);
    return result;
  }
  Value factor() {
    if (take('-')) {
      Value value = factor();
      return value ? Value(-*value) : value;
    }
    if (take('(')) {
      Value inner = sum();
      if (!take(')'))
        throw std::runtime_error("expected ) in " + text);
      return inner;
    }
    skip();
    if (std::isdigit(static_cast<unsigned char>(text.at(at)))) {
      Number value = 0;
      for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at)
        value = value * 10 + (text[at] - '0');
      return value;
    }
    size_t begin = at;
    if (text[at] == '`') {
      for (++at; text.at(at) != '`' || (at + 1 < text.size() && text[at + 1] == '`'); ++at)
        at += text[at] == '`';
      ++at;
    } else {
      while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
        ++at;
    }
    std::string name = text.substr(begin, at - begin);
    if (take('('))
      return call(name);
    if (at < text.size() && text[at] == '[') {
      begin = at;
      at = text.find(']', at) + 1;
      name += text.substr(begin, at - begin);
    }
    return values.at(name);
  }

  static Number floorDivide(Number a, Number b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

  Value call(const std::string &name) {
    std::vector<Value> a;
    do
      a.push_back(sum());
    while (take(','));
    if (!take(')'))
      throw std::runtime_error("expected ) in " + text);
    if (name == "select") // the branch that is not taken may fail
      return a[0] ? *a[0] ? a[1] : a[2] : a[0];
    if (std::find(a.begin(), a.end(), Value()) != a.end())
      return {};
    Number x = *a[0], y = *a[1];
    if (name == "within")
      return x >= y && x <= *a.at(2) ? Value(x) : wraps ? Value(wrapped(x, y, *a.at(2))) : Value();
    if (name == "min")
      return std::min(x, y);
    if (name == "max")
      return std::max(x, y);
    if (name == "eq")
      return Number(x == y);
    if (name == "lt")
      return Number(x < y);
    if (y == 0)
      return {};
    if (name == "floordiv")
      return floorDivide(x, y);
    if (name == "ceildiv")
      return -floorDivide(-x, y);
    if (name == "mod")
      return x - floorDivide(x, y) * y;
    throw std::runtime_error("unknown function " + name);
  }
};

} // namespace deepstride::test

#endif
