"""Operators that are compositions of ds ops, on fresh random inputs against ONNX's reference evaluator in f64 where
they allow it. DS_SEED repeats a failure."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from kit import case, compile_model, distance, expect, onnx_runtime, run_package, tool
from programs import SEED

PREVIEW = "ai.onnx.preview.training"


def build(folder, op, inputs, outputs, opset, domain="", initializers=(), dynamic=(), **attributes):
    """A model of one node. `inputs` are (name, array); those named in `initializers` are stored in the model."""
    node = helper.make_node(op, [name if array is not None else "" for name, array in inputs], outputs, domain=domain,
                            **attributes)
    present = [(name, np.asarray(array)) for name, array in inputs if array is not None]
    sizes = lambda name, array: [f"{name}{i}" if name in dynamic else d for i, d in enumerate(array.shape)]
    arguments = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), sizes(name, array))
                 for name, array in present if name not in initializers]
    stored = [numpy_helper.from_array(array, name) for name, array in present if name in initializers]
    results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = helper.make_graph([node], "g", arguments, results, stored)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    return path, {name: array for name, array in present if name not in initializers}


def check(folder, op, inputs, outputs=("y",), opset=22, tolerance=1e-5, expected=None, options=(), **attributes):
    path, given = build(folder, op, inputs, list(outputs), opset, **attributes)
    if expected is None:
        model = onnx.load(str(path))
        expected = dict(zip(filter(None, outputs), ReferenceEvaluator(model).run(None, given)))
    found = run_package(compile_model(path, folder, *options), given, folder)
    for name in filter(None, outputs):
        far = distance(found[name], np.asarray(expected[name]))
        expect(far <= tolerance, f"seed {SEED}: {op} {attributes}: output {name} is {far:.3g} away (tolerance "
                                 f"{tolerance}), type {found[name].dtype}{found[name].shape}")


def numbers(*shape, dtype=np.float64, salt=0):
    return np.random.default_rng(SEED + salt).standard_normal(shape).astype(dtype)


def single(number):
    """A float attribute as a model stores it."""
    return float(np.float32(number))


@case
def optimizers(folder):
    penalty, after, alpha, beta, epsilon, decay = map(single, (0.01, 0.02, 0.8, 0.9, 1e-3, 0.1))
    for steps, dtype in ((0, np.float64), (7, np.float64), (3, np.float32)):
        tolerance = 1e-12 if dtype == np.float64 else 1e-5
        scalars = [("r", dtype(0.1)), ("t", np.int64(steps))]
        lists = [[(f"{kind}{i}", numbers(3, 5 + i, dtype=dtype, salt=10 * k + i)) for i in range(2)]
                 for k, kind in enumerate("xgvh")]
        x, g, v, h = lists
        h[:] = [(name, np.abs(array)) for name, array in h]
        names = list("abcdef")
        wide = [[array.astype(np.float64) for _, array in tensors] for tensors in lists]
        rate = float(dtype(0.1))
        results = {"Adagrad": [], "Adam": [], "standard": [], "nesterov": []}
        for x0, g0, v0, h0 in zip(*wide):
            gradient = penalty * x0 + g0
            squares = h0 + gradient**2
            results["Adagrad"].append((x0 - rate / (1 + decay * steps) * gradient / (np.sqrt(squares) + epsilon), squares))
            mean, squares = alpha * v0 + (1 - alpha) * gradient, beta * h0 + (1 - beta) * gradient**2
            step = rate * np.sqrt(1 - beta**steps) / (1 - alpha**steps) if steps else rate
            results["Adam"].append(((1 - after) * (x0 - step * mean / (np.sqrt(squares) + epsilon)), mean, squares))
            velocity = alpha * v0 + (beta if steps else 1) * gradient
            results["standard"].append((x0 - rate * velocity, velocity))
            results["nesterov"].append((x0 - rate * (gradient + alpha * velocity), velocity))
        expected = {kind: dict(zip(names, (array.astype(dtype) for group in zip(*both) for array in group)))
                    for kind, both in results.items()}
        common = {"domain": PREVIEW, "tolerance": tolerance, "norm_coefficient": penalty}
        check(folder, "Adagrad", [*scalars, *x, *g, *h], names[:4], expected=expected["Adagrad"], decay_factor=decay,
              epsilon=epsilon, **common)
        check(folder, "Adam", [*scalars, *x, *g, *v, *h], names, expected=expected["Adam"], alpha=alpha, beta=beta,
              norm_coefficient_post=after, epsilon=epsilon, **common)
        for mode in ("standard", "nesterov"):
            check(folder, "Momentum", [*scalars, *x, *g, *v], names[:4], expected=expected[mode], mode=mode, alpha=alpha,
                  beta=beta, **common)


@case
def batch_normalization_in_training(folder):
    inputs = [("x", numbers(4, 3, 5)), *((name, np.abs(numbers(3, salt=i))) for i, name in enumerate(["scale", "bias", "m", "v"]))]
    x, s, b, m, v = (array for _, array in inputs)
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    y = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5) * s[:, None] + b[:, None]
    expected = dict(y=y, mean=0.8 * m + 0.2 * mean, var=0.8 * v + 0.2 * variance, a=mean, b=variance)
    for opset, names, training in ((9, ["y", "mean", "var", "a", "b"], {}), (14, ["y", "mean", "var"], {"training_mode": 1}),
                                   (15, ["y", "mean", "var"], {"training_mode": 1})):
        check(folder, "BatchNormalization", inputs, names, opset=opset, expected=expected, tolerance=1e-6, momentum=0.8,
              **training)


@case
def dropout_in_training(folder):
    x = np.abs(numbers(200, 300, dtype=np.float32)) + 1
    masks = {}
    for seed in (0, 1):
        for ratio in (0.0, 0.3, 0.9):
            inputs = [("x", x), ("r", np.float32(ratio)), ("t", np.bool_(True))]
            path, given = build(folder, "Dropout", inputs, ["y", "mask"], 22, seed=seed)
            package = compile_model(path, folder)
            found = run_package(package, given, folder)
            expect(np.allclose(found["y"], np.where(found["mask"], x / np.float32(1 - ratio), 0), rtol=1e-6), "scaled")
            spread = 5 * np.sqrt(x.size * ratio * (1 - ratio))  # five standard deviations
            expect(abs(found["mask"].sum() - x.size * (1 - ratio)) <= spread, f"ratio {ratio}: {found['mask'].mean()}")
            masks[seed, ratio] = found["mask"]
            again = run_package(package, given, folder, "--threads=3")
            expect(np.array_equal(again["mask"], found["mask"]), "the same numbers for every number of threads")
            off = run_package(package, {**given, "t": np.bool_(False)}, folder)
            expect(np.array_equal(off["y"], x) and off["mask"].all(), "nothing is dropped when nothing is trained")
    expect(masks[0, 0.3].tolist() != masks[1, 0.3].tolist(), "seeds tell streams apart")


@case
def random_numbers(folder):
    shape = [300, 400]
    count = 300 * 400
    for dtype in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
        path, _ = build(folder, "RandomUniform", [], ["y"], 22, shape=shape, low=-2.0, high=3.0, dtype=dtype, seed=4.0)
        y = run_package(compile_model(path, folder), {}, folder)["y"].astype(np.float64)
        expect(y.min() >= -2 and y.max() <= 3, f"uniform in [{y.min()}, {y.max()}]")
        # Moments within five standard deviations of their estimators.
        expect(abs(y.mean() - 0.5) < 5 * 5 / np.sqrt(12 * count), f"mean {y.mean()}")
        expect(abs(y.var() - 25 / 12) < 5 * 25 / np.sqrt(180 * count), f"variance {y.var()}")
        rows = np.corrcoef(y.ravel()[:-1], y.ravel()[1:])[0, 1]
        expect(abs(rows) < 5 / np.sqrt(count), f"neighbours correlate: {rows}")
        path, _ = build(folder, "RandomNormal", [], ["y"], 22, shape=shape, mean=1.0, scale=2.0, dtype=dtype, seed=4.0)
        y = run_package(compile_model(path, folder), {}, folder)["y"].astype(np.float64)
        expect(np.isfinite(y).all() and abs(y.mean() - 1) < 5 * 2 / np.sqrt(count), f"mean {y.mean()}")
        expect(abs(y.std() - 2) < 5 * 2 / np.sqrt(2 * count), f"deviation {y.std()}")
        expect(abs((np.abs(y - 1) < 2).mean() - 0.6827) < 0.01, "a normal distribution")
    p = np.linspace(0, 1, 50000, dtype=np.float32).reshape(100, 500)
    path, given = build(folder, "Bernoulli", [("p", p)], ["y"], 22, dtype=TensorProto.INT32)
    y = run_package(compile_model(path, folder), given, folder)["y"]
    expect(y.dtype == np.int32 and abs(y[:20].mean() - p[:20].mean()) < 0.02 and abs(y.mean() - 0.5) < 0.02, "ones as often as asked")
    shares = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    path, given = build(folder, "Multinomial", [("x", np.log(shares).astype(np.float32))], ["y"], 22, sample_size=20000, seed=1.0)
    y = run_package(compile_model(path, folder), given, folder)["y"]
    found = np.stack([np.bincount(row, minlength=3) for row in y]) / 20000
    expect(y.dtype == np.int32 and np.abs(found - shares).max() < 0.02, f"shares {found}")


@case(seconds=6)
def run_time_scalars(folder):
    indices = np.random.default_rng(SEED).integers(-7, 7, (3, 4))
    values = np.array([-1.0, 2.0])
    for depth in (np.int32(7), np.float32(7), np.int64(7)):
        check(folder, "OneHot", [("i", indices), ("depth", depth), ("v", values)], opset=11, axis=1)
    for start, limit, delta in ((1, 10, 3), (10, 1, -3), (0, 0, 1), (5, 1, 1), (-3, 4, 2), (1, 11, 5), (-1, -12, -4)):
        for dtype in (np.int16, np.int32, np.int64, np.float32, np.float64):
            ends = [("a", dtype(start)), ("b", dtype(limit)), ("c", dtype(delta))]
            check(folder, "Range", ends, opset=11, expected={"y": np.arange(start, limit, delta, dtype=dtype)})
    check(folder, "Range", [("a", np.float32(0.5)), ("b", np.float32(3)), ("c", np.float32(0.7))], opset=11,
          expected={"y": np.float32(0.5) + np.arange(4, dtype=np.float32) * np.float32(0.7)}, tolerance=1e-6)


@case(seconds=23)
def resizing(folder):
    x = numbers(1, 2, 7, 9)
    number = np.random.default_rng(SEED)
    for mode in ("nearest", "linear", "cubic"):
        for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
            scales = np.array([1, 1, number.uniform(0.3, 3), number.uniform(0.3, 3)], np.float32)
            extra = {"exclude_outside": 1} if mode == "cubic" and coordinates == "half_pixel" else {}
            for stored in ((), ("s",))[:2 if coordinates == "half_pixel" else 1]:
                # The coordinates are sums of products with f32 scales; the evaluator rounds them elsewhere. Where one is
                # an integer up to rounding, as the symmetric middle of an odd axis is, it takes the wrong neighbours.
                image = numbers(1, 2, 8, 6) if coordinates == "half_pixel_symmetric" else x
                check(folder, "Resize", [("x", image), ("roi", None), ("s", scales)], opset=19, initializers=stored,
                      tolerance=1e-4, mode=mode, coordinate_transformation_mode=coordinates, **extra)
        sizes = np.array([5, 13], np.int64)
        for policy in ("stretch", "not_larger", "not_smaller"):
            check(folder, "Resize", [("x", x), ("roi", None), ("s", None), ("n", sizes)], opset=19, axes=[2, 3],
                  tolerance=1e-4, mode=mode, keep_aspect_ratio_policy=policy)
        roi = np.array([0.2, -0.3, 0.9, 1.2], np.float64)
        check(folder, "Resize", [("x", x), ("roi", roi), ("s", None), ("n", sizes)], opset=19, axes=[2, 3], tolerance=1e-4,
              mode=mode, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)
    for mode in ("linear", "cubic"):
        for outside in (0, 1):
            for sizes in ([3, 4], [12, 5]):
                check(folder, "Resize", [("x", x), ("roi", None), ("s", None), ("n", np.array(sizes))], opset=19,
                      axes=[2, 3], tolerance=1e-4, mode=mode, antialias=1, exclude_outside=outside)


@case(seconds=8)
def sampled_images(folder):
    x, image = numbers(2, 3, 5, 6), numbers(1, 2, 4, 3, 5)
    grid, volume = numbers(2, 3, 4, 2, salt=1) * 0.8, numbers(1, 2, 3, 2, 3, salt=2) * 0.8
    for mode in ("nearest", "linear", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            corners = int(padding == "border")
            # The evaluator computes places in f32.
            check(folder, "GridSample", [("x", x), ("g", grid)], tolerance=1e-4, mode=mode, padding_mode=padding,
                  align_corners=corners)
        check(folder, "GridSample", [("x", image), ("g", volume)], tolerance=1e-4, mode=mode, align_corners=1)
    rois = np.array([[0.5, 1, 4, 3.5], [1, 0, 2, 4.5], [-1, -1, 7, 6]])
    for mode in ("avg", "max"):
        for ratio in (0, 2):
            check(folder, "RoiAlign", [("x", x), ("r", rois), ("b", np.array([1, 0, 1]))], tolerance=1e-6, mode=mode,
                  output_height=2, output_width=3, sampling_ratio=ratio, spatial_scale=0.75)
    size = np.array([2, 3, 4, 5])
    for corners in (0, 1):
        check(folder, "AffineGrid", [("t", numbers(2, 2, 3, dtype=np.float32)), ("s", size)], align_corners=corners,
              tolerance=1e-6)


@case(seconds=5)
def transforms_and_determinants(folder):
    x = numbers(2, 7, 5, 2)
    for opset, extra in ((17, {"axis": 1}), (20, {})):
        axis = [] if extra else [("n", None), ("a", np.array(1))]
        for inverse in (0, 1):
            check(folder, "DFT", [("x", x), *axis], opset=opset, inverse=inverse, tolerance=1e-12, **extra)
    full = np.fft.fft(x[..., 0], n=9, axis=2)[:, :, :5]
    check(folder, "DFT", [("x", x[..., :1]), ("n", np.array(9)), ("a", np.array(-2))], opset=20, onesided=1, tolerance=1e-12,
          expected={"y": np.stack([full.real, full.imag], -1)})
    half = np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=8, axis=2)
    check(folder, "DFT", [("x", x), ("n", np.array(8)), ("a", np.array(2))], opset=20, onesided=1, inverse=1, tolerance=1e-12,
          expected={"y": half[..., None]})
    signal, window = numbers(2, 40), numbers(8, salt=1)
    frames = np.stack([signal[:, s:s + 8] * window for s in range(0, 33, 5)], 1)
    spectrum = np.fft.rfft(frames)
    check(folder, "STFT", [("x", signal[..., None]), ("s", np.array(5)), ("w", window)], opset=17, tolerance=1e-12,
          expected={"y": np.stack([spectrum.real, spectrum.imag], -1)})
    for size in (1, 2, 5):
        x = numbers(3, 2, size, size)
        x[0, 0, :, 0] = x[0, 0, :, -1] if size > 1 else 0  # singular
        check(folder, "Det", [("x", x)], opset=22, expected={"y": np.linalg.det(x)}, tolerance=1e-10)


@case(seconds=4)
def selections(folder):
    random = np.random.default_rng(SEED)
    for x in (random.integers(0, 5, 20), random.integers(-3, 3, (4, 6)).astype(np.float64)):
        for keep in (0, 1):
            y, first, inverse, counts = np.unique(x, True, True, True)
            order = np.arange(len(y)) if keep else np.argsort(first)
            expected = dict(y=y[order], i=first[order], v=np.argsort(order)[inverse.reshape(-1)], c=counts[order])
            check(folder, "Unique", [("x", x)], list("yivc"), opset=11, expected=expected, sorted=keep, tolerance=0)
    rows = random.integers(0, 2, (9, 3, 2))
    for keep in (0, 1):
        y, first, inverse, counts = np.unique(rows, True, True, True, axis=0)
        order = np.arange(len(y)) if keep else np.argsort(first)
        expected = dict(y=y[order], i=first[order], v=np.argsort(order)[inverse.reshape(-1)], c=counts[order])
        check(folder, "Unique", [("x", rows)], list("yivc"), opset=11, axis=0, tolerance=0, expected=expected, sorted=keep)
    for axis in ({}, {"axis": 0}):  # NaN comes last and equals nothing
        x = np.array([2, np.nan, 1, 2, np.nan, -1])
        expected = dict(y=np.array([-1, 1, 2, np.nan, np.nan]), i=np.array([5, 2, 0, 1, 4]),
                        v=np.array([2, 3, 1, 2, 4, 0]), c=np.array([1, 1, 2, 1, 1]))
        check(folder, "Unique", [("x", x)], list("yivc"), opset=11, tolerance=0, expected=expected, **axis)
    corner, size = random.uniform(0, 10, (2, 12, 2)), random.uniform(1, 5, (2, 12, 2))
    boxes = np.concatenate([corner, corner + size], 2).astype(np.float32)
    scores = random.uniform(0, 1, (2, 3, 12)).astype(np.float32)
    limits = [("m", np.array([4])), ("u", np.array([0.3], np.float32)), ("t", np.array([0.2], np.float32))]
    chosen = []
    for batch, kind in np.ndindex(2, 3):
        kept = []
        for i in np.argsort(-scores[batch, kind]):
            shared = np.prod(np.clip(np.minimum(boxes[batch, i, 2:], boxes[batch, kept, 2:])
                                     - np.maximum(boxes[batch, i, :2], boxes[batch, kept, :2]), 0, None), -1)
            both = np.prod(size[batch, i]) + np.prod(size[batch, kept], -1) - shared
            if scores[batch, kind, i] > np.float32(0.2) and len(kept) < 4 and not (shared / both > 0.3).any():
                kept.append(i)
        chosen += [[batch, kind, i] for i in kept]
    check(folder, "NonMaxSuppression", [("b", boxes), ("s", scores), *limits], opset=11, expected={"y": np.array(chosen)},
          tolerance=0)
    x = numbers(1, 2, 7, 9, dtype=np.float32)
    check(folder, "MaxPool", [("x", x)], ["y", "i"], opset=12, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1],
          tolerance=0)
    check(folder, "CumProd", [("x", numbers(3, 4)), ("a", np.array(1))], opset=26, tolerance=1e-12, exclusive=1, reverse=1)


@case
def normalized_numbers_that_are_close_to_each_other(folder):
    x = (1000 + numbers(2, 3, 4, 5)).astype(np.float32)  # whose squares differ in the seventh digit
    wide = x.astype(np.float64)
    centred = wide - wide.mean((0, 2, 3), keepdims=True)
    expected = (centred / (wide.std((0, 2, 3), keepdims=True) + 1e-9)).astype(np.float32)
    check(folder, "MeanVarianceNormalization", [("x", x)], expected={"y": expected}, opset=13,
          tolerance=1e-3)  # x has 24 bits, of which 10 are the mean's
    same = np.full((2, 3, 4, 4), np.float32(1e3))  # 32 numbers, whose mean is exact
    check(folder, "MeanVarianceNormalization", [("x", same)], expected={"y": np.zeros_like(same)}, opset=13)


@case
def activations_of_half_precision_round_once(folder):
    """As ONNX Runtime's: attributes are f32, and e^x - 1 loses no digits of a small x."""
    x = np.concatenate([numbers(200), 0.03 * numbers(200, salt=1)]).astype(np.float16)
    wide, alpha, gamma = x.astype(np.float64), single(1.34405), single(1.0507)
    softplus = np.log1p(np.exp(wide))
    elu = alpha * np.expm1(wide)
    for op, expected, attributes in (
            ("Elu", np.where(wide >= 0, wide, elu), {"alpha": alpha}),
            ("Selu", gamma * np.where(wide > 0, wide, elu), {"alpha": alpha, "gamma": gamma}),
            ("Celu", np.where(wide >= 0, wide, alpha * np.expm1(wide / alpha)), {"alpha": alpha}),
            ("HardSigmoid", np.clip(single(0.2013) * wide + single(0.503), 0, 1), {"alpha": single(0.2013), "beta": single(0.503)}),
            ("HardSwish", wide * np.clip(wide / 6 + 0.5, 0, 1), {}),
            ("Mish", wide * np.tanh(softplus), {}), ("Softplus", softplus, {}), ("Softsign", wide / (1 + np.abs(wide)), {}),
            ("ThresholdedRelu", np.where(wide > float(x[0]) - 1e-5, wide, 0), {"alpha": single(float(x[0]) - 1e-5)})):
        path, given = build(folder, op, [("x", x)], ["y"], 22, **attributes)
        found = run_package(compile_model(path, folder), given, folder)["y"].astype(np.float64)
        far = np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1e-4))
        expect(found.dtype == np.float64 and far <= 2**-10, f"seed {SEED}: {op}: {far:.3g} of a number away, expected half a unit of 11 bits")


