// A random space whose all-reduce travels as 1 bit, with what must come out on every rank, step by step: the two-phase
// compressed all-reduce of 1-bit Adam's paper, written out element by element for all ranks at once. Shares no code
// with what it judges but the types of a request.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_ONEBITORACLE_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_ONEBITORACLE_H

#include "runtime/comm/Communicator.h"

#include <random>

namespace ds::test {

// One part, of T's. The same on every rank that draws it from equal seeds.
template <typename T> class OneBitOracle {
public:
  // Tensors anywhere in the space, with gaps.
  OneBitOracle(std::mt19937 &random, unsigned world, int64_t largestShard);
  // One tensor from 0 on, in shards as small as they can be.
  OneBitOracle(unsigned world, int64_t elements);

  void drawInputs(std::mt19937 &random); // of the next step, on every rank
  void step();

  int64_t size() const { return shard * world; }
  uint64_t sentBytes() const { return uint64_t(2 * (world - 1) * shard / 8 + 8 * (world - 1)); }

  unsigned world;
  int64_t shard = 0;
  std::vector<std::pair<int64_t, int64_t>> segments; // offset, count
  std::vector<bool> isCovered;                       // by element of the space
  std::vector<std::vector<T>> inputs, workerErrors;  // by rank, over the space
  std::vector<T> serverErrors, result;               // over the space: owner by owner

private:
  void begin();
  float scaleOf(const std::vector<T> &values, int64_t from, int64_t to) const;
};

// One rank's memory of a part.
template <typename T> struct OneBitMemory {
  OneBitMemory(const OneBitOracle<T> &oracle, unsigned rank);

  void load(const OneBitOracle<T> &oracle);                 // the next step's inputs
  std::string faultOf(const OneBitOracle<T> &oracle) const; // empty when all is as it must be
  CollectivePart part(const OneBitOracle<T> &oracle);       // of a request
  uint64_t digest(bool hasErrors) const;                    // of all that a step changes

  unsigned rank;
  std::vector<std::vector<T>> tensors; // by segment
  std::vector<T> workerError, serverError;
};

template <typename T> CollectiveRequest oneBitRequest() {
  CollectiveRequest request;
  request.value = "momentum";
  request.site = "/update/momentum";
  request.type = request.wire = sizeof(T) == 8 ? ElementType::F64 : ElementType::F32;
  request.reduction = Reduction::Mean;
  request.codec = Codec::OneBit;
  return request;
}

} // namespace ds::test
#endif
