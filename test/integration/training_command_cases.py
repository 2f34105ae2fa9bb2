"""What users type: data of each kind, evaluation, checkpoints and their export, half precision, faults, and 1,000 mutations."""
import gzip
import json
import os
import random
import re
import shutil
import struct

import numpy as np
import onnx

import training_models as models
from kit import case, expect, onnx_runtime, tool
from programs import SEED
from training_curve_cases import bert_data, gpt_data
from training_runs import (bits, column, log_of, safetensors, settings, small_data, small_package, train, train_package, weights, write_config)


@case(seconds=3)
def log(folder):
    package, data, other = small_package(folder, settings("AdamW", accumulation=2)), small_data(folder), small_data(folder, 5, seed=9, name="e.npz")
    train(package, data, "--steps=7", f"--eval-data={other}", "--eval-interval=3", f"--log={folder / 'log.jsonl'}", f"--checkpoint={folder / 'ck'}")
    rows = log_of(folder / "log.jsonl")
    expect([row["step"] for row in rows] == list(range(7)), "steps count from 0")
    expect([row["step"] for row in rows if "eval_loss" in row] == [2, 5, 6], "evaluations every third step, and at the end")
    for row in rows:
        expect((row["theta"], row["blocks"], row["bits"], row["overflow"], row["skipped"], row["loss_scale"]) == (None, None, None, False, 0, None), f"{row}")
        expect(row["step_ms"] >= 0 and row["lr"] == 1e-3 and row["momentum"] == 0.9, f"{row}")
    found = json.loads(tool("ds-run", "eval", package, f"--data={other}", f"--checkpoint={folder / 'ck'}", "--json").out)
    expect((found["eval_loss"], found["accuracy"], found["samples"]) == (rows[-1]["eval_loss"], rows[-1]["accuracy"], 5), f"{found}, {rows[-1]}")


@case(seconds=23)
def unused_is_null(folder):
    """Momentum and loss scale are null where the configuration has none, in the log and in the schedule."""
    data = small_data(folder)
    for optimizer, more, has_momentum in (("AdamW", {}, True), ("SGD", {}, False), (("SGD", {"momentum": 0.5}), {}, True), ("Adagrad", {}, False),
                                          ("SGD", {"fp16": {"enabled": True, "loss_scale": 8}}, False), ("AdamW", {"bf16": {"enabled": True}}, True)):
        package = small_package(folder, settings(optimizer, **more))
        train(package, data, "--steps=2", f"--log={folder / 'log'}")
        table = json.loads(tool("ds-run", "schedule", package, "--steps=2", "--json").out)
        for row in log_of(folder / "log") + table:
            expect((row["momentum"] is not None) == has_momentum, f"{optimizer}: {row}")
            expect(row.get("loss_scale", 8) == (8 if "fp16" in more or "loss_scale" not in row else None), f"{optimizer}, {more}: {row}")


@case
def targets_are_checked_first(folder):
    """What cannot be written at the end is said before the first step, and nothing is left behind."""
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    (folder / "file").write_text("x")
    for option in (f"--checkpoint={folder / 'file'}", f"--checkpoint={folder / 'file/ck'}", f"--html={folder / 'none/page.html'}", f"--html={folder}",
                   f"--log={folder / 'none/log'}", "--checkpoint=/proc/ck"):
        found = train(package, data, "--steps=3", *([] if option.startswith("--log") else [f"--log={folder / 'log'}"]), option, code=None)
        is_right = found.code in (1, 2) and found.err.startswith("ds-run: error: ") and found.err.count("\n") == 1
        expect(is_right and not (folder / "log").exists() and "step" not in found.out, f"{option}: {found}")
    found = train(package, folder / "none.npz", "--steps=3", f"--checkpoint={folder / 'a/b/ck'}", f"--html={folder / 'page.html'}", code=None)
    expect(found.code and not (folder / "a").exists() and not (folder / "page.html").exists(), f"a run without data leaves files: {found}")