def places(n, start, end, step):
    """Which elements the standard's Slice takes: backwards, a start before the front is the front."""
    start, end = (bound + n if bound < 0 else bound for bound in (start, end))
    low, high = (0, n) if step > 0 else (-1, n - 1)
    return list(range(min(max(start, 0), high), min(max(end, low), high), step))


@case(seconds=12)
def slices_whose_bounds_are_known_in_turn(folder):
    """The same bounds as constants and as inputs, whichever of them."""
    number = np.random.default_rng(SEED)
    edges = [0, 1, -1, 2, -2, 4, 5, -5, 6, -6, 9, -9, -2**31, -2**63, 2**62]
    for known in ("set", "s", "e", "t", "se", ""):
        for _ in range(3):
            start, end, step = (int(number.choice(values)) for values in (edges, edges, [1, 2, -1, -2, -7]))
            given = [("x", np.arange(5.0)), ("s", np.array([start])), ("e", np.array([end])), ("a", np.array([0])), ("t", np.array([step]))]
            constant = ["a", *known]
            path, feeds = build(folder, "Slice", given, ["y"], 13, initializers=constant, dynamic=["x"])
            package = compile_model(path, folder)
            # Bounds of 0, 1 and -1 in the model say that there is such an element.
            for n in (5, 2) if known == "set" else (5, 1, 0):
                for _ in range(6):
                    bounds = {name: np.array([int(number.choice([1, 2, -1, -2, -7] if name == "t" else edges))]) for name in "set"
                              if name not in constant}
                    x = number.standard_normal(n)
                    whole = {"s": start, "e": end, "t": step} | {name: int(value[0]) for name, value in bounds.items()}
                    found = run_package(package, {"x": x} | bounds, folder)["y"]
                    expect(np.array_equal(found, x[places(n, whole["s"], whole["e"], whole["t"])]), f"seed {SEED}: {n}, {whole}: {found} of {x}")


