"""States in host memory and in files: the bits of a training that keeps all in memory, bounded memory, and a device that is full."""
import json
import re
import subprocess
import time
from pathlib import Path

import numpy as np

from kit import BIN, case, expect, tool
from ranks_runs import Stages, logical, mlp, random, rows, same, with_weights
from training_runs import settings, train_package, write_config

STEPS = 8
NVME = {"device": "nvme", "buffer_count": 3}


def offloading(stage, folder, parameters=True, **more):
    zero = {"stage": stage, "offload_optimizer": {**NVME, "nvme_path": str(folder), **more}}
    if stage == 3 and parameters:
        zero["offload_param"] = {**NVME, "nvme_path": str(folder), "max_in_cpu": 0}
    return zero


def counters(path):
    return json.loads(path.read_text())["ranks"]


@case(seconds=6)
def the_same_bits(folder):
    """Each stage, with optimizer states, and at stage 3 parameters, in files: one process and three ranks, saved and gone on with."""
    files = folder / "disk"
    files.mkdir()
    optimizer = ("AdamW", {"lr": 0.02, "weight_decay": 0.1})
    plain = Stages(folder, mlp(random()), rows(folder / "data.npz", random(1)), "--reference", logits="y", optimizer=optimizer)
    for stage in plain.packages:
        for ranks in (1, 3):
            where = f"stage {stage} on {ranks} ranks"
            plain.zero = {}
            expected = logical(plain.run(stage, ranks, steps=STEPS))
            plain.zero = offloading(stage, files)
            count = folder / f"counters{stage}{ranks}.json"
            run = plain.run(stage, ranks, f"--counters={count}", steps=STEPS)
            same(logical(run), expected, f"{where}, in files")
            for rank in counters(count):
                held, places, moved = rank["bytes"], rank["places"], rank["files"]
                inFiles = held["optimizer"] + (held["parameters"] if stage == 3 else 0)
                expect(places["file"] == inFiles and places["host"] == 0, f"{where}: {places}, expected {inFiles} bytes in files")
                expect(places["device"] == sum(held[key] for key in ("parameters", "gradients", "optimizer", "others")) - inFiles, f"{where}: {places}")
                expect(0 < moved["resident"] <= (6 if stage == 3 else 3), f"{where}: {moved}, with 3 buffers of a kind")
                expect(moved["read"] > 0 and moved["written"] > 0, f"{where}: {moved}")
            half = plain.run(stage, ranks, steps=STEPS // 2)
            same(logical(plain.goes_on(half, stage, ranks, steps=STEPS)), expected, f"{where}, gone on with")
            expect(not list(files.iterdir()), f"{where}: left {list(files.iterdir())}")


@case(seconds=12)
def pieces_of_states(folder):
    """sub_group_size: an update has no more than so many elements of a state in memory, whole pages; bits are those of a run without files."""
    files = folder / "disk"
    files.mkdir()
    asked = 2500  # of which a page of 1,024 f32 is the unit
    kinds = {"AdamW": (0, 2), "Lamb": (1,), "bf16": (3,)}
    for name, stages in kinds.items():
        optimizer, more = ("Lamb", {}) if name == "Lamb" else ("AdamW", {"bf16": {"enabled": True}} if name == "bf16" else {})
        own = folder / name
        own.mkdir()
        plain = Stages(own, mlp(random(), inner=130, more=115), rows(own / "data.npz", random(1)), "--reference", logits="y", stages=stages,
                       optimizer=(optimizer, {"lr": 0.01}), **more)
        for stage in stages:
            for ranks in (1, 3):
                where = f"{name}, stage {stage} on {ranks} ranks"
                plain.zero = {}
                expected = logical(plain.run(stage, ranks, steps=STEPS))
                plain.zero = offloading(stage, files, parameters=False, buffer_count=4) | {"sub_group_size": asked}
                count = folder / "counters.json"
                for run in (plain.run(stage, ranks, f"--counters={count}", steps=STEPS),
                            plain.goes_on(plain.run(stage, ranks, steps=STEPS // 2), stage, ranks, steps=STEPS)):
                    same(logical(run), expected, where)
                for rank in counters(count):
                    moved, largest = rank["files"], asked * 4 // 4096 * 4096
                    expect(2 * 4096 < moved["resident_bytes"] <= 4 * largest, f"{where}: {moved}, expected at most 4 pieces of {largest} bytes")
                    expect(moved["resident"] <= 4 and rank["places"]["file"] > 2 * largest, f"{where}: {rank}")
                    again = (STEPS - 1) * (rank["places"]["file"] - 4 * largest)  # in each step but the first, what is not there
                    expect(moved["read"] >= again, f"{where}: {moved}, expected {again} bytes read at least: all pieces are used")
    said = plain.train(3, 1, steps=1).err
    expect("works in place" not in said and "in memory as a whole" not in said, said)
    plain.zero = {"sub_group_size": asked}
    said = plain.train(3, 1, steps=1).err
    expect("zero_optimization.sub_group_size" in said and "no states of the optimizer are in files" in said, said)


@case(seconds=3)
def states_that_stay_whole(folder):
    """1-bit LAMB takes norms of its momenta: the one that has more elements than a piece is named."""
    zero = {"sub_group_size": 1024, **offloading(0, folder, buffer_count=4)}
    package = train_package(folder, mlp(random(), inner=130, more=115), settings(("OneBitLamb", {"freeze_step": 2}), micro=4, zero_optimization=zero),
                            "--reference", logits="y")
    result = tool("ds-run", "train", package, f"--data={rows(folder / 'data.npz', random(1))}", "--steps=3", f"--counters={folder / 'c.json'}", "--threads=1")
    expect("ds-run: note: zero_optimization.sub_group_size = 1024: 'w1/exp_avg' is in memory as a whole" in result.err, result.err)
    rank, = counters(folder / "c.json")
    expect(130 * 115 * 4 < rank["files"]["resident_bytes"] < 2 * 130 * 115 * 4, f"{rank['files']}, expected one whole of {130 * 115 * 4} bytes and pieces")


@case
def memory_is_bounded(folder):
    """Optimizer states of 64 MiB in files of 2 MiB each: the process never has much of them."""
    inner = 256
    layers = 16
    names = [f"w{i}" for i in range(layers)]
    text = f"<ir_version: 9, opset_import: [\"\": 17]> m (float[n, {inner}] x) => (float[n, {inner}] y) {{ h0 = Identity (x) "
    text += " ".join(f"m{i} = MatMul (h{i}, w{i}) h{i + 1} = Tanh (m{i})" for i in range(layers)) + f" y = Identity (h{layers}) }}"
    g = random(4)
    big = {name: g.standard_normal((inner, inner)) / 16 for name in names}
    model = with_weights(text, big)
    np.savez(folder / "data.npz", x=g.standard_normal((8, inner), np.float32), labels=g.integers(0, inner, 8))
    config = settings(micro=4, zero_optimization={"stage": 0})
    package = train_package(folder, model, config, "--reference", logits="y")
    state = inner * inner * 4
    peaks = {}
    for place in ("none", "nvme"):
        zero = {"stage": 0} if place == "none" else {"stage": 0, "offload_optimizer": {"device": "nvme", "nvme_path": str(folder), "buffer_count": 2}}
        file = write_config(folder, settings(micro=4, zero_optimization=zero), f"{place}.json")
        command = ["train", package, f"--data={folder / 'data.npz'}", f"--config={file}", f"--counters={folder / 'counters.json'}", "--threads=1"]
        tool("ds-run", *command, "--steps=4")
        rank, = counters(folder / "counters.json")
        peaks[place] = rank["bytes"]["peak"]
        if place == "nvme":
            expect(rank["places"]["file"] == 2 * layers * state, f"{rank['places']}")
            expect(rank["files"]["resident"] == 2, f"{rank['files']}")
            least = 4 * (2 * layers - 2) * state
            expect(least <= rank["files"]["read"] <= 6 * 2 * layers * state, f"{rank['files']}, expected {least} bytes at least")
    least = 0.7 * (2 * layers - 2) * state
    expect(peaks["none"] - peaks["nvme"] > least, f"peaks {peaks}, files hold {2 * layers * state}")
    for more in ([], ["--resume"]):
        tool("ds-run", *command, f"--steps={4 + len(more)}", f"--checkpoint={folder / 'run'}", *more)
    rank, = counters(folder / "counters.json")
    expect(rank["files"]["resident"] == 2, f"gone on with: {rank['files']}, with 2 buffers")


@case
def a_device_that_is_full(folder):
    """Refused before the first step, naming what does not fit; what is kept elsewhere leaves room."""
    package = train_package(folder, mlp(random(), inner=300, more=200), settings(micro=4), "--reference", logits="y")
    data = rows(folder / "data.npz", random(1))

    def train(memory, place=None, code=0, says=(), **keys):
        zero = {"offload_optimizer": {"device": place, **keys}} if place else {}
        file = write_config(folder, settings(micro=4, zero_optimization=zero), "device.json")
        memory = [f"--device-memory={memory}"] if memory else []
        return tool("ds-run", "train", package, f"--data={data}", "--steps=2", f"--config={file}", "--threads=1", f"--counters={folder / 'c.json'}", *memory,
                    code=code, says=says)

    train(None)
    rank, = counters(folder / "c.json")
    held = rank["bytes"]
    states = sum(held[key] for key in ("parameters", "gradients", "optimizer", "others"))
    train("64MiB")
    train(states // 2, code=1, says=["--device-memory: state '", "does not fit beside states of", f"found {states // 2}, expected at least"])
    train(states, code=1, says=["--device-memory: workspace of a micro-batch and its activations of", f"does not fit beside states of {states}, found {states}"])
    roomy = states + 300_000  # for the workspace, without the optimizer's states
    train(roomy, code=1, says=["--device-memory: workspace"])
    train(roomy, place="cpu")
    rank, = counters(folder / "c.json")
    expect(rank["places"] == {"device": states - held["optimizer"], "host": held["optimizer"], "file": 0}, f"{rank['places']}")
    train(roomy, place="nvme", nvme_path=str(folder))
    said = train(None, place="cpu")
    expect("offload_optimizer.device = cpu: there is nothing to move, the device's memory is the host's" in said.err, said.err)
    train("1.5GiB", code=2, says=["--device-memory", "expected bytes above 0, or a number with KiB, MiB or GiB", "1.5GiB"])
    train("0", code=2, says=["expected bytes above 0"])
    train(None, place="nvme", nvme_path=str(folder / "none"), code=1, says=["nvme_path: cannot write to", "No such file or directory"])


@case
def a_disk_that_is_full(folder):
    """Said before the first step, with the state that has no room; on three ranks, too, none of which hangs."""
    package = train_package(folder, mlp(random(), inner=300, more=200), settings(micro=4), "--reference", logits="y")
    data = rows(folder / "data.npz", random(1))
    disk = folder / "disk"
    disk.mkdir()
    file = write_config(folder, settings(micro=4, zero_optimization={"offload_optimizer": {**NVME, "nvme_path": str(disk)}}), "full.json")
    for ranks in (1, 3):
        command = f"mount -t tmpfs -o size=256k none {disk} && exec {BIN / 'ds-run'} --ranks={ranks} train {package} --data={data} --steps=2 " \
                  f"--config={file} --threads=1"
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "bash", "-c", command], capture_output=True, text=True, timeout=60)
        line = [text for text in done.stderr.splitlines() if "nvme_path" in text]
        expect(done.returncode in (1, 2) and line and f"'{disk}' has no room for state '" in line[0] and "No space left on device" in line[0],
               f"{ranks} ranks: exit code {done.returncode}: {done.stderr}")


def most_memory(package, data, *options):
    """Of the process, with pages of the files that it has mapped: MiB."""
    child = subprocess.Popen([BIN / "ds-run", "train", package, f"--data={data}", "--steps=4", *options], stdout=subprocess.DEVNULL)
    most = 0
    while child.poll() is None:
        found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{child.pid}/status").read_text(), re.M)  # there is none at its end
        most = max(most, int(found[1]) / 1024) if found else most
        time.sleep(0.001)
    expect(child.returncode == 0, f"exit code {child.returncode}")
    return most


@case(seconds=7)
def a_save_takes_no_memory(folder):
    """States of files are written to a checkpoint piece by piece: 64 MiB of moments are not in memory at once for it."""
    layers, width = 8, 1024
    g = random(31)
    names = [f"w{i}" for i in range(layers)]
    steps = " ".join(f"z{i} = MatMul ({'x' if i == 0 else f't{i - 1}'}, {name}) t{i} = Tanh (z{i})" for i, name in enumerate(names))
    text = f'<ir_version: 9, opset_import: ["": 17]> m (float[n, {width}] x) => (float[n, 4] y) {{ {steps} y = MatMul (t{layers - 1}, h) }}'
    arrays = {name: g.standard_normal((width, width)) / 32 for name in names} | {"h": g.standard_normal((width, 4)) / 32}
    data = folder / "data.npz"
    np.savez(data, x=g.standard_normal((8, width), np.float32), labels=g.integers(0, 4, 8))
    config = settings("AdamW", micro=1, zero_optimization={"stage": 1, "offload_optimizer": {"device": "nvme", "nvme_path": str(folder), "buffer_count": 4}})
    package = train_package(folder, with_weights(text, arrays), config, logits="y")
    plain = most_memory(package, data)
    saved = most_memory(package, data, f"--checkpoint={folder / 'run'}", "--save-interval=1")
    expect(saved < plain + 8, f"{plain} MiB without checkpoints, {saved} MiB with them")
