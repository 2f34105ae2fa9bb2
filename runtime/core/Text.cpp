#include "runtime/core/Text.h"

namespace ds {

size_t utf8Length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  unsigned char first = byte(0);
  if (first < 0x80)
    return 1;
  if (first >= 0xC2 && first <= 0xDF)
    return follows(1) ? 2 : 0;
  if ((first & 0xF0) == 0xE0) {
    bool isLong = first == 0xE0 && byte(1) < 0xA0, isSurrogate = first == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !isLong && !isSurrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    bool isLong = first == 0xF0 && byte(1) < 0x90, isBeyond = first == 0xF4 && byte(1) > 0x8F;
    return follows(1) && follows(2) && follows(3) && !isLong && !isBeyond ? 4 : 0;
  }
  return 0;
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = utf8Length(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

static void appendByte(std::string &result, char byte) {
  const char *digits = "0123456789abcdef";
  auto c = static_cast<unsigned char>(byte);
  (result += "\\x") += {digits[c >> 4], digits[c & 15]};
}

std::string escaped(std::string_view text) {
  constexpr size_t shown = 200;
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (at > shown)
      return result + "...";
    size_t length = utf8Length(text.substr(at));
    unsigned char c = static_cast<unsigned char>(text[at]);
    if (length == 0 || c < 0x20 || c == 0x7F) {
      appendByte(result, text[at++]);
      continue;
    }
    result.append(text, at, length);
    at += length;
  }
  return result;
}

// U+0080 to U+009F, U+2028 to U+202E and U+2066 to U+2069: controls, ends of lines and paragraphs, and directions.
static bool isControl(std::string_view character) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  switch (character.size()) {
  case 1: return byte(0) < 0x20 || byte(0) == 0x7F;
  case 2: return byte(0) == 0xC2 && byte(1) < 0xA0;
  case 3:
    return byte(0) == 0xE2 && ((byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||
                               (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9));
  default: return false;
  }
}

std::string oneLine(std::string_view message) {
  std::string result;
  for (size_t at = 0; at < message.size();) {
    size_t length = utf8Length(message.substr(at));
    std::string_view character = message.substr(at, length ? length : 1);
    if (length == 0 || isControl(character))
      for (char byte : character)
        appendByte(result, byte);
    else
      result += character;
    at += character.size();
  }
  return result;
}

std::string inQuotes(std::string_view text) { return "'" + escaped(text) + "'"; }

} // namespace ds