@case
def logarithms_of_probabilities_beside_large_scores(folder):
    x = (numbers(4, 7) * np.array([[1], [1e4], [1e6], [0]]) + np.array([[0], [1e5], [-1e7], [-3.4e38]])).astype(np.float32)
    shifted = x.astype(np.float64) - x.max(1, keepdims=True).astype(np.float64)
    expected = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    path, given = build(folder, "LogSoftmax", [("x", x)], ["y"], 22, axis=1)
    for options in ((), ("--reference",), ("--mcpu=x86-64-v3",)):
        found = run_package(compile_model(path, folder, *options), given, folder)["y"]
        # The differences of single floats are exact to half a unit each; so is the logarithm, of at most 7.
        far = np.abs(found - expected) / np.maximum(np.abs(expected), 1)
        expect(far.max() <= 1e-6, f"seed {SEED}: {options}: {found} against {expected}")


@case
def ignored_targets_of_any_number(folder):
    """Which no double holds, or no target's type: 2^53 + 1 is ignored, and 2^32 + 1 is not the class 1."""
    scores = numbers(6, 4).astype(np.float32)
    logarithms = scores.astype(np.float64) - np.log(np.exp(scores.astype(np.float64)).sum(1, keepdims=True))
    for number, dtype in ((2**53 + 1, np.int64), (-2**53 - 1, np.int64), (2**32 + 1, np.int32)):
        target = np.array([1, 3, 0, 2, 1, 1], dtype)
        counts = np.ones(6, bool)
        if dtype == np.int64:
            target[[1, 4]], counts[[1, 4]] = number, False
        losses = [-logarithms[i, target[i]] if counts[i] else 0.0 for i in range(6)]
        check(folder, "SoftmaxCrossEntropyLoss", [("x", scores), ("t", target)], expected={"y": np.array(losses, np.float32)}, opset=13,
              tolerance=1e-5, reduction="none", ignore_index=number)


