"""Cases of ONNX's suite whose outputs the standard does not fix: what must hold of them instead.

The standard names no generator, so the numbers in the test data are those of one implementation. Type and shape must be
as in the data; the numbers must be ones that a correct implementation can draw.
"""
import re

import numpy as np

# Where the data holds rounding noise of the size of f32 times its largest element, the absolute tolerance follows.
ABSOLUTE = {f"node/test_dft_inverse{opset}": 1e-5 for opset in ("", "_opset19")}  # zeros, as an FFT in f32 leaves them


def bernoulli(inputs, outputs):
    (p,), (y,) = inputs, outputs
    if not np.isin(y, (0, 1)).all():
        return "expected zeros and ones"
    if not (y[p <= 0] == 0).all() or not (y[p >= 1] == 1).all():
        return "expected what is certain to be drawn"


def dropout(inputs, outputs):
    x, ratio = inputs[0], float(inputs[1]) if len(inputs) > 1 else 0.5
    if len(inputs) == 3 and not inputs[2]:
        ratio = 0.0
    y = outputs[0]
    kept = outputs[1] if len(outputs) > 1 else (y != 0) | (x == 0)
    if not np.allclose(y, np.where(kept, x / (1 - ratio), 0), rtol=1e-6, atol=0):
        return "expected each element to be 0 or scaled, as the mask says"
    # Five standard deviations of a binomial distribution: one correct draw in two million is farther off.
    if abs(kept.sum() - x.size * (1 - ratio)) > 5 * np.sqrt(x.size * ratio * (1 - ratio)):
        return f"expected about {x.size * (1 - ratio):.0f} elements to be kept, found {kept.sum()}"


CHECKS = {"bernoulli": bernoulli, "training_dropout": dropout}


def check_of(name):
    """The check of a case, or None where its data is to be met."""
    found = re.match(r"node/test_(bernoulli|training_dropout)(?!.*zero_ratio)", name)
    return CHECKS[found[1]] if found else None


def read(folder, kind):
    from onnx import numpy_helper, load_tensor
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(re.findall(r"\d+", path.name)[0]))
    return [numpy_helper.to_array(load_tensor(str(path))) for path in files]


def judge(name, folder, outputs):
    """What is wrong with the outputs of one data set, or None."""
    expected = read(folder, "output")
    if [(y.dtype, y.shape) for y in outputs] != [(y.dtype, y.shape) for y in expected]:
        return f"expected types and shapes {[(y.dtype.name, y.shape) for y in expected]}"
    return check_of(name)(read(folder, "input"), outputs)
