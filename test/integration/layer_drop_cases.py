"""Progressive layer dropping: which blocks run is drawn by NumPy with the same generator, and what becomes of that by PyTorch, where a
dropped block is one that is multiplied by 0."""
import functools
import json
import math

import numpy as np
import onnx
from onnx import TensorProto

import training_models as models
from generate import value
from kit import case, compile_model, expect, run_package, tool
from philox import philox
from programs import SEED
from training_resume_cases import same_after_stops
from training_runs import by_torch, column, log_of, safetensors, same_state, settings, train, train_package, weights

VOCABULARY, LENGTH, LAYERS = 61, 12, 4


def drops(theta=0.3, gamma=0.4, **more):
    return {"progressive_layer_drop": {"enabled": True, "theta": theta, "gamma": gamma, **more}}


def theta_of(step, limit, gamma):
    return (1 - limit) * math.exp(-gamma * max(step - 1, 0)) + limit


def keep_of(block, layers, theta, schedule="shipped"):
    return 1 - (block + (schedule == "paper")) / layers * (1 - theta)


def gates_of(seed, step, micro, layers, theta, schedule="shipped"):
    """What each block is multiplied by in a micro-batch: 0, or 1 / p."""
    words = philox([np.arange(layers), np.full(layers, micro), np.full(layers, step), np.full(layers, 2**32 - 1)], [seed & 0xFFFFFFFF, seed >> 32])[0]
    p = np.array([keep_of(block, layers, theta, schedule) for block in range(layers)])
    return np.where(words < p * 2.0**32, 1 / p, 0)


class Gated(models.Layers):
    """Layers whose branches are multiplied by a number per sample, an input: what the oracle trains."""

    def linear(self, x, name, *arguments, **keywords):
        y = super().linear(x, name, *arguments, **keywords)
        if not name.endswith("c_proj"):
            return y
        gate = self.op("Gather", "gates", self.constant(np.int64(int(name.split(".")[1]))), axis=1)
        return self.op("Mul", y, self.op("Unsqueeze", gate, self.integers(1, 2)))


def gpt(graph=None, layers=LAYERS, **keywords):
    return models.gpt(layers=layers, vocabulary=VOCABULARY, positions=LENGTH, seed=SEED % 1000, graph=graph, **keywords)


def gated(layers=LAYERS):
    model = gpt(Gated(SEED % 1000), layers)
    model.graph.input.append(value("gates", TensorProto.FLOAT, "batch", layers))
    return model


def tokens(folder, samples, name="data.npz", **fields):
    g = np.random.default_rng(SEED)
    ids = g.integers(0, VOCABULARY, (samples, LENGTH))
    np.savez(folder / name, input_ids=ids, labels=np.roll(ids, -1, 1), **fields)
    return folder / name


def same_numbers(rows, found, oracle, what):
    expect(np.allclose(column(rows, "loss"), oracle["loss"], rtol=2e-5), f"seed {SEED}, {what}: losses {column(rows, 'loss')}, PyTorch's {oracle['loss']}")
    # f32 against f64, whose sums have other orders; eps is far above the noise of gradients, so that no sign is chance
    expect(np.allclose(column(rows, "grad_norm"), oracle["grad_norm"], rtol=1e-3), f"seed {SEED}, {what}: norms {column(rows, 'grad_norm')}, {oracle['grad_norm']}")
    for name, array in found.items():
        off = np.max(np.abs(array - oracle["weight/" + name]))
        expect(off < 2e-5, f"seed {SEED}, {what}: {name} is off by {off:.3g}")


