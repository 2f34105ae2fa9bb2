"""What a Gradient's names mean: other values than the graph's, values inside of the graph, constants, functions,
subgraphs, derivatives of derivatives, and descents that use them."""
import numpy as np

import judge
from kit import MINILM, Skip, case, compile_model, distance, expect, run_package, tool
from programs import SEED

HEADER = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1{}]>\n'
GRADIENT = "ai.onnx.preview.training.Gradient"


def results(folder, text, inputs, *options, domains=""):
    from onnx import parser, save
    save(parser.parse_model(HEADER.format(domains) + text.replace("GRADIENT", GRADIENT)), folder / "m.onnx")
    return run_package(compile_model(folder / "m.onnx", folder, *options), inputs, folder)


def agree(found, **expected):
    """f32 results against float64 formulas of a few operations: some roundings of 6e-8."""
    for name, array in expected.items():
        off = distance(found[name], np.asarray(array, found[name].dtype))
        expect(off <= 3e-6, f"seed {SEED}: {name} is off by {off:.3g}: {found[name]}, expected {array}")


def numbers(*shape):
    numbers.random = getattr(numbers, "random", None) or np.random.default_rng(SEED)
    return numbers.random.uniform(-1.5, 1.5, shape).astype(np.float32)


@case
def other_values_and_shapes(folder):
    """The function is the graph's; where it is differentiated, inputs say. Those may have other sizes."""
    a, b, c = numbers(3, 2), numbers(5, 2), numbers(4, 2)
    found = results(folder, """
      m (float[n, 2] a, float[5, 2] b, float[k, 2] c) => (h, da, db, dh) <float[2] w = {2.0, -3.0}> {
        h = Mul (a, w)
        s = Shape (h)
        r = Reshape (h, s)
        y = Sin (r)
        da = GRADIENT <xs = ["a"], y = "y"> (a)
        db = GRADIENT <xs = ["a"], y = "y"> (b)
        dh = GRADIENT <xs = ["h"], y = "y"> (c)
      }""", {"a": a, "b": b, "c": c})
    w = np.array([2.0, -3])
    agree(found, h=a * w, da=np.cos(a * w) * w, db=np.cos(b * w) * w, dh=np.cos(c))


@case
def constants_and_initializers(folder):
    """Constants belong to the function; named in xs, an initializer is a variable like any other."""
    x, w = numbers(4), np.array([1.0, 2, 3, 4])
    text = """
      m (float[4] x) => (dx, dw, same, none) <float[4] w = {1.0, 2.0, 3.0, 4.0}> {
        two = Constant <value = float {2.0}> ()
        scaled = Mul (w, two)
        p = Mul (x, scaled)
        y = Mul (p, x)
        dx = GRADIENT <xs = ["x"], y = "y"> (x)
        "", dw = GRADIENT <xs = ["x", "w"], y = "y"> (x, w)
        same = GRADIENT <xs = ["x"], y = "x"> (x)
        none = GRADIENT <xs = ["w"], zs = ["x"], y = "x"> (w, x)
      }"""
    for options in ([], ["--reference"], ["--reference=f64"]):
        agree(results(folder, text, {"x": x}, *options), dx=4 * w * x, dw=2 * x * x, same=np.ones(4), none=np.zeros(4))


@case
def derivatives_of_derivatives(folder):
    x, z = numbers(5), numbers(5)
    found = results(folder, """
      m (float[5] x, float[5] z) => (d1, d2, d3, dz) {
        s = Sin (x)
        y = Mul (s, z)
        d1 = GRADIENT <xs = ["x"], zs = ["z"], y = "y"> (x, z)
        d2 = GRADIENT <xs = ["x"], zs = ["z"], y = "d1"> (x, z)
        d3, dz = GRADIENT <xs = ["x", "z"], y = "d2"> (x, z)
      }""", {"x": x, "z": z})
    wide = x.astype(float)
    agree(found, d1=np.cos(wide) * z, d2=-np.sin(wide) * z, d3=-np.cos(wide) * z, dz=-np.sin(wide))


