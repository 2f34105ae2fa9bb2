"""bench, compare, profile and inspect --graph: their figures against what NumPy and ONNX Runtime say, and their pictures."""
import contextlib
import json
import math
import os
import re
import sys
from xml.etree import ElementTree

import numpy as np
import onnx

import generate
from kit import case, compile_model, expect, onnx_runtime, run_package, tool

X = {"x": np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)}


@contextlib.contextmanager
def variable(name, value):
    before = os.environ.get(name)
    os.environ[name] = str(value)
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def one_line(*arguments, code=2, says=""):
    result = tool("ds-run", *arguments, code=code, says=says)
    expect(len(result.err.splitlines()) == 1, f"expected one line: {result}")


@case
def bench_counts_what_it_is_told(folder):
    package = compile_model(generate.save(generate.small(), folder / "small.onnx"), folder)
    bench = ("bench", package, "--dim=n=64", "--seed=0")
    report = json.loads(tool("ds-run", *bench, "--iterations=3", "--warmup=1", "--percentiles=0,50,99.9", "--threads=1", "--json", "-").out)
    latency = report["latency_ms"]
    expect(report["calls"] == 3 and report["dims"] == {"n": 64} and report["threads"] == 1 and report["entry"] == "main", f"{report}")
    expect(list(latency) == ["min", "median", "mean", "p0", "p50", "p99.9"], f"{latency}")
    expect(latency["p50"] == latency["median"] and latency["p0"] == latency["min"] <= latency["p99.9"], f"{latency}")
    expect(math.isclose(report["calls_per_second"] * latency["mean"], 1000), f"{report['calls_per_second']}")
    expect("streams" not in report, "one session is no stream")

    path = folder / "streams.json"
    text = tool("ds-run", *bench, "--iterations=2", "--warmup=0", "--streams=3", "--threads=4", "--json", path).out
    streams = json.loads(path.read_text())["streams"]
    expect((streams["count"], streams["threads"], streams["calls"]) == (3, 1, 6), f"{streams}")
    expect(math.isclose(streams["calls_per_second"] * streams["seconds"], 6), f"{streams}")
    expect(0 < streams["latency_ms"]["min"] * 2 <= streams["seconds"] * 1000, f"two calls in a row take longer: {streams}")
    expect(text.startswith("2 calls of 'main' on 4 threads, n=64\n") and "3 streams on 1 thread each: 6 calls" in text, text)

    for wrong in ("--iterations=0", "--iterations=x", "--iterations=-1", "--warmup=-1", "--percentiles=101", "--percentiles=nan",
                  "--percentiles=", "--percentiles=50,,90", "--streams=0", "--streams=257", "--json="):
        one_line(*bench, wrong)
    one_line(*bench, "--iterations=2", "--duration=1", says="--iterations")


def figures(line):
    """What a line of compare says: the cosine and the noise."""
    return float(re.search(r"cosine (\S+),", line)[1]), float(re.search(r"snr (\S+) dB", line)[1])


@case
def compare_with_expected_outputs(folder):
    model = generate.save(generate.small(), folder / "small.onnx")
    package = compile_model(model, folder)
    expected = onnx_runtime(model, X)["y"]
    np.savez(folder / "x.npz", **X)

    def compare(code, *options, **arrays):
        np.savez(folder / "y.npz", **arrays)
        return tool("ds-run", "compare", package, folder / "y.npz", "--inputs", folder / "x.npz", *options, code=code).out

    compare(0, y=expected)
    noise = np.random.default_rng(0).standard_normal(expected.shape).astype(np.float32) / 10
    cosine, ratio = figures(compare(1, "--output", folder / "out.npz", y=expected + noise))
    ours = np.load(folder / "out.npz")["y"].astype(np.float64)
    theirs = (expected + noise).astype(np.float64)
    expect(np.array_equal(ours, run_package(package, X, folder)["y"]), "--output has other numbers than a run")
    expect(math.isclose(cosine, (ours * theirs).sum() / np.linalg.norm(ours) / np.linalg.norm(theirs), rel_tol=1e-6), f"{cosine}")
    expect(abs(ratio - 10 * np.log10((theirs**2).sum() / ((ours - theirs)**2).sum())) < 0.06, f"{ratio} dB")
    expect("z: only in" in compare(1, y=expected, z=expected), "an array that is no output")
    expect("y: only in" in compare(1, z=expected), "an output that is missing")
    one_line("compare", package, folder / "none.npz", "--inputs", folder / "x.npz", code=1, says="none.npz")
    one_line("compare", package, says="--onnxruntime")


