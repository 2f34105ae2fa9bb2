"""What utils/check-random-models and utils/check-mutated-models found: one case per fault that was fixed.

The numbers are those of NumPy's own statement of the operator."""
import subprocess
import sys
import time

import numpy as np
import onnx.parser

from kit import ROOT, case, compile_model, expect, run_package, tool
from programs import SEED


def outputs(folder, text, inputs, opset=21, options=()):
    path = folder / "m.onnx"
    header = f'<ir_version: 10, opset_import: ["" : {opset}]>\n'
    path.write_bytes(onnx.parser.parse_model(header + text).SerializeToString())
    return run_package(compile_model(path, folder, *options), inputs, folder)


def same(found, expected, what, tolerance=0):
    expected = np.asarray(expected)
    expect(found.dtype == expected.dtype and found.shape == expected.shape, f"{what}: found {found.dtype} {found.shape}")
    expect(np.allclose(found, expected, rtol=tolerance, atol=tolerance), f"{what}: expected {expected}, found {found}")


@case
def unique_along_an_inner_axis(folder):
    """The slices are ordered by their elements in the order of the other axes, as NumPy's unique has it."""
    x = np.random.default_rng(SEED).integers(0, 2, (2, 3, 7)).astype(np.float32)
    for axis in range(3):
        names = ("y", "i", "v", "c")
        found = outputs(folder, f"g (float[a, b, c] x) => (float[d, e, f] y, int64[g] i, int64[h] v, int64[j] c) "
                                f"{{ y, i, v, c = Unique <axis = {axis}> (x) }}", {"x": x})
        expected = np.unique(x, True, True, True, axis=axis)
        for name, array in zip(names, expected):
            same(found[name], array.reshape(found[name].shape), f"seed {SEED}: axis {axis}: {name}")


@case
def reductions_over_no_axes_still_map_the_elements(folder):
    x = np.random.default_rng(SEED).standard_normal((2, 3)).astype(np.float32)
    for op, expected in (("L1", np.abs(x)), ("L2", np.abs(x)), ("SumSquare", x * x), ("LogSum", np.log(np.abs(x))),
                         ("Sum", x), ("Max", x), ("Mean", x), ("LogSumExp", x)):
        given = np.abs(x) if op == "LogSum" else x
        found = outputs(folder, f"g (float[2, 3] x) => (float[a, b] y) {{ y = Reduce{op} <noop_with_empty_axes = 1> (x) }}",
                        {"x": given})["y"]
        same(found, expected, f"seed {SEED}: Reduce{op}", 1e-6)


@case
def resized_integers_are_interpolated(folder):
    """Weights are real numbers, whatever the elements are."""
    x = np.array([[[[0, 100, 50, 255]]]], np.uint8)
    smooth = np.interp(np.clip((np.arange(8) + 0.5) / 2 - 0.5, 0, 3), np.arange(4), x[0, 0, 0])
    for antialias, expected in ((0, np.floor(smooth)), (1, np.floor(smooth + 0.5))):
        found = outputs(folder, "g (uint8[1, 1, 1, 4] x) => (uint8[a, b, c, d] y) <float[4] s = {1, 1, 1, 2}> "
                                f"{{ y = Resize <mode = \"linear\", antialias = {antialias}> (x, , s) }}", {"x": x})["y"]
        same(found[0, 0, 0], expected.astype(np.uint8), f"antialias {antialias}")
    found = outputs(folder, "g (int8[1, 1, 1, 4] x) => (int8[a, b, c, d] y) <float[4] s = {1, 1, 1, 2}> "
                            "{ y = Resize <mode = \"cubic\"> (x, , s) }", {"x": np.array([[[[127, 127, -128, -128]]]], np.int8)})["y"]
    expect(found.max() == 127 and found.min() == -128, f"expected overshoots to be limited, found {found}")


@case
def nearest_before_opset_11_takes_the_next_pixel_when_it_shrinks(folder):
    x = np.arange(6, dtype=np.float32).reshape(1, 6)
    text = 'g (float[1, 6] x) => (float[a, b] y) <float[2] s = {1, %s}> { y = Resize <mode = "nearest"> (x, s) }'
    same(outputs(folder, text % 0.7, {"x": x}, 10)["y"], x[:, [0, 2, 3, 5]], "0.7")
    same(outputs(folder, text % 1.5, {"x": x}, 10)["y"], x[:, [0, 0, 1, 2, 2, 3, 4, 4, 5]], "1.5")


