"""Loops of one's own over ds_trainer_*: the example program against the same training in NumPy's float64, and checkpoints that
it and `ds-run train` hand to each other."""
import json

import numpy as np
import onnx

from kit import case, compile_model, expect, tool
from programs import SEED

ROWS, MICRO_BATCHES, OWN_RATE = 8, 2, 0.05
RATE, BETAS, EPS, DECAY, CLIP = 0.03, (0.8, 0.95), 1e-8, 0.1, 0.4
TOLERANCE = 2e-5  # of a loss: some dozen steps in float32


def next_numbers(number, count):
    """The program's generator."""
    seed, found = (number * 2654435761 + 1) % 2**32, []
    for _ in range(count):
        seed = (seed * 1664525 + 1013904223) % 2**32
        found.append((seed >> 8) / 8388608 - 1)
    return np.array(found)


class Loop:
    """x -> tanh(x w1 + b1) w2 + b2. The example's rules: w1 is frozen, b2 goes by plain descent; AdamW has the others."""

    def __init__(self, weights, classes):
        self.weights = {name: array.astype(float) for name, array in weights.items()}
        self.moments = {name: (np.zeros_like(array), np.zeros_like(array)) for name, array in self.weights.items()}
        self.classes, self.steps = classes, 0

    def batch(self, number):
        x = next_numbers(number, ROWS * 3).reshape(ROWS, 3)
        target = (3 * x[:, 0] + 1).astype(np.float32)
        return x, (target > 1).astype(np.int64) if self.classes else np.repeat(target[:, None], 2, 1)

    def loss(self, x, labels):
        """And the gradients."""
        w = self.weights
        hidden = np.tanh(x @ w["w1"] + w["b1"])
        y = hidden @ w["w2"] + w["b2"]
        if self.classes:
            p = np.exp(y - y.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            loss, dy = -np.log(p[np.arange(len(x)), labels]).mean(), (p - np.eye(2)[labels]) / len(x)
        else:
            loss, dy = np.mean((y - labels)**2), 2 * (y - labels) / y.size
        inner = dy @ w["w2"].T * (1 - hidden**2)
        return loss, {"w1": x.T @ inner, "b1": inner.sum(0), "w2": hidden.T @ dy, "b2": dy.sum(0)}

    def step(self, batches, own=True):
        parts = [self.loss(*batch) for batch in batches]
        gradients = {name: sum(part[1][name] for part in parts) / len(parts) for name in self.weights}
        kept = {}
        if own:
            kept = {"w1": self.weights["w1"], "b2": self.weights["b2"] - OWN_RATE * gradients["b2"]}
            gradients |= {name: np.zeros_like(array) for name, array in kept.items()}
        norm = np.sqrt(sum(np.sum(g**2) for g in gradients.values()))
        self.steps += 1
        for name, w in self.weights.items():
            g = gradients[name] * min(1, CLIP / (norm + 1e-6))
            first, second = (b * m + (1 - b) * value for b, m, value in zip(BETAS, self.moments[name], (g, g * g)))
            self.moments[name] = first, second
            away = first / (1 - BETAS[0]**self.steps) / (np.sqrt(second / (1 - BETAS[1]**self.steps)) + EPS)
            self.weights[name] = w - RATE * DECAY * w - RATE * away
        self.weights |= kept
        return np.mean([part[0] for part in parts])

    def own_steps(self, until):
        """The example's losses by step."""
        return {step: self.step([self.batch(step * MICRO_BATCHES + i) for i in range(MICRO_BATCHES)])
                for step in range(self.steps, until)}


def losses(out):
    return {int(line.split()[1]): float(line.split()[3]) for line in out.splitlines() if line.startswith("step ")}


def same_losses(found, expected):
    expect(found.keys() == expected.keys(), f"steps {list(found)}, expected {list(expected)}")
    for step, loss in expected.items():
        expect(abs(found[step] - loss) <= TOLERANCE * abs(loss), f"seed {SEED}: step {step}: loss {found[step]}, expected {loss}")


def package(folder, random, classes, **more):
    shapes = {"w1": (3, 5), "b1": (5,), "w2": (5, 2), "b2": (2,)}
    weights = {name: random.uniform(-0.8, 0.8, shape).astype(np.float32) for name, shape in shapes.items()}
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["": 17]> m (float[n, 3] x) => (float[n, 2] y) {
        a = MatMul (x, w1) b = Add (a, b1) h = Tanh (b) c = MatMul (h, w2) y = Add (c, b2) }""")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, folder / "model.onnx")
    (folder / "config.json").write_text(json.dumps({
        "train_micro_batch_size_per_gpu": ROWS, "gradient_accumulation_steps": MICRO_BATCHES, "gradient_clipping": CLIP,
        "optimizer": {"type": "AdamW", "params": {"lr": RATE, "betas": BETAS, "eps": EPS, "weight_decay": DECAY}}, **more}))
    return compile_model(folder / "model.onnx", folder, "--mode=train", f"--loss={'cross_entropy' if classes else 'mse'}",
                         "--logits=y", "--labels=labels", f"--config={folder / 'config.json'}"), Loop(weights, classes)


def example(*arguments): return tool("ds-train-package-example", *arguments).out


@case(seconds=6)
def own_loop(folder):
    """Accumulation, a frozen parameter, an own optimizer for one, the package's for the others; then an evaluation."""
    for classes in (True, False):
        compiled, loop = package(folder, np.random.default_rng([SEED, classes]), classes)
        out = example(compiled, folder / f"run{classes}", 12)
        same_losses(losses(out), loop.own_steps(12))
        words = out.splitlines()[-1].split()
        loss, _ = loop.loss(*loop.batch(2**32 - 1))
        expect(abs(float(words[2].rstrip(",")) - loss) <= TOLERANCE * loss, f"seed {SEED}: {words}, expected {loss}")
        saved = tool("ds-run", "checkpoint", "inspect", folder / f"run{classes}").out
        expect("step 12, 192 samples" in saved, saved)


@case
def interrupted_own_loop(folder):
    """Goes on to the same digits."""
    compiled, _ = package(folder, np.random.default_rng([SEED, 2]), True)
    whole = losses(example(compiled, folder / "whole", 9))
    first, second = example(compiled, folder / "run", 4), example(compiled, folder / "run", 9, "resume")
    expect("resumed at step 4, state {\"loss\":" in second, second)
    expect(losses(first) | losses(second) == whole, f"seed {SEED}: {first}{second}, expected {whole}")
    tool("ds-run", "checkpoint", "diff", folder / "whole/global_step9", folder / "run/global_step9")


@case(seconds=4)
def quantized_own_loop(folder):
    """Widths of MoQ fall with the loop's steps, and go on to the same digits; eigenvalues it cannot compute."""
    section = {"enabled": True, "quantize_groups": 5, "quantize_bits": {"start_bits": 6, "target_bits": 3},
               "quantize_schedule": {"quantize_period": 2, "schedule_offset": 1}, "quantize_algo": {"rounding": "stochastic"}}
    compiled, loop = package(folder, np.random.default_rng([SEED, 2]), True, quantize_training=section)
    whole = losses(example(compiled, folder / "whole", 12))
    expect(losses(example(compiled, folder / "run", 4)) | losses(example(compiled, folder / "run", 12, "resume")) == whole, "other losses")
    tool("ds-run", "checkpoint", "diff", folder / "whole/global_step12", folder / "run/global_step12")
    kept = json.loads((folder / "run/global_step12/checkpoint.json").read_text())["trainer"]["quantization"]
    expect(kept["updates"] == 12 and kept["bits"] == [3], f"{kept}")
    expected = loop.own_steps(12)  # without MoQ
    expect(abs(whole[0] - expected[0]) <= TOLERANCE and abs(whole[11] - expected[11]) > 1e-3, f"{whole}, {expected}")
    section |= {"eigenvalue": {"enabled": True, "layer_name": "w1", "layer_num": 1}}
    (folder / "config.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 8, "optimizer": {"type": "SGD"}, "quantize_training": section}))
    model = onnx.load(folder / "model.onnx")
    model.graph.node[0].name = "w1.0"
    onnx.save(model, folder / "model.onnx")
    compiled = compile_model(folder / "model.onnx", folder, "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels",
                             f"--config={folder / 'config.json'}", "--reference", name="e.dsp")
    tool("ds-train-package-example", compiled, folder / "none", 3, code=1, says="quantize_training.eigenvalue: found true, expected false")


@case(seconds=6)
def own_loop_of_masters(folder):
    """What the loop writes to a parameter is what the next micro-batch reads, also where that reads what masters are rounded to."""
    found, half = {}, {"fp16": {"enabled": True, "loss_scale": 1}}
    for stage in (0, 1, 3):
        zero = {"stage": stage, "stage3_param_persistence_threshold": 0}
        compiled, loop = package(folder, np.random.default_rng([SEED, 5]), True, zero_optimization=zero, **half)
        found[stage] = losses(example(compiled, folder / f"run{stage}", 8))
        tool("ds-run", "checkpoint", "diff", folder / f"run{stage}/global_step8", folder / "run0/global_step8")
    expect(found[1] == found[0] and found[3] == found[0], f"seed {SEED}: losses by stage {found}")
    exact = loop.own_steps(8)
    expect(all(0 < abs(found[0][step] - loss) < 0.02 for step, loss in exact.items()), f"seed {SEED}: {found[0]}, without rounding {exact}")


@case
def handed_to_the_tool_and_back(folder):
    """A checkpoint of the program goes on in `ds-run train`, from the beginning of its data, and that one's in the program."""
    random = np.random.default_rng([SEED, 3])
    compiled, loop = package(folder, random, True)
    example(compiled, folder / "run", 5)
    loop.own_steps(5)
    x, labels = random.standard_normal((64, 3)).astype(np.float32), random.integers(0, 2, 64)
    np.savez(folder / "data.npz", x=x, labels=labels)
    train = ["ds-run", "train", compiled, f"--data={folder / 'data.npz'}", "--shuffle=off", f"--checkpoint={folder / 'run'}",
             "--resume", f"--log={folder / 'log.jsonl'}"]
    tool(*train, "--steps=8")
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    parts = [slice(i * ROWS, (i + 1) * ROWS) for i in range(8)]
    expected = {}
    for step in range(5, 8):
        first = (step - 5) * MICRO_BATCHES
        expected[step] = loop.step([(x[part].astype(float), labels[part]) for part in parts[first:first + MICRO_BATCHES]], own=False)
    same_losses({row["step"]: row["loss"] for row in rows}, expected)
    out = example(compiled, folder / "run", 10, "resume")
    expect("resumed at step 8, state {\"loss\":" in out, out)
    same_losses(losses(out), loop.own_steps(10))
    tool(*train, "--steps=11")  # at its own place in the data
    last = json.loads((folder / "log.jsonl").read_text().splitlines()[-1])
    same_losses({last["step"]: last["loss"]}, {10: loop.step([(x[part].astype(float), labels[part]) for part in parts[6:]], own=False)})


@case(seconds=4)
def what_the_program_refuses(folder):
    compiled, _ = package(folder, np.random.default_rng([SEED, 4]), True)
    tool("ds-train-package-example", compiled, folder / "none", 3, "resume", code=1, says="no folder of checkpoints")
    plain = compile_model(folder / "model.onnx", folder, name="plain.dsp")
    tool("ds-train-package-example", plain, folder / "run", 3, code=1, says="--mode=train")
    tool("ds-train-package-example", compiled, folder / "run", code=2, says="usage")
