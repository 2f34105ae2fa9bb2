#include "runtime/comm/tcp/TcpTransport.h"

#include "runtime/core/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace ds {
namespace {

// The system keeps little of what is sent (twice this), so that what an older collective waits for is not behind much
// of a newer one, and links have short queues. Less than two segments would wait for the timer of an acknowledgement.
void keepShort(int socket) {
  int bytes = 32 << 10, segment = 0;
  socklen_t size = sizeof(segment);
  if (getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &segment, &size) == 0)
    bytes = std::max(bytes, 2 * segment);
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

bool isTemporary(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

} // namespace

TcpTransport::TcpTransport(unsigned rank, TcpConnections connections)
    : number(rank), streams(connections.size()), event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event)
    fail(ErrorCode::Io, "could not make an event: ", std::strerror(errno));
  for (size_t peer = 0; peer < streams.size(); ++peer)
    for (size_t channel = 0; channel < numChannels; ++channel) {
      Stream &stream = streams[peer][channel];
      stream.socket = std::move(connections[peer][channel]);
      int yes = 1;
      setsockopt(stream.socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      if (Channel(channel) != Channel::Control)
        keepShort(stream.socket.get());
    }
}

size_t TcpTransport::send(unsigned peer, Channel channel, const void *data, size_t bytes) {
  Stream &to = stream(peer, channel);
  ssize_t taken = to.isClosed ? -1 : ::send(to.socket.get(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (taken < 0 && (to.isClosed || !isTemporary(errno)))
    return bytes; // nobody reads it any more; receive() finds out why
  to.wantsRoom |= taken < static_cast<ssize_t>(bytes);
  return taken < 0 ? 0 : static_cast<size_t>(taken);
}

size_t TcpTransport::receive(unsigned peer, Channel channel, void *data, size_t bytes) {
  Stream &from = stream(peer, channel);
  if (from.isClosed)
    return 0;
  ssize_t taken = recv(from.socket.get(), data, bytes, MSG_DONTWAIT);
  if (taken == 0 || (taken < 0 && !isTemporary(errno))) {
    from.isClosed = true;
    shutdown(from.socket.get(), SHUT_WR); // the other end waits for this one's
    return 0;
  }
  from.wantsData |= taken < static_cast<ssize_t>(bytes);
  return taken < 0 ? 0 : static_cast<size_t>(taken);
}

bool TcpTransport::isClosed(unsigned peer, Channel channel) const {
  return streams[peer][static_cast<size_t>(channel)].isClosed;
}

void TcpTransport::pause(std::chrono::microseconds longest) {
  std::vector<pollfd> entries = {{event.get(), POLLIN, 0}};
  for (auto &pair : streams)
    for (Stream &stream : pair) {
      int events = (stream.wantsData ? POLLIN : 0) | (stream.wantsRoom ? POLLOUT : 0);
      if (events != 0 && !stream.isClosed)
        entries.push_back({stream.socket.get(), static_cast<short>(events), 0});
      stream.wantsData = stream.wantsRoom = false;
    }
  timespec timeout = {static_cast<time_t>(longest.count() / 1000000),
                      static_cast<long>(longest.count() % 1000000 * 1000)};
  ppoll(entries.data(), entries.size(), &timeout, nullptr);
  uint64_t count;
  while (read(event.get(), &count, sizeof(count)) > 0)
    ;
}

void TcpTransport::wake() {
  uint64_t one = 1;
  while (write(event.get(), &one, sizeof(one)) < 0 && errno == EINTR)
    ;
}

// An end that is closed while something lies there unread would reset the connection, and what was sent on it be lost.
bool TcpTransport::close(bool) {
  bool isOver = true;
  for (unsigned peer = 0; peer < world(); ++peer)
    for (Channel channel : allChannels) {
      Stream &end = stream(peer, channel);
      if (peer == number || end.isClosed)
        continue;
      if (!isClosing)
        shutdown(end.socket.get(), SHUT_WR);
      uint8_t dropped[4096];
      while (receive(peer, channel, dropped, sizeof(dropped)) > 0)
        ;
      isOver &= end.isClosed;
    }
  isClosing = true;
  return isOver;
}

} // namespace ds