@case(seconds=12)
def trains_as_pytorch_does(folder):
    """Blocks that are dropped in one micro-batch, in all of a step, in none; by both depth schedules."""
    for optimizer, accumulation, schedule in ((("AdamW", {"lr": 2e-3, "eps": 1e-4, "weight_decay": 0.1}), 2, "shipped"), (("SGD", {"lr": 0.1, "momentum": 0.9}), 3, "paper"),
                                              (("AdamW", {"lr": 2e-3, "eps": 1e-4}), 1, "paper")):
        steps, micro, seed, what = 8, 3, SEED % 2**40 + 2**33, f"{optimizer[0]}, {accumulation} micro-batches, {schedule}"
        config = settings(optimizer, micro, accumulation, gradient_clipping=1.0, **drops(depth_schedule=schedule))
        gates = np.concatenate([np.repeat(gates_of(seed, step, i, LAYERS, theta_of(step, 0.3, 0.4), schedule)[None], micro, 0)
                                for step in range(steps) for i in range(accumulation)]).astype(np.float32)
        data = tokens(folder, len(gates))
        log = folder / "log.jsonl"
        package = train_package(folder, gpt(), config)
        train(package, data, f"--steps={steps}", "--shuffle=off", f"--seed={seed}", f"--checkpoint={folder / 'run'}", f"--log={log}")
        rows = log_of(log)
        ran = (gates.reshape(steps, accumulation, micro, LAYERS)[:, :, 0] > 0)
        expect(column(rows, "blocks").tolist() == ran.sum((1, 2)).tolist(), f"seed {SEED}, {what}: blocks {column(rows, 'blocks')}, drawn {ran.sum((1, 2))}")
        share = ran.reshape(-1, LAYERS).mean(0)
        expect(np.allclose(rows[-1]["keep_rates"], share), f"seed {SEED}, {what}: keep rates {rows[-1]['keep_rates']}, drawn {share}")
        found = weights(folder / "run" / f"global_step{steps}")
        onnx.save(gated(), folder / "model.onnx")
        same_numbers(rows, found, by_torch(folder, tokens(folder, len(gates), "torch.npz", gates=gates), "cross_entropy|logits|labels|-100", config, steps, double=True), what)
        for old in (folder / "run").glob("*"):
            if old.is_dir():
                for file in old.iterdir():
                    file.unlink()
                old.rmdir()
        (folder / "run" / "latest").unlink()


def streams(kind, graph, layers=LAYERS, hidden=16):
    """Feed-forward blocks on streams that are read at several places."""
    g = graph
    x = g.op("Gather", g.weight("wte", VOCABULARY, hidden, scale=0.5), "input_ids")
    places = [x]
    for layer in range(layers):
        inner = g.op("Tanh", g.linear(g.layer_norm(x, f"h.{layer}.ln", hidden), f"h.{layer}.c_fc", hidden, 2 * hidden))
        x = g.op("Add", x, g.linear(inner, f"h.{layer}.c_proj", 2 * hidden, hidden))
        if kind == "skips" and layer >= layers // 2:  # as in a U-Net
            x = g.op("Add", x, places[layers - 1 - layer])
        places.append(x)
    if kind == "means":
        x = g.op("Mul", functools.reduce(lambda a, b: g.op("Add", a, b), places), g.number(1 / len(places)))
    elif kind == "long skip":
        x = g.op("Add", g.op("Tanh", g.linear(x, "end", hidden, hidden)), places[0])
    logits = g.linear(g.layer_norm(x, "ln_f", hidden), "head", hidden, VOCABULARY)
    model = g.finish(logits, "logits", [value("input_ids", TensorProto.INT64, "batch", LENGTH)], "batch", LENGTH, VOCABULARY)
    if isinstance(g, Gated):
        model.graph.input.append(value("gates", TensorProto.FLOAT, "batch", layers))
    return model


@case(seconds=14)
def streams_with_skips(folder):
    """Blocks of streams that skips, means and heads read in several places train as PyTorch does, too."""
    steps, micro, accumulation, seed = 5, 3, 2, SEED % 2**40
    config = settings(("AdamW", {"lr": 2e-3, "eps": 1e-4}), micro, accumulation, **drops())
    gates = np.concatenate([np.repeat(gates_of(seed, step, i, LAYERS, theta_of(step, 0.3, 0.4))[None], micro, 0)
                            for step in range(steps) for i in range(accumulation)]).astype(np.float32)
    for kind in ("skips", "means", "long skip"):
        package = train_package(folder, streams(kind, models.Layers(SEED % 1000)), config)
        layers = json.loads((package / "manifest.json").read_text())["training"]["layers"]
        expect(len(layers) == LAYERS, f"{kind}: blocks {layers}")
        train(package, tokens(folder, len(gates)), f"--steps={steps}", "--shuffle=off", f"--seed={seed}", f"--checkpoint={folder / kind}", f"--log={folder / f'{kind}.jsonl'}")
        onnx.save(streams(kind, Gated(SEED % 1000)), folder / "model.onnx")
        oracle = by_torch(folder, tokens(folder, len(gates), "torch.npz", gates=gates), "cross_entropy|logits|labels|-100", config, steps, double=True)
        same_numbers(log_of(folder / f"{kind}.jsonl"), weights(folder / kind / f"global_step{steps}"), oracle, kind)


