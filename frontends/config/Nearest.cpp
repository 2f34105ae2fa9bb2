// Which key somebody meant who wrote one that does not exist.
#include "frontends/config/Keys.h"

#include <algorithm>
#include <limits>

namespace ds::config {

// Letters that are inserted, left out, replaced or exchanged with their neighbour; `most` + 1 stands for more.
static size_t distance(std::string_view a, std::string_view b, size_t most) {
  size_t difference = a.size() < b.size() ? b.size() - a.size() : a.size() - b.size();
  if (difference > most)
    return most + 1;
  // Rows of the table of distances of all prefixes: the present one and the two before.
  std::vector<size_t> row(b.size() + 1), before(b.size() + 1), beforeThat(b.size() + 1);
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        row[j] = i + j;
        continue;
      }
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], beforeThat[j - 2] + 1);
    }
    std::swap(beforeThat, before);
    std::swap(before, row);
  }
  return std::min(before[b.size()], most + 1);
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
    size_t most = std::max<size_t>(1, wanted.size() / 3);
    size_t letters = std::min(distance(wanted, plain(last), most), distance(whole, plain(key.path), most));
    if (letters > most)
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
