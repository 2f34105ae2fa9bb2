"""Accuracy of the functions that codegen/cpu/ExpandMath.cpp expands, over f32 arguments of all exponents."""
import math

import numpy as np

from kit import case, compile_model, expect, tool

# Greatest error in units in the last place, as measured; ExpandMath.cpp states the same numbers.
BOUNDS = {"exp": 1.0, "log": 0.8, "tanh": 1.4, "erf": 1.0}
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
        return getattr(np, function)(x)


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


@case
def math_functions_are_accurate(folder):
    x = np.linspace(0, 2**32 - 1, POINTS).astype(np.uint64).astype(np.uint32).view(np.float32)
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
