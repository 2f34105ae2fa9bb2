"""The command lines that scripts of users rely on."""
import json
from xml.etree import ElementTree

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

import generate
from kit import BIN, MINILM, case, compile_model, expect, onnx_runtime, run_package, tool

X = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}


def small_package(folder, *options):
    model = generate.save(generate.small(), folder / "small.onnx")
    return model, compile_model(model, folder, *options)


@case
def help_and_version(folder):
    for name in ("ds-opt", "ds-run"):
        lines = tool(name, "--help").out.count("\n")
        expect(10 < lines <= 80, f"{name} --help has {lines} lines, expected at most 80")
        expect("0." in tool(name, "--version").out, f"{name} --version names no version")


@case
def usage_errors(folder):
    model, package = small_package(folder)
    out = folder / "out.dsp"
    for arguments in (["--no-such-flag"], ["--dim", "n"], ["--dim", "n=-1"], ["--dim", "n=1.5"], ["--dim", "n=n"], ["--stop-after=nonsense"],
                      ["--mcpu=nonsense"], ["--reference=f16"]):
        tool("ds-opt", model, "-o", out, *arguments, code=2)
        expect(not out.exists(), f"ds-opt {' '.join(arguments)} left a package behind")
    n = "--dim=n=3"
    for arguments in ([], [package, n, "--no-such-flag"], [package, n, "--threads=0"], [package, n, "--threads=x"],
                      [package, n, "--input", "x"], [package, n, "--input", "nosuch=1"], [package, "--dim", "n"],
                      [package, n, "--inputs", folder / "none.npz"], ["compare", package], ["bench"], ["inspect"],
                      [package, package, n]):
        result = tool("ds-run", *arguments, code=None)
        expect(result.code in (1, 2) and result.err, f"expected exit code 2: {result}")
        expect(result.code == 2 or "--inputs" in result.command, f"expected exit code 2: {result}")


@case
def numbers_and_names_that_are_none(folder):
    model, package = small_package(folder)
    n = "--dim=n=3"
    for arguments in ([package, n, "--seed=-1"], [package, n, "--seed=x"], [package, n, "--timeout=nan"], [package, n, "--output="],
                      [package, n, "--state-out="], ["bench", package, n, "--duration=nan"], ["bench", package, n, "--json="],
                      ["compare", package, package, n, "--rtol=nan"], ["compare", package, package, n, "--atol=-1"],
                      ["compare", package, package, n, "--rtol=inf"], ["inspect", package, "--graph="]):
        result = tool("ds-run", *arguments, code=2)
        expect(len(result.err.splitlines()) == 1, f"expected one line: {result}")


@case
def files_that_would_take_the_place_of_others_are_refused(folder):
    _, package = small_package(folder)
    n, before = "--dim=n=3", {file.name: file.read_bytes() for file in package.iterdir()}
    (folder / "link").symlink_to(package / "weights.bin")
    for arguments, says in ((["profile", package, n, "--html", package / "manifest.json"], "--html: '"),
                            ([package, n, "--output", package / "weights.bin"], "lies in a package"),
                            ([package, n, "--state-out", package / "other.npz"], "--state-out: '"),
                            ([package, n, "--output", folder / "link"], "lies in a package"),
                            (["bench", package, n, "--json", package / "x.json"], "lies in a package"),
                            (["inspect", package, "--graph", package / "x.svg"], "lies in a package"),
                            (["profile", package, n, "--html", folder / "s", "--trace", folder / "." / "s"], "is what --html writes"),
                            (["profile", package, n, "--html", folder / "s", "--json", folder / "s"], "is what --json writes"),
                            ([package, n, "--output", folder / "s", "--state-out", folder / "t" / ".." / "s"], "is what --output writes"),
                            (["checkpoint", "export", folder / "none", "--package", package, "-o", package / "x.onnx"], "--output: '"),
                            (["train", package, "--data=none.npz", "--html", folder / "s", "--log", folder / "s"], "is what --html writes")):
        result = tool("ds-run", *arguments, code=2, says=says)
        expect(len(result.err.splitlines()) == 1, f"expected one line: {result}")
        expect({file.name: file.read_bytes() for file in package.iterdir()} == before, f"the package has changed: {result}")
        expect(not (folder / "s").exists(), f"a file all the same: {result}")
    tool("ds-run", "profile", package, n, "--iterations=2", "--html=/dev/null", "--trace=/dev/null")


