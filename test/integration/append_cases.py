"""Attention that puts its keys and values together: cached rows and new ones, heads that are normalized and turned on the
way, parts of one product. Against NumPy in float64; without fusion and with other thread counts the bits are the same."""
import re

import numpy as np

from head_cases import attention
from kit import case, compile_model, expect, processors, run_package, tool
from long_attention_cases import scratches
from programs import SEED, some

SIZES = [{"b": b, "s": s, "p": p} for b, s, p in ((1, 1, 0), (1, 1, 1), (2, 1, 7), (3, 5, 13), (1, 3, 70), (0, 2, 3), (2, 13, 0), (1, 1, 131))]


def text_of(dims):
    return "tensor<" + "".join(("?" if isinstance(d, str) else str(d)) + "x" for d in dims) + "f32>"


def list_of(dims):
    return "[" + ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in dims) + "]"


class Layers:
    """Attentions of one program; every value is its text beside a function of the inputs and sizes."""

    def __init__(self, name, rows="s"):
        self.s, self.both = rows, f"p + {rows}"
        self.random = np.random.default_rng([SEED, *name.encode()])
        self.arguments, self.inputs, self.body, self.results, self.judges = [], [], [], [], []

    def chance(self, share=0.5):
        return self.random.random() < share

    def input(self, dims):
        name = f"a{len(self.arguments)}"
        self.arguments.append(f'%{name}: {text_of(dims)} {{ds.name = "{name}", ds.dims = {list_of(dims)}}}')
        self.inputs.append((name, dims))
        return f"%{name}", dims, lambda env, sizes: env[name].astype(np.float64)

    def op(self, text, operands, dims, judge):
        name = f"%v{len(self.body)}"
        types = ", ".join(text_of(operand[1]) for operand in operands)
        self.body.append(f"{name} = {text.format(*(operand[0] for operand in operands))} : ({types}) -> {text_of(dims)}")
        return name, dims, lambda env, sizes: judge(*(operand[2](env, sizes) for operand in operands), sizes)

    def output(self, value):
        self.results.append(value)

    def reshape(self, x, dims):
        return self.op(f"ds.reshape {{0}} {list_of(dims)}", [x], dims, lambda a, z: a.reshape([z.get(d, d) for d in dims]))

    def transpose(self, x, order):
        return self.op(f"ds.transpose {{0}} {list(order)}", [x], [x[1][axis] for axis in order], lambda a, z: a.transpose(order))

    def slice(self, x, axis, start, size):
        dims = [*x[1][:axis], size, *x[1][axis + 1:]]
        starts = [start if i == axis else 0 for i in range(len(dims))]
        return self.op(f"ds.slice {{0}} starts {list_of(starts)} sizes {list_of(dims)} steps {[1] * len(dims)}", [x], dims,
                       lambda a, z: np.take(a, range(start, start + size), axis))

    def norm(self, x):
        scale = self.input([x[1][-1]])
        return self.op(f"ds.rms_norm {{0}}, {{1}} axis {len(x[1]) - 1} epsilon 1.0e-5", [x, scale], x[1],
                       lambda a, g, z: a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5) * g)

    def rotary(self, x, lead):
        """`lead`: the axes of the tables before the last one."""
        perPair, interleaved = self.chance(), self.chance(0.3)
        size = width = x[1][-1]
        if size > 2 and self.chance(0.3):
            width = size // 4 * 2  # the others stay
        tables = [self.input([*lead, width // 2 if perPair else width]) for _ in range(2)]

        def judge(a, cosines, sines, z):
            half = width // 2
            first, second = (slice(0, width, 2), slice(1, width, 2)) if interleaved else (slice(0, half), slice(half, width))
            pick = (lambda t, part: t) if perPair else (lambda t, part: t[..., part])
            y = a.copy()
            y[..., first] = a[..., first] * pick(cosines, first) - a[..., second] * pick(sines, first)
            y[..., second] = a[..., second] * pick(cosines, second) + a[..., first] * pick(sines, second)
            return y
        part = "" if width == size else f" first {width}"
        return self.op(f"ds.rotary {{0}}, {{1}}, {{2}} interleaved {'true' if interleaved else 'false'}{part}", [x, *tables], x[1], judge)

    def heads(self, x, heads, width, norm, turned):
        """[b, s, heads * width] as [b, heads, s, width]."""
        x = self.reshape(x, ["b", self.s, heads, width])
        if norm:
            x = self.norm(x)
        if turned and self.chance(0.4):
            return self.transpose(self.rotary(x, [self.s, 1] if self.chance() else ["b", self.s, 1]), (0, 2, 1, 3))
        x = self.transpose(x, (0, 2, 1, 3))
        return self.rotary(x, [self.s] if self.chance() else ["b", 1, self.s]) if turned else x

    def cached(self, x, past, shows, showsNew):
        if past:
            old = self.input([x[1][0], x[1][1], "p", x[1][3]])
            both = self.op("ds.concat 2 {0}, {1}", [old, x], [*x[1][:2], self.both, x[1][3]], lambda a, c, z: np.concatenate([a, c], 2))
            if showsNew:
                self.output(x)
            x = both
        if shows:
            self.output(x)
        return x

    def attention(self, heads, groups, depth, width, past=True, norm=False, turned=False, shows=True, showsNew=False, step=""):
        parts = [heads * depth, groups * depth, groups * width]
        if self.chance(0.7):
            x = self.input(["b", self.s, sum(parts)])
            q, k, v = (self.slice(x, 2, start, size) for start, size in zip(np.cumsum([0] + parts[:2]).tolist(), parts))
        else:
            q, k, v = (self.input(["b", self.s, size]) for size in parts)
        q, k = self.heads(q, heads, depth, norm, turned), self.heads(k, groups, depth, norm, turned)
        v = self.heads(v, groups, width, False, False)
        k, v = self.cached(k, past, shows, showsNew), self.cached(v, past, shows, showsNew)
        operands, tokens, steps = [q, k, v], k[1][2], ""
        if step == "mask":
            operands.append(self.input(["b", 1, self.s, tokens]))
            steps = " [add {3}]"
        elif step == "causal":
            steps = f' [window else 0xFFF0000000000000] past [{chr(34) + "p" + chr(34) if past else 0}] right 0'

        def judge(q, k, v, *rest):
            z = rest[-1]
            p = z["p"] if past else 0
            mask = rest[0] if step == "mask" else None
            if step == "causal":
                mask = np.where(np.arange(k.shape[2]) <= np.arange(q.shape[2])[:, None] + p, 0, -np.inf)
            return attention(q, k, v, 0.3, mask)
        y = self.op(f"ds.attention {{0}}, {{1}}, {{2}}{steps} scale 0.3", operands, [*q[1][:3], width], judge)
        self.output(self.transpose(y, (0, 2, 1, 3)) if self.chance(0.7) else y)

    def text(self):
        results = ", ".join(f'{text_of(value[1])} {{ds.name = "y{i}"}}' for i, value in enumerate(self.results))
        return (f"func.func @main({', '.join(self.arguments)}) -> ({results}) attributes {{ds.entry}} {{\n  " + "\n  ".join(self.body) +
                f"\n  return {', '.join(value[0] for value in self.results)} : {', '.join(text_of(value[1]) for value in self.results)}\n}}\n")

    def verify(self, folder, sizes=SIZES):
        path = folder / "layers.mlir"
        path.write_text(self.text())
        packages = [compile_model(path, folder, f"--fusion={fusion}", f"--mcpu={cpu}", name=f"{fusion}-{cpu}.dsp")
                    for fusion, cpu in dict.fromkeys([("none", processors()[-1]), ("specialized", processors()[-1]),
                                                      ("specialized", "x86-64-v3")])]
        for size in sizes:
            env = {name: self.random.standard_normal([size.get(d, size["p"] + size[self.s] if d == self.both else d) for d in dims]).astype(np.float32)
                   for name, dims in self.inputs}
            found = [run_package(package, env, folder, "--threads=2") for package in packages]
            again = [run_package(packages[1], env, folder, f"--threads={threads}") for threads in (1, 3, 5)]
            for number, value in enumerate(self.results):
                expected, name = value[2](env, size), f"y{number}"
                for package, results in zip(packages, found):
                    actual, what = results[name], f"{package.stem} {name} of {size} (DS_SEED={SEED})\n{path.read_text()}"
                    expect(actual.shape == expected.shape, f"{what}: found {actual.shape}, expected {expected.shape}")
                    error = np.abs(actual.astype(np.float64) - expected).max(initial=0)
                    expect(error <= 5e-5, f"{what}: an error of {error}")
                for results, why in [(found[0], "without fusion")] + [(one, "other threads") for one in again]:
                    expect(found[1][name].tobytes() == results[name].tobytes(), f"{name} of {size}: {why} give other bits (DS_SEED={SEED})\n"
                           f"{path.read_text()}")


@case(seconds=12)
def caches_grow(folder):
    layers = Layers("grow")
    for heads, groups, depth, width in ((2, 2, 16, 16), (4, 2, 5, 7), (3, 1, 64, 64), (6, 2, 1, 48), (1, 1, 17, 3)):
        layers.attention(heads, groups, depth, width, shows=layers.chance(0.7), showsNew=layers.chance(0.4),
                         step=str(layers.random.choice(["", "mask", "causal"])))
    layers.verify(folder)


@case(seconds=12)
def heads_are_normalized_and_turned(folder):
    layers = Layers("turned")
    for heads, groups, depth, width in ((2, 2, 16, 16), (4, 2, 6, 7), (3, 1, 64, 64), (4, 4, 34, 32)):
        layers.attention(heads, groups, depth, width, past=layers.chance(0.6), norm=layers.chance(), turned=True, shows=layers.chance(0.6),
                         showsNew=layers.chance(0.3), step=str(layers.random.choice(["", "mask", "causal"])))
    layers.attention(4, 2, 16, 16, norm=True)
    layers.verify(folder)


@case(seconds=20)
def more_rows_than_a_block_has(folder):
    """Kernels walk over 1024 keys, or a few more, at a time: ends of blocks among cached rows, new ones, and where these meet."""
    layers = Layers("long")
    for heads, groups, depth, width in some(((2, 2, 16, 16), (4, 2, 6, 7), (3, 1, 64, 64), (6, 2, 34, 20)), 3):
        layers.attention(heads, groups, depth, width, past=layers.chance(0.8), norm=layers.chance(0.3), turned=layers.chance(), shows=layers.chance(),
                         showsNew=layers.chance(0.3), step=str(layers.random.choice(["", "mask", "causal"])))
    sizes = [*some(((1, 1, 1024), (2, 1, 2300)), 1), *some(((1, 1, 1023), (2, 3, 1022), (1, 40, 1500), (1, 700, 500), (1, 1300, 0)), 2)]
    layers.verify(folder, [{"b": b, "s": s, "p": p} for b, s, p in sizes])


@case(seconds=8)
def single_rows_behind_long_caches(folder):
    """Known to be single: keys and values are read where they lie."""
    layers = Layers("single", rows=1)
    layers.attention(4, 2, 16, 32, turned=True, shows=layers.chance())
    layers.attention(3, 3, 64, 64, shows=layers.chance(), showsNew=layers.chance())
    layers.verify(folder, [{"b": 2, "s": 1, "p": p} for p in (0, 1023, int(layers.random.integers(1024, 2300)))])


# Rows go into caches of `c` places from place `p` on; `%m` is there for its size. What is hidden is computed of, too.
STATES = """func.func @main(%x: tensor<2x?x{columns}xf32> {{ds.name = "x", ds.dims = [2, "s", {columns}]}}, %m: tensor<?xf32> {{ds.name = "m", ds.dims = ["p"]}},
    %cos: tensor<?x{depth}xf32> {{ds.name = "cos", ds.dims = ["s", {depth}]}}, %sin: tensor<?x{depth}xf32> {{ds.name = "sin", ds.dims = ["s", {depth}]}},
    %k: tensor<2x{groups}x{room}x{depth}xf32> {{ds.dims = [2, {groups}, {room}, {depth}], ds.state = "k"}},
    %v: tensor<2x{groups}x{room}x{depth}xf32> {{ds.dims = [2, {groups}, {room}, {depth}], ds.state = "v"}})
    -> (tensor<2x?x{heads}x{depth}xf32> {{ds.name = "y"}}, tensor<2x{groups}x{room}x{depth}xf32> {{ds.state = "k"}},
        tensor<2x{groups}x{room}x{depth}xf32> {{ds.state = "v"}}) attributes {{ds.entry}} {{
  %0 = ds.slice %x starts [0, 0, 0] sizes [2, "s", {q}] steps [1, 1, 1] : (tensor<2x?x{columns}xf32>) -> tensor<2x?x{q}xf32>
  %1 = ds.slice %x starts [0, 0, {q}] sizes [2, "s", {n}] steps [1, 1, 1] : (tensor<2x?x{columns}xf32>) -> tensor<2x?x{n}xf32>
  %2 = ds.slice %x starts [0, 0, {qn}] sizes [2, "s", {n}] steps [1, 1, 1] : (tensor<2x?x{columns}xf32>) -> tensor<2x?x{n}xf32>
  %3 = ds.reshape %0 [2, "s", {heads}, {depth}] : (tensor<2x?x{q}xf32>) -> tensor<2x?x{heads}x{depth}xf32>
  %4 = ds.reshape %1 [2, "s", {groups}, {depth}] : (tensor<2x?x{n}xf32>) -> tensor<2x?x{groups}x{depth}xf32>
  %5 = ds.reshape %2 [2, "s", {groups}, {depth}] : (tensor<2x?x{n}xf32>) -> tensor<2x?x{groups}x{depth}xf32>
  %6 = ds.transpose %3 [0, 2, 1, 3] : (tensor<2x?x{heads}x{depth}xf32>) -> tensor<2x{heads}x?x{depth}xf32>
  %7 = ds.transpose %4 [0, 2, 1, 3] : (tensor<2x?x{groups}x{depth}xf32>) -> tensor<2x{groups}x?x{depth}xf32>
  %8 = ds.transpose %5 [0, 2, 1, 3] : (tensor<2x?x{groups}x{depth}xf32>) -> tensor<2x{groups}x?x{depth}xf32>
  %9 = ds.rotary %7, %cos, %sin interleaved false : (tensor<2x{groups}x?x{depth}xf32>, tensor<?x{depth}xf32>, tensor<?x{depth}xf32>) -> tensor<2x{groups}x?x{depth}xf32>
  %10 = ds.insert %9 into %k starts [0, 0, "p", 0] : (tensor<2x{groups}x?x{depth}xf32>, tensor<2x{groups}x{room}x{depth}xf32>) -> tensor<2x{groups}x{room}x{depth}xf32>
  %11 = ds.insert %8 into %v starts [0, 0, "p", 0] : (tensor<2x{groups}x?x{depth}xf32>, tensor<2x{groups}x{room}x{depth}xf32>) -> tensor<2x{groups}x{room}x{depth}xf32>
  %12 = ds.attention %6, %10, %11 [window else 0xFFF0000000000000] past ["p"] right 0 scale 0.3 : (tensor<2x{heads}x?x{depth}xf32>, tensor<2x{groups}x{room}x{depth}xf32>, tensor<2x{groups}x{room}x{depth}xf32>) -> tensor<2x{heads}x?x{depth}xf32>
  %13 = ds.transpose %12 [0, 2, 1, 3] : (tensor<2x{heads}x?x{depth}xf32>) -> tensor<2x?x{heads}x{depth}xf32>
  return %13, %10, %11 : tensor<2x?x{heads}x{depth}xf32>, tensor<2x{groups}x{room}x{depth}xf32>, tensor<2x{groups}x{room}x{depth}xf32>
}}
"""


def guarded_steps(folder, threads, first):
    """Calls m.dsp with inputs.npz on the states k and v of the step before, with guards behind and before each buffer and
    without; yields y and the states of each call, and keeps them for the next step."""
    kept = folder / f"{threads}.npz"
    for name in ("ds-run-guarded-end", "ds-run-guarded-front", "ds-run"):
        tool(name, folder / "m.dsp", "--inputs", folder / "inputs.npz", "--output", folder / "y.npz", f"--threads={threads}",
             *([] if first else ["--state-in", kept]), "--state-out", folder / "next.npz")
        with np.load(folder / "y.npz") as outputs, np.load(folder / "next.npz") as states:
            yield {"y": outputs["y"], "k": states["k"], "v": states["v"]}
    (folder / "next.npz").rename(kept)


@case(seconds=12)
def states_take_new_rows_in_place(folder):
    """One kernel a step, and no copy of a cache, whichever threads share a head of it."""
    random = np.random.default_rng(SEED)
    short = [(*shape, (3, 1, 2, 1)) for shape in ((2, 2, 16, 9, "f32"), (6, 2, 6, 50, "f32"), (4, 1, 32, 14, "f32"), (4, 2, 64, 11, "f16"), (3, 1, 6, 12, "f16"))]
    long = [(6, 2, 8, 1100, "f32", (1023, 1, 20)), (4, 2, 16, 1300, "f16", (40, 1100, 3))]
    for heads, groups, depth, room, element, counts in [*short, *some(long, 1)]:
        stored = {"f32": np.float32, "f16": np.float16}[element]
        # Rows up to 8 are rounded by at most 2^-8 to f16, and so are keys, the context's weights with them.
        context, row = (5e-5, 1e-5) if element == "f32" else (3e-2, 8e-3)
        q, n = heads * depth, groups * depth
        text = STATES.format(heads=heads, groups=groups, depth=depth, room=room, q=q, n=n, qn=q + n, columns=q + 2 * n)
        (folder / "m.mlir").write_text(text.replace("f32", element))
        for cpu in some(processors(), 2):
            report = tool("ds-opt", folder / "m.mlir", "-o", folder / "m.dsp", f"--mcpu={cpu}", "--report")
            expect("1 kernels, 1 launches, 0 copies" in report.out + report.err, f"not in one kernel:\n{report.out}{report.err}")
            caches = {threads: {} for threads in (1, 2, 3, 5)}
            keys, values = np.zeros((2, groups, room, depth)), np.zeros((2, groups, room, depth))
            place = 0
            for count in counts:
                env = {"x": random.standard_normal((2, count, q + 2 * n)), "m": np.zeros(place)}
                env |= {name: random.standard_normal((count, depth)) for name in ("cos", "sin")}
                np.savez(folder / "inputs.npz", **{name: array.astype(stored) for name, array in env.items()})
                x, cosines, sines = (env[name].astype(stored).astype(np.float64) for name in ("x", "cos", "sin"))
                parts = [part.reshape(2, count, -1, depth).transpose(0, 2, 1, 3) for part in np.split(x, [q, q + n], 2)]
                half = np.concatenate([-parts[1][..., depth // 2:], parts[1][..., :depth // 2]], -1)
                keys[:, :, place:place + count] = parts[1] * cosines + half * sines
                values[:, :, place:place + count] = parts[2]
                mask = np.where(np.arange(room) <= np.arange(count)[:, None] + place, 0, -np.inf)
                expected = attention(parts[0], keys, values, 0.3, mask).transpose(0, 2, 1, 3)
                for threads, cache in caches.items():
                    for found in guarded_steps(folder, threads, first=place == 0):
                        cache |= found
                        expect(np.abs(cache["y"] - expected).max() < context, f"{cpu} {heads}:{groups} at {place}, {threads} threads: wrong context (DS_SEED={SEED})")
                        expect(np.abs(cache["k"] - keys).max() < row and np.abs(cache["v"] - values).max() < row,
                               f"{cpu} {heads}:{groups} at {place}, {threads} threads: wrong cache (DS_SEED={SEED})")
                        expect(all(cache[part].tobytes() == caches[1][part].tobytes() for part in cache), f"{threads} threads: other bits (DS_SEED={SEED})")
                place += count


@case(seconds=6)
def single_rows_in_place(folder):
    """A single query, heads of which share keys that threads share: rows that a cache holds are read where they lie, with as much
    scratch for each room."""
    random, (cpu,) = np.random.default_rng([SEED, 1]), some(processors(), 1)
    found = []
    for heads, groups, depth, room in ((6, 2, 16, 1100), (6, 2, 16, 2500), (4, 4, 32, 70)):
        q, n = heads * depth, groups * depth
        text = STATES.format(heads=heads, groups=groups, depth=depth, room=room, q=q, n=n, qn=q + n, columns=q + 2 * n)
        text = re.sub(r"\?x(?!f)", "1x", text.replace('"s"', "1")).replace('[window else 0xFFF0000000000000] past ["p"] right 0 ', "")
        (folder / "m.mlir").write_text(text)
        tool("ds-opt", folder / "m.mlir", "-o", folder / "m.dsp", f"--mcpu={cpu}")
        found.append(scratches(folder / "m.dsp"))
        cache, keys, values = {threads: {} for threads in (1, 2, 3, 5)}, np.zeros((2, groups, room, depth)), np.zeros((2, groups, room, depth))
        for place in (0, 1, 2):
            env = {"x": random.standard_normal((2, 1, q + 2 * n)), "m": np.zeros(place), "cos": np.ones((1, depth)), "sin": np.zeros((1, depth))}
            np.savez(folder / "inputs.npz", **{name: array.astype(np.float32) for name, array in env.items()})
            parts = [part.reshape(2, 1, -1, depth).transpose(0, 2, 1, 3) for part in np.split(env["x"].astype(np.float32).astype(np.float64), [q, q + n], 2)]
            keys[:, :, place], values[:, :, place] = parts[1][:, :, 0], parts[2][:, :, 0]
            expected = attention(parts[0], keys, values, 0.3).transpose(0, 2, 1, 3)
            for threads in cache:
                for given in guarded_steps(folder, threads, first=place == 0):
                    expect(np.abs(given["y"] - expected).max() < 5e-5, f"{cpu} {heads}:{groups} at {place}, {threads} threads: wrong context (DS_SEED={SEED})")
                    expect((given["k"] == keys.astype(np.float32)).all() and (given["v"] == values.astype(np.float32)).all(), f"{cpu}: wrong cache")
                    cache[threads] |= given
                    expect(cache[threads]["y"].tobytes() == cache[1]["y"].tobytes(), f"{threads} threads: other bits (DS_SEED={SEED})")
    expect(found[0] == found[1] and len(found[0]) == 1, f"{cpu}: scratch for 1100 places is {found[0]}, for 2500 {found[1]}")