@case(seconds=2)
def pages_of_resumed_runs(folder):
    """They draw all steps that the log has, and say which are not there."""
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    page = folder / "page.html"
    for log, is_whole in (([f"--log={folder / 'log'}"], True), ([], False)):
        shutil.rmtree(folder / "ck", ignore_errors=True)
        train(package, data, "--steps=6", f"--checkpoint={folder / 'ck'}", f"--html={page}", *log)
        expect("was resumed" not in page.read_text(), "a run from the start is said to be resumed")
        train(package, data, "--steps=9", "--resume", f"--checkpoint={folder / 'ck'}", f"--html={page}", *log)
        expect(("The run was resumed: steps before 6 are not drawn" in page.read_text()) != is_whole, f"{log}: {page.read_text()}")
        if is_whole:
            resumed = page.read_text()
            train(package, data, "--steps=9", f"--html={page}")
            points = [re.findall(r'points="([^"]*)"|<path[^>]* d="([^"]*)"', text)[0] for text in (resumed, page.read_text())]
            expect(points[0] == points[1], "the curve of the resumed run is not that of the whole one")


@case(seconds=6)
def notes_of_another_config(folder):
    """Keys without effect on one rank are noted as ds-opt notes them."""
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    config = write_config(folder, settings("AdamW", zero_optimization={"stage": 2}), "other.json")
    compiled = tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels", f"--config={config}",
                    "--mesh=data=1", "-o", folder / "other.dsp")
    note = next(line for line in compiled.err.splitlines() if "zero_optimization" in line)
    found = train(package, data, "--steps=1", f"--config={config}")
    expect(note.replace("ds-opt:", "ds-run:") in found.err.splitlines(), f"{found.err}, expected as {note}")


@case
def log_of_epochs(folder):
    """The evaluation at the end is in the log however the end was said."""
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    for name, end in (("steps", "--steps=12"), ("epochs", "--epochs=2")):
        train(package, data, end, f"--eval-data={data}", f"--log={folder / name}")
    expect(bits(folder / "steps") == bits(folder / "epochs"), f"12 steps end with {bits(folder / 'steps')[-1]}, 2 epochs with {bits(folder / 'epochs')[-1]}")


@case(seconds=4)
def compiles_again(folder):
    """A package is written in the place of an older one of the same model."""
    config = write_config(folder, settings("AdamW"))
    onnx.save(models.rnn(), folder / "rnn.onnx")
    for _ in range(2):
        tool("ds-opt", folder / "rnn.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels", "--reference",
             f"--config={config}", "-o", folder / "again.dsp")


