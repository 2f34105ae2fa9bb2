"""What was trained as ONNX again: wherever the model stores its weights, and whatever the file is called."""
import os
import shutil
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import BIN, case, compile_model, expect, onnx_runtime, tool
from programs import SEED
from training_runs import log_of, settings, train, write_config

JUDGED = ["--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels"]


def random(): return np.random.default_rng(SEED)


def weight(g, name, *shape):
    """Numbers of both signs: those of one have no zero point that codes hold."""
    numbers = g.standard_normal(shape, np.float32) / 2
    numbers.flat[0], numbers.flat[-1] = 0.4, -0.4
    return numpy_helper.from_array(numbers, name)


def value(name, *shape, kind=TensorProto.FLOAT): return helper.make_tensor_value_info(name, kind, shape)


def constant(g, name, *shape): return helper.make_node("Constant", [], [name], value=weight(g, "", *shape))


def model(nodes, initializers, functions=()):
    graph = helper.make_graph(nodes, "g", [value("x", "n", 3)], [value("logits", "n", 4)], initializers)
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid("local", 1)] * bool(functions)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=functions)


def data(folder, samples=12):
    g = random()
    x = g.standard_normal((samples, 3), np.float32)
    x -= x.mean()  # of the batches of an epoch one chooses either branch
    np.savez(folder / "data.npz", x=x, labels=g.integers(0, 4, samples))
    return folder / "data.npz"


def branches(then_body, else_body):
    """logits = (x @ wt or x @ we, by the sign of the sum of x) + b; a body has what stores its weight, or the weight."""
    def branch(name, weights):
        nodes = [item for item in weights if isinstance(item, onnx.NodeProto)]
        tensors = [item for item in weights if isinstance(item, TensorProto)]
        stored = tensors[0].name if tensors else nodes[0].output[0]
        return helper.make_graph([*nodes, helper.make_node("MatMul", ["x", stored], ["o" + name])], name, [], [value("o" + name, "n", 4)], tensors)
    return [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Greater", ["s", "zero"], ["c"]),
            helper.make_node("If", ["c"], ["h"], then_branch=branch("t", then_body), else_branch=branch("e", else_body)),
            helper.make_node("Add", ["h", "b"], ["logits"])]


def called(g, calls=1):
    """logits = F(F(x)) + b where F multiplies by a weight of its own."""
    body = [constant(g, "fw", 3, 3), helper.make_node("MatMul", ["a", "fw"], ["o"])]
    inner = helper.make_function("local", "F", ["a"], ["o"], body, [helper.make_opsetid("", 17)])
    outer_body = [helper.make_node("F", ["a"], ["m"], domain="local", name="inner"), constant(g, "gw", 3, 4), helper.make_node("MatMul", ["m", "gw"], ["o"])]
    outer = helper.make_function("local", "G", ["a"], ["o"], outer_body, [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)])
    nodes = [helper.make_node("F", [f"x{i}" if i else "x"], [f"x{i + 1}"], domain="local") for i in range(calls - 1)]
    last = f"x{calls - 1}" if calls > 1 else "x"
    return model([*nodes, helper.make_node("G", [last], ["h"], domain="local"), helper.make_node("Add", ["h", "b"], ["logits"])],
                 [weight(g, "b", 4)], [inner, outer])


def tensors(node_or_graph):
    """All stored tensors below, in the order of the file."""
    for tensor in getattr(node_or_graph, "initializer", ()):
        yield tensor
    for node in node_or_graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from tensors(attribute.g)


def all_tensors(proto):
    return [tensor for part in (proto.graph, *proto.functions) for tensor in tensors(part)]


