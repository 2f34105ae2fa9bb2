// A forest of names: each points at the one that stands for it, or at another on the way there.
#include "dialects/ds/SameDimensions.h"

namespace deepstride {

std::string SameDimensions::standsFor(std::string name) const {
  for (auto parent = parents.find(name); parent != parents.end(); parent = parents.find(name))
    name = parent->second;
  return name;
}

void SameDimensions::join(llvm::StringRef name, llvm::StringRef other) {
  pairs.emplace_back(name.str(), other.str());
  std::string from = standsFor(name.str()), to = standsFor(other.str());
  if (from != to) // else it follows from what was said before
    parents[from] = to;
}

std::vector<std::vector<std::string>> SameDimensions::classes() const {
  std::map<std::string, std::vector<std::string>> byRoot;
  for (const auto &[name, parent] : parents)
    byRoot[standsFor(name)].push_back(name);
  std::vector<std::vector<std::string>> result;
  for (auto &[root, names] : byRoot) {
    names.push_back(root);
    result.push_back(std::move(names));
  }
  return result;
}

} // namespace deepstride
