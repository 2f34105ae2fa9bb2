// The table of fields that are read, and the look-up in it.

#include "frontends/onnx/reader/WireSchema.h"

#include <array>

namespace deepstride::onnx {

/// The numbers are those of onnx-ml.proto.
static const KeptField keptFields[] = {
    {Message::Model, 1},
    {Message::Model, 2, "ModelProto.producer_name"},
    {Message::Model, 3, "ModelProto.producer_version"},
    {Message::Model, 7, Message::Graph},
    {Message::Model, 8, Message::Opset},
    {Message::Model, 20, Message::Training},
    {Message::Model, 25, Message::Function},
    {Message::Opset, 1, "OperatorSetIdProto.domain"},
    {Message::Opset, 2},
    {Message::Training, 1, Message::Graph},
    {Message::Training, 2, Message::Graph},
    {Message::Graph, 1, Message::Node},
    {Message::Graph, 2, "GraphProto.name"},
    {Message::Graph, 5, Message::Tensor},
    {Message::Graph, 11, Message::ValueInfo},
    {Message::Graph, 12, Message::ValueInfo},
    {Message::Graph, 13, Message::ValueInfo},
    {Message::Graph, 15, Message::Sparse},
    {Message::Function, 1, "FunctionProto.name"},
    {Message::Function, 4, "FunctionProto.input"},
    {Message::Function, 5, "FunctionProto.output"},
    {Message::Function, 6, "FunctionProto.attribute"},
    {Message::Function, 7, Message::Node},
    {Message::Function, 9, Message::Opset},
    {Message::Function, 10, "FunctionProto.domain"},
    {Message::Function, 11, Message::Attribute},
    {Message::Function, 12, Message::ValueInfo},
    {Message::Function, 13, "FunctionProto.overload"},
    {Message::Node, 1, "NodeProto.input"},
    {Message::Node, 2, "NodeProto.output"},
    {Message::Node, 3, "NodeProto.name"},
    {Message::Node, 4, "NodeProto.op_type"},
    {Message::Node, 5, Message::Attribute},
    {Message::Node, 7, "NodeProto.domain"},
    {Message::Node, 8, "NodeProto.overload"},
    {Message::Attribute, 1, "AttributeProto.name"},
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
    {Message::Attribute, 21, "AttributeProto.ref_attr_name"},
    {Message::Attribute, 22, Message::Sparse},
    {Message::Attribute, 23, Message::Sparse},
    {Message::Tensor, 1},
    {Message::Tensor, 2},
    {Message::Tensor, 3, Message::Segment},
    {Message::Tensor, 4},
    {Message::Tensor, 5},
    {Message::Tensor, 6},
    {Message::Tensor, 7},
    {Message::Tensor, 8, "TensorProto.name"},
    {Message::Tensor, 9},
    {Message::Tensor, 10},
    {Message::Tensor, 11},
    {Message::Tensor, 13, Message::Entry},
    {Message::Tensor, 14},
    {Message::Sparse, 1, Message::Tensor},
    {Message::Sparse, 2, Message::Tensor},
    {Message::Sparse, 3},
    {Message::ValueInfo, 1, "ValueInfoProto.name"},
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
    {Message::Opaque, 1, "TypeProto.Opaque.domain"},
    {Message::Opaque, 2, "TypeProto.Opaque.name"},
    {Message::Shape, 1, Message::Dimension},
    {Message::Dimension, 1},
    {Message::Dimension, 2, "TensorShapeProto.Dimension.dim_param"},
    {Message::Segment, 1},
    {Message::Segment, 2},
    {Message::Entry, 1, "StringStringEntryProto.key"},
    {Message::Entry, 2},
};

static constexpr int messageKinds = static_cast<int>(Message::Entry) + 1, fieldNumbers = 32;

const KeptField *findField(Message of, int number) {
  static const auto table = [] {
    std::array<std::array<const KeptField *, fieldNumbers>, messageKinds> table = {};
    for (const KeptField &field : keptFields)
      table[static_cast<int>(field.of)][field.number] = &field;
    return table;
  }();
  return number < fieldNumbers ? table[static_cast<int>(of)][number] : nullptr;
}

} // namespace deepstride::onnx
