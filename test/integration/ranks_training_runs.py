"""What the cases of training on several ranks share: the same training by one process that accumulates, and logical tensors of checkpoints."""
import json
import random
import shutil

import numpy as np

from kit import expect, tool
from launch_runs import launch
from programs import SEED
from training_runs import bits, safetensors, write_config

TRANSPORTS = "shm", "tcp"
RANDOM = random.Random(SEED)


def train_ranks(ranks, package, data, *options, transport=None, **keywords):
    transport = transport or RANDOM.choice(TRANSPORTS)
    return launch(f"--ranks={ranks}", f"--transport={transport}", "train", package, f"--data={data}", *options, **keywords)


def logical(checkpoint):
    """All tensors of a checkpoint, put together from its files by checkpoint.json."""
    tensors, files = {}, {}
    for tensor in json.loads((checkpoint / "checkpoint.json").read_text())["tensors"]:
        pieces = tensor.get("pieces") or [{"file": tensor["file"]}]
        parts = []
        for piece in pieces:
            if piece["file"] not in files:
                files[piece["file"]] = safetensors(checkpoint / piece["file"])
            name = f"{tensor['name']}[{piece['begin']}:{piece['end']}]" if len(pieces) > 1 else tensor["name"]
            parts.append(files[piece["file"]].pop(name).ravel())
        tensors[tensor["name"]] = np.concatenate(parts).reshape(tensor["shape"])
    left = [name for file in files.values() for name in file]
    expect(not left, f"{checkpoint}: tensors of files that checkpoint.json does not have: {left}")
    return tensors


def same_tensors(one, other, names=None):
    """Bits of logical tensors, by the files and by our tool."""
    found, expected = logical(one), logical(other)
    expect(found.keys() == expected.keys(), f"tensors on one side only: {sorted(found.keys() ^ expected.keys())}")
    different = [name for name in found if (not names or name in names) and found[name].tobytes() != expected[name].tobytes()]
    expect(not different, f"{one} and {other} differ in {different}")
    if not names:
        tool("ds-run", "checkpoint", "diff", one, other)


def as_one_process(folder, package, data, config, ranks, *options, skipped=()):
    """Trains on ranks, and on one process that accumulates their micro-batches: log and checkpoint have the same bits, but for some of the log."""
    accumulation = config.get("gradient_accumulation_steps", 1)
    alone = write_config(folder, config | {"gradient_accumulation_steps": ranks * accumulation}, "alone.json")
    ends = folder / "ranks", folder / "alone"
    for end in ends:
        shutil.rmtree(end, ignore_errors=True)
    train_ranks(ranks, package, data, f"--checkpoint={ends[0]}", f"--log={folder / 'ranks.jsonl'}", "--tag=end", *options)
    tool("ds-run", "train", package, f"--data={data}", f"--config={alone}", f"--checkpoint={ends[1]}", f"--log={folder / 'alone.jsonl'}",
         "--tag=end", *options)
    found, expected = ([{key: value for key, value in row.items() if key not in skipped} for row in bits(folder / log)]
                       for log in ("ranks.jsonl", "alone.jsonl"))
    expect(len(found) == len(expected) and found, f"{len(found)} steps on {ranks} ranks, {len(expected)} on one")
    for row, other in zip(found, expected):
        expect(row == other, f"{ranks} ranks: {row}\none process: {other}")
    same_tensors(ends[0] / "end", ends[1] / "end")
    return found