@case
def devices_are_written_to_and_not_replaced(folder):
    """A pipe stands for them: what is written arrives, and the pipe is still there."""
    import os
    import threading
    model, package = small_package(folder)
    for name, *arguments in (["ds-run", package, "--dim=n=3", "--output"], ["ds-opt", model, "--stop-after=graph", "-o"]):
        pipe, seen = folder / f"{name}.pipe", []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()))
        reader.start()
        tool(name, *arguments, pipe)
        reader.join(10)
        expect(pipe.is_fifo() and seen and len(seen[0]) > 100, f"{name}: found {seen}")


@case
def unbound_dimension(folder):
    _, package = small_package(folder)
    result = tool("ds-run", package, code=2)
    expect("'n'" in result.err or " n" in result.err, f"expected the dimension's name: {result}")
    tool("ds-run", "bench", package, code=2)


@case
def pinned_dimensions(folder):
    model, package = small_package(folder, "--dim", "n=3")
    inspected = json.loads(tool("ds-run", "inspect", package, "--json").out)
    expect("\"n\"" not in json.dumps(inspected["variants"][0]["entries"][0]["inputs"]), "n is still a dimension")
    tool("ds-run", package)
    expected = onnx_runtime(model, X)["y"]
    expect(np.allclose(run_package(package, X, folder)["y"], expected, 1e-5, 1e-5), "wrong numbers")
    np.savez(folder / "wrong.npz", x=np.zeros((2, 4), np.float32))
    tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1)
    result = tool("ds-opt", model, "-o", folder / "b.dsp", "--dim", "nosuch=3", code=None)
    expect(result.code in (1, 2) and "nosuch" in result.err, f"expected the unknown dimension to be named: {result}")


@case
def ways_to_give_inputs(folder):
    _, package = small_package(folder)
    expected = run_package(package, X, folder)["y"]
    data = folder / "test_data_set_0"
    data.mkdir()
    np.save(folder / "x.npy", X["x"])
    np.save(folder / "fortran.npy", np.asfortranarray(X["x"]))
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(X["x"], "x").SerializeToString())
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(expected, "y").SerializeToString())
    out = folder / "out.npz"
    for arguments in (["--input", f"x=@{folder}/x.npy"], ["--input", f"x=@{folder}/fortran.npy"],
                      ["--input", f"x=@{data}/input_0.pb"], ["--inputs", data]):
        tool("ds-run", package, *arguments, "--output", out)
        expect(np.array_equal(np.load(out)["y"], expected), f"{arguments}: other numbers")
    printed = tool("ds-run", package, "--inputs", data).out
    expect("y" in printed and "f32" in printed and "3" in printed, f"expected name, type and shape: {printed}")
    first = tool("ds-run", package, "--dim", "n=2", "--seed=1").out
    expect(first == tool("ds-run", package, "--dim", "n=2", "--seed=1").out, "the same seed gives another digest")
    expect(first != tool("ds-run", package, "--dim", "n=2", "--seed=2").out, "another seed gives the same digest")


@case(seconds=3)
def random_tokens_stay_in_bounds(folder):
    """Random integers stay below the bound of the Gather that consumes them."""
    model = generate.save(generate.bert(layers=1, hidden=8, heads=2, vocabulary=7), folder / "bert.onnx")
    package = compile_model(model, folder)
    for seed in range(5):
        tool("ds-run", package, "--dim", "batch=3", "--dim", "sequence=50", f"--seed={seed}")


