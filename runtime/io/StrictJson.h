// JSON from files that others may have written, read without benefit of the doubt: what two readers could understand
// differently is refused. JSON as of RFC 8259, and no name twice in an object, no nesting deeper than 64, no invalid
// UTF-8, no number that a double or 64-bit integer cannot have.
#ifndef DEEPSTRIDE_RUNTIME_IO_STRICTJSON_H
#define DEEPSTRIDE_RUNTIME_IO_STRICTJSON_H

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ds {

// Throws Error(BadFile): "3:14: expected ',' or '}', found 'x'", without the file's name. Columns count bytes from 1.
nlohmann::json parseStrictJson(std::string_view text);

// The other direction: what parseStrictJson reads as the same value. Throws Error(InvalidArgument) naming the place of
// a number that JSON lacks (NaN, infinity), of invalid UTF-8 or of nesting that is too deep.
std::string writeStrictJson(const nlohmann::json &value, int indent = -1);

} // namespace ds
#endif
