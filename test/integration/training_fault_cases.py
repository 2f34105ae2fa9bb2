"""Numbers that are none: what the message names, in whatever micro-batch they arise. Norms of gradients far from 1, against NumPy's in f64."""
import numpy as np
import onnx
from onnx import numpy_helper

from kit import case, compile_model, expect, tool
from training_runs import column, log_of, settings, train, weights, write_config

FP16 = {"enabled": True, "initial_scale_power": 8}


def model_of(folder, text, arrays):
    model = onnx.parser.parse_model(text)
    for node in model.graph.node:
        node.name = "node_" + node.output[0]
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in arrays.items())
    onnx.save(model, folder / "m.onnx")


def compiled(folder, config, *options):
    return compile_model(folder / "m.onnx", folder, "--mode=train", f"--config={write_config(folder, config)}", *options)


@case(seconds=7)
def faults_of_a_later_micro_batch(folder):
    """The logarithm of a negative number, in each of the micro-batches of the second step: its tensor, node, operator and samples. In half
    precision the tensor is a rounded one, which has no name, or lies inside the kernel of what reads it, whose other nodes are named; the step is
    skipped."""
    g = np.random.default_rng(0)
    model_of(folder, """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x) => (float[n, 4] logits)
      { h = MatMul (x, w) a = Add (h, b) q = Log (a) z = MatMul (q, v) logits = Add (z, c) }""",
             {"w": 0.1 + g.random((3, 8)), "b": g.random(8), "v": g.standard_normal((8, 4)), "c": np.zeros(4)})
    good, labels = 0.1 + g.random((22, 3), np.float32), g.integers(0, 4, 22)
    for more, options in (({}, []), ({}, ["--reference"]), ({"fp16": FP16}, [])):
        package = compiled(folder, settings(("SGD", {"lr": 1e-3}), micro=2, accumulation=4, **more), "--loss=cross_entropy", "--logits=logits",
                           "--labels=labels", *options)
        for bad in (8, 10, 13, 14):
            x = good.copy()
            x[bad] = -5
            np.savez(folder / "d.npz", x=x, labels=labels)
            first = bad // 2 * 2
            result = train(package, folder / "d.npz", "--steps=3", "--shuffle=off", code=0 if more else 1,
                           says=["step 1: ", "NaN in tensor 'q' of node 'node_q' (Log, " if not more else "'node_q' (Log", f"samples {first}, {first + 1}"])
            expect(result.err.count("\n") == 1, result.err)


@case
def inputs_that_are_none_in_half_precision(folder):
    """No loss scale helps against a loss that is none: what was read is named once, and where every step reads it, again with the least scale."""
    g = np.random.default_rng(0)
    model_of(folder, """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x) => (float loss)
      { y = MatMul (x, w) s = Mul (y, y) loss = ReduceMean <keepdims = 0> (s) }""", {"w": g.standard_normal((3, 2))})
    package = compiled(folder, settings(("SGD", {"lr": 1e-3}), micro=4, fp16=FP16), "--loss=loss")
    for value in (np.nan, np.inf, -np.inf):
        x = g.standard_normal((20, 3), np.float32)
        x[9, 1] = x[13, 0] = value
        np.savez(folder / "d.npz", x=x)
        result = train(package, folder / "d.npz", "--steps=5", "--shuffle=off", f"--log={folder / 'log'}",
                       says=["ds-run: warning: step 2: tensor 'x', which was read, holds ", "in sample 9 of the data", "samples 8, 9, 10, 11"])
        expect(result.err.count("\n") == 1, result.err)
        rows = log_of(folder / "log")
        expect([row["overflow"] for row in rows] == [False, False, True, True, False], f"{rows}")
        expect(rows[2]["loss"] is None and rows[4]["skipped"] == 2, f"{rows}")
        x[:, 0] = value
        np.savez(folder / "d.npz", x=x)
        train(package, folder / "d.npz", "--steps=50", "--shuffle=off", f"--log={folder / 'log'}", code=1,
              says=["warning: step 0: tensor 'x'", "error: step 9: tensor 'x'", "the loss scale is 1, its minimum"])
        expect(all(row["overflow"] for row in log_of(folder / "log")), "steps of the log")


