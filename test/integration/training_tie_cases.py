"""Weights that a model stores twice are one parameter: what it learns, and what an exported model has of it."""
import subprocess

import numpy as np
import onnx
from onnx import numpy_helper

from kit import case, compile_model, expect, tool
from programs import SEED

TEXT = """<ir_version: 9, opset_import: ["": 17]>
          m (int64[n] ids, float[n, 4] x) => (float[n, 5] logits, float[n, 4] rows)
          { rows = Gather <axis = 0> (table, ids) z = Add (rows, x) logits = MatMul (z, head) }"""


def model(folder):
    g = np.random.default_rng(SEED)
    table = g.standard_normal((5, 4), np.float32)
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.initializer.extend([numpy_helper.from_array(table, "table"), numpy_helper.from_array(table.T.copy(), "head")])
    onnx.save(proto, folder / "m.onnx")
    ids, labels, x = g.integers(0, 5, 6), g.integers(0, 5, 6), g.standard_normal((6, 4), np.float32)
    np.savez(folder / "data.npz", ids=ids, x=x, labels=labels)
    return table.astype(float), ids, x.astype(float), labels


def slopes(table, head, ids, x, labels):
    """Of the mean cross-entropy, with respect to table and head, by paper."""
    z = table[ids] + x
    logits = z @ head
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d = (p - np.eye(5)[labels]) / len(ids)
    by_table = np.zeros_like(table)
    np.add.at(by_table, ids, d @ head.T)
    return by_table, z.T @ d


def compile_for(folder, *options):
    return compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels", *options)


def gradients(folder, package):
    tool("ds-run", "gradients", package, f"--inputs={folder / 'data.npz'}", f"--output={folder / 'g.npz'}")
    return dict(np.load(folder / "g.npz"))


@case(seconds=4)
def one_parameter(folder):
    """Its gradient is the sum of both; with --untie there are two."""
    table, ids, x, labels = model(folder)
    by_table, by_head = slopes(table, table.T, ids, x, labels)
    found = gradients(folder, compile_for(folder))
    expect(set(found) == {"loss", "table"}, f"found {sorted(found)}")
    # f32 against float64: some tens of roundings of numbers near 1.
    expect(np.allclose(found["table"], by_table + by_head.T, atol=1e-5), f"{found['table']}, expected {by_table + by_head.T}")
    found = gradients(folder, compile_for(folder, "--untie"))
    expect(set(found) == {"loss", "table", "head"}, f"found {sorted(found)}")
    expect(np.allclose(found["table"], by_table, atol=1e-5) and np.allclose(found["head"], by_head, atol=1e-5), f"{found}")


@case
def exported(folder):
    """Both tensors of the file get what was learned, each in its layout."""
    table, *_ = model(folder)
    package = compile_for(folder)
    tool("ds-run", "train", package, f"--data={folder / 'data.npz'}", "--steps=3", f"--checkpoint={folder / 'ck'}")
    tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "-o", folder / "out.onnx")
    tool("ds-run", "checkpoint", "export", folder / "ck", "-o", folder / "out.safetensors")
    trained = onnx.load(folder / "out.onnx")
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in trained.graph.initializer}
    expect(set(arrays) == {"table", "head"} and np.array_equal(arrays["table"], arrays["head"].T), f"{arrays}")
    expect(not np.array_equal(arrays["table"], table.astype(np.float32)), "nothing was learned")
    original = onnx.load(folder / "m.onnx")
    for proto in (original, trained):
        del proto.graph.initializer[:]
    expect(original.SerializeToString() == trained.SerializeToString(), "the graph is another one")


@case(seconds=12)
def named(folder):
    """--freeze, --train and --no-decay mean the parameter by either name."""
    table, *_ = model(folder)
    proto = onnx.load(folder / "m.onnx")
    proto.graph.node.add(op_type="Add", input=["product", "bias"], output=["logits"])
    proto.graph.node[2].output[0] = "product"
    proto.graph.initializer.append(numpy_helper.from_array(np.arange(5, dtype=np.float32), "bias"))
    onnx.save(proto, folder / "m.onnx")
    for name in ("head", "table"):
        for option, trained in (("freeze", {"bias"}), ("train", {"table"})):
            found = set(gradients(folder, compile_for(folder, f"--{option}=^{name}$"))) - {"loss"}
            expect(found == trained, f"--{option}=^{name}$ trains {sorted(found)}, expected {sorted(trained)}")
    # One step at this decay halves what decays; the rest of the step moves each element by the rate.
    (folder / "c.json").write_text('{"train_micro_batch_size_per_gpu": 6, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, '
                                   '"weight_decay": 5000}}}')
    for name, left in (("head", 1), ("table", 1), ("bias", 0.5)):
        package = compile_for(folder, f"--no-decay=^{name}$", f"--config={folder / 'c.json'}")
        tool("ds-run", "train", package, f"--data={folder / 'data.npz'}", "--steps=1", f"--checkpoint={folder / name}")
        tool("ds-run", "checkpoint", "export", folder / name, f"--package={package}", "-o", folder / "out.onnx")
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "out.onnx").graph.initializer}
        expect(np.allclose(arrays["table"], left * table, atol=2e-4), f"--no-decay=^{name}$: {arrays['table']} of {table}")


@case
def stored_thrice(folder):
    """Two heads that are one are then tied to the table: all three tensors of the file get what was learned."""
    table, ids, x, labels = model(folder)
    proto = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["": 17]>
        m (int64[n] ids, float[n, 4] x) => (float[n, 5] logits)
        { a = MatMul (x, head) b = MatMul (x, other) rows = Gather <axis = 0> (table, ids) c = MatMul (rows, head) d = Add (a, b) logits = Add (c, d) }""")
    array = table.astype(np.float32)
    proto.graph.initializer.extend([numpy_helper.from_array(array.T.copy(), "head"), numpy_helper.from_array(array.T.copy(), "other"),
                                    numpy_helper.from_array(array, "table")])
    onnx.save(proto, folder / "m.onnx")
    package = compile_for(folder)
    tool("ds-run", "train", package, f"--data={folder / 'data.npz'}", "--steps=3", f"--checkpoint={folder / 'ck'}")
    tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "-o", folder / "out.onnx")
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "out.onnx").graph.initializer}
    expect(set(arrays) == {"table", "head", "other"} and not np.array_equal(arrays["table"], array), f"{arrays}")
    for name in ("head", "other"):
        expect(np.array_equal(arrays[name], arrays["table"].T), f"{name}: {arrays[name]}, expected {arrays['table'].T}")
