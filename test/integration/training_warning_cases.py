"""What training warns of: parameters that do not move, losses that grow, running statistics that cannot move."""
import numpy as np
import onnx
from onnx import numpy_helper

from kit import case, compile_model, expect, tool
from training_runs import column, log_of, safetensors, settings, train, write_config

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


@case(seconds=6)
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


@case(seconds=6)
def movement_is_what_counts(folder):
    """Decay moves what has no gradient; updates below the last bit move nothing; a rate of 0 is said once, not of each parameter."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x) => (float loss, float[n, 2] aside)
      { y = MatMul (x, w) aside = MatMul (x, u) s = Mul (y, y) loss = ReduceMean <keepdims = 0> (s) }"""
    weights = {"w": np.ones((3, 2)), "u": np.ones((3, 2))}
    np.savez(folder / "d.npz", x=np.random.default_rng(0).standard_normal((8, 3), np.float32))
    lost, none = "the updates of 'w' were lost in rounding", "the learning rate was 0 in each of the first 5 steps"
    warmup = ("WarmupLR", {"warmup_min_lr": 0, "warmup_max_lr": 0.1, "warmup_num_steps": 10})
    for optimizer, scheduler, expected in ((("AdamW", {"lr": 0.1, "weight_decay": 0.5}), None, []), (("SGD", {"lr": 1e-12}), None, [lost, STILL.format("u")]),
                                           (("SGD", {"lr": 0}), None, [none]), (("SGD", {"lr": 0.1}), warmup, [STILL.format("u")])):
        package = package_of(folder, text, weights, settings(optimizer, micro=8, scheduler=scheduler))
        result = train(package, folder / "d.npz", "--steps=30")
        expect(result.err.count("warning") == len(expected) and all(part in result.err for part in expected), f"{optimizer}: {result.err}")


@case
def small_losses_that_grow(folder):
    """A loss near 0 is judged by what it began with: 4e-6 that grows to 0.01 has grown, noise around 1e-6 has not."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x) => (float loss)
      { y = MatMul (x, w) s = Mul (y, y) loss = ReduceMean <keepdims = 0> (s) }"""
    g = np.random.default_rng(0)
    x = g.standard_normal((8, 3), np.float32)
    np.savez(folder / "d.npz", x=x)
    rate = float(2.1 / np.linalg.eigvalsh(x.T @ x / 8).max())  # each step multiplies the error in one direction by -1.1
    package = package_of(folder, text, {"w": np.full((3, 2), 1e-3)}, settings(("SGD", {"lr": rate}), micro=8))
    train(package, folder / "d.npz", "--steps=200", f"--log={folder / 'log'}", code=None)
    losses = column(log_of(folder / "log"), "loss")
    end = int(np.argmax(losses > 1e-2))
    for steps, count in ((end, 1), (20, 0)) if end > 20 else ():
        result = train(package, folder / "d.npz", f"--steps={steps}")
        expect(result.err.count("the loss grows") == count, f"{steps} steps: {result.err}; losses {losses[:steps]}")
    expect(end > 20, f"the case shows nothing: {losses}")
    np.savez(folder / "d.npz", x=(g.standard_normal((400, 3)) * np.exp(g.standard_normal((400, 1)))).astype(np.float32))
    package = package_of(folder, text, {"w": np.full((3, 2), 1e-3)}, settings(("SGD", {"lr": 1e-9}), micro=1))
    result = train(package, folder / "d.npz", "--steps=400")
    expect("the loss grows" not in result.err, f"noise is said to grow: {result.err}")


