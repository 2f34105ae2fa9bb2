#include "tools/ds-run/Markup.h"

namespace ds {

std::string escapeMarkup(const std::string &text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    switch (c) {
    case '&': result += "&amp;"; break;
    case '<': result += "&lt;"; break;
    case '>': result += "&gt;"; break;
    case '"': result += "&quot;"; break;
    default:
      if (text.compare(i, 3, "\xEF\xBF\xBE") == 0 || text.compare(i, 3, "\xEF\xBF\xBF") == 0) {
        result += ' ';
        i += 2;
      } else {
        result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
      }
    }
  }
  return result;
}

std::string shortenName(const std::string &text) {
  constexpr size_t most = 44;
  if (text.size() <= most)
    return text;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end) + "...";
}

} // namespace ds
