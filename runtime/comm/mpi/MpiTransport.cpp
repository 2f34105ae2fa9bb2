// Ranks over MPI's messages: the one transport between machines. After it is opened, only the thread that moves data
// calls MPI, until the end. A stream is a sequence of messages of at most a fixed size, whose order MPI keeps.
#include "runtime/comm/mpi/MpiPlugin.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mpi.h>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds {
namespace {

using namespace std::chrono_literals;

// A chunk of data with its header fits into a message.
constexpr size_t messageBytes[numChannels] = {4096, (64 << 10) + 64, (64 << 10) + 64};
constexpr size_t messagesUnderWay[numChannels] = {16, 4, 4};
// MPI has no wait that another thread could end; what it brings is looked for less and less often.
constexpr std::chrono::microseconds shortestPause = 20us, longestPause = 500us;

void check(int code) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string("MPI: ") + text);
}

class Stream {
public:
  void open(MPI_Comm group, int peer, Channel channel) {
    communicator = group;
    number = peer;
    tag = static_cast<int>(channel);
    incoming.resize(messageBytes[tag]);
    post();
  }

  size_t send(const void *data, size_t bytes) {
    dropSent();
    if (outgoing.size() == messagesUnderWay[tag])
      return 0;
    size_t taken = std::min(bytes, messageBytes[tag]);
    const auto *begin = static_cast<const uint8_t *>(data);
    outgoing.push_back({std::vector<uint8_t>(begin, begin + taken), MPI_REQUEST_NULL});
    Message &message = outgoing.back();
    check(MPI_Isend(message.bytes.data(), static_cast<int>(taken), MPI_BYTE, number, tag, communicator,
                    &message.request));
    return taken;
  }

  size_t receive(void *data, size_t bytes) {
    if (used == come) {
      int isDone = 0, count = 0;
      MPI_Status status;
      check(MPI_Test(&request, &isDone, &status));
      if (!isDone)
        return 0;
      check(MPI_Get_count(&status, MPI_BYTE, &count));
      come = static_cast<size_t>(count);
      used = 0;
    }
    size_t taken = std::min(bytes, come - used);
    std::memcpy(data, incoming.data() + used, taken);
    used += taken;
    if (used == come)
      post();
    return taken;
  }

  bool dropSent() {
    for (int isDone = 1; !outgoing.empty();) {
      check(MPI_Test(&outgoing.front().request, &isDone, MPI_STATUS_IGNORE));
      if (!isDone)
        break;
      outgoing.pop_front();
    }
    return outgoing.empty();
  }

  void cancel() {
    if (request != MPI_REQUEST_NULL) {
      check(MPI_Cancel(&request));
      check(MPI_Request_free(&request));
    }
  }

private:
  struct Message {
    std::vector<uint8_t> bytes;
    MPI_Request request;
  };

  void post() {
    come = used = 0;
    check(MPI_Irecv(incoming.data(), static_cast<int>(incoming.size()), MPI_BYTE, number, tag, communicator, &request));
  }

  MPI_Comm communicator = MPI_COMM_NULL;
  int number = 0, tag = 0;
  std::deque<Message> outgoing;
  std::vector<uint8_t> incoming;
  size_t come = 0, used = 0;
  MPI_Request request = MPI_REQUEST_NULL;
};

class MpiTransport : public Transport {
public:
  MpiTransport() {
    int provided = 0, count = 0, own = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
    if (provided < MPI_THREAD_SERIALIZED)
      throw std::runtime_error("it lets only one thread call it, expected MPI_THREAD_SERIALIZED");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &communicator)); // what the program itself says does not get in between
    check(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN));
    check(MPI_Comm_size(communicator, &count));
    check(MPI_Comm_rank(communicator, &own));
    number = static_cast<unsigned>(own);
    streams.resize(static_cast<size_t>(count));
    for (int peer = 0; peer < count; ++peer)
      for (Channel channel : allChannels)
        if (peer != own)
          streamTo(static_cast<unsigned>(peer), channel).open(communicator, peer, channel);
  }

  // MPI's own end waits for all ranks: it is for a run in which none failed.
  ~MpiTransport() override {
    if (streams.size() == 1 || isClosedInOrder) {
      MPI_Comm_free(&communicator);
      MPI_Finalize();
    }
  }

  unsigned rank() const override { return number; }
  unsigned world() const override { return static_cast<unsigned>(streams.size()); }

  size_t send(unsigned peer, Channel channel, const void *data, size_t bytes) override {
    return moved(streamTo(peer, channel).send(data, bytes));
  }
  size_t receive(unsigned peer, Channel channel, void *data, size_t bytes) override {
    return moved(streamTo(peer, channel).receive(data, bytes));
  }
  bool isClosed(unsigned, Channel) const override { return false; } // MPI ends the job where a rank dies

  void pause(std::chrono::microseconds longest) override {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, std::min(longest, nextPause), [&] { return isAwake; });
    isAwake = false;
    nextPause = std::min(nextPause * 2, longestPause);
  }
  void wake() override {
    std::lock_guard<std::mutex> lock(mutex);
    isAwake = true;
    changed.notify_one();
  }

  bool close(bool isOrderly) override {
    if (!isOrderly)
      return true;
    bool isOver = true;
    for (unsigned peer = 0; peer < world(); ++peer)
      for (Channel channel : allChannels)
        isOver &= peer == number || streamTo(peer, channel).dropSent();
    if (!isOver)
      return false;
    for (unsigned peer = 0; peer < world(); ++peer)
      for (Channel channel : allChannels)
        if (peer != number)
          streamTo(peer, channel).cancel();
    return isClosedInOrder = true;
  }

private:
  Stream &streamTo(unsigned peer, Channel channel) { return streams[peer][static_cast<size_t>(channel)]; }
  size_t moved(size_t bytes) {
    if (bytes != 0)
      nextPause = shortestPause;
    return bytes;
  }

  MPI_Comm communicator = MPI_COMM_NULL;
  unsigned number = 0;
  std::vector<std::array<Stream, numChannels>> streams;
  bool isClosedInOrder = false;
  std::mutex mutex;
  std::condition_variable changed;
  bool isAwake = false;
  std::chrono::microseconds nextPause = shortestPause;
};

} // namespace
} // namespace ds

extern "C" __attribute__((visibility("default"))) ds::Transport *DS_MPI_SYMBOL(char *fault, size_t faultBytes) {
  try {
    return new ds::MpiTransport();
  } catch (const std::exception &error) {
    std::snprintf(fault, faultBytes, "%s", error.what());
    return nullptr;
  }
}
