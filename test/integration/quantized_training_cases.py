"""MoQ (quantize_training): quantizers, widths and whole trainings against NumPy, what is skipped, stopped or refused."""
import json
import shutil

import numpy as np
import onnx
from onnx import numpy_helper

import moq
from kit import case, compile_model, expect, tool
from programs import SEED
from training_resume_cases import CYCLE
from training_runs import (SMALL, bits, column, log_of, same_state, settings, small_data, small_package, train, train_package, weights,
                           write_config)

FIRST = """<ir_version: 8, opset_import: ["": 17]> m (float[n, 24] x) => (float loss)
           { h = MatMul (x, w) a = Tanh (h) y = MatMul (a, v) q = Mul (y, y) loss = ReduceSum <keepdims = 0> (q) }"""


def section(start=8, target=4, period=2, offset=1, groups=1, scheme="symmetric", rounding="nearest", ratio=None, **more):
    mixed = {"fp16_mixed_quantize": {"enabled": True, "quantize_change_ratio": ratio}} if ratio else {}
    return {"enabled": True, "quantize_groups": groups, "quantize_bits": {"start_bits": start, "target_bits": target},
            "quantize_schedule": {"quantize_period": period, "schedule_offset": offset},
            "quantize_algo": {"q_type": scheme, "rounding": rounding}, **mixed, **more}


def model(folder, **arrays):
    """Weights of the given elements, of shapes that no product cares for."""
    proto = onnx.parser.parse_model(FIRST)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(proto, folder / "m.onnx")


def package_for(folder, quantization, *options, name="m.dsp"):
    write_config(folder, settings("AdamW", quantize_training=quantization), "c.json")
    shutil.rmtree(folder / name, ignore_errors=True)
    return compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss", f"--config={folder / 'c.json'}", *options, name=name)


def images(package, folder, levels, **numbers):
    """What the package's own entry makes of the first weights."""
    given = [f"--input={name}={value}" for name, value in {"quantize_levels": levels, **numbers}.items()]
    tool("ds-run", package, "--entry=quantize", *given, f"--output={folder / 'images.npz'}")
    return dict(np.load(folder / "images.npz"))


def special(random, groups):
    """24 x 10 and 10 x 24: outliers, zeros, equal elements, halves of steps, tiny and great ones, each in a group of its own."""
    w = random.standard_normal((24, 10)).astype(np.float32)
    rows = w.reshape(8, -1)
    rows[1, 3] = 40
    rows[2] = 0
    rows[3] = 0.3
    rows[4] = np.linspace(-1, 1, 30)  # greatest of both signs
    rows[5] = np.arange(30) / 16 - 1  # on the grid of 5 bits, and between that of 4
    rows[6] *= 1e-30
    rows[7] = np.abs(rows[7]) * 1e30
    v = random.standard_normal((10, 24)).astype(np.float32)
    v.reshape(8, -1)[2] = -0.7
    return w, v


@case(seconds=11)
def quantizers(folder):
    """Each element has the bits of the formula in float32; means of ternary and binary images are sums in another order."""
    for groups in (1, 8):
        for scheme in ("symmetric", "asymmetric"):
            w, v = special(np.random.default_rng(SEED), groups)
            model(folder, w=w, v=v)
            package = package_for(folder, section(groups=groups, scheme=scheme, target=1 if scheme == "symmetric" else 3))
            for width in (16, 12, 8, 7, 5, 4, 3, 2, 1):
                if width <= 2 and scheme == "asymmetric":
                    continue
                for name, found in images(package, folder, 2**width).items():
                    expected = moq.image({"w": w, "v": v}[name], width, groups, scheme)
                    tolerance = 0 if width > 2 else 1e-6
                    off = np.abs(found - expected) > tolerance * np.abs(expected)
                    expect(np.isfinite(found).all() and not off.any(),
                           f"seed {SEED}, {scheme}, {groups} groups, {width} bits: {name} is {found[off][:4]}, expected {expected[off][:4]}")
            expect(all(np.array_equal(found, {"w": w, "v": v}[name]) for name, found in images(package, folder, 0).items()), "0 levels change")