@case(seconds=3)
def names_of_the_model(folder):
    """Inputs, labels and parameters may have any name; what would clash with our own is refused when it is compiled."""
    text = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 3] INPUT) => (float[n, 4] OUTPUT)
              <float[3, 4] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.1, 0.2, 0.3, -0.3, 0.5}, float[4] b = {0.25, -1, 0.5, 0}>
              { z = MatMul (INPUT, w) OUTPUT = Add (z, b) }"""
    config, faults = write_config(folder, settings("AdamW", accumulation=2)), []
    plain = dict(np.load(small_data(folder)))
    for source, target, labels in (("first", "y", "labels"), ("x", "y", "last"), ("loss_weight", "y", "labels"), ("x", "y", "first"), ("x", "y", "loss_weight"),
                                   ("x", "loss", "labels"), ("x", "correct", "counted"), ("step", "finite", "learning_rate"), ("x", "y", "loss")):
        onnx.save(onnx.parser.parse_model(text.replace("INPUT", source).replace("OUTPUT", target)), folder / "m.onnx")
        np.savez(folder / "named.npz", **{source: plain["x"], labels: plain["labels"]})
        shutil.rmtree(folder / "m.dsp", ignore_errors=True)
        compiled = tool("ds-opt", folder / "m.onnx", "--mode=train", "--loss=cross_entropy", f"--logits={target}", f"--labels={labels}", "--reference",
                        f"--config={config}", "-o", folder / "m.dsp", code=None)
        if compiled.code == 0:
            found = train(folder / "m.dsp", folder / "named.npz", "--steps=3", f"--eval-data={folder / 'named.npz'}", code=None)
            faults += [f"{source}, {target}, {labels}: {found}"] if found.code else []
    expect(not faults, "\n".join(faults))


@case(seconds=3)
def kinds_of_data(folder):
    """The same samples as arrays, lines, tokens and bytes: the same losses, to the bit."""
    g = np.random.default_rng(3)
    pixels, labels = g.integers(0, 256, (22, 1, 3)).astype(np.uint8), g.integers(0, 4, 22)
    x = pixels.reshape(22, 3).astype(np.float32) / np.float32(255)
    np.savez(folder / "plain.npz", x=x, labels=labels)
    np.savez_compressed(folder / "narrow.npz", x=x, labels=labels.astype(np.uint8))
    (folder / "lines.jsonl").write_text("".join(json.dumps({"x": [float(v) for v in row], "labels": int(label)}) + "\n" for row, label in zip(x, labels)))
    images = struct.pack(">BBBBIII", 0, 0, 8, 3, 22, 1, 3) + pixels.tobytes()
    (folder / "x.idx").write_bytes(images)
    (folder / "x.gz").write_bytes(gzip.compress(images))
    (folder / "labels.idx").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, 22) + labels.astype(np.uint8).tobytes())
    package = small_package(folder, settings("AdamW"))
    expected = None
    for files in (["plain.npz"], ["narrow.npz"], ["lines.jsonl"], ["x.idx", "labels.idx"], ["x.gz", "labels.idx"]):
        train(package, folder / files[0], *(f"--data={folder / file}" for file in files[1:]), "--steps=9", f"--log={folder / 'log'}")
        found = bits(folder / "log")
        expected = expected or found
        expect(found == expected, f"{files}: another log than that of plain.npz")


@case(seconds=4)
def windows_of_tokens(folder):
    g = np.random.default_rng(3)
    tokens = g.integers(0, 61, 11 * 9 + 1)
    np.save(folder / "tokens.npy", tokens.astype(np.uint16))
    np.save(folder / "rows.npy", np.stack([tokens[11 * i:11 * i + 12] for i in range(9)]).astype(np.int32))
    windows = tokens[:99].reshape(9, 11)
    for shift in (True, False):
        np.savez(folder / "data.npz", input_ids=windows, labels=windows if shift else tokens[1:].reshape(9, 11))
        package = train_package(folder, models.gpt(layers=1), settings("AdamW"), "--reference", *["--shift-labels"] * shift)
        train(package, folder / "data.npz", "--steps=6", f"--log={folder / 'npz'}")
        train(package, folder / "tokens.npy", "--steps=6", "--dim=length=11", f"--log={folder / 'npy'}")
        expect(bits(folder / "npz") == bits(folder / "npy"), f"shift {shift}: tokens give another log than their windows")
        if not shift:
            train(package, folder / "rows.npy", "--steps=6", f"--log={folder / 'rows'}")
            expect(bits(folder / "npz") == bits(folder / "rows"), "rows give another log than their windows")


@case(seconds=3)
def faulty_data(folder):
    """One line that names file, array, sample, value and what is legal."""
    package = small_package(folder, settings("AdamW"))
    good = dict(np.load(small_data(folder)))
    label = good["labels"].copy()
    label[17] = 4
    negative = good["labels"].copy()
    negative[5] = -1
    for name, arrays, says in (
            ("high", {**good, "labels": label}, ["sample 17", "4", "0 to 3"]),
            ("low", {**good, "labels": negative}, ["sample 5", "-1", "0 to 3"]),
            ("double", {**good, "x": good["x"].astype(float)}, ["double.npz", "x", "f64", "f32"]),
            ("floats", {**good, "labels": good["labels"].astype(np.float32)}, ["floats.npz", "labels"]),
            ("missing", {"x": good["x"]}, ["missing.npz", "labels"]),
            ("other", {"y": good["x"], "labels": good["labels"]}, ["other.npz", "'x'"]),
            ("shape", {**good, "x": good["x"][:, :2]}, ["shape.npz", "x", "3", "2"]),
            ("count", {**good, "labels": good["labels"][:-1]}, ["count.npz", "21", "22"]),
            ("rank", {**good, "x": good["x"][:, 0]}, ["rank.npz", "x"]),
            ("empty", {name: array[:0] for name, array in good.items()}, ["empty.npz"]),
            ("none", {}, ["none.npz"])):
        np.savez(folder / f"{name}.npz", **arrays)
        for command in ("train", "eval"):
            found = tool("ds-run", command, package, f"--data={folder / name}.npz", *["--steps=20"] * (command == "train"), code=None)
            expect(found.code in (1, 2) and found.err.startswith("ds-run: error: ") and found.err.count("\n") == 1, f"{found}")
            expect(all(text in found.err for text in says), f"expected {says}: {found}")
    lines = '{"x": [1, 2, 3], "labels": 1}\n'
    for name, content, says in (("a.npz", b"", "a.npz"), ("b.jsonl", b"", "b.jsonl"), ("c.npy", b"", "c.npy"), ("d.idx", b"", "d.idx"),
                                ("e.npz", (folder / "high.npz").read_bytes()[:300], "e.npz"),
                                ("f.jsonl", (lines + '{"x": [1, 2], "labels": 1}\n').encode(), "f.jsonl"),
                                ("g.jsonl", (lines + '{"x": [1, 2, NaN], "labels": 1}\n').encode(), "g.jsonl"),
                                ("h.jsonl", (lines + '{"x": [1, 2, 3], "labels": 1.5}\n').encode(), "h.jsonl"),
                                ("i.jsonl", (lines + '{"x": [1, 2, 3]}\n').encode(), "i.jsonl"),
                                ("j.jsonl", (lines + '{"x": "text", "labels": 1}\n').encode(), "j.jsonl"),
                                ("k.idx", struct.pack(">BBBBIII", 0, 0, 8, 3, 22, 1, 3) + bytes(5), "k.idx")):
        (folder / name).write_bytes(content)
        found = train(package, folder / name, "--steps=2", code=None)
        expect(found.code in (1, 2) and says in found.err and found.err.count("\n") == 1, f"{found}")
    train(package, folder / "nowhere.npz", "--steps=2", code=None, says="nowhere.npz")


@case
def ignored_labels(folder):
    """Labels of -100 count nothing; where none counts, the loss is no number, as PyTorch says, and weights stay."""
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    arrays = dict(np.load(data))
    arrays["labels"][:] = -100
    np.savez(folder / "none.npz", **arrays)
    found = json.loads(tool("ds-run", "eval", package, f"--data={folder / 'none.npz'}", "--json").out)
    expect(found["accuracy"] is None and found["eval_loss"] is None, f"nothing was judged: {found}")


@case(seconds=7)
def evaluation_and_export(folder):
    """The exported model gives in ONNX Runtime the loss and the accuracy that ds-run finds with the checkpoint."""
    package, data = train_package(folder, models.bert(), settings("AdamW", micro=5)), bert_data(folder)
    train(package, data, "--steps=20", f"--checkpoint={folder / 'ck'}", "--save-interval=10")
    arrays = dict(np.load(data))
    losses = []
    for tag in ("global_step10", "global_step20"):
        tool("ds-run", "checkpoint", "export", folder / "ck" / tag, f"--package={package}", "-o", folder / f"{tag}.onnx")
        onnx.checker.check_model(onnx.load(folder / f"{tag}.onnx"))
        logits = onnx_runtime(folder / f"{tag}.onnx", {name: array for name, array in arrays.items() if name != "labels"})["logits"].astype(float)
        shifted = logits - logits.max(-1, keepdims=True)
        expected = np.mean(np.log(np.exp(shifted).sum(-1)) - shifted[np.arange(37), arrays["labels"]])
        found = json.loads(tool("ds-run", "eval", package, f"--data={data}", f"--checkpoint={folder / 'ck'}", f"--tag={tag}", "--json").out)
        expect(abs(found["eval_loss"] - expected) < 1e-5 and found["samples"] == 37, f"{tag}: {found}, expected {expected}")
        expect(abs(found["accuracy"] - np.mean(logits.argmax(-1) == arrays["labels"])) < 1e-9, f"{tag}: {found}")
        losses.append(found["eval_loss"])
        # A model that trained on is a model: it compiles to infer, and its weights are those of the checkpoint.
        kept = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(folder / f"{tag}.onnx").graph.initializer}
        for name, array in weights(folder / "ck" / tag).items():
            expect(kept[name].tobytes() == array.tobytes(), f"{name} was exported with other bits")
    expect(losses[0] != losses[1], "both checkpoints have one loss")
    tool("ds-run", "checkpoint", "export", folder / "ck", "-o", folder / "x.onnx", code=2, says="--package")
    tool("ds-run", "checkpoint", "export", folder / "ck", "-o", folder / "x.txt", code=2, says="x.txt")
    out = tool("ds-run", "checkpoint", "inspect", folder / "ck", "--json").out
    expect(json.loads(out)["step"] == 20, out[:300])
    found = tool("ds-run", "checkpoint", "diff", folder / "ck/global_step10", folder / "ck/global_step20", code=1)
    expect("step" in found.out, f"{found}")
    tool("ds-run", "checkpoint", "diff", folder / "ck/global_step20", folder / "ck")


def expected_scales(flags, scale, window, hysteresis, least=1):
    """The scaler of 2021, from what overflowed: the scale that each step leaves."""
    last, left, found = -1, hysteresis, []
    for it, overflow in enumerate(flags):
        if overflow:
            if left == 1:
                scale = max(scale / 2, least)
            else:
                left -= 1
            last = it
        elif (it - last) % window == 0:
            left, scale = hysteresis, scale * 2
        found.append(scale)
    return found


@case(seconds=12)
def scaled_losses(folder):
    """Steps that overflow change no bit and advance no schedule; the scale is that of the vector of 2021's scaler."""
    vector = expected_scales([1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0], 65536, 5, 2)
    expect(vector == [65536, 32768, 16384, 16384, 16384, 16384, 16384, 32768, 32768, 32768, 32768], f"the vector is {vector}")
    warmup = "WarmupLR", {"warmup_max_lr": 1e-2, "warmup_num_steps": 20}
    data = gpt_data(folder)
    config = settings("AdamW", scheduler=warmup, fp16={"enabled": True, "initial_scale_power": 30, "loss_scale_window": 5, "hysteresis": 2})
    package = train_package(folder, models.gpt(layers=1), config, "--shift-labels")
    train(package, data, "--steps=40", "--save-interval=1", "--shuffle=off", f"--log={folder / 'log'}", f"--checkpoint={folder / 'ck'}")
    rows = log_of(folder / "log")
    flags = [row["overflow"] for row in rows]
    expect(len(rows) == 40 and sum(flags) >= 4 and not all(flags[-8:]) and sum(flags[12:]) >= 1, f"overflows: {flags}")
    expect([row["loss_scale"] for row in rows] == expected_scales(flags, 2.0**30, 5, 2), f"scales: {[row['loss_scale'] for row in rows]}, {flags}")
    expect([row["skipped"] for row in rows] == list(np.cumsum(flags)), "skipped counts overflows")
    table = json.loads(tool("ds-run", "schedule", package, "--steps=40", "--json").out)
    for row in rows:
        expect(row["lr"] == table[row["step"] - row["skipped"] + row["overflow"]]["lr"], f"rate of {row}")
        expect((row["grad_norm"] is None) == row["overflow"], f"norm of {row}")
    for step in range(1, 40):
        for part in ("parameters", "optimizer"):
            before, after = (safetensors(folder / f"ck/global_step{k}/{part}.safetensors") for k in (step, step + 1))
            same = all(after[name].tobytes() == array.tobytes() for name, array in before.items())
            expect(same == flags[step] or rows[step]["lr"] == 0, f"step {step}: {part} {'are the same' if same else 'changed'}, overflow {flags[step]}")


