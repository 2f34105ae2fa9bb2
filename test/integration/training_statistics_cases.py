"""Running means and variances in training: micro-batches move them as ONNX says, finite steps keep that, evaluation uses them.
The oracle is the same training in PyTorch's float64, and NumPy where a formula is one line."""
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from kit import case, compile_model, expect, onnx_runtime, run_package, tool
from programs import SEED
from trainer_api_cases import MICRO_BATCHES, ROWS, example, next_numbers
from training_cases import torch
from training_runs import column, log_of, safetensors, same_state, settings, train, train_package, weights, write_config

# One channel, then one norm that is used twice: nodes that share a statistic move it one after the other.
TEXT = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 1, 6, 5] x) => (float[n, 3] logits, float[4] moved)
  { h0, m0, v0 = BatchNormalization <training_mode = 1, momentum = 0.875, epsilon = 0.0009765625> (x, scale0, shift0, mean0, var0)
    c1 = Conv (h0, k1)
    h1, m1, v1 = BatchNormalization <training_mode = 1, momentum = 0.75, epsilon = 0.0009765625> (c1, scale1, shift1, mean1, var1)
    r1 = Relu (h1) c2 = Conv (r1, k2)
    h2, moved, v2 = BatchNormalization <training_mode = 1, momentum = 0.75, epsilon = 0.0009765625> (c2, scale1, shift1, mean1, var1)
    r2 = Relu (h2) g = GlobalAveragePool (r2) f = Flatten (g) logits = Gemm (f, head, bias) }"""
STATISTICS = {"mean0", "var0", "mean1", "var1"}


def random(*more): return np.random.default_rng([SEED, *more])


def model(g):
    arrays = {"scale0": 1 + g.random(1), "shift0": g.standard_normal(1), "k1": g.standard_normal((4, 1, 3, 3)) / 2,
              "scale1": 1 + g.random(4), "shift1": g.standard_normal(4), "k2": g.standard_normal((4, 4, 1, 1)),
              "head": g.standard_normal((4, 3)), "bias": g.standard_normal(3), "mean0": g.standard_normal(1), "var0": 0.5 + g.random(1),
              "mean1": g.standard_normal(4), "var1": 0.5 + g.random(4)}
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return proto, arrays


def data(folder, g, samples=40):
    x, labels = g.standard_normal((samples, 1, 6, 5)).astype(np.float32) + 0.5, g.integers(0, 3, samples)
    np.savez(folder / "data.npz", x=x, labels=labels)
    return x, labels


def statistics(checkpoint):
    """Those of a checkpoint, which holds them apart from what is trained."""
    found = safetensors(checkpoint / "statistics.safetensors")
    kept = set(safetensors(checkpoint / "parameters.safetensors"))
    expect(set(found) == STATISTICS and not kept & STATISTICS, f"statistics: {sorted(found)}, parameters: {sorted(kept)}")
    return found


def close(found, expected, tolerance, what):
    """`found` is a NumPy array that is off by at most a share of the greatest of what is expected."""
    off = np.max(np.abs(np.asarray(found, float) - expected)) / np.max(np.abs(expected))
    expect(np.shape(found) == np.shape(expected) and off <= tolerance, f"seed {SEED}: {what}: off by {off:.3g}: {found}, expected {expected}")


@case(seconds=6)
def against_pytorch(folder):
    """Losses, evaluations after each step, weights and statistics, of one micro-batch a step and of two; then the outputs of an
    evaluation, one of which is a running mean."""
    proto, arrays = model(random())
    x, labels = data(folder, random(1))
    np.savez(folder / "run.npz", **arrays, x=x, labels=labels, micro=4, accumulation=[1, 2], steps=10, rate=0.1, momentum=0.5)
    torch("torch_batch_norm.py", folder / "run.npz", folder / "torch.npz")
    theirs = dict(np.load(folder / "torch.npz"))
    # Roundings to float32 of three norms in each of ten steps, which training enlarges; next to none in float64.
    for options, accumulation, tolerance in ((["--reference=f64"], 2, 1e-9), ([], 1, 1e-4)):
        package = train_package(folder, proto, settings(("SGD", {"lr": 0.1, "momentum": 0.5}), accumulation=accumulation), *options)
        run = folder / f"run{accumulation}"
        train(package, folder / "data.npz", "--steps=10", "--shuffle=off", f"--eval-data={folder / 'data.npz'}", "--eval-interval=1",
              f"--checkpoint={run}", f"--log={folder / 'log.jsonl'}")
        expected = {name.split("/")[1]: array for name, array in theirs.items() if name.startswith(f"{accumulation}/")}
        rows = log_of(folder / "log.jsonl")
        close(column(rows, "loss"), expected["loss"], tolerance, "losses")
        close(column(rows, "eval_loss"), expected["eval"], tolerance, "evaluations")
        found = weights(run / "global_step10")
        expect(set(found) == set(arrays), f"exported: {sorted(found)}")
        for name, array in found.items():
            close(array, expected[name], tolerance, name)  # variances by n - 1 would be off by a share of 1e-3
            # The norm behind it takes the first one's bias away, and nearly all of its scale.
            expect(name == "shift0" or np.abs(array - arrays[name]).max() > (0 if name == "scale0" else 1e-3), f"{name} does not move")
        expect(statistics(run / "global_step10").keys() <= found.keys(), "statistics are exported")
        np.savez(folder / "states.npz", **found)
        outputs = run_package(package, {"x": x, "labels": labels}, folder, "--entry=eval", f"--state-in={folder / 'states.npz'}")
        expect(np.array_equal(outputs["moved"], found["mean1"].astype(np.float32)), f"{outputs['moved']}, expected {found['mean1']}")


@case(seconds=2)
def steps_that_overflow(folder):
    """The second step reads an infinity: it leaves statistics and weights, the others move them."""
    proto, _ = model(random(2))
    x, labels = data(folder, random(3), 12)
    x[6, 0, 2, 2] = np.inf
    np.savez(folder / "data.npz", x=x, labels=labels)
    package = train_package(folder, proto, settings("SGD", fp16={"enabled": True, "initial_scale_power": 8}))
    result = train(package, folder / "data.npz", "--steps=3", "--shuffle=off", f"--checkpoint={folder / 'run'}", "--save-interval=1",
                   f"--log={folder / 'log.jsonl'}")
    expect([row["overflow"] for row in log_of(folder / "log.jsonl")] == [False, True, False], result.out)
    first, second, third = (statistics(folder / f"run/global_step{step}") for step in (1, 2, 3))
    for name in STATISTICS:
        expect(np.isfinite(third[name]).all() and first[name].tobytes() == second[name].tobytes(), f"{name}: {first}, {second}, {third}")
        expect((second[name] != third[name]).all(), f"{name} does not move: {second[name]}")


@case(seconds=3)
def resumed(folder):
    """To the same bits; a step is two micro-batches."""
    proto, _ = model(random(4))
    data(folder, random(5))
    package = train_package(folder, proto, settings(accumulation=2))
    for run, *parts in (("whole", ["--steps=5"]), ("parts", ["--steps=3"], ["--steps=5", "--resume"])):
        for options in parts:
            train(package, folder / "data.npz", *options, f"--checkpoint={folder / run}")
    same_state(folder / "whole", folder / "parts", 5)
    statistics(folder / "parts/global_step5")
    listed = tool("ds-run", "checkpoint", "inspect", folder / "parts").out
    expect("statistics.safetensors" in listed and "moved" not in listed, listed)
    tool("ds-run", "checkpoint", "verify", folder / "parts")


@case(seconds=4)
def exported(folder):
    """The ONNX model has the moved statistics: as it is, which normalizes by the batch, and set to inference, where it computes what
    the package's evaluation does."""
    proto, arrays = model(random(6))
    x, labels = data(folder, random(7))
    package = train_package(folder, proto, settings(("AdamW", {"lr": 0.01, "weight_decay": 0.5})))
    train(package, folder / "data.npz", "--steps=4", f"--checkpoint={folder / 'run'}")
    tool("ds-run", "checkpoint", "export", folder / "run", f"--package={package}", "-o", folder / "trained.onnx")
    trained, saved = onnx.load(folder / "trained.onnx"), statistics(folder / "run/global_step4")
    for tensor in trained.graph.initializer:
        if tensor.name in STATISTICS:
            found = numpy_helper.to_array(tensor)
            expect(found.tobytes() == saved[tensor.name].tobytes() != arrays[tensor.name].tobytes(), f"{tensor.name}: {found}")
    plain = compile_model(folder / "trained.onnx", folder, name="plain.dsp")
    for name, array in zip(("logits", "moved"), ReferenceEvaluator(trained).run(None, {"x": x})):
        close(run_package(plain, {"x": x}, folder)[name], array, 1e-5, name)
    for node in trained.graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            node.attribute.remove(next(a for a in node.attribute if a.name == "training_mode"))
    del trained.graph.output[1:]
    onnx.save(trained, folder / "inference.onnx")
    np.savez(folder / "states.npz", **weights(folder / "run/global_step4"))
    evaluated = run_package(package, {"x": x, "labels": labels}, folder, "--entry=eval", f"--state-in={folder / 'states.npz'}")
    close(evaluated["logits"], onnx_runtime(folder / "inference.onnx", {"x": x})["logits"], 1e-5, "logits")