def losses_by_definition(logarithms, target, ignored, weights, reduction):
    """In float64, of the targets that count alone."""
    counts = target != ignored
    own = np.where(counts, weights[np.where(counts, target, 1)], 0)
    losses = np.zeros(target.shape)
    for place in np.argwhere(counts):
        n, *rest = place
        losses[tuple(place)] = -logarithms[(n, target[tuple(place)], *rest)] * own[tuple(place)]
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.sum() / own.sum()


@case(seconds=3)
def ignored_targets_of_any_scores(folder):
    """Scores and weights that nothing counts may be NaN and infinite, or overflow on the way."""
    rows = [[np.nan] * 4, [-np.inf, 1, 2, 3], [np.inf, 0, 0, 1], [-3e38, 3e38, -3e38, 0], [-np.inf] * 4]
    scores = numbers(5, 4, 3).astype(np.float32)
    target = np.random.default_rng(SEED).integers(1, 4, (5, 3))
    for n, row in enumerate(rows):
        scores[n, :, n % 3], target[n, n % 3] = row, -100
    weights = np.abs(numbers(4, salt=1)).astype(np.float32) + np.float32(0.5)
    weights[0] = np.inf  # the class that stands for what is ignored, and that no target has
    with np.errstate(all="ignore"):
        wide = scores.astype(np.float64)
        shifted = wide - wide.max(1, keepdims=True)
        logarithms = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        probabilities = logarithms.astype(np.float32)
    for reduction in ("none", "mean", "sum"):
        for w in (None, weights):
            for op, given in (("SoftmaxCrossEntropyLoss", logarithms), ("NegativeLogLikelihoodLoss", wide)):
                loss = losses_by_definition(given, target, -100, np.ones(4) if w is None else w.astype(np.float64), reduction)
                outputs = ("y", "p") if op[0] == "S" and reduction != "sum" else ("y",)
                check(folder, op, [("x", scores), ("t", target), ("w", w)], outputs, 13, expected={"y": np.float32(loss), "p": probabilities},
                      dynamic=("x", "t"), reduction=reduction, ignore_index=-100)


