"""What the perceptron of three layers learns: pictures, where every weight's gradient is about as large, and words, where few are common and most
are rare, as in any embedding."""
import collections
import gzip
import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training-quality"))
import tasks


class Task:
    """`hidden` units of two layers; `fan`: inputs of the first layer that count, by which its weights are scaled."""

    def __init__(self, name, about, width, hidden, classes, fan, steps, freeze):
        self.name, self.about, self.width, self.hidden, self.classes, self.fan, self.steps, self.freeze = name, about, width, hidden, classes, fan, steps, freeze

    def first_weights(self, hidden=None):
        g, hidden = np.random.default_rng(0), hidden or self.hidden
        shapes = {"w0": (self.width, hidden[0]), "b0": hidden[:1], "w1": hidden, "b1": hidden[1:], "w2": (hidden[1], self.classes)}
        scale = lambda name, shape: np.sqrt(self.fan if name == "w0" else shape[0])
        return {name: (g.standard_normal(shape) / scale(name, shape) if len(shape) > 1 else np.zeros(shape)).astype(np.float32)
                for name, shape in shapes.items()}


class Images(Task):
    def __init__(self):
        super().__init__("images", "pictures of Fashion-MNIST", 784, (64, 32), 10, 784, 500, 100)

    def samples(self):
        """(train, test), each x and labels."""
        read = lambda kind, what, offset: np.frombuffer(gzip.decompress(tasks.needs(tasks.FASHION / f"{kind}-{what}-ubyte.gz", "dataset-fashion-mnist").read_bytes()),
                                                        np.uint8, offset=offset)
        return [((read(kind, "images-idx3", 16).reshape(-1, 784) / 255).astype(np.float32), read(kind, "labels-idx1", 8).astype(np.int64))
                for kind in ("train", "t10k")]


class Words(Task):
    TRAIN, TEST = 40_000, 2_000

    def __init__(self):
        super().__init__("words", "which of the 1,000 commonest words are in a definition of WordNet, 45 classes", 1000, (64, 32), 45, 64, 1200, 300)

    def samples(self):
        texts, labels = zip(*tasks.glosses())
        words = [set(re.findall("[a-z]+", text.lower())) for text in texts]
        counted = collections.Counter(word for of_one in words for word in of_one).most_common(self.width)
        place = {word: number for number, (word, _) in enumerate(counted)}
        chosen = np.random.default_rng(0).permutation(len(texts))[:self.TRAIN + self.TEST]
        x = np.zeros((len(chosen), self.width), np.float32)
        for row, text in enumerate(chosen):
            x[row, [place[word] for word in words[text] if word in place]] = 1
        y = np.array(labels, np.int64)[chosen]
        return [(x[:self.TRAIN], y[:self.TRAIN]), (x[self.TRAIN:], y[self.TRAIN:])]


TASKS = {task.name: task for task in (Images(), Words())}
