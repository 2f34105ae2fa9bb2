// A random table that ranks add up by rows: what must come out and what must travel, worked out element by element.
// Shares no code with what it judges but the types of a request.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_SPARSETABLE_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_SPARSETABLE_H

#include "runtime/comm/Communicator.h"

#include <random>

namespace ds::test {

// f32. The same on every rank that draws it from equal seeds.
class SparseTable {
public:
  // Ranks touch about this share of rows; some of them none, or one, where it is not 1.
  SparseTable(std::mt19937 &random, unsigned world, int64_t largestRows, int64_t largestLength, double share);

  CollectiveRequest request(std::vector<float> &memory) const; // of values that are this rank's
  std::string faultOf(const std::vector<float> &memory) const; // empty when all is as it must be
  bool isSparse() const;                                       // whether rows are fewer bytes than the table
  uint64_t sentBytes(unsigned rank) const;

  std::vector<std::vector<float>> values; // by rank
  int64_t rows = 0, length = 0, gap = 0;  // before the table, in its space
  Reduction reduction = Reduction::Sum;

private:
  void drawRow(std::mt19937 &random, float *row) const;
  int64_t touchedRows(unsigned rank) const;
  int64_t shard() const { return (gap + rows * length + world - 1) / world + 1; }

  unsigned world;
};

// Tables of several densities on the ranks of a communicator, with bits and bytes. Throws what is wrong.
void playSparse(Communicator &communicator, uint32_t seed, int rounds);

} // namespace ds::test
#endif