@case
def pixels_outside_of_images_are_zeros(folder):
    """Whatever stands at the border: a pixel outside of the image is 0, not 0 times the nearest one."""
    x = numbers(1, 2, 5, 6).astype(np.float32)
    x[:, :, 0], x[:, :, -1], x[:, :, :, 0], x[:, :, :, -1] = np.nan, np.inf, -np.inf, np.nan
    far = np.random.default_rng(SEED).uniform(1.6, 3, (1, 3, 4, 2)) * np.random.default_rng(SEED + 1).choice([-1, 1], (1, 3, 4, 2))
    grid = np.concatenate([far, np.random.default_rng(SEED + 2).uniform(-0.4, 0.4, far.shape)], 2).astype(np.float32)
    for mode in ("linear", "nearest"):
        for corners in (0, 1):
            path, given = build(folder, "GridSample", [("x", x), ("g", grid)], ["y"], 20, mode=mode, align_corners=corners)
            found = run_package(compile_model(path, folder), given, folder)["y"]
            expected = onnx_runtime(path, given, cache={})["y"]
            expect((expected[:, :, :, :4] == 0).all() and distance(found, expected) <= 1e-5, f"DS_SEED={SEED}: {mode} {corners}: {found}, expected {expected}")


@case
def hardmax_of_nothing(folder):
    """An axis of the run without elements gives none; one or more elements are searched as ever."""
    path, _ = build(folder, "Hardmax", [("x", np.ones((2, 3), np.float32))], ["y"], 13, dynamic=("x",), axis=1)
    package = compile_model(path, folder)
    for sizes in ((2, 0), (0, 0), (0, 3), (2, 1), (3, 5)):
        x = numbers(*sizes).astype(np.float32)
        found, expected = run_package(package, {"x": x}, folder)["y"], onnx_runtime(path, {"x": x}, cache={})["y"]
        expect(found.shape == sizes and (found == expected).all(), f"DS_SEED={SEED}: {sizes}: {found}, expected {expected}")