@case
def losses_that_are_none_beside_finite_gradients(folder):
    """What is added to the loss reads no parameter: gradients are numbers, but the step changes nothing. Without a dynamic scale it
    stops training."""
    g = np.random.default_rng()
    model_of(folder, """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x, float[n] z) => (float loss)
      { y = MatMul (x, w) s = Mul (y, y) l0 = ReduceMean <keepdims = 0> (s) q = Log (z) l1 = ReduceMean <keepdims = 0> (q) loss = Add (l0, l1) }""",
             {"w": g.standard_normal((3, 2))})
    z = np.ones(20, np.float32)
    z[9] = -1
    np.savez(folder / "d.npz", x=g.standard_normal((20, 3), np.float32), z=z)
    for more, code in (({}, 1), ({"fp16": FP16}, 0)):
        package = compiled(folder, settings(("SGD", {"lr": 1e-2}), micro=4, **more), "--loss=loss")
        run = folder / f"run{code}"
        train(package, folder / "d.npz", "--steps=5", "--shuffle=off", f"--log={folder / 'log'}", f"--checkpoint={run}", "--save-interval=1", code=code,
              says=["step 2: NaN in tensor ", "of node 'node_q' (Log, ", "samples 8, 9, 10, 11"])
        rows = log_of(folder / "log")
        expect([row["overflow"] for row in rows] == [False, False, True, False, False][:len(rows)] and len(rows) == (3 if code else 5), f"{rows}")
        expect(rows[2]["loss"] is None and rows[2]["grad_norm"] is None and rows[2]["skipped"] == 1, f"{rows}")
        if not code:
            second, third = (weights(run / f"global_step{step}")["w"] for step in (2, 3))
            expect(second.tobytes() == third.tobytes(), f"{second}, {third}")
            judged = tool("ds-run", "eval", package, f"--data={folder / 'd.npz'}")
            expect("loss nan" in judged.out and "label" not in judged.out, judged.out)
            result = tool("ds-run", "lr-range", package, f"--data={folder / 'd.npz'}", "--shuffle=off", "--steps=20", code=1)
            expect("step 2: NaN in tensor" in result.err and "the range ends here" in result.err, result.err)


@case(seconds=3)
def norms_far_from_one(folder):
    """Squares of f32 lie beyond f32 where the norm does not."""
    g = np.random.default_rng(0)
    model_of(folder, """<ir_version: 8, opset_import: ["": 17]> m (float[n, 900] x) => (float loss)
      { y = MatMul (x, w) loss = ReduceMean <keepdims = 0> (y) }""", {"w": np.zeros((900, 20))})
    for options in ([], ["--reference"], ["--reference=f64"]):
        package = compiled(folder, settings(("SGD", {"lr": 1e-30}), micro=8), "--loss=loss", *options)
        for scale in (1e-30, 1e-25, 1e-20, 1, 1e19, 1e25, 1e33):
            x = (g.standard_normal((8, 900)) * scale).astype(np.float32)
            np.savez(folder / "d.npz", x=x)
            expected = np.sqrt(20 * np.sum((x.astype(float).mean(0) / 20)**2))
            found = []
            for threads in (1, 3):
                train(package, folder / "d.npz", "--steps=1", f"--threads={threads}", f"--log={folder / 'log'}")
                found.append(column(log_of(folder / "log"), "grad_norm")[0])
            expect(found[0] == found[1], f"{options}, {scale}: {found} with 1 and 3 threads")
            expect(abs(found[0] - expected) <= 1e-5 * expected, f"{options}, {scale}: the norm is {found[0]}, expected {expected}")


@case
def norms_beyond_all_numbers(folder):
    """Where each gradient is finite and their norm is not, the greatest is named."""
    model_of(folder, """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x) => (float loss)
      { y = MatMul (x, w) z = MatMul (x, u) p = ReduceSum <keepdims = 0> (y) q = ReduceSum <keepdims = 0> (z) h = Mul (q, half) loss = Add (p, h) }""",
             {"w": np.zeros((3, 2)), "u": np.zeros((3, 2)), "half": np.float32(0.5)})
    np.savez(folder / "d.npz", x=np.full((1, 3), 3e38, np.float32))
    package = compiled(folder, settings(("SGD", {"lr": 1e-30}), micro=1), "--loss=loss")
    train(package, folder / "d.npz", "--steps=1", code=1, says=["step 0: ", "the greatest element, 3e+38, is in the gradient of 'w'"])
