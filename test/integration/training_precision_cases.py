"""bf16 and fp16 of ds_config.json: products of rounded operands, in both directions, parameters in float32."""
import json

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

import training_models as models
from kit import case, compile_model, expect, tool
from programs import SEED
from training_curve_cases import GPT, gpt_data
from training_runs import by_torch, column, log_of, settings, train, train_package


def model(folder):
    g = np.random.default_rng(SEED)
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> m (float[n, 16] x) => (float loss)
        { h = MatMul (x, w) a = Tanh (h) y = MatMul (a, v) q = Mul (y, y) loss = ReduceSum <keepdims = 0> (q) }""")
    arrays = {"w": g.standard_normal((16, 24), np.float32) / 4, "v": g.standard_normal((24, 5), np.float32)}
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(proto, folder / "m.onnx")
    x = g.standard_normal((7, 16), np.float32)
    np.savez(folder / "x.npz", x=x)
    return x, arrays["w"], arrays["v"]


def convolutional_model(folder):
    g = np.random.default_rng([SEED, 2])
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> m (float[n, 6, 21] x) => (float loss)
        { h = Conv (x, w) a = Tanh (h) y = Conv (a, v) q = Mul (y, y) loss = ReduceSum <keepdims = 0> (q) }""")
    arrays = {"w": g.standard_normal((24, 6, 5), np.float32) / 4, "v": g.standard_normal((7, 24, 3), np.float32) / 4}
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(proto, folder / "m.onnx")
    x = g.standard_normal((7, 6, 21), np.float32)
    np.savez(folder / "x.npz", x=x)
    return x, arrays["w"], arrays["v"]


def compile_for(folder, section, **more):
    (folder / "c.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 7, "optimizer": {"type": "SGD", "params": {"lr": 1e-4}},
                                               section: {"enabled": True, **more}}))
    return compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss", f"--config={folder / 'c.json'}", name=f"{section}.dsp")


def by_paper(x, w, v, rounded):
    """In float64 on operands rounded as products have them; what is between is float32 there and loses little."""
    r = lambda array: array.astype(np.float32).astype(rounded).astype(np.float64)
    h = r(x) @ r(w)
    a = np.tanh(h)
    y = r(a) @ r(v)
    dy = 2 * y
    da = r(dy) @ r(v).T
    dh = da * (1 - a**2)
    return {"loss": np.sum(y**2), "v": r(a).T @ r(dy), "w": r(x).T @ r(dh)}


def by_windows(x, w, v, rounded):
    """As by_paper, of convolutions along one axis."""
    r = lambda array: array.astype(np.float32).astype(rounded).astype(np.float64)
    seen = lambda array, taps: np.lib.stride_tricks.sliding_window_view(array, taps, 2)
    forward = lambda array, filters: np.einsum("bcik,fck->bfi", seen(r(array), filters.shape[2]), r(filters))
    ends = lambda array, taps: np.pad(array, ((0, 0), (0, 0), (taps - 1, taps - 1)))
    a = np.tanh(forward(x, w))
    y = forward(a, v)
    dy = 2 * y
    da = np.einsum("bfik,fck->bci", seen(ends(r(dy), v.shape[2]), v.shape[2]), r(v)[:, :, ::-1])
    of_filters = lambda array, back, taps: np.einsum("bcik,bfi->fck", seen(r(array), taps), r(back))
    return {"loss": np.sum(y**2), "v": of_filters(a, dy, 3), "w": of_filters(x, da * (1 - a**2), 5)}


@case(seconds=7)
def gradients(folder):
    check_gradients(folder, *model(folder), by_paper)


@case(seconds=7)
def gradients_of_filters(folder):
    check_gradients(folder, *convolutional_model(folder), by_windows)


