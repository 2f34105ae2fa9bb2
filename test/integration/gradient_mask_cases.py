"""Gradients of attention under masks that choose and windows, and of losses that ignore targets, against differences in
float64."""
import numpy as np

from gradient_cases import ATTENTION
from gradients import Gradients
from kit import case

WINDOW = """
  qs = Shape (q) ks = Shape (key) s = Gather (qs, two) t = Gather (ks, two) past = Sub (t, s)
  r = Range (zero, s, one) row = Unsqueeze (r, axis1) col = Range (zero, t, one) place = Add (row, past)
  early = LessOrEqual (col, place)
"""


@case(seconds=23)
def masked_attention(folder):
    """Masks that choose, whose hidden scores have no slope, and windows; low numbers that leave hidden places a weight."""
    g = Gradients()
    whole = {"two": np.array(2), "zero": np.array(0), "one": np.array(1), "axis1": np.array([1]), "scale": np.array(0.4),
             "zeros": np.array(0.0)}
    seen = g.random.uniform(size=(2, 1, 3, 5)) < 0.6
    seen[..., np.arange(3), np.arange(2, 5)] = True  # each row sees its own place
    seen[..., 1] = True
    for masked, becomes in (("c = Where (seen, scores, low) masked = Add (c, mask)", "keep"),
                            ("c = Add (scores, mask) masked = Where (seen, c, low)", "keep"),
                            ("h = Not (seen) c = Where (h, low, scores) masked = Mul (c, mask)", "multiply"),
                            ("h = Not (seen) c = Where (h, low, zeros) d = Add (scores, mask) masked = Add (d, c)", "keep_add"),
                            ("c = Where (early, scores, low) masked = Add (c, mask)", "window else"),
                            ("c = Where (early, mask, low) masked = Add (scores, c)", "window_mask"),
                            ("n = Sub (place, one) late = Greater (col, n) both = And (early, late) c = Where (both, scores, low) "
                             "d = Where (seen, mask, low) masked = Add (c, d)", "left 0 right 0")):
        for low in (-1.5, -np.inf):
            if "Mul" in masked and np.isinf(low):
                continue  # of no number
            text = (WINDOW if "early" in masked else "") + ATTENTION.replace("masked = Add (scores, mask)", masked)
            used = {"seen": seen} if "seen" in masked else {}
            fixed = {name: value for name, value in whole.items() if name in text} | {"low": np.array(low)}
            dims = {"q": ["b", 2, "s", 4], "key": ["b", 2, "t", 4], "v": ["b", 2, "t", 3], "mask": [2, "s", "t"]}
            dims |= {"seen": ["b", 1, "s", "t"]} if used else {}
            g.test(text, fixed, dims, q=g.numbers(2, 2, 3, 4), key=g.numbers(2, 2, 5, 4), v=g.numbers(2, 2, 5, 3),
                   mask=g.numbers(2, 3, 5), becomes=["ds.attention", becomes], **used)
    g.verify(folder)


@case(seconds=3)
def ignored_targets(folder):
    """No loss depends on a row that is ignored, whatever stands in it: its slopes are 0."""
    g = Gradients()  # without -1, for which the reference evaluator takes the mean over all targets
    for reduction in ("none", "mean", "sum"):
        for op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
            for weighted in (False, True):
                x, t = g.numbers(6, 4), np.array([2, -2, 1, -2, 3, -2])
                x[[1, 3, 5]] = [[np.nan] * 4, [-np.inf, 1, 2, np.inf], [-np.inf] * 4]
                more = {"w": g.numbers(4, low=0.5)} if weighted else {}
                g.test(f'y = {op} <ignore_index = -2, reduction = "{reduction}"> (x, t{", w" if weighted else ""})',
                       dims={"x": ["n", 4], "t": ["n"]}, x=x, t=t, **more)
    g.verify(folder)
