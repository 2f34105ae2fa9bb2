#include "tools/commandline/Nearest.h"

#include <algorithm>

namespace ds::commandline {

unsigned editDistance(const std::string &a, const std::string &b) {
  // Rows of the table of distances between beginnings: the one before the last, the last, and this one.
  std::vector<unsigned> older, last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    last[j] = static_cast<unsigned>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<unsigned>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], older[j - 2] + 1);
    }
    older = last;
    last = now;
  }
  return last[b.size()];
}

std::string nearest(const std::string &word, const std::vector<std::string> &legal) {
  constexpr size_t shortWord = 4, longest = 64; // no name of ours is longer
  unsigned least = word.size() <= shortWord ? 2 : 3;
  std::string found;
  if (word.empty() || word.size() > longest)
    return found;
  for (const std::string &candidate : legal)
    // A word of which nothing is left was not meant.
    if (unsigned distance = editDistance(word, candidate); distance < least && distance < candidate.size()) {
      least = distance;
      found = candidate;
    }
  return found;
}

std::string didYouMean(const std::string &word, const std::vector<std::string> &legal) {
  std::string found = nearest(word, legal);
  return found.empty() ? "" : ", did you mean '" + found + "'?";
}

} // namespace ds::commandline
