// JSON that users may have written: llvm::json recurses, and brackets without end would end the stack.
#ifndef DEEPSTRIDE_TOOLS_DSOPT_JSON_H
#define DEEPSTRIDE_TOOLS_DSOPT_JSON_H

#include "llvm/Support/JSON.h"

namespace deepstride {

/// llvm::json::parse, but an error where arrays and objects lie deeper than any of ours.
inline llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text) {
  constexpr int deepest = 64;
  int depth = 0;
  bool isString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isString && c == '\\')
      ++i;
    else if (c == '"')
      isString = !isString;
    else if (!isString && (c == '[' || c == '{') && ++depth > deepest)
      return llvm::createStringError("arrays and objects more than 64 deep");
    else if (!isString && (c == ']' || c == '}'))
      --depth;
  }
  return llvm::json::parse(text);
}

} // namespace deepstride

#endif
