"""If whose branches differ in rank, chosen by sizes and small inputs: guarded entries, against ONNX Runtime at each of
their outcomes, and at sizes that are for none."""
import itertools
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, compile_model, distance, expect, onnx_runtime, run_package, tool
from programs import SEED

NUMBERS = itertools.count()
RANDOM = np.random.default_rng(SEED)


def branch(name, nodes, output, shape):
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)])


def choose(condition, then, other):
    """An If; `then` and `other` are (nodes, output, shape)."""
    return helper.make_node("If", [condition], ["chosen"], then_branch=branch("yes", *then),
                            else_branch=branch("no", *other))


def save(folder, nodes, inputs, outputs, initializers):
    values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs]
    graph = helper.make_graph(nodes, "guarded", values, results,
                              [numpy_helper.from_array(np.asarray(value), name)
                               for name, value in initializers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / f"model{next(NUMBERS)}.onnx"  # ONNX Runtime's sessions are kept by name
    onnx.save(model, path)
    return path


def agrees(package, model, inputs, folder, rank=None):
    ours, theirs = run_package(package, inputs, folder), onnx_runtime(model, inputs)
    expect(set(ours) == set(theirs), f"expected outputs {sorted(theirs)}, found {sorted(ours)}")
    for name in theirs:
        far = distance(ours[name], theirs[name])
        expect(far <= 1e-5, f"output {name} is {far:.3g} from ONNX Runtime: a product of 48 numbers in f32")
    if rank is not None:
        expect(ours["y"].ndim == rank, f"expected rank {rank}, found {ours['y'].ndim}")
    return ours


def refuses(package, inputs, folder, *says):
    np.savez(folder / "refused.npz", **inputs)
    tool("ds-run", package, "--inputs", folder / "refused.npz", code=1, says=says)


def rate_model(folder, sr_shape=(), sr_type=TensorProto.INT64):
    """A product with a weight that both branches share, then two axes or one; what follows uses the rate as a number."""
    weight = RANDOM.standard_normal((48, 48)).astype(np.float32)
    of_type = helper.tensor_dtype_to_np_dtype(sr_type)
    initializers = {"weight": weight, "wide": np.array(16000, of_type), "axis": np.array([0]),
                    "scalar": np.array([], np.int64)}
    nodes = [
        helper.make_node("Reshape", ["sr", "scalar"], ["rate"]),
        helper.make_node("Equal", ["rate", "wide"], ["is_wide"]),
        choose("is_wide", ([helper.make_node("MatMul", ["x", "weight"], ["a"])], "a", [None, 48]),
               ([helper.make_node("MatMul", ["x", "weight"], ["m"]),
                 helper.make_node("ReduceSum", ["m", "axis"], ["b"], keepdims=0)], "b", [48])),
        helper.make_node("Cast", ["rate"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["chosen", "real"], ["y"]),
    ]
    return save(folder, nodes, [("x", TensorProto.FLOAT, ["n", 48]), ("sr", sr_type, list(sr_shape))], [("y", None)],
                initializers)


def sound(n):
    return RANDOM.standard_normal((n, 48)).astype(np.float32) * 1000


@case(seconds=3)
def guarded_by_an_input(folder):
    """The rank of the input that steers, and its type, make no difference."""
    for shape, kind in [((), TensorProto.INT64), ((1,), TensorProto.INT32), ((1, 1), TensorProto.INT64)]:
        model = rate_model(folder, shape, kind)
        rate = lambda value: np.full(shape, value, helper.tensor_dtype_to_np_dtype(kind))
        package = compile_model(model, folder)
        for value, rank in [(16000, 2), (8000, 1), (16000, 2), (16001, 1)]:
            for n in (1, 5):
                agrees(package, model, {"x": sound(n), "sr": rate(value)}, folder, rank)
    manifest = json.loads((package / "manifest.json").read_text())
    variant = manifest["variants"][0]
    expect(manifest["format"] == 2, f"expected format 2, found {manifest['format']}")
    expect([entry["name"] for entry in variant["entries"]] == ["main", "main.1"], "expected two entries")
    stored = (package / "weights.bin").stat().st_size
    expect(stored < 1.5 * 48 * 48 * 4, f"expected one weight of {48 * 48 * 4} bytes, found {stored} bytes")


@case(seconds=6)
def guarded_with_every_option(folder):
    """--dim leaves one outcome and no input, the reference has the same entries, --check and the tools take them."""
    model = rate_model(folder)
    x, rate = sound(3), np.array(16000)
    pinned = compile_model(model, folder, "--dim", "sr=16000", name="pinned.dsp")
    expect(distance(run_package(pinned, {"x": x}, folder)["y"], onnx_runtime(model, {"x": x, "sr": rate})["y"]) <= 1e-5,
           "the pinned package differs from ONNX Runtime")
    expect("guards" not in (pinned / "manifest.json").read_text(), "expected no guards where the rate is pinned")
    package = compile_model(model, folder)
    for kind in ("--reference", "--reference=f64"):
        reference = compile_model(model, folder, kind, name="reference.dsp")
        for value in (16000, 8000):
            agrees(reference, model, {"x": x, "sr": np.array(value)}, folder)
    expect(": supported" in tool("ds-opt", model, "--check").out, "--check supports both outcomes")
    expect("import" in tool("ds-opt", model, "--check", "--report").out, "--report counts them")
    np.savez(folder / "inputs.npz", x=x, sr=rate)
    inputs = ("--inputs", folder / "inputs.npz")
    for entry in ((), ("--entry", "main"), ("--entry", "main.1", "--input", "sr=8000")):
        tool("ds-run", "compare", package, folder / "reference.dsp", *inputs, *entry, "--rtol=1e-4", "--atol=1e-6")
    (folder / "test_data_set_0").mkdir()
    tool("ds-run", "compare", package, folder / "test_data_set_0", *inputs, code=2,
         says=["--input and --inputs are for two packages"])
    expect("'main'" in tool("ds-run", "bench", package, *inputs, "--duration", "0.05").out, "bench names the entry")
    tool("ds-run", "profile", package, *inputs)
    tool("ds-run", "inspect", package, "--graph", folder / "a.dot", "--entry", "main.1")
    expect("not eq(16000, sr[0])" in (folder / "a.dot").read_text(), "the graph's title names the guards")
    for phase in ("import", "graph", "optimization", "memory"):
        text = tool("ds-opt", model, f"--stop-after={phase}").out
        expect(text.count("ds.guards") == 2 and "@main.1" in text, f"after {phase} the guards are gone")
    # What a phase wrote can be compiled further.
    (folder / "graph.mlir").write_text(tool("ds-opt", model, "--stop-after=graph").out)
    again = compile_model(folder / "graph.mlir", folder, name="again.dsp")
    agrees(again, model, {"x": x, "sr": np.array(8000)}, folder, 1)


@case
def guarded_by_sizes(folder):
    """A dimension steers: one row loses its axis; a Transpose then takes two axes only, so that one row is refused."""
    initializers = {"axis": np.array([0]), "at": np.array(0), "one": np.array(1)}
    shape = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "at"], ["n"]),
             helper.make_node("Equal", ["n", "one"], ["is_one"])]
    chosen = choose("is_one", ([helper.make_node("Squeeze", ["x", "axis"], ["a"])], "a", [4]),
                    ([helper.make_node("Neg", ["x"], ["b"])], "b", [None, 4]))
    inputs = [("x", TensorProto.FLOAT, ["n", 4])]
    model = save(folder, [*shape, chosen, helper.make_node("Exp", ["chosen"], ["y"])], inputs, [("y", None)],
                 initializers)
    package = compile_model(model, folder)
    for n in (1, 2, 7, 1):
        agrees(package, model, {"x": RANDOM.standard_normal((n, 4)).astype(np.float32)}, folder, 1 if n == 1 else 2)

    model = save(folder, [*shape, chosen, helper.make_node("Transpose", ["chosen"], ["y"], perm=[1, 0])], inputs,
                 [("y", None)], initializers)
    tool("ds-opt", model, "-o", folder / "partly.dsp", says=["warning: where eq(1, n) holds the model cannot be"])
    agrees(folder / "partly.dsp", model, {"x": RANDOM.standard_normal((3, 4)).astype(np.float32)}, folder, 2)
    refuses(folder / "partly.dsp", {"x": np.ones((1, 4), np.float32)}, folder,
            "compiled for other sizes and inputs: found n = 1, expected not eq(1, n)")