@case(seconds=6)
def vectors(folder):
    """theta of the published schedule, by the log and by `schedule`: step k uses theta(max(k - 1, 0))."""
    package = train_package(folder, gpt(layers=1), settings("SGD", 1, **drops(0.5, 0.001)))
    listed = json.loads(tool("ds-run", "schedule", package, "--steps=10002", "--json").out)
    for t, theta in ((0, 1.0), (1, 0.99950), (100, 0.95242), (693, 0.75004), (1000, 0.68394), (2000, 0.56767), (5000, 0.50337), (10000, 0.50002)):
        found = listed[t + 1]["theta"]
        expect(abs(found - theta) < 6e-6, f"theta({t}): found {found}, published {theta}")
    expect(listed[0]["theta"] == 1, f"step 0: theta {listed[0]['theta']}")
    train(package, tokens(folder, 12), "--steps=4", f"--log={folder / 'log.jsonl'}")
    expect(column(log_of(folder / "log.jsonl"), "theta").tolist() == [row["theta"] for row in listed[:4]], "the log and the schedule disagree")


@case(seconds=27)
def nothing_dropped_is_dense(folder):
    """With theta 1 the bits are those of a package without gates, in both precisions of products."""
    data = tokens(folder, 12)
    for more in ({}, {"bf16": {"enabled": True}}):
        for name, config in (("dense", settings("AdamW", 2, 2, **more)), ("gated", settings("AdamW", 2, 2, **more, **drops(theta=1)))):
            package = train_package(folder, gpt(), config, name=f"{name}.dsp")
            train(package, data, "--steps=3", f"--checkpoint={folder / name}", "--seed=1")
        for part in ("parameters", "optimizer"):
            one, other = (safetensors(folder / name / "global_step3" / f"{part}.safetensors") for name in ("dense", "gated"))
            expect(one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one), f"{more}: {part} differ")


@case(seconds=5)
def the_pass_changes_no_bits(folder):
    """The program of ds-gate-layers: with open gates as before it, without a block as the model without that block."""
    ids = np.random.default_rng(SEED).integers(0, VOCABULARY, (2, LENGTH))
    onnx.save(gpt(), folder / "model.onnx")
    dense = run_package(compile_model(folder / "model.onnx", folder, name="dense.dsp"), {"input_ids": ids}, folder)["logits"]
    tool("ds-opt", folder / "model.onnx", "--stop-after=graph", "-o", folder / "graph.mlir")
    tool("ds-opt", folder / "graph.mlir", "--ds-gate-layers", "-o", folder / "gated.mlir")
    package = compile_model(folder / "gated.mlir", folder, name="gated.dsp")

    def run(gates, scales):
        fields = {f"layer_gate/{i}": np.array(gate) for i, gate in enumerate(gates)}
        fields.update({f"layer_scale/{i}": np.float32(scale) for i, scale in enumerate(scales)})
        return run_package(package, {"input_ids": ids, **fields}, folder)["logits"]

    expect(run([True] * LAYERS, [1] * LAYERS).tobytes() == dense.tobytes(), "open gates: other bits than before the pass")
    # One block less is a model of the other blocks: the graph of the oracle, whose gates are numbers.
    onnx.save(gated(), folder / "gated.onnx")
    oracle = compile_model(folder / "gated.onnx", folder, "--reference=f64", name="oracle.dsp")
    for gates in ([True, False, True, True], [False] * 4, [False, True, True, False]):
        scales = np.random.default_rng(SEED).uniform(1, 2, LAYERS).astype(np.float32)
        numbers = np.repeat((scales * gates)[None], 2, 0).astype(np.float32)
        expected = run_package(oracle, {"input_ids": ids, "gates": numbers}, folder)["logits"]
        off = np.max(np.abs(run(gates, scales) - expected))
        expect(off < 2e-5, f"seed {SEED}, gates {gates}: off by {off:.3g} from the product with 0")


@case(seconds=6)
def blocks_that_ran(folder):
    """A GPT of 12 blocks: how many ran in all is within 3 standard deviations of the sum of their probabilities; each block, within 4.
    Of one seed, as of others one in 370 is farther off."""
    steps, accumulation, layers = 60, 4, 12
    package = train_package(folder, gpt(layers=layers, hidden=16, heads=2), settings("SGD", 1, accumulation, **drops(0.5, 0.05)), "--dim", f"length={LENGTH}")
    train(package, tokens(folder, steps * accumulation), f"--steps={steps}", "--seed=1", f"--log={folder / 'log.jsonl'}")
    rows = log_of(folder / "log.jsonl")
    p = np.array([[keep_of(block, layers, theta_of(step, 0.5, 0.05)) for block in range(layers)] for step in range(steps)])
    mean, variance = accumulation * p.sum(), accumulation * (p * (1 - p)).sum()
    total = column(rows, "blocks").sum()
    expect(abs(total - mean) <= 3 * variance**0.5, f"{total} blocks ran, expected {mean:.1f} +- {variance**0.5:.1f}")
    rates = np.array(rows[-1]["keep_rates"])
    spread = np.sqrt((p * (1 - p)).sum(0) / accumulation) / steps
    expect(np.all(np.abs(rates - p.mean(0)) <= 4 * spread + 1e-12), f"keep rates {rates}, expected {p.mean(0)} +- {spread}")
    expect(rates[0] == 1, "the first block was dropped, which the shipped schedule never does")


