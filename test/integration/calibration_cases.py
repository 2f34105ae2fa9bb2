"""Rounding against a calibration set (--calibrate) against GPTQ in NumPy, in the form of its paper."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import generate
from cache_cases import twice, compiled as cached
from kit import MINILM, case, compile_model, distance, expect, run_package, tool
from model_cases import tokens
from programs import SEED, some
from quantized_weight_cases import UNIT, Products, constants, option, quantized, rounding

HOWS = ((4, 32, "symmetric"), (4, 0, "asymmetric"), (8, 0, "symmetric"), (8, 6, "asymmetric"), (4, 10, "symmetric"))
SHAPES = ((64, 100), (65, 33), (130, 47), (33, 49))


def gptq(w, x, bits, group, scheme):
    """Codes by Frantar et al.: each row's error is spread over the rows behind it by the Cholesky factor of the inverse.
    Scales are those of the weight; a row moves by two steps at most. Also how near each was to another code."""
    _, scales, _ = quantized(w, bits, group, scheme)
    step = np.where(scales == 0, 1, scales)
    top, bottom = 2**(bits - 1) - 1, -2**(bits - 1)
    span = group if 0 < group < len(w) else len(w)
    low = np.minimum(np.stack([w[k // span * span:k // span * span + span].min(0) for k in range(len(w))]), 0).astype(np.float64)
    zero = np.clip(np.rint(bottom - low / step), bottom, top) * (scales > 0) if scheme == "asymmetric" else 0 * scales
    hessian = 2 * x.astype(np.float64).T @ x.astype(np.float64)
    hessian += 0.01 * np.mean(np.diag(hessian)) * np.eye(len(w))
    upper = np.linalg.cholesky(np.linalg.inv(hessian)).T
    left, codes, margin = w.astype(np.float64), np.zeros(w.shape), np.ones(w.shape)
    for k in range(len(w)):
        near = np.clip(left[k], w[k] - 2 * np.abs(scales[k]), w[k] + 2 * np.abs(scales[k]))
        quotient = near / step[k]
        codes[k] = np.clip(np.rint(quotient) + zero[k], bottom, top)
        margin[k] = np.abs(quotient - np.floor(quotient) - 0.5)
        error = (left[k] - (codes[k] - zero[k]) * scales[k]) / upper[k, k]
        left[k:] -= np.outer(upper[k, k:], error)
    return codes, (codes - zero) * scales, margin, hessian


def related(random, rows, depth):
    """Rows whose elements depend on each other, as activations do, with a mean."""
    return (random.standard_normal((rows, depth // 3 + 2)) @ random.standard_normal((depth // 3 + 2, depth)) / 4
            + random.standard_normal((rows, depth)) / 2 + random.standard_normal(depth)).astype(np.float32)


def stored_codes(package, name, shape, bits):
    """The codes of a weight in a package for x86-64-v3, unpacked."""
    info, data = constants(package)[f"{name}.int{bits}.packed"]
    panels, steps, width = info["shape"]
    codes = np.frombuffer(data, np.int8).reshape(panels, steps, width)
    if bits == 4:
        codes = np.stack([np.left_shift(codes, 4) >> 4, codes >> 4], 2).reshape(panels, 2 * steps, width)
    return codes.transpose(1, 0, 2).reshape(codes.shape[1], -1)[:shape[0], :shape[1]].astype(np.float64)


def objective(difference, hessian):
    return np.trace(difference.T @ hessian @ difference)


@case(seconds=23)
def codes_are_those_of_gptq(folder):
    for how in some(HOWS, 3):
        m = Products(f"calibrated {how}", SHAPES)
        calls = [{f"x{i}": related(m.random, rows, len(w)) for i, w in enumerate(m.weights)} for rows in (40, 1, 90)]
        np.savez(folder / "set.npz", **{f"{n}/{name}": array for n, call in enumerate(calls) for name, array in call.items()})
        package = m.compiled(folder, option(*how), f"--calibrate={folder / 'set.npz'}", "--mcpu=x86-64-v3")
        bits, group, scheme = how
        known = [gptq(w, np.concatenate([call[f"x{i}"] for call in calls]), *how) for i, w in enumerate(m.weights)]
        gained = 0
        for i, w in enumerate(m.weights):
            expected, stands, margin, hessian = known[i]
            codes = stored_codes(package, f"w{i}", w.shape, bits)
            what = f"{how} {w.shape} (DS_SEED={SEED})"
            # A sum in f32 is off by 1e-6; codes are the same up to the first, in each column, that is as near to another.
            differ = codes != expected
            close = np.cumsum(margin < 1e-3, axis=0) > 0
            expect(not (differ & ~close).any(), f"{what}: {(differ & ~close).sum()} codes are not GPTQ's")
            expect(differ.mean() < 0.2, f"{what}: {differ.mean():.3f} of all codes differ")
            to_nearest = quantized(w, *how)[0]
            zero = stands / np.where(quantized(w, *how)[1] == 0, 1, quantized(w, *how)[1]) - expected
            ours = (codes + np.rint(zero)) * quantized(w, *how)[1]
            mine, right, plain = (objective(v - w, hessian) for v in (ours, stands, to_nearest))
            expect(mine <= 1.02 * right, f"{what}: {mine:.4g} from the floats, GPTQ {right:.4g}")
            # What GPTQ does column by column is no minimum: of a small matrix it may be as far as nearest codes.
            expect(mine < plain or right > 0.98 * plain, f"{what}: {mine:.4g} from the floats, to nearest {plain:.4g}")
            gained += np.log(plain / mine)
            scales = quantized(w, *how)[1]
            far = np.abs(ours - w.astype(np.float64))
            inside = (expected > -2**(bits - 1)) & (expected < 2**(bits - 1) - 1)  # codes at the ends are cut
            expect((far <= 2.5 * np.abs(scales) * (1 + 256 * UNIT) + 1e-12)[inside].all(), f"{what}: beyond 2.5 steps")
        expect(gained > 0, f"{how}: calibration gains nothing over nearest codes (DS_SEED={SEED})")
        for rows in (1, 8, 40):
            feed = m.feed(rows)
            found = run_package(package, feed, folder)
            for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
                codes, scales = stored_codes(package, f"w{i}", w.shape, bits), quantized(w, *how)[1]
                expected, stands, _, _ = known[i]
                zero = np.rint(expected - stands / np.where(scales == 0, 1, scales))
                ours = (codes - zero) * scales
                x = feed[f"x{i}"].astype(np.float64)
                far = np.abs(found[f"y{i}"] - (x @ ours + bias))
                expect((far <= rounding(x, ours, bias)).all(), f"{how} y{i}: {far.max()} from what the codes stand for (DS_SEED={SEED})")


@case(seconds=23)
def calibrated_packages_are_the_same_every_time(folder):
    np.savez(folder / "set.npz", **tokens(4, 20, SEED))
    options = ("--quantize=int4", f"--calibrate={folder / 'set.npz'}")
    packages = [compile_model(MINILM, folder, *options, name=name) for name in ("a.dsp", "b.dsp")]
    for file in sorted(packages[0].iterdir()):
        expect(file.read_bytes() == (packages[1] / file.name).read_bytes(), f"{file.name} differs")


@case(seconds=23)
def calibration_lessens_what_minilm_loses(folder):
    """On tokens that it was not calibrated on. They are random, which is harder than text: the share that is left varies from
    0.5 to 0.7 with them."""
    np.savez(folder / "set.npz", **tokens(64, 60, SEED))
    values = tokens(8, 33, SEED + 1)
    right = run_package(compile_model(MINILM, folder), values, folder)["461"]
    far = {}
    for name, options in (("nearest", []), ("calibrated", [f"--calibrate={folder / 'set.npz'}"])):
        package = compile_model(MINILM, folder, "--quantize=int4", *options, name=f"{name}.dsp")
        found = run_package(package, values, folder)["461"]
        far[name] = float(np.linalg.norm(found - right) / np.linalg.norm(right))
    expect(far["calibrated"] <= 0.8 * far["nearest"], f"relative errors {far}")


def products_of(folder, name="m.onnx"):
    random = np.random.default_rng(SEED)
    weights = [random.standard_normal((48, 40), np.float32), random.standard_normal((40, 48), np.float32)]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
             helper.make_node("MatMul", ["r", "v"], ["b"]), helper.make_node("MatMul", ["b", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 48])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 40])],
                              [numpy_helper.from_array(w, n) for w, n in zip(weights, "wv")])
    return generate.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / name)


@case(seconds=6)
def a_calibration_set_that_does_not_fit_is_refused(folder):
    model = products_of(folder)
    good = np.ones((3, 48), np.float32)
    bad = good.copy()
    bad[1, 2] = np.nan
    huge = np.full((3, 48), 3e38, np.float32)
    for arrays, says in (({}, "call 0 has no input 'x', expected an array '0/x', or 'x' for all calls"),
                         ({"z": good}, "no input 'z', expected N/NAME or NAME, where N is the number of a call and NAME one of [x]"),
                         ({"0/x": good, "2/x": good}, "call 2 has arrays, but of the calls from 0 on only 2 have, expected arrays for each"),
                         ({"x": good, "999999999/x": good}, "call 999999999 has arrays, but of the calls from 0 on only 1 have"),
                         ({"0/x": good, "00/x": good}, "'00/x' is what '0/x' is, expected one array for an input of a call"),
                         ({"x": good.astype(np.float64)}, "'x': expected f32, found f64"),
                         ({"0/x": good[0]}, "call 0:"), ({"x": good[:, 1:]}, "call 0:"),
                         ({"x": good, "0/x": good}, "'x' is of no call, as each has one of its own, expected one array for an input of a call"),
                         ({"x": good[:0]}, "set.npz: no product meets a number but 0, expected inputs with rows"),
                         ({"x": 0 * good}, "set.npz: no product meets a number but 0, expected inputs with rows"),
                         ({"x": bad}, "'x': element 50 is not a number"),
                         ({"x": huge}, "is not finite, or its squares are not")):
        np.savez(folder / "set.npz", **arrays)
        result = tool("ds-opt", model, "-o", folder / "no.dsp", "--quantize=int4", f"--calibrate={folder / 'set.npz'}", code=1, says=says)
        expect(len(result.err.splitlines()) == 1, f"more than one line: {result}")
        expect(not (folder / "no.dsp").exists(), f"a package all the same: {result}")
    np.savez(folder / "set.npz", x=good)
    for options, says, code in ((["--quantize=int4,keep=."], "set.npz: nothing asks for it, as no product has a weight to quantize, or keep=. names all", 1), ([], "found no --quantize", 2),
                                (["--quantize=int4", "--check"], "cannot be combined with", 2)):
        output = [] if "--check" in options else ["-o", folder / "no.dsp"]
        tool("ds-opt", model, *output, *options, f"--calibrate={folder / 'set.npz'}", code=code, says=says)
    (folder / "set.npz").write_bytes(b"PK")
    tool("ds-opt", model, "-o", folder / "no.dsp", "--quantize=int4", f"--calibrate={folder / 'set.npz'}", code=1, says="set.npz")
    tool("ds-opt", model, "-o", folder / "no.dsp", "--quantize=int4", f"--calibrate={folder / 'none.npz'}", code=1, says="none.npz")


@case(seconds=6)
def a_weight_of_two_products_is_rounded_for_both(folder):
    model = products_of(folder)
    x = related(np.random.default_rng([SEED, 3]), 60, 48)
    np.savez(folder / "set.npz", x=x)
    result = tool("ds-opt", model, "-o", folder / "m.dsp", "--quantize=int4,group=8", f"--calibrate={folder / 'set.npz'}",
                  "--report", "--mcpu=x86-64-v3")
    expect("calibration: 1 calls, 2 weights observed" in result.out, f"{result}")
    expect("2 calibrated" in result.out and ", of results " in result.out, f"{result}")
    weights = {i.name: numpy_helper.to_array(i) for i in onnx.load(str(model)).graph.initializer}
    b = np.maximum(x @ weights["w"], 0) @ weights["v"]
    expected, _, margin, _ = gptq(weights["w"], np.concatenate([x, b]), 4, 8, "symmetric")
    codes = stored_codes(folder / "m.dsp", "w", (48, 40), 4)
    close = np.cumsum(margin < 1e-3, axis=0) > 0
    expect(not ((codes != expected) & ~close).any(), f"{(codes != expected).sum()} codes are not GPTQ's (DS_SEED={SEED})")


@case(seconds=13)
def the_cache_knows_what_was_calibrated_on(folder):
    model, data, cache = products_of(folder), folder / "set.npz", folder / "cache"
    options = ("--quantize=int4,group=8", f"--calibrate={data}")
    random = np.random.default_rng(SEED)
    generate_set = lambda: np.savez(data, x=related(random, 20, 48))
    import time
    generate_set(), time.sleep(0.06)
    twice(model, folder / "m.dsp", cache, *options)
    before = (folder / "m.dsp/weights.bin").read_bytes()
    generate_set(), time.sleep(0.06)
    found = cached(model, folder / "m.dsp", cache, *options)
    expect(found == "kept", f"another calibration set: expected kept, found {found}")
    expect(before != (folder / "m.dsp/weights.bin").read_bytes(), "another calibration set gave the same weights")
