"""A training that stops and goes on ends with the bits of one that did not; checkpoints are whole at any moment."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import onnx

import training_models as models
from kit import BIN, case, expect, tool
from programs import SEED
from training_runs import (OF_THE_MACHINE, SMALL, column, log_of, same_state, settings, small_data, small_package, train, train_package, weights, write_config)

CYCLE = "OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 0.05, "cycle_first_step_size": 7, "cycle_second_step_size": 9, "decay_step_size": 2,
                     "decay_lr_rate": 0.1}


def bits(path):
    """A log without its times."""
    return [{key: value for key, value in row.items() if key not in OF_THE_MACHINE} for row in log_of(path)]


def goes_on(package, data, checkpoints, log, *options, tagged=False):
    """Trains on where there is a checkpoint. That a run which began anew had the same bits must not pass: the earlier lines of
    the log stay, with their times."""
    resumes = (checkpoints / "latest").exists()
    earlier, last = log.read_text() if log.exists() else "", (checkpoints / "latest").read_text().strip() if resumes else ""
    train(package, data, f"--checkpoint={checkpoints}", f"--log={log}", *options, *["--resume" + f"={last}" * tagged] * resumes)
    if resumes:
        expect(log.read_text().startswith(earlier), f"{options}: did not go on from {last}: lines of the log were written anew")


def same_after_stops(folder, package, data, steps, stops, *options, last=None):
    """`steps` are options of the end; `last` is the step it comes at."""
    whole, parts, log = folder / "whole", folder / "parts", folder / "parts.jsonl"
    for path in (whole, parts):
        shutil.rmtree(path, ignore_errors=True)
    log.unlink(missing_ok=True)
    end = f"--steps={steps}" if isinstance(steps, int) else steps
    last = last or steps
    train(package, data, end, f"--checkpoint={whole}", f"--log={folder / 'whole.jsonl'}", *options)
    for number, stop in enumerate(stops):
        goes_on(package, data, parts, log, f"--steps={stop}", f"--threads={1 + number % 3}", *options, tagged=number % 2 == 1)
    goes_on(package, data, parts, log, end, *options)
    same_state(whole, parts, last)
    expect(bits(folder / "whole.jsonl") == bits(log), f"{stops}: the log differs from that of a run without stops")
    return whole


@case(seconds=6)
def stops_at_each_step(folder):
    """22 samples in batches of 4, three to a step: stops lie in the middle of epochs, epochs end in the middle of steps."""
    package, data = small_package(folder, settings("AdamW", accumulation=3, scheduler=CYCLE)), small_data(folder)
    for stop in range(1, 12):
        same_after_stops(folder, package, data, 12, [stop], "--seed=7")
    same_after_stops(folder, package, data, 12, range(1, 12))


@case(seconds=6)
def stops_among_overflows(folder):
    """The scale, its hysteresis, what was skipped and the schedule go on where they were."""
    fp16 = {"enabled": True, "initial_scale_power": 26, "loss_scale_window": 3, "hysteresis": 3}
    package = small_package(folder, settings("AdamW", accumulation=2, scheduler=CYCLE, fp16=fp16))
    whole = same_after_stops(folder, package, small_data(folder), 24, range(1, 24), "--seed=2")
    flags = [row["overflow"] for row in log_of(folder / "whole.jsonl")]
    expect(sum(flags) > 3 and not all(flags[-6:]), f"overflows: {flags}")
    kept = json.loads((whole / "global_step24/checkpoint.json").read_text())
    expect(kept["trainer"]["skipped"] == sum(flags) and kept["loss_scale"]["iteration"] == 24, f"kept: {kept['loss_scale']}, {kept['trainer']}")


@case(seconds=7)
def stops_with_dropout(folder):
    """Each micro-batch of each step has masks of its own, whatever was stopped between; evaluation has none."""
    text = SMALL.replace("y = MatMul (t, v)", "ratio = Constant <value_float = 0.5> () d = Dropout (t, ratio) y = MatMul (d, v)")
    config, data = settings(("SGD", {"lr": 0.0}), micro=11, accumulation=2), small_data(folder)
    package = train_package(folder, onnx.parser.parse_model(text), config, logits="y")
    found = {}
    for seed in (1, 1, 2):
        train(package, data, "--steps=9", f"--seed={seed}", "--shuffle=off", f"--log={folder / 'log'}", f"--eval-data={data}", "--eval-interval=1")
        rows = log_of(folder / "log")
        expect(len(set(column(rows, "loss"))) == 9 and len(set(column(rows, "eval_loss"))) == 1, f"losses: {column(rows, 'loss')}")
        same = found.setdefault(seed, column(rows, "loss"))
        expect(np.all(same == column(rows, "loss")), f"seed {seed} drops others the second time")
    expect(not np.any(found[1] == found[2]), "two seeds drop the same")
    package = train_package(folder, onnx.parser.parse_model(text), settings("AdamW", micro=3, accumulation=3), logits="y")
    same_after_stops(folder, package, data, 11, [1, 4, 6], "--seed=5")


@case(seconds=5)
def stops_with_each_optimizer(folder):
    data = small_data(folder)
    for optimizer in (("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}), ("Momentum", {"nesterov": True}), "Adagrad",
                      "Lamb", ("Adam", {"adam_w_mode": False})):
        package = small_package(folder, settings(optimizer, gradient_clipping=0.5), "--reference")
        same_after_stops(folder, package, data, 9, [1, 5], "--shuffle=off")


@case(seconds=3)
def stops_in_epochs(folder):
    """Epochs end the run; the last batch of each is smaller, and so is a step."""
    package, data = small_package(folder, settings("AdamW", accumulation=2)), small_data(folder, 22)
    same_after_stops(folder, package, data, "--epochs=3", [2, 3, 4, 8], last=9)
    rows = log_of(folder / "parts.jsonl")
    expect([row["samples"] for row in rows] == [8, 16, 22, 30, 38, 44, 52, 60, 66], f"samples: {[row['samples'] for row in rows]}")


@case(seconds=3)
def fewer_samples_than_a_batch(folder):
    package, data = small_package(folder, settings("AdamW", accumulation=2)), small_data(folder, 3)
    same_after_stops(folder, package, data, 7, [1, 4])
    expect([row["samples"] for row in log_of(folder / "parts.jsonl")] == [6, 12, 18, 24, 30, 36, 42], "each step has the data twice")


@case(seconds=12)
def threads(folder):
    """A package of kernels that threads share, with two of them and with one."""
    g = np.random.default_rng(1)
    tokens = g.integers(0, 61, (10, 23))
    np.savez(folder / "data.npz", input_ids=tokens, labels=tokens)
    package = train_package(folder, models.gpt(), settings("AdamW", accumulation=2, gradient_clipping=0.5), "--shift-labels")
    for count in (1, 2, 3):
        train(package, folder / "data.npz", "--steps=7", f"--threads={count}", f"--checkpoint={folder / str(count)}",
              f"--log={folder / f'{count}.jsonl'}")
    for count in (2, 3):
        same_state(folder / "1", folder / str(count), 7)
        expect(bits(folder / "1.jsonl") == bits(folder / f"{count}.jsonl"), f"{count} threads have another log")
    same_after_stops(folder, package, folder / "data.npz", 6, [1, 4])


@case(seconds=3)
def order_of_samples(folder):
    """With a rate of 0, the loss of a step tells which sample it was."""
    package, data = small_package(folder, settings(("SGD", {"lr": 0.0}), micro=1)), small_data(folder, 13)

    def losses(*options):
        train(package, data, "--epochs=3", f"--log={folder / 'log.jsonl'}", *options)
        return column(log_of(folder / "log.jsonl"), "loss").reshape(3, 13)
    plain, first, again, other = losses("--shuffle=off"), losses("--seed=1"), losses("--seed=1"), losses("--seed=2")
    expect(len(set(plain[0])) == 13, "samples have losses of their own")
    expect(np.all(plain == plain[0]), "without shuffling, epochs differ")
    expect(np.all(first == again), "the same seed, another order")
    for name, found in (("1", first), ("2", other)):
        expect(np.all(np.sort(found) == np.sort(plain)), f"seed {name}: an epoch is no permutation")
        expect(len({tuple(row) for row in (*found, plain[0])}) == 4, f"seed {name}: epochs in one order")
    expect(not np.all(first == other), "two seeds, one order")


def start(package, data, folder, *options):
    command = [str(BIN / "ds-run"), "train", str(package), f"--data={data}", f"--checkpoint={folder / 'parts'}", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def wait_for(condition, process, what):
    deadline = time.time() + 60
    while not condition():
        expect(process.poll() is None and time.time() < deadline, f"ended or hung before {what}: {process.poll()}")
        time.sleep(0.001)


def long_package(folder):
    return small_package(folder, settings("AdamW", accumulation=2, scheduler=CYCLE)), small_data(folder, 150)


@case(seconds=3)
def signals(folder):
    """SIGINT and SIGTERM end the run after a step, with a checkpoint of it; the last step is the one that says so."""
    package, data = long_package(folder)
    steps = 30000
    for number in (signal.SIGINT, signal.SIGTERM):
        shutil.rmtree(folder / "parts", ignore_errors=True)
        log = folder / f"{number}.jsonl"
        process = start(package, data, folder, f"--steps={steps}", f"--log={log}", "--seed=3")
        wait_for(lambda: log.exists() and log.stat().st_size > 3000, process, "the signal")
        process.send_signal(number)
        out, error = process.communicate(timeout=30)
        stopped = int((folder / "parts/latest").read_text().removeprefix("global_step"))
        expect(process.returncode == 128 + number and f"interrupted after step {stopped - 1}".encode() in error,
               f"{number}: exit code {process.returncode}, {error}")
        expect(0 < stopped < steps, f"stopped after {stopped}")
        expect(log_of(log)[-1]["step"] == stopped - 1, f"the log ends with {log_of(log)[-1]}, the checkpoint is that of {stopped}")
        end = stopped + 50
        goes_on(package, data, folder / "parts", log, f"--steps={end}")
        shutil.rmtree(folder / "whole", ignore_errors=True)
        train(package, data, f"--steps={end}", f"--checkpoint={folder / 'whole'}", "--seed=3", f"--log={folder / 'whole.jsonl'}")
        same_state(folder / "whole", folder / "parts", end)
        expect(bits(log) == bits(folder / "whole.jsonl"), "the log differs from that of a run without stops")


@case(seconds=6)
def killed(folder):
    """Killed at any moment, mostly while it saves: what `latest` names is whole, and going on from there ends with the same bits."""
    package, data = long_package(folder)
    draw, log = random.Random(SEED), folder / "log.jsonl"
    options = ["--save-interval=1", "--keep=3"]
    for _ in range(12):
        resumes = (folder / "parts/latest").exists()
        process = start(package, data, folder, "--steps=100000", f"--log={log}", *options, *["--resume"] * resumes)
        before = (folder / "parts/latest").read_text() if resumes else ""
        wait_for(lambda: (folder / "parts/latest").exists() and (folder / "parts/latest").read_text() != before, process, "a checkpoint")
        time.sleep(draw.random() * 0.05)
        process.kill()
        process.communicate()
        tool("ds-run", "checkpoint", "verify", folder / "parts")
    stopped = int((folder / "parts/latest").read_text().strip().removeprefix("global_step"))
    first = log_of(log)[0]
    train(package, data, f"--steps={stopped + 3}", f"--checkpoint={folder / 'parts'}", "--resume", f"--log={log}", *options)
    expect(log_of(log)[0] == first, "did not go on, but began anew")
    train(package, data, f"--steps={stopped + 3}", f"--checkpoint={folder / 'whole'}", f"--log={folder / 'whole.jsonl'}")
    same_state(folder / "whole", folder / "parts", stopped + 3)
    expect(bits(log) == bits(folder / "whole.jsonl"), f"DS_SEED={SEED}: the log differs from that of a run without stops")
    left = sorted(path.name for path in (folder / "parts").iterdir())
    expect(left == sorted(["latest", *(f"global_step{stopped + i}" for i in (1, 2, 3))]), f"left: {left}")


@case(seconds=6)
def early_stops(folder):
    """--patience counts evaluations across stops, which add none of their own that matter."""
    package, data, other = small_package(folder, settings(("SGD", {"lr": 0.5}))), small_data(folder), small_data(folder, 5, seed=9, name="e.npz")
    options = [f"--eval-data={other}", "--eval-interval=5", "--patience=2", "--steps=400"]
    train(package, data, *options, f"--checkpoint={folder / 'whole'}", f"--log={folder / 'whole.jsonl'}")
    rows = log_of(folder / "whole.jsonl")
    scores = [(row["step"], row["eval_loss"]) for row in rows if "eval_loss" in row]
    expect([step for step, _ in scores] == list(range(4, rows[-1]["step"] + 1, 5)), f"evaluations: {scores}")
    best = min(range(len(scores)), key=lambda i: scores[i][1])
    expect(len(scores) < 80 and best == len(scores) - 3, f"stopped after {scores}")
    end = rows[-1]["step"] + 1
    for stop in (3, 5, 7, end - 6, end - 4, end - 2, end - 1):
        shutil.rmtree(folder / "parts", ignore_errors=True)
        train(package, data, *options[:3], f"--steps={stop}", f"--checkpoint={folder / 'parts'}", f"--log={folder / 'parts.jsonl'}")
        goes_on(package, data, folder / "parts", folder / "parts.jsonl", *options)
        found = [(row["step"], row["eval_loss"]) for row in log_of(folder / "parts.jsonl") if "eval_loss" in row and row["step"] % 5 == 4]
        expect(found == scores, f"stopped at {stop}: evaluations {found}, expected {scores}")
        same_state(folder / "whole", folder / "parts", end)


@case(seconds=3)
def tags_and_keep(folder):
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    (folder / "client.json").write_text('{"note": "\\u00fc", "list": [1, 2.5, null]}')
    ck = folder / "ck"
    train(package, data, "--steps=9", "--save-interval=2", "--keep=2", "--tag=end", f"--client-state={folder / 'client.json'}", f"--checkpoint={ck}")
    expect(sorted(path.name for path in ck.iterdir()) == ["end", "global_step8", "latest"], f"left: {list(ck.iterdir())}")
    expect((ck / "latest").read_text().strip() == "end", "latest is the tag")
    kept = json.loads((ck / "end/checkpoint.json").read_text())
    expect(kept["client_state"] == {"note": "\u00fc", "list": [1, 2.5, None]} and kept["step"] == 9 and kept["samples"] == 34, f"kept: {kept}")
    # The client's state lives on; a named checkpoint is gone on from.
    train(package, data, "--steps=10", "--resume=global_step8", f"--checkpoint={ck}")
    expect(json.loads((ck / "global_step10/checkpoint.json").read_text())["client_state"] == kept["client_state"], "the client's state")
    train(package, data, "--steps=10", f"--checkpoint={folder / 'whole'}", f"--client-state={folder / 'client.json'}")
    same_state(folder / "whole", ck, 10)
    train(package, data, "--steps=11", "--resume=nowhere", f"--checkpoint={ck}", code=2, says=["nowhere", "end", "global_step10"])
    train(package, data, "--steps=11", "--resume", f"--checkpoint={folder / 'none'}", code=2, says="no folder of checkpoints")
    out = train(package, data, "--steps=10", "--resume", f"--checkpoint={ck}").out
    expect("nothing to do" in out, out)
    for large in (2**32, 2**32 + 1):  # each is as good as all
        shutil.rmtree(folder / "large", ignore_errors=True)
        train(package, data, "--steps=6", "--save-interval=2", f"--keep={large}", f"--checkpoint={folder / 'large'}")
        expect(len(list((folder / "large").iterdir())) == 4, f"--keep={large}: left {list((folder / 'large').iterdir())}")


@case(seconds=8)
def other_checkpoints(folder):
    """Another optimizer, another model, other data, another order: refused by name, and nothing is written."""
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    train(package, data, "--steps=3", f"--checkpoint={folder / 'adam'}")
    other = small_package(folder, settings(("SGD", {"momentum": 0.9})), name="other.dsp")
    go = [f"--checkpoint={folder / 'adam'}", "--steps=5", "--resume"]
    train(other, data, *go, code=2, says=["has no tensor", "/momentum'"])
    fewer = small_data(folder, 21, name="fewer.npz")
    train(package, fewer, *go, code=2, says=["22 samples", "21"])
    train(package, data, *go, "--shuffle=off", code=2, says="--shuffle")
    train(package, data, *go, "--seed=4", code=2, says="--seed")
    g = np.random.default_rng(0)
    np.savez(folder / "bert.npz", input_ids=g.integers(0, 61, (22, 9)), attention_mask=np.ones((22, 9), np.int64), labels=g.integers(0, 3, 22))
    bert = train_package(folder, models.bert(layers=1), settings("AdamW"), "--reference", name="bert.dsp")
    train(bert, folder / "bert.npz", "--steps=1", f"--checkpoint={folder / 'bert'}")
    train(package, data, f"--checkpoint={folder / 'bert'}", "--steps=5", "--resume", code=2, says="has no tensor 'b'")
    tool("ds-run", "eval", package, f"--data={data}", f"--checkpoint={folder / 'bert'}", code=2, says="has no tensor 'b'")
    tool("ds-run", "checkpoint", "diff", folder / "adam", folder / "bert", code=1)
    expect(sorted(path.name for path in (folder / "adam").iterdir()) == ["global_step3", "latest"], "something was written")
    # What needs no compilation may change.
    config = write_config(folder, settings(("AdamW", {"lr": 0.1}), micro=2))
    train(package, data, *go, f"--config={config}", f"--log={folder / 'log.jsonl'}")
    expect([(row["step"], row["lr"], row["samples"]) for row in log_of(folder / "log.jsonl")] == [(3, 0.1, 14), (4, 0.1, 16)], "rows gone on with")


@case(seconds=6)
def flipped_bytes(folder):
    """Each byte of a checkpoint is under a checksum; a fault names its file."""
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    train(package, data, "--steps=3", f"--checkpoint={folder / 'ck'}")
    draw = random.Random(SEED)
    for path in sorted((folder / "ck/global_step3").iterdir()):
        content = path.read_bytes()
        for trial in range(12):
            at, bit = draw.randrange(len(content)), 1 << draw.randrange(8)
            changed = bytearray(content)
            changed[at] ^= bit
            path.write_bytes(bytes(changed) if trial else content[:at])
            where = f"DS_SEED={SEED}: {path.name}, byte {at}"
            found = tool("ds-run", "checkpoint", "verify", folder / "ck", code=None)
            expect(found.code == 1 and path.name in found.err, f"{where}: {found}")
            found = train(package, data, "--steps=4", "--resume", f"--checkpoint={folder / 'ck'}", code=None)
            expect(found.code in (1, 2) and found.err.startswith("ds-run: error: ") and found.err.count("\n") == 1, f"{where}: {found}")
        path.write_bytes(content)
    tool("ds-run", "checkpoint", "verify", folder / "ck")
    before = weights(folder / "ck")
    expect(set(before) == {"b", "v", "w"}, f"exported: {sorted(before)}")
    os.remove(folder / "ck/global_step3/parameters.safetensors")
    tool("ds-run", "checkpoint", "verify", folder / "ck", code=1, says="parameters.safetensors")