@case
def shrunk_integers_are_real_numbers_until_the_end(folder):
    found = outputs(folder, "g (uint8[4] x) => (uint8[4] y) { y = Shrink <lambd = 1.5, bias = -0.7> (x) }",
                    {"x": np.array([0, 1, 2, 9], np.uint8)})["y"]
    same(found, np.array([0, 0, 2, 9], np.uint8), "Shrink")


@case
def old_softmax_of_a_vector(folder):
    """Axis -1 of a vector is its only one; the default of opset 11, 1, makes a column of it."""
    x = np.array([1, 3, 2], np.float32)
    for attribute, expected in (("<axis = -1>", [0, 1, 0]), ("<axis = 0>", [0, 1, 0]), ("", [1, 1, 1])):
        found = outputs(folder, f"g (float[3] x) => (float[3] y) {{ y = Hardmax {attribute} (x) }}", {"x": x}, 11)["y"]
        same(found, np.array(expected, np.float32), attribute)


@case
def updates_that_do_not_fit_the_indices(folder):
    text = "g (float[n, 4] x, int64[a, 1] i, float[e, f] u) => (float[c, d] y) { [s] y = ScatterND(x, i, u) }"
    x, i = np.zeros((3, 4), np.float32), np.zeros((5, 1), np.int64)
    outputs(folder, text, {"x": x, "i": i, "u": np.ones((5, 4), np.float32)})
    for shape in ((5, 9), (5, 2), (4, 4)):
        np.savez(folder / "wrong.npz", x=x, i=i, u=np.ones(shape, np.float32))
        result = tool("ds-run", folder / "model.dsp", "--inputs", folder / "wrong.npz", code=1, says=[" s: ", "does not hold"])
        expect(len(result.err.splitlines()) == 1, f"expected one line: {result}")


@case
def branches_that_become_alike(folder):
    """Both give zeros, so the choice vanishes while the program is cleaned up; what is gathered from it is known then."""
    found = outputs(folder, "g (float[1] x) => (float[a] y) <float[1] w = {-3}, int64[2] i = {0, 0}> { s = ReduceSum <keepdims = 0> (w) "
                            "z = Sub(s, s) c = Greater(s, z) b = If(c) <then_branch = t () => (float[1] p) { p = Sub(w, w) }, "
                            "else_branch = e () => (float[1] q) { q = Sub(w, w) }> y = Gather(b, i) }",
                    {"x": np.zeros(1, np.float32)})["y"]
    same(found, np.zeros(2, np.float32), "Gather")


@case
def einsum_without_an_arrow_sums_a_diagonal(folder):
    x = np.random.default_rng(SEED).standard_normal((3, 3)).astype(np.float32)
    for equation, expected in (("ii", np.trace(x)), ("ii->i", np.diagonal(x)), ("ij", x), ("ji", x.T)):
        found = outputs(folder, f'g (float[3, 3] x) => (float[a] y) {{ y = Einsum <equation = "{equation}"> (x) }}'.replace(
            "[a]", "[]" if equation == "ii" else "[a]" if "->" in equation else "[a, b]"), {"x": x})["y"]
        same(found, np.asarray(expected, np.float32), f"seed {SEED}: {equation}", 1e-6)


