// Ranks as processes of one machine, perhaps in network namespaces of their own, over TCP connections.
#ifndef DEEPSTRIDE_RUNTIME_COMM_TCP_TCPTRANSPORT_H
#define DEEPSTRIDE_RUNTIME_COMM_TCP_TCPTRANSPORT_H

#include "runtime/comm/tcp/TcpMesh.h"

namespace ds {

class TcpTransport : public Transport {
public:
  TcpTransport(unsigned rank, TcpConnections connections);

  unsigned rank() const override { return number; }
  unsigned world() const override { return static_cast<unsigned>(streams.size()); }
  size_t send(unsigned peer, Channel channel, const void *data, size_t bytes) override;
  size_t receive(unsigned peer, Channel channel, void *data, size_t bytes) override;
  bool isClosed(unsigned peer, Channel channel) const override;
  void pause(std::chrono::microseconds longest) override;
  void wake() override;
  bool close(bool isOrderly) override;

private:
  struct Stream {
    Descriptor socket;
    bool isClosed = false;
    bool wantsData = false, wantsRoom = false; // since the last pause
  };

  Stream &stream(unsigned peer, Channel channel) { return streams[peer][static_cast<size_t>(channel)]; }

  unsigned number;
  std::vector<std::array<Stream, numChannels>> streams;
  Descriptor event;
  bool isClosing = false;
};

} // namespace ds
#endif
