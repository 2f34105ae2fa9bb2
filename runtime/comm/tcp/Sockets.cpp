#include "runtime/comm/tcp/Sockets.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace ds {
namespace {

using namespace std::chrono_literals;

constexpr int waiting = 1024; // connections that nobody has accepted yet

bool isReady(const Descriptor &socket, short events, Deadline deadline) {
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd entry = {socket.get(), events, 0};
    int count = poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60000)));
    if (count > 0)
      return true;
    if ((count < 0 && errno != EINTR) || (count == 0 && left <= 60000))
      return false;
  }
}

bool isTemporary(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Descriptor newSocket(int family) {
  Descriptor result(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result)
    fail(ErrorCode::Io, "could not make a socket: ", std::strerror(errno));
  return result;
}

} // namespace

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept {
  std::swap(number, other.number);
  return *this;
}

Descriptor::~Descriptor() {
  if (number >= 0)
    close(number);
}

uint16_t SocketAddress::port() const {
  if (storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6 *>(&storage)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in *>(&storage)->sin_port);
}

void SocketAddress::setPort(uint16_t port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 *>(&storage)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in *>(&storage)->sin_port = htons(port);
}

std::string SocketAddress::text() const {
  char host[NI_MAXHOST] = "?";
  getnameinfo(reinterpret_cast<const sockaddr *>(&storage), length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return concat(storage.ss_family == AF_INET6 ? concat("[", host, "]") : host, ":", port());
}

SocketAddress resolveAddress(const std::string &text) {
  size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon), port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  bool isNumber = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (host.empty() || !isNumber || std::stoi(port) < 1 || std::stoi(port) > 65535)
    fail(ErrorCode::InvalidArgument, "address '", text, "': expected HOST:PORT with a port of 1 to 65535");
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0)
    fail(ErrorCode::InvalidArgument, "address '", text, "': ", gai_strerror(code));
  SocketAddress result;
  result.length = found->ai_addrlen;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return result;
}

Descriptor listenAt(const SocketAddress &address) {
  Descriptor result = newSocket(address.storage.ss_family);
  int yes = 1;
  setsockopt(result.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(result.get(), reinterpret_cast<const sockaddr *>(&address.storage), address.length) != 0 ||
      listen(result.get(), waiting) != 0)
    fail(ErrorCode::Io, "could not listen at ", address.text(), ": ", std::strerror(errno));
  return result;
}

Descriptor listenAnywhere(int family) {
  SocketAddress address;
  address.storage.ss_family = static_cast<sa_family_t>(family);
  address.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return listenAt(address);
}

uint16_t portOf(const Descriptor &listener) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr *>(&address.storage), &address.length) != 0)
    fail(ErrorCode::Io, "a socket has no address: ", std::strerror(errno));
  return address.port();
}

Descriptor connectTo(const SocketAddress &address, Deadline deadline) {
  for (;;) {
    Descriptor result = newSocket(address.storage.ss_family);
    int error = 0;
    if (connect(result.get(), reinterpret_cast<const sockaddr *>(&address.storage), address.length) != 0) {
      error = errno;
      if (error == EINPROGRESS) {
        socklen_t length = sizeof(error);
        error = isReady(result, POLLOUT, deadline) ? 0 : ETIMEDOUT;
        if (error == 0)
          getsockopt(result.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      }
    }
    if (error == 0)
      return result;
    if (std::chrono::steady_clock::now() >= deadline)
      fail(ErrorCode::Collective, "could not connect to ", address.text(), ": ", std::strerror(error));
    std::this_thread::sleep_for(20ms);
  }
}

Descriptor acceptFrom(const Descriptor &listener, SocketAddress &from, Deadline deadline) {
  while (isReady(listener, POLLIN, deadline)) {
    from.length = sizeof(from.storage);
    Descriptor result(accept4(listener.get(), reinterpret_cast<sockaddr *>(&from.storage), &from.length,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (result)
      return result;
    if (!isTemporary(errno) && errno != ECONNABORTED)
      fail(ErrorCode::Io, "could not accept a connection: ", std::strerror(errno));
  }
  return Descriptor();
}

bool sendWhole(const Descriptor &socket, const void *data, size_t bytes, Deadline deadline) {
  for (size_t done = 0; done < bytes;) {
    ssize_t taken = send(socket.get(), static_cast<const char *>(data) + done, bytes - done, MSG_NOSIGNAL);
    if (taken > 0)
      done += static_cast<size_t>(taken);
    else if (!isTemporary(errno) || !isReady(socket, POLLOUT, deadline))
      return false;
  }
  return true;
}

bool receiveWhole(const Descriptor &socket, void *data, size_t bytes, Deadline deadline) {
  for (size_t done = 0; done < bytes;) {
    ssize_t taken = recv(socket.get(), static_cast<char *>(data) + done, bytes - done, 0);
    if (taken > 0)
      done += static_cast<size_t>(taken);
    else if (taken == 0 || !isTemporary(errno) || !isReady(socket, POLLIN, deadline))
      return false;
  }
  return true;
}

} // namespace ds