@case
def compare_with_onnx_runtime(folder):
    """Values between launches, too: those that the package keeps."""
    model = generate.save(generate.bert(layers=1, hidden=16, heads=2, vocabulary=50), folder / "bert.onnx")
    package = compile_model(model, folder, "--fusion=none")
    common = ("compare", package, "--dim=batch=2", "--dim=sequence=5", "--seed=1")
    entry = json.loads((package / "manifest.json").read_text())["variants"][0]["entries"][0]
    made = {name for node in onnx.load(model).graph.node for name in node.output}
    outputs = {output["name"] for output in entry["outputs"]}
    kept = [value["value"] for launch in entry["launches"] for value in launch["results"] if value["value"] in made - outputs]
    expect(len(kept) > 5, f"kept: {kept}")
    name = kept[len(kept) // 2]
    with variable("DS_PYTHON", sys.executable):
        text = tool("ds-run", *common, "--onnxruntime", model, "--values", name, "--output", folder / "values.npz").out
        expect(f"value {name}: " in text and text.count("ok\n") == 1 + len(outputs), text)
        other = generate.save(generate.bert(layers=1, hidden=16, heads=2, vocabulary=50, seed=1), folder / "other.onnx")
        tool("ds-run", *common, "--onnxruntime", other, code=1)
        one_line(*common, "--onnxruntime", folder / "none.onnx", code=1, says="nothing is there")
        (folder / "damaged.onnx").write_bytes(model.read_bytes()[:100])
        one_line(*common, "--onnxruntime", folder / "damaged.onnx", code=1, says="damaged.onnx")
        one_line(*common, "--onnxruntime", model, "--values=nonsense", says="none of the")
        one_line(*common, "--onnxruntime", model, "--values", name[:-1], says=f"did you mean '{name}'")
    # The same call of the package gives the same value, and the model gives it for the same inputs.
    found = dict(np.load(folder / "values.npz"))
    expect(set(found) == outputs | {name}, f"written: {set(found)}")
    tool("ds-run", package, "--dim=batch=2", "--dim=sequence=5", "--seed=1", "--values", name, "--output", folder / "run.npz")
    expect(all(np.array_equal(array, found[key]) for key, array in np.load(folder / "run.npz").items()), "a run gives other values")

    bare = folder / "bare-python"
    bare.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S \"$@\"\n")
    bare.chmod(0o755)
    for python, says in ((bare, "has no module numpy"), (folder / "nowhere", "cannot start"), ("/bin/false", "")):
        with variable("DS_PYTHON", python):
            one_line(*common, "--onnxruntime", model, code=1, says=["--onnxruntime", says])
    expect(not list(folder.glob("*tmp*")), "something was left behind")


@case(seconds=2)
def profile_of_each_launch(folder):
    model = generate.save(generate.bert(layers=2, hidden=32, heads=2, vocabulary=50), folder / "bert.onnx")
    package = compile_model(model, folder)
    report = json.loads(tool("ds-run", "profile", package, "--dim=batch=1", "--dim=sequence=8", "--seed=0", "--threads=1", "--iterations=5", "--json=-").out)
    launches = report["each_launch"]
    entry = json.loads((package / "manifest.json").read_text())["variants"][0]["entries"][0]
    expect(report["calls"] == 5 and report["dims"] == {"batch": 1, "sequence": 8}, f"{report['calls']} {report['dims']}")
    expect([launch["kernel"] for launch in launches] == [launch["kernel"] for launch in entry["launches"]], "other launches")
    for launch in launches:
        expect(0 < launch["min_ms"] <= launch["ms"] <= launch["max_ms"] and launch["grid"] > 0, f"{launch}")
    starts = [launch["start_ms"] for launch in launches]
    expect(starts == sorted(starts) and starts[0] == 0, f"{starts}")
    nodes = {node.name for node in onnx.load(model).graph.node}
    expect(all(set(launch["nodes"]) <= nodes for launch in launches) and any(launch["nodes"] for launch in launches), "nodes that are none")
    for by, key in (("kernels", "kernel"), ("layers", "name")):
        for share in report[by]:
            own = [launch for launch in launches if launch["layer" if by == "layers" else "kernel"] == share[key]]
            expect(len(own) == share["calls"], f"{by}: {share}")
            for figure in ("ms", "flops", "memory_bytes"):
                expect(math.isclose(sum(launch[figure] for launch in own), share[figure], rel_tol=1e-9, abs_tol=1e-12), f"{figure}: {share}")
    one_line("profile", package, "--iterations=1")
    one_line("profile", package, "--dim=batch=1", "--dim=sequence=8", "--json=-", "--html=-", says="found 2")