def exported(folder, proto, *options, moves):
    """Trains, exports, and lets ONNX Runtime say whether the exported model has the last loss of training. `moves` is how many
    stored tensors are learned."""
    onnx.checker.check_model(proto)
    onnx.save(proto, folder / "m.onnx")
    config, given = write_config(folder, settings(("SGD", {"lr": 0.3}))), data(folder)
    for name in ("m.dsp", "ck"):
        shutil.rmtree(folder / name, ignore_errors=True)
    package = compile_model(folder / "m.onnx", folder, *JUDGED, f"--config={config}", *options, name="m.dsp")
    train(package, given, "--steps=9", f"--eval-data={given}", f"--log={folder / 'log.jsonl'}", f"--checkpoint={folder / 'ck'}")
    out = folder / f"out{len(list(folder.glob('out*')))}.onnx"
    tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "-o", out)
    onnx.checker.check_model(onnx.load(out))
    arrays = dict(np.load(given))
    # Branches choose by all of a batch, and an evaluation has batches of four.
    logits = np.concatenate([onnx_runtime(out, {"x": arrays["x"][i:i + 4]})["logits"] for i in range(0, 12, 4)]).astype(float)
    loss = np.mean(np.log(np.exp(logits).sum(1)) - logits[np.arange(12), arrays["labels"]])
    expected = log_of(folder / "log.jsonl")[-1]["eval_loss"]
    expect(abs(loss - expected) < 1e-5 * max(1, loss), f"the exported model has the loss {loss}, training ended with {expected}")
    before, after = onnx.load(folder / "m.onnx"), onnx.load(out)
    one, other = all_tensors(before), all_tensors(after)
    expect(len(one) == len(other), f"{len(other)} tensors, expected {len(one)}")
    moved = sum(not np.array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b)) for a, b in zip(one, other))
    expect(moved == moves, f"{moved} tensors have moved, expected {moves}")
    for tensor in one + other:
        for field in ("raw_data", "float_data"):
            tensor.ClearField(field)
    expect(before.SerializeToString() == after.SerializeToString(), "the graph is another one")
    return package


@case(seconds=3)
def weights_in_branches(folder):
    """Initializers of branches, and values of Constant nodes there."""
    g = random()
    zero = numpy_helper.from_array(np.float32(0), "zero")
    exported(folder, model(branches([weight(g, "wt", 3, 4)], [weight(g, "we", 3, 4)]), [zero, weight(g, "b", 4)]), moves=3)
    exported(folder, model(branches([constant(g, "wt", 3, 4)], [constant(g, "we", 3, 4)]), [zero, weight(g, "b", 4)]), moves=3)
    exported(folder, model(branches([constant(g, "wt", 3, 4)], [weight(g, "we", 3, 4)]), [zero, weight(g, "b", 4)]), "--freeze=^wt$", moves=2)


@case
def weights_in_loops(folder):
    """Of a Scan over the columns of x: h = tanh(h @ w + column), from x @ v."""
    g = random()
    body = helper.make_graph(
        [constant(g, "w", 4, 4), helper.make_node("MatMul", ["h", "w"], ["p"]), helper.make_node("Unsqueeze", ["column", "last"], ["c"]),
         helper.make_node("Add", ["p", "c"], ["a"]), helper.make_node("Tanh", ["a"], ["next"])],
        "body", [value("h", "n", 4), value("column", "n")], [value("next", "n", 4)])
    nodes = [helper.make_node("MatMul", ["x", "v"], ["start"]),
             helper.make_node("Scan", ["start", "x"], ["logits"], body=body, num_scan_inputs=1, scan_input_axes=[1])]
    exported(folder, model(nodes, [weight(g, "v", 3, 4), numpy_helper.from_array(np.array([1]), "last")]), moves=2)


@case(seconds=6)
def weights_in_functions(folder):
    """Functions that call functions; one that is called twice has one weight, whose gradient is that of both calls."""
    exported(folder, called(random()), moves=3)
    exported(folder, called(random(), calls=2), moves=3)


