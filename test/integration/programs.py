"""Programs of many ds ops as MLIR text, each result with the numbers that NumPy expects of it."""
import os

import numpy as np

from kit import expect, run_guarded, run_inputs, tool

SEED = int(os.environ.get("DS_SEED", np.random.SeedSequence().entropy % (1 << 32)))
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.float32, "i1": np.bool_,
          **{f"{sign}i{bits}": np.dtype(f"{sign}int{bits}").type for sign in ("", "u") for bits in (8, 16, 32, 64)}}
# Relative error that one operation may have, by element type.
EPSILON = {"f32": 2e-6, "f64": 1e-14, "f16": 1.1e-3, "bf16": 8e-3}
VARIANTS = ["--mcpu=x86-64-v3", "--mcpu=host", "--reference", "--reference=f64"]


def some(choices, count):
    """So many of what would take too long as a whole, in their order: each seed, and each commit has its own, draws anew."""
    choices = list(choices)
    chosen = np.random.default_rng([SEED, len(choices)]).permutation(len(choices))[:count]
    return [choices[i] for i in sorted(chosen)]


def rounded(array, element):
    """To what a tensor of this type holds; bf16 is kept as f32."""
    with np.errstate(all="ignore"):
        array = np.asarray(array).astype(DTYPES[element])
    if element != "bf16":
        return array
    bits = array.view(np.uint32)
    even = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return np.where(np.isnan(array), array, (even & np.uint32(0xFFFF0000)).view(np.float32))


class Value:
    def __init__(self, name, element, dims, array):
        self.name, self.element, self.dims, self.array = name, element, dims, array

    @property
    def type(self):
        return f"tensor<{''.join(('?' if isinstance(d, str) else str(d)) + 'x' for d in self.dims)}{self.element}>"

    @property
    def wide(self):
        return self.array.astype(np.float64) if self.element in EPSILON else self.array


class Program:
    def __init__(self, seed=None):
        self.seed = SEED if seed is None else seed
        self.random = np.random.default_rng(self.seed)
        self.arguments, self.body, self.checks, self.recipes = [], [], [], []

    def input(self, array, element, dims=None):
        """An input; names in `dims` make axes dynamic. bf16 comes as f32 and is cast, which is exact."""
        array = rounded(array, element)
        dims = list(array.shape) if dims is None else dims
        stored = "f32" if element == "bf16" else element
        value = Value(f"%a{len(self.arguments)}", stored, dims, array)
        self.arguments.append(value)
        return self.op("ds.cast {0} to bf16", [value], "bf16", dims, array) if element == "bf16" else value

    def constant(self, text, element, array):
        value = Value(f"%v{len(self.body)}", element, list(array.shape), array)
        self.body.append(f"{value.name} = ds.constant dense<{text}> : {value.type}")
        return value

    def weight(self, array, folder):
        number = len(self.recipes)
        path = folder / f"w{number}.bin"
        path.write_bytes(array.tobytes())
        value = Value(f"%v{len(self.body)}", "f32", list(array.shape), array)
        self.recipes.append(f'ds.recipe @w{number} {{\n  %0 = ds.source "{path}" [0, {array.nbytes}] : {value.type}\n'
                            f"  ds.yield %0 : {value.type}\n}}\n")
        self.body.append(f"{value.name} = ds.weight @w{number} : {value.type}")
        return value

    def op(self, text, operands, element, dims, expected):
        return self.ops(text, operands, [(element, dims, expected)])[0]

    def ops(self, text, operands, results):
        names = f"%v{len(self.body)}"
        values = [Value(f"{names}#{i}" if len(results) > 1 else names, element, list(dims), expected)
                  for i, (element, dims, expected) in enumerate(results)]
        prefix = names + (f":{len(results)}" if len(results) > 1 else "")
        types = ", ".join(value.type for value in values)
        function = f"({', '.join(operand.type for operand in operands)}) -> ({types})" if operands else types
        self.body.append(f"{prefix} = {text.format(*(operand.name for operand in operands))} : {function}")
        return values

    def check(self, value, what, rtol=None, scale=None):
        """`scale`: absolute error is measured against this magnitude, where sums cancel."""
        self.checks.append((value, what, rtol, scale))
        return value

    def test(self, text, operands, element, dims, expected, rtol=None, scale=None, what=None):
        what = what or f"{text} of {', '.join(operand.type for operand in operands)}"
        return self.check(self.op(text, operands, element, dims, expected), what, rtol, scale)

    def text(self):
        def dims(value):
            return ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in value.dims)
        arguments = ",\n    ".join(f'{value.name}: {value.type} {{ds.name = "{value.name[1:]}", ds.dims = [{dims(value)}]}}'
                                   for value in self.arguments)
        results = ",\n    ".join(f'{value.type} {{ds.name = "r{i}"}}' for i, (value, *_) in enumerate(self.checks))
        return (f"func.func @main({arguments})\n    -> ({results}) attributes {{ds.entry}} {{\n  "
                + "\n  ".join(self.body) + f"\n  return {', '.join(value.name for value, *_ in self.checks)} : "
                f"{', '.join(value.type for value, *_ in self.checks)}\n}}\n" + "".join(self.recipes))

    def run(self, folder, options, run_options=(), code=0, inputs=None):
        (folder / "program.mlir").write_text(self.text())
        tool("ds-opt", folder / "program.mlir", "-o", folder / "program.dsp", *options)
        np.savez(folder / "in.npz", **{value.name[1:]: value.array for value in inputs or self.arguments})
        files = folder / "program.dsp", folder / "in.npz"
        if code:
            run_guarded(*files, None, *run_options, code=code)
            return tool("ds-run", files[0], "--inputs", files[1], "--output", folder / "out.npz", *run_options, code=code)
        outputs = run_inputs(*files, folder / "out.npz", *run_options)
        run_guarded(*files, outputs, *run_options)
        return [outputs[f"r{i}"] for i in range(len(self.checks))]

    def verify(self, folder, variants=VARIANTS):
        """Compiles and runs all variants and reports every result that is off."""
        wrong = []
        for variant in variants:
            for actual, (value, what, rtol, scale) in zip(self.run(folder, [variant]), self.checks):
                tolerance = EPSILON.get(value.element, 0) if rtol is None else rtol
                if message := difference(actual, value, tolerance, scale):
                    wrong.append(f"{variant}: {what}: {message}")
        expect(not wrong, f"DS_SEED={self.seed}: {len(wrong)} wrong results\n" + "\n".join(wrong[:12]))


def difference(actual, value, rtol, scale):
    expected = np.asarray(value.array)
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    if value.element not in EPSILON:
        bad = actual.astype(expected.dtype) != expected
        if actual.dtype != DTYPES[value.element]:
            return f"type {actual.dtype}, expected {value.element}"
    else:
        with np.errstate(all="ignore"):
            e, a = rounded(expected, value.element).astype(np.float64), actual.astype(np.float64)
            least = np.finfo(np.float16 if value.element == "f16" else DTYPES[value.element]).tiny
            finite = np.isfinite(e)
            bound = rtol * (np.abs(e) if scale is None else np.maximum(np.abs(e), scale)) + least
            bad = np.where(finite, ~(np.abs(a - e) <= bound), ~((a == e) | (np.isnan(a) & np.isnan(e))))
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{bad.sum()} of {bad.size} differ, first at {list(at)}: {actual[at]!r}, expected {expected[at]!r}"
