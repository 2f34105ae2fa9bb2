#include "test/unit/runtime/comm/SparseTable.h"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace ds::test {
namespace {

int64_t pick(std::mt19937 &random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

bool isSame(float found, float expected) {
  return std::isnan(expected) ? std::isnan(found) : found == expected && std::signbit(found) == std::signbit(expected);
}

} // namespace

SparseTable::SparseTable(std::mt19937 &random, unsigned world, int64_t largestRows, int64_t largestLength, double share)
    : rows(pick(random, 0, largestRows)), length(pick(random, 1, largestLength)), gap(pick(random, 0, 9)),
      reduction(pick(random, 0, 1) ? Reduction::Sum : Reduction::Mean), world(world) {
  for (unsigned rank = 0; rank < world; ++rank) {
    std::vector<float> &table = values.emplace_back(size_t(rows * length));
    int64_t kind = share == 1 ? 9 : pick(random, 0, 9);
    for (int64_t row = 0; row < rows; ++row) {
      bool isTouched = kind == 0   ? false
                       : kind == 1 ? row == rows / 2
                                   : std::uniform_real_distribution<double>(0, 1)(random) < share;
      if (isTouched)
        drawRow(random, table.data() + row * length);
      else if (pick(random, 0, 5) == 0)
        table[size_t(row * length)] = -0.0f; // touches nothing
    }
  }
}

void SparseTable::drawRow(std::mt19937 &random, float *row) const {
  switch (pick(random, 0, 5)) {
  case 0: // cancels in every sum
    row[0] = 1;
    row[length - 1] = length > 1 ? -1 : 1;
    return;
  case 1: row[pick(random, 0, length - 1)] = std::numeric_limits<float>::quiet_NaN(); return;
  case 2: // one value, zeros of the other sign besides
    for (int64_t i = 0; i < length; ++i)
      row[i] = -0.0f;
    row[pick(random, 0, length - 1)] = 1e-40f;
    return;
  default:
    for (int64_t i = 0; i < length; ++i)
      row[i] = static_cast<float>(std::ldexp(std::normal_distribution<double>(0, 1)(random), int(pick(random, -9, 9))));
  }
}

CollectiveRequest SparseTable::request(std::vector<float> &memory) const {
  CollectiveRequest request;
  request.value = "embedding";
  request.site = "/embedding";
  request.reduction = reduction;
  request.codec = Codec::SparseRows;
  CollectivePart &part = request.parts.emplace_back();
  part.shard = shard();
  part.end = shard() * world;
  part.whole.push_back({memory.data(), gap, rows * length});
  part.rowLength = length;
  return request;
}

std::string SparseTable::faultOf(const std::vector<float> &memory) const {
  for (int64_t row = 0; row < rows; ++row)
    for (auto i = size_t(row * length); i < size_t((row + 1) * length); ++i) {
      float expected = 0;
      for (unsigned rank = 0; rank < world; ++rank) {
        float next = values[rank][i];
        bool isTouched = false; // a row of nothing but zeros is one of +0
        for (auto k = size_t(row * length); k < size_t((row + 1) * length); ++k)
          isTouched = isTouched || values[rank][k] != 0;
        if (!isTouched)
          next = 0;
        expected = rank == 0 ? next : expected + next;
      }
      if (reduction == Reduction::Mean)
        expected /= static_cast<float>(world);
      if (!isSame(memory[i], expected))
        return "row " + std::to_string(row) + " of " + std::to_string(rows) + ": " + std::to_string(memory[i]) +
               ", expected " + std::to_string(expected);
    }
  return "";
}

int64_t SparseTable::touchedRows(unsigned rank) const {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    bool isTouched = false;
    for (auto k = size_t(row * length); k < size_t((row + 1) * length); ++k)
      isTouched = isTouched || !(values[rank][k] == 0);
    count += isTouched;
  }
  return count;
}

bool SparseTable::isSparse() const {
  int64_t sparse = 0;
  for (unsigned rank = 0; rank < world; ++rank)
    sparse += touchedRows(rank) * (8 + length * 4);
  return sparse < 2 * shard() * world * 4;
}

uint64_t SparseTable::sentBytes(unsigned rank) const {
  int64_t one = isSparse() ? 8 + touchedRows(rank) * (8 + length * 4) : 8 + 2 * shard() * 4;
  return uint64_t(world - 1) * uint64_t(one);
}

void playSparse(Communicator &communicator, uint32_t seed, int rounds) {
  auto check = [](bool isRight, const std::string &what) {
    if (!isRight)
      throw std::runtime_error(what);
  };
  unsigned rank = communicator.rank(), world = communicator.world();
  std::mt19937 common(seed);
  uint64_t sent = 0;
  int64_t sparse = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<SparseTable> tables;
    for (double share : {0.02, 0.3, 1.0})
      tables.emplace_back(common, world, 120, 30, share);
    std::vector<std::vector<float>> memories;
    std::vector<uint64_t> tickets;
    for (const SparseTable &table : tables)
      memories.push_back(table.values[rank]);
    for (size_t i = 0; i < tables.size(); ++i) {
      tickets.push_back(communicator.start(tables[i].request(memories[i])));
      sent += tables[i].sentBytes(rank);
      sparse += tables[i].isSparse();
    }
    for (size_t i = 0; i < tables.size(); ++i) {
      communicator.wait(tickets[i]);
      std::string fault = tables[i].faultOf(memories[i]);
      check(fault.empty(), "round " + std::to_string(round) + ": " + fault);
    }
  }
  check(sparse > 0 && sparse < 3 * rounds, "all tables are alike");
  CollectiveCounters counters = communicator.counters().back();
  check(counters.site == "/embedding" && counters.calls == 3 * rounds && counters.sentBytes == sent,
        "sent " + std::to_string(counters.sentBytes) + ", expected " + std::to_string(sent));
}

} // namespace ds::test
