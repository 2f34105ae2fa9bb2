// A random collective with its memory on one rank, and what must be there afterwards, worked out element by element.
// Shares no code with what it judges but the types of a request.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_RANDOMCOLLECTIVE_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_RANDOMCOLLECTIVE_H

#include "runtime/comm/Communicator.h"

#include <random>

namespace ds::test {

// One element: every value of the types in question fits.
using Value = long double;

struct RandomPart {
  int64_t shard = 0, begin = 0, end = 0;
  std::vector<std::pair<int64_t, int64_t>> segments; // offset, count
  bool isInPlace = false;                            // what a rank owns lies in the one tensor that covers all
  std::vector<std::vector<Value>> spaces;            // by rank: what lies at each element of the space, gaps zero
  std::vector<std::vector<Value>> owned;             // by rank: what is gathered
};

// The same on every rank that draws it from equal seeds.
class RandomCollective {
public:
  RandomCollective(std::mt19937 &random, unsigned world, int64_t largestShard);

  // Memory of one rank, filled, and the request for it.
  struct Memory {
    CollectiveRequest request;
    std::vector<std::vector<std::vector<uint8_t>>> tensors; // by part, by segment
    std::vector<std::vector<uint8_t>> own;
  };
  Memory memoryOf(unsigned rank) const;

  // Compares bits; empty when all is as it must be.
  std::string faultOf(const Memory &memory, unsigned rank) const;
  // Bytes that a rank must have sent.
  uint64_t sentBytes(unsigned rank) const;
  uint64_t receivedBytes(unsigned rank) const;
  int64_t elements() const;

  CollectiveOp op;
  ElementType type, wire;
  Reduction reduction;
  int64_t by = 0;
  bool rotates = false;
  std::string site;

private:
  void drawPart(std::mt19937 &random, int64_t largestShard);
  Value draw(std::mt19937 &random) const;
  Value expectedWhole(const RandomPart &part, unsigned rank, int64_t position) const;
  Value expectedOwn(const RandomPart &part, unsigned rank, int64_t element) const;
  Value reduced(const RandomPart &part, int64_t position) const;
  int64_t neighbour(int64_t rank, int64_t distance) const; // -1 where there is none
  int64_t ownCount(const RandomPart &part) const;

  unsigned world;
  std::vector<RandomPart> parts;
};

} // namespace ds::test
#endif
