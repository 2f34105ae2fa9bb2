// Options whose values are a few words.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_CHOICES_H
#define DEEPSTRIDE_TOOLS_DS_RUN_CHOICES_H

#include "tools/commandline/Nearest.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace ds {

// Checks the option's value; help and completion name the words, too.
inline CLI::Option *oneOf(CLI::Option *option, const std::vector<std::string> &legal) {
  std::string shown, listed;
  for (size_t i = 0; i < legal.size(); ++i) {
    shown += (i ? "|" : "") + legal[i];
    listed += (i == 0 ? "" : i + 1 == legal.size() ? " or " : ", ") + legal[i];
  }
  return option->type_name(shown)->check([legal, listed](const std::string &text) {
    return std::count(legal.begin(), legal.end(), text)
               ? std::string()
               : "expected " + listed + ", found '" + text + "'" + commandline::didYouMean(text, legal);
  });
}

} // namespace ds
#endif
