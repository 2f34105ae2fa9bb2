"""Attention over heads that lie anywhere: behind transposes and slices of its operands, and before a transpose of its
result, against softmax in NumPy's float64."""
import numpy as np
import onnx
from onnx import parser

from kit import case, compile_model, expect, processors, run_package, tool
from programs import SEED, rounded, some

FUSIONS = ("none", "generic", "specialized")
# Sums of up to 70 products of normal numbers, whose exponentials weigh as many.
TOLERANCE = {"f32": 2e-5, "f64": 1e-12, "f16": 2e-2}


def attention(q, k, v, scale, mask=None):
    """[B, H, S, D] by [B, G, T, D] and [B, G, T, E]; each of the G heads serves H / G queries."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = scale * q @ np.swapaxes(k, -1, -2) + (0 if mask is None else mask)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf)) if scores.shape[-1] else scores
    total = weights.sum(-1, keepdims=True)
    return (weights / np.where(total == 0, 1, total)) @ v


class Heads:
    """One entry function of several attentions; `apply` repeats in NumPy what an operand goes through."""

    def __init__(self, name):
        self.random = np.random.default_rng([SEED, *name.encode()])
        self.arguments, self.body, self.results, self.checks, self.inputs, self.count = [], [], [], [], [], 0

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    @staticmethod
    def type(dims, element):
        return f"tensor<{''.join(('?' if isinstance(d, str) else str(d)) + 'x' for d in dims)}{element}>"

    @staticmethod
    def sizes(dims):
        return "[" + ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in dims) + "]"

    def moved(self, dims, element, steps, movesLast):
        """A new input of other sizes, and the transposes and slices that make a value of `dims` of it."""
        applied, dims = [], list(dims)
        for _ in range(steps):
            if self.random.random() < 0.6:
                order = self.random.permutation(4) if movesLast else [*self.random.permutation(3), 3]
                before = [None] * 4
                for to, source in enumerate(order):
                    before[source] = dims[to]
                permutation = [int(axis) for axis in order]
                applied.append((f"ds.transpose {{0}} {permutation}", dims, lambda x, sizes, p=tuple(permutation): x.transpose(p)))
            else:
                before, starts, strides = list(dims), [0] * 4, [1] * 4
                for axis in range(4):
                    size, step = dims[axis], int(self.random.choice([1, 1, 2, 3, -1, -2]))
                    if isinstance(size, str):  # the last elements, or all of them backwards
                        if size == "s" and step > 1:
                            before[axis], starts[axis] = "u", "u - s"
                        elif step < 0:
                            strides[axis], starts[axis] = -1, f"{size} - 1"
                        continue
                    first = int(self.random.integers(3))
                    reach = (size - 1) * abs(step)
                    before[axis] = first + reach + 1 + int(self.random.integers(2))
                    starts[axis], strides[axis] = (first if step > 0 else first + reach), step
                applied.append((f"ds.slice {{0}} starts {self.sizes(starts)} sizes {self.sizes(dims)} steps {strides}", dims,
                                lambda x, sizes, starts=starts, strides=strides, dims=dims: x[np.ix_(*(
                                    eval(str(start), {}, sizes) + step * np.arange(sizes.get(size, size))
                                    for start, step, size in zip(starts, strides, dims)))]))
            dims = before
        name = f"%a{len(self.arguments)}"
        self.arguments.append(f'{name}: {self.type(dims, element)} {{ds.name = "{name[1:]}", ds.dims = {self.sizes(dims)}}}')
        self.inputs.append((name[1:], element, dims))
        value, steps = name, []
        for text, after, step in reversed(applied):
            result = self.name()
            self.body.append(f"{result} = {text.format(value)} : ({self.type(dims, element)}) -> {self.type(after, element)}")
            value, dims = result, after
            steps.append(step)

        def compute(env, sizes):
            array = env[name[1:]]
            for step in steps:
                array = step(array, sizes)
            return array
        return value, compute

    def attention(self, element, heads, groups, depth, width, mask=None, moves=True):
        q = ["b", heads, "s", depth]
        k, v = ["b", groups, "t", depth], ["b", groups, "t", width]
        values = [self.moved(dims, element, int(self.random.integers(0, 4)) if moves else 0, movesLast)
                  for dims, movesLast in ((q, self.random.random() < 0.3), (k, True), (v, self.random.random() < 0.3))]
        step = ""
        if mask:
            masks = self.moved(mask, element, 0, False)
            values.append(masks)
            step = f" [add {masks[0]}]"
        result, out = self.name(), ["b", heads, "s", width]
        types = ", ".join(self.type(dims, element) for dims in ([q, k, v] + ([mask] if mask else [])))
        self.body.append(f"{result} = ds.attention {', '.join(value for value, _ in values[:3])}{step} scale 0.5 : ({types}) -> "
                         f"{self.type(out, element)}")
        permutation = [0, 1, 2, 3]
        if self.random.random() < 0.8:
            permutation = [int(axis) for axis in (self.random.permutation(4) if self.random.random() < 0.25 else [*self.random.permutation(3), 3])]
            turned = self.name()
            after = [out[axis] for axis in permutation]
            self.body.append(f"{turned} = ds.transpose {result} {permutation} : ({self.type(out, element)}) -> {self.type(after, element)}")
            result, out = turned, after
        number = len(self.results)
        self.results.append((result, self.type(out, element)))
        self.checks.append((f"y{number}", element, lambda env, sizes: attention(
            *(compute(env, sizes).astype(np.float64) for _, compute in values[:3]), 0.5,
            values[3][1](env, sizes).astype(np.float64) if mask else None).transpose(permutation)))

    def save(self, folder):
        results = ", ".join(f'{kind} {{ds.name = "y{i}"}}' for i, (_, kind) in enumerate(self.results))
        (folder / "heads.mlir").write_text(
            f"func.func @main({', '.join(self.arguments)}) -> ({results}) attributes {{ds.entry}} {{\n  " + "\n  ".join(self.body) +
            f"\n  return {', '.join(value for value, _ in self.results)} : {', '.join(kind for _, kind in self.results)}\n}}\n")
        return folder / "heads.mlir"

    def verify(self, folder, sizes):
        path = self.save(folder)
        packages = [compile_model(path, folder, f"--fusion={fusion}", f"--mcpu={cpu}", name=f"{fusion}-{cpu}.dsp")
                    for fusion, cpu in dict.fromkeys([("none", processors()[-1]), ("specialized", processors()[-1]),
                                                      ("specialized", "x86-64-v3")])]
        for number, size in enumerate(sizes):
            env = {name: rounded(self.random.standard_normal([size.get(dim, dim) for dim in dims]), element)
                   for name, element, dims in self.inputs}
            found = [run_package(package, env, folder, f"--threads={1 + number % 3}") for package in packages]
            for name, element, judge in self.checks:
                expected = judge(env, size)
                for package, results in zip(packages, found):
                    actual, what = results[name], f"{package.stem} {name} of {size} (DS_SEED={SEED})\n{path.read_text()}"
                    expect(actual.shape == expected.shape, f"{what}: found {actual.shape}, expected {expected.shape}")
                    error = np.abs(actual.astype(np.float64) - expected).max(initial=0)
                    expect(error <= TOLERANCE[element], f"{what}: an error of {error}")
                expect(found[0][name].tobytes() == found[1][name].tobytes(), f"{name} of {size} has other bits than without "
                       f"fusion (DS_SEED={SEED})\n{path.read_text()}")


SIZES = [{"b": b, "s": s, "t": t, "u": s + more} for b, s, t, more in
         ((1, 1, 1, 0), (2, 5, 7, 1), (1, 13, 48, 2), (0, 3, 3, 0), (2, 1, 70, 4), (3, 7, 0, 1))]


@case(seconds=9)
def heads_behind_transposes_and_slices(folder):
    h = Heads("views")
    for heads, groups, depth, width in ((2, 2, 4, 4), (4, 2, 16, 16), (3, 1, 5, 7), (1, 1, 1, 1), (2, 1, 1, 48), (1, 1, 64, 3), (6, 2, 17, 32)):
        h.attention("f32", heads, groups, depth, width)
    h.verify(folder, SIZES)


@case(seconds=12)
def masked_heads_and_other_types(folder):
    h = Heads("masked")
    for number, mask in enumerate((["s", "t"], ["b", 1, 1, "t"], ["b", 2, "s", "t"], [2, 1, "t"])):
        h.attention(("f32", "f64", "f16", "f32")[number], 2, 1 + number % 2, 3 + number, 16, mask)
    h.attention("f64", 2, 2, 3, 5)
    h.attention("f16", 2, 1, 4, 3)
    h.verify(folder, SIZES)


@case
def a_mask_that_is_also_the_query(folder):
    """Masks are read from memory, wherever the query is read."""
    text = """func.func @main(%q: tensor<1x?x2x3xf32> {ds.name = "q", ds.dims = [1, "s", 2, 3]}, %k: tensor<1x2x3x3xf32> {ds.name = "k",
    ds.dims = [1, 2, 3, 3]}) -> (tensor<1x2x?x3xf32> {ds.name = "y"}) attributes {ds.entry} {
  %t = ds.transpose %q [0, 2, 1, 3] : (tensor<1x?x2x3xf32>) -> tensor<1x2x?x3xf32>
  %0 = ds.attention %t, %k, %k [add %t] scale 0.5
      : (tensor<1x2x?x3xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<1x2x?x3xf32>) -> tensor<1x2x?x3xf32>
  return %0 : tensor<1x2x?x3xf32>
}
"""
    (folder / "m.mlir").write_text(text)
    package = compile_model(folder / "m.mlir", folder)
    random = np.random.default_rng(SEED)
    q, k = random.standard_normal((1, 5, 2, 3), np.float32), random.standard_normal((1, 2, 3, 3), np.float32)
    t = q.transpose(0, 2, 1, 3).astype(np.float64)
    found = run_package(package, {"q": q, "k": k}, folder)["y"]
    expect(np.abs(found - attention(t, k.astype(np.float64), k.astype(np.float64), 0.5, t)).max() < 1e-5, "the mask is the query")


JOINT = """<ir_version: 8, opset_import: ["" : 15]>
joint (float[b, s, 24] x, float[24, 72] w, float[24, 24] o, float[b, 1, 1, s] m) => (float[b, s, 24] y)
<int64[4] heads = {0, 0, 12, 6}, int64[3] merge = {0, 0, 24}, float scale = {0.25}> {
  joined = MatMul (x, w)
  parts = Reshape (joined, heads)
  qs, ks, vs = Split <axis = 2> (parts)
  q = Transpose <perm = [0, 2, 1, 3]> (qs)
  kt = Transpose <perm = [0, 2, 3, 1]> (ks)
  v = Transpose <perm = [0, 2, 1, 3]> (vs)
  product = MatMul (q, kt)
  scaled = Mul (product, scale)
  scores = Add (scaled, m)
  weights = Softmax <axis = -1> (scores)
  seen = MatMul (weights, v)
  back = Transpose <perm = [0, 2, 1, 3]> (seen)
  context = Reshape (back, merge)
  projected = MatMul (context, o)
  y = Add (projected, x)
}
"""


@case(seconds=10)
def heads_of_a_joint_product(folder):
    onnx.save(parser.parse_model(JOINT), folder / "m.onnx")
    tool("ds-opt", folder / "m.onnx", "-o", folder / "m.mlir", "--stop-after=optimization")
    text = (folder / "m.mlir").read_text()
    region = next((part.split("ds.yield")[0] for part in text.split("ds.fused")[1:] if "ds.attention" in part.split("ds.yield")[0]), "")
    expect(region.count("ds.transpose") + region.count("ds.slice") >= 4, f"heads are moved outside of attention:\n{text}")
    random = np.random.default_rng(SEED)
    for cpu in some(processors(), 3):
        packages = [compile_model(folder / "m.onnx", folder, f"--mcpu={cpu}", f"--fusion={fusion}", name=f"{fusion}.dsp") for fusion in FUSIONS]
        for b, s in ((1, 1), (2, 7), (0, 3), (1, 49)):
            env = {"x": random.standard_normal((b, s, 24)), "w": random.standard_normal((24, 72)) / 5, "o": random.standard_normal((24, 24)) / 5,
                   "m": np.where(random.random((b, 1, 1, s)) < 0.3, -1e4, 0)}
            env = {name: array.astype(np.float32) for name, array in env.items()}
            x, w, o, m = (env[name].astype(np.float64) for name in "xwom")
            q, k, v = (x @ w).reshape(b, s, 3, 4, 6).transpose(2, 0, 3, 1, 4)  # heads of the query come first
            expected = attention(q, k, v, 0.25, m).transpose(0, 2, 1, 3).reshape(b, s, 24) @ o + x
            found = [run_package(package, env, folder)["y"] for package in packages]
            for fusion, y in zip(FUSIONS, found):
                error = np.abs(y - expected).max(initial=0)
                expect(y.shape == expected.shape and error < 5e-5, f"{fusion} {cpu} {b}x{s}: an error of {error} (DS_SEED={SEED})")
                expect(y.tobytes() == found[0].tobytes(), f"{fusion} {cpu} {b}x{s}: other bits than without fusion (DS_SEED={SEED})")
