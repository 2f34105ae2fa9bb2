"""Sizes that only a run knows: broadcasts of sizes that depend on each other, names that look alike, axes that do not
exist, loops that do not run. Expected values are NumPy's."""
import numpy as np

from integer_cases import HEAD, built, checked
from kit import case, compile_model, expect, run_package, tool
from programs import SEED

RANDOM = np.random.default_rng(SEED)


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


@case
def derived_sizes_broadcast_as_numpy_has_them(folder):
    """A tensor of n elements against one whose size is computed from n: (1, or equal) or refused."""
    limits = {
        "capped": ("five = Constant <value_ints = [5]> () grown = Max (n, five) end = Min (grown, most)",
                   lambda n: min(512, max(5, n)), 512),
        "halved": ("two = Constant <value_ints = [2]> () half = Div (n, two) end = Min (half, most)",
                   lambda n: min(512, n // 2), 512),
        "cut": ("end = Min (n, most)", lambda n: min(4, n), 4),
        "single": ("end = Min (n, most)", lambda n: min(1, n), 1),
    }
    for name, (text, count, most) in limits.items():
        package = built(folder, f"""
m (float[n] x, float[512] table) => (float[k] y) <int64[1] most = {{{most}}}, int64[1] front = {{0}}> {{
  n = Shape (x)
  {text}
  part = Slice (table, front, end)
  y = Add (x, part)
}}
""", name)
        table = numbers(512)
        for n in (0, 1, 2, 3, 4, 5, 7, 11):
            x, part = numbers(n), table[:count(n)]
            try:
                expected = x + part
            except ValueError:
                np.savez(folder / "wrong.npz", x=x, table=table)
                tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says="Add")
                continue
            checked(folder, package, {"x": x, "table": table}, {"y": expected})


@case
def two_dimensions_broadcast_as_numpy_has_them(folder):
    package = built(folder, """
m (float[n] x, float[k] y, float[3, n] z) => (float[a] sum, float[3, b] rows) {
  sum = Add (x, y)
  rows = Mul (z, sum)
}
""")
    for n, k in ((0, 0), (0, 1), (1, 0), (1, 1), (1, 5), (5, 1), (3, 3)):
        x, y, z = numbers(n), numbers(k), numbers(3, n)
        checked(folder, package, {"x": x, "y": y, "z": z}, {"sum": x + y, "rows": z * (x + y)})
    np.savez(folder / "wrong.npz", x=numbers(2), y=numbers(3), z=numbers(3, 2))
    tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says="broadcast")


@case
def names_that_look_alike_are_told_apart(folder):
    """Dimensions named like an element of an input, like what the compiler makes up, or alike but for a quote."""
    from onnx import TensorProto, helper, save
    names = ["s[0]", "a'b", "a`b", "`a`", "a", "count_0", "d0", "arg0_d0", "?0_0", "?", "x y", " a", "a+", "min",
             "\u5bf8", "3"]
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53]
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [name]) for i, name in enumerate(names)]
    inputs.append(helper.make_tensor_value_info("s", TensorProto.INT64, [1]))
    inputs.append(helper.make_tensor_value_info("flags", TensorProto.BOOL, ["flags"]))
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["filled"],
                              value=helper.make_tensor("v", TensorProto.FLOAT, [1], [2.0])),
             helper.make_node("NonZero", ["flags"], ["places"])]
    outputs = [helper.make_tensor_value_info("filled", TensorProto.FLOAT, ["f"]),
               helper.make_tensor_value_info("places", TensorProto.INT64, [1, "p"])]
    for i in range(len(names)):
        nodes += [helper.make_node("Shape", [f"x{i}"], [f"shape{i}"]),
                  helper.make_node("Neg", [f"x{i}"], [f"y{i}"])]
        outputs += [helper.make_tensor_value_info(f"shape{i}", TensorProto.INT64, [1]),
                    helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [f"out{i}"])]
    graph = helper.make_graph(nodes, "m", inputs, outputs)
    save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), folder / "m.onnx")
    package = compile_model(folder / "m.onnx", folder)
    feeds = {f"x{i}": numbers(size) for i, size in enumerate(primes)}
    feeds |= {"s": np.array([59]), "flags": np.array([True, False, True])}
    expected = {"filled": np.full(59, 2, np.float32), "places": np.array([[0, 2]])}
    for i, size in enumerate(primes):
        expected |= {f"shape{i}": np.array([size]), f"y{i}": -feeds[f"x{i}"]}
    checked(folder, package, feeds, expected)


