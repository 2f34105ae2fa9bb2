// Small text files that people write by hand: read whole, line by line, with the place of each line for messages.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_TEXTLINES_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_TEXTLINES_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds {

// A regular file of at most 1 MiB. Throws Error(Io) or Error(BadFile) naming the path; a pipe would be waited for.
std::string readHandWritten(const std::string &path);

struct TextLine {
  std::string_view text; // without its end, and without blanks at its front
  std::string place;     // "FILE:3"
};

// All lines but those that are empty, blank or begin with '#'. They point into `text`.
std::vector<TextLine> linesOf(std::string_view text, const std::string &file);

// The parts between separators; "" has one, which is empty.
std::vector<std::string_view> splitAt(std::string_view text, char separator);
// The words between blanks.
std::vector<std::string_view> wordsOf(std::string_view text);

// Digits only, of at most `most`.
std::optional<unsigned> wholeNumber(std::string_view text, unsigned most);

} // namespace ds
#endif
