// Moves bytes between pairs of ranks. Between two ranks run three streams in each direction; no call blocks but
// pause(). Used by one thread, but for wake(). Collectives are built above, once for all transports.
#ifndef DEEPSTRIDE_RUNTIME_COMM_TRANSPORT_H
#define DEEPSTRIDE_RUNTIME_COMM_TRANSPORT_H

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ds {

// Data for an owner wait where it has no room. Neither what owners send nor what is said about collectives may be stuck
// behind them.
enum class Channel : uint8_t { Control, ToOwner, FromOwner };
constexpr unsigned numChannels = 3;
constexpr Channel allChannels[] = {Channel::Control, Channel::ToOwner, Channel::FromOwner};

class Transport {
public:
  virtual ~Transport() = default;

  virtual unsigned rank() const = 0;
  virtual unsigned world() const = 0;

  // Takes as many of the bytes as fit without waiting, and says how many.
  virtual size_t send(unsigned peer, Channel channel, const void *data, size_t bytes) = 0;
  // Gives as many bytes as have come, at most what is asked for.
  virtual size_t receive(unsigned peer, Channel channel, void *data, size_t bytes) = 0;
  // Nothing more comes on this stream: its other end is closed, and all that was sent has been received.
  virtual bool isClosed(unsigned peer, Channel channel) const = 0;

  // Sleeps until a stream that gave or took nothing since the last pause may do so, or wake() was called, or time is
  // up.
  virtual void pause(std::chrono::microseconds longest) = 0;
  virtual void wake() = 0;

  // Sends nothing more. Called again until it says that all that was sent is out of this process's hands. Not orderly:
  // ranks have failed, and are not waited for longer than they need to answer.
  virtual bool close(bool isOrderly) = 0;
};

} // namespace ds
#endif
