"""Attention over more keys than scratch has scores of at a time: against NumPy's float64, whose softmax is that of whole rows.
Sizes around the ends of blocks of keys; masks, windows and rows that see nothing of some blocks, or of any; scores that are not
numbers; scratch that does not grow; bits that depend neither on threads nor on other rows of a batch.

Tolerances are those of sums of a thousand products with weights that sum to 1, one after the other in plain loops, relative to values
of size 1: 3e-5 in f32.
"""
import itertools
import json

import numpy as np
import onnx

import layers
import training_models
from attention_gradient_cases import Attentions
from kit import case, expect, tool
from programs import VARIANTS, some

BLOCK = 1024  # of keys, or a few more
LENGTHS = [BLOCK - 33, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK - 7, 2301]
ERRORS = {"f32": 3e-5, "f64": 1e-12, "f16": 3e-3, "bf16": 2e-2}


def variants(random):
    """One of the forms in tiles, and one in plain loops."""
    return [str(random.choice(VARIANTS[:2])), str(random.choice(VARIANTS[2:]))]


def far(low):
    """Numbers that a window puts where it hides: their weights count, or not."""
    return [("window", None, low)]


@case(seconds=20)
def lengths(folder):
    """No mask; heads that share keys, a single row, sizes of features that vectors divide or not, every float type."""
    p = Attentions()
    for t, dynamic in some(itertools.product(LENGTHS, (False, True)), 5):
        s, (h, g), (d, e), element = (p.random.choice(np.array(choice, object)) for choice in (
            [1, 1, 5, 70, 600], [(2, 2), (4, 2), (3, 1)], [(16, 16), (64, 64), (7, 5), (33, 80), (128, 32)], [*ERRORS, "f32"]))
        p.derive((2, h, g, s, t, d, e), element=element, dynamic=dynamic, forward=ERRORS[element])
    p.derive((2, 4, 2, 1, 2 * BLOCK + 3, 16, 32), dynamic=True, forward=ERRORS["f32"])
    p.verify(folder, variants(p.random))


@case(seconds=20)
def steps_and_windows(folder):
    p = Attentions()
    random = p.random.standard_normal
    forms = ([("window",)] * 3 + [("window", "add"), ("add", "window"), ("window_mask",), ("window_add",), ("keep", "window"), ("hide_add",), ()])
    for form in some(forms, 5):
        s, t = ((70, 1200), (40, 2 * BLOCK), (600, 1200), (1, 2301))[p.random.integers(4)]
        bounds = ({"right": 0, "past": t - s}, {"left": 40, "right": 0, "past": t - s}, {"left": 3, "right": 2}, {"left": 2 * BLOCK},
                  {"right": 0, "past": BLOCK - 5}, {"left": 20, "past": 4 * BLOCK})[p.random.integers(6)]
        low = (-np.inf, -1e30, -10000.0, -1.5)[p.random.integers(4)]
        flags = lambda: p.random.uniform(size=(2, 1, 1, t)) < 0.6
        steps = [(kind, random((s, t)) if kind in ("add", "window_mask") else flags() if kind[:4] in ("keep", "hide") else None,
                  None if kind == "add" else -50.0 if kind in ("keep", "hide_add") else low) for kind in form]
        windowed = any(kind.startswith("window") for kind in form)
        element = ("f32", "f32", "f16", "f64")[p.random.integers(4)]
        p.derive((2, 4, 2, s, t, 16, 16), steps, bounds if windowed else None, element, dynamic=bool(p.random.integers(2)), guard=low == -np.inf,
                 cap=(None, 2.0)[p.random.integers(2)], forward=ERRORS[element])
    p.verify(folder, variants(p.random))


@case(seconds=12)
def rows_that_see_nothing(folder):
    """Of the first blocks of keys, of the last ones, of any: by a mask of -inf, by what hides, by a window beside all keys. Rows
    without a score are NaN, or 0 under a guard; where a window hides everything, all keys weigh the same."""
    p = Attentions()
    for guard, element, dynamic in some(itertools.product((False, True), ("f32", "f64"), (False, True)), 2):
        s, t = 20, 2 * BLOCK + 100
        hidden = np.zeros((2, 1, s, t))
        hidden[0, 0, :5, :BLOCK + 3] = hidden[0, 0, 5:9, BLOCK:] = hidden[1, 0, 3] = -np.inf
        hidden[1, 0, 4, :] = -np.inf
        hidden[1, 0, 4, -1] = 0
        for steps in ([("add", hidden, None)], [("keep", hidden == 0, -np.inf)], [("keep_add", hidden == 0, -1e30)]):
            p.derive((2, 4, 2, s, t, 8, 16), steps, element=element, dynamic=dynamic, guard=guard, forward=ERRORS[element])
        for low, bounds in itertools.product((-np.inf, -1e30, -2.0), ({"left": 0, "past": t + 5}, {"right": 0, "past": -10}, {"right": 0, "past": BLOCK})):
            p.derive((2, 4, 2, s, t, 8, 16), far(low), bounds, element, dynamic=dynamic, guard=guard, forward=ERRORS[element])
    p.verify(folder, variants(p.random))


@case(seconds=8)
def growing_scores(folder):
    """Scores of hundreds that rise from block to block, or fall: weights of the others vanish."""
    p = Attentions()
    for slope in (0.5, -0.5, 2.0):
        t = 3 * BLOCK - 9
        rising = slope * np.arange(t) + p.random.standard_normal((9, t))
        error = ERRORS["f32"] + 4 * 2.0**-24 * abs(slope) * t  # a sum of that size is rounded, in a score and in its mask
        p.derive((1, 2, 2, 9, t, 16, 16), [("add", rising, None)], dynamic=slope > 0, forward=error)
        p.derive((1, 2, 2, 1, t, 16, 16), [("add", rising[:1], None)], forward=error)
    p.verify(folder, variants(p.random))


