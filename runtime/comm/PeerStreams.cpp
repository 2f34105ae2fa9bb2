#include "runtime/comm/PeerStreams.h"

#include <cstring>
#include <sstream>

namespace ds {
namespace {

constexpr const char *protocol = "ds-ranks-1";

struct ControlHeader {
  uint32_t kind, bytes;
  uint64_t number;
};

bool flush(Transport &transport, unsigned number, Channel channel, Payload &out, size_t &sent) {
  if (sent == out.size())
    return false;
  size_t taken = transport.send(number, channel, out.data() + sent, out.size() - sent);
  sent += taken;
  if (sent == out.size()) {
    out.clear();
    sent = 0;
  }
  return taken > 0;
}

} // namespace

std::string helloText(unsigned world, const std::string &host) {
  const ProcessIdentity &self = thisProcess();
  std::ostringstream out;
  out << protocol << ' ' << world << ' ' << self.boot << ' ' << self.number << ' ' << self.startTime << ' '
      << self.numberSpace << ' ' << host;
  return out.str();
}

std::string readHello(const std::string &text, unsigned world, Peer &peer) {
  std::istringstream in(text);
  std::string version;
  unsigned itsWorld = 0;
  in >> version >> itsWorld >> peer.process.boot >> peer.process.number >> peer.process.startTime >>
      peer.process.numberSpace;
  in.get();
  std::getline(in, peer.host);
  peer.isConnected = true;
  peer.isThread = isThisProcess(peer.process);
  if (version != protocol)
    return "is of another version of this program";
  if (itsWorld != world)
    return "is one of " + std::to_string(itsWorld) + " ranks, expected " + std::to_string(world);
  return "";
}

std::string announcementText(const Announcement &announcement) {
  std::string text(sizeof(announcement.digest), '\0');
  std::memcpy(text.data(), &announcement.digest, sizeof(announcement.digest));
  return text + announcement.text;
}

Announcement readAnnouncement(const std::string &text) {
  Announcement result;
  if (text.size() < sizeof(result.digest))
    return result;
  std::memcpy(&result.digest, text.data(), sizeof(result.digest));
  result.text = text.substr(sizeof(result.digest));
  return result;
}

void writeControl(Peer &peer, const ControlMessage &message) {
  ControlHeader header = {static_cast<uint32_t>(message.kind), static_cast<uint32_t>(message.text.size()),
                          message.number};
  const auto *bytes = reinterpret_cast<const uint8_t *>(&header);
  peer.controlOut.insert(peer.controlOut.end(), bytes, bytes + sizeof(header));
  peer.controlOut.insert(peer.controlOut.end(), message.text.begin(), message.text.end());
}

std::optional<ControlMessage> readControl(Peer &peer) {
  ControlHeader header;
  if (peer.controlIn.size() < sizeof(header))
    return std::nullopt;
  std::memcpy(&header, peer.controlIn.data(), sizeof(header));
  if (peer.controlIn.size() < sizeof(header) + header.bytes)
    return std::nullopt;
  auto text = peer.controlIn.begin() + sizeof(header);
  ControlMessage message = {static_cast<ControlKind>(header.kind), header.number,
                            std::string(text, text + header.bytes)};
  peer.controlIn.erase(peer.controlIn.begin(), text + header.bytes);
  return message;
}

bool flushControl(Transport &transport, unsigned number, Peer &peer) {
  return flush(transport, number, Channel::Control, peer.controlOut, peer.controlSent);
}

bool flushData(Transport &transport, unsigned number, Peer &peer, Phase phase) {
  DataStream &stream = peer.stream(phase);
  return flush(transport, number, channelOf(phase), stream.out, stream.sent);
}

bool fillControl(Transport &transport, unsigned number, Peer &peer) {
  uint8_t bytes[4096];
  size_t taken = transport.receive(number, Channel::Control, bytes, sizeof(bytes));
  peer.controlIn.insert(peer.controlIn.end(), bytes, bytes + taken);
  return taken > 0;
}

} // namespace ds
