// How ranks find each other: all connect to rank 0, which tells them where the others listen; then every rank connects
// to those before it.
#ifndef DEEPSTRIDE_RUNTIME_COMM_TCP_TCPMESH_H
#define DEEPSTRIDE_RUNTIME_COMM_TCP_TCPMESH_H

#include "runtime/comm/Transport.h"
#include "runtime/comm/tcp/Sockets.h"

#include <array>
#include <vector>

namespace ds {

struct TcpRendezvous {
  std::string address; // HOST:PORT of rank 0
  int descriptor = -1; // of a socket that listens there already, for rank 0; else -1
};

// By peer, one connection per channel; none to itself.
using TcpConnections = std::vector<std::array<Descriptor, numChannels>>;

TcpConnections connectMesh(unsigned rank, unsigned world, const TcpRendezvous &rendezvous, Deadline deadline);

} // namespace ds
#endif
