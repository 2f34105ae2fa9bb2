// What one rank knows about another, and the messages under way between the two.
#ifndef DEEPSTRIDE_RUNTIME_COMM_PEERSTREAMS_H
#define DEEPSTRIDE_RUNTIME_COMM_PEERSTREAMS_H

#include "runtime/comm/Collectives.h"
#include "runtime/comm/Process.h"
#include "runtime/comm/Transport.h"

#include <array>
#include <optional>

namespace ds {

enum class ControlKind : uint32_t {
  Hello,    // who this rank is; the first message
  Announce, // has started collective `number`: digest and description
  Beat,     // is alive
  Failed,   // cannot go on; the reason
  Left      // starts nothing more; has completed `number` collectives; the reason, empty for a normal end
};

struct ControlMessage {
  ControlKind kind = ControlKind::Beat;
  uint64_t number = 0;
  std::string text;
};

struct Announcement {
  uint64_t digest = 0;
  std::string text;
};

// Messages of data of one phase under way: the one that goes and the one that comes.
struct DataStream {
  Payload out, in;
  size_t sent = 0, received = 0;
  DataHeader header; // of the message that comes
  size_t headerReceived = 0;
  bool isGarbled = false; // what comes has no known length: it is left alone
};

constexpr Channel channelOf(Phase phase) { return phase == Phase::ToOwner ? Channel::ToOwner : Channel::FromOwner; }

struct Peer {
  // What it said.
  bool isConnected = false;
  bool isThread = false; // of this process: it needs no watching
  ProcessIdentity process;
  std::string host;
  uint64_t announced = 0;            // collectives
  std::deque<Announcement> unseen;   // the last of them, which this rank has not started
  std::optional<uint64_t> completed; // when it left
  std::string reason;                // why it left
  bool isGone = false;               // nothing more comes from it and nothing is sent to it

  // When it was last heard, and since when the kernel says that it is stopped; nanoseconds, 0 for never.
  int64_t heard = 0, stopped = 0;

  // Under way.
  Payload controlOut, controlIn;
  size_t controlSent = 0;
  std::array<DataStream, 2> data;

  DataStream &stream(Phase phase) { return data[static_cast<size_t>(phase)]; }
};

std::string helloText(unsigned world, const std::string &host);
// Takes over what a hello says; why it cannot be of the same group, empty where it can.
std::string readHello(const std::string &text, unsigned world, Peer &peer);

std::string announcementText(const Announcement &announcement);
Announcement readAnnouncement(const std::string &text);

void writeControl(Peer &peer, const ControlMessage &message);
// The next whole message of what has come; the bytes are taken out.
std::optional<ControlMessage> readControl(Peer &peer);

// False when nothing could be sent or received.
bool flushControl(Transport &transport, unsigned number, Peer &peer);
bool flushData(Transport &transport, unsigned number, Peer &peer, Phase phase);
bool fillControl(Transport &transport, unsigned number, Peer &peer);

} // namespace ds
#endif
