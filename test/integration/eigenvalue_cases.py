"""Widths by curvature: eigenvalues of layers against PyTorch's in float64, and the periods that follow from them."""
import json
import re
import shutil

import numpy as np
import onnx

import torch_graph
import training_models as models
from kit import case, expect, tool
from programs import SEED
from quantized_training_cases import section
from training_cases import torch
from training_runs import bits, log_of, same_state, settings, train, train_package, weights, write_config

SMALL = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 5] x) => (float[n, 4] logits)
           { a = MatMul (x, w0) b = Add (a, b0) c = Tanh (b) d = MatMul (c, w1) e = Add (d, b1) f = Sigmoid (e) logits = MatMul (f, head) }"""
NAMES = {"w0": "net.layer.0.weight", "b0": "net.layer.0.bias", "w1": "net.layer.1.weight", "b1": "net.layer.1.bias", "head": "head"}


def eigenvalue(name, layers, **more):
    return {"enabled": True, "verbose": True, "layer_name": name, "layer_num": layers, "tol": 1e-4, "max_iter": 1000, **more}


def small(renamed=True):
    """With `renamed`, weights have the names of their layers; else nodes have."""
    g = np.random.default_rng(SEED)
    proto = onnx.parser.parse_model(SMALL)
    for name, shape in (("w0", (5, 6)), ("b0", (6,)), ("w1", (6, 4)), ("b1", (4,)), ("head", (4, 4))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(g.standard_normal(shape).astype(np.float32), NAMES[name] if renamed else name))
    for node in proto.graph.node:
        used = next((NAMES[name] for name in node.input if name in NAMES), "head")
        if renamed:
            for i, name in enumerate(node.input):
                node.input[i] = NAMES.get(name, name)
        else:
            node.name = "/" + used.replace(".layer.", "/layer.").rsplit(".", 1)[0] + "/" + node.op_type
    return proto


def found_in(text):
    """By step: eigenvalues and factors, as a run prints them."""
    lines = re.findall(r"step (\d+): eigenvalues (.*), periods times 2 x (.*)", text)
    return {int(step): ([float(x) for x in values.split(", ")], [int(x) for x in factors.split(", ")]) for step, values, factors in lines}


def by_torch(folder, layers, bits, dense):
    torch_graph.write(onnx.load(folder / "model.onnx"), folder / "graph.npz")
    run = {"graph": str(folder / "graph.npz"), "data": str(folder / "data.npz"), "loss": "cross_entropy|logits|labels|-100", "layers": layers,
           "bits": bits, "dense": dense, "out": str(folder / "eigenvalues.npz")}
    (folder / "run.json").write_text(json.dumps(run))
    torch("torch_curvature.py", folder / "run.json")
    return list(np.load(folder / "eigenvalues.npz").values())


def same(found, expected, where):
    """Of each layer the greatest eigenvalue; where others are nearly as great, iteration may stay at one of those."""
    for value, greatest in zip(found, expected, strict=True):
        expect(np.min(np.abs(value - greatest) / np.abs(greatest)) < 0.01, f"DS_SEED={SEED}, {where}: {found}, expected {expected}")


@case(seconds=22)
def small_net(folder):
    """Every eigenvalue of a run whose weights stay, against the dense Hessian at what weights were rounded to; then periods: a layer
    drops its next bit when as many updates are over as its factors say."""
    g = np.random.default_rng(SEED)
    np.savez(folder / "data.npz", x=g.standard_normal((12, 5)).astype(np.float32), labels=g.integers(0, 4, 12))
    for renamed in (True, False):
        config = settings(("SGD", {"lr": 0.0}), micro=12, quantize_training=section(start=8, target=5, period=3, offset=0,
                                                                                     eigenvalue=eigenvalue("net.layer", 2)))
        package = train_package(folder, small(renamed), config)
        out = train(package, folder / "data.npz", "--steps=310", "--shuffle=off", f"--log={folder / 'log'}").out
        rows, found = log_of(folder / "log"), found_in(out)
        widths = [row["bits"] if isinstance(row["bits"], list) else [row["bits"]] * 3 for row in rows]
        periods, width, expected = [3, 3, 3], [8, 8, 8], {}
        for step in range(310):
            if any(width[i] > 5 and step + 1 >= periods[i] for i in range(3)):
                values, factors = found[step]
                if renamed and len(expected) < 4:
                    expected[step] = by_torch(folder, ["net.layer.0.", "net.layer.1."], width if step else [0] * 3, dense=True)
                    same(values, expected[step], f"step {step}")
                size = np.abs(values)
                expect(factors == [1 + int(np.floor(4 * x)) for x in size / size.max()], f"step {step}: {factors} of {values}")
                for i, factor in enumerate([*factors, 1]):
                    if width[i] > 5 and step + 1 >= periods[i]:
                        width[i], periods[i] = width[i] - 1, periods[i] * 2 * factor
            else:
                expect(step not in found, f"step {step}: eigenvalues that nobody needs")
            expect(widths[step] == width, f"DS_SEED={SEED}, step {step}: {widths[step]} bits, expected {width}")
        expect(widths[-1] == [5, 5, 5] and len({tuple(row) for row in widths}) > 4, f"{widths[-1]}")


@case(seconds=12)
def transformer(folder):
    """Layers of a BERT, in float64 by power iteration: attention, norms and GELU twice differentiated. Rounded to bf16, the same
    factors."""
    g = np.random.default_rng(SEED)
    ids = g.integers(0, 61, (6, 9))
    np.savez(folder / "data.npz", input_ids=ids, attention_mask=(np.arange(9) < g.integers(4, 10, (6, 1))).astype(np.int64), labels=g.integers(0, 3, 6))
    quantization = section(start=8, target=7, period=1, offset=0, eigenvalue=eigenvalue("layer", 2, tol=1e-5))
    for more in ({}, {"fp16": {"enabled": True, "loss_scale": 128}}):
        package = train_package(folder, models.bert(), settings(("SGD", {"lr": 0.0}), micro=6, quantize_training=quantization, **more))
        found = found_in(train(package, folder / "data.npz", "--steps=1", "--shuffle=off").out)[0][0]
        expected = by_torch(folder, ["layer.0.", "layer.1."], [0] * 3, dense=False)
        if more:
            expect(np.abs(np.array(found) / np.concatenate(expected) - 1).max() < 0.1, f"DS_SEED={SEED}, {more}: {found}, expected {list(expected)}")
        else:
            same(found, expected, "a transformer")


@case(seconds=12)
def stops(folder):
    """Widths, periods and factors of layers go on where they were."""
    g = np.random.default_rng(SEED)
    np.savez(folder / "data.npz", x=g.standard_normal((20, 5)).astype(np.float32), labels=g.integers(0, 4, 20))
    config = settings(("AdamW", {"lr": 0.01}), accumulation=2, quantize_training=section(
        start=8, target=6, period=1, offset=1, eigenvalue=eigenvalue("net.layer", 2, gas_boundary_resolution=2, tol=0.01, max_iter=20)))
    package = train_package(folder, small(), config)
    whole = folder / "whole"
    train(package, folder / "data.npz", "--steps=16", "--save-interval=1", f"--checkpoint={whole}", f"--log={folder / 'whole.jsonl'}")
    for stop in (1, 2, 3, 5, 9, 13):
        parts = folder / "parts"
        shutil.rmtree(parts, ignore_errors=True)
        shutil.copytree(whole, parts)
        shutil.copy(folder / "whole.jsonl", folder / "parts.jsonl")
        train(package, folder / "data.npz", "--steps=16", f"--checkpoint={parts}", f"--resume=global_step{stop}", f"--log={folder / 'parts.jsonl'}",
              f"--threads={1 + stop % 2}")
        same_state(whole, parts, 16)
        expect(bits(folder / "whole.jsonl") == bits(folder / "parts.jsonl"), f"stopped at {stop}, the log differs")


@case(seconds=6)
def refusals(folder):
    """A path that leads nowhere, and parameters of which ranks have parts, at compile time; a run that cannot reach its target even where all factors are 1."""
    onnx.save(small(), folder / "model.onnx")
    def compiled(name, layers, code, **more):
        config = write_config(folder, settings("AdamW", quantize_training=section(period=1, offset=0, eigenvalue=eigenvalue(name, layers)), **more))
        return tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels", f"--config={config}", "-o",
                    folder / "m.dsp", code=code)
    for name, layers, text in (("bert.encoder.layer", 2, "eigenvalue.layer_name: no parameter, and no node that reads one, has 'bert.encoder.layer.0' in its name"),
                               ("net.layer", 3, "has 'net.layer.2' in its name, expected layers 0 to 2; parameters are")):
        said = compiled(name, layers, 1).err
        expect(text in said and said.count("error:") == 1, said)
    said = compiled("net.layer", 2, 1, zero_optimization={"stage": 3}).err
    expect("zero_optimization.stage 3: eigenvalues are computed of whole parameters, expected stage 0 to 2" in said, said)
    compiled("net.layer", 2, 0)
    np.savez(folder / "data.npz", x=np.ones((4, 5), np.float32), labels=np.zeros(4, np.int64))
    train(folder / "m.dsp", folder / "data.npz", "--steps=7", code=2, says="found a run of 7 steps, expected at least 8")
    found = train(folder / "m.dsp", folder / "data.npz", "--steps=8", says="layers of great eigenvalues may need 1000 steps")
    expect("quantize_training: the run ends with" in found.err, found.err)


@case(seconds=6)
def which_steps_and_how_far(folder):
    """Of the last micro-batch, in the steps whose number the resolution divides, by no more iterations than allowed. A parameter whose
    name is that of what training keeps of another one stays what it is."""
    g = np.random.default_rng(SEED)
    x, labels = g.standard_normal((12, 5)).astype(np.float32), g.integers(0, 4, 12)
    np.savez(folder / "all.npz", x=x, labels=labels)
    np.savez(folder / "data.npz", x=x[6:], labels=labels[6:])
    model = small()
    model.graph.node[-1].input[1] = "head/direction"
    head = next(tensor for tensor in model.graph.initializer if tensor.name == "head")
    head.name = "head/direction"

    def config(**more):
        return settings(("SGD", {"lr": 0.0}), micro=6, accumulation=2, quantize_training=section(
            start=8, target=5, period=2, offset=0, eigenvalue=eigenvalue("net.layer", 2, gas_boundary_resolution=4, **more)))
    package, options = train_package(folder, model, config()), ["--steps=210", "--shuffle=off", f"--log={folder / 'log'}"]
    found = found_in(train(package, folder / "all.npz", *options, f"--checkpoint={folder / 'ck'}").out)
    widths = [row["bits"] if isinstance(row["bits"], list) else [row["bits"]] * 3 for row in log_of(folder / "log")]
    periods, width, factors = [2, 2, 2], [8, 8, 8], [1, 1, 1]
    for step in range(210):
        about = any(width[i] > 5 and step + 1 >= periods[i] for i in range(3))
        expect((step in found) == (about and (step + 1) % 4 == 0), f"DS_SEED={SEED}, step {step}: eigenvalues of steps {sorted(found)}")
        factors[:2] = found[step][1] if step in found else factors[:2]
        for i in range(3):
            if width[i] > 5 and step + 1 >= periods[i]:
                width[i], periods[i] = width[i] - 1, periods[i] * 2 * factors[i]
        expect(widths[step] == width, f"DS_SEED={SEED}, step {step}: {widths[step]} bits, expected {width}")
    first = min(found)
    same(found[first][0], by_torch(folder, ["net.layer.0.", "net.layer.1."], [7] * 3, dense=True), f"step {first}")
    short = write_config(folder, config(max_iter=1), "short.json")
    once = found_in(train(package, folder / "all.npz", *options, f"--config={short}").out)[first][0]
    expect(np.all(np.abs(np.array(once) / found[first][0] - 1) > 0.01), f"DS_SEED={SEED}: one iteration finds {once}, all of them {found[first][0]}")
    kept = weights(folder / "ck/global_step210")
    expect(np.array_equal(kept["head/direction"], onnx.numpy_helper.to_array(head)), f"head/direction became {kept['head/direction']}")
