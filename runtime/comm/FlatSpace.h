// Where the elements of a request lie: owners' parts of flat spaces as sequences, and tensors in a space.
#ifndef DEEPSTRIDE_RUNTIME_COMM_FLATSPACE_H
#define DEEPSTRIDE_RUNTIME_COMM_FLATSPACE_H

#include "runtime/comm/Communicator.h"

#include <algorithm>

namespace ds {

// What one rank owns of all parts of a request, as one sequence of elements in the order of the parts.
class OwnedSequence {
public:
  OwnedSequence(const std::vector<CollectivePart> &parts, unsigned owner);

  int64_t count() const { return starts.back(); }

  // The pieces of [first, first + length), each in one part: visit(part, begin, end, where it starts in the range).
  template <typename Visit> void visit(int64_t first, int64_t length, Visit action) const {
    size_t part = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), first) - starts.begin()) - 1;
    for (int64_t done = 0; done < length; ++part) {
      int64_t skipped = first + done - starts[part];
      int64_t taken = std::min(length - done, starts[part + 1] - starts[part] - skipped);
      if (taken > 0)
        action(part, begins[part] + skipped, begins[part] + skipped + taken, done);
      done += taken;
    }
  }

private:
  std::vector<int64_t> starts; // in the sequence, by part, and the end
  std::vector<int64_t> begins; // in the space
};

// The tensors that meet [begin, end): visit(address of the first element, where it lies from begin, elements).
template <typename Visit>
void visitSegments(const CollectivePart &part, ElementType type, int64_t begin, int64_t end, Visit action) {
  auto startsAfter = [](int64_t position, const Segment &segment) { return position < segment.offset; };
  auto segment = std::upper_bound(part.whole.begin(), part.whole.end(), begin, startsAfter);
  if (segment != part.whole.begin())
    --segment;
  for (; segment != part.whole.end() && segment->offset < end; ++segment) {
    int64_t from = std::max(begin, segment->offset), to = std::min(end, segment->offset + segment->count);
    if (from < to)
      action(static_cast<uint8_t *>(segment->data) + static_cast<size_t>(from - segment->offset) * typeSize(type),
             from - begin, to - from);
  }
}

// Elements [begin, end) of a part's space from its tensors, zeros between them, as what travels; and back.
void readWhole(const CollectivePart &part, ElementType type, ElementType wire, int64_t begin, int64_t end,
               uint8_t *message);
void writeWhole(const CollectivePart &part, ElementType type, ElementType wire, int64_t begin, int64_t end,
                const uint8_t *message);
// Elements [begin, end), of the type in memory, into the tensors, where they do not lie there already.
void copyToWhole(const CollectivePart &part, ElementType type, int64_t begin, int64_t end, const uint8_t *source);

// Why a request makes no sense; empty where it does.
std::string faultOf(const CollectiveRequest &request, unsigned world);

} // namespace ds
#endif
