"""Derivatives of attention in blocks: the op against NumPy's float64, over sizes that tiles and lanes do not divide, groups,
steps, windows and rows without a place to attend to; threads; and that packages that train hold no scores.

Tolerances are those of sums of some dozen products of f32 of size 1 to 10: 3e-5.
"""
import itertools
import json
import re

import numpy as np
import onnx

import training_models
from kit import case, expect, tool
from mask_cases import window
from philox import kept
from programs import Program, Value, some


def attention(q, k, v, g, steps, seen, scale, cap=None, guard=False, factors=1):
    """The result and the derivatives. `steps`: (kind, mask or null, low); `seen`: what the window holds; `factors`: what
    dropout multiplies weights with."""
    repeat = q.shape[1] // max(k.shape[1], 1)
    keys, values = np.repeat(k, repeat, 1), np.repeat(v, repeat, 1)
    with np.errstate(all="ignore"):
        scores = scale * q @ keys.swapaxes(-1, -2)
        bend = 1
        if cap is not None:
            bend = 1 - np.tanh(scores / cap) ** 2
            scores = cap * np.tanh(scores / cap)
        slope, kept = np.full(scores.shape, scale) * bend, np.ones(scores.shape, bool)
        for kind, mask, low in steps:
            if kind == "add":
                scores = scores + mask
            elif kind == "multiply":
                scores, slope = scores * mask, slope * mask
            elif kind in ("keep_add", "hide_add"):
                scores = np.where(mask == (kind == "keep_add"), scores, scores + low)
            elif kind == "window_add":
                scores = np.where(seen, scores, scores + low)
            elif kind == "window_mask":
                scores = scores + np.where(seen, mask, low)
            else:
                holds = {"keep": mask, "hide": ~mask if kind == "hide" else None, "window": seen}[kind]
                scores, kept = np.where(holds, scores, low), kept & holds
        e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        p = e / e.sum(-1, keepdims=True)
        if guard:
            p = np.where(np.isnan(p), 0, p)
        w = factors * (g @ values.swapaxes(-1, -2))
        left = np.where(factors == 0, 0, p * factors)
        r = np.where(kept, p * (w - (p * w).sum(-1, keepdims=True)) * slope, 0)
        groups = (*k.shape[:2], repeat)
        sums = [m.swapaxes(-1, -2) @ x for m, x in ((r, q), (left, g))]
        return left @ values, r @ keys, *(x.reshape(*groups, *x.shape[2:]).sum(2) for x in sums)


