#include "tools/ds-run/launch/Rendezvous.h"

#include "runtime/comm/Connect.h"
#include "runtime/core/Error.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ds {
namespace {

// On a free port of the loopback interface.
int listenOnLoopback(std::string &address) {
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(name);
  auto *plain = reinterpret_cast<sockaddr *>(&name);
  if (descriptor < 0 || bind(descriptor, plain, length) != 0 || listen(descriptor, SOMAXCONN) != 0 ||
      getsockname(descriptor, plain, &length) != 0)
    fail(ErrorCode::Io, "a free port of 127.0.0.1: ", std::strerror(errno));
  address = concat("127.0.0.1:", ntohs(name.sin_port));
  return descriptor;
}

} // namespace

Rendezvous::Rendezvous(const std::string &transport, unsigned world)
    : descriptor(transport == "tcp" ? listenOnLoopback(address) : makeSharedSegment(world)) {}

Rendezvous::~Rendezvous() { close(descriptor); }

std::string Rendezvous::textFor(unsigned rank) const {
  if (address.empty())
    return concat("fd:", descriptor);
  return rank == 0 ? concat("fd:", descriptor, "@", address) : address;
}

int Rendezvous::descriptorFor(unsigned rank) const { return address.empty() || rank == 0 ? descriptor : -1; }

} // namespace ds
