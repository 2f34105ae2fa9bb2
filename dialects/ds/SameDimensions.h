// Dimensions of different names that are said to be one: exporters name those of each input apart.
#ifndef DEEPSTRIDE_DIALECTS_DS_SAMEDIMENSIONS_H
#define DEEPSTRIDE_DIALECTS_DS_SAMEDIMENSIONS_H

#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>
#include <vector>

namespace deepstride {

class SameDimensions {
public:
  /// From here on the two are one, with all that either is one with. The second name stands for them.
  void join(llvm::StringRef name, llvm::StringRef other);
  bool empty() const { return pairs.empty(); }
  /// What was joined, in the order in which it was said.
  const std::vector<std::pair<std::string, std::string>> &joined() const { return pairs; }
  /// The names that are one, sorted but for the last: the one that stands for them.
  std::vector<std::vector<std::string>> classes() const;

private:
  std::string standsFor(std::string name) const;

  std::vector<std::pair<std::string, std::string>> pairs;
  std::map<std::string, std::string> parents; // of names that another one stands for
};

} // namespace deepstride

#endif
