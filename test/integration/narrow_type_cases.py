"""Element types of at most eight bits: every code of each, against ml_dtypes, through all borders of a package."""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, compile_model, expect, run_package, tool
from programs import SEED

FLOATS = {"FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
          "FLOAT8E5M2": ml_dtypes.float8_e5m2, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
          "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu, "FLOAT4E2M1": ml_dtypes.float4_e2m1fn}
INTEGERS = {"INT4": ml_dtypes.int4, "UINT4": ml_dtypes.uint4, "INT2": ml_dtypes.int2, "UINT2": ml_dtypes.uint2}


def code(name):
    return TensorProto.DataType.Value(name)


def all_of(dtype):
    """Every value of a type, in an odd number, so that the last byte of packed data is not full."""
    bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}.get(np.dtype(dtype).name, 8)
    if "int" in np.dtype(dtype).name:
        low = -(1 << bits - 1) if np.dtype(dtype).name.startswith("int") else 0
        values = np.arange(low, low + (1 << bits)).astype(dtype)
    else:
        values = np.arange(1 << bits, dtype=np.uint8).view(dtype)
    return np.concatenate([values, values[1:4]])


def save(folder, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                              [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs], list(initializers))
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11), str(path))
    return path


def compare(folder, path, inputs, outputs, *options):
    """Files of ONNX's own packing in, and the same compared with what comes out; nothing may differ."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, tensor in enumerate(tensors):
            (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())
    package = compile_model(path, folder, *options)
    tool("ds-run", "compare", package, data, "--rtol=0", "--atol=0")
    return package


@case(seconds=6)
def every_code_survives(folder):
    for name, dtype in {**FLOATS, **INTEGERS}.items():
        values = all_of(dtype)
        n = len(values)
        tensor = numpy_helper.from_array(values, "x")
        wide = values.astype(np.float32)
        nodes = [helper.make_node("Cast", ["x"], ["wide"], to=code("FLOAT")), helper.make_node("Identity", ["x"], ["same"]),
                 helper.make_node("Concat", ["stored", "x"], ["both"], axis=0),
                 helper.make_node("Cast", ["wide"], ["back"], to=code(name), saturate=0, **(
                     {"round_mode": "nearest"} if name == "FLOAT8E8M0" else {})),
                 helper.make_node("Shape", ["x"], ["shape"])]
        path = save(folder, nodes, [("x", code(name), [n])],
                    [("wide", code("FLOAT"), [n]), ("same", code(name), [n]), ("both", code(name), [2 * n]),
                     ("back", code(name), [n]), ("shape", code("INT64"), [1])],
                    [numpy_helper.from_array(values, "stored")])
        both = numpy_helper.from_array(np.concatenate([values, values]), "both")
        expected = [numpy_helper.from_array(wide, "wide"), tensor, both, tensor,
                    numpy_helper.from_array(np.array([n]), "shape")]
        for options in ([], ["--reference"], ["--reference=f64"]):
            compare(folder, path, [tensor], expected, *options)


@case
def large_weights_are_unpacked(folder):
    random = np.random.default_rng(SEED)
    for name, dtype in {**FLOATS, **INTEGERS}.items():
        values = random.choice(all_of(dtype), (61, 83))  # more than a constant may have, and an odd number
        path = save(folder, [helper.make_node("Cast", ["w"], ["y"], to=code("FLOAT")),
                             helper.make_node("Transpose", ["w"], ["t"])], [],
                    [("y", code("FLOAT"), [61, 83]), ("t", code(name), [83, 61])], [numpy_helper.from_array(values, "w")])
        compare(folder, path, [], [numpy_helper.from_array(values.astype(np.float32), "y"),
                                   numpy_helper.from_array(np.ascontiguousarray(values.T), "t")])


@case
def rounding_to_narrow_floats(folder):
    random = np.random.default_rng(SEED)
    for name, dtype in FLOATS.items():
        if name == "FLOAT8E8M0":
            continue
        grid = all_of(dtype).astype(np.float64)
        grid = np.unique(grid[np.isfinite(grid)])
        ties = (grid[1:] + grid[:-1]) / 2
        x = np.concatenate([grid, ties, np.nextafter(ties.astype(np.float32), np.inf), np.nextafter(ties.astype(np.float32), -np.inf),
                            random.standard_normal(200) * grid.max() / 3, [np.inf, -np.inf, np.nan, 1e30, -1e30, -0.0]])
        x = x.astype(np.float32)
        most = np.float32(grid.max())
        n = len(x)
        for saturate in (0, 1):
            with np.errstate(all="ignore"):
                y = (np.clip(x, -most, most) if saturate else x).astype(dtype)
            path = save(folder, [helper.make_node("Cast", ["x"], ["y"], to=code(name), saturate=saturate)],
                        [("x", code("FLOAT"), [n])], [("y", code(name), [n])])
            compare(folder, path, [numpy_helper.from_array(x, "x")], [numpy_helper.from_array(y, "y")])
    powers = np.ldexp(np.float32(1), np.arange(-130, 128)).astype(np.float32)
    x = np.concatenate([powers, powers * np.float32(1.25), powers[:-1] * np.float32(1.75), [np.nan, 0]]).astype(np.float32)
    exponent = np.log2(np.where(x > 0, x, 2.0**-127).astype(np.float64))
    ceiling, floor = (2.0**np.clip(to(exponent), -127, 127) for to in (np.ceil, np.floor))
    for mode, y in (("up", ceiling), ("down", floor)):
        y = np.where(np.isnan(x), np.nan, y).astype(np.float32)
        path = save(folder, [helper.make_node("Cast", ["x"], ["e"], to=code("FLOAT8E8M0"), round_mode=mode),
                             helper.make_node("Cast", ["e"], ["y"], to=code("FLOAT"))],
                    [("x", code("FLOAT"), [len(x)])], [("y", code("FLOAT"), [len(x)])])
        compare(folder, path, [numpy_helper.from_array(x, "x")], [numpy_helper.from_array(y, "y")])


@case
def quantization_to_narrow_types(folder):
    random = np.random.default_rng(SEED)
    x = (random.standard_normal((6, 8)) * 10).astype(np.float32)
    scale = random.uniform(0.5, 2, (6, 4)).astype(np.float32)  # blocks of two along axis 1
    wide = np.repeat(scale, 2, axis=1)
    for name, dtype in INTEGERS.items():
        values = all_of(dtype).astype(np.int32)
        zero = random.choice(values, (6, 4))
        q = np.clip(np.rint(x / wide) + np.repeat(zero, 2, 1), values.min(), values.max())
        y = ((q - np.repeat(zero, 2, 1)) * wide).astype(np.float32)
        constants = [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(zero.astype(dtype), "z")]
        path = save(folder, [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1, block_size=2),
                             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1, block_size=2)],
                    [("x", code("FLOAT"), [6, 8])], [("q", code(name), [6, 8]), ("y", code("FLOAT"), [6, 8])], constants)
        compare(folder, path, [numpy_helper.from_array(x, "x")],
                [numpy_helper.from_array(q.astype(dtype), "q"), numpy_helper.from_array(y, "y")])


@case
def numpy_files_of_narrow_types(folder):
    path = save(folder, [helper.make_node("Identity", ["a"], ["x"]), helper.make_node("Identity", ["b"], ["y"])],
                [("a", code("INT4"), [3]), ("b", code("FLOAT8E4M3FN"), [3])],
                [("x", code("INT4"), [3]), ("y", code("FLOAT8E4M3FN"), [3])])
    package = compile_model(path, folder)
    given = {"a": np.array([-8, 7, 3], np.int8), "b": np.array([1.5, -448, 0.25], np.float32)}
    found = run_package(package, given, folder)
    expect(found["x"].dtype == np.int8 and np.array_equal(found["x"], given["a"]), f"i4 as i8: {found['x']}")
    expect(found["y"].dtype == np.float32 and np.array_equal(found["y"], given["b"]), f"f8 as f32: {found['y']}")
    np.savez(folder / "bad.npz", **{**given, "a": np.array([0, 9, 0], np.int8)})
    tool("ds-run", package, "--inputs", folder / "bad.npz", code=1,
         says="input 'a': element 1: found 9, which i4 cannot hold")


@case(seconds=8)
def elementwise_functions_of_every_length(folder):
    """Narrow elements are walked in wider vectors, then in short ones, then one by one; rows begin anywhere in them."""
    random = np.random.default_rng(SEED)
    dtypes = {"UINT8": np.uint8, "INT8": np.int8, "UINT16": np.uint16, "INT16": np.int16}
    nodes, inputs, outputs, functions = [], [], [], {}
    for name, dtype in dtypes.items():
        inputs += [(f"x{name}", code(name), [3, "n"]), (f"y{name}", code(name), ["n"]), (f"c{name}", code(name), [3, 1])]
        unsigned = name.startswith("U")
        both = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum,
                "BitwiseAnd": np.bitwise_and, "BitwiseXor": np.bitwise_xor, "Less": np.less, "Equal": np.equal,
                **({} if unsigned else {"Neg": np.negative, "Abs": np.abs}), "BitwiseNot": np.invert}
        for op, function in both.items():
            for other in ["y", "c"] if function.nin == 2 else [""]:
                result = f"{op}{name}{other}"
                nodes.append(helper.make_node(op, [f"x{name}"] + [other + name] * bool(other), [result]))
                outputs.append((result, code("BOOL" if op in ("Less", "Equal") else name), [3, "n"]))
                functions[result] = (function, name, other)
    inputs += [("p", code("BOOL"), [3, "n"]), ("q", code("BOOL"), ["n"])]
    logic = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
    nodes += [helper.make_node(op, ["p", "q"], [op]) for op in logic] + [helper.make_node("Not", ["p"], ["Not"])]
    nodes += [helper.make_node("Where", ["q", "xINT8", "cINT8"], ["chosen"]),
              helper.make_node("Cast", ["xINT8"], ["longer"], to=code("INT16")),
              helper.make_node("Cast", ["xUINT16"], ["shorter"], to=code("UINT8"))]
    outputs += [(op, code("BOOL"), [3, "n"]) for op in [*logic, "Not"]]
    outputs += [("chosen", code("INT8"), [3, "n"]), ("longer", code("INT16"), [3, "n"]), ("shorter", code("UINT8"), [3, "n"])]
    path = save(folder, nodes, inputs, outputs)
    for cpu in ("x86-64-v3", "host"):
        package = compile_model(path, folder, f"--mcpu={cpu}")
        for n in (1, 7, 16, 31, 33, 63, 65, 95, 200):
            given = {}
            for name, dtype in dtypes.items():
                for operand, shape in (("x", (3, n)), ("y", (n,)), ("c", (3, 1))):
                    limits = np.iinfo(dtype)
                    given[operand + name] = random.integers(limits.min, limits.max + 1, shape).astype(dtype)
            given |= {"p": random.random((3, n)) < 0.5, "q": random.random(n) < 0.5}
            wanted = {op: function(given["p"], given["q"]) for op, function in logic.items()} | {
                "Not": ~given["p"], "chosen": np.where(given["q"], given["xINT8"], given["cINT8"]),
                "longer": given["xINT8"].astype(np.int16), "shorter": given["xUINT16"].astype(np.uint8)}
            for result, (function, name, other) in functions.items():
                wanted[result] = function(given["x" + name], *([given[other + name]] if other else []))
            found = run_package(package, given, folder)
            for result, array in wanted.items():
                expect(found[result].dtype == array.dtype and np.array_equal(found[result], array),
                       f"{cpu}, {n} elements: {result}")
