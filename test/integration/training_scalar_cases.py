"""Tensors of one element: which are parameters, what they learn, and what an exported model has of them. Norms that exporters express by
another one, and parameters that start equal."""
import json
import re

import numpy as np
import onnx
from onnx import numpy_helper

from kit import case, compile_model, expect, onnx_runtime, tool
from training_runs import settings, train, weights, write_config

# Layers of one output, one channel and one weight; "factor", "shift" and "small" are numbers of formulas.
TEXT = """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x, float[n, 1, 4, 4] image) => (float loss)
  { a = MatMul (x, w) y = Add (a, b) c0 = Gemm (x, w, c) p0 = Mul (y, c0) p1 = Mul (p0, factor) p = Add (p1, shift)
    q = Conv (image, cw, cb) r = BatchNormalization <epsilon = 1e-3> (q, scale, bias, mean, variance) k = Mul (r, r) s0 = Add (k, small) s = Sqrt (s0)
    lp = ReduceMean <keepdims = 0> (p) ls = ReduceMean <keepdims = 0> (s) loss = Add (lp, ls) }"""
LEARNED = {"w", "b", "c", "cw", "cb", "scale", "bias"}


def values(g):
    return {"w": g.standard_normal((3, 1)), "b": g.standard_normal(1), "c": g.standard_normal(1), "cw": g.standard_normal((1, 1, 1, 1)),
            "cb": g.standard_normal(1), "scale": g.standard_normal(1), "bias": g.standard_normal(1), "mean": g.standard_normal(1),
            "variance": 0.5 + g.random(1), "factor": np.array(1.5), "shift": np.array([0.25]), "small": np.array([0.01])}


def loss_of(v, x, image):
    y, c0 = x @ v["w"] + v["b"], x @ v["w"] + v["c"]
    r = (image * v["cw"].item() + v["cb"] - v["mean"]) / np.sqrt(v["variance"] + 1e-3) * v["scale"] + v["bias"]
    return np.mean(y * c0 * v["factor"] + v["shift"]) + np.mean(np.sqrt(r * r + v["small"]))


def stored(folder, g):
    arrays = {name: value.astype(np.float32) for name, value in values(g).items()}
    model = onnx.parser.parse_model(TEXT)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(model, folder / "m.onnx")
    x, image = g.standard_normal((6, 3), np.float32), g.standard_normal((6, 1, 4, 4), np.float32)
    np.savez(folder / "d.npz", x=x, image=image)
    return arrays, x, image


def gradients(package, folder):
    tool("ds-run", "gradients", package, f"--inputs={folder / 'd.npz'}", f"--output={folder / 'g.npz'}")
    found = dict(np.load(folder / "g.npz"))
    found.pop("loss")
    return found


@case(seconds=12)
def layers_of_one_output(folder):
    """Gradients against central differences of NumPy in f64; --train reaches numbers of formulas, too. Each initializer is listed once."""
    arrays, x, image = stored(folder, np.random.default_rng())
    exact = {name: array.astype(float) for name, array in arrays.items()}
    for options, expected in (([], LEARNED), (["--train=^(factor|small|b)$"], {"factor", "small", "b"}), (["--freeze=^(b|cw)$"], LEARNED - {"b", "cw"})):
        package = compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss", *options)
        found = gradients(package, folder)
        expect(set(found) == expected, f"{options}: {sorted(found)}")
        for name, slope in found.items():
            expect(slope.shape == arrays[name].shape, f"{name}: {slope.shape}")
            for at in np.ndindex(arrays[name].shape):
                sides = []
                for step in (1e-6, -1e-6):
                    moved = {**exact, name: exact[name].copy()}
                    moved[name][at] += step
                    sides.append(loss_of(moved, x.astype(float), image.astype(float)))
                slow = (sides[0] - sides[1]) / 2e-6
                # Means of some 100 terms in f32; differences are good for 9 digits.
                expect(abs(slope[at] - slow) <= 1e-5 * max(1, abs(slow)), f"{name}{at}: {slope[at]}, expected {slow}")
    result = tool("ds-opt", folder / "m.onnx", "--mode=train", "--loss=loss", "--report", "-o", folder / "r.dsp")
    text = result.out + result.err
    for name in arrays:
        trained, kept = text.count(f"trained: {name} "), text.count(f"'{name}' is not trained: it ")
        expect((trained, kept) == ((1, 0) if name in LEARNED else (0, 1)), f"{name}: {text}")


HEAD = "<ir_version: 8, opset_import: [\"\": 17]> m "


def trained_of(folder, text, arrays, *options):
    """The names that a model of this text trains."""
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in arrays.items())
    onnx.save(model, folder / "m.onnx")
    result = tool("ds-opt", folder / "m.onnx", "--mode=train", "--loss=loss", "--report", *options, "-o", folder / "p.dsp")
    return set(re.findall(r"^trained: (\S+) ", result.out + result.err, re.M))


