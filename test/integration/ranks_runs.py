"""What the cases of training on several ranks share: packages of a model by stage, runs on N ranks, and a reader of what they saved."""
import hashlib
import json
import shutil

import numpy as np
import onnx
from onnx import numpy_helper

from kit import expect, tool
from programs import SEED
from training_runs import TYPES, column, log_of, settings, train_package, write_config

STAGES = range(4)
STEPS = 20
MLP = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 5] x) => (float[n, 4] y)
         { z0 = MatMul (x, w0) a0 = Add (z0, b0) t0 = Tanh (a0) z1 = MatMul (t0, w1) a1 = Add (z1, b1) t1 = Tanh (a1) y = MatMul (t1, w2) }"""


def random(*more):
    return np.random.default_rng([SEED, *more])


def with_weights(text, arrays):
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in arrays.items())
    return proto


def mlp(g, inner=13, more=7):
    """Three layers; none of their sizes is a multiple of a block."""
    return with_weights(MLP, {"w0": g.standard_normal((5, inner)) / 2, "b0": g.standard_normal(inner) / 2, "w1": g.standard_normal((inner, more)) / 3,
                              "b1": g.standard_normal(more) / 2, "w2": g.standard_normal((more, 4)) / 2})


def rows(path, g, samples=50, width=5, classes=4):
    np.savez(path, x=g.standard_normal((samples, width), np.float32), labels=g.integers(0, classes, samples))
    return path


def tokens(path, g, names=("input_ids",), samples=50, length=6, vocabulary=61, labels=None):
    """Each name gets tokens of its own; labels are the first ones, or classes."""
    arrays = {name: g.integers(0, vocabulary, (samples, length)) for name in names}
    arrays["labels"] = arrays[names[0]] if labels is None else g.integers(0, labels, samples)
    np.savez(path, **arrays)
    return path


class Stages:
    """A model compiled for stages, run on any number of ranks; a package takes any number of micro-batches."""

    def __init__(self, folder, model, data, *options, logits="logits", stages=STAGES, zero=(), **config):
        self.folder, self.data, self.runs, self.zero = folder, data, 0, dict(zero)
        self.config = {"gradient_clipping": 0.3, **config}
        self.packages = {}
        for stage in stages:
            self.packages[stage] = train_package(folder, model, settings(micro=2, accumulation=2, zero_optimization=self.sharing(stage), **self.config), *options,
                                                 logits=logits, name=f"stage{stage}.dsp")

    def sharing(self, stage):
        """Stage 3 shares everything: tensors of models like these would stay whole."""
        return {"stage": stage, **({"stage3_param_persistence_threshold": 0} if stage == 3 else {}), **self.zero}

    def run(self, stage, ranks, *options, out=None, **keywords):
        """Trains with so many micro-batches on each rank; the folder of checkpoints."""
        out = out or self.folder / f"run{self.runs + 1}"
        self.train(stage, ranks, f"--checkpoint={out}", f"--log={out}.jsonl", *options, **keywords)
        return out

    def train(self, stage, ranks, *options, accumulation=1, transport=None, steps=STEPS):
        self.runs += 1
        config = settings(micro=2, accumulation=accumulation, zero_optimization=self.sharing(stage), **self.config)
        launch = [f"--ranks={ranks}"] * (ranks > 1) + [f"--transport={transport}"] * bool(transport)
        return tool("ds-run", *launch, "train", self.packages[stage], f"--data={self.data}", f"--steps={steps}",
                    f"--config={write_config(self.folder, config, f'run{self.runs}.json')}", f"--seed={SEED}", "--threads=1", *options)

    def goes_on(self, run, stage, ranks, *options, **keywords):
        """The same from where another run has stopped."""
        start = self.folder / f"from{self.runs}"
        shutil.copytree(run, start)
        return self.run(stage, ranks, "--resume", *options, out=start, **keywords)

    def clips(self, run):
        norms = column(log_of(run.with_suffix(".jsonl")), "grad_norm")
        expect(np.nanmax(norms) > self.config["gradient_clipping"], f"nothing was clipped: {norms}")


def latest(checkpoints):
    return checkpoints / (checkpoints / "latest").read_text().strip()


def logical(checkpoints):
    """Name -> array of what a checkpoint holds, put together of the pieces that its ranks have written. Nothing of ours reads it."""
    folder = latest(checkpoints)
    info = json.loads((folder / "checkpoint.json").read_text())
    files = {item["name"]: (folder / item["name"]).read_bytes() for item in info["files"]}
    expect(set(files) == {path.name for path in folder.glob("*.safetensors")}, f"files: {sorted(files)}")
    headers = {}
    for name, content in files.items():
        size = int.from_bytes(content[:8], "little")
        headers[name] = json.loads(content[8:8 + size]), content[8 + size:]
    state = {}
    for tensor in info["tensors"]:
        count, kind = int(np.prod(tensor["shape"], dtype=int)), TYPES[tensor["dtype"].upper()]
        isCut = "pieces" in tensor
        whole, at = [], 0
        for piece in tensor["pieces"] if isCut else [{"file": tensor["file"], "begin": 0, "end": count, "sha256": tensor["sha256"]}]:
            header, body = headers[piece["file"]]
            item = header[f"{tensor['name']}[{piece['begin']}:{piece['end']}]" if isCut else tensor["name"]]
            content = body[slice(*item["data_offsets"])]
            chunks = [content[i:i + info["chunk_bytes"]] for i in range(0, len(content), info["chunk_bytes"])]
            expect([hashlib.sha256(chunk).hexdigest() for chunk in chunks] == piece["sha256"], f"{tensor['name']}: checksums")
            expect(piece["begin"] == at and len(content) == (piece["end"] - at) * np.dtype(kind).itemsize, f"{tensor['name']}: {piece}")
            whole.append(content)
            at = piece["end"]
        expect(at == count, f"{tensor['name']}: {at} of {count} elements")
        state[tensor["name"]] = np.frombuffer(b"".join(whole), kind).reshape(tensor["shape"])
    return state


def same(found, expected, what, only=None):
    """Two states have the same bits, or some of their tensors."""
    names = sorted(expected) if only is None else only
    expect(only is not None or sorted(found) == names, f"seed {SEED}: {what}: {sorted(set(found) ^ set(expected))} on one side only")
    for name in names:
        expect(found[name].dtype == expected[name].dtype and found[name].shape == expected[name].shape, f"{what}: {name} is of another kind")
        off = np.flatnonzero(found[name].ravel().view(np.uint8) != expected[name].ravel().view(np.uint8)) if found[name].size else ()
        expect(len(off) == 0, f"seed {SEED}: {what}: {name}: {len(off)} bytes differ, the first at {off[:1]} of {found[name].nbytes}")


def moved(state, model):
    """Training has changed every parameter: bits that never moved would be the same everywhere."""
    first = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    still = [name for name, array in state.items() if name in first and array.size and np.array_equal(array, first[name])]
    expect(not still, f"not trained: {still}")


def replace_manifest(package, manifest):
    """With the sums that a liar would write, too: of the file, and of the list of sums itself."""
    file, sums = package / "manifest.json", package / "SHA256SUMS"
    old, text = hashlib.sha256(file.read_bytes()).hexdigest(), json.dumps(manifest)
    file.write_text(text)
    *lines, _ = sums.read_text().replace(old, hashlib.sha256(text.encode()).hexdigest()).splitlines(keepends=True)
    sums.write_text("".join([*lines, hashlib.sha256("".join(lines).encode()).hexdigest() + "  SHA256SUMS\n"]))
