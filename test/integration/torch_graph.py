"""Writes an ONNX model as plain arrays and JSON, so that torch_oracle.py reads it without the packages of this environment.

Debian's python3-torch wants another NumPy than the onnx package does; .npz files are what both read.
"""
import json

import numpy as np
import onnx
from onnx import numpy_helper


def write(model, path):
    """model: ModelProto or path. `graph` in the npz is JSON: nodes; the other arrays are initializers and tensor attributes."""
    model = model if isinstance(model, onnx.ModelProto) else onnx.load(model)
    arrays, nodes = {}, []
    for number, node in enumerate(model.graph.node):
        attributes = {}
        for attribute in node.attribute:
            value = onnx.helper.get_attribute_value(attribute)
            if isinstance(value, onnx.TensorProto):
                key = f"attribute/{number}/{attribute.name}"
                arrays[key] = numpy_helper.to_array(value)
                value = {"array": key}
            attributes[attribute.name] = value.decode() if isinstance(value, bytes) else list(value) if isinstance(value, (list, tuple)) else value
        nodes.append({"op": node.op_type, "inputs": list(node.input), "outputs": list(node.output), "attributes": attributes})
    initializers = [tensor.name for tensor in model.graph.initializer]
    arrays.update({f"weight/{tensor.name}": numpy_helper.to_array(tensor) for tensor in model.graph.initializer})
    np.savez(path, graph=np.frombuffer(json.dumps({"nodes": nodes, "initializers": initializers}).encode(), np.uint8), **arrays)