@case
def large_unsigned_constants(folder):
    """Folded or computed while the model runs, integers above 2^63 are the same numbers."""
    big, small = [2**64 - 1, 2**63, 7], [3, 2**64 - 2, 2]
    constants = f"uint64[3] c = {{{', '.join(map(str, big))}}}, uint64[3] d = {{{', '.join(map(str, small))}}}"
    given = {"x": np.array(big, np.uint64), "z": np.array(small, np.uint64)}
    for call, kind in (("Div", "uint64"), ("Mod", "uint64"), ("Max", "uint64"), ("Min", "uint64"), ("Less", "bool"),
                       ("GreaterOrEqual", "bool")):
        found = outputs(folder, f"g (uint64[3] x, uint64[3] z) => ({kind}[3] f, {kind}[3] r) <{constants}> "
                                f"{{ f = {call}(c, d) r = {call}(x, z) }}", given)
        expected = {"Div": np.floor_divide, "Mod": np.mod, "Max": np.maximum, "Min": np.minimum, "Less": np.less,
                    "GreaterOrEqual": np.greater_equal}[call](given["x"], given["z"])
        for name in "fr":
            same(found[name], expected, f"{call} {name}")
    found = outputs(folder, f"g (uint64[3] x) => (uint64[3] f, uint64[3] r, double[3] g, double[3] s) <{constants}> "
                            "{ f = Sign(c) r = Sign(x) g = Cast <to = 11> (c) s = Cast <to = 11> (x) }", {"x": given["x"]})
    same(found["f"], found["r"], "Sign")
    same(found["g"], found["s"], "Cast")
    same(found["f"], np.ones(3, np.uint64), "Sign")


@case
def constants_that_cannot_be_divided(folder):
    for call in ("Div", "Mod"):
        text = f"g (int64[1] x) => (int64[2] y) <int64[2] a = {{1, 2}}, int64[2] b = {{0, 1}}> {{ [d] y = {call}(a, b) }}"
        path = folder / "m.onnx"
        path.write_bytes(onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\n' + text).SerializeToString())
        tool("ds-opt", path, "-o", folder / "d.dsp", code=1, says=["'d': error", "division by 0"])


@case
def zeros_keep_their_sign_and_small_integers_wrap(folder):
    """Shape arithmetic is on whole numbers; what it does not know of a type must not be folded by it."""
    found = outputs(folder, "g (float[1] x) => (float[1] a, float[1] b, float[1] c, bool[1] d) <float[1] z = {0}, float[1] m = {-0.0}, "
                            "float[1] n = {-3}, int32[1] i = {2147483647}, int32[1] o = {1}> { p = Neg(z) a = Reciprocal(p) "
                            "q = Mul(z, n) b = Reciprocal(q) r = Identity(m) c = Reciprocal(r) s = Add(i, o) d = Less(s, o) }",
                    {"x": np.zeros(1, np.float32)})
    for name in "abc":
        same(found[name], np.array([-np.inf], np.float32), name)
    same(found["d"], np.array([True]), "d")


@case
def slices_of_slices_by_bounds_of_run_time(folder):
    """Their sizes are expressions of expressions, which once took hours to take apart."""
    x, bounds = np.arange(60, dtype=np.float32), {"s": np.array([1]), "e": np.array([40])}
    body = "v0 = Identity(x) " + " ".join(f"v{i + 1} = Slice(v{i}, s, e)" for i in range(12))
    start = time.time()
    found = outputs(folder, f"g (float[a] x, int64[1] s, int64[1] e) => (float[c] y) {{ {body} y = Relu(v12) }}", {"x": x, **bounds})["y"]
    same(found, x[12:40], "slices")
    body = "v0 = Identity(x) " + " ".join(f"v{i + 1} = Slice(v{i}, s, e, a, p)" for i in range(5))
    found = outputs(folder, f"g (float[n] x, int64[1] s, int64[1] e, int64[1] a, int64[1] p) => (float[c] y) {{ {body} y = Relu(v5) }}",
                    {"x": x, **bounds, "a": np.array([-1]), "p": np.array([2])})["y"]
    expected = x
    for _ in range(5):
        expected = expected[1:40:2]
    same(found, expected, "steps")
    expect(time.time() - start < 60, f"took {time.time() - start:.0f} s")


@case(seconds=6)
def slices_that_walk_backwards_from_before_the_front(folder):
    """The standard clamps such a start to the first element, where NumPy's slices are empty; an empty axis stays empty."""
    def walk(size, start, end, step):
        start, end = (bound + size if bound < 0 else bound for bound in (start, end))
        return list(range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step))

    least = -2**31
    bounds = [(least, least, -7), (-9, -10, -1), (-4, least, -2), (-9, -1, -1), (5, least, -2), (-2, -9, -1)]
    for size in (3, 1, 2, 0):
        x = np.arange(10, 10 + size, dtype=np.float32)
        for dims in ("n", size):
            text = "".join(f"y{i} = Slice (x, s{i}, e{i}, z, t{i}) " for i in range(len(bounds)))
            given = ", ".join(f"int64[1] {name}{i} = {{{bound}}}" for i, b in enumerate(bounds) for name, bound in zip("set", b))
            results = ", ".join(f"float[m{i}] y{i}" for i in range(len(bounds)))
            found = outputs(folder, f"g (float[{dims}] x) => ({results}) <int64[1] z = {{0}}, {given}> {{ {text} }}", {"x": x})
            for i, b in enumerate(bounds):
                same(found[f"y{i}"], x[np.array(walk(size, *b), int)], f"{size} from {b} of [{dims}]")
        inputs = "int64[1] s, int64[1] e"
        for b in bounds:
            found = outputs(folder, f"g (float[n] x, {inputs}) => (float[m] y) <int64[1] z = {{0}}, int64[1] t = {{{b[2]}}}> "
                                    "{ y = Slice (x, s, e, z, t) }", {"x": x, "s": np.array(b[:1]), "e": np.array(b[1:2])})
            same(found["y"], x[np.array(walk(size, *b), int)], f"{size} from {b} at run time")


