// Where the ranks of one machine meet. Neither has a name that two jobs could share or that could be left behind:
// memory and sockets are inherited as open descriptors.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RENDEZVOUS_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_RENDEZVOUS_H

#include <string>

namespace ds {

class Rendezvous {
public:
  // "shm" or "tcp"; throws Error(Io).
  Rendezvous(const std::string &transport, unsigned world);
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;
  ~Rendezvous();

  // The value of DS_RENDEZVOUS for a rank, and the descriptor that it names; -1: none.
  std::string textFor(unsigned rank) const;
  int descriptorFor(unsigned rank) const;

private:
  std::string address; // tcp: HOST:PORT
  int descriptor;
};

} // namespace ds
#endif
