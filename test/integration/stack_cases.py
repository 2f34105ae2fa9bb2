"""Reductions over stacks, whose parts are combined one by one, against NumPy."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, compile_model, expect, run_package, tool
from programs import SEED

KINDS = {"ReduceMax": np.max, "ReduceMin": np.min, "ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMean": np.mean}
TYPES = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.float16: TensorProto.FLOAT16, np.int32: TensorProto.INT32,
         np.int64: TensorProto.INT64}


@case
def stacks_are_combined(folder):
    """Two to nine parts, along each axis, kept or not; NaN stays, and zeros keep the sign that NumPy gives them."""
    random = np.random.default_rng([SEED, 11])
    inputs, outputs, nodes, constants, wanted = [], [], [], [], []
    for number, (kind, how) in enumerate(KINDS.items()):
        for dtype, code in TYPES.items():
            axis, keep, count = int(random.integers(0, 3)), int(random.integers(0, 2)), int(random.choice([2, 3, 5, 8, 9]))
            name = f"{number}.{code}"
            names = [f"{name}.{i}" for i in range(count)]
            constants.append(numpy_helper.from_array(np.array([axis]), f"{name}.axis"))
            inputs += [helper.make_tensor_value_info(part, code, ["n", 7]) for part in names]
            nodes += [helper.make_node("Unsqueeze", [part, f"{name}.axis"], [f"{part}.own"]) for part in names]
            nodes.append(helper.make_node("Concat", [f"{part}.own" for part in names], [f"{name}.stack"], axis=axis))
            opset13 = kind == "ReduceSum"
            nodes.append(helper.make_node(kind, [f"{name}.stack", *([f"{name}.axis"] if opset13 else [])], [f"{name}.y"], keepdims=keep,
                                          **({} if opset13 else {"axes": [axis]})))
            outputs.append(helper.make_tensor_value_info(f"{name}.y", code, None))
            wanted.append((f"{name}.y", names, dtype, axis, bool(keep), kind, how))
    graph = helper.make_graph(nodes, "stacks", inputs, outputs, constants)
    path = folder / "stacks.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    report = tool("ds-opt", path, "-o", folder / "stacks.dsp", "--report").out
    expect("unstack-reductions: 0 unstacked" not in report, report)
    for rows in (0, 1, 5, 33):
        feed = {}
        for value in inputs:
            dtype = next(t for t, code in TYPES.items() if code == value.type.tensor_type.elem_type)
            x = random.integers(-9, 9, (rows, 7)).astype(dtype)
            if np.issubdtype(dtype, np.floating):
                x = (x + random.standard_normal(x.shape) / 4).astype(dtype)
                x[random.random(x.shape) < 0.1] = random.choice([np.nan, -0.0, 0.0, np.inf])
            feed[value.name] = x
        found = run_package(folder / "stacks.dsp", feed, folder)
        for name, names, dtype, axis, keep, kind, how in wanted:
            stack = np.stack([feed[part] for part in names], axis)
            isFloat = np.issubdtype(dtype, np.floating)
            with np.errstate(all="ignore"):
                if kind == "ReduceMean" and not isFloat:
                    right = np.trunc(stack.sum(axis, keepdims=keep) / len(names))
                    scale = np.abs(right)
                else:
                    right = how(stack.astype(np.float64) if isFloat else stack, axis=axis, keepdims=keep)
                    scale = np.abs(stack.astype(np.float64)).sum(axis, keepdims=keep) if kind != "ReduceProd" else np.abs(right)
            y, what = found[name], f"{kind} of {len(names)} {np.dtype(dtype).name} along {axis}, {rows} rows (DS_SEED={SEED})"
            expect(y.shape == right.shape and y.dtype == dtype, f"{what}: {y.dtype} {y.shape}")
            if kind in ("ReduceMax", "ReduceMin") or not isFloat:
                expect(np.array_equal(y, right.astype(dtype), equal_nan=isFloat), f"{what}: {y} for {right}")
                continue
            same = np.isnan(y) == np.isnan(right)
            finite = np.isfinite(right)
            with np.errstate(all="ignore"):  # a rounding for each part, and one of the result
                bound = (len(names) + 1) * np.finfo(dtype).eps * scale + np.finfo(dtype).tiny
                close = np.where(finite, np.abs(y - right) <= bound, (y == right) | np.isnan(right))
            overflows = np.abs(right) > np.finfo(dtype).max / 2
            expect((same & (close | overflows)).all(), f"{what}: {y[~close]} for {right[~close]}")
