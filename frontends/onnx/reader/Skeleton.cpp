// Walks the wire format of ModelProto with protobuf's CodedInputStream. A table says per message
// which fields are copied and which are messages to walk; all others (doc strings, metadata,
// training information, fields from the future) are dropped, so they cost no memory. Tensors are
// the leaves: their large raw, float and double fields stay in the file.

#include "frontends/onnx/reader/Skeleton.h"

#include "frontends/onnx/reader/FileAccess.h"
#include "frontends/onnx/reader/WireSchema.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <limits>
#include <optional>

using namespace llvm;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

namespace deepstride::onnx {

namespace {

constexpr int floatData = 4, rawData = 9, doubleData = 10;

bool holdsElements(int number) { return (number >= 4 && number <= 7) || (number >= 9 && number <= 11); }

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void appendBytes(std::string &out, int number, StringRef bytes) {
  appendVarint(out, uint64_t(number) << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  appendVarint(out, bytes.size());
  out += bytes;
}

class Splitter {
public:
  Splitter(ArrayRef<uint8_t> file, const ImportLimits &limits)
      : file(file), stream(file.data(), static_cast<int>(file.size())), limits(limits) {}

  Expected<Skeleton> run() {
    if (Error error = walk(Message::Model, skeleton.bytes, 0))
      return std::move(error);
    return std::move(skeleton);
  }

private:
  /// A field as it lies in the file: from its tag (`begin`) to its `end`; the content of a
  /// length-delimited one starts at `content`.
  struct Seen {
    int number;
    bool delimited;
    uint64_t begin, content, end;

    uint64_t length() const { return end - content; }
  };

  uint64_t position() const { return static_cast<uint64_t>(stream.CurrentPosition()); }

  StringRef text(uint64_t begin, uint64_t end) const {
    return StringRef(reinterpret_cast<const char *>(file.data()) + begin, end - begin);
  }

  Error damaged(uint64_t at) const {
    return refuse("expected an ONNX model (protobuf), found a damaged or truncated field at byte " + Twine(at));
  }

  /// Counts what protobuf will allocate objects for, before it does.
  Error charge(uint64_t bytes) {
    structureBytes += bytes;
    if (++fields > limits.fields)
      return refuse("expected at most " + Twine(limits.fields) + " fields, found more");
    if (structureBytes > limits.structureBytes)
      return refuse("expected at most " + Twine(limits.structureBytes) +
                    " bytes besides the tensors' raw data, found more");
    return Error::success();
  }

  /// Reads one field; nothing at the end of the enclosing message. Messages to walk are entered:
  /// the stream then stands at their content.
  Expected<std::optional<Seen>> next(Message of, const KeptField *&kept) {
    Seen seen;
    seen.begin = position();
    uint32_t tag = stream.ReadTag();
    if (tag == 0) {
      if (stream.ConsumedEntireMessage())
        return std::nullopt;
      return damaged(seen.begin);
    }
    seen.number = WireFormatLite::GetTagFieldNumber(tag);
    seen.delimited = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    kept = findField(of, seen.number);
    if (seen.delimited) {
      uint32_t length = 0;
      if (!stream.ReadVarint32(&length))
        return damaged(seen.begin);
      seen.content = position();
      int left =
          stream.BytesUntilLimit() >= 0 ? stream.BytesUntilLimit() : static_cast<int>(file.size() - seen.content);
      if (length > static_cast<uint32_t>(left))
        return damaged(seen.begin);
      seen.end = seen.content + length;
      if (!(kept && kept->message))
        stream.Skip(static_cast<int>(length));
      return seen;
    }
    if (!WireFormatLite::SkipField(&stream, tag))
      return damaged(seen.begin);
    seen.content = seen.begin;
    seen.end = position();
    return seen;
  }

  Error walk(Message message, std::string &out, unsigned depth) {
    if (depth > messageDepth(limits))
      return refuse("expected at most " + Twine(limits.depth) + " nested subgraphs, found more");
    SmallVector<Seen> elements;
    while (true) {
      const KeptField *kept = nullptr;
      Expected<std::optional<Seen>> seen = next(message, kept);
      if (!seen)
        return seen.takeError();
      if (!*seen)
        break;
      if (!kept)
        continue;
      if (kept->message && (*seen)->delimited) {
        if (Error error = enter(*kept->message, **seen, out, depth))
          return error;
        continue;
      }
      if (message == Message::Tensor && holdsElements((*seen)->number)) {
        elements.push_back(**seen);
        continue;
      }
      if (Error error = checkText(*kept, **seen))
        return error;
      if (Error error = copy(**seen, out))
        return error;
    }
    return message == Message::Tensor ? keepElements(elements, out) : Error::success();
  }

  Error enter(Message message, const Seen &seen, std::string &out, unsigned depth) {
    if (Error error = charge(2))
      return error;
    std::string content;
    CodedInputStream::Limit outer = stream.PushLimit(static_cast<int>(seen.length()));
    if (Error error = walk(message, content, depth + 1))
      return error;
    stream.PopLimit(outer);
    appendBytes(out, seen.number, content);
    return Error::success();
  }

  Error checkText(const KeptField &kept, const Seen &seen) const {
    if (!kept.text || !seen.delimited || json::isUTF8(text(seen.content, seen.end)))
      return Error::success();
    return refuse("expected text in UTF-8 in " + Twine(kept.text) + ", found " + quoted(text(seen.content, seen.end)) +
                  " at byte " + Twine(seen.content));
  }

  Error copy(const Seen &seen, std::string &out) {
    if (Error error = charge(seen.end - seen.begin))
      return error;
    out += text(seen.begin, seen.end);
    return Error::success();
  }

  /// Tensors with all their elements in one large field keep them in the file.
  Error keepElements(ArrayRef<Seen> elements, std::string &out) {
    if (elements.size() == 1 && elements[0].delimited && elements[0].length() > payloadThreshold) {
      const Seen &field = elements[0];
      if (field.number == rawData)
        return leaveInFile(field, PayloadKind::Raw, out);
      // Packed floats are little-endian in the file: the same bytes as raw data.
      if (field.number == floatData && field.length() % 4 == 0)
        return leaveInFile(field, PayloadKind::Floats, out);
      if (field.number == doubleData && field.length() % 8 == 0)
        return leaveInFile(field, PayloadKind::Doubles, out);
    }
    for (const Seen &field : elements) {
      if (field.number != rawData || !field.delimited) {
        if (Error error = copy(field, out))
          return error;
        continue;
      }
      if (Error error = charge(field.length()))
        return error;
      std::string marked(1, static_cast<char>(PayloadKind::Inline));
      marked += text(field.content, field.end);
      appendBytes(out, rawData, marked);
    }
    return Error::success();
  }

  Error leaveInFile(const Seen &field, PayloadKind kind, std::string &out) {
    if (Error error = charge(16))
      return error;
    std::string marked(1, static_cast<char>(kind));
    for (int shift = 0; shift < 64; shift += 8)
      marked.push_back(static_cast<char>(uint64_t(skeleton.payloads.size()) >> shift));
    appendBytes(out, rawData, marked);
    skeleton.payloads.push_back({field.content, field.length()});
    return Error::success();
  }

  ArrayRef<uint8_t> file;
  CodedInputStream stream;
  const ImportLimits &limits;
  Skeleton skeleton;
  uint64_t fields = 0;
  uint64_t structureBytes = 0;
};

} // namespace

unsigned messageDepth(const ImportLimits &limits) {
  // A subgraph is three messages deep (graph, node, attribute); around and inside are a few more.
  return 3 * limits.depth + 12;
}

Expected<Skeleton> splitPayloads(ArrayRef<uint8_t> file, const ImportLimits &limits) {
  if (file.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return refuse("expected a protobuf below 2 GiB, found " + Twine(file.size()) +
                  " bytes; save the weights as external data "
                  "(onnx.save(model, path, save_as_external_data=True))");
  StringRef text(reinterpret_cast<const char *>(file.data()), file.size());
  if (text.starts_with("version https://git-lfs"))
    return refuse("expected an ONNX model, found a Git LFS pointer; run 'git lfs pull'");
  return Splitter(file, limits).run();
}

} // namespace deepstride::onnx