@case(seconds=6)
def what_reads_them(folder):
    """A bias of one element behind each kind of layer, the slope of a PRelu; not a mask on scores or an offset of distances."""
    g = np.random.default_rng()
    end = "k = Mul (y, y) loss = ReduceMean <keepdims = 0> (k) }"
    one = {"b": g.standard_normal(1), "w": g.standard_normal((3, 1))}
    image = {"b": g.standard_normal((1, 1, 1)), "w": g.standard_normal((1, 2, 1, 1))}
    for text, arrays, expected in (
            ("(float[n, 3] x) => (float loss) { p = Gemm (x, w) y = Add (p, b) " + end, one, {"w", "b"}),
            ("(float[n, 3] x) => (float loss) <int64[1] to = {-1}> { p = MatMul (x, w) q = Reshape (p, to) y = Add (b, q) " + end, one, {"w", "b"}),
            ("(float[n, 3] x) => (float loss) { v = Transpose (t) p = MatMul (x, v) y = Add (p, b) " + end, {"b": one["b"], "t": one["w"].T}, {"t", "b"}),
            ("(float[n, 2, 4, 4] x) => (float loss) { p = Conv (x, w) y = Add (p, b) " + end, image, {"w", "b"}),
            ("(float[n, 3] x) => (float loss) { p = MatMul (x, w) y = PRelu (p, b) " + end, {"b": g.standard_normal(1), "w": g.standard_normal((3, 4))}, {"w", "b"}),
            ("(float[n, 3] x) => (float loss) { h = MatMul (x, w) t = Transpose (h) s = MatMul (h, t) m = Add (s, b) y = Softmax (m) " + end, one, {"w"}),
            ("(float[n, 3] x) => (float loss) { p = MatMul (x, w) y = Add (p, b) " + end, {"b": g.standard_normal(1), "w": g.standard_normal((3, 4))}, {"w"})):
        found = trained_of(folder, text, arrays)
        expect(found == expected, f"{text}: {sorted(found)}")


@case(seconds=3)
def copies_of_one_number(folder):
    """Turns of a loop that is unrolled hold one number each: it is one parameter, whose gradient is the sum of theirs."""
    text = """(float[n, 3] x) => (float loss) <int64 trip = {3}, bool go = {1}, int64[1] start = {-3}, int64[1] end = {1000}, int64[1] axis = {1}> {
      h = MatMul (x, w) z = Loop (trip, go, h) <body = turn (int64 i, bool c, float[n, p] a) => (bool d, float[n, q] r) <float factor = {1.5}> {
        s = Slice (a, start, end, axis) t = MatMul (s, v) u = Mul (t, factor) r = Concat <axis = 1> (a, u) d = Identity (c) }>
      k = Mul (z, z) loss = ReduceMean <keepdims = 0> (k) }"""
    g = np.random.default_rng()
    arrays = {"w": g.standard_normal((3, 3)).astype(np.float32), "v": g.standard_normal((3, 1)).astype(np.float32) / 2}
    x = g.standard_normal((6, 3), np.float32)
    np.savez(folder / "d.npz", x=x)

    def loss(factor):
        z = x.astype(float) @ arrays["w"]
        for _ in range(3):
            z = np.concatenate([z, z[:, -3:] @ arrays["v"].astype(float) * factor], 1)
        return np.mean(z * z)

    slow = (loss(1.5 + 1e-6) - loss(1.5 - 1e-6)) / 2e-6
    for regex in ("^(factor|v)$", "factor|v"):
        expect(trained_of(folder, text, arrays, f"--train={regex}") == {"factor", "v"}, regex)
        slope = gradients(folder / "p.dsp", folder)["factor"]
        expect(abs(slope - slow) <= 1e-5 * max(1, abs(slow)), f"{slope}, expected {slow}")  # f32 against differences in f64


@case
def statistics_with_other_readers(folder):
    """The moved mean of one channel is what a norm of inference reads, too, as it is of several."""
    for channels in (1, 2):
        text = f"""(float[n, {channels}, 4] x) => (float loss) {{
          a, m, v = BatchNormalization <training_mode = 1, momentum = 0.5> (x, s, b, mean, var)
          y = BatchNormalization (a, s, b, mean, var) k = Mul (y, y) loss = ReduceMean <keepdims = 0> (k) }}"""
        g = np.random.default_rng()
        arrays = {"s": 1 + g.random(channels), "b": g.standard_normal(channels), "mean": np.zeros(channels), "var": np.ones(channels)}
        expect(trained_of(folder, text, arrays) == {"s", "b"}, f"{channels} channels")
        np.savez(folder / "d.npz", x=(3 + 2 * g.standard_normal((8, channels, 4))).astype(np.float32))
        write_config(folder, settings(("SGD", {"lr": 0.01}), micro=8))
        train(folder / "p.dsp", folder / "d.npz", "--steps=3", f"--checkpoint={folder / f'run{channels}'}")
        tool("ds-run", "checkpoint", "export", folder / f"run{channels}", f"--package={folder / 'p.dsp'}", "-o", folder / "t.onnx")
        model = onnx.load(folder / "t.onnx")
        node = next(node for node in model.graph.node if len(node.output) == 3)
        del node.output[1:], node.attribute[:]
        onnx.save(model, folder / f"e{channels}.onnx")
        score = json.loads(tool("ds-run", "eval", folder / "p.dsp", f"--data={folder / 'd.npz'}", f"--checkpoint={folder / f'run{channels}'}", "--json").out)
        theirs = onnx_runtime(folder / f"e{channels}.onnx", {"x": np.load(folder / "d.npz")["x"]})["loss"]
        expect(abs(score["eval_loss"] - theirs) <= 1e-5 * abs(theirs), f"{channels} channels: {score}, expected {theirs}")


