"""What training warns of: parameters that do not move, losses that grow, batch norms that were exported for training."""
import numpy as np
import onnx
from onnx import numpy_helper

from kit import case, compile_model, expect, tool
from training_runs import settings, train, write_config
from training_runs import weights as weights_of

STILL = "the gradient of '{}' was 0 in each of the first 5 steps: it does not move"


def package_of(folder, text, weights, config, *options):
    """A package of the model with an output `loss`."""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in weights.items())
    onnx.save(model, folder / "m.onnx")
    return compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss", f"--config={write_config(folder, config)}", *options)


def warned_of(result, names):
    found = {name for name in names if STILL.format(name) in result.err}
    expect(result.err.count("does not move") == len(found), result.err)
    return found


@case
def parameters_that_do_not_move(folder):
    """Behind a Relu that is never open, and without a way to the loss; not those that are frozen, nor a table of which one row is
    read, nor a parameter whose gradient is 0 in some of the steps."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x, int64[n] id) => (float loss, float[n, 2] aside)
      { h = MatMul (x, closed) r = Relu (h) z = MatMul (r, behind) e = Gather (table, id) q = MatMul (x, open) g = MatMul (e, rare)
        a = Add (z, e) c = Add (a, q) d = Add (c, g) s = Mul (d, d) loss = ReduceSum <keepdims = 0> (s) aside = MatMul (x, beside) }"""
    g = np.random.default_rng(0)
    weights = {"closed": -np.ones((3, 4)), "behind": np.ones((4, 2)), "table": np.zeros((9, 2)), "open": g.standard_normal((3, 2)),
               "rare": np.ones((2, 2)), "beside": np.ones((3, 2))}
    # The table begins with zeros: "rare" has no gradient in the first step, and one from the second on.
    np.savez(folder / "d.npz", x=1 + g.random((8, 3), np.float32), id=np.full(8, 4))
    config = settings(("SGD", {"lr": 1e-3}))
    for options, still in (([], {"closed", "behind", "beside"}), (["--freeze=^(closed|beside)$"], {"behind"})):
        package = package_of(folder, text, weights, config, *options)
        for steps, expected in ((4, set()), (12, still)):
            result = train(package, folder / "d.npz", f"--steps={steps}")
            expect(warned_of(result, weights) == expected, f"{options}, {steps} steps: {result.err}")


@case
def losses_that_grow(folder):
    """Once, however long; not of a loss that falls, nor before it is clear."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x) => (float loss)
      { y = MatMul (x, w) s = Mul (y, y) loss = ReduceMean <keepdims = 0> (s) }"""
    np.savez(folder / "d.npz", x=np.random.default_rng(0).standard_normal((8, 3), np.float32))
    for rate, steps, count in ((2.0, 60, 1), (2.0, 15, 0), (0.05, 60, 0)):
        package = package_of(folder, text, {"w": np.ones((3, 2))}, settings(("SGD", {"lr": rate}), micro=8))
        result = train(package, folder / "d.npz", f"--steps={steps}")
        expect(result.err.count("the loss grows: its average is") == count, f"rate {rate}, {steps} steps: {result.err}")


@case
def batch_norms_exported_for_training(folder):
    text = """<ir_version: 8, opset_import: ["": 15]> m (float[n, 3] x) => (float loss)
      { h%s = BatchNormalization%s (x, scale, shift, mean, var) y = MatMul (h, w) s = Mul (y, y) loss = ReduceMean <keepdims = 0> (s) }"""
    weights = {"scale": np.ones(3), "shift": np.zeros(3), "mean": [1, 2, 3], "var": [1, 2, 0.5], "w": np.ones((3, 2))}
    for outputs, attributes, count in ((", a, b", "<training_mode = 1>", 1), ("", "", 0)):
        package_of(folder, text % (outputs, attributes), weights, settings())
        options = ["--mode=train", "--loss=loss", "-o", folder / "again.dsp"]
        result = tool("ds-opt", folder / "m.onnx", *options)
        expect(result.err.count("was exported for training: evaluation normalizes") == count, result.err)
        expect(tool("ds-opt", folder / "m.onnx", "-o", folder / "run.dsp").err == "", "a package that runs is warned of")


@case
def statistics_are_not_learned(folder):
    """Running means and variances that are outputs, or computed in a branch, are none of the parameters, and have no decay."""
    branch = """q = ReduceSum <keepdims = 0> (x) z = Constant <value_float = 0.0> () c = Greater (q, z)
      h = If (c) <then_branch = t () => (h1) { h1, a1, b1 = BatchNormalization <training_mode = 1> (x, scale, shift, mean, var) },
                  else_branch = e () => (h2) { h2 = Mul (x, scale) }>"""
    weights = {"scale": np.ones(3), "shift": np.zeros(3), "mean": [1, 2, 3], "var": [1, 2, 0.5], "w": np.ones((3, 2))}
    np.savez(folder / "d.npz", x=np.random.default_rng(0).standard_normal((9, 3), np.float32))
    for number, (body, outputs) in enumerate((("h, a, b = BatchNormalization <training_mode = 1> (x, scale, shift, mean, var)", ", float[3] a, float[3] b"),
                                              (branch, ""))):
        text = f"""<ir_version: 8, opset_import: ["": 15]> m (float[n, 3] x) => (float loss{outputs})
          {{ {body} y = MatMul (h, w) s = Mul (y, y) loss = ReduceMean <keepdims = 0> (s) }}"""
        package = package_of(folder, text, weights, settings(("AdamW", {"lr": 0.1, "weight_decay": 0.5})))
        train(package, folder / "d.npz", "--steps=2", f"--checkpoint={folder / f'run{number}'}")
        learned = set(weights_of(folder / f"run{number}"))
        expect(learned == {"scale", "shift", "w"}, f"{body}: {learned}")
