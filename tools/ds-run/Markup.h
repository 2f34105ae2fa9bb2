// Names of strangers in SVG and HTML.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_MARKUP_H
#define DEEPSTRIDE_TOOLS_DS_RUN_MARKUP_H

#include <string>

namespace ds {

/// Text as content of an element or of an attribute in double quotes, also where the page is read as XML: what XML
/// cannot hold (control characters, U+FFFE and U+FFFF) becomes a space. `text` is UTF-8.
std::string escapeMarkup(const std::string &text);

/// At most 44 bytes, cut between characters; the tooltip has all of it.
std::string shortenName(const std::string &text);

} // namespace ds
#endif
