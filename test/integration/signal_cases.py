"""Fourier transforms of lengths that have divisors, few or none, against NumPy's in double precision."""
import numpy as np
import onnx
from onnx import TensorProto, helper

from kit import case, compile_model, expect, run_package
from programs import SEED

TYPES = {np.float32: (TensorProto.FLOAT, 2e-6), np.float64: (TensorProto.DOUBLE, 1e-14), np.float16: (TensorProto.FLOAT16, 6e-4)}


def model(folder, nodes, element):
    """One input for each node, whose sizes are those of the run where a shape holds names."""
    inputs, written, initializers = [], [], []
    for number, (shape, operator, attributes, extra) in enumerate(nodes):
        inputs.append(helper.make_tensor_value_info(f"x{number}", element, shape))
        names = [f"x{number}"]
        for place, value in enumerate(extra):
            names.append("" if value is None else f"c{number}_{place}")
            if value is not None:
                initializers.append(onnx.numpy_helper.from_array(np.asarray(value), names[-1]))
        written.append(helper.make_node(operator, names, [f"y{number}"], **attributes))
    graph = helper.make_graph(written, "signals", inputs, [onnx.ValueInfoProto(name=f"y{i}") for i in range(len(nodes))], initializers)
    path = folder / "signals.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), str(path))
    return path


def parts(z):
    return np.stack([z.real, z.imag], -1)


@case(seconds=49)
def transforms_of_every_length(folder):
    random = np.random.default_rng(SEED)
    for dtype, (element, bound) in TYPES.items():
        nodes, feeds, wanted = [], {}, []
        lengths = (1, 2, 31, 32, 36, 62, 64, 97, 100, 125, 144, 1000) if dtype != np.float16 else (36, 64)
        for number, length in enumerate(lengths):
            for width in (1, 2):
                for inverse, onesided in ((0, 0), (1, 0), (0, 1)) if width == 1 else ((0, 0), (1, 0)):
                    shape = (3, length, width) if number % 2 else (2, length, 1, width)
                    x = random.standard_normal(shape).astype(dtype)
                    z = x.astype(np.float64)[..., 0] + (1j * x.astype(np.float64)[..., 1] if width == 2 else 0)
                    y = np.fft.ifft(z, axis=1) if inverse else np.fft.rfft(z, axis=1) if onesided else np.fft.fft(z, axis=1)
                    names = [f"n{len(nodes)}", *shape[1:]]
                    nodes.append((names, "DFT", {"inverse": inverse, "onesided": onesided}, [None, np.int64(1)]))
                    feeds[f"x{len(wanted)}"] = x
                    wanted.append(parts(y))
        # Cut, padded, along an axis that others follow, and a length that the run says.
        x = random.standard_normal((4, 40, 5, 2)).astype(dtype)
        z = x.astype(np.float64)[..., 0] + 1j * x.astype(np.float64)[..., 1]
        for shape, length, axis in ((x.shape, 36, 1), (x.shape, 64, 1), (x.shape, None, 1), (("a", "b", "c", 2), None, 1),
                                    (x.shape, 48, 2), (("a", "b", "c", 2), 36, -2)):
            nodes.append((shape, "DFT", {}, [None if length is None else np.int64(length), np.int64(axis)]))
            feeds[f"x{len(wanted)}"] = x
            wanted.append(parts(np.fft.fft(z, length, axis % 4 if axis > 0 else 2)))
        found = run_package(compile_model(model(folder, nodes, element), folder), feeds, folder)
        for number, expected in enumerate(wanted):
            y = found[f"y{number}"]
            expect(y.shape == expected.shape and y.dtype == dtype, f"{nodes[number]}: {y.dtype} {y.shape}, expected {expected.shape}")
            error = np.abs(y - expected).max(initial=0) / np.abs(expected).max(initial=1e-9)
            expect(error <= bound, f"{np.dtype(dtype)} {nodes[number]}: off by {error:.2g} of the greatest, expected at most {bound} "
                   f"(DS_SEED={SEED})")


