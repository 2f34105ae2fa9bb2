// Ranks of one machine over memory that they share. Who waits sleeps on a futex: there may be more ranks than
// processors.
#ifndef DEEPSTRIDE_RUNTIME_COMM_SHM_RINGTRANSPORT_H
#define DEEPSTRIDE_RUNTIME_COMM_SHM_RINGTRANSPORT_H

#include "runtime/comm/shm/SharedSegment.h"

namespace ds {

class RingTransport : public Transport {
public:
  RingTransport(std::shared_ptr<SharedSegment> segment, unsigned rank);

  unsigned rank() const override { return number; }
  unsigned world() const override { return segment->world(); }
  size_t send(unsigned peer, Channel channel, const void *data, size_t bytes) override;
  size_t receive(unsigned peer, Channel channel, void *data, size_t bytes) override;
  bool isClosed(unsigned, Channel) const override { return false; } // memory does not tell
  void pause(std::chrono::microseconds longest) override;
  void wake() override { ring(number); }
  bool close(bool) override { return true; } // the memory stays for those who read it

private:
  void ring(unsigned rank);

  std::shared_ptr<SharedSegment> segment;
  unsigned number;
  uint32_t heard = 0;
};

} // namespace ds
#endif