@case
def guarded_by_a_bool_and_a_size(folder):
    """Conditions of conditions: And and Not over an input of one bool and a comparison of sizes."""
    initializers = {"axis": np.array([0]), "at": np.array(0), "four": np.array(4), "scalar": np.array([], np.int64)}
    nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "at"], ["n"]),
             helper.make_node("Greater", ["n", "four"], ["is_long"]), helper.make_node("Not", ["flag"], ["is_off"]),
             helper.make_node("And", ["is_off", "is_long"], ["both"]),
             helper.make_node("Reshape", ["both", "scalar"], ["chooses"]),
             choose("chooses", ([helper.make_node("Unsqueeze", ["x", "axis"], ["a"])], "a", [1, None, 4]),
                    ([helper.make_node("Neg", ["x"], ["b"])], "b", [None, 4])),
             helper.make_node("Exp", ["chosen"], ["y"])]
    model = save(folder, nodes, [("x", TensorProto.FLOAT, ["n", 4]), ("flag", TensorProto.BOOL, [1])], [("y", None)],
                 initializers)
    package = compile_model(model, folder)
    for n in (1, 4, 5):
        for flag in (False, True):
            agrees(package, model, {"x": RANDOM.standard_normal((n, 4)).astype(np.float32), "flag": np.array([flag])},
                   folder, 3 if n > 4 and not flag else 2)


