"""`--dim a=b`: dimensions that are one. Expected values are NumPy's; that they are one is checked by whoever runs."""
import json

import numpy as np
from onnx import TensorProto, helper, parser, save

from integer_cases import HEAD, checked
from kit import case, compile_model, expect, tool

MODEL = """
m (float[rows_x, 4] x, float[rows_y, 4] y, float[rows_z] z) => (float[n, 4] sum, float[m] shifted) {
  sum = Add (x, y)
  shifted = Sub (z, z)
}
"""


def built(folder, name, *options):
    save(parser.parse_model(HEAD + MODEL), folder / f"{name}.onnx")
    return compile_model(folder / f"{name}.onnx", folder, *options, name=f"{name}.dsp")


def arrays(*rows):
    random = np.random.default_rng(7)
    return {name: random.standard_normal(shape).astype(np.float32)
            for name, shape in zip("xyz", [(rows[0], 4), (rows[1], 4), (rows[2],)])}


@case
def dimensions_that_are_one_are_checked_to_be(folder):
    apart = built(folder, "apart")
    one = built(folder, "one", "--dim", "rows_x=rows_y")
    all_one = built(folder, "all", "--dim", "rows_x=rows_y", "--dim", "rows_z=rows_x")
    pinned = built(folder, "pinned", "--dim=rows_x=rows_y", "--dim=rows_y=rows_z", "--dim=rows_z=3")
    for package, legal, wrong in ((apart, [(3, 3, 2), (1, 3, 2), (3, 1, 1)], [(2, 3, 2)]),
                                  (one, [(3, 3, 2), (1, 1, 5)], [(1, 3, 2), (3, 1, 1)]),
                                  (all_one, [(3, 3, 3), (0, 0, 0)], [(3, 3, 2), (1, 3, 3)]),
                                  (pinned, [(3, 3, 3)], [(2, 2, 2), (3, 3, 2)])):
        for rows in legal:
            given = arrays(*rows)
            checked(folder, package, given, {"sum": given["x"] + given["y"], "shifted": given["z"] - given["z"]})
        for rows in wrong:
            np.savez(folder / "wrong.npz", **arrays(*rows))
            result = tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1)
            expect(len(result.err.splitlines()) == 1, f"{package}: expected one line for {rows}: {result}")


@case
def one_dimension_has_one_name(folder):
    """In the manifest, and on the command line of who runs."""
    package = built(folder, "one", "--dim", "rows_x=rows_y", "--dim", "rows_z=rows_y")
    inputs = json.loads(tool("ds-run", "inspect", package, "--json").out)["variants"][0]["entries"][0]["inputs"]
    text = json.dumps(inputs)
    expect("rows_y" in text and "rows_x" not in text and "rows_z" not in text, f"found {text}")
    tool("ds-run", package, "--dim", "rows_y=3")
    tool("ds-run", package, "--dim", "rows_x=3", code=2, says="rows_x")
    config = json.loads((package / "manifest.json").read_text())
    expect("rows_x=rows_y,rows_z=rows_y" in json.dumps(config), "the manifest does not say which dimensions are one")


@case
def a_sum_that_is_a_name_stands_for_what_it_is_one_with(folder):
    """Exporters write sizes such as `past + ids` as names of dimensions."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim])
              for name, dim in (("ids", "ids"), ("past", "past"), ("mask", "past + ids"), ("bias", "total"))]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])]
    nodes = [helper.make_node("Concat", ["past", "ids"], ["all"], axis=0), helper.make_node("Mul", ["all", "mask"], ["masked"]),
             helper.make_node("Add", ["masked", "bias"], ["y"])]
    save(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)]), folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder, "--dim", "past + ids=total")
    random = np.random.default_rng(3)
    for past, ids in ((2, 3), (0, 1)):
        given = {name: random.standard_normal(size).astype(np.float32)
                 for name, size in (("ids", ids), ("past", past), ("mask", past + ids), ("bias", past + ids))}
        checked(folder, package, given, {"y": np.concatenate([given["past"], given["ids"]]) * given["mask"] + given["bias"]})
    np.savez(folder / "wrong.npz", **{**given, "bias": np.zeros(7, np.float32)})
    tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says="bias")
    result = tool("ds-opt", folder / "m.onnx", "-o", folder / "x.dsp", "--dim", "ids=past + ids", code=1,
                  says="expected two dimensions of which none is a part of the other")
    expect(len(result.err.splitlines()) == 1, f"expected one line: {result}")