@case(seconds=11)
def vectors(folder):
    """What the formulas are known to give: the greatest is no level, zero is one; zeros and equal elements stay."""
    w = np.zeros((24, 10), np.float32)
    w[:, 0] = [1, -1, 0.5, 0, 0.25, -0.125] * 4
    model(folder, w=w, v=np.full((10, 24), 0.3, np.float32))
    package = package_for(folder, section(groups=1))
    for width, greatest in ((8, 0.9921875), (4, 0.875)):
        found = images(package, folder, 2**width)["w"]
        expect(found[0, 0] == greatest and found[1, 0] == -1 and found[3, 0] == 0 and np.all(found[:, 1:] == 0), f"{width} bits: {found[:6, 0]}")
    expect(np.all(images(package, folder, 16)["v"] == np.float32(0.3) * np.float32(0.875)), "equal elements of a symmetric group are its greatest")
    package = package_for(folder, section(groups=1, scheme="asymmetric"))
    expect(np.all(images(package, folder, 16)["v"] == np.float32(0.3)), "equal elements of an asymmetric group are a level")
    model(folder, w=w * 0, v=np.zeros((10, 24), np.float32))
    for scheme in ("symmetric", "asymmetric"):
        package = package_for(folder, section(scheme=scheme))
        for levels in (65536, 16, *((4, 2) if scheme == "symmetric" else ())):
            expect(all(np.all(found == 0) for found in images(package, folder, levels).values()), f"{scheme}, {levels} levels: zeros change")


@case(seconds=9)
def stochastic_rounding(folder):
    """The places that NumPy's generator draws; what is drawn differs by step, seed and tensor, and is right on the average."""
    random = np.random.default_rng(SEED)
    w, v = (random.standard_normal(shape).astype(np.float32) for shape in ((24, 10), (10, 24)))
    model(folder, w=w, v=v)
    for scheme in ("symmetric", "asymmetric"):
        package = package_for(folder, section(groups=4, scheme=scheme, rounding="stochastic"))
        seen = []
        for seed, step in ((0, 1), (7 + (5 << 32), 1), (7, 2), (7, 123456)):
            found = images(package, folder, 16, quantize_seed=seed, quantize_step=step)
            for name, array in (("w", w), ("v", v)):
                seen.append(found[name].tobytes())
                expected = moq.image(array, 4, 4, scheme, moq.draws(array.shape, stream_of(name), seed, step))
                off = found[name] != expected
                expect(not off.any(), f"seed {SEED}, {scheme}, {seed}, {step}: {name} is {found[name][off][:4]}, expected {expected[off][:4]}")
        expect(len(set(seen)) == len(seen), "two draws are the same")
        total = sum(images(package, folder, 16, quantize_seed=3, quantize_step=step)["w"].astype(np.float64) for step in range(1, 61)) / 60
        rows = w.reshape(4, -1)
        step = (np.abs(rows).max(1) / 8 if scheme == "symmetric" else (rows.max(1) - rows.min(1)) / 16)[:, None]
        # Within the levels: at their ends, clamping is no average.
        inside = (np.abs(rows) < np.abs(rows).max(1, keepdims=True) - 2 * step) & (rows < rows.max(1, keepdims=True) - 2 * step)
        if scheme == "asymmetric":
            inside &= rows > rows.min(1, keepdims=True) + 2 * step
        off = (np.abs(total.reshape(rows.shape) - rows) / step)[inside]
        expect(off.max() < 0.35 and off.mean() < 0.08, f"seed {SEED}, {scheme}: the mean of 60 draws is off by {off.max()} steps, {off.mean()} on the average")