# Two entries of one group add to one state; which of them depends on how many rows there are.
STATEFUL = """
func.func @main(%x: tensor<?xf32> {ds.name = "x", ds.dims = ["n"]}, %s: tensor<f32> {ds.state = "total"})
    -> (tensor<f32> {ds.name = "y"}, tensor<f32> {ds.state = "total"})
    attributes {ds.entry, ds.group = "main", ds.guards = [{condition = "lt(n, 3)", holds = true}]} {
  %r = ds.reduce sum %x axes [0] keep false : (tensor<?xf32>) -> tensor<f32>
  %t = ds.binary add %s, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %y = ds.unary neg %t : (tensor<f32>) -> tensor<f32>
  return %y, %t : tensor<f32>, tensor<f32>
}
func.func @main.1(%x: tensor<?xf32> {ds.name = "x", ds.dims = ["n"]}, %s: tensor<f32> {ds.state = "total"})
    -> (tensor<f32> {ds.name = "y"}, tensor<f32> {ds.state = "total"})
    attributes {ds.entry, ds.group = "main", ds.guards = [{condition = "lt(n, 3)", holds = false}]} {
  %r = ds.reduce max %x axes [0] keep false : (tensor<?xf32>) -> tensor<f32>
  %t = ds.binary add %s, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %y = ds.unary abs %t : (tensor<f32>) -> tensor<f32>
  return %y, %t : tensor<f32>, tensor<f32>
}
"""


@case
def guarded_entries_share_states(folder):
    (folder / "state.mlir").write_text(STATEFUL)
    package = compile_model(folder / "state.mlir", folder)
    total = 0.0
    for number, values in enumerate([[1, 2], [5, 6, 7], [4], [1, 2, 3, 4]]):
        np.savez(folder / "x.npz", x=np.array(values, np.float32))
        states = ["--state-out", folder / f"{number}.npz"]
        if number:
            states += ["--state-in", folder / f"{number - 1}.npz"]
        tool("ds-run", package, "--inputs", folder / "x.npz", "--output", folder / "y.npz", *states)
        total += sum(values) if len(values) < 3 else max(values)
        expected = -total if len(values) < 3 else total
        found = float(np.load(folder / "y.npz")["y"])
        expect(found == expected, f"after call {number} expected {expected}, found {found}")
    # A pinned dimension leaves the entry that is for it, without guards.
    pinned = compile_model(folder / "state.mlir", folder, "--dim", "n=5", name="pinned.dsp")
    np.savez(folder / "x.npz", x=np.array([1, 2, 9, 2, 1], np.float32))
    tool("ds-run", pinned, "--inputs", folder / "x.npz", "--output", folder / "y.npz")
    expect(float(np.load(folder / "y.npz")["y"]) == 9, "the entry for more than two rows")
    expect("guards" not in (pinned / "manifest.json").read_text(), "expected no guards")


@case
def states_of_one_name_are_of_one_type_and_shape(folder):
    parts = STATEFUL.partition("func.func @main.1")
    for grouped in True, False:
        for kind, says in ("tensor<2xf32>", "f32[2]"), ("tensor<f64>", "f64[]"):
            second = parts[2].replace('tensor<f32> {ds.state', f'{kind} {{ds.state').replace(
                "%t = ds.binary add %s, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>",
                f"%t = ds.unary neg %s : ({kind}) -> {kind}").replace(
                "%y = ds.unary abs %t", "%y = ds.unary abs %r").replace("return %y, %t : tensor<f32>, tensor<f32>",
                                                                        f"return %y, %t : tensor<f32>, {kind}")
            if not grouped:
                second = second.replace('ds.group = "main", ', "").replace(
                    ', ds.guards = [{condition = "lt(n, 3)", holds = false}]', "")
            (folder / "states.mlir").write_text(parts[0] + parts[1] + second)
            tool("ds-opt", folder / "states.mlir", "-o", folder / "states.dsp", code=1,
                 says=[f"state 'total' of entry 'main.1': expected f32[], as in entry 'main', found {says}"])


@case
def guards_of_a_program_are_checked(folder):
    for text, says in [
            (STATEFUL.replace('{condition = "lt(n, 3)", holds = true}', '{condition = "lt(n,", holds = true}'),
             "expects 'ds.guards' to hold guards such as"),
            (STATEFUL.replace('[{condition = "lt(n, 3)", holds = true}]', '"lt(n, 3)"'), "expects 'ds.guards' to hold"),
            (STATEFUL.replace('holds = true', 'holds = 1 : i64'), "expects 'ds.guards' to hold guards such as")]:
        (folder / "bad.mlir").write_text(text)
        tool("ds-opt", folder / "bad.mlir", "-o", folder / "bad.dsp", code=1, says=says)