def check_gradients(folder, x, w, v, by_paper):
    for section, kind in (("bf16", ml_dtypes.bfloat16), ("fp16", np.float16)):
        package = compile_for(folder, section)
        tool("ds-run", "gradients", package, f"--inputs={folder / 'x.npz'}", f"--output={folder / 'g.npz'}")
        found, expected, exact = dict(np.load(folder / "g.npz")), by_paper(x, w, v, kind), by_paper(x, w, v, np.float64)
        def distance(arrays, name):
            return np.max(np.abs(arrays[name] - expected[name])) / np.max(np.abs(expected[name]))
        # Of one output alone, such as the loss, roundings may cancel: what they move is the most of all.
        rounding = max(distance(exact, name) for name in expected)
        expect(rounding > 1e-5, f"seed {SEED}, {section}: nothing was rounded")
        for name in expected:
            off = distance(found, name)
            # A value beside the middle of two may round the other way after float32: a few of those, not what all rounding moves.
            expect(off < rounding / 3, f"seed {SEED}, {section}: {name} is off by {off:.3g}; rounding moves up to {rounding:.3g}")


@case(seconds=3)
def overflow(folder):
    """A step whose gradients exceed fp16 changes no bit of parameters, halves the scale, and advances no schedule."""
    model(folder)
    package = compile_for(folder, "fp16", initial_scale_power=40, hysteresis=1, loss_scale_window=3)
    tool("ds-run", "train", package, f"--data={folder / 'x.npz'}", "--steps=1", f"--checkpoint={folder / 'ck'}", "--tag=one",
         f"--log={folder / 'l.jsonl'}")
    first = json.loads((folder / "l.jsonl").read_text())
    expect(first["overflow"] and first["skipped"] == 1 and first["loss_scale"] == 2.0**39, f"{first}")
    tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "-o", folder / "out.onnx")
    stored = {t.name: t.raw_data for t in onnx.load(folder / "m.onnx").graph.initializer}
    expect(stored == {t.name: t.raw_data for t in onnx.load(folder / "out.onnx").graph.initializer}, "a skipped step changed parameters")
    tool("ds-run", "train", package, f"--data={folder / 'x.npz'}", "--steps=40", f"--log={folder / 'l.jsonl'}")
    lines = [json.loads(line) for line in (folder / "l.jsonl").read_text().splitlines()]
    good = [line for line in lines if not line["overflow"]]
    expect(good and lines[-1]["skipped"] == len(lines) - len(good), f"{lines[-1]}")
    expect(good[-1]["loss"] < good[0]["loss"], f"{good[0]['loss']} to {good[-1]['loss']}")


@case(slow=True)
def curves_within_the_spread_of_seeds(folder):
    """300 steps of a GPT of 4 layers in bf16 and in fp16. The mean loss of the last 50 steps lies where PyTorch's in float32 lie for
    three seeds of the first weights: between the least and the greatest of them, widened by their standard deviation on both sides."""
    data, config, last = gpt_data(folder), settings(("AdamW", {"lr": 1e-3, "weight_decay": 0.01}), gradient_clipping=1.0), slice(-50, None)
    theirs = []
    for seed in range(3):
        onnx.save(models.gpt(layers=4, seed=seed), folder / "model.onnx")
        losses = by_torch(folder, data, GPT[0], config, 300)["loss"]
        theirs.append(losses[last].mean())
        expect(theirs[-1] < losses[0] / 2, f"seed {seed} of PyTorch learns nothing: {losses[0]} to {theirs[-1]}")
    spread = np.std(theirs, ddof=1)
    low, high = min(theirs) - spread, max(theirs) + spread
    for section in ("bf16", "fp16"):
        package = train_package(folder, models.gpt(layers=4), {**config, section: {"enabled": True}}, *GPT[1])
        train(package, data, "--steps=300", "--shuffle=off", f"--log={folder / 'log.jsonl'}", timeout=600)
        found = column(log_of(folder / "log.jsonl"), "loss")[last].mean()
        print(f"  {section}: {found:.5f}, PyTorch in float32 {', '.join(f'{loss:.5f}' for loss in theirs)}", flush=True)
        expect(low <= found <= high, f"{section} ends at {found}, expected {low} to {high}, from {theirs}")
