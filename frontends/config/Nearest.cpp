// Which key somebody meant who wrote one that does not exist.
#include "frontends/config/Keys.h"

#include <algorithm>
#include <limits>

namespace ds::config {

// Letters that are inserted, left out, replaced or exchanged with their neighbour.
static size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

// Case and hyphens are no difference worth a letter.
static std::string plain(std::string_view text) {
  std::string result(text);
  for (char &c : result)
    c = c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

std::string nearestKey(const std::string &section, const std::string &name, std::string_view kind) {
  if (name.size() > 60)
    return "";
  std::string wanted = plain(name), whole = plain(section.empty() ? name : section + "." + name);
  size_t least = std::numeric_limits<size_t>::max();
  const KeySpec *best = nullptr;
  for (const KeySpec &key : keys()) {
    std::string_view last = key.path.substr(key.path.rfind('.') + 1);
    std::string_view home = key.path.substr(0, key.path.size() - last.size() - (last.size() < key.path.size()));
    size_t letters = std::min(distance(wanted, plain(last)), distance(whole, plain(key.path)));
    if (letters > std::max<size_t>(1, wanted.size() / 3))
      continue;
    // Of equally near names one of the same section is likelier, then one that the optimizer has, then one that acts.
    size_t cost =
        8 * letters + 4 * (home != section) + 2 * !key.isOf(kind) + (key.use != KeyUse::Applies) + (letters > 0);
    if (cost < least) {
      least = cost;
      best = &key;
    }
  }
  return best ? std::string(best->path) : "";
}

} // namespace ds::config