def stream_of(name):
    """31 bits of the XXH3 of a name of one letter, behind the streams of dropouts."""
    letter, every = ord(name), 2**64 - 1
    value = (letter << 16 | letter << 24 | letter | 1 << 8) ^ (0x396CFEB8 ^ 0xBE4BA423)
    value = (value ^ value >> 33) * 0xC2B2AE3D27D4EB4F & every
    value = (value ^ value >> 29) * 0x165667B19E3779F9 & every
    return 2**31 + ((value ^ value >> 32) & 0x7FFFFFFF)


class Network:
    """SMALL of training_runs.py and softmax cross entropy, in float64, by hand. Gradients are those of images."""

    def __init__(self):
        self.weights = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in onnx.parser.parse_model(SMALL).graph.initializer}
        self.average, self.square = ({name: 0.0 for name in self.weights} for _ in range(2))

    def run(self, w, x, labels):
        t = np.tanh(x @ w["w"] + w["b"])
        y = t @ w["v"]
        y = np.exp(y - y.max(1, keepdims=True))
        p = y / y.sum(1, keepdims=True)
        hit = np.eye(4)[labels]
        dy = (p - hit) / len(x)
        da = dy @ w["v"].T * (1 - t * t)
        return -np.log((p * hit).sum(1)).mean(), {"v": t.T @ dy, "w": x.T @ da, "b": da.sum(0)}

    def update(self, gradients, step, lr):
        """AdamW without decay."""
        for name, g in gradients.items():
            self.average[name] = 0.9 * self.average[name] + 0.1 * g
            self.square[name] = 0.999 * self.square[name] + 0.001 * g * g
            m, s = self.average[name] / (1 - 0.9**step), self.square[name] / (1 - 0.999**step)
            self.weights[name] = self.weights[name] - lr * m / (np.sqrt(s) + 1e-8)


@case(seconds=12)
def trainings(folder):
    """Losses, evaluations and weights of whole trainings, with accumulation. Where a weight lies beside the middle of two levels,
    float32 may choose the other one: then the loss moves by that, which a rate this small does not amplify."""
    data = small_data(folder, 24, seed=SEED)
    arrays = dict(np.load(data))
    x, labels, lr = arrays["x"].astype(np.float64), arrays["labels"], 1e-2
    for quantization in (dict(start=7, target=3, period=2, offset=3, groups=2), dict(start=5, target=1, period=1, offset=0, groups=3),
                         dict(start=5, target=3, period=4, offset=2, scheme="asymmetric"), dict(start=6, target=4, period=5, offset=1, ratio=0.25)):
        steps = 20
        package = small_package(folder, settings(("AdamW", {"lr": lr}), accumulation=2, quantize_training=section(**quantization)))
        train(package, data, f"--steps={steps}", "--shuffle=off", f"--log={folder / 'log'}", f"--eval-data={data}", "--eval-interval=1", f"--checkpoint={folder / 'ck'}")
        rows, net = log_of(folder / "log"), Network()
        times = [quantization[key] for key in ("start", "target", "period", "offset")]
        for step, row in enumerate(rows):
            def images_after(update):
                width, share = moq.bits_after(update, *times), moq.share_after(update, *times, quantization.get("ratio"))
                def of(w):
                    if w.ndim < 2:
                        return w
                    # Levels are chosen as float32 chooses them.
                    rounded = moq.image(w.astype(np.float32), width, quantization.get("groups", 1), quantization.get("scheme", "symmetric"))
                    return share * w + (1 - share) * rounded if width else w
                return width, {name: of(w) for name, w in net.weights.items()}
            _, read = images_after(step)
            total, losses = {}, []
            for micro in range(2):
                at = (8 * step + 4 * micro) % 24
                loss, gradients = net.run(read, x[at:at + 4], labels[at:at + 4])
                losses.append(loss)
                total = {name: total.get(name, 0) + g / 2 for name, g in gradients.items()}
            net.update(total, step + 1, lr)
            width, read = images_after(step + 1)
            expect(row["bits"] == (width or None), f"{quantization}, step {step}: {row['bits']} bits, expected {width}")
            whole = np.mean([net.run(read, x[at:at + 4], labels[at:at + 4])[0] for at in range(0, 24, 4)])
            for what, found, expected in (("loss", row["loss"], np.mean(losses)), ("evaluation", row["eval_loss"], whole)):
                expect(abs(found - expected) < 2e-5, f"DS_SEED={SEED}, {quantization}, step {step}: {what} {found}, expected {expected}")
        for name, found in weights(folder / "ck").items():
            expect(np.abs(found - net.weights[name]).max() < 1e-4, f"DS_SEED={SEED}, {quantization}: {name} is off by {np.abs(found - net.weights[name]).max()}")
        one = json.loads(tool("ds-run", "eval", package, f"--data={data}", f"--checkpoint={folder / 'ck'}", "--json").out)
        expect(one["eval_loss"] == rows[-1]["eval_loss"], f"{quantization}: a checkpoint evaluates to {one}, the run ended with {rows[-1]}")


