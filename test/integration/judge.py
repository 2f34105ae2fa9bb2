"""Who is right where we and ONNX Runtime differ: distances of arrays, and a judge that shares no code with the compiler.

ONNX Runtime's word stands for shapes, types, integers and booleans. Its floats are overruled only where ONNX's reference
evaluator, run in float64 on a copy of the model that is widened here, is where we are and farther from ONNX Runtime.
"""
import copy
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NARROW = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
# Attributes that name the element type of a result, or of what is computed on the way.
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")


def is_float(dtype):
    return np.dtype(dtype).kind == "f" or np.dtype(dtype).name == "bfloat16"


def distance(actual, expected, magnitude=0.0):
    """Largest |difference| as a share of the largest |expected| number; infinite where type, shape, NaN, Inf or an
    integer disagree.

    Where all expected numbers are 0, all of `actual` must be 0. An output that holds what is left of a subtraction has
    errors of the size of what was subtracted: a case that knows states it as `magnitude`, and says why.
    """
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return np.inf
    if not actual.size:
        return 0.0
    if not is_float(actual.dtype):
        return 0.0 if np.array_equal(actual, expected) else np.inf
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(e)
    if not np.array_equal(a[~finite], e[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return np.inf
    off, scale = np.max(np.abs(a[finite] - e[finite]), initial=0), max(np.max(np.abs(e)[finite], initial=0), magnitude)
    return float(off / scale) if scale else 0.0 if off == 0 else np.inf


def widen_type(kind):
    what = kind.WhichOneof("value")
    if what == "tensor_type" and kind.tensor_type.elem_type in NARROW:
        kind.tensor_type.elem_type = TensorProto.DOUBLE
    elif what in ("sequence_type", "optional_type"):
        widen_type(getattr(kind, what).elem_type)


def widen_tensor(tensor):
    if tensor.data_type in NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def widen_node(node):
    for attribute in node.attribute:
        if attribute.name in TYPE_ATTRIBUTES and attribute.i in NARROW:
            attribute.i = TensorProto.DOUBLE
        elif attribute.type == onnx.AttributeProto.TENSOR:
            widen_tensor(attribute.t)
        elif attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
            widen_tensor(attribute.sparse_tensor.values)
        elif attribute.type == onnx.AttributeProto.GRAPH:
            widen_graph(attribute.g)
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            numbers = np.array(helper.get_attribute_value(attribute), np.float64)
            attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(numbers)))
    if node.op_type == "ConstantOfShape" and not node.attribute:  # zeros of f32
        node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))


def widen_graph(graph):
    for value in [*graph.input, *graph.output, *graph.value_info]:
        widen_type(value.type)
    for tensor in graph.initializer:
        widen_tensor(tensor)
    for tensor in graph.sparse_initializer:
        widen_tensor(tensor.values)
    for node in graph.node:
        widen_node(node)


def widened(model):
    """A copy of the model in which all narrow floats are float64: constants, casts to them, declared types."""
    model = copy.deepcopy(model)
    widen_graph(model.graph)
    for function in model.functions:
        for value in function.value_info:
            widen_type(value.type)
        for node in function.node:
            widen_node(node)
    return model


def by_the_standard(model, inputs):
    """Outputs of ONNX's reference evaluator in float64, by name. Raises whatever it raises where it cannot."""
    from onnx.reference import ReferenceEvaluator
    wide = {name: array.astype(np.float64) if is_float(array.dtype) else array for name, array in inputs.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        outputs = ReferenceEvaluator(widened(model)).run(None, wide)
    return dict(zip((output.name for output in model.graph.output), outputs))


def sides_with_us(ours, theirs, exact, tolerance):
    """Whether float64 outputs `exact` are within the tolerance of ours and farther from ONNX Runtime's."""
    exact = np.asarray(exact)
    if not is_float(theirs.dtype) or exact.dtype != np.float64 or exact.shape != ours.shape:
        return False
    mine, other = (distance(array.astype(np.float64), exact) for array in (ours, theirs))
    return mine <= tolerance and mine < other


def faults(ours, theirs, tolerance, standard):
    """What is wrong with our outputs, a line each; `standard()` gives the float64 outputs or raises."""
    if set(ours) != set(theirs):
        return [f"expected outputs {sorted(theirs)}, found {sorted(ours)}"]
    far = {name: distance(ours[name], theirs[name]) for name in theirs}
    far = {name: off for name, off in far.items() if not off <= tolerance}
    exact, reason = {}, "is not asked about types, shapes and integers"
    if any(same_kind(ours[name], theirs[name]) for name in far):
        try:
            exact, reason = standard(), "does not side with us"
        except Exception as error:  # what it cannot do, it says in its own way
            reason = f"cannot say: {type(error).__name__}: {error}"[:200]
    return [f"output {name}: {off:.3g} from ONNX Runtime (types {ours[name].dtype} {ours[name].shape}, "
            f"{theirs[name].dtype} {theirs[name].shape}); the reference evaluator in float64 {reason}"
            for name, off in far.items()
            if not (same_kind(ours[name], theirs[name]) and name in exact
                    and sides_with_us(ours[name], theirs[name], exact[name], tolerance))]


def same_kind(ours, theirs):
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and is_float(theirs.dtype)