@case
def compare_with_test_data(folder):
    _, package = small_package(folder)
    expected = run_package(package, X, folder)["y"]
    data = folder / "test_data_set_0"
    data.mkdir()
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(X["x"], "x").SerializeToString())

    def compare(output, *options, code):
        (data / "output_0.pb").write_bytes(numpy_helper.from_array(output, "y").SerializeToString())
        tool("ds-run", "compare", package, data, *options, code=code)

    off = expected.copy()
    off[1, 2] += 0.01
    wrong, nan = expected.copy(), expected.copy()
    nan[0, 0] = np.nan
    wrong[0, 0] = np.inf
    compare(expected, code=0)
    compare(off, code=1)
    compare(off, "--atol=0.1", code=0)
    compare(nan, "--rtol=1e30", "--atol=1e30", code=1)
    compare(wrong, code=1)
    compare(expected[:2], code=1)
    compare(expected.astype(np.float64), code=1)
    compare(expected.reshape(8, 3), code=1)


@case
def compare_is_exact_on_integers_and_booleans(folder):
    """A relative tolerance is for rounding; an absolute one says of integers, too, how far is near."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.INT32, [3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, [3]), helper.make_tensor_value_info("b", TensorProto.BOOL, [3])]
    nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Cast", ["x"], ["b"], to=TensorProto.BOOL)]
    opsets = [helper.make_opsetid("", 18)]
    save(helper.make_model(helper.make_graph(nodes, "m", inputs, outputs), opset_imports=opsets, ir_version=8), folder / "m.onnx")
    package, data = compile_model(folder / "m.onnx", folder), folder / "test_data_set_0"
    data.mkdir()
    x = np.array([1000500, 0, -7], np.int32)

    def compare(y, b, *options, code):
        for name, array in (("input_0", x), ("output_0", y), ("output_1", b)):
            (data / f"{name}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())
        tool("ds-run", "compare", package, data, *options, code=code)

    suite = ("--rtol=1e-3", "--atol=1e-7")
    compare(x, x != 0, code=0)
    for options in ((), suite, ("--rtol=1e-3",), ("--atol=499",)):
        compare((x - [500, 0, 0]).astype(np.int32), x != 0, *options, code=1)
    compare((x - [500, 0, 0]).astype(np.int32), x != 0, "--atol=500", code=0)
    compare(x, x == 0, "--rtol=1", "--atol=1", code=1)


@case
def compare_packages(folder):
    """The optimised program against the reference, per block."""
    model = generate.save(generate.bert(layers=1, hidden=16, heads=2), folder / "bert.onnx")
    package = compile_model(model, folder)
    reference = compile_model(model, folder, "--reference", name="reference.dsp")
    result = tool("ds-run", "compare", package, reference, "--dim=batch=2", "--dim=sequence=5", "--rtol=1e-3", "--atol=1e-5")
    expect("last_hidden_state" in result.out, f"expected a line per output: {result}")


@case(seconds=4)
def bench_json(folder):
    _, package = small_package(folder)
    path = folder / "bench.json"
    tool("ds-run", "bench", package, "--dim", "n=64", "--duration=0.2", "--threads=1", "--json", path)
    report = json.loads(path.read_text())
    latency = report["latency_ms"]
    order = [latency[key] for key in ("min", "median", "p90", "p95", "p99")]
    expect(order == sorted(order) and order[0] > 0 and latency["mean"] > 0, f"latencies out of order: {latency}")
    expect(report["bytes"] == 4 * (4 * 8 + 8 + 64 * 4 + 64 * 8), f"bytes: {report['bytes']}")
    expect(report["flops"] >= 2 * 64 * 4 * 8, f"flops: {report['flops']}")
    for key in ("stream_gbps", "working_set_gbps", "cache_gbps", "f32_gflops", "bf16_gflops", "int8_gops", "int8_pairs_gops", "int16_gops", "amx_bf16_gflops", "amx_int8_gops"):
        figure = report["ceilings"][key]
        expect(figure is None or figure > 0, f"ceiling {key}: {figure}")
    expect(report["ceilings"]["stream_gbps"] > 1 and report["ceilings"]["f32_gflops"] > 1, "ceilings are missing")
    expect(0 < report["roofline_ms"] and report["roofline_fraction"] > 0, "roofline is missing")


@case(seconds=4)
def bench_counts_the_rows_that_are_read(folder):
    """An embedding table is not read whole; weights of a product are, once, however many launches read them."""
    table = numpy_helper.from_array(np.ones((1000, 16), np.float32), "table")
    weight = numpy_helper.from_array(np.ones((16, 16), np.float32), "w")
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("MatMul", ["rows", "w"], ["h"]),
             helper.make_node("MatMul", ["h", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [generate.value("ids", TensorProto.INT64, "n")],
                              [generate.value("y", TensorProto.FLOAT, "n", 16)], [table, weight])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder)
    for n in (3, 4000):
        path = folder / "bench.json"
        tool("ds-run", "bench", package, f"--dim=n={n}", "--duration=0.05", "--threads=1", "--json", path)
        report = json.loads(path.read_text())
        packed = [kernel for kernel in report["kernels"] if kernel["kernel"].startswith("linear")][0]["memory_bytes"]
        expect(report["flops"] == 2 * 2 * n * 16 * 16, f"flops: {report['flops']}")
        weights = report["bytes"] - 8 * n - 64 * min(n, 1000) - 64 * n  # in panels, which may be padded
        expect(64 * 16 <= weights <= 64 * 64, f"n = {n}: {report['bytes']} bytes, {weights} of them for the weights; {packed}")


@case
def inspect_and_check(folder):
    model, package = small_package(folder)
    text = tool("ds-run", "inspect", package).out
    expect("x" in text and "y" in text and text.count("\n") <= 60, f"expected one screen: {text}")
    tool("ds-opt", "--check", model)
    tool("ds-run", "inspect", package, "--graph", folder / "graph.svg")
    boxes = [element for element in ElementTree.parse(folder / "graph.svg").iter() if element.tag.endswith("}g")]
    expect(any("linear" in "".join(box.itertext()) for box in boxes), "expected a box of the linear layer")
    result = tool("ds-opt", model, "-o", folder / "r.dsp", "--report")
    expect("1 linear" in result.out + result.err, f"expected a report of the product that became linear: {result}")


@case
def phases_and_dumps(folder):
    model, _ = small_package(folder)
    for phase in ("import", "graph", "optimization", "memory"):
        text = tool("ds-opt", model, f"--stop-after={phase}").out
        expect("func.func" in text and "onnx.node" not in text, f"--stop-after={phase} printed: {text[:300]}")
    tool("ds-opt", model, "-o", folder / "d.dsp", "--dump-dir", folder / "dumps")
    names = sorted(path.name for path in (folder / "dumps").glob("*.mlir"))
    expect(len(names) >= 4, f"expected a file per phase, found {names}")
    tool("ds-opt", model, "--emit=mlir", "-o", folder / "model.mlir")
    expect("func.func" in (folder / "model.mlir").read_text(), "--emit=mlir wrote no function")


@case
def unsupported_operators(folder):
    """All of them, in one report."""
    nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="first", domain="com.example"),
             helper.make_node("Relu", ["a"], ["b"], name="fine"),
             helper.make_node("Mystery", ["b"], ["c"], name="second"),
             helper.make_node("Frobnicate", ["c"], ["y"], name="third", domain="com.example")]
    graph = helper.make_graph(nodes, "g", [generate.value("x", TensorProto.FLOAT, 2)], [generate.value("y", TensorProto.FLOAT, 2)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)])
    path = generate.save(model, folder / "unknown.onnx")
    for arguments in ([path, "-o", folder / "out.dsp"], ["--check", path]):
        tool("ds-opt", *arguments, code=1, says=["Frobnicate", "Mystery", "first", "second", "third", "17"])


@case
def reports_on_a_real_model(folder):
    result = tool("ds-opt", MINILM, "-o", folder / "m.dsp", "--report")
    expect(len((result.out + result.err).splitlines()) >= 2, f"expected what each pass did: {result}")


@case
def tools_need_no_repository(folder):
    """Compiles and runs in another folder, by relative names."""
    import subprocess
    generate.save(generate.small(), folder / "small.onnx")
    for command in (["ds-opt", "small.onnx", "-o", "small.dsp"], ["ds-run", "small.dsp", "--dim", "n=1"]):
        done = subprocess.run([BIN / command[0], *command[1:]], cwd=folder, capture_output=True, text=True)
        expect(done.returncode == 0, f"{command}: {done.stderr}")