@case
def functions_and_subgraphs(folder):
    """Names are those of the scope: inside of a function, of a branch and of a loop."""
    x, w = numbers(3), numbers(3)
    found = results(folder, """
      m (float[3] x, float[3] w, bool c) => (called, branch, last) {
        called = local.slope (x, w)
        branch = If (c) <
          then_branch = t () => (float[3] o) {
            y = Exp (x)
            o = GRADIENT <xs = ["x"], y = "y"> (x)
          }, else_branch = e () => (float[3] p) { p = Identity (w) }>
        trips = Constant <value_int = 20> ()
        last = Loop (trips, "", x) <body = b (int64 i, bool g, float[3] at) => (bool h, float[3] next) {
          h = Identity (g)
          off = Sub (at, w)
          y = Mul (off, off)
          slope = GRADIENT <xs = ["at"], zs = ["w"], y = "y"> (at, w)
          rate = Constant <value_float = 0.25> ()
          step = Mul (slope, rate)
          next = Sub (at, step)
        }>
      }
      <domain: "local", opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>
      slope (a, b) => (da) {
        y = Mul (a, b)
        da = GRADIENT <xs = ["a"], zs = ["b"], y = "y"> (a, b)
      }""", {"x": x, "w": w, "c": np.array(True)}, domains=', "local" : 1')
    wide = x.astype(float)
    agree(found, called=w, branch=np.exp(wide), last=w + (wide - w) * 0.5**20)


@case
def through_a_branch(folder):
    """Each side of a branch that is taken when the model runs; what only the other one uses gets zeros."""
    x, z = numbers(3), numbers(3)
    text = """
      m (float[3] x, float[3] z, bool c) => (dx, dz, ddx) {
        s = Mul (x, x)
        first, second = If (c) <
          then_branch = t () => (float[3] o, float[3] p) {
            o = Mul (s, z)
            p = Sin (x)
          }, else_branch = e () => (float[3] q, float[3] r) {
            q = Identity (z)
            e = Exp (x)
            r = Mul (e, x)
          }>
        y = Mul (first, second)
        dx, dz = GRADIENT <xs = ["x", "z"], zs = ["c"], y = "y"> (x, z, c)
        ddx = GRADIENT <xs = ["x"], zs = ["z", "c"], y = "dx"> (x, z, c)
      }"""
    wide, other = x.astype(float), z.astype(float)
    sin, cos, exp = np.sin(wide), np.cos(wide), np.exp(wide)
    agree(results(folder, text, {"x": x, "z": z, "c": np.array(True)}), dx=(2 * wide * sin + wide**2 * cos) * other,
          dz=wide**2 * sin, ddx=(2 * sin + 4 * wide * cos - wide**2 * sin) * other)
    agree(results(folder, text, {"x": x, "z": z, "c": np.array(False)}), dx=other * exp * (1 + wide), dz=wide * exp,
          ddx=other * exp * (2 + wide))


@case
def through_branches_of_two_sizes(folder):
    x, z = numbers(3), numbers(3)
    text = """
      m (float[n] x, float[n] z, bool c) => (dx, dz, ddx) {
        chosen = If (c) <
          then_branch = t () => (float[o] p) { p = Concat <axis = 0> (x, z, x) },
          else_branch = e () => (float[q] r) { r = Mul (x, z) }>
        squares = Mul (chosen, chosen)
        y = Mul (squares, chosen)
        dx, dz = GRADIENT <xs = ["x", "z"], zs = ["c"], y = "y"> (x, z, c)
        ddx = GRADIENT <xs = ["x"], zs = ["z", "c"], y = "dx"> (x, z, c)
      }"""
    wide, other = x.astype(float), z.astype(float)
    agree(results(folder, text, {"x": x, "z": z, "c": np.array(True)}), dx=6 * wide**2, dz=3 * other**2, ddx=12 * wide)
    agree(results(folder, text, {"x": x, "z": z, "c": np.array(False)}), dx=3 * wide**2 * other**3,
          dz=3 * wide**3 * other**2, ddx=6 * wide * other**3)


@case
def pinned_and_dumped(folder):
    """The same numbers with sizes pinned, and from the dump of a phase before the derivatives."""
    x, w = numbers(3, 4), numbers(4, 2)
    text = """
      m (float[n, 4] x, float[4, k] w) => (dx, dw) {
        p = MatMul (x, w)
        y = Tanh (p)
        dx, dw = GRADIENT <xs = ["x", "w"], y = "y"> (x, w)
      }"""
    slope = 1 - np.tanh(x.astype(float) @ w)**2
    expected = {"dx": slope @ w.T, "dw": x.T @ slope}
    agree(results(folder, text, {"x": x, "w": w}), **expected)
    agree(results(folder, text, {"x": x, "w": w}, "--dim", "n=3"), **expected)
    for phase, options in (("import", []), ("graph", ["--dim", "n=3", "--dim", "k=2"])):
        tool("ds-opt", folder / "m.onnx", f"--stop-after={phase}", "-o", folder / "dump.mlir")
        package = compile_model(folder / "dump.mlir", folder, *options, name="dump.dsp")
        agree(run_package(package, {"x": x, "w": w}, folder), **expected)