@case
def lists_of_numbers(folder):
    """`value_floats` of a Constant node becomes the tensor that it stands for."""
    g = random()
    proto = model([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Constant", [], ["b"], value_floats=[0.5, -0.25, 1.0, 2.0]),
                   helper.make_node("Add", ["h", "b"], ["logits"])], [weight(g, "w", 3, 4)])
    onnx.save(proto, folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder, *JUDGED)
    train(package, data(folder), "--steps=3", f"--checkpoint={folder / 'ck'}")
    tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "-o", folder / "out.onnx")
    out = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(out)
    found = [numpy_helper.to_array(attribute.t) for node in out.graph.node for attribute in node.attribute if node.op_type == "Constant"]
    expect(len(found) == 1 and found[0].shape == (4,) and not np.allclose(found[0], [0.5, -0.25, 1.0, 2.0]), f"{found}")


@case
def what_no_file_could_hold(folder):
    """Is refused before anything is trained, by name."""
    g = random()
    zero = numpy_helper.from_array(np.float32(0), "zero")

    def refused(proto, *options, says):
        onnx.save(proto, folder / "m.onnx")
        found = tool("ds-opt", folder / "m.onnx", *JUDGED, *options, "-o", folder / "m.dsp", code=1, says=["what is trained could not be exported to ONNX: ", says])
        expect(found.err.count("\n") == 1 and not (folder / "m.dsp").exists(), f"{found}")
    refused(model(branches([weight(g, "w", 3, 4)], [weight(g, "w", 3, 4)]), [zero, weight(g, "b", 4)]),
            says="expected one tensor of the file to be called 'w', found several; rename them")
    twice = called(g, calls=2)
    refused(twice, "--untie", says="are one tensor of a function that is called twice, but are not trained as one")
    tool("ds-opt", folder / "m.onnx", *JUDGED, "--freeze=fw$", "-o", folder / "m.dsp")


@case
def file_without_a_folder(folder):
    """A model with external data is named as it lies in the current folder; some of its data are not trained. The cache then has
    the package for others, and the next call gets the same."""
    g = random()
    proto = model([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["logits"])], [weight(g, "w", 3, 4), weight(g, "b", 4)])
    given, arrays = data(folder), {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    onnx.save(proto, folder / "ext.onnx", save_as_external_data=True, location="ext.bin", size_threshold=0)
    for number, name in enumerate(("ext.onnx", "./ext.onnx", "ext.onnx")):
        result = subprocess.run([BIN / "ds-opt", name, *JUDGED, "--freeze=^w$", "-o", f"m{number}.dsp", "--cache=cache"], cwd=folder, capture_output=True, text=True)
        expect(result.returncode == 0 and not result.stderr, f"{name}: {result.stderr}")
        train(folder / f"m{number}.dsp", given, "--steps=3", f"--checkpoint={folder / f'ck{number}'}")
    for suffix in ("onnx", "bin"):  # the package needs neither
        os.rename(folder / f"ext.{suffix}", folder / f"moved.{suffix}")
    for number in range(3):
        tool("ds-run", "checkpoint", "export", folder / f"ck{number}", f"--package={folder / f'm{number}.dsp'}", "-o", folder / "out.onnx")
        found = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "out.onnx").graph.initializer}
        expect(np.array_equal(found["w"], arrays["w"]) and not np.array_equal(found["b"], arrays["b"]), f"{found}")


@case
def frozen_ties(folder):
    """Neither of two equal tensors is trained: both keep their data."""
    g = random()
    w = g.standard_normal((3, 3), np.float32)
    proto = model([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "again"], ["i"]), helper.make_node("MatMul", ["i", "v"], ["logits"])],
                  [numpy_helper.from_array(w, "w"), numpy_helper.from_array(w, "again"), weight(g, "v", 3, 4)])
    exported(folder, proto, "--freeze=^w$", moves=1)