class Attentions(Program):
    """Programs of attention gradients; with `dropout`, ratio and stream, of the attentions, too. With `forward` of these alone, to
    that relative error."""

    number = itertools.count()
    values = 1  # what random values are multiplied by

    def derive(self, shape, steps=(), bounds=None, element="f32", dynamic=False, scale=0.3, cap=None, guard=False, positions=None,
               dropout=None, rounds=False, forward=None):
        b, h, g, s, t, d, e = shape
        i, random = next(self.number), self.random.standard_normal
        names = [f"B{i}", f"S{i}", f"T{i}"] if dynamic else [b, s, t]
        shapes = (b, h, s, d), (b, g, t, d), (b, g, t, e), (b, h, s, e)
        dims = [names[0], h, names[1], d], [names[0], g, names[2], d], [names[0], g, names[2], e], [names[0], h, names[1], e]
        scales = (1, 1, self.values, 1)
        operands = [self.input(random(size) * scale, element, own) for size, own, scale in zip(shapes[:3] if forward else shapes, dims, scales)]
        if forward:
            operands.append(Value(None, element, dims[3], np.zeros(shapes[3])))
        known, parts = [], []
        for kind, mask, low in steps:
            part = kind
            if mask is not None:
                value = self.input(mask, "i1" if mask.dtype == bool else element, [f"M{i}_{len(known)}_{axis}" for axis in range(mask.ndim)]
                                   if dynamic else None)
                part += f" {{{len(operands)}}}"
                operands.append(value)
                mask = value.array if mask.dtype == bool else value.wide
            if low is not None:
                bits = np.float64(low).view(np.uint64)
                part += f" else 0x{bits:016X}"
            parts.append(part)
            known.append((kind, mask, low))
        text = f" [{', '.join(parts)}]" if parts else ""
        if positions is not None:
            text += f" positions {{{len(operands)}}}"
            operands.append(self.input(positions, "i64"))
        bounds = dict(bounds or {})
        seen = window(s, t, positions=positions, **bounds)
        text += "".join(f" {name} {[value] if name == 'past' else value}" for name, value in sorted(bounds.items(), key=lambda x: x[0] != "past"))
        text += f" scale {scale}" + (f" softcap {cap}" if cap else "") + (" guard" if guard else "")
        factors = 1
        if dropout:
            ratio, stream = dropout
            state = [int(self.random.integers(2**bits)) for bits in (62, 31, 24)]
            first = len(operands)
            operands += [self.input(np.int64(number), "i64") for number in (*state, stream)]
            text += f" dropout 0x{np.float64(ratio).view(np.uint64):016X} random {', '.join(f'{{{first + i}}}' for i in range(4))}"
            factors = kept((b, h, s, t), ratio, stream, *state) / (1 - ratio)
        result, *gradients = attention(*(x.wide for x in operands[:4]), known, seen, scale, cap, guard, factors)
        results = []
        if not forward:
            results += self.ops("ds.attention_gradient {0}, {1}, {2}, {3}" + text, operands,
                                [(element, own, x) for own, x in zip(dims, gradients)])
        if dropout or forward:
            text = re.sub(r"\{(\d+)\}", lambda m: f"{{{int(m[1]) - 1}}}", text)  # without the gradient
            results += self.ops("ds.attention {0}, {1}, {2}" + text, operands[:3] + operands[4:], [(element, dims[3], result)])
        if rounds:
            text = text.replace(" dropout", " rounds bf16 dropout")
            rounded = self.ops("ds.attention {0}, {1}, {2}" + text, operands[:3] + operands[4:], [(element, dims[3], result)])
            self.check(rounded[0], f"rounded result of {shape} {dropout}", rtol=1e-2, scale=1)
        for name, value in zip(("result",) if forward else ("query", "key", "value", "result"), results):
            self.check(value, f"{name} of {shape} {parts} {bounds} cap {cap} guard {guard} {element} dynamic={dynamic} {dropout}",
                       rtol=forward or (3e-5 if element == "f32" else 1e-12), scale=1 if forward else 4)


@case(seconds=23)
def sizes(folder):
    """No mask; sizes that tiles cut, no row, no key, no batch, groups."""
    p = Attentions()
    for s, t, d, e in [(1, 1, 1, 1), (5, 7, 3, 2), (8, 47, 8, 16), (49, 50, 16, 32), (97, 33, 64, 64), (17, 48, 100, 20), (3, 5, 7, 130)]:
        p.derive((2, 2, 2, s, t, d, e))
    for element, dynamic in itertools.product(("f32", "f64"), (False, True)):
        p.derive((2, 4, 2, 50, 19, 8, 24), element=element, dynamic=dynamic)
        p.derive((2, 3, 1, 5, 19, 8, 8), element=element, dynamic=dynamic)
        for s, t, b in ((3, 0, 2), (0, 3, 2), (3, 3, 0)):
            p.derive((b, 4, 2, s, t, 8, 16), element=element, dynamic=dynamic)
    p.verify(folder)