@case(seconds=21)
def dropped_blocks_launch_nothing(folder):
    """By the trace of a call: no launch of a dropped block's nodes, forward or backward, and fewer for each."""
    def launches_of_trace():
        events = json.loads((folder / "trace.json").read_text())["traceEvents"]
        return sum(event["cat"] != "module" for event in events)

    package = train_package(folder, gpt(), settings("SGD", 2, **drops()))
    counts = {}
    for dropped in range(LAYERS + 1):
        fields = {name: np.array(number) for name, number in (("loss_weight", 1.0), ("first", True), ("last", True))}
        for block in range(LAYERS):
            fields[f"layer_gate/{block}"] = np.array(block >= dropped)
            fields[f"layer_scale/{block}"] = np.float32(1)
            fields[f"layer_first/{block}"] = np.array(True)
        ids = np.random.default_rng(SEED).integers(0, VOCABULARY, (2, LENGTH))
        np.savez(folder / "x.npz", input_ids=ids, labels=ids, **fields)
        tool("ds-run", "profile", package, "--entry=micro", f"--inputs={folder / 'x.npz'}", f"--trace={folder / 'trace.json'}", "--duration=0.01")
        counts[dropped] = launches_of_trace()
    steps = np.diff([counts[dropped] for dropped in sorted(counts)])
    # A block that runs has two launches more than without gates: a copy of what it was given, which its result replaces, and the
    # product of its gradient with its scale.
    dense = train_package(folder, gpt(), settings("SGD", 2), name="dense.dsp")
    np.savez(folder / "x.npz", input_ids=ids, labels=ids, loss_weight=np.array(1.0), first=np.array(True), last=np.array(True))
    tool("ds-run", "profile", dense, "--entry=micro", f"--inputs={folder / 'x.npz'}", f"--trace={folder / 'trace.json'}", "--duration=0.01")
    launches = launches_of_trace()
    expect(counts[0] <= launches + 2 * LAYERS + 2, f"{counts[0]} launches where all blocks run, {launches} without gates")
    expect(np.all(steps < -20) and len(set(steps)) == 1, f"launches by dropped blocks: {counts}")


@case(seconds=7)
def same_bits_by_threads(folder):
    package, data = train_package(folder, gpt(), settings("AdamW", 3, 2, **drops())), tokens(folder, 40)
    for threads in (1, 2, 3):
        train(package, data, "--steps=5", f"--threads={threads}", f"--checkpoint={folder / f'run{threads}'}", "--seed=5")
    same_state(folder / "run1", folder / "run2", 5)
    same_state(folder / "run1", folder / "run3", 5)


@case(seconds=13)
def goes_on_after_stops(folder):
    """Gates, counts of blocks and theta are where they were; a checkpoint holds which blocks the last step ran."""
    package, data = train_package(folder, gpt(layers=2), settings("AdamW", 2, 3, **drops())), tokens(folder, 22)
    same_after_stops(folder, package, data, 7, [1, 2, 5], "--seed=9")
    layers = json.loads((folder / "whole" / "global_step7" / "checkpoint.json").read_text())["trainer"]["layers"]
    expected = [[bool(gate) for gate in gates_of(9, 6, micro, 2, theta_of(6, 0.3, 0.4))] for micro in range(len(layers["gates"]))]
    expect(layers["gates"] == expected, f"gates of the checkpoint: {layers['gates']}, drawn {expected}")
    other = train_package(folder, gpt(layers=3), settings("AdamW", 2, 3, **drops()), name="other.dsp")
    tool("ds-run", "train", other, f"--data={data}", f"--checkpoint={folder / 'whole'}", "--resume", "--steps=8", code=2, says=["global_step7"])


