// Text from files: is it UTF-8, and how is it shown in a message of one line.
#ifndef DEEPSTRIDE_RUNTIME_CORE_TEXT_H
#define DEEPSTRIDE_RUNTIME_CORE_TEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace ds {

// The length of the UTF-8 sequence at the start of a text, 0 where there is none: the shortest forms only, and no
// surrogates.
size_t utf8Length(std::string_view text);
bool isUtf8(std::string_view text);

// A name from a file as messages have it: control characters and invalid UTF-8 as \x0a, and not too long.
std::string escaped(std::string_view text);
std::string inQuotes(std::string_view text); // 'name'

// A whole message on one line, whatever names are in it: as above, and so are characters that end lines or turn their
// direction beyond ASCII. Every tool, the C API and Python put messages out through it.
std::string oneLine(std::string_view message);

} // namespace ds
#endif