@case(seconds=12)
def without_half_precision_and_with(folder):
    """fp16 and bf16 round what products multiply besides; each precision learns."""
    data = small_data(folder)
    for more in ({}, {"fp16": {"enabled": True, "initial_scale_power": 8}}, {"bf16": {"enabled": True}}):
        package = small_package(folder, settings(("AdamW", {"lr": 0.02}), quantize_training=section(), **more))
        train(package, data, "--steps=60", f"--log={folder / 'log'}")
        rows = log_of(folder / "log")
        expect(rows[-1]["bits"] == 4 and column(rows, "loss")[-10:].mean() < 0.9 * rows[0]["loss"], f"{more}: {rows[0]}, {rows[-1]}")


@case(seconds=4)
def skipped_steps(folder):
    """A step that overflows does not count, and rounds nothing anew: what is evaluated has the same bits, drawn ones, too."""
    fp16 = {"enabled": True, "initial_scale_power": 26, "loss_scale_window": 3, "hysteresis": 3}
    package = small_package(folder, settings(("AdamW", {"lr": 0.01}), accumulation=2, fp16=fp16,
                                             quantize_training=section(start=5, target=3, period=3, offset=1, rounding="stochastic")))
    train(package, small_data(folder), "--steps=40", f"--log={folder / 'log'}", f"--eval-data={folder / 'data.npz'}", "--eval-interval=1")
    rows = log_of(folder / "log")
    expect(3 < sum(row["overflow"] for row in rows) < 30, f"overflows: {[row['overflow'] for row in rows]}")
    for before, row in zip(rows, rows[1:]):
        same = row["bits"] == before["bits"] and row["eval_loss"] == before["eval_loss"]
        expect(same if row["overflow"] else row["eval_loss"] != before["eval_loss"], f"{before}, {row}")
    for row in rows:
        width = moq.bits_after(row["step"] + 1 - row["skipped"], 5, 3, 3, 1)
        expect(row["bits"] == (width or None), f"{row}: expected {width} bits")