@case
def sums_of_integers_along_axes_of_the_run(folder):
    """What an axis of the run makes of small integers has sizes that no constant has."""
    x = np.array([5, -2, 7, 1, 3], np.int32)
    for axis in (0, -1):
        check(folder, "CumSum", [("x", x), ("axis", np.array(axis, np.int32))], opset=14, exclusive=1,
              expected={"y": np.concatenate([[0], np.cumsum(x)[:-1]]).astype(np.int32)})


@case
def caches_written_from_a_place_for_each_batch(folder):
    """TensorScatter along every axis but the first, around the end, and places that do not exist."""
    random = np.random.default_rng(SEED)
    cache = numbers(3, 2, 9, 4, dtype=np.float32)
    for axis, mode in ((1, "circular"), (2, "linear"), (-2, "circular"), (-1, "linear"), (3, "circular")):
        shape = list(cache.shape)
        shape[axis] = 2
        update = numbers(*shape, dtype=np.float32, salt=1)
        start = random.integers(0, cache.shape[axis] - (1 if mode == "linear" else 0), 3)
        y = np.moveaxis(cache.copy(), axis, 1)
        for batch, first in enumerate(start):
            y[batch, (first + np.arange(2)) % cache.shape[axis]] = np.moveaxis(update, axis, 1)[batch]
        check(folder, "TensorScatter", [("c", cache), ("u", update), ("w", start)], opset=24, tolerance=0, axis=axis, mode=mode,
              expected={"y": np.moveaxis(y, 1, axis)})
    y = cache.copy()
    y[:, :, :5] = update = numbers(3, 2, 5, 4, dtype=np.float32)
    check(folder, "TensorScatter", [("c", cache), ("u", update)], opset=24, tolerance=0, expected={"y": y})
    path, given = build(folder, "TensorScatter", [("c", cache), ("u", update), ("w", np.array([0, 4, 5]))], ["y"], 24)
    np.savez(folder / "in.npz", **given)
    tool("ds-opt", path, "-o", folder / "far.dsp")
    tool("ds-run", folder / "far.dsp", "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=1)