@case
def too_many_orders(folder):
    """Each order multiplies what must be computed: a short file must not ask for hours."""
    from onnx import parser, save
    steps = "".join(f'd{i + 1} = {GRADIENT} <xs = ["x"], y = "s{i}"> (x) s{i + 1} = Add (d{i + 1}, s{i})\n'
                    for i in range(40))
    save(parser.parse_model(HEADER.format("") + f"m (float[3] x) => (d40) {{ s0 = Sin (x)\n{steps} }}"), folder / "m.onnx")
    tool("ds-opt", folder / "m.onnx", "--check", code=1, timeout=60, says="expected derivatives up to order 4")


@case(slow=True)
def trained_encoder(folder):
    """The gradients of weights of a trained sentence encoder, against differences, along a random direction, of what ONNX's
    reference evaluator computes in float64. A step of 1e-2 of a weight's size is off by 1e-4, for its square."""
    import onnx
    from onnx import helper, numpy_helper
    if not MINILM.exists():
        raise Skip("the model is not installed")
    random = np.random.default_rng(SEED)
    model = onnx.load(MINILM)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    words = next(name for name in stored if "word_embeddings" in name)
    norm = next(name for name in stored if "layer.1" in name and "LayerNorm.weight" in name)
    matrix = next(name for node in model.graph.node for name in node.input
                  if node.op_type == "MatMul" and "layer.1/" in node.name and name in stored)
    xs, zs = [words, norm, matrix], [value.name for value in model.graph.input]
    y = "461"  # the sentence embedding, [batch, 384]
    weights = numpy_helper.from_array(random.standard_normal(384).astype(np.float32), "y_weights")
    model.graph.initializer.append(weights)
    model.graph.node.append(helper.make_node("Mul", [y, "y_weights"], ["weighted"]))
    model.graph.node.append(helper.make_node("ReduceSum", ["weighted"], ["sum"], keepdims=0))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, []))
    inputs = {"input_ids": random.integers(1000, 30000, (2, 7)), "attention_mask": np.ones((2, 7), np.int64)}
    inputs["attention_mask"][1, 5:] = 0

    def sum_along(name, direction):
        moved = onnx.ModelProto.FromString(model.SerializeToString())
        for tensor in moved.graph.initializer:
            if tensor.name == name:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) + direction, name))
        return float(judge.by_the_standard(moved, inputs)["sum"])
    expected = []
    for name in xs:
        values = numpy_helper.to_array(stored[name])
        direction = (random.standard_normal(values.shape) * values.std() * 1e-2).astype(np.float32)
        expected.append((direction, (sum_along(name, direction) - sum_along(name, -direction)) / 2))
    model.opset_import.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    model.graph.node.append(helper.make_node("Gradient", xs + zs, ["d0", "d1", "d2"], xs=xs, zs=zs, y="sum",
                                             domain="ai.onnx.preview.training"))
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
                              for name in ("d0", "d1", "d2"))
    onnx.save(model, folder / "gradients.onnx")
    found = run_package(compile_model(folder / "gradients.onnx", folder), inputs, folder)
    for index, (direction, slope) in enumerate(expected):
        along = float(np.sum(found[f"d{index}"].astype(float) * direction))
        expect(abs(along - slope) <= 2e-3 * abs(slope) + 1e-4, f"seed {SEED}: along {xs[index]} the gradient gives {along}, "
               f"a difference {slope}")


@case
def the_mask_of_the_graph(folder):
    """Random numbers of the function are those of the graph: the gradient passes where the output does."""
    x = np.abs(numbers(40)) + 1
    found = results(folder, """
      m (float[40] x) => (y, dx) {
        ratio = Constant <value_float = 0.25> ()
        mode = Constant <value = bool {1}> ()
        y = Dropout (x, ratio, mode)
        dx = GRADIENT <xs = ["x"], y = "y"> (x)
      }""", {"x": x})
    expect(0 < np.count_nonzero(found["y"]) < 40, "expected some elements to be dropped and some to be kept")
    agree(found, dx=found["y"] / x)