@case
def steps_of_the_model_itself(folder):
    """What a model says of its own training is left out, by name, and comes back with the exported graph."""
    g = random()
    proto = model([helper.make_node("MatMul", ["x", "w"], ["logits"])], [weight(g, "w", 3, 4)])
    step = helper.make_graph([helper.make_node("Add", ["w", "w"], ["w2"], name="twice")], "step", [], [helper.make_tensor_value_info("w2", TensorProto.FLOAT, [3, 4])])
    info = proto.training_info.add()
    info.algorithm.CopyFrom(step)
    info.update_binding.add(key="w", value="w2")
    onnx.save(proto, folder / "m.onnx")
    said = tool("ds-opt", folder / "m.onnx", "-o", folder / "i.dsp").err
    expect("training_info, whose first node is 'twice', is left out" in said, said)
    package = compile_model(folder / "m.onnx", folder, *JUDGED)
    train(package, data(folder), "--steps=2", f"--checkpoint={folder / 'ck'}")
    tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "-o", folder / "out.onnx")
    expect(onnx.load(folder / "out.onnx").training_info == proto.training_info, "the exported model lacks it")


@case(slow=True)
def beyond_two_gib(folder):
    """A table of 2.4 GB in external data is trained and exported: rows that were chosen are those of a step by paper, others
    have their bits, and so has what lies before and behind them in the file."""
    rows, width, used = 1_150_000, 512, 64
    g = random()
    block = (g.standard_normal((50_000, width)) / 10).astype(np.float32)
    with open(folder / "big.bin", "wb") as file:
        for i in range(rows // len(block)):
            file.write((block + np.float32(i) * np.float32(1e-3)).tobytes())
    original = np.memmap(folder / "big.bin", np.float32, "r", shape=(rows, width))
    table = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=[rows, width], data_location=TensorProto.EXTERNAL)
    for key, entry in (("location", "big.bin"), ("offset", "0"), ("length", str(rows * width * 4))):
        table.external_data.add(key=key, value=entry)
    w = (g.standard_normal((width, 4)) / 10).astype(np.float32)
    graph = helper.make_graph([helper.make_node("Gather", ["table", "ids"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["logits"])], "g",
                              [value("ids", "n", kind=TensorProto.INT64)], [value("logits", "n", 4)], [table, numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "big.onnx")
    ids, labels = g.choice(rows, used, replace=False), g.integers(0, 4, used)
    ids[:2] = 0, rows - 1
    np.savez(folder / "data.npz", ids=ids, labels=labels)
    config = write_config(folder, settings(("SGD", {"lr": 0.5}), micro=used))
    package = compile_model(folder / "big.onnx", folder, *JUDGED, f"--config={config}", "--no-cache", name="m.dsp", timeout=600, memory_gib=20)
    train(package, folder / "data.npz", "--steps=1", "--shuffle=off", f"--checkpoint={folder / 'ck'}", timeout=600, memory_gib=24)
    tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "-o", folder / "out.onnx", timeout=600, memory_gib=20)
    out = onnx.load(folder / "out.onnx", load_external_data=False)
    places = {tensor.name: {entry.key: entry.value for entry in tensor.external_data} for tensor in out.graph.initializer}
    expect({entry["location"] for entry in places.values()} == {"out.onnx.data"}, f"{places}")

    def stored(name, shape):
        return np.memmap(folder / "out.onnx.data", np.float32, "r", offset=int(places[name]["offset"]), shape=shape)
    x, wide = original[ids].astype(float), w.astype(float)
    logits = x @ wide
    p = np.exp(logits - logits.max(1, keepdims=True))
    slope = (p / p.sum(1, keepdims=True) - np.eye(4)[labels]) / used
    found = stored("table", (rows, width))
    for name, ours, theirs in (("w", stored("w", w.shape), wide - 0.5 * x.T @ slope), ("rows of table", found[ids], x - 0.5 * slope @ wide.T)):
        expect(np.allclose(ours, theirs, rtol=1e-5, atol=1e-6), f"{name} are off by {np.max(np.abs(ours - theirs)):.3g}")
    expect(not np.array_equal(found[ids], original[ids]), "nothing was learned")
    others = np.setdiff1d(np.concatenate([g.integers(0, rows, 20_000), ids + 1, ids - 1, [1, rows - 2]]) % rows, ids)
    expect(np.array_equal(found[others], original[others]), "rows that nothing chose have moved")
