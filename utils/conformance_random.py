"""Cases of ONNX's suite whose outputs the standard does not fix: what must hold of them instead.

The standard names no generator, so the numbers in the test data are those of one implementation. Type and shape must be
as in the data; the numbers must be ones that a correct implementation can draw. The suite's data is too small for more: of
ten elements all may be drawn alike. So each case is also run with COPIES of its data in one tensor.
"""
import re
from pathlib import Path

import numpy as np

COPIES = 400

# Where the data holds rounding noise of the size of f32 times its largest element, the absolute tolerance follows.
ABSOLUTE = {f"node/test_dft_inverse{opset}": 1e-5 for opset in ("", "_opset19")}  # zeros, as an FFT in f32 leaves them


def is_far(count, chances):
    """Whether so many of independent events are unlikely: by five standard deviations. One correct draw in two million is."""
    return abs(count - chances.sum()) > 5 * np.sqrt(np.sum(chances * (1 - chances)))


def bernoulli(inputs, outputs):
    (p,), (y,) = inputs, outputs
    return drawn_with(p, y)


def bernoulli_expanded(inputs, outputs):
    (p,), (y,) = inputs, outputs
    return drawn_with(1 - p, y)  # in the standard's own body, 1 is what a number above p gives


def drawn_with(p, y):
    if not np.isin(y, (0, 1)).all():
        return "expected zeros and ones"
    if not (y[p <= 0] == 0).all() or not (y[p >= 1] == 1).all():
        return "expected what is certain to be drawn"
    for part in (p < 0.5, p >= 0.5):  # what rounds p has the right number in all
        if is_far(y[part].sum(), p[part]):
            return f"expected about {p[part].sum():.0f} of {part.sum()} elements to be 1, found {y[part].sum():.0f}"


def dropout(inputs, outputs):
    x, ratio = inputs[0], float(inputs[1]) if len(inputs) > 1 else 0.5
    if len(inputs) == 3 and not inputs[2]:
        ratio = 0.0
    y = outputs[0]
    kept = outputs[1] if len(outputs) > 1 else (y != 0) | (x == 0)
    if not np.allclose(y, np.where(kept, x / (1 - ratio), 0), rtol=1e-6, atol=0):
        return "expected each element to be 0 or scaled, as the mask says"
    if is_far(kept.sum(), np.full(x.size, 1 - ratio)):
        return f"expected about {x.size * (1 - ratio):.0f} elements to be kept, found {kept.sum()}"


CHECKS = {"bernoulli": bernoulli, "bernoulli_expanded": bernoulli_expanded, "training_dropout": dropout}


def check_of(name):
    """The check of a case, or None where its data is to be met."""
    found = re.match(r"node/test_(bernoulli|training_dropout)(?!.*zero_ratio)", name)
    return CHECKS[found[1] + "_expanded" * name.endswith("_expanded")] if found else None


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


def enlarged(model, data_set, folder):
    """(model, data set) of the case with COPIES of its data along the first axis, written to the folder."""
    import onnx
    from onnx import numpy_helper
    folder = Path(folder, "copies")
    folder.mkdir()
    wide = onnx.load(str(model))
    for value in [*wide.graph.input, *wide.graph.output]:
        for size in value.type.tensor_type.shape.dim[:1]:
            size.dim_value *= COPIES
    onnx.save(wide, folder / "model.onnx")
    for path in data_set.glob("*.pb"):
        array = numpy_helper.to_array(onnx.load_tensor(str(path)))
        copies = np.concatenate([array] * COPIES) if array.ndim else array
        (folder / path.name).write_bytes(numpy_helper.from_array(copies).SerializeToString())
    return folder / "model.onnx", folder
