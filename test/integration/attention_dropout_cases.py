"""Dropout of an attention's weights in its kernels: against NumPy's float64, which draws with a generator of its own, and
against the same model whose dropout stays an op; threads; places beyond 2^32; that a step has no scores in memory.

Tolerances are those of sums of some dozen products of f32 of size 1 to 10: 3e-5.
"""
import itertools
import json
import re

import numpy as np
import onnx

import training_models
from attention_gradient_cases import Attentions
from generate import value
from kit import case, expect, tool
from philox import kept_at
from programs import SEED, VARIANTS, some
from training_resume_cases import same_after_stops
from training_runs import column, log_of, settings, train, train_package


@case(seconds=10)
def sizes_and_steps(folder):
    """Sizes that tiles cut, no row, no key, no batch; groups; masks, windows, softcaps and rows that are hidden as a whole."""
    p = Attentions()
    random, stream = p.random.standard_normal, lambda: int(p.random.integers(2**31))
    for s, t, d, e in some([(1, 1, 1, 1), (1, 40, 16, 16), (5, 7, 3, 2), (49, 50, 16, 32), (97, 33, 64, 64), (3, 70, 7, 130)], 1):
        p.derive((2, 2, 2, s, t, d, e), dropout=(0.5, stream()))
    for ratio in some((0.0, 1e-10, 0.1, 0.97, 1 - 1e-12), 2):
        p.derive((2, 4, 2, 9, 21, 8, 8), dropout=(ratio, stream()))
    element, dynamic = (("f32", True), ("f64", False))[p.random.integers(2)]
    for s, t, b in some(((5, 19, 2), (3, 0, 2), (0, 3, 2), (3, 3, 0)), 2):
        p.derive((b, 4, 2, s, t, 8, 16), element=element, dynamic=dynamic, dropout=(0.3, stream()))
    whole = random((2, 1, 5, 19))
    whole[1, 0, 2] = whole[0, 0, :, 3] = -np.inf
    p.derive((2, 4, 2, 5, 19, 8, 12), [("add", whole, None), ("multiply", random((5, 1)), None)], element=element, cap=1.5, guard=True,
             dropout=(0.4, stream()))
    kinds = itertools.product((("window",), ("window", "add"), ("window_mask",)), (-np.inf, -1e30, -1.5),
                              ({"right": 0}, {"left": 3, "right": 0}, {"left": 2}, {"past": 10, "left": 20, "right": 2}))
    for form, low, bounds in some(kinds, 2):
        s, t, element = ((60, 70, "f32"), (101, 111, "f32"), (5, 19, "f64"))[p.random.integers(3)]
        steps = [(kind, None if kind == "window" else random((s, t)), None if kind == "add" else low) for kind in form]
        p.derive((2, 4, 2, s, t, 8, 12), steps, bounds, element, guard=low == -np.inf, dropout=(0.2, stream()))
    p.verify(folder, some(VARIANTS, 2))


@case
def rounded_operands(folder):
    """Beside `rounds bf16`. Scores are a few hundredths, so that what rounding makes of operands shows in the values alone."""
    p = Attentions()
    p.derive((2, 4, 2, 21, 40, 32, 16), scale=0.01, dropout=(0.5, 3), rounds=True)
    p.verify(folder, ["--mcpu=host"])


@case(seconds=6)
def threads(folder):
    """The same bits with 1, 2 and 3."""
    p = Attentions()
    p.derive((2, 4, 2, 70, 90, 16, 16), [("window", None, -np.inf)], {"right": 20}, dropout=(0.1, 5))
    found = [p.run(folder, ["--mcpu=host"], [f"--threads={count}"]) for count in (1, 2, 3)]
    for other in found[1:]:
        expect(all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other)), "bits depend on threads")


FAR = """
func.func @main(%q: tensor<1x1x{n}x8xf32> {{ds.name = "q", ds.dims = [1, 1, {n}, 8]}}, %r: tensor<i64> {{ds.name = "r", ds.dims = []}})
    -> (tensor<1x1x{n}x8xf32> {{ds.name = "y"}}) attributes {{ds.entry}} {{
  %0 = ds.attention %q, %q, %q [window else 0xFFF0000000000000] left 7 right 0 scale 0.25 dropout 0.5 random %r, %r, %r, %r
      : (tensor<1x1x{n}x8xf32>, tensor<1x1x{n}x8xf32>, tensor<1x1x{n}x8xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x1x{n}x8xf32>
  return %0 : tensor<1x1x{n}x8xf32>
}}
"""


