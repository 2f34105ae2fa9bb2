"""What each rank reads of weights.bin: all that it computes with, of parameters in parts its own part, and all ranks together every byte."""
import ctypes
import hashlib
import json
import mmap
import os
import re
import shutil

import numpy as np
from onnx import parser

from kit import BIN, Skip, case, expect, tool
from launch_runs import environment, launch
from programs import SEED
from ranks_training_cases import shared
from training_runs import settings, train_package

RANKS = 3
CHUNK = 1 << 20
WIDE = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 512] x) => (float[n, 4] y)
          { z = MatMul (x, w) a = Add (z, b) t = Tanh (a) u = MatMul (t, v) y = MatMul (u, h) }"""


def wide(folder, stage, name):
    """Two products with 4 MiB of weights each, and small ones."""
    import onnx
    g = np.random.default_rng(SEED)
    model = parser.parse_model(WIDE)
    for tensor, shape in (("w", (512, 2048)), ("b", (2048,)), ("v", (2048, 512)), ("h", (512, 4))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(g.standard_normal(shape, np.float32) / 40, tensor))
    package = train_package(folder, model, settings("AdamW", micro=1, **shared(stage)), logits="y", name=name)
    data = folder / "data.npz"
    np.savez(data, x=g.standard_normal((12, 512), np.float32), labels=g.integers(0, 4, 12))
    return package, data


def elements(shape):
    return int(np.prod(shape, dtype=np.int64))


def readers(package, begin, end):
    """The ranks that compute with bytes of a range of weights.bin, by the manifest."""
    variant, found = json.loads((package / "manifest.json").read_text())["variants"][0], set()
    constants = variant["constants"]

    def note(number, first, last, ranks):
        at = constants[number]["offset"]
        if at + first < end and at + last > begin and first < last:
            found.update(ranks)
    for entry in variant["entries"]:
        for buffer in entry["buffers"]:
            if buffer["role"] == "constant":
                note(buffer["index"], 0, constants[buffer["index"]]["bytes"], range(RANKS))
        for state in entry["states"]:
            if "part" not in state:
                if state.get("initial") is not None:
                    note(state["initial"], 0, constants[state["initial"]]["bytes"], range(RANKS))
                continue
            unit = variant["units"][state["unit"]]
            part = -(-unit["elements"] // (RANKS * unit["block"])) * unit["block"]
            for tensor in unit["tensors"] if not state.get("suffix") else []:
                for rank in range(RANKS):
                    first, last = (rank * part, (rank + 1) * part) if state["part"] == "shard" else (0, RANKS * part)
                    inside = max(first, tensor["offset"]), min(last, tensor["offset"] + elements(tensor["shape"]))
                    note(tensor["initial"], *(4 * (place - tensor["offset"]) for place in inside), [rank])
    return found


def chunks(package):
    return [(int(at), int(length)) for at, length in re.findall(r"weights\.bin:(\d+)\+(\d+)$", (package / "SHA256SUMS").read_text(), re.M)]


@case(seconds=6)
def damage_is_found_by_who_reads_it(folder):
    g = np.random.default_rng(SEED)
    for stage in (0, 3):
        package, data = wide(folder, stage, f"stage{stage}.dsp")
        weights, counts = package / "weights.bin", set()
        whole = weights.read_bytes()
        for at, length in chunks(package):
            expect(length <= CHUNK, f"a chunk of {length} bytes")
            place, expected = at + int(g.integers(length)), readers(package, at, at + length)
            counts.add(len(expected))
            with open(weights, "r+b") as file:
                file.seek(place)
                file.write(bytes([whole[place] ^ 16]))
            _, err = launch(f"--ranks={RANKS}", "train", package, f"--data={data}", "--steps=1", code=1, env=environment())
            # One of them is enough where nobody reads it.
            said = re.search(rf"^ds-run: error: (?:ranks? ([\d, ]+): )?\S+: weights\.bin:{at}\+{length}: checksum mismatch", err, re.M)
            expect(said, f"stage {stage}, byte {place}: {err}")
            found = {int(word) for word in said[1].split(", ")} if said[1] else set(range(RANKS))
            expect(found == expected if expected else len(found) == 1, f"stage {stage}, chunk at {at}: refused by {found}, expected {expected}")
            tool("ds-run", "train", package, f"--data={data}", "--steps=1", code=1, says=f"weights.bin:{at}+{length}: checksum mismatch")
            weights.write_bytes(whole)
        expect(counts == {RANKS} if stage == 0 else {1, 2} <= counts, f"stage {stage}: chunks are read by {counts} ranks")


@case(seconds=6)
def one_digest_of_the_whole(folder):
    """Written by others, sums may have one line for all of weights.bin, which each rank verifies."""
    package, data = wide(folder, 3, "whole.dsp")
    weights, sums = package / "weights.bin", package / "SHA256SUMS"
    lines = [line for line in sums.read_text().splitlines(True) if not re.search("weights.bin|SHA256SUMS", line)]
    body = "".join([*lines, f"{hashlib.sha256(weights.read_bytes()).hexdigest()}  weights.bin\n"])
    sums.write_text(f"{body}{hashlib.sha256(body.encode()).hexdigest()}  SHA256SUMS\n")
    train = [f"--ranks={RANKS}", "train", package, f"--data={data}", "--steps=1"]
    launch(*train, env=environment())
    weights.write_bytes(bytes([weights.read_bytes()[0] ^ 1]) + weights.read_bytes()[1:])
    _, err = launch(*train, code=1, env=environment())
    expect(len(err.splitlines()) == 1 and "weights.bin: checksum mismatch" in err, err)


def drop_pages(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def bytes_in_cache(path):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        pages = (ctypes.c_ubyte * -(-len(memory) // mmap.PAGESIZE))()
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        if ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(start), ctypes.c_size_t(len(memory)), pages):
            raise OSError(ctypes.get_errno(), "mincore")
        return sum(page & 1 for page in pages) * mmap.PAGESIZE


@case(seconds=6)
def a_rank_reads_its_part(folder):
    """As on machines of their own: each rank has a copy of the package, whose pages tell what was read."""
    read = {}
    for stage in (0, 3):
        package, data = wide(folder, stage, f"stage{stage}.dsp")
        copies = [shutil.copytree(package, folder / f"stage{stage}-{rank}.dsp") for rank in range(RANKS)]
        size = (package / "weights.bin").stat().st_size
        for copy in copies:
            drop_pages(copy / "weights.bin")
        if any(bytes_in_cache(copy / "weights.bin") for copy in copies):
            raise Skip("this file system keeps all pages")
        script = f"exec {BIN / 'ds-run'} train {folder}/stage{stage}-$DS_RANK.dsp --data={data} --steps=2"
        launch(f"--ranks={RANKS}", "--exec", "sh", "-c", script, env=environment())
        read[stage] = [bytes_in_cache(copy / "weights.bin") / size for copy in copies]
    expect(all(part > 0.99 for part in read[0]), f"{read}")
    # At most two chunks more of each product's weights than a third.
    expect(all(part < 0.75 for part in read[3]) and sum(read[3]) > 0.99, f"{read}")
