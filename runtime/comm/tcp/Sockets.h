// Sockets for ranks: addresses, connections with a deadline, whole messages while ranks find each other.
#ifndef DEEPSTRIDE_RUNTIME_COMM_TCP_SOCKETS_H
#define DEEPSTRIDE_RUNTIME_COMM_TCP_SOCKETS_H

#include <chrono>
#include <string>
#include <sys/socket.h>

namespace ds {

// A file descriptor that is closed with the object.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(other.number) { other.number = -1; }
  Descriptor &operator=(Descriptor &&other) noexcept;
  ~Descriptor();

  int get() const { return number; }
  explicit operator bool() const { return number >= 0; }

private:
  int number = -1;
};

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  uint16_t port() const;
  void setPort(uint16_t port);
  std::string text() const;
};

using Deadline = std::chrono::steady_clock::time_point;

// Of "HOST:PORT" or "[ADDRESS]:PORT".
SocketAddress resolveAddress(const std::string &text);

// At an address, or at any of a family and a free port.
Descriptor listenAt(const SocketAddress &address);
Descriptor listenAnywhere(int family);
uint16_t portOf(const Descriptor &listener);

// Tries again until someone listens there.
Descriptor connectTo(const SocketAddress &address, Deadline deadline);
// None when the deadline has passed.
Descriptor acceptFrom(const Descriptor &listener, SocketAddress &from, Deadline deadline);

// False when the connection ends or the deadline has passed before all of it has gone or come.
bool sendWhole(const Descriptor &socket, const void *data, size_t bytes, Deadline deadline);
bool receiveWhole(const Descriptor &socket, void *data, size_t bytes, Deadline deadline);

} // namespace ds
#endif
