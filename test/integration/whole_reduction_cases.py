"""Reductions of a whole tensor with what follows and what stands beside them: the bits of no fusion, and NumPy's float64."""
import numpy as np
from onnx import parser, save

from kit import case, compile_model, expect, run_package
from programs import SEED

KINDS = {"LogSumExp": lambda x: np.log(np.exp(x - x.max()).sum()) + x.max(), "LogSum": lambda x: np.log(np.abs(x).sum()), "L2": lambda x: np.sqrt((x * x).sum()),
         "L1": lambda x: np.abs(x).sum(), "Max": np.max, "Min": np.min, "Mean": np.mean, "Sum": np.sum, "SumSquare": lambda x: (x * x).sum()}


def bits(folder, text, x):
    """The results without fusion, after the others were found to have the same bits."""
    save(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> m (float[n, k] x) => {text}'), folder / "m.onnx")
    found = [run_package(compile_model(folder / "m.onnx", folder, f"--fusion={fusion}", name=f"{fusion}.dsp"), {"x": x}, folder, f"--threads={threads}")
             for fusion in ("none", "generic", "specialized") for threads in (1, 4)]
    for other in found[1:]:
        for name, array in other.items():
            expect(array.tobytes() == found[0][name].tobytes(), f"{name} of {x.shape}: {array}, without fusion {found[0][name]} (DS_SEED={SEED})")
    return found[0]


@case(seconds=12)
def each_with_a_follower_and_a_partner(folder):
    random = np.random.default_rng(SEED)
    for number, (kind, formula) in enumerate(KINDS.items()):
        x = random.uniform(0.1, 2, (3 + number, 211)).astype(np.float32)
        partner = list(KINDS)[int(random.integers(len(KINDS)))]
        found = bits(folder, f"(t, a, b) {{ a = Reduce{kind} <keepdims = 0> (x) b = Reduce{partner} <keepdims = 0> (x) s = Tanh (a) t = Mul (s, s) }}", x)
        for name, what in (("a", kind), ("b", partner)):
            expected = KINDS[what](x.astype(np.float64))
            # Sums of some 1,000 numbers of one sign, each rounded once.
            expect(abs(found[name] - expected) <= 2e-5 * max(1, abs(expected)), f"{what}: {found[name]}, expected {expected} (DS_SEED={SEED})")


@case
def norms_beyond_their_squares(folder):
    """1e25 squared is no f32, the norm is, whatever else reads the tensor."""
    x = np.float32(1e25) * np.random.default_rng(SEED).standard_normal((3, 5)).astype(np.float32)
    found = bits(folder, "(l, m, y) { l = ReduceL2 <keepdims = 0> (x) m = ReduceMax <keepdims = 0> (x) y = Div (x, l) }", x)
    expected = np.sqrt((x.astype(np.float64)**2).sum())
    expect(abs(found["l"] / expected - 1) < 1e-6, f"{found['l']}, expected {expected} (DS_SEED={SEED})")
