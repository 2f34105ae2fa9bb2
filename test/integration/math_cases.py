"""Accuracy of the functions that codegen/cpu/ExpandMath.cpp expands, over f32 arguments of all exponents, and of the
activations that are made of them."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, compile_model, expect, run_package, tool
from programs import SEED

# Greatest error in units in the last place, as measured and rounded up; ExpandMath.cpp states the same numbers.
BOUNDS = {"exp": 1.1, "expm1": 1.4, "log": 0.9, "log1p": 1.5, "tanh": 1.4, "erf": 1.1, "sin": 1.6, "cos": 1.6, "asin": 1.4,
          "acos": 1.3, "atan": 1.4, "sigmoid": 2.5}
POINTS = 7 * (1 << 19)

PROGRAM = """
func.func @main(%x: tensor<?x7xf32> {{ds.name = "x", ds.dims = ["n", 7]}},
                %ones: tensor<7xf32> {{ds.name = "ones", ds.dims = [7]}}) -> ({results}) attributes {{ds.entry}} {{
  %tail = ds.binary mul %x, %ones : (tensor<?x7xf32>, tensor<7xf32>) -> tensor<?x7xf32>
{body}
  return {values} : {types}
}}
"""


def program():
    """Each function twice: over long rows, which are vectors, and over rows of 7 elements, which are all tail."""
    body, results, values = [], [], []
    for function in BOUNDS:
        for operand in ("x", "tail"):
            values.append(f"%{function}_{operand}")
            body.append(f"  {values[-1]} = ds.unary {function} %{operand} : (tensor<?x7xf32>) -> tensor<?x7xf32>")
            results.append(f'tensor<?x7xf32> {{ds.name = "{function}_{operand}"}}')
    # A multiplication of its own for each function, so that all of them fuse with it.
    text = PROGRAM.format(results=", ".join(results), body="\n".join(body), values=", ".join(values),
                          types=", ".join(["tensor<?x7xf32>"] * len(values)))
    for function in BOUNDS:
        text = text.replace(f"{function} %tail :", f"{function} %tail_{function} :")
    line = next(line for line in text.splitlines() if "%tail =" in line)
    return text.replace(line, "\n".join(line.replace("%tail =", f"%tail_{function} =") for function in BOUNDS))


def exact(function, x):
    with np.errstate(all="ignore"):
        if function == "erf":
            return np.array([math.erf(value) for value in x])
        if function == "sigmoid":
            return 1 / (1 + np.exp(-x))
        return getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(function, function))(x)


def errors_in_ulp(actual, expected):
    with np.errstate(all="ignore"):
        rounded = expected.astype(np.float32)
        finite = np.isfinite(rounded) & np.isfinite(actual)
        expect(np.array_equal(rounded[~finite], actual[~finite], equal_nan=True),
               "NaN and infinity do not come where they should")
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        return np.where(finite, np.abs(actual.astype(np.float64) - expected) / unit, 0)


def run(folder, x, options):
    path = folder / "program.mlir"
    path.write_text(program())
    package = compile_model(path, folder, *options)
    np.savez(folder / "in.npz", x=x.reshape(-1, 7), ones=np.ones(7, np.float32))
    tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz")
    with np.load(folder / "out.npz") as outputs:
        return {name: outputs[name].ravel() for name in outputs}


@case(seconds=12)
def math_functions_are_accurate(folder):
    x = np.linspace(0, 2**32 - 1, POINTS).astype(np.uint64).astype(np.uint32).view(np.float32)
    random, few = np.random.default_rng(SEED), 1 << 18
    with np.errstate(invalid="ignore"):  # zeros of sin and cos come last
        x = np.concatenate([x, random.uniform(-1, 1, few), random.uniform(-66000, 66000, few), random.uniform(-9, 9, few),
                            random.integers(-41000, 41000, 4 * few) * (np.pi / 2)]).astype(np.float32)
    x[:5] = [0.0, -0.0, np.inf, -np.inf, np.nan]
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    reference = {function: exact(function, wide) for function in BOUNDS}
    for cpu in ("x86-64-v3", "host"):
        outputs = run(folder, x, [f"--mcpu={cpu}"])
        for function, bound in BOUNDS.items():
            actual = outputs[f"{function}_x"]
            same = (actual.view(np.uint32) == outputs[f"{function}_tail"].view(np.uint32)) | np.isnan(actual)
            expect(same.all(), f"{cpu}: {function}({x[~same][:3]}) in a vector is not what it is in a tail")
            error = errors_in_ulp(actual, reference[function])
            worst = int(np.argmax(error))
            expect(error[worst] <= bound, f"{cpu}: {function}({x[worst]!r}) = {actual[worst]!r}, {error[worst]:.3f} ulp "
                   f"from {reference[function][worst]!r}; expected at most {bound}")


ELEMENTS = {"f64": (np.float64, TensorProto.DOUBLE), "f32": (np.float32, TensorProto.FLOAT), "f16": (np.float16, TensorProto.FLOAT16),
            "bf16": (np.float32, TensorProto.BFLOAT16)}  # of which NumPy knows no bfloat16


def activation_model(folder, op, attributes, x, element, isConstant):
    """One node between casts where its type is none of NumPy's."""
    dtype, code = ELEMENTS[element]
    stored = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("Cast", ["x"], ["inner"], to=code), helper.make_node(op, ["inner"], ["outer"], **attributes),
             helper.make_node("Cast", ["outer"], ["y"], to=stored)]
    given = [] if isConstant else [helper.make_tensor_value_info("x", stored, ["n"])]
    graph = helper.make_graph(nodes, op, given, [helper.make_tensor_value_info("y", stored, [len(x) if isConstant else "n"])],
                              [numpy_helper.from_array(x, "x")] if isConstant else [])
    path = folder / f"{op}.{element}.{isConstant}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), str(path))
    return path