@case(seconds=7)
def overflow_with_gates(folder):
    """A step that overflows changes no bit, theta goes on, and the blocks of the next step are those of its number."""
    config = settings("AdamW", 2, 2, fp16={"enabled": True, "initial_scale_power": 24, "hysteresis": 1}, **drops())
    package, data = train_package(folder, gpt(), config), tokens(folder, 60)
    train(package, data, "--steps=1", f"--checkpoint={folder / 'one'}", "--seed=3", f"--log={folder / 'one.jsonl'}")
    first = log_of(folder / "one.jsonl")[0]
    expect(first["overflow"], f"a loss scale of 2^40 did not overflow: {first}")
    train(package, data, "--steps=15", f"--checkpoint={folder / 'run'}", "--seed=3", f"--log={folder / 'log.jsonl'}")
    rows = log_of(folder / "log.jsonl")
    expect(any(row["overflow"] for row in rows) and not rows[-1]["overflow"], f"overflows: {column(rows, 'overflow')}")
    for row in rows:
        expect(abs(row["theta"] - theta_of(row["step"], 0.3, 0.4)) < 1e-12, f"step {row['step']}: theta {row['theta']}")
        gates = [gates_of(3, row["step"], micro, LAYERS, row["theta"]) for micro in range(2)]
        expect(row["blocks"] == int(np.count_nonzero(gates)), f"step {row['step']}: {row['blocks']} blocks, drawn {gates}")
    expect(np.all(np.isfinite(column(rows, "loss"))), f"losses {column(rows, 'loss')}")


@case
def what_has_no_blocks(folder):
    """Each with its reason, in one line."""
    def refuse(model, *words, config=settings("SGD", 2, **drops())):
        onnx.save(model, folder / "model.onnx")
        (folder / "ds_config.json").write_text(json.dumps(config))
        found = tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels",
                     f"--config={folder / 'ds_config.json'}", "-o", folder / "no.dsp", code=1).err
        lines = [line for line in found.splitlines() if "error" in line]
        expect(len(lines) == 1 and all(word in lines[0] for word in words), f"{words}: {found}")

    refuse(models.bert(), "progressive_layer_drop", "post-norm")
    refuse(models.cnn(), "progressive_layer_drop", "found none")
    refuse(gpt(), "progressive_layer_drop.theta", "1.5", config=settings("SGD", 2, **drops(theta=1.5)))
    refuse(gpt(), "progressive_layer_drop.gamma", "-1", config=settings("SGD", 2, **drops(gamma=-1)))
    refuse(gpt(), "depth_schedule", "shipped", config=settings("SGD", 2, **drops(depth_schedule="deep")))
    named = gpt(layers=1)
    for node in named.graph.node:
        node.input[:] = ["layer_gate/0" if name == "input_ids" else name for name in node.input]
    named.graph.input[0].name = "layer_gate/0"
    refuse(named, "layer_gate/0", "other names")


@case(seconds=44)
def models_with_blocks(folder):
    """Blocks of decoders with cross-attention, of rotated keys, of images: all are found, trained, and evaluated without gates."""
    for kind, blocks in (("llama", 2), ("t5", 4), ("vit", 2)):
        model = getattr(models, kind)()
        config = settings("AdamW", 2, 2, **drops())
        package = train_package(folder, model, config, name=f"{kind}.dsp")
        manifest = json.loads((package / "manifest.json").read_text())
        expect(len(manifest["training"]["layers"]) == blocks, f"{kind}: {manifest['training']['layers']}")
        dense = train_package(folder, model, settings("AdamW", 2, 2), name="dense.dsp")
        g = np.random.default_rng(SEED)
        fields = {}
        for tensor in model.graph.input:
            shape = [4 if dim.dim_param == "batch" else dim.dim_value or 6 for dim in tensor.type.tensor_type.shape.dim]
            floats = tensor.type.tensor_type.elem_type == TensorProto.FLOAT
            fields[tensor.name] = g.standard_normal(shape).astype(np.float32) if floats else g.integers(0, 9, shape)
        logits = model.graph.output[0].type.tensor_type.shape.dim
        fields["labels"] = g.integers(0, 3, (4,) if len(logits) == 2 else (4, 6))
        np.savez(folder / "data.npz", **fields)
        scores = [tool("ds-run", "eval", each, f"--data={folder / 'data.npz'}", "--json").out for each in (package, dense)]
        expect(scores[0] == scores[1], f"{kind}: evaluation differs from that without gates: {scores}")
        train(package, folder / "data.npz", "--steps=6", f"--log={folder / 'log.jsonl'}", f"--seed={SEED % 2**32}")
        rows = log_of(folder / "log.jsonl")
        drawn = [sum(np.count_nonzero(gates_of(SEED % 2**32, row["step"], micro, blocks, row["theta"])) for micro in range(2)) for row in rows]
        expect(np.all(np.isfinite(column(rows, "loss"))) and list(column(rows, "blocks")) == drawn, f"seed {SEED}, {kind}: {rows}, drawn {drawn}")
