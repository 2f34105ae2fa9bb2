"""Dropout in training: the places that NumPy draws with the same generator, the same ones on the way back, none in evaluation."""
import json

import numpy as np
import onnx
from onnx import numpy_helper

from kit import case, compile_model, expect, run_package, tool
from philox import kept, philox
from programs import SEED
from trainer_api_cases import MICRO_BATCHES, OWN_RATE, ROWS, example, losses, next_numbers, same_losses
from training_runs import settings, write_config


def streams(folder, model):
    """The number of each dropout, in order, from what the import makes."""
    tool("ds-opt", model, "--mode=train", "--loss=loss", "--stop-after=graph", "-o", folder / "graph.mlir")
    lines = [line for line in (folder / "graph.mlir").read_text().splitlines() if "ds.dropout" in line]
    return [int(line.split("stream ")[1].split()[0]) for line in lines]


def model(folder, opset=17):
    g = np.random.default_rng(SEED)
    drop = ('ratio = Constant <value_float = 0.3> () yes = Constant <value_int = 1> () mode = Cast <to = 9> (yes) d, unread = Dropout (h, ratio, mode) '
            'e = Dropout (z)' if opset > 7 else 'd, unread = Dropout <ratio = 0.3> (h) e = Dropout <ratio = 0.5> (z)')
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]> m (float[n, 6] x) => (float loss, float[n, 5] e)
        {{ h = MatMul (x, w) {drop.split(' e = ')[0]} z = MatMul (d, v) e = {drop.split(' e = ')[1]}
          q = Mul (e, e) loss = ReduceSum <keepdims = 0> (q) }}""")
    w, v = g.standard_normal((6, 8), np.float32), g.standard_normal((8, 5), np.float32)
    proto.graph.initializer.extend([numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")])
    onnx.save(proto, folder / "m.onnx")
    x = g.standard_normal((7, 6), np.float32)
    np.savez(folder / "x.npz", x=x)
    return w.astype(float), v.astype(float), x.astype(float)


def by_paper(w, v, x, masks):
    first, second = masks[0] / 0.7, masks[1] / 0.5
    h = x @ w * first
    e = h @ v * second
    back = 2 * e * second
    return {"loss": np.sum(e**2), "v": h.T @ back, "w": x.T @ (back @ v.T * first)}


def same(found, expected, what):
    for name, array in expected.items():
        off = np.max(np.abs(found[name] - array)) / np.max(np.abs(array))
        expect(off < 1e-5, f"seed {SEED}, {what}: {name} is off by {off:.3g}")  # f32 against float64, sums of 8 numbers


@case
def known_answers(_folder):
    """The generator that judges is the published one: its vectors (kat_vectors of Random123)."""
    ones = 0xFFFFFFFF
    for counter, key, answer in (([0] * 4, [0, 0], "6627e8d5 e169c58d bc57ac4c 9b00dbd8"), ([ones] * 4, [ones] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd")):
        expect(" ".join(f"{int(word):08x}" for word in philox(counter, key)) == answer, f"{counter}")


@case(seconds=12)
def gradients(folder):
    for opset in (7, 17):
        w, v, x = model(folder, opset)
        first, second = streams(folder, folder / "m.onnx")
        package = compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss", name=f"m{opset}.dsp")
        for seed in (0, 5, 2**40 + 3):
            tool("ds-run", "gradients", package, f"--inputs={folder / 'x.npz'}", f"--output={folder / 'g.npz'}", f"--seed={seed}")
            masks = kept((7, 8), 0.3, first, seed), kept((7, 5), 0.5, second, seed)
            same(dict(np.load(folder / "g.npz")), by_paper(w, v, x, masks), f"opset {opset}, seed {seed}")
        evaluated = run_package(package, {"x": x.astype(np.float32)}, folder, "--entry=eval")
        same(evaluated, {"loss": np.sum((x @ w @ v) ** 2)}, "evaluation")


@case(seconds=5)
def steps_and_micro_batches(folder):
    """Each step and each micro-batch draws anew: the losses of a run whose rate is 0."""
    w, v, x = model(folder)
    first, second = streams(folder, folder / "m.onnx")
    (folder / "c.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 7, "gradient_accumulation_steps": 2,
                                               "optimizer": {"type": "SGD", "params": {"lr": 0}}}))
    package = compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss", f"--config={folder / 'c.json'}")
    tool("ds-run", "train", package, f"--data={folder / 'x.npz'}", "--steps=3", "--seed=9", "--shuffle=off", f"--log={folder / 'l.jsonl'}")
    losses = [json.loads(line)["loss"] for line in (folder / "l.jsonl").read_text().splitlines()]
    for step, loss in enumerate(losses):
        parts = [by_paper(w, v, x, (kept((7, 8), 0.3, first, 9, step, micro), kept((7, 5), 0.5, second, 9, step, micro)))["loss"]
                 for micro in (0, 1)]
        expect(abs(loss - np.mean(parts)) < 1e-5 * loss, f"seed {SEED}, step {step}: loss {loss}, expected {np.mean(parts)}")
    expect(len(set(losses)) == 3, f"{losses}")


def saved(folder, text, **arrays):
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items())
    onnx.save(proto, folder / "m.onnx")


@case
def own_loop(folder):
    """Each backward of a loop over ds_trainer_* drops other places, also after a resume: those that ds-run train would."""
    g = np.random.default_rng([SEED, 7])
    w, b = g.standard_normal((3, 2)), g.standard_normal(2)
    saved(folder, """<ir_version: 9, opset_import: ["": 17]> m (float[n, 3] x) => (float[n, 2] y)
        { ratio = Constant <value_float = 0.4> () d = Dropout (x, ratio) p = MatMul (d, w) y = Add (p, b) loss = ReduceSum <keepdims = 0> (y) }""", w=w, b=b)
    config = write_config(folder, settings("SGD", micro=ROWS, accumulation=MICRO_BATCHES))
    tool("ds-opt", folder / "m.onnx", "--mode=train", "--loss=mse", "--logits=y", "--labels=labels", f"--config={config}", "-o", folder / "m.dsp")
    tool("ds-opt", folder / "m.onnx", "--mode=train", "--loss=mse", "--logits=y", "--labels=labels", "--stop-after=graph", "-o", folder / "graph.mlir")
    stream = int((folder / "graph.mlir").read_text().split("ds.dropout")[1].split("stream ")[1].split()[0])
    found = losses(example(folder / "m.dsp", folder / "run", 2)) | losses(example(folder / "m.dsp", folder / "run", 4, "resume"))
    expected, b = {}, b.astype(np.float32).astype(float)
    for step in range(4):
        parts, slope = [], 0
        for micro in range(MICRO_BATCHES):
            x = next_numbers(step * MICRO_BATCHES + micro, ROWS * 3).reshape(ROWS, 3)
            off = x * kept(x.shape, 0.4, stream, 0, step, micro) / 0.6 @ w.astype(np.float32) + b - (3 * x[:, :1] + 1)
            parts.append(np.mean(off**2))
            slope = slope + 2 * off.sum(0) / off.size / MICRO_BATCHES
        expected[step] = np.mean(parts)
        b = b - OWN_RATE * slope  # the program's rules: the first parameter stays, the last one goes by plain descent
    same_losses(found, expected)


@case
def equal_names_in_branches(folder):
    """Bodies side by side may name their values alike: their nodes drop other places."""
    body = "g{0} () => (float[n, 6] d) {{ h = Mul (x, w) d = Dropout (h, half) }}"
    branches = "".join(f"y{i} = If (c) <then_branch = {body.format(i)}, else_branch = {body.format(i + 2)}> " for i in (0, 1))
    saved(folder, f"""<ir_version: 9, opset_import: ["": 17]> m (float[n, 6] x, bool c) => (float loss)
        {{ half = Constant <value_float = 0.5> () {branches} o = Sub (y0, y1) q = Mul (o, o) loss = ReduceSum <keepdims = 0> (q) }}""", w=np.arange(1, 7))
    found = streams(folder, folder / "m.onnx")
    expect(len(found) == 4 and len(set(found)) == 4, f"streams {found}")
