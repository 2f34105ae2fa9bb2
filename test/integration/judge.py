"""Who is right where we and ONNX Runtime differ: distances of arrays, and a judge that shares no code with the compiler.

ONNX Runtime's word stands for shapes, types, integers and booleans. Its floats are overruled only where ONNX's reference
evaluator, run in float64 on a copy of the model that is widened here, is where we are and farther from ONNX Runtime.
The copy rounds where the model says so: by a Cast to fewer bits.
"""
import math
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NARROW = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
# Attributes that name the element type of a result, or of what is computed on the way.
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")
LOST_SHARE = 1 / 8  # of the numbers of an output may be half of themselves off; sums that cancel are fewer


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


def is_lost(actual, expected, tolerance):
    """Whether many numbers are zeros or their like, which `distance` does not see beside much larger ones.

    Only numbers that rounding to the type, or the tolerance, leaves something of count; for arrays that it finds near.
    """
    if not is_float(actual.dtype) or not is_float(expected.dtype) or actual.shape != expected.shape:
        return False
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        largest = np.max(np.abs(e), initial=0, where=np.isfinite(e))
        counted = np.isfinite(e) & (np.abs(e) > largest * max(tolerance / 100, 16 * float(ml_dtypes.finfo(actual.dtype).eps)))
        off = counted & (np.abs(a - e) > 0.5 * np.abs(e))
    return bool(np.sum(off) > LOST_SHARE * np.sum(counted))


def is_near(actual, expected, tolerance):
    return distance(actual, expected) <= tolerance and not is_lost(actual, expected, tolerance)


def widen_type(kind):
    what = kind.WhichOneof("value")
    if what == "tensor_type" and kind.tensor_type.elem_type in NARROW:
        kind.tensor_type.elem_type = TensorProto.DOUBLE
    elif what in ("sequence_type", "optional_type"):
        widen_type(getattr(kind, what).elem_type)


def widen_tensor(tensor):
    if tensor.data_type in NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def rounded_to(node, types):
    """The narrow type that a node rounds its operand to, or None; `types` are those of the model as it was, by name."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in ("Cast", "CastLike"):
        return None
    to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), None)
    to = types.get(node.input[1]) if node.op_type == "CastLike" else to
    rounds = to in NARROW[1:] or (to == TensorProto.FLOAT and types.get(node.input[0], TensorProto.FLOAT) not in NARROW)
    return to if rounds else None


def widen_node(node, types):
    """The nodes that stand for it in the widened copy."""
    to = rounded_to(node, types)
    if to is not None:
        narrow = node.output[0] + "/narrow"
        return [helper.make_node("Cast", node.input[:1], [narrow], to=to),
                helper.make_node("Cast", [narrow], node.output, to=TensorProto.DOUBLE)]
    for attribute in node.attribute:
        if attribute.name in TYPE_ATTRIBUTES and attribute.i in NARROW:
            attribute.i = TensorProto.DOUBLE
        elif attribute.type == onnx.AttributeProto.TENSOR:
            widen_tensor(attribute.t)
        elif attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
            widen_tensor(attribute.sparse_tensor.values)
        elif attribute.type == onnx.AttributeProto.GRAPH:
            widen_graph(attribute.g, types)
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            numbers = np.array(helper.get_attribute_value(attribute), np.float64)
            attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(numbers)))
    if node.op_type == "ConstantOfShape" and not node.attribute:  # zeros of f32
        node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))
    return [node]


def widen_nodes(owner, values, types):
    """`owner`, a graph or a function, with `values` of stated types; `types` are those from outside."""
    types = types | {value.name: value.type.tensor_type.elem_type for value in values if value.type.tensor_type.elem_type}
    nodes = [wide for node in owner.node for wide in widen_node(node, types)]
    del owner.node[:]
    owner.node.extend(nodes)
    for value in values:
        widen_type(value.type)


def widen_graph(graph, types):
    types = types | {tensor.name: tensor.data_type for tensor in graph.initializer}
    widen_nodes(graph, [*graph.input, *graph.output, *graph.value_info], types)
    for tensor in graph.initializer:
        widen_tensor(tensor)
    for tensor in graph.sparse_initializer:
        widen_tensor(tensor.values)


def widened(model):
    """A copy of the model in which all narrow floats are float64: constants, declared types, results but those of casts
    to fewer bits, which are rounded first."""
    model = onnx.shape_inference.infer_shapes(model)  # states the types of values
    widen_graph(model.graph, {})
    for function in model.functions:
        widen_nodes(function, function.value_info, {})
    return model


def wide_operators():
    """Operators that ONNX's reference evaluator rounds to float32, in float64."""
    from onnx.reference.op_run import OpRun
    erf = np.vectorize(math.erf, otypes=[np.float64])

    class Erf(OpRun):
        op_domain = ""

        def _run(self, x):
            return (erf(x),)

    class Gelu(OpRun):
        op_domain = ""

        def _run(self, x, approximate="none"):
            return (x / 2 * (1 + (np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) if approximate == "tanh"
                                  else erf(x / np.sqrt(2)))),)
    return [Erf, Gelu]


def by_the_standard(model, inputs):
    """Outputs of ONNX's reference evaluator in float64, by name. Raises whatever it raises where it cannot."""
    from onnx.reference import ReferenceEvaluator
    wide = {name: array.astype(np.float64) if is_float(array.dtype) else array for name, array in inputs.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        outputs = ReferenceEvaluator(widened(model), new_ops=wide_operators()).run(None, wide)
    return dict(zip((output.name for output in model.graph.output), outputs))


def sides_with_us(ours, theirs, exact, tolerance):
    """Whether float64 outputs `exact` are within the tolerance of ours and farther from ONNX Runtime's."""
    exact = np.asarray(exact)
    if not is_float(theirs.dtype) or exact.dtype != np.float64 or exact.shape != ours.shape:
        return False
    mine, other = (distance(array.astype(np.float64), exact) for array in (ours, theirs))
    return mine <= tolerance and not is_lost(ours, exact, tolerance) and (mine < other or is_lost(theirs, exact, tolerance))


def faults(ours, theirs, tolerance, standard):
    """What is wrong with our outputs, {name: a line}; `standard()` gives the float64 outputs or raises."""
    if set(ours) != set(theirs):
        return {name: f"expected outputs {sorted(theirs)}, found {sorted(ours)}" for name in sorted(set(ours) ^ set(theirs))[:1]}
    far = [name for name in theirs if not is_near(ours[name], theirs[name], tolerance)]
    exact, reason = {}, "is not asked about types, shapes and integers"
    if any(same_kind(ours[name], theirs[name]) for name in far):
        try:
            exact, reason = standard(), "does not side with us"
        except Exception as error:  # what it cannot do, it says in its own way
            reason = f"cannot say: {type(error).__name__}: {error}"[:200]
    return {name: f"output {name}: {distance(ours[name], theirs[name]):.3g} from ONNX Runtime"
                  f"{' and many small numbers lost' if is_lost(ours[name], theirs[name], tolerance) else ''} "
                  f"(types {ours[name].dtype} {ours[name].shape}, {theirs[name].dtype} {theirs[name].shape}); "
                  f"the reference evaluator in float64 {reason}"
            for name in far
            if not (same_kind(ours[name], theirs[name]) and name in exact
                    and sides_with_us(ours[name], theirs[name], exact[name], tolerance))}


def same_kind(ours, theirs):
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and is_float(theirs.dtype)
