#include "tools/ds-run/launch/TextLines.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace ds {
namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";

} // namespace

std::string readHandWritten(const std::string &path) {
  constexpr size_t mostBytes = size_t(1) << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    fail(ErrorCode::Io, path, ": ", error ? error.message() : "expected a file");
  return readTextFile(path, mostBytes);
}

std::vector<TextLine> linesOf(std::string_view text, const std::string &file) {
  std::vector<TextLine> lines;
  size_t number = 0;
  for (std::string_view line : splitAt(text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    size_t start = line.find_first_not_of(blanks);
    if (start == std::string_view::npos || line[start] == '#')
      continue;
    lines.push_back({line.substr(start), concat(file, ":", number)});
  }
  return lines;
}

std::vector<std::string_view> splitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> wordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t start = text.find_first_not_of(blanks); start != std::string_view::npos;
       start = text.find_first_not_of(blanks)) {
    text.remove_prefix(start);
    size_t end = std::min(text.find_first_of(blanks), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::optional<unsigned> wholeNumber(std::string_view text, unsigned most) {
  unsigned value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool isNumber = !text.empty() && error == std::errc() && end == text.data() + text.size() && value <= most;
  return isNumber ? std::optional<unsigned>(value) : std::nullopt;
}

} // namespace ds
