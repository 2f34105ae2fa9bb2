// Which fields of an ONNX file the importer reads. All others (doc strings, metadata, training
// information, fields from the future) are dropped before protobuf sees them: they cost no memory.

#ifndef FRONTENDS_ONNX_READER_WIRESCHEMA_H
#define FRONTENDS_ONNX_READER_WIRESCHEMA_H

#include <optional>

namespace deepstride::onnx {

/// The messages of onnx-ml.proto that are walked. The look-up counts up to the last one.
enum class Message {
  Model,
  Opset,
  Training,
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
struct KeptField {
  Message of;
  int number;
  std::optional<Message> message = std::nullopt;
  /// What diagnostics call a `string` field, whose bytes must be UTF-8 (protobuf's proto2 parser does not check);
  /// null for others. These texts end up in diagnostics, reports and the manifest's JSON.
  const char *text = nullptr;

  KeptField(Message of, int number) : of(of), number(number) {}
  KeptField(Message of, int number, Message message) : of(of), number(number), message(message) {}
  KeptField(Message of, int number, const char *text) : of(of), number(number), text(text) {}
};

/// Null for a field to drop.
const KeptField *findField(Message of, int number);

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_WIRESCHEMA_H