@case(seconds=12)
def stops(folder):
    """Widths, mixture, counters and what rounding draws go on where they were: from each step to the same bits."""
    data, steps = small_data(folder), 13
    for quantization in (section(start=6, target=4, period=2, offset=2, rounding="stochastic"), section(start=6, target=4, period=2, offset=2, ratio=0.4),
                         section(start=4, target=1, period=1, offset=1, groups=3)):
        package = small_package(folder, settings("AdamW", accumulation=3, scheduler=CYCLE, quantize_training=quantization))
        whole = folder / "whole"
        shutil.rmtree(whole, ignore_errors=True)
        evaluates = f"--eval-data={data}", "--eval-interval=1"
        train(package, data, f"--steps={steps}", "--seed=5", "--save-interval=1", f"--checkpoint={whole}", f"--log={folder / 'whole.jsonl'}", *evaluates)
        for stop in range(1, steps):
            parts = folder / "parts"
            shutil.rmtree(parts, ignore_errors=True)
            shutil.copytree(whole, parts)
            shutil.copy(folder / "whole.jsonl", folder / "parts.jsonl")
            train(package, data, f"--steps={steps}", f"--checkpoint={parts}", f"--resume=global_step{stop}", f"--log={folder / 'parts.jsonl'}",
                  f"--threads={1 + stop % 3}", *evaluates)
            same_state(whole, parts, steps)
            expect(bits(folder / "whole.jsonl") == bits(folder / "parts.jsonl"), f"{quantization}: stopped at {stop}, the log differs")
        kept = json.loads((whole / f"global_step{steps}/checkpoint.json").read_text())["trainer"]["quantization"]
        expect(kept["updates"] == steps and kept["bits"] == [quantization["quantize_bits"]["target_bits"]], f"{kept}")


@case(seconds=6)
def checkpoints_of_others(folder):
    """One of a training without MoQ, or of other widths, is refused, and so is the other way round."""
    data = small_data(folder)
    for name, more in (("plain", {}), ("moq", {"quantize_training": section()})):
        small_package(folder, settings("AdamW", **more), name=f"{name}.dsp")
        train(folder / f"{name}.dsp", data, "--steps=20", f"--checkpoint={folder / name}")
    for package, checkpoint, text in (("plain", "moq", "was saved with quantize_training"), ("moq", "plain", "was saved without quantize_training")):
        train(folder / f"{package}.dsp", data, "--steps=30", "--resume", f"--checkpoint={folder / checkpoint}", code=2, says=text)
        tool("ds-run", "eval", folder / f"{package}.dsp", f"--data={data}", f"--checkpoint={folder / checkpoint}", code=2, says=text)
    config = write_config(folder, settings("AdamW", quantize_training=section(start=8, target=6)), "other.json")
    train(folder / "moq.dsp", data, "--steps=30", "--resume", f"--checkpoint={folder / 'moq'}", f"--config={config}", code=2,
          says=["quantize_training: target_bits: found 6, expected 4, as ", "was trained with"])


@case(seconds=6)
def schedules(folder):
    """Widths by step, and the step that a target takes; a run that would end before it does nothing."""
    package = small_package(folder, settings("AdamW", quantize_training=section(start=16, target=8, period=4, offset=4)))
    rows = json.loads(tool("ds-run", "schedule", package, "--steps=516", "--json").out)
    expect([row["bits"] for row in rows] == [moq.bits_after(step + 1, 16, 8, 4, 4) or None for step in range(516)], "bits of the schedule")
    expect([i + 1 for i in range(1, 516) if rows[i]["bits"] != rows[i - 1]["bits"]] == [4, 8, 12, 20, 36, 68, 132, 260, 516], "drops")
    text = "found a run of 515 steps, expected at least 516: so many it takes from 16 bits to 8"
    tool("ds-run", "schedule", package, "--steps=515", code=2, says=text)
    tool("ds-run", "schedule", package, says="reaches its target with 516 steps")
    train(package, small_data(folder), "--steps=515", f"--log={folder / 'log'}", code=2, says=text)
    expect(not (folder / "log").exists(), "a refused run leaves a log")
    train(package, small_data(folder, 20), "--epochs=103", code=2, says="found a run of 515 steps")
    # Numbers of the schedule are no part of the package, kinds of rounding are.
    config = write_config(folder, settings("AdamW", quantize_training=section(start=10, target=9, period=3, offset=0)), "short.json")
    train(package, small_data(folder), "--steps=3", f"--config={config}", f"--log={folder / 'log'}")
    expect([row["bits"] for row in log_of(folder / "log")] == [10, 10, 9], "widths of the other file")
    # More epochs than can be counted in steps are no shorter run; a mixture that never ends is longer than any.
    train(package, small_data(folder), "--steps=3", f"--epochs={2**61}", f"--config={config}")
    mixed = small_package(folder, settings("AdamW", quantize_training=section(period=1, offset=0, ratio=1e-300)), name="mixed.dsp")
    train(mixed, small_data(folder), "--steps=100", code=2, says="found a run of 100 steps, expected at least 1")
    config = write_config(folder, settings("AdamW", quantize_training=section(groups=2)), "groups.json")
    train(package, small_data(folder), "--steps=3", f"--config={config}", code=2, says="quantize_training.quantize_groups: compiled with 1, given 2; compile again")