AXES = {
    "Slice": ("float[a, b] y", "y = Slice (x, zero, one, axis)"),
    "Squeeze": ("float[a] y", "part = Slice (x, zeros, ones) y = Squeeze (part, axis)"),
    "Unsqueeze": ("float[a, b, c] y", "y = Unsqueeze (x, axis)"),
    "ReduceSum": ("float[a, b] y", "y = ReduceSum (x, axis)"),
    "CumSum": ("float[a, b] y", "y = CumSum (x, scalar)"),
}


@case(seconds=6)
def axes_outside_of_the_rank_are_diagnosed(folder):
    """Axes as constants when the model is compiled, axes as inputs when it runs: -rank to rank - 1 are legal."""
    for name, (output, text) in AXES.items():
        rank = 3 if name == "Unsqueeze" else 2
        constants = "int64[1] zero = {0}, int64[1] one = {1}, int64[2] zeros = {0, 0}, int64[2] ones = {1, 1}"
        body = f"scalar = Squeeze (axis) {text}"
        package = built(folder, f"m (float[2, 3] x, int64[1] axis) => ({output}) <{constants}> {{ {body} }}", name)
        for axis in (-rank - 1, -rank, -1, 0, rank - 1, rank, 5):
            isLegal = -rank <= axis < rank
            np.savez(folder / "in.npz", x=numbers(2, 3), axis=np.array([axis]))
            result = tool("ds-run", package, "--inputs", folder / "in.npz", code=0 if isLegal else 1)
            expect(isLegal or ">=" in result.err, f"seed {SEED}: {name}, axis {axis}: {result}")
            from onnx import parser, save
            save(parser.parse_model(HEAD + f"m (float[2, 3] x) => ({output}) <{constants}, int64[1] axis = {{{axis}}}> "
                                    f"{{ {body} }}"), folder / "c.onnx")
            tool("ds-opt", folder / "c.onnx", "-o", folder / "c.dsp", code=0 if isLegal else 1,
                 says=[] if isLegal else f"found {axis}")


@case(seconds=4)
def attributes_outside_of_the_rank_are_diagnosed(folder):
    """Every operator that takes its axis as an attribute."""
    nodes = ["y = ArgMax <axis = AXIS> (x)", "y = Softmax <axis = AXIS> (x)", "y = LogSoftmax <axis = AXIS> (x)",
             "y = Hardmax <axis = AXIS> (x)", "y = Concat <axis = AXIS> (x, x)", "y = Gather <axis = AXIS> (x, i)",
             "y = GatherElements <axis = AXIS> (x, j)", "y = ScatterElements <axis = AXIS> (x, j, x)",
             "y = Compress <axis = AXIS> (x, c)", "y, z = TopK <axis = AXIS> (x, k)",
             "y, z = Split <axis = AXIS> (x, s)",
             "y = LayerNormalization <axis = AXIS> (x, w)", "y = LpNormalization <axis = AXIS> (x)",
             "y = Unique <axis = AXIS> (x)",
             "y = ReduceMax <axes = [AXIS]> (x)", "y = ReduceMean <axes = [AXIS]> (x)",
             "y = OneHot <axis = AXIS> (i, k0, v)",
             "q = SplitToSequence <axis = AXIS> (x) y = SequenceAt (q, k0)",
             "q = SequenceConstruct (x, x) y = ConcatFromSequence <axis = AXIS> (q)",
             "y = MeanVarianceNormalization <axes = [AXIS]> (x)", "y = DequantizeLinear <axis = AXIS> (b, sc)"]
    head = ("m (float[2, 2] x, uint8[2, 2] b) => (y) <int64[1] i = {0}, int64[2, 2] j = {0, 1, 1, 0}, "
            "bool[2] c = {1, 0}, int64[1] k = {1}, int64 k0 = {1}, int64[2] s = {1, 1}, float[2] w = {1, 1}, "
            "float[2] v = {0, 1}, "
            "float[2] sc = {1, 2}> { ")
    from onnx import parser, save
    for node in nodes:
        for axis in (-3, 2, 5):
            if "ConcatFrom" not in node and "OneHot" not in node or axis != 2:
                save(parser.parse_model(HEAD + head + node.replace("AXIS", str(axis)) + " }"),
                     folder / "m.onnx")
                tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", code=1, says=str(axis))


# Each body requires that x and y broadcast and that x has an even number of elements.
DEMANDS = """s = Add (x, y)
    r = Reshape (x, pairs)
    t = ReduceSum <keepdims = 0> (r)
    u = ReduceSum <keepdims = 0> (s)
    next0 = Add (a, t)
    next = Add (next0, u)"""