@case(seconds=8)
def hidden_values(folder):
    """Values up to 1e37, the sum of a block of which is infinite, where all keys of that block are hidden by a finite number."""
    p = Attentions()
    for low, s in itertools.product((-1e9, -3e38), (1, 5)):
        t = 2 * BLOCK + 90
        seen = np.arange(t) >= BLOCK + 100
        p.values = np.where(seen[:, None], 1, 1e37)
        for steps, bounds in (([("add", np.where(seen, 0.0, low), None)], None), ([("keep", seen, low)], None), ([("keep_add", seen, low)], None),
                              ([*far(low), ("add", p.random.standard_normal((s, t)), None)], {"left": 0, "right": 900, "past": BLOCK + 100}),
                              (far(low), {"left": 0, "right": 900, "past": BLOCK + 100})):
            p.derive((1, 2, 1, s, t, 16, 16), steps, bounds, dynamic=s == 5, forward=ERRORS["f32"])
    p.verify(folder, variants(p.random))


@case(seconds=8)
def dropout(folder):
    """A row that is not a number and of which nothing is kept is 0, as without blocks."""
    p = Attentions()
    hidden = np.zeros((2, 1, 9, 1200))
    hidden[1, 0, 3] = hidden[0, 0, 2, :1100] = -np.inf
    stream = lambda: int(p.random.integers(2**31))
    for ratio, dynamic in ((0.5, True), (1 - 1e-6, False), (1 - 1e-12, True)):
        p.derive((2, 4, 2, 9, 1200, 16, 16), [("add", hidden, None)], dynamic=dynamic, dropout=(ratio, stream()), forward=ERRORS["f32"])
        p.derive((2, 4, 2, 9, 1200, 16, 16), far(-np.inf), {"right": 0, "past": 1000}, dynamic=dynamic, dropout=(ratio, stream()), forward=ERRORS["f32"])
    p.verify(folder, variants(p.random))


@case(seconds=8)
def same_bits(folder):
    """With 1, 2 and 3 threads; and a batch entry alone."""
    p = Attentions()
    p.derive((2, 6, 2, 90, 2300, 16, 16), far(-np.inf), {"right": 0, "past": 2210}, dynamic=True, forward=ERRORS["f32"])
    p.derive((2, 6, 2, 1, 2300, 16, 16), dynamic=True, forward=ERRORS["f32"])
    found = [p.run(folder, ["--mcpu=host"], [f"--threads={count}"]) for count in (1, 2, 3)]
    for other in found[1:]:
        expect(all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other)), "bits depend on threads")
    for entry in range(2):
        np.savez(folder / "one.npz", **{value.name[1:]: value.array[entry:entry + 1] for value in p.arguments})
        tool("ds-run", folder / "program.dsp", f"--inputs={folder / 'one.npz'}", f"--output={folder / 'one_out.npz'}")
        alone = np.load(folder / "one_out.npz")
        for number, whole in enumerate(found[0]):
            expect(alone[f"r{number}"].tobytes() == whole[entry:entry + 1].tobytes(), f"result {number} of entry {entry} has other bits alone")


def scratches(package, kind="attention"):
    """Bytes for each thread of every kernel of attention, as the package states them."""
    (variant,) = json.loads((package / "manifest.json").read_text())["variants"]
    return [entry["sizes"][launch["scratch"]] for entry in variant["entries"] for launch in entry["launches"]
            if launch["kernel"].startswith(kind)]


@case(seconds=12)
def scratch_that_does_not_grow(folder):
    """Less than 2 MiB, whatever the number of keys; keys and values that the kernel puts together included."""
    found = {}
    for t in (5000, 9000):
        p = Attentions()
        for element, steps in some(itertools.product(ERRORS, ([], far(-np.inf), [("window", None, -1.0), ("keep", np.ones((1, t), bool), -1.0)])), 4):
            p.derive((1, 2, 1, 2, t, 64, 64), steps, {"right": 0} if steps else None, element, forward=1)
        p.derive((1, 2, 1, 2, t, 64, 64), dropout=(0.5, 1), forward=1)
        p.derive((1, 2, 1, 1, t, 64, 64), forward=1)
        (folder / "program.mlir").write_text(p.text())
        for option in some(("--mcpu=znver4", "--mcpu=sapphirerapids", "--mcpu=x86-64-v3", "--reference"), 2):
            tool("ds-opt", folder / "program.mlir", "-o", folder / "program.dsp", option)
            found.setdefault(option, []).append(scratches(folder / "program.dsp"))
    for option, (few, many) in found.items():
        expect(few and few == many, f"{option}: scratch of 5000 keys {few}, of 9000 {many}")
        expect(all(int(size) < 2 << 20 for size in many), f"{option}: {many}")
    models = {"llama": training_models.llama(), "gpt": training_models.gpt(), "grouped": layers.grouped(tokens="s"), "whisper": layers.whisper()}
    for name, model in models.items():
        onnx.save(model, folder / "model.onnx")
        tool("ds-opt", folder / "model.onnx", "-o", folder / "model.dsp")
        sizes = scratches(folder / "model.dsp")
        expect(sizes and all(size.isdigit() for size in sizes), f"{name}: {sizes}")