@case
def places_beyond_words(folder):
    """Rows that begin, and one that ends, beyond place 2^32: a window leaves little of them to be computed."""
    n, random, state = 66000, np.random.default_rng(SEED), 12345
    q = random.standard_normal((n, 8), np.float32)
    (folder / "far.mlir").write_text(FAR.format(n=n))
    np.savez(folder / "in.npz", q=q[None, None], r=np.int64(state))
    rows = np.arange(n)[:, None]
    columns = rows - np.arange(7, -1, -1)
    x = q.astype(float)
    scores = np.where(columns < 0, -np.inf, 0.25 * np.einsum("nd,nwd->nw", x, x[columns]))
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights *= 2 * kept_at(rows * n + np.maximum(columns, 0), 0.5, state, state, state, state) / weights.sum(1, keepdims=True)
    expected = np.einsum("nw,nwd->nd", weights, x[columns])
    tool("ds-opt", folder / "far.mlir", "-o", folder / "far.dsp")
    tool("ds-run", folder / "far.dsp", f"--inputs={folder / 'in.npz'}", f"--output={folder / 'out.npz'}")
    far = np.abs(np.load(folder / "out.npz")["y"][0, 0] - expected).max(1)
    expect((far < 3e-5).all(), f"DS_SEED={SEED}: rows {np.flatnonzero(~(far < 3e-5))[:3]} of {n} are off by {far.max()}")


class Dropping(training_models.Layers):
    """Attention with dropout, whose node has the same name whether or not something keeps it from joining the attention."""

    def __init__(self, ratio, joins=True):
        super().__init__(0)
        self.ratio, self.joins, self.count = ratio, joins, 0

    def weigh(self, weights):
        self.count += 1
        weights = weights if self.joins else self.op("Abs", weights)
        return self.op("Dropout", weights, self.number(self.ratio), self.constant(np.bool_(True)), name=f"drop{self.count}")


def small(joins=True):
    """One causal attention of two heads between projections."""
    g = Dropping(0.3, joins)
    q, k, v = (g.heads(g.linear("x", name, 16, 16, False), 2, 8) for name in "qkv")
    logits = g.linear(g.attend(q, k, v, 16, 8**-0.5, g.causal(g.length("x"))), "out", 16, 7, False)
    return g.finish(logits, "logits", [value("x", training_models.FLOAT, "batch", "length", 16)], "batch", "length", 7)


@case(seconds=6)
def same_as_ops(folder):
    """A model whose attention drops in its kernels learns what the one learns whose weights are in memory: every gradient, and
    the losses of steps of several micro-batches; other places would be off by much more.
    A run that is stopped goes on with the places it would have had."""
    random = np.random.default_rng(SEED)
    data = folder / "data.npz"
    np.savez(data, x=random.standard_normal((12, 21, 16), np.float32), labels=random.integers(0, 7, (12, 21)))
    config, found = settings(("SGD", {"lr": 0.1}), micro=3, accumulation=2), []
    for joins, options in ((True, []), (False, ["--reference"])):
        package = train_package(folder, small(joins), config, *options, name=f"{joins}.dsp")
        tool("ds-run", "gradients", package, f"--inputs={data}", f"--output={folder / 'g.npz'}", f"--seed={SEED}")
        train(package, data, "--steps=3", f"--seed={SEED}", f"--log={folder / 'log'}")
        found.append(dict(np.load(folder / "g.npz")) | {"losses": column(log_of(folder / "log"), "loss")})
    for name, expected in found[1].items():
        off = np.max(np.abs(found[0][name] - expected)) / np.max(np.abs(expected))
        expect(off < 2e-5, f"DS_SEED={SEED}: {name} is off by {off:.3g}")
    same_after_stops(folder, folder / "True.dsp", data, 3, [1], "--seed=3")


@case
def no_scores(folder):
    """A step of training of a GPT with dropout has no value of length by length elements for each head."""
    onnx.save(training_models.gpt(graph=Dropping(0.1)), folder / "model.onnx")
    for precision in ({}, {"bf16": {"enabled": True}}):
        (folder / "config.json").write_text(json.dumps(settings(("SGD", {"lr": 0.1}), 2) | precision))
        tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels",
             f"--config={folder / 'config.json'}", "--stop-after=memory", "-o", folder / "plan.mlir")
        text = (folder / "plan.mlir").read_text()
        expect(len(re.findall(r"ds.attention_gradient .* dropout 0.1", text)) == 1, "expected one kernel of derivatives for both layers")
        scores = re.findall(r'\["batch", [^\]]*"length", "length"\]', text)
        expect(not scores, f"found scores in memory: {sorted(set(scores))}")