@case
def exported(folder):
    """What was trained is in the file, under its name and in its shape; what is a number stays."""
    arrays, x, image = stored(folder, np.random.default_rng())
    package = compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss", f"--config={write_config(folder, settings(('SGD', {'lr': 0.01}), micro=6))}")
    train(package, folder / "d.npz", "--steps=3", f"--checkpoint={folder / 'run'}")
    tool("ds-run", "checkpoint", "export", folder / "run", f"--package={package}", "-o", folder / "t.onnx")
    saved = weights(folder / "run/global_step3")
    for tensor in onnx.load(folder / "t.onnx").graph.initializer:
        array = numpy_helper.to_array(tensor)
        expect(array.shape == arrays[tensor.name].shape, f"{tensor.name}: {array.shape}")
        expect((array.tobytes() != arrays[tensor.name].tobytes()) == (tensor.name in LEARNED), f"{tensor.name}: {array}")
        if tensor.name in LEARNED:
            expect(array.tobytes() == saved[tensor.name].tobytes(), f"{tensor.name}: {array}, {saved[tensor.name]}")


@case
def norms_of_groups(folder):
    """PyTorch's exporter writes a norm of groups as one of instances with ones and zeros in Constant nodes, which are no parameters;
    other numbers there are."""
    for one, expected in ((1, {"g", "b"}), (2, {"g", "b", "ones"})):
        model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> m (float[n, 6, 5] x) => (float loss)
          <int64[3] to = {{0, 3, -1}}>
          {{ ones = Constant <value = float[3] {{{one}, {one}, {one}}}> () zeros = Constant <value = float[3] {{0, 0, 0}}> ()
             r = Reshape (x, to) i = InstanceNormalization (r, ones, zeros) z = Shape (x) o = Reshape (i, z) s = Mul (o, g) y = Add (s, b)
             k = Mul (y, y) loss = ReduceMean <keepdims = 0> (k) }}""")
        g = np.random.default_rng()
        arrays = {name: g.standard_normal((6, 1)).astype(np.float32) for name in "gb"}
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
        onnx.save(model, folder / "m.onnx")
        x = g.standard_normal((4, 6, 5), np.float32)
        np.savez(folder / "d.npz", x=x)
        found = gradients(compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss"), folder)
        expect(set(found) == expected, f"{sorted(found)}")
        grouped = x.astype(float).reshape(4, 3, -1)
        normal = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5) * one
        normal = normal.reshape(4, 6, 5)
        slope = 2 * (normal * arrays["g"] + arrays["b"]) / normal.size
        for name, value in (("g", (slope * normal).sum((0, 2))), ("b", slope.sum((0, 2)))):
            # Sums of 20 products in f32.
            expect(np.allclose(found[name].ravel(), value, rtol=1e-4, atol=1e-5), f"{name}: {found[name].ravel()}, expected {value}")


@case(seconds=3)
def parameters_that_start_equal(folder):
    """One tensor of zeros or ones for two layers is one parameter, as the file has it: a warning says so. Not so of one layer's, nor of
    one that both layers were trained to share."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x) => (float loss)
      { a = MatMul (x, w) b0 = Identity (fresh) a1 = Add (a, fresh) h = Relu (a1) c = MatMul (h, v) c1 = Add (c, b0) c2 = Add (c1, last)
        e = Mul (c2, shared) f = Tanh (e) f2 = Mul (f, shared) k = Mul (f2, f2) loss = ReduceMean <keepdims = 0> (k) }""")
    g = np.random.default_rng()
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in (
        ("w", g.standard_normal((3, 4))), ("fresh", np.zeros(4)), ("v", g.standard_normal((4, 4))), ("last", np.zeros(4)), ("shared", g.standard_normal(4))))
    onnx.save(model, folder / "m.onnx")
    result = tool("ds-opt", folder / "m.onnx", "--mode=train", "--loss=loss", "-o", folder / "m.dsp")
    expect("'fresh' holds one number and is a parameter in 2 places" in result.err, result.err)
    expect("'last'" not in result.err and "'shared'" not in result.err, result.err)