@case(seconds=6)
def hopeless_scales(folder):
    """A scale that cannot fall any further, and a constant one, end the run with exit code 1."""
    for fp16 in ({"enabled": True, "loss_scale": 2.0**100}, {"enabled": True, "initial_scale_power": 100, "min_loss_scale": 2.0**98, "hysteresis": 1}):
        package, data = small_package(folder, settings("AdamW", fp16=fp16)), small_data(folder)
        train(package, data, "--steps=20", code=1, says=["step ", "samples"])


def near_single_precision(folder, name, bound):
    """Losses of a narrower type stay near those of f32, and are others."""
    data, found = gpt_data(folder), []
    for more in ({}, {name: {"enabled": True}}):
        package = train_package(folder, models.gpt(layers=1), settings("AdamW", **more), "--shift-labels", *["--reference"] * (not more))
        train(package, data, "--steps=40", "--shuffle=off", f"--log={folder / 'log'}")
        found.append(column(log_of(folder / "log"), "loss"))
    off = np.max(np.abs(found[0] - found[1]))
    expect(1e-5 < off < bound, f"{name}: losses are off by {off}")


@case(seconds=12)
def fp16(folder): near_single_precision(folder, "fp16", 0.01)


@case(seconds=12)
def bf16(folder): near_single_precision(folder, "bf16", 0.05)


