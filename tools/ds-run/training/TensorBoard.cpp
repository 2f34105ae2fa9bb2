// Formats: TFRecord is length, masked CRC of the length, data, masked CRC of the data; Event is protobuf with
// wall_time = 1 (double), step = 2 (varint), file_version = 3 (string), summary = 5; Summary has value = 1 with
// tag = 1 (string) and simple_value = 2 (float).
#include "tools/ds-run/training/TensorBoard.h"

#include "runtime/core/Error.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace ds {
namespace {

template <typename T> std::string bytesOf(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7)
    bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}

std::string field(unsigned number, unsigned wireType) { return varint(number << 3 | wireType); }
std::string text(unsigned number, const std::string &value) { return field(number, 2) + varint(value.size()) + value; }

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

} // namespace

uint32_t maskedCrc(const std::string &bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0u);
      entries[i] = value;
    }
    return entries;
  }();
  uint32_t crc = 0xffffffffu;
  for (unsigned char byte : bytes)
    crc = table[(crc ^ byte) & 255] ^ crc >> 8;
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

TensorBoard::TensorBoard(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  path = concat(folder, "/events.out.tfevents.", static_cast<int64_t>(now()), ".deepstride.", getpid());
  file = error ? nullptr : std::fopen(path.c_str(), "wb");
  if (!file)
    fail(ErrorCode::Io, path, ": cannot write: ", error ? error.message() : std::strerror(errno));
  write(field(1, 1) + bytesOf(now()) + text(3, "brain.Event:2"));
}

TensorBoard::~TensorBoard() { std::fclose(file); }

void TensorBoard::write(const std::string &event) {
  std::string length = bytesOf(static_cast<uint64_t>(event.size()));
  std::string record = length + bytesOf(maskedCrc(length)) + event + bytesOf(maskedCrc(event));
  if (std::fwrite(record.data(), 1, record.size(), file) != record.size())
    fail(ErrorCode::Io, path, ": cannot write: ", std::strerror(errno));
}

void TensorBoard::add(const std::string &tag, double value, int64_t step) {
  std::string summary = text(1, text(1, tag) + field(2, 5) + bytesOf(static_cast<float>(value)));
  write(field(1, 1) + bytesOf(now()) + field(2, 0) + varint(static_cast<uint64_t>(step)) + text(5, summary));
}

void TensorBoard::flush() { std::fflush(file); }

} // namespace ds
