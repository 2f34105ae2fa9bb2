// What ranks say on standard error, told once: lines that several of them write are written for the first one only, and
// a line of an error says which ranks it is of, unless all have it.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKLINES_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RANKLINES_H

#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ds {

class RankLines {
public:
  explicit RankLines(size_t ranks) : ranks(ranks) {}

  // What to write for a line of a rank, both with their "\n": nothing for an error, which waits for other ranks to have
  // it too, and for what was written already. Each rank may say a line as often as it likes.
  std::string add(unsigned rank, const std::string &line);

  // The errors that wait, but for those of ranks that only tell of another rank's.
  std::string flush();
  bool isWaiting() const { return !waiting.empty(); }

  bool hasError(unsigned rank) const { return failed.count(rank) > 0; }

private:
  struct Count {
    size_t written = 0;
    std::unordered_map<unsigned, size_t> ofRank;
  };

  size_t ranks;
  std::unordered_map<std::string, Count> counts;
  std::vector<std::pair<std::string, std::set<unsigned>>> waiting; // errors, without their prefix
  std::set<std::string> told;                                      // errors that were flushed
  std::set<unsigned> failed;
};

} // namespace ds
#endif