@case(seconds=12)
def numbers_that_are_none(folder):
    """The message names step, tensor, node and samples; nothing is saved."""
    package, data = small_package(folder, settings(("SGD", {"lr": 0.1}))), small_data(folder)
    for value in (np.inf, -np.inf, np.nan):
        arrays = dict(np.load(data))
        arrays["x"][9, 1] = value
        np.savez(folder / "bad.npz", **arrays)
        found = train(package, folder / "bad.npz", "--steps=9", "--shuffle=off", f"--log={folder / 'log'}", f"--checkpoint={folder / 'ck'}",
                      code=1, says=["step 2: ", "samples 8, 9, 10, 11", "tensor 'x'", "in sample 9"])
        expect(found.err.count("\n") == 1 and not (folder / "ck").exists(), f"{found}")
        rows = log_of(folder / "log")
        expect(len(rows) == 3 and rows[2]["overflow"] and not rows[1]["overflow"], f"{rows}")
    package, data = train_package(folder, models.gpt(layers=1), settings(("SGD", {"lr": 1e30})), "--shift-labels"), gpt_data(folder)
    train(package, data, "--steps=30", "--shuffle=off", code=1, says=["step 1: ", "samples 4, 5, 6, 7", "tensor", "node '"])
    # A loss that is infinite or none in an evaluation is said to be that, in JSON, too.
    found = tool("ds-run", "eval", small_package(folder, settings("AdamW")), f"--data={folder / 'bad.npz'}", "--json")
    expect(json.loads(found.out)["eval_loss"] is None, f"{found}")


