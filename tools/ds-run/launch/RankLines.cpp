#include "tools/ds-run/launch/RankLines.h"

#include "runtime/core/Error.h"

#include <algorithm>

namespace ds {
namespace {

const std::string prefix = "ds-run: error: ";

// Whether an error ends with another one: a rank tells why a rank failed that it waited for, as that rank does itself.
bool endsWith(const std::string &line, const std::string &other) {
  const std::string tail = ": " + other;
  return line.size() >= tail.size() && line.compare(line.size() - tail.size(), tail.size(), tail) == 0;
}

std::string labelled(const std::string &line, const std::set<unsigned> &of, size_t ranks) {
  if (of.size() == ranks)
    return prefix + line;
  constexpr size_t shown = 8;
  std::string names;
  for (unsigned rank : of)
    if (static_cast<size_t>(std::distance(of.begin(), of.find(rank))) < shown)
      names += concat(names.empty() ? "" : ", ", rank);
  if (of.size() > shown)
    names += concat(" and ", of.size() - shown, " more");
  return concat(prefix, of.size() == 1 ? "rank " : "ranks ", names, ": ", line);
}

} // namespace

std::string RankLines::add(unsigned rank, const std::string &line) {
  if (line.rfind(prefix, 0) == 0) {
    failed.insert(rank);
    std::string text = line.substr(prefix.size());
    if (std::string own = concat("rank ", rank, ": "); ranks > 1 && text.rfind(own, 0) == 0)
      text.erase(0, own.size()); // it is told below, of all ranks that say the same
    if (told.count(text))
      return "";
    auto known = std::find_if(waiting.begin(), waiting.end(), [&](const auto &entry) { return entry.first == text; });
    if (known == waiting.end())
      known = waiting.insert(waiting.end(), {text, {}});
    known->second.insert(rank);
    return known->second.size() == ranks ? flush() : "";
  }
  constexpr size_t mostLines = 4096; // of different ones that are remembered
  if (counts.size() >= mostLines)
    counts.clear();
  Count &count = counts[line];
  if (++count.ofRank[rank] <= count.written)
    return "";
  ++count.written;
  return line;
}

std::string RankLines::flush() {
  for (const auto &entry : waiting)
    told.insert(entry.first);
  std::string text;
  for (const auto &[line, of] : waiting) {
    const std::string &whole = line;
    bool isConsequence =
        std::any_of(told.begin(), told.end(), [&](const std::string &other) { return endsWith(whole, other); });
    if (!isConsequence)
      text += labelled(line, of, ranks);
  }
  waiting.clear();
  return text;
}

} // namespace ds