@case(seconds=12)
def frames_of_a_signal(folder):
    random = np.random.default_rng(SEED + 1)
    x = random.standard_normal((2, 300, 1)).astype(np.float32)
    nodes, wanted = [], []
    for length, step in ((64, 16), (50, 7), (31, 31)):
        window = np.hanning(length).astype(np.float32)
        for onesided in (0, 1):
            frames = np.stack([x[:, start:start + length, 0] * window for start in range(0, 300 - length + 1, step)], 1)
            wanted.append(parts((np.fft.rfft if onesided else np.fft.fft)(frames.astype(np.float64))))
            nodes.append((["batch", 300, 1], "STFT", {"onesided": onesided}, [np.int64(step), window]))
    package = compile_model(model(folder, nodes, TensorProto.FLOAT), folder)
    found = run_package(package, {f"x{number}": x for number in range(len(nodes))}, folder)
    for number, expected in enumerate(wanted):
        y = found[f"y{number}"]
        expect(y.shape == expected.shape, f"{nodes[number][2]}: {y.shape}, expected {expected.shape}")
        error = np.abs(y - expected).max() / np.abs(expected).max()
        expect(error <= 2e-6, f"{nodes[number]}: off by {error:.2g} of the greatest (DS_SEED={SEED})")


@case(seconds=5)
def signals_of_half_spectra(folder):
    """Real signals from the half of a spectrum that says all, of even and odd lengths; of real spectra, too."""
    random = np.random.default_rng(SEED + 2)
    nodes, feeds, wanted = [], {}, []
    for length, given, width in ((36, None, 2), (2, None, 2), (37, 37, 2), (64, 64, 2), (64, 64, 1), (9, 9, 1)):
        x = random.standard_normal((3, length // 2 + 1, width))
        z = x[..., 0] + (1j * x[..., 1] if width == 2 else 0)
        feeds[f"x{len(nodes)}"] = x
        nodes.append((["m", *x.shape[1:]], "DFT", {"inverse": 1, "onesided": 1},
                      [None if given is None else np.int64(given), np.int64(1)]))
        wanted.append(np.fft.irfft(z, length, 1)[..., None])
    found = run_package(compile_model(model(folder, nodes, TensorProto.DOUBLE), folder), feeds, folder)
    for number, expected in enumerate(wanted):
        y = found[f"y{number}"]
        expect(y.shape == expected.shape, f"{nodes[number]}: {y.shape}, expected {expected.shape}")
        error = np.abs(y - expected).max() / np.abs(expected).max()
        expect(error <= 1e-14, f"{nodes[number]}: off by {error:.2g} of the greatest (DS_SEED={SEED})")


def triangles(bands, length, rate, low, high):
    """MelWeightMatrix as the standard describes it."""
    low, high = (2595 * np.log10(1 + hertz / 700) for hertz in (low, high))
    mel = np.arange(bands + 2) * (high - low) / (bands + 2) + low
    edges = np.floor((length + 1) * 700 * (10 ** (mel / 2595) - 1) / rate).astype(int)
    weights = np.zeros((length // 2 + 1, bands))
    for band, (first, centre, end) in enumerate(zip(edges, edges[1:], edges[2:])):
        weights[centre, band] = 1
        for place in range(first, centre):
            weights[place, band] = (place - first) / (centre - first)
        for place in range(centre, end):
            weights[place, band] = (end - place) / (end - centre)
    return weights


@case
def triangles_of_every_width(folder):
    """Bands of many places, of one, and of none on either side."""
    random = np.random.default_rng(SEED + 3)
    nodes, feeds, wanted = [], {}, []
    for bands, length, rate in ((5, 64, 8192), (12, 16, 16000), (40, 32, 8000), (1, 9, 44100)):
        low, high = random.uniform(10, 200), random.uniform(1000, rate / 2 - 1)
        nodes.append(([1], "MelWeightMatrix", {}, [np.int64(length), np.int64(rate), np.float32(low), np.float32(high)]))
        feeds[f"x{len(wanted)}"] = np.array([bands])
        wanted.append(triangles(bands, length, rate, np.float64(np.float32(low)), np.float64(np.float32(high))))
    path = model(folder, nodes, TensorProto.INT64)
    found = run_package(compile_model(path, folder), feeds, folder)
    for number, expected in enumerate(wanted):
        y = found[f"y{number}"]
        expect(y.shape == expected.shape and np.abs(y - expected).max() <= 1e-6, f"{nodes[number]}: {y}, expected {expected} (DS_SEED={SEED})")
