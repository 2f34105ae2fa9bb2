// Collectives of all ranks in one thread, without a transport: what happens next is drawn.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_STREAMS_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_COMM_STREAMS_H

#include "runtime/comm/CollectiveTask.h"

#include <deque>
#include <map>
#include <random>

namespace ds::test {

class Streams {
public:
  Streams(unsigned world, size_t chunkBytes, uint32_t seed) : world(world), chunkBytes(chunkBytes), random(seed) {
    tasks.resize(world);
  }

  void start(unsigned rank, const CollectiveRequest &request) {
    tasks[rank].push_back(makeTask(request, rank, world, chunkBytes));
  }

  // Until all are done; why they are not, where nothing goes on any more. The late rank computes only when nothing else
  // can happen.
  std::string run(unsigned late);

  const CollectiveTask &task(unsigned rank, size_t number) const { return *tasks[rank][number]; }

private:
  struct Message {
    DataHeader header;
    Payload payload;
  };

  bool send(unsigned from, unsigned to, Phase phase);
  bool receive(unsigned from, unsigned to, Phase phase);
  bool tryDrawn(unsigned late);
  bool tryAll();
  bool tryOne(unsigned from, unsigned to, unsigned what);
  bool isDone() const;

  unsigned world;
  size_t chunkBytes;
  std::mt19937 random;
  std::vector<std::vector<std::unique_ptr<CollectiveTask>>> tasks;               // by rank, in the order of starts
  std::map<std::tuple<unsigned, unsigned, Phase>, std::deque<Message>> underWay; // by from, to
  std::string fault;
};

} // namespace ds::test
#endif