@case(seconds=23)
def steps(folder):
    """Masks that are added, multiply and choose; softcaps; guarded rows that are masked as a whole."""
    p = Attentions()
    shape = (2, 4, 2, 5, 19, 8, 12)
    for element, cap, guard in some((("f32", None, False), ("f32", 1.5, True), ("f32", None, True), ("f64", 1.5, True), ("f64", None, False)), 3):
        random = p.random.standard_normal
        for size in ((19,), (5, 1), (2, 1, 5, 19), (2, 4, 1, 1)):
            seen = p.random.uniform(size=size) < 0.6
            p.derive(shape, [("add", random(size), None)], element=element, cap=cap, guard=guard, dynamic=len(size) == 4)
            p.derive(shape, [("multiply", random(size), None), ("add", random((5, 19)), None)], element=element, cap=cap, guard=guard)
            for kind in ("keep", "hide", "keep_add", "hide_add"):
                p.derive(shape, [("add", random((5, 19)), None), (kind, seen, -1.5), ("multiply", random(size), None)],
                         element=element, cap=cap, guard=guard)
        whole = random((2, 1, 5, 19))
        whole[1, 0, 2] = whole[0, 0, :, 3] = -np.inf
        p.derive(shape, [("add", whole, None)], element=element, cap=cap, guard=guard)
        p.derive(shape, [("keep", whole > -np.inf, -np.inf)], element=element, cap=cap, guard=guard)
    p.verify(folder)


@case(seconds=23)
def windows(folder):
    """Causal and sliding ones, before and after masks, with weights outside and without; earlier keys; places by row."""
    p = Attentions()
    random = p.random.standard_normal
    number = itertools.count()
    for s, t, element in some(((5, 19, "f32"), (60, 60, "f32"), (101, 70, "f32"), (5, 19, "f64")), 2):
        shape, mask = (2, 4, 2, s, t, 8, 12), random((s, t))
        for bounds in ({"right": 0}, {"left": 3, "right": 0}, {"left": 2}, {"past": t - s, "right": 0},
                       {"past": t - s, "left": 20, "right": 2}):
            for forms in ((("window",), ("window_mask",)), (("window", "add"), ("add", "window_add"))):
                form, low = forms[next(number) % 2], (-np.inf, -1e30, -1.5)[next(number) // 2 % 3]
                steps = [(kind, mask if kind in ("add", "window_mask") else None, None if kind == "add" else low) for kind in form]
                # A row that sees nothing is not a number without a guard.
                p.derive(shape, steps, bounds, element, guard=low == -np.inf, cap=2.0 if form == ("window", "add") else None)
        positions = p.random.integers(-3, t + 3, (2, 1, s, 1))
        p.derive(shape, [("window", None, -np.inf)], {"left": 9, "right": 0}, element, guard=True, positions=positions)
    p.verify(folder)


@case(seconds=8)
def threads(folder):
    """The same bits with 1, 2 and 3."""
    p = Attentions()
    p.derive((3, 4, 2, 130, 130, 64, 64), [("window", None, -np.inf)], {"right": 0})
    p.derive((1, 4, 1, 77, 90, 24, 40), [("add", p.random.standard_normal((77, 90)), None)])
    for variant in ("--mcpu=host", "--reference"):
        found = [p.run(folder, [variant], [f"--threads={count}"]) for count in (1, 2, 3)]
        for other in found[1:]:
            expect(all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other)), f"{variant}: bits depend on threads")


@case
def no_scores(folder):
    """A step of training of a GPT has no value of length by length elements for each head, neither in f32 nor in bf16."""
    onnx.save(training_models.gpt(), folder / "model.onnx")
    for precision in ({}, {"bf16": {"enabled": True}}):
        config = {"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "SGD", "params": {"lr": 0.1}}} | precision
        (folder / "config.json").write_text(json.dumps(config))
        tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels",
             f"--config={folder / 'config.json'}", "--stop-after=memory", "-o", folder / "plan.mlir")
        text = (folder / "plan.mlir").read_text()
        expect("attention_gradient" in text, "expected derivatives of attention in blocks")
        scores = re.findall(r'\["batch", [^\]]*"length", "length"\]', text)
        expect(not scores, f"found scores in memory: {sorted(set(scores))}")