@case(seconds=3)
def numbers_of_the_command_line(folder):
    """Integers are read whole or refused."""
    package, data, faults = small_package(folder, settings("AdamW")), small_data(folder), []
    for option in ("--seed=-1", "--seed=1e3", "--seed=99999999999999999999", "--seed=", "--steps=0", "--steps=-1", "--steps=1.5", "--epochs=0", "--keep=0",
                   "--save-interval=0", "--eval-interval=0", "--patience=0", "--threads=0", "--threads=x", "--shuffle=maybe", "--tag=../x", "--tag=latest",
                   "--resume=../x", "--dim=n", "--config=", "--log=", "--nothing"):
        rest = ["--steps=2"] * (not option.startswith(("--steps", "--epochs")))
        found = train(package, data, *rest, option, f"--checkpoint={folder / 'ck'}", f"--eval-data={data}", code=None)
        is_right = found.code == 2 and found.err.startswith("ds-run: error: ") and found.err.count("\n") == 1
        faults += [] if is_right else [f"{option}: {found}"]
    expect(not faults, "\n".join(faults))
    for options in ([], ["--steps=2", "--resume"], ["--steps=2", "--save-interval=1"], ["--steps=2", "--patience=1"], ["--steps=2", "--tag=x"]):
        train(package, data, *options, code=2, says="ds-run: error: ")
    train(package, data, "--steps=2", f"--eval-data={data}", "--patience=1", code=2, says="--patience counts evaluations, found no --eval-interval=N")


@case(seconds=12)
def options_that_find_nothing(folder):
    """What an option asks for must happen: one line says what it found."""
    small_package(folder, settings("AdamW"))
    write_config(folder, settings(("AdamW", {"weight_decay": 0.1})), "decay.json")
    judged = ["--loss=cross_entropy", "--logits=y", "--labels=labels"]
    for options, says in (
            ([*judged, "--freeze=zzz"], "--freeze: 'zzz' matches nothing that training changes; that is 'w', 'b', 'v'"),
            ([*judged, "--train=^w$", "--freeze=^b$"], "--freeze: '^b$' matches nothing that training changes; that is 'w'"),
            ([*judged, "--no-decay=zzz", f"--config={folder / 'decay.json'}"], "--no-decay: 'zzz' matches no parameter; those are 'w', 'b', 'v'"),
            ([*judged, "--no-decay=b"], "--no-decay: expected an optimizer whose weight_decay is above 0, found 0"),
            ([*judged, "--untie"], "--untie: expected a weight that the model stores twice, found none"),
            ([*judged, "--shift-labels"], "--shift-labels: expected logits of at least 3 axes, [batch, length, classes], found 'y' of "),
            ([*judged, "--head=y:3"], "--head adds the output 'head', which nothing else reads: expected it to be judged, found --logits=y"),
            (["--loss=y", "--head=y:3"], "--head adds the output 'head', which nothing else reads: expected it to be judged, found --loss=y"),
            (["--loss=mse", *judged[1:], "--ignore-index=3"], "--ignore-index belongs to --loss=cross_entropy, found --loss=mse"),
            (["--loss=y", "--ignore-index=3"], "--ignore-index belongs to --loss=cross_entropy, found --loss=y")):
        found = tool("ds-opt", folder / "model.onnx", "--mode=train", *options, "-o", folder / "refused.dsp", code=None, says=says)
        expect(found.code in (1, 2) and found.err.count("\n") == 1 and not (folder / "refused.dsp").exists(), f"{options}: {found}")
    for option in ("--ignore-index=-100", "--seed=0"):
        tool("ds-opt", folder / "model.onnx", option, code=2, says=f"{option.split('=')[0]} is about training, found no --mode=train")
    for options in ([*judged, "--freeze=^b$"], ["--loss=cross_entropy", "--labels=labels", "--head=y:3", "--logits=head"]):
        tool("ds-opt", folder / "model.onnx", "--mode=train", *options, "-o", folder / "legal.dsp")
    tool("ds-opt", folder / "model.onnx", "--mode=train", *judged, "--no-decay=^b$", f"--config={folder / 'decay.json'}", "-o", folder / "legal.dsp")


