#include "runtime/training/Ranks.h"

#include "runtime/core/Error.h"
#include "runtime/core/Text.h"

#include <algorithm>

namespace ds {
namespace {

class One : public Ranks {
public:
  unsigned rank() const override { return 0; }
  unsigned world() const override { return 1; }
  void gather(const std::string &, const void *own, size_t bytes, void *all) override {
    if (bytes != 0)
      std::memcpy(all, own, bytes);
  }
};

constexpr size_t shownBytes = 80;

std::string shown(const std::string &value) {
  return value.empty() ? "nothing" : value.size() > shownBytes ? value.substr(0, shownBytes) + "..." : value;
}

} // namespace

Ranks &Ranks::one() {
  static One ranks;
  return ranks;
}

std::vector<std::string> Ranks::gatherTexts(const std::string &what, const std::string &own) {
  std::vector<uint64_t> lengths = gatherValues<uint64_t>(what + ": lengths", {own.size()});
  size_t longest = static_cast<size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::string padded = own, all(longest * world(), '\0');
  padded.resize(longest);
  gather(what, padded.data(), longest, all.data());
  std::vector<std::string> texts;
  for (unsigned i = 0; i < world(); ++i)
    texts.push_back(all.substr(i * longest, static_cast<size_t>(lengths[i])));
  return texts;
}

void requireAgreement(Ranks &ranks, const std::vector<std::pair<std::string, std::string>> &facts) {
  std::string text;
  for (const auto &[name, value] : facts)
    text += name + '\0' + value + '\0';
  std::vector<std::string> all = ranks.gatherTexts("agreement", text);
  for (unsigned rank = 1; rank < ranks.world(); ++rank) {
    if (all[rank] == all[0])
      continue;
    // The first fact in which it differs. All ranks have the same list of names unless they are other programs.
    size_t at = 0, other = 0;
    auto next = [](const std::string &from, size_t &place) {
      size_t end = std::min(from.find('\0', place), from.size());
      std::string part = from.substr(std::min(place, from.size()), end - std::min(place, from.size()));
      place = end + 1;
      return part;
    };
    while (at < all[0].size() || other < all[rank].size()) {
      std::string name = next(all[0], at), own = next(all[0], at);
      std::string otherName = next(all[rank], other), value = next(all[rank], other);
      if (name != otherName || own != value)
        fail(ErrorCode::Collective, "ranks disagree: rank ", rank, " has ", otherName.empty() ? "" : otherName + " ",
             shown(value), ", rank 0 ", name == otherName || name.empty() ? "" : name + " ", shown(own));
    }
  }
}

} // namespace ds
