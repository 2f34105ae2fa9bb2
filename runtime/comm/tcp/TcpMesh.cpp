#include "runtime/comm/tcp/TcpMesh.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

namespace ds {
namespace {

using namespace std::chrono_literals;

// The first bytes of every connection.
struct Introduction {
  char protocol[8] = {'d', 's', 'r', 'a', 'n', 'k', 's', '1'};
  uint32_t world = 0, rank = 0, channel = 0, port = 0;
};

class Mesh {
public:
  Mesh(unsigned rank, unsigned world, Deadline deadline)
      : rank(rank), world(world), deadline(deadline), connections(world), addresses(world) {}

  TcpConnections asFirst(Descriptor listener);
  TcpConnections asOther(const SocketAddress &first);

private:
  void introduce(unsigned peer, const SocketAddress &address, uint16_t port);
  void acceptRanks(const Descriptor &listener, unsigned first);
  bool welcome(Descriptor connection, const SocketAddress &from, unsigned first);
  [[noreturn]] void refuseMissing(unsigned first) const;

  unsigned rank, world;
  Deadline deadline;
  TcpConnections connections;
  std::vector<SocketAddress> addresses; // where ranks listen
};

// On a connection per channel.
void Mesh::introduce(unsigned peer, const SocketAddress &address, uint16_t port) {
  for (uint32_t channel = 0; channel < numChannels; ++channel) {
    Introduction introduction;
    introduction.world = world;
    introduction.rank = rank;
    introduction.channel = channel;
    introduction.port = port;
    Descriptor connection = connectTo(address, deadline);
    if (!sendWhole(connection, &introduction, sizeof(introduction), deadline))
      fail(ErrorCode::Collective, "rank ", peer, " at ", address.text(), " closed the connection");
    connections[peer][channel] = std::move(connection);
  }
}

// False for a connection that is not one of ours.
bool Mesh::welcome(Descriptor connection, const SocketAddress &from, unsigned first) {
  Introduction introduction, expected;
  Deadline soon = std::min(deadline, std::chrono::steady_clock::now() + 2s);
  if (!receiveWhole(connection, &introduction, sizeof(introduction), soon) ||
      std::memcmp(introduction.protocol, expected.protocol, sizeof(expected.protocol)) != 0)
    return false;
  if (introduction.world != world)
    fail(ErrorCode::Collective, "rank ", introduction.rank, " at ", from.text(), " is one of ", introduction.world,
         " ranks, expected ", world);
  if (introduction.rank < first || introduction.rank >= world || introduction.channel >= numChannels)
    fail(ErrorCode::Collective, "found rank ", introduction.rank, " at ", from.text(), ", expected ", first, " to ",
         world - 1);
  Descriptor &place = connections[introduction.rank][introduction.channel];
  if (place)
    fail(ErrorCode::Collective, "rank ", introduction.rank, " is there twice, the second at ", from.text());
  place = std::move(connection);
  addresses[introduction.rank] = from;
  addresses[introduction.rank].setPort(static_cast<uint16_t>(introduction.port));
  return true;
}

void Mesh::refuseMissing(unsigned first) const {
  std::string missing;
  for (unsigned peer = first; peer < world; ++peer)
    if (!std::all_of(connections[peer].begin(), connections[peer].end(),
                     [](const Descriptor &end) { return bool(end); }))
      missing += concat(missing.empty() ? "rank " : ", ", peer);
  fail(ErrorCode::Collective, missing, " did not connect to rank ", rank, " in time");
}

void Mesh::acceptRanks(const Descriptor &listener, unsigned first) {
  for (unsigned missing = (world - first) * numChannels; missing > 0;) {
    SocketAddress from;
    Descriptor connection = acceptFrom(listener, from, deadline);
    if (!connection)
      refuseMissing(first);
    if (welcome(std::move(connection), from, first))
      --missing;
  }
}

TcpConnections Mesh::asFirst(Descriptor listener) {
  acceptRanks(listener, 1);
  for (unsigned peer = 1; peer < world; ++peer)
    if (!sendWhole(connections[peer][0], addresses.data(), sizeof(SocketAddress) * world, deadline))
      fail(ErrorCode::Collective, "rank ", peer, " at ", addresses[peer].text(), " has died");
  return std::move(connections);
}

TcpConnections Mesh::asOther(const SocketAddress &first) {
  Descriptor listener = listenAnywhere(first.storage.ss_family);
  introduce(0, first, portOf(listener));
  if (!receiveWhole(connections[0][0], addresses.data(), sizeof(SocketAddress) * world, deadline))
    fail(ErrorCode::Collective, "rank 0 at ", first.text(), " did not say where the other ranks are");
  for (unsigned peer = 1; peer < rank; ++peer)
    introduce(peer, addresses[peer], 0);
  acceptRanks(listener, rank + 1);
  return std::move(connections);
}

Descriptor inheritedListener(int number) {
  int listens = 0;
  socklen_t length = sizeof(listens);
  if (getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || !listens)
    fail(ErrorCode::InvalidArgument, "descriptor ", number, " is no socket that listens",
         errno == EBADF ? ": it is not open" : "");
  fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK);
  return Descriptor(number);
}

} // namespace

TcpConnections connectMesh(unsigned rank, unsigned world, const TcpRendezvous &rendezvous, Deadline deadline) {
  Mesh mesh(rank, world, deadline);
  if (rank == 0 && rendezvous.descriptor >= 0)
    return mesh.asFirst(inheritedListener(rendezvous.descriptor));
  SocketAddress address = resolveAddress(rendezvous.address);
  return rank == 0 ? mesh.asFirst(listenAt(address)) : mesh.asOther(address);
}

} // namespace ds