@case
def long_tables(folder):
    """A table of a schedule is written as it is made, so that its length costs no memory."""
    package = small_package(folder, settings("AdamW"), "--reference")
    few = tool("ds-run", "schedule", package, "--steps=3", "--json")  # what the system counts begins with memory of Python's
    found = tool("ds-run", "schedule", package, "--steps=300000", "--json")
    expect(len(json.loads(found.out)) == 300000 and found.peak_mib < few.peak_mib + 50,
           f"a table of 300000 rows takes {found.peak_mib:.0f} MiB, one of 3 {few.peak_mib:.0f} MiB")


@case
def files_without_end(folder):
    """What is no regular file is refused, not read for ever."""
    package, data = small_package(folder, settings("AdamW"), "--reference"), small_data(folder)
    os.mkfifo(folder / "pipe")
    for option in (f"--data={folder / 'pipe'}", "--data=/dev/zero", "--client-state=/dev/zero", f"--client-state={folder / 'pipe'}",
                   f"--client-state={folder}", f"--config={folder / 'pipe'}", f"--eval-data={folder / 'pipe'}"):
        rest = [] if option.startswith("--data") else [f"--data={data}"]
        found = tool("ds-run", "train", package, *rest, option, "--steps=1", f"--checkpoint={folder / 'ck'}", code=None, timeout=10, memory_gib=1)
        expect(found.code in (1, 2) and found.err.startswith("ds-run: error: ") and found.err.count("\n") == 1, f"{found}")


def check(found):
    """Exit code 0, 1 or 2; each line of stderr says what it is; errors come with an exit code, and that with an error."""
    lines = found.err.splitlines()
    expect(all(re.match("ds-(run|opt): (error|note|warning): ", line) for line in lines), f"DS_SEED={SEED}: lines of stderr: {found}")
    errors = [line for line in lines if ": error: " in line]
    expect(bool(errors) == (found.code != 0) and len(errors) <= 8, f"DS_SEED={SEED}: errors and exit code: {found}")


def mutated(draw, text):
    """Text or bytes with a few places changed, cut or repeated."""
    parts = [b"-1", b"1e999", b"0", b"null", b"[]", b"{}", b"\"\"", b"true", b"99999999999999999999", b"\x00", b"\xff", b",", b"}", b"1e-320", b"NaN", b"\\u0000"]
    for _ in range(draw.randint(1, 3)):
        at, size = draw.randrange(len(text) + 1), draw.choice([0, 1, 1, 2, 5, 20])
        kind = draw.randrange(4)
        middle = draw.choice(parts) if kind == 0 else b"" if kind == 1 else bytes([draw.randrange(256)]) if kind == 2 else text[at:at + size] * 2
        text = text[:at] + middle + text[at + size:]
    return text


@case(seconds=12)
def mutated_configs(folder):
    draw, package = random.Random(SEED), small_package(folder, settings("AdamW"))
    full = settings(("AdamW", {"lr": 0.01, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0}), scheduler=("OneCycle", {
        "cycle_min_lr": 1e-4, "cycle_max_lr": 1e-3, "cycle_first_step_size": 10, "cycle_second_stair_count": 3, "decay_step_size": 5}),
        gradient_clipping=0, fp16={"enabled": False, "loss_scale_window": 5}, zero_optimization={"stage": 0}, steps_per_print=5)
    text = json.dumps(full, indent=1).encode()
    for number in range(400):
        (folder / "c.json").write_bytes(mutated(draw, text))
        try:
            check(tool("ds-run", "schedule", package, f"--config={folder / 'c.json'}", "--steps=30", "--json", code=None, timeout=20, memory_gib=2))
        except AssertionError as fault:
            raise AssertionError(f"mutation {number}: {(folder / 'c.json').read_bytes()!r}\n{fault}") from None


