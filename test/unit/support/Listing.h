// What a folder holds, for tests.
#ifndef DEEPSTRIDE_TEST_UNIT_SUPPORT_LISTING_H
#define DEEPSTRIDE_TEST_UNIT_SUPPORT_LISTING_H

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace ds::test {

// Names of files and folders, sorted.
inline std::vector<std::string> listingOf(const std::filesystem::path &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace ds::test
#endif