@case
def frozen(folder):
    """Stays, and evaluation uses it as it is."""
    proto, arrays = model(random(8))
    data(folder, random(9))
    package = train_package(folder, proto, settings(), "--freeze=^(mean|var)1$", "--train=^(head|mean)")
    train(package, folder / "data.npz", "--steps=2", f"--checkpoint={folder / 'run'}")
    found = safetensors(folder / "run/global_step2/statistics.safetensors")
    expect(set(found) == {"mean0", "var0"} and set(safetensors(folder / "run/global_step2/parameters.safetensors")) == {"head"}, f"{sorted(found)}")
    inputs = {"x": random(10).standard_normal((3, 1, 6, 5)).astype(np.float32), "labels": np.zeros(3, np.int64)}
    expect(np.array_equal(run_package(package, inputs, folder, "--entry=eval")["moved"], arrays["mean1"]), "the frozen mean moved")


@case
def own_loop(folder):
    """ds_trainer_step keeps what ds_trainer_backward moved; a loop that goes on from its checkpoint has the same bits."""
    g = random(11)
    arrays = {"scale": 1 + g.random(3), "shift": g.random(3), "mean": g.random(3), "var": 1 + g.random(3), "w": g.random((3, 2)), "b": g.random(2)}
    proto = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["": 17]> m (float[n, 3] x) => (float[n, 2] y)
      { h, m, v = BatchNormalization <training_mode = 1, momentum = 0.75> (x, scale, shift, mean, var) p = MatMul (h, w) y = Add (p, b) }""")
    proto.graph.initializer.extend(numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items())
    onnx.save(proto, folder / "model.onnx")
    config = write_config(folder, settings("SGD", micro=ROWS, accumulation=MICRO_BATCHES))
    result = tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=mse", "--logits=y", "--labels=labels", f"--config={config}", "--report",
                  "-o", folder / "model.dsp")
    for name in ("mean", "var"):
        expect(f"running statistic, moves with every step: {name}\n" in result.out + result.err, result.out + result.err)
    example(folder / "model.dsp", folder / "whole", 5)
    example(folder / "model.dsp", folder / "parts", 2)
    example(folder / "model.dsp", folder / "parts", 5, "resume")
    tool("ds-run", "checkpoint", "diff", folder / "whole/global_step5", folder / "parts/global_step5")
    mean, var = arrays["mean"], arrays["var"]
    for number in range(5 * MICRO_BATCHES):
        batch = next_numbers(number, ROWS * 3).reshape(ROWS, 3)
        mean, var = 0.75 * mean + 0.25 * batch.mean(0), 0.75 * var + 0.25 * batch.var(0)
    found = safetensors(folder / "whole/global_step5/statistics.safetensors")
    close(found["mean"], mean, 1e-5, "mean")  # ten averages in float32
    close(found["var"], var, 1e-5, "variance")


NORM = """<ir_version: 9, opset_import: ["": 17]> m (float[n, %d] x) => (float[n, 2] y)
  { %s h, a, b = BatchNormalization <training_mode = 1, momentum = 0.75> (x, scale, shift, mean, %s) p = MatMul (h, w) y = Add (p, c) }"""


def norm(folder, nodes="", variance="var", channels=3, **more):
    """A package of one norm, for the loss mse, and its data."""
    g = random(13)
    arrays = {"scale": 1 + g.random(channels), "shift": g.random(channels), "mean": g.random(channels), "var": 1 + g.random(channels),
              "w": g.random((channels, 2)), "c": g.random(2)}
    proto = onnx.parser.parse_model(NORM % (channels, nodes, variance))
    proto.graph.initializer.extend(numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items())
    onnx.save(proto, folder / "norm.onnx")
    config = write_config(folder, settings(("SGD", {"lr": 0.01}), micro=8))
    options = ["--mode=train", "--loss=mse", "--logits=y", "--labels=labels", f"--config={config}", *more.get("options", ())]
    np.savez(folder / "norm.npz", x=more.get("x", g.standard_normal((24, channels))).astype(np.float32), labels=g.standard_normal((24, 2)).astype(np.float32))
    return tool("ds-opt", folder / "norm.onnx", *options, "-o", folder / more.get("name", "norm.dsp"))


@case(seconds=4)
def evaluated_with_another_package(folder):
    """A package that has a statistic as a constant would evaluate another model than the checkpoint's."""
    norm(folder)
    train(folder / "norm.dsp", folder / "norm.npz", "--steps=3", f"--checkpoint={folder / 'run'}")
    for name, options in (("mean", ["--freeze=^mean$"]), ("w", ["--freeze=^w$"])):
        norm(folder, name="other.dsp", options=options)
        tool("ds-run", "eval", folder / "other.dsp", f"--data={folder / 'norm.npz'}", f"--checkpoint={folder / 'run'}", code=2, says=f"holds '{name}' as trained")
    tool("ds-run", "eval", folder / "norm.dsp", f"--data={folder / 'norm.npz'}", f"--checkpoint={folder / 'run'}")


@case
def statistics_that_are_no_numbers(folder):
    """Variances beyond f32 stop a run before they are kept, as gradients do."""
    g = random(17)
    norm(folder, x=np.where(np.arange(24)[:, None] < 16, g.standard_normal((24, 3)), 1e25 * g.standard_normal((24, 3))))
    said = train(folder / "norm.dsp", folder / "norm.npz", "--steps=3", "--shuffle=off", f"--checkpoint={folder / 'run'}", "--save-interval=1", code=1).err
    expect("step 2" in said, said)
    found = safetensors(folder / "run/global_step2/statistics.safetensors")
    expect(np.isfinite(found["var"]).all() and not (folder / "run/global_step3").exists(), f"{found}")


@case(seconds=3)
def statistics_behind_identities(folder):
    for channels in (1, 3):
        said = norm(folder, "same = Identity (var)", "same", channels, options=["--report"])
        expect("running statistic, moves with every step: var\n" in said.out + said.err, said.out + said.err)