@case(seconds=2)
def verbose(folder):
    data = small_data(folder)
    package = small_package(folder, settings("AdamW", quantize_training=section()))
    for says in (True, False):
        config = write_config(folder, settings("AdamW", quantize_training=section(quantize_verbose=says)), "verbose.json")
        found = train(package, data, "--steps=20", f"--config={config}").out
        lines = [line for line in found.splitlines() if "weights in" in line]
        expect(lines == [f"step {step}: weights in {width} bits" for step, width in ((0, 8), (2, 7), (4, 6), (8, 5), (16, 4))] * says, f"{lines}")


@case(seconds=12)
def threads(folder):
    """A package whose images threads share, with one, two and three of them."""
    import training_models as models
    random = np.random.default_rng(1)
    tokens = random.integers(0, 61, (10, 23))
    np.savez(folder / "data.npz", input_ids=tokens, labels=tokens)
    for rounding in ("nearest", "stochastic"):
        package = train_package(folder, models.gpt(), settings("AdamW", accumulation=2, quantize_training=section(groups=8, rounding=rounding, period=1)), "--shift-labels")
        for count in (1, 2, 3):
            train(package, folder / "data.npz", "--steps=12", f"--threads={count}", f"--checkpoint={folder / f'{rounding}{count}'}")
        for count in (2, 3):
            same_state(folder / f"{rounding}1", folder / f"{rounding}{count}", 12)


@case(seconds=6)
def drawn_trainings(folder):
    """Stochastic rounding in a whole training: every step and evaluation reads what the run's seed and the number of updates draw, and
    so does whoever evaluates the checkpoint. The rate is 0, so that nothing else moves."""
    data = small_data(folder, 8, seed=SEED)
    arrays, seed, steps = dict(np.load(data)), SEED % 2**40 + 2**33, 6
    x, labels = arrays["x"].astype(np.float64), arrays["labels"]
    package = small_package(folder, settings(("SGD", {"lr": 0.0}), quantize_training=section(start=4, target=3, period=3, offset=1, groups=2,
                                                                                             rounding="stochastic")))
    train(package, data, f"--steps={steps}", "--shuffle=off", f"--seed={seed}", f"--log={folder / 'log'}", f"--eval-data={data}",
          "--eval-interval=1", f"--checkpoint={folder / 'ck'}")
    rows, net = log_of(folder / "log"), Network()

    def losses_after(update):
        width = moq.bits_after(update, 4, 3, 3, 1)
        read = {name: moq.image(w.astype(np.float32), width, 2, draw=moq.draws(w.shape, stream_of(name), seed, update)) if width and w.ndim > 1
                else w for name, w in net.weights.items()}
        return [net.run(read, x[at:at + 4], labels[at:at + 4])[0] for at in (0, 4)]

    for step, row in enumerate(rows):
        expected = losses_after(step)[step % 2], np.mean(losses_after(step + 1))
        expect(np.allclose((row["loss"], row["eval_loss"]), expected, rtol=1e-5), f"DS_SEED={SEED}, step {step}: {row}, expected {expected}")
    one = json.loads(tool("ds-run", "eval", package, f"--data={data}", f"--checkpoint={folder / 'ck'}", "--json").out)
    expect(one["eval_loss"] == rows[-1]["eval_loss"], f"a checkpoint evaluates to {one}, the run ended with {rows[-1]}")
