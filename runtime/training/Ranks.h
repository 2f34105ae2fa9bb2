// What the loop of training needs from other data-parallel ranks: small messages, in rank order, alike on all of them.
// Collectives of gradients and parameters are the package's own.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_RANKS_H
#define DEEPSTRIDE_RUNTIME_TRAINING_RANKS_H

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ds {

class Ranks {
public:
  virtual ~Ranks() = default;
  virtual unsigned rank() const = 0;
  virtual unsigned world() const = 0;
  // Bytes of every rank, one after the other, into `all`. Every rank calls it with the same `what`, for messages, and
  // the same number of bytes. Throws Error(Collective) naming a rank that does not.
  virtual void gather(const std::string &what, const void *own, size_t bytes, void *all) = 0;
  // The step that runs, for messages.
  virtual void setStep(int64_t step) { (void)step; }

  bool isFirst() const { return rank() == 0; }
  // Values of every rank: rank r's begin at r times their number.
  template <typename T> std::vector<T> gatherValues(const std::string &what, const std::vector<T> &own) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);
    std::vector<T> all(own.size() * world());
    gather(what, own.data(), own.size() * sizeof(T), all.data());
    return all;
  }
  // Texts of any lengths.
  std::vector<std::string> gatherTexts(const std::string &what, const std::string &own);

  // A world of one.
  static Ranks &one();
};

// What a rank of a run begins with: ("package", digest), ("seed", "7") and so on. Throws the same Error everywhere
// where they are not the same: "ranks disagree: rank 1 has package a1…, rank 0 …".
void requireAgreement(Ranks &ranks, const std::vector<std::pair<std::string, std::string>> &facts);

} // namespace ds
#endif