@case(seconds=12)
def activations_far_and_near(folder):
    """Of numbers far below zero, where 1 + e^x is 1, and near it, where e^x is 1: all digits of the type are right."""
    random = np.random.default_rng(SEED)
    real = lambda value: np.longdouble(np.float32(value))
    softplus = lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    alpha, gamma = real(1.3), real(1.05)
    below = lambda x, scale=1: np.expm1(np.minimum(x, 0) / scale)
    activations = (
        ("Sigmoid", {}, lambda x: np.exp(-softplus(-x)), 4),
        ("Softplus", {}, softplus, 4), ("Mish", {}, lambda x: x * np.tanh(softplus(x)), 8),
        ("Elu", {"alpha": 1.3}, lambda x: np.where(x >= 0, x, alpha * below(x)), 4),
        ("Celu", {"alpha": 1.3}, lambda x: np.where(x >= 0, x, alpha * below(x, alpha)), 5),
        ("Selu", {"alpha": 1.3, "gamma": 1.05}, lambda x: gamma * np.where(x > 0, x, alpha * below(x)), 5))
    far = -random.uniform(10, 103, 60)
    near = np.ldexp(random.uniform(-1, 1, 90), random.integers(-40, 3, 90))
    drawn = np.concatenate([far, near, random.uniform(3, 80, 30), [0.0, 5e4, -5e4, 1, -1]])
    for element, (dtype, _) in ELEMENTS.items():
        x = drawn.astype(dtype)
        if element == "bf16":
            x = (x.view(np.uint32) & 0xffff0000).view(np.float32)
        digits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}[element]
        least = {"f64": -1074, "f32": -149, "f16": -24, "bf16": -133}[element]
        for op, attributes, function, units in activations[digits < 12:]:  # Sigmoid is one op, which fusion need not round
            wanted = function(x.astype(np.longdouble))
            # Of Mish's logarithm the subnormal digits are multiplied by x.
            unit = np.ldexp(np.longdouble(1), np.maximum(np.frexp(wanted)[1] - digits, least + 7 * (op == "Mish" and digits > 11)))
            run = run_package(compile_model(activation_model(folder, op, attributes, x, element, False), folder), {"x": x}, folder)["y"]
            folded = run_package(compile_model(activation_model(folder, op, attributes, x, element, True), folder), {}, folder)["y"]
            expect(run.tobytes() == folded.tobytes(), f"{op} {element}: kernels and folding differ (seed {SEED})")
            # Floats of 16 bits are rounded once.
            bound = units if digits > 11 else 0.51
            error = np.abs(run.astype(np.longdouble) - wanted) / unit
            worst = int(np.argmax(np.where(np.isfinite(run), error, np.inf)))
            expect(error[worst] <= bound, f"{op} {element}: of {x[worst]!r} {run[worst]!r}, expected {wanted[worst]!r}: "
                   f"{error[worst]:.3g} units in the last place, expected at most {bound} (seed {SEED})")