@case
def what_a_loop_requires_is_required_where_it_runs(folder):
    package = built(folder, f"""
m (float[n] x, float[k] y, float start, int64 trip, bool go) => (float end) <int64[2] pairs = {{-1, 2}}> {{
  end = Loop (trip, go, start) <body = b (int64 i, bool g, float a) => (bool h, float next) {{
    h = Identity (g)
    {DEMANDS}
  }}>
}}
""")
    start = np.float32(1.5)
    bad = {"x": numbers(3), "y": numbers(2)}
    for trip, go in ((0, True), (3, False), (0, False), (-1, True)):
        checked(folder, package, bad | {"start": start, "trip": np.int64(trip), "go": np.bool_(go)}, {"end": start})
    np.savez(folder / "bad.npz", **bad, start=start, trip=np.int64(1), go=np.bool_(True))
    tool("ds-run", package, "--inputs", folder / "bad.npz", code=1)
    good = {"x": np.array([1, 2], np.float32), "y": np.array([4], np.float32)}
    checked(folder, package, good | {"start": start, "trip": np.int64(2), "go": np.bool_(True)},
            {"end": np.float32(1.5 + 2 * (3 + 11))})


@case
def loops_in_loops_and_branches_require_where_they_run(folder):
    package = built(folder, f"""
m (float[n] x, float[k] y, float start, int64 outer, int64 inner, bool c) => (float end) <int64[2] pairs = {{-1, 2}}> {{
  end = Loop (outer, "", start) <body = b (int64 i, bool g, float a0) => (bool h, float last) {{
    h = Identity (g)
    last = If (c) <then_branch = t () => (float p) {{
      p = Loop (inner, "", a0) <body = b2 (int64 j, bool g2, float a) => (bool h2, float next) {{
        h2 = Identity (g2)
        {DEMANDS}
      }}>
    }}, else_branch = f () => (float q) {{ q = Neg (a0) }}>
  }}>
}}
""")
    start = np.float32(1.5)
    bad, good = {"x": numbers(3), "y": numbers(2)}, {"x": np.float32([1, 2]), "y": np.float32([4])}
    for outer, inner, c, runs in ((0, 1, True, False), (1, 0, True, False), (2, 3, False, False), (1, 1, True, True)):
        calls = {"start": start, "outer": np.int64(outer), "inner": np.int64(inner), "c": np.bool_(c)}
        end = np.float32(start * (-1) ** outer if not c else start + 14 * outer * inner)
        checked(folder, package, good | calls, {"end": end})
        if not runs:
            checked(folder, package, bad | calls, {"end": end})
            continue
        np.savez(folder / "bad.npz", **bad, **calls)
        tool("ds-run", package, "--inputs", folder / "bad.npz", code=1)


@case
def a_scan_of_no_rows_requires_nothing(folder):
    package = built(folder, """
m (float[n] x, float[k] y, float[t] rows, float start) => (float end, float[t] sums) <int64[2] pairs = {-1, 2}> {
  end, sums = Scan <num_scan_inputs = 1, body = b (float a, float row) => (float next, float out) {
    s = Add (x, y)
    r = Reshape (x, pairs)
    t0 = ReduceSum <keepdims = 0> (r)
    u = ReduceSum <keepdims = 0> (s)
    next0 = Add (a, t0)
    next = Add (next0, u)
    out = Add (row, a)
  }> (start, rows)
}
""")
    start = np.float32(0.5)
    bad, good = {"x": numbers(3), "y": numbers(2)}, {"x": np.float32([1, 2]), "y": np.float32([4])}
    checked(folder, package, bad | {"rows": numbers(0), "start": start}, {"end": start, "sums": numbers(0)})
    checked(folder, package, good | {"rows": np.float32([1, 2]), "start": start},
            {"end": np.float32(28.5), "sums": np.float32([1.5, 16.5])})
    np.savez(folder / "bad.npz", **bad, rows=numbers(1), start=start)
    tool("ds-run", package, "--inputs", folder / "bad.npz", code=1)


@case
def two_open_sizes_of_a_run_time_shape_are_refused(folder):
    """At most one element of a shape is -1, also where both would be 1 or the operand has no elements."""
    package = built(folder, """
m (float[a, b] x, int64[2] s) => (float[c, d] y) { y = Reshape (x, s) }
""", "reshaped")
    for shape, wanted in (((1, 1), (-1, -1)), ((0, 3), (-1, -1)), ((2, 3), (-1, -1))):
        np.savez(folder / "wrong.npz", x=numbers(*shape), s=np.array(wanted))
        tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says="Reshape")
    for shape, wanted in (((1, 1), (-1, 1)), ((0, 3), (3, -1)), ((2, 3), (-1, 2)), ((2, 3), (0, -1)), ((4, 3), (6, 2))):
        x = numbers(*shape)
        target = [shape[i] if size == 0 else size for i, size in enumerate(wanted)]
        y = run_package(package, {"x": x, "s": np.array(wanted)}, folder)["y"]
        expect(np.array_equal(y, x.reshape(target)), f"seed {SEED}: {shape} as {wanted}: found {y.shape}")
