// An all-reduce, or a reduce-scatter in place, of a table of which most rows are zeros (docs/rationale/collectives.md).
// Every rank tells all others how many rows it has; from these counts all know alike whether rows or the whole table
// travel. Rows go to every rank, in their order, and each rank adds up those that come, row by row, in rank order, as
// owners of elements do.
#ifndef DEEPSTRIDE_RUNTIME_COMM_SPARSEROWSTASK_H
#define DEEPSTRIDE_RUNTIME_COMM_SPARSEROWSTASK_H

#include "runtime/comm/CollectiveTask.h"

#include <deque>

namespace ds {

// The rows that one other rank sends: numbers and values, cut into messages anywhere.
class RowStream {
public:
  // From now on `count` rows of `bytes` each are to come, in ascending order, below `limit`.
  void expect(int64_t count, size_t bytes, int64_t limit);

  // Takes what has come for the next row; true when it is there whole. Throws for a row that cannot be.
  bool fill();
  bool isEnded() const { return left == 0; }
  int64_t row() const { return number; }
  const uint8_t *values() const { return bytes.data(); }
  void drop(); // the row

  std::deque<Payload> waiting;
  int64_t consumed = 0; // messages
  std::vector<Payload> spare;

private:
  int64_t left = 0, limit = 0;
  int64_t number = 0, last = -1;
  size_t filled = 0, cursor = 0; // of the row with its number; in the first that waits
  Payload bytes;
};

class SparseRowsTask : public CollectiveTask {
public:
  SparseRowsTask(const CollectiveRequest &request, unsigned rank, unsigned world, size_t chunkBytes);

  bool advance() override;
  bool next(unsigned peer, Phase phase, DataHeader &header, Payload &message, size_t prefix) override;
  bool holdsBack(unsigned peer) const override;
  bool expects(unsigned peer, Phase phase, const DataHeader &header) const override;
  bool hasRoom(unsigned peer, Phase phase, const DataHeader &header) const override;
  void take(unsigned peer, Phase phase, Payload &payload) override;
  bool isDone() const override;
  bool expectsMoreFrom(unsigned peer) const override;

private:
  struct Peer {
    bool hasCount = false, knowsCount = false; // this rank its, it this rank's
    int64_t count = 0;                         // rows
    int64_t sent = 0, received = 0;            // messages of rows
    RowStream rows;
  };

  bool isScanned() const { return scanned == numRows; }
  int64_t messages(int64_t rows) const { return (rows * rowBytes + chunk - 1) / chunk; }
  int64_t lengthOf(int64_t rows, int64_t index) const { return std::min(chunk, rows * rowBytes - index * chunk); }
  uint8_t *rowAt(int64_t row) const;
  void scan();
  bool decide();
  bool isSent(int64_t rows) const; // to all
  bool findHeads();
  int64_t consumed() const; // messages of all peers
  bool merge();
  void writeSum(int64_t row) const;
  void writeRows(int64_t first, int64_t length, uint8_t *message) const;

  int64_t chunk, rowLength = 0, numRows = 0, rowBytes = 0; // a row's bytes with its number
  int64_t scanned = 0;
  std::vector<int64_t> touched; // rows of this rank
  std::vector<Peer> peers;
  bool isDecided = false;
  std::unique_ptr<CollectiveTask> dense; // when the whole table travels
  size_t merged = 0;                     // of this rank's rows
  Payload mine, sum, zeros;              // a row each
};

} // namespace ds
#endif
