"""Tables of embeddings in 8 bits (--quantize) against NumPy, which quantizes on its own."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from kit import case, compile_model, expect, processors, run_package, tool
from norm_cases import launches_of
from programs import SEED
from quantized_weight_cases import UNIT, constants, quantized


def tied(random, words, hidden):
    """Rows of a table, and their products with all of it."""
    table = (random.standard_normal((words, hidden)) * np.exp(random.standard_normal((words, 1)))).astype(np.float32)
    table[random.integers(words)] = 0
    nodes = [helper.make_node("Gather", ["table", "i"], ["rows"], name="embed"), helper.make_node("Transpose", ["table"], ["t"], perm=[1, 0]),
             helper.make_node("MatMul", ["rows", "t"], ["y"], name="head")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("i", TensorProto.INT64, ["b", "n"])],
                              [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["b", "n", hidden]),
                               helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", "n", words])],
                              [numpy_helper.from_array(table, "table")])
    return table, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@case(seconds=23)
def rows_of_tables_in_bytes(folder):
    random = np.random.default_rng([SEED, 7])
    for words, hidden in ((50, 33), (131, 64), (1000, 48)):
        table, model = tied(random, words, hidden)
        onnx.save(model, str(folder / "m.onnx"))
        for options in (["--quantize=int8"], ["--quantize=int8,group=24"], ["--quantize=int4,group=16"], ["--quantize=int4"], *(["--quantize=int8", f"--mcpu={cpu}"] for cpu in processors()),
                        ["--quantize=int8", "--reference"], ["--quantize=int8", "--reference=f64"]):
            group = {"--quantize=int8,group=24": 24, "--quantize=int4,group=16": 16}.get(options[0], 32)
            stands, scales, _ = quantized(table.T, 8, group if hidden % group == 0 else 0, "symmetric")
            right = stands.T.astype(np.float32)  # one rounding
            package = compile_model(folder / "m.onnx", folder, *options)
            ids = random.integers(-words, words, (3, 5))
            rows = run_package(package, {"i": ids}, folder)["rows"]
            what = f"{options} {table.shape} (DS_SEED={SEED})"
            expect(np.array_equal(rows.astype(np.float32), right[ids]), f"{what}: {np.argwhere(rows != right[ids])[:3].tolist()} differ")
            bound = np.abs(scales.T[ids]) * (0.5 + 256 * UNIT) + UNIT * np.abs(table[ids])
            expect((np.abs(rows - table[ids].astype(np.float64)) <= bound).all(), f"{what}: beyond half a step")
            launches = launches_of(package)
            expect(len(launches) == 2 or "--reference=f64" in options, f"{what}: {len(launches)} launches for rows and their products")
        found = {name: info["bytes"] for name, (info, _) in constants(package).items()}
        expect(max(found.values()) <= words * hidden * 1.6 + 4096, f"a table of floats is left: {found}")
        tool("ds-run", package, "--input", f"i=[[{words}]]", code=1)


@case
def a_table_alone_is_enough(folder):
    """Without a product, or where those are kept, --quantize has done something; without a table, too, it fails."""
    random = np.random.default_rng([SEED, 9])
    table, model = tied(random, 40, 64)
    ids = random.integers(-40, 40, (2, 3))
    onnx.save(model, str(folder / "m.onnx"))
    del model.graph.node[1:], model.graph.output[1:]
    onnx.save(model, str(folder / "rows.onnx"))
    right = quantized(table.T, 8, 32, "symmetric")[0].T.astype(np.float32)
    for name, option in (("rows", "--quantize=int4"), ("m", "--quantize=int8,keep=head")):
        found = run_package(compile_model(folder / f"{name}.onnx", folder, option), {"i": ids}, folder)
        expect(np.array_equal(found["rows"], right[ids]), f"{name}: other rows (DS_SEED={SEED})")
        if name == "m":
            far, bound = np.abs(found["y"] - right[ids].astype(np.float64) @ table.T), 70 * UNIT * (np.abs(right[ids]) @ np.abs(table.T))
            expect((far <= bound).all(), f"the product that was kept is off by {far.max()} (DS_SEED={SEED})")
    tool("ds-opt", folder / "rows.onnx", "-o", folder / "no.dsp", "--quantize=int8,keep=embed", code=1,
         says="no weight was quantized: no product has a weight")


@case
def tables_are_kept_by_name(folder):
    table, model = tied(np.random.default_rng([SEED, 8]), 60, 40)
    onnx.save(model, str(folder / "m.onnx"))
    for keep in ("embed", "^table$"):
        result = tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", f"--quantize=int8,keep={keep}", "--report")
        expect(f"table 'table' is kept: '{keep}' matches its name or its gather's" in result.err, f"no remark: {result}")
        ids = np.array([[3, 59, -1]])
        expect(np.array_equal(run_package(folder / "m.dsp", {"i": ids}, folder)["rows"], table[ids]), "other rows")
    result = tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", "--quantize=int8", "--report")
    expect("quantize-tables: 1 tables quantized, 9600 bytes before, 2640 bytes after" in result.out, f"{result}")