@case(seconds=3)
def losses_that_grow(folder):
    """Once, however long; not of a loss that falls, nor before it is clear."""
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[n, 3] x) => (float loss)
      { y = MatMul (x, w) s = Mul (y, y) loss = ReduceMean <keepdims = 0> (s) }"""
    np.savez(folder / "d.npz", x=np.random.default_rng(0).standard_normal((8, 3), np.float32))
    for rate, steps, count in ((2.0, 60, 1), (2.0, 15, 0), (0.05, 60, 0)):
        package = package_of(folder, text, {"w": np.ones((3, 2))}, settings(("SGD", {"lr": rate}), micro=8))
        result = train(package, folder / "d.npz", f"--steps={steps}")
        expect(result.err.count("the loss grows: its average is") == count, f"rate {rate}, {steps} steps: {result.err}")


def norm_in(folder, body, inputs="", outputs="", initializers=("scale", "shift", "mean", "var", "w")):
    """Writes a model whose `h` is what the body computes of x, and arguments that compile it for training."""
    text = f"""<ir_version: 8, opset_import: ["": 15]> m (float[n, 3] x{inputs}) => (float loss{outputs})
      {{ {body} y = MatMul (h, w) s = Mul (y, y) loss = ReduceMean <keepdims = 0> (s) }}"""
    weights = {"scale": np.ones(3), "shift": np.zeros(3), "mean": [1, 2, 3], "var": [1, 2, 0.5], "w": np.ones((3, 2))}
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(weights[name], np.float32), name) for name in initializers)
    onnx.save(model, folder / "m.onnx")
    return ["ds-opt", folder / "m.onnx", "--mode=train", "--loss=loss", "-o", folder / "m.dsp"]


@case(seconds=4)
def statistics_that_cannot_move(folder):
    """What is computed or given stays, which a warning says; what the model holds moves, and a model to be run is not warned of."""
    norm = "h, a, b = BatchNormalization <training_mode = 1> (x, scale, shift, {}, var)"
    found = norm_in(folder, norm.format("mean"), outputs=", float[3] a, float[3] b")
    expect(tool(*found).err == "", "statistics that move are warned of")
    expect(tool("ds-opt", folder / "m.onnx", "-o", folder / "run.dsp").err == "", "a package that runs is warned of")
    for body, inputs in ((norm.format("given"), ", float[3] given"), (f"c = Abs (x) d = ReduceMean <axes = [0], keepdims = 0> (c) {norm.format('d')}", "")):
        result = tool(*norm_in(folder, body, inputs))
        expect(result.err.count("they stay as they are, and evaluation normalizes") == 1, result.err)
    command = norm_in(folder, norm.format("mean").replace("= 1>", "= 1, momentum = 1.5>"))
    tool(*command, code=1, says="attribute 'momentum': expected 0 to 1 where the model is trained, found 1.5")


@case
def statistics_are_not_learned(folder):
    """Running means and variances have no gradient and no decay. In a branch they cannot move, and stay where they are frozen."""
    norm = "BatchNormalization <training_mode = 1> (x, scale, shift, mean, var)"
    branch = f"""q = ReduceSum <keepdims = 0> (x) z = Constant <value_float = 0.0> () c = Greater (q, z)
      h = If (c) <then_branch = t () => (h1) {{ h1, a1, b1 = {norm} }}, else_branch = e () => (h2) {{ h2 = Mul (x, scale) }}>"""
    np.savez(folder / "d.npz", x=np.random.default_rng(0).standard_normal((9, 3), np.float32))
    config = write_config(folder, settings(("AdamW", {"lr": 0.1, "weight_decay": 0.5})))
    for number, (body, options) in enumerate(((f"h, a, b = {norm}", []), (branch, ["--freeze=^(mean|var)$"]))):
        command = norm_in(folder, body)
        if options:
            tool(*command, code=1, says="a batch normalization in a branch or a loop cannot move its running statistic 'mean'; --freeze keeps it as it is")
        tool(*command, *options, f"--config={config}")
        train(folder / "m.dsp", folder / "d.npz", "--steps=2", f"--checkpoint={folder / f'run{number}'}")
        learned = set(safetensors(folder / f"run{number}/global_step2/parameters.safetensors"))
        expect(learned == {"scale", "shift", "w"}, f"{body}: {learned}")
        expect((folder / f"run{number}/global_step2/statistics.safetensors").exists() == (not options), "the checkpoint's statistics")