def points_of(path):
    """Places along a path of SVG that is made of M, C, V and H."""
    x = y = 0
    for command, text in re.findall(r"([MCVH])([^MCVH]*)", path):
        numbers = [float(number) for number in text.split()]
        if command == "C":
            ends = np.array([[x, y], *np.reshape(numbers, (3, 2))])
            for t in np.linspace(0, 1, 33):
                yield np.array([(1 - t)**3, 3 * t * (1 - t)**2, 3 * t * t * (1 - t), t**3]) @ ends
            x, y = numbers[4:]
            continue
        start = np.array([x, y])
        x, y = numbers if command == "M" else (x, numbers[0]) if command == "V" else (numbers[0], y)
        yield from (start + (np.array([x, y]) - start) * t for t in np.linspace(0, 1, 1 if command == "M" else 200))


def crossings(picture):
    """Lines that run through a box."""
    svg = "{http://www.w3.org/2000/svg}"
    boxes = [group.find(svg + "rect") for group in picture.iter(svg + "g")]
    corners = np.array([[float(box.get(key)) for key in ("x", "y", "width", "height")] for box in boxes])
    low, high = corners[:, :2] + 1, corners[:, :2] + corners[:, 2:] - 1
    lines = [line.get("d") for line in picture.iter(svg + "path") if line.get("marker-end")]
    found = [line for line in lines if any(((point > low) & (point < high)).all(axis=1).any() for point in points_of(line))]
    overlaps = [(a, b) for a in range(len(low)) for b in range(a) if (low[a] < high[b]).all() and (low[b] < high[a]).all()]
    return found, overlaps, corners, lines


@case(seconds=4)
def pictures_of_twelve_layers(folder):
    """Equal layers and their caches are drawn once, no line crosses a box, and names of dimensions are short."""
    for name, model in (("bert", generate.bert(layers=12, hidden=16, heads=2, vocabulary=50)),
                        ("gpt2", generate.gpt2_step(layers=12, hidden=16, heads=2, vocabulary=50))):
        package = compile_model(generate.save(model, folder / f"{name}.onnx"), folder, name=f"{name}.dsp")
        path = folder / f"{name}.svg"
        tool("ds-run", "inspect", package, "--graph", path)
        text = path.read_text()
        found, overlaps, corners, lines = crossings(ElementTree.fromstring(text))
        expect(not found, f"{name}: lines through boxes: {found}")
        expect(not overlaps, f"{name}: boxes on each other: {overlaps}")
        expect(5 < len(corners) <= 40 and len(lines) >= len(corners) - 1, f"{name}: {len(corners)} boxes, {len(lines)} lines")
        expect(re.search(r">1[0-2] times<", text), f"{name}: layers are not folded")
        root = ElementTree.fromstring(text)
        used = (corners[:, 0] + corners[:, 2]).max() - corners[:, 0].min()
        expect(used > 0.5 * float(root.get("width")) and (corners[:, 0] > 0).all(), f"{name}: {used} of {root.get('width')} are used")
        entry = json.loads((package / "manifest.json").read_text())["variants"][0]["entries"][0]
        for symbol in (symbol["name"] for symbol in entry["symbols"] if len(symbol["name"]) > 3):
            expect(f"= {symbol}" in text and not re.search(rf"\[[^\]]*{re.escape(symbol)}", text), f"{name}: '{symbol}' is not shortened")
