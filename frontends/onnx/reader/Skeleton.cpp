// Walks the wire format of ModelProto with protobuf's CodedInputStream. A table says per message
// which fields are copied and which are messages to walk; all others (doc strings, metadata,
// training information, fields from the future) are dropped, so they cost no memory. Tensors are
// the leaves: their large raw, float and double fields stay in the file.

#include "frontends/onnx/reader/Skeleton.h"

#include "frontends/onnx/reader/FileAccess.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <array>
#include <limits>
#include <optional>

using namespace llvm;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

namespace ds::onnx {

namespace {

enum class Message {
  Model,
  Opset,
  Graph,
  Function,
  Node,
  Attribute,
  Tensor,
  Sparse,
  ValueInfo,
  Type,
  TensorType,
  Sequence,
  Map,
  Opaque,
  Shape,
  Dimension,
  Segment,
  Entry,
};

/// A field that is kept: copied as it is, or walked as a message.
struct Field {
  Message of;
  int number;
  std::optional<Message> message = std::nullopt;
};

/// The numbers are those of onnx-ml.proto.
const Field keptFields[] = {
    {Message::Model, 1},
    {Message::Model, 2},
    {Message::Model, 3},
    {Message::Model, 7, Message::Graph},
    {Message::Model, 8, Message::Opset},
    {Message::Model, 25, Message::Function},
    {Message::Opset, 1},
    {Message::Opset, 2},
    {Message::Graph, 1, Message::Node},
    {Message::Graph, 2},
    {Message::Graph, 5, Message::Tensor},
    {Message::Graph, 11, Message::ValueInfo},
    {Message::Graph, 12, Message::ValueInfo},
    {Message::Graph, 13, Message::ValueInfo},
    {Message::Graph, 15, Message::Sparse},
    {Message::Function, 1},
    {Message::Function, 4},
    {Message::Function, 5},
    {Message::Function, 6},
    {Message::Function, 7, Message::Node},
    {Message::Function, 9, Message::Opset},
    {Message::Function, 10},
    {Message::Function, 11, Message::Attribute},
    {Message::Function, 12, Message::ValueInfo},
    {Message::Function, 13},
    {Message::Node, 1},
    {Message::Node, 2},
    {Message::Node, 3},
    {Message::Node, 4},
    {Message::Node, 5, Message::Attribute},
    {Message::Node, 7},
    {Message::Node, 8},
    {Message::Attribute, 1},
    {Message::Attribute, 2},
    {Message::Attribute, 3},
    {Message::Attribute, 4},
    {Message::Attribute, 5, Message::Tensor},
    {Message::Attribute, 6, Message::Graph},
    {Message::Attribute, 7},
    {Message::Attribute, 8},
    {Message::Attribute, 9},
    {Message::Attribute, 10, Message::Tensor},
    {Message::Attribute, 11, Message::Graph},
    {Message::Attribute, 14, Message::Type},
    {Message::Attribute, 15, Message::Type},
    {Message::Attribute, 20},
    {Message::Attribute, 21},
    {Message::Attribute, 22, Message::Sparse},
    {Message::Attribute, 23, Message::Sparse},
    {Message::Tensor, 1},
    {Message::Tensor, 2},
    {Message::Tensor, 3, Message::Segment},
    {Message::Tensor, 4},
    {Message::Tensor, 5},
    {Message::Tensor, 6},
    {Message::Tensor, 7},
    {Message::Tensor, 8},
    {Message::Tensor, 9},
    {Message::Tensor, 10},
    {Message::Tensor, 11},
    {Message::Tensor, 13, Message::Entry},
    {Message::Tensor, 14},
    {Message::Sparse, 1, Message::Tensor},
    {Message::Sparse, 2, Message::Tensor},
    {Message::Sparse, 3},
    {Message::ValueInfo, 1},
    {Message::ValueInfo, 2, Message::Type},
    {Message::Type, 1, Message::TensorType},
    {Message::Type, 4, Message::Sequence},
    {Message::Type, 5, Message::Map},
    {Message::Type, 7, Message::Opaque},
    {Message::Type, 8, Message::TensorType},
    {Message::Type, 9, Message::Sequence},
    {Message::TensorType, 1},
    {Message::TensorType, 2, Message::Shape},
    {Message::Sequence, 1, Message::Type},
    {Message::Map, 1},
    {Message::Map, 2, Message::Type},
    {Message::Opaque, 1},
    {Message::Opaque, 2},
    {Message::Shape, 1, Message::Dimension},
    {Message::Dimension, 1},
    {Message::Dimension, 2},
    {Message::Segment, 1},
    {Message::Segment, 2},
    {Message::Entry, 1},
    {Message::Entry, 2},
};

constexpr int messageKinds = 18, fieldNumbers = 32;

/// The field to keep, null for one to drop.
const Field *findField(Message of, int number) {
  static const auto table = [] {
    std::array<std::array<const Field *, fieldNumbers>, messageKinds> table = {};
    for (const Field &field : keptFields)
      table[static_cast<int>(field.of)][field.number] = &field;
    return table;
  }();
  return number < fieldNumbers ? table[static_cast<int>(of)][number] : nullptr;
}

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
    return refuse("expected an ONNX model (protobuf), found a damaged or truncated field at byte " +
                  Twine(at));
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
  Expected<std::optional<Seen>> next(Message of, const Field *&kept) {
    Seen seen;
    seen.begin = position();
    uint32_t tag = stream.ReadTag();
    if (tag == 0) {
      if (stream.ConsumedEntireMessage())
        return std::nullopt;
      return damaged(seen.begin);
    }
    seen.number = WireFormatLite::GetTagFieldNumber(tag);
    seen.delimited =
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    kept = findField(of, seen.number);
    if (seen.delimited) {
      uint32_t length = 0;
      if (!stream.ReadVarint32(&length))
        return damaged(seen.begin);
      seen.content = position();
      int left = stream.BytesUntilLimit() >= 0 ? stream.BytesUntilLimit()
                                               : static_cast<int>(file.size() - seen.content);
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
      const Field *kept = nullptr;
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

} // namespace ds::onnx
