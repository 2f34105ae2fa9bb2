// Transports that lose or damage what they carry: it is told, and nobody hangs.
#include "test/unit/runtime/comm/Ranks.h"

#include "runtime/comm/RankCommunicator.h"
#include "runtime/comm/shm/RingTransport.h"
#include "runtime/core/Error.h"

#include <gtest/gtest.h>
#include <thread>

using namespace ds;
using namespace ds::test;
using namespace std::chrono_literals;

namespace {

// Changes a copy of what is sent; false swallows it.
using Damage = std::function<bool(Channel channel, std::vector<uint8_t> &bytes)>;

class DamagedTransport : public RingTransport {
public:
  DamagedTransport(std::shared_ptr<SharedSegment> segment, unsigned rank, Damage damage)
      : RingTransport(std::move(segment), rank), damage(std::move(damage)) {}

  size_t send(unsigned peer, Channel channel, const void *data, size_t bytes) override {
    const auto *begin = static_cast<const uint8_t *>(data);
    std::vector<uint8_t> copy(begin, begin + bytes);
    return damage(channel, copy) ? RingTransport::send(peer, channel, copy.data(), bytes) : bytes;
  }

private:
  Damage damage;
};

// What two ranks say when rank 1 sends through a damaged transport.
std::vector<std::string> errorsOf(const Damage &damage, std::chrono::milliseconds timeout = 1s) {
  auto segment = SharedSegment::allocate(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      auto whole = [](Channel, std::vector<uint8_t> &) { return true; };
      RankCommunicator communicator(
          std::make_unique<DamagedTransport>(segment, rank, rank == 1 ? damage : Damage(whole)), "", timeout);
      float values[2] = {1, 2};
      try {
        communicator.wait(communicator.start(requestOf(CollectiveOp::AllReduce, values, 2, 2)));
      } catch (const Error &error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

const std::string name = "all_reduce 'grad' at '/loss/MatMul': ";

TEST(DamagedTransports, AStreamThatStandsStillIsNamed) {
  auto errors = errorsOf([](Channel channel, std::vector<uint8_t> &) { return channel == Channel::Control; });
  // Rank 0 has nothing to send to rank 1 before that; either may be the first to say so.
  for (const std::string &error : errors)
    EXPECT_TRUE(error == name + "no data has come from rank 1 to rank 0 for 1 s" ||
                error == name + "no data has come from rank 0 to rank 1 for 1 s")
        << error;
}

TEST(DamagedTransports, EveryByteOfAHeaderMatters) {
  for (size_t at = 0; at < sizeof(DataHeader); ++at) {
    auto errors = errorsOf([at](Channel channel, std::vector<uint8_t> &bytes) {
      if (channel != Channel::Control)
        bytes[at] ^= 0x81;
      return true;
    });
    bool isToldApart = errors[0] == name + "rank 1 sent a message that nobody waits for" ||
                       errors[0] == name + "rank 1 sent a message that is too long";
    EXPECT_TRUE(isToldApart) << "byte " << at << ": " << errors[0];
    EXPECT_EQ(errors[1], errors[0]) << "byte " << at;
  }
}

TEST(DamagedTransports, DamagedControlMessagesAreRefusedOrMissed) {
  for (size_t at = 0; at < 160; ++at) {
    auto errors = errorsOf(
        [at, sent = size_t(0)](Channel channel, std::vector<uint8_t> &bytes) mutable {
          if (channel == Channel::Control) {
            if (sent <= at && at < sent + bytes.size())
              bytes[at - sent] ^= 0x5A;
            sent += bytes.size();
          }
          return true;
        },
        200ms);
    for (const std::string &error : errors) // a byte of a process's number may go unnoticed, no other outcome may
      EXPECT_TRUE(error.empty() || error.find("rank ") != std::string::npos) << "byte " << at << ": " << error;
  }
}

// Reads no data for a while.
class LateTransport : public RingTransport {
public:
  using RingTransport::RingTransport;

  size_t receive(unsigned peer, Channel channel, void *data, size_t bytes) override {
    bool isEarly = std::chrono::steady_clock::now() < readsFrom;
    return channel != Channel::Control && isEarly ? 0 : RingTransport::receive(peer, channel, data, bytes);
  }

private:
  std::chrono::steady_clock::time_point readsFrom = std::chrono::steady_clock::now() + 500ms;
};

// Four messages and their headers are a little more than a ring holds: the sender is through while some of the last
// message has still to leave it.
TEST(LateTransports, ARankEndsWhenAllThatItSentIsOut) {
  constexpr int64_t count = 4 * 16384;
  auto segment = SharedSegment::allocate(2);
  std::string errors[2];
  std::vector<float> values[2] = {std::vector<float>(count, 7), std::vector<float>(count, 0)};
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      std::unique_ptr<Transport> transport = std::make_unique<RingTransport>(segment, rank);
      if (rank == 1)
        transport = std::make_unique<LateTransport>(segment, rank);
      RankCommunicator communicator(std::move(transport), "", 3s);
      try {
        communicator.wait(communicator.start(requestOf(CollectiveOp::Broadcast, values[rank].data(), count, 1)));
      } catch (const Error &error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(values[1], values[0]);
}

} // namespace