@case(seconds=6)
def mutated_command_lines(folder):
    draw, package, data = random.Random(SEED + 1), small_package(folder, settings("AdamW")), small_data(folder)
    train(package, data, "--steps=2", f"--checkpoint={folder / 'ck'}")
    options = ["--steps=3", "--epochs=1", "--resume", "--resume=global_step2", "--save-interval=1", "--keep=1", "--tag=t", f"--eval-data={data}",
               "--eval-interval=1", "--patience=1", "--log=" + str(folder / "log"), "--seed=3", "--shuffle=off", "--threads=2", "--dim=n=4",
               "--html=" + str(folder / "page.html"), f"--client-state={folder / 'ds_config.json'}", "--json", "--min-lr=1e-5", "--max-lr=0.1", "-o",
               f"--config={folder / 'ds_config.json'}", "inspect", "verify", "diff", "export", str(folder / "ck"), "--mcpu=none", "--no-verify", ""]
    values = ["", "0", "-1", "x", "1e9", "9" * 30, "\u00fc", "/", "a/b", "..", "=", "--", "7", "nan"]
    for number in range(350):
        command = draw.choice(["train"] * 4 + ["eval", "schedule", "lr-range", "checkpoint"])
        chosen = draw.sample(options, draw.randint(0, 5))
        for i, option in enumerate(chosen):
            if draw.random() < 0.3 and "=" in option and "--config" not in option and "folder" not in option and str(folder) not in option:
                chosen[i] = option.split("=")[0] + "=" + draw.choice(values)
        if command == "checkpoint":
            arguments = [draw.choice(["inspect", "verify", "diff", "export", "x"]), folder / "ck", *chosen]
        else:
            arguments = [package, *([f"--data={data}"] if command != "schedule" else []), *chosen]
            if command == "train":
                arguments += ["--steps=3"] * (draw.random() < 0.8) + [f"--checkpoint={folder / 'ck'}"] * (draw.random() < 0.7)
        arguments = ["9" if argument == "--steps=" + "9" * 30 else argument for argument in arguments]
        draw.shuffle(arguments)
        try:
            check(tool("ds-run", command, *arguments, code=None, timeout=20, memory_gib=4))
        except AssertionError as fault:
            raise AssertionError(f"mutation {number}: {fault}") from None


@case(seconds=6)
def mutated_checkpoints(folder):
    """Files of a checkpoint that are cut, changed or swapped: errors by name, and what was trained before stays as it is."""
    draw, package, data = random.Random(SEED + 2), small_package(folder, settings("AdamW")), small_data(folder)
    train(package, data, "--steps=2", f"--checkpoint={folder / 'good'}")
    files = sorted(path.relative_to(folder / "good") for path in (folder / "good").rglob("*") if path.is_file())
    for number in range(250):
        shutil.rmtree(folder / "ck", ignore_errors=True)
        shutil.copytree(folder / "good", folder / "ck")
        victim = folder / "ck" / draw.choice(files)
        content = victim.read_bytes()
        changed = mutated(draw, content)
        victim.write_bytes(changed)
        command = draw.choice([["train", package, f"--data={data}", "--steps=3", "--resume", f"--checkpoint={folder / 'ck'}"],
                               ["train", package, f"--data={data}", "--steps=3", "--resume=global_step2", f"--checkpoint={folder / 'ck'}"],
                               ["eval", package, f"--data={data}", f"--checkpoint={folder / 'ck'}"],
                               *(["checkpoint", action, folder / "ck"] for action in ("verify", "inspect")),
                               ["checkpoint", "export", folder / "ck", "-o", folder / "x.safetensors"],
                               ["checkpoint", "diff", folder / "ck", folder / "good"]])
        try:
            found = tool("ds-run", *command, code=None, timeout=20, memory_gib=2)
            if "diff" not in command or found.code == 2:
                check(found)
            read_all = "inspect" not in command and "global_step2" not in str(command[4:]) and victim.name != "latest" and "optimizer" not in victim.name
            expect(not read_all or changed == content or found.code != 0, f"the change went unseen: {found}")
        except AssertionError as fault:
            raise AssertionError(f"DS_SEED={SEED}: mutation {number} of {victim.name}: {fault}") from None