@case
def reshapes_to_a_size_that_the_tensor_does_not_have(folder):
    """Types cannot tell one unknown size from another."""
    text = "g (float[n] x, float[m] z) => (float[k] y) { s = Shape(x) y = Reshape(z, s) }"
    outputs(folder, text, {"x": np.zeros(3, np.float32), "z": np.ones(3, np.float32)})
    np.savez(folder / "wrong.npz", x=np.zeros(3, np.float32), z=np.ones(4, np.float32))
    tool("ds-run", folder / "model.dsp", "--inputs", folder / "wrong.npz", code=1, says="does not hold, found 4 and 3")


@case
def scales_do_not_enlarge_what_they_scale(folder):
    """Where the normalized axis has one element only the run tells; NumPy's rules would give the size of the scale."""
    for op, results in (("LayerNormalization", "y"), ("LayerNormalization", "y, mean"), ("RMSNormalization", "y")):
        text = f"g (float[n, m] x, float[4] w) => (float[a, b] y) {{ {results} = {op} (x, w) }}"
        x, w = np.random.default_rng(SEED).standard_normal((2, 3, 4)).astype(np.float32)[0], np.arange(4, dtype=np.float32)
        centred = x if op[0] == "R" else x - x.mean(1, keepdims=True)
        expected = centred / np.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5) * w
        same(outputs(folder, text, {"x": x, "w": w}, 23)["y"], expected, f"seed {SEED}: {op}", 1e-5)
        np.savez(folder / "wrong.npz", x=np.ones((3, 1), np.float32), w=w)
        tool("ds-run", folder / "model.dsp", "--inputs", folder / "wrong.npz", code=1, says="does not hold")


@case
def old_clips_have_finite_defaults(folder):
    most = np.finfo(np.float32).max
    for attribute, expected in (("<max = 1.0>", [-most, 1, 0]), ("<min = -1.0>", [-1, most, 0]), ("", [-most, most, 0])):
        found = outputs(folder, f"g (float[3] x) => (float[3] y) {{ y = Clip {attribute} (x) }}",
                        {"x": np.array([-np.inf, np.inf, 0], np.float32)}, 7)["y"]
        same(found, np.array(expected, np.float32), attribute)


@case(slow=True)
def seven_hundred_random_models(folder):
    """The same ones everywhere: the seed makes them, and no time limit ends the run."""
    command = [sys.executable, ROOT / "utils/check-random-models", "--models", "700", "--seed", "61"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=1200)
    expect(done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:])


@case
def weights_of_f64(folder):
    """Weights large enough to be stored apart, of a type that the packing micro-kernel does not take."""
    generator = np.random.default_rng(SEED)
    x, w, b = (generator.standard_normal(shape) for shape in ((3, 5, 96), (96, 80), (80,)))
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (double[n, m, 96] x) => (double[n, m, 80] y) '
                                    "{ p = MatMul (x, w) y = Add (p, b) }")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in (("w", w), ("b", b)))
    onnx.save(model, folder / "m.onnx")
    found = run_package(compile_model(folder / "m.onnx", folder), {"x": x}, folder)["y"]
    same(found, x @ w + b, f"seed {SEED}", 1e-12)  # sums of 96 products, in another order