@case(seconds=2)
def gelus_far_and_near(folder):
    """Both flavours of ONNX's Gelu have the errors that dialects/ds/GeluFunctions.h states, judged by math.erfc and math.exp:
    far below zero digits do not cancel."""
    random, root = np.random.default_rng(SEED), math.sqrt(2 / math.pi)
    drawn = np.concatenate([random.standard_normal(4000), random.uniform(-14, 14, 4000), np.ldexp(random.uniform(-1, 1, 400), random.integers(-40, 3, 400)),
                            [0.0, -0.0, 1e30, -1e30, np.inf, np.nan, 60, -60, 11.5, -11.5, -12, -20]])
    flavours = {"none": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)),
                "tanh": lambda x: x / (1 + math.exp(min(-2 * root * (x + 0.044715 * x ** 3), 700))) if x > -26 else -0.0}
    for element, (dtype, _) in ELEMENTS.items():
        with np.errstate(over="ignore"):
            x = drawn.astype(dtype)
        if element == "bf16":
            x = (x.view(np.uint32) & 0xffff0000).view(np.float32)
        half = {"f64": 2.0 ** -52, "f32": 2.0 ** -24, "f16": 2.0 ** -11, "bf16": 2.0 ** -8}[element]  # of a unit, relative
        least = {"f64": 0, "f32": 2.0 ** -149, "f16": 2.0 ** -25, "bf16": 2.0 ** -134}[element]
        for flavour, function in flavours.items():
            wanted = np.array([function(v) if np.isfinite(v) else v for v in x.astype(np.float64)])
            size = np.abs(np.where(np.isfinite(wanted), x, 0).astype(np.float64))
            if flavour == "tanh":  # the exponential of an argument that was rounded, up to where it overflows
                error = np.abs(wanted) * (4e-7 + 4e-7 * size ** 2) + 4e-38 if element != "f64" else np.abs(wanted) * 1e-12 + 1e-300
            elif element == "f64":  # 1 + erf
                error = 4e-16 * size
            else:
                error = np.where(x > 0, 3e-7 * size, np.minimum(4e-8, np.where(size <= 4, 3e-6 * np.abs(wanted), np.where(size <= 6, 1.2e-4 * np.abs(wanted), np.inf))))
            run = run_package(compile_model(activation_model(folder, "Gelu", {"approximate": flavour}, x, element, False), folder), {"x": x}, folder)["y"]
            folded = run_package(compile_model(activation_model(folder, "Gelu", {"approximate": flavour}, x, element, True), folder), {}, folder)["y"]
            isWhole = element in ("f32", "f64")  # fusion need not round what one op gives
            expect(not isWhole or ((run == folded) & (np.signbit(run) == np.signbit(folded)) | np.isnan(run) & np.isnan(folded)).all(),
                   f"Gelu {flavour} {element}: kernels and folding differ (seed {SEED})")
            with np.errstate(invalid="ignore"):
                fits = (np.abs(run.astype(np.float64) - wanted) <= error + np.abs(wanted) * half + least) | (run == wanted) | np.isnan(x) & np.isnan(run)
            fits |= (x == -np.inf) & (np.isnan(run) | (run == 0))  # times 0
            worst = int(np.argmin(fits))
            expect(fits.all(), f"Gelu {flavour} {element}: of {x[worst]!r} {run[worst]!r}, expected {wanted[worst]!r} "
                   f"+- {error[worst]:.3g} and its rounding (seed {SEED})")
