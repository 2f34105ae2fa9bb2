"""Models that contradict themselves or ask for more than there is: one table, every row a diagnostic with its node.

A row is the text of a model in onnx's notation without its header, and what the first error must contain. Memory and
time are limited, so that a size that is believed rather than refused shows.
"""
import time

import numpy as np
import onnx.parser

import generate
from kit import case, compile_model, expect, run_package, tool
from programs import SEED

HUGE = 1 << 40


def refused(folder, table, command=("--stop-after=memory", "-o", "out.mlir"), opset=21):
    for i, (text, *says) in enumerate(table):
        path = folder / f"m{i}.onnx"
        header = f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>\n'
        path.write_bytes(onnx.parser.parse_model(header + text).SerializeToString())
        arguments = [folder / part if part.endswith(".mlir") else part for part in command]
        start = time.time()
        result = tool("ds-opt", path, *arguments, code=None, timeout=30, memory_gib=4)
        expect(result.code == 1 and "error: " in result.err, f"{text}\nexpected a diagnostic: {result}")
        for what in says:
            expect(what in result.err, f"{text}\nexpected stderr to contain '{what}': {result}")
        expect(time.time() - start < 20, f"{text}\ntook {time.time() - start:.0f} s")


@case
def models_that_contradict_themselves(folder):
    refused(folder, [
        # cycles, names
        ("g (float[2] x) => (float[2] y) { [a] y = Add(x, z) [b] z = Neg(y) }", "'a': error", "cycle"),
        ("g (float[2] x) => (float[2] y) { [a] y = Add(x, y) }", "'a': error", "cycle"),
        ("g (float[2] x) => (float[2] x) { [a] x = Relu(x) }", "'a': error", "cycle"),
        ("g (float[2] x, float[2] x) => (float[2] y) { y = Relu(x) }", "'x': error", "defined twice"),
        ("g (float[2] x) => (float[2] y) { [a] y = Relu(x) [b] y = Neg(x) }", "'b': error", "defined twice"),
        ("g (float[2] x) => (float[2] w) <float[2] w = {1, 2}> { [a] w = Relu(x) }", "'a': error", "defined twice"),
        ("g (float[2] x) => (float[2] y, float[2] y) { y = Relu(x) }", "'y': error", "different names"),
        # values that nobody defines
        ("g (float[2] x) => (float[2] y) { [a] y = Add(x, nowhere) }", "'a': error", "'nowhere'"),
        ("g (float[2] x) => (float[2] z) { y = Relu(x) }", "'z': error", "none"),
        ("g (float[2] x, bool c) => (float[2] y) { [i] y = If(c) <then_branch = t () => (float[2] a) { [n] a = Add(x, b) },"
         " else_branch = e () => (float[2] b) { b = Neg(x) }> }", "error", "'b'"),
        ("g (float[2] x) => (float[2] y) { [a] = Neg(x) y = Relu(x) }", "'a': error", "at least one output"),
        # inputs that the operator does not have
        ("g (float[2] x) => (float[2] y) { [a] y = Relu(x, x, x) }", "'a': error", "at most 1 inputs at opset 21, found 3"),
        ("g (float[2] x) => (float[2] y) { [a] y = Add(x, x, , x) }", "'a': error", "at most 2 inputs at opset 21, found 4"),
        ("g (float[2] x) => (float[2] y) { [a] y = Where(x, x, x, x) }", "'a': error", "at most 3 inputs"),
        # attributes that the operator does not have, at this opset or at all
        ("g (float[2] x) => (float[2] y) { [a] y = Softmax <axes = 0> (x) }", "'a': error", "among 'axis' at opset 21, found 'axes'"),
        ("g (float[2, 2] x) => (float[1, 1] y) { [a] y = ReduceSum <axes = [0]> (x) }", "'a': error", "found 'axes'"),
        ("g (float[2] x) => (float[2] y) { [a] y = Abs <alpha = 1.0> (x) }", "'a': error", "expected no attributes"),
        # wrong types
        ("g (float[2] x, int64[2] i) => (float[2] y) { [a] y = Add(x, i) }", "'a': error", "element types"),
        ("g (float[2] x) => (float[2] y) { [a] y = Where(x, x, x) }", "'a': error", "condition"),
        ("g (float x) => (float y) { [i] y = If(x) <then_branch = t () => (float a) { a = Neg(x) },"
         " else_branch = e () => (float b) { b = Abs(x) }> }", "'i': error", "bool"),
        ('g (float[2] x) => (float[2] y) { [a] y = LeakyRelu <alpha = "steep"> (x) }', "'a': error", "'alpha'"),
        ("g (float[2] x) => (float[2] y) { [a] y = Cast <to = 999> (x) }", "'a': error", "999"),
        # operands that do not fit, where more is made of the value that they should have given
        ("g (float[3, 1, 3, 3] x, float[1, 1, 2, 2] w, float[1, 8, 2, 2] o) => (float[3, 1, 2, 2] y)"
         " { [a] y = DeformConv <kernel_shape = [2, 2]> (x, w, o) }", "'a': error", "element counts"),
        # statements about types against what the nodes compute, and against each other; of shapes: real_file_cases
        ("g (float[2, 3] x) => (float[2, 3] y) <int64[2, 3] h> { [a] h = Relu(x) y = Relu(h) }",
         "'a': error", "i64[2, 3]"),
        ("g (float[2, 3] x) => (int64[2, 3] y) { [a] y = Relu(x) }", "'a': error", "i64[2, 3]"),
        ("g (float[2] x) => (int64[2] x) { y = Relu(x) }", "'x': error", "expected one type"),
        ("g (float[2] w) => (float[2] y) <float[3] w = {1, 2, 3}> { y = Relu(w) }", "'w': error", "f32[3]"),
        ("g (float[2, 3] x) => (float[a] y) <int64[1] s = {7}> { [a] y = Reshape(x, s) }", "'a': error", "6 and 7"),
        ("g (float[2, 3] x, float[4, 5] w) => (float[a, b] y) { [a] y = MatMul(x, w) }", "'a': error", "3 and 4"),
        # negative sizes
        ("g (float[-5] x) => (float[a] y) { y = Relu(x) }", "'x': error", "-5"),
        ("g (float[2] x) => (float[a] y) <int64[1] s = {-3}> { [a] y = Tile(x, s) }", "'a': error", "-3"),
        ("g (float[1] x) => (float[a] y) <int64[1] s = {-3}> { [a] y = ConstantOfShape(s) }", "'a': error", "-3"),
        ("g (float[2, 3] x) => (float[a] y) <int64[2] s = {-2, 3}> { [a] y = Reshape(x, s) }", "'a': error", "-2"),
        ("g (float[9] x) => (float[a] y, int64[b] i) <int64[1] k = {-1}> { [a] y, i = TopK(x, k) }", "'a': error", "-1"),
        ("g (float[3] x) => (float[a] y) <int64[2] p = {-4, -4}> { [a] y = Pad(x, p) }", "'a': error", "-5"),
        ("g (float[9] x) => (float[a] y, float[b] z) <int64[2] s = {-1, 10}> { [a] y, z = Split(x, s) }", "'a': error"),
        ("g (float[1, 1, 8, 8] x, float[1, 1, 3, 3] w) => (float[a, b, c, d] y) { [a] y = Conv <strides = [-1, 1]> (x, w) }",
         "'a': error", "-1"),
    ])


@case
def operator_sets_of_the_future(folder):
    text = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
    refused(folder, [(text, "expected version 1 to 27 of ONNX's operator set, found 28")], opset=28)
    refused(folder, [(text, "found 999999")], opset=999999)


@case
def stale_shapes_are_a_warning(folder):
    for i, (text, says) in enumerate([
            ("(float[2, 3] x) => (float[4, 5] y) { [a] y = Relu(x) }",
             "'a': warning: Relu: output 0 ('y'): the model states f32[4, 5], it is f32[2, 3]"),
            ("(float[n, 3] x) => (float[n, 4] y) { [a] y = Relu(x) }",
             "'a': warning: Relu: output 0 ('y'): the model states f32[?, 4], it is f32[?, 3]"),
            ("(float[2, 3] x) => (float[6] y) { [a] y = Relu(x) }", "the model states f32[6], it is f32[2, 3]"),
            ("(float[2, 3] x) => (float[2, 3] y) <float[7] h> { [a] h = Relu(x) y = Relu(h) }", "states f32[7]"),
            ("(float[2, 3] x) => (float[2, 3] y) <float[2, 4] y> { [a] y = Relu(x) }",
             "'y': warning: type of value: expected one shape, found f32[2, 4] and f32[2, 3]"),
            ("(float[2, 3] x) => (float[2] w, float[2, 3] y) <float[3] w = {1, 2, 3}> { y = Relu(x) }",
             "'w': warning: type of value: expected one shape, found f32[3] and f32[2]")]):
        path = folder / f"m{i}.onnx"
        text = '<ir_version: 10, opset_import: ["" : 21]>\ng ' + text
        path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
        result = tool("ds-opt", path, "-o", folder / "m.dsp")
        expect(says in result.err and result.err.count("warning:") == 1, f"{text}\nexpected a warning: {result}")
        x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
        expect(np.array_equal(run_package(folder / "m.dsp", {"x": x}, folder)["y"], np.maximum(x, 0)), text)


@case
def models_that_ask_for_too_much(folder):
    ranks = ", ".join(["1"] * 33)
    refused(folder, [
        (f"g (float[{ranks}] x) => (float[a] y) {{ y = Relu(x) }}", "'x': error", "at most 32 dimensions"),
        ("g (float[2147483648, 2147483648] x) => (float[a, b] y) { y = Relu(x) }", "'x': error", "2^55"),
        ("g (float[1] x) => (float[a] y) <int64[3] s = {2147483648, 2147483648, 2147483648}> { [c] y = ConstantOfShape(s) }",
         "'c': error", "2^55"),
        ("g (float[1] x) => (float[a] y) <int64[3] s = {0, 9223372036854775807, 9223372036854775807}>"
         " { [c] y = ConstantOfShape(s) }", "'c': error", "2^55"),
        ("g (float[4294967296] x) => (float[a, b] y) { [e] y = Einsum <equation = \"i,j->ij\"> (x, x) }", "'e': error", "2^55"),
        (f"g () => (int64[a] y) <int64 a = {{0}}, int64 b = {{{9 * HUGE}}}, int64 c = {{1}}> {{ [r] y = Range(a, b, c) }}",
         "'r': error", "less than"),
        ("g (float[3] x) => (float[a] y) <int64[2] p = {4611686018427387904, 4611686018427387904}> { [p] y = Pad(x, p) }",
         "'p': error"),
        ("g (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) <float[4] s = {1, 1, 1e38, 1}> { [r] y = Resize(x, , s) }",
         "'r': error", "2^55"),
        ("g (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) <int64[2] s = {9223372036854775807, 1}>"
         ' { [r] y = Resize <axes = [2, 3], keep_aspect_ratio_policy = "not_smaller"> (x, , , s) }', "'r': error", "2^55"),
        ("g (float[9] x) => (float[a] y, float[b] z) { [s] y, z = Split <num_outputs = 100000000000> (x) }", "'s': error"),
    ])
    refused(folder, [
        (f"g () => (float[a] y) <int64[1] s = {{{HUGE}}}> {{ [c] y = ConstantOfShape(s) }}", "'c': error", "while packaging"),
    ], command=("-o", "out.dsp"))


@case
def sizes_that_no_machine_has(folder):
    """They compile, since another machine may have them; running them is refused in one line."""
    for text in (f"g (float[1] x) => (float[a] y) <int64[1] s = {{{HUGE}}}> {{ c = ConstantOfShape(s) y = Add(c, x) }}",
                 f"g (float[2] x) => (float[a] y) <int64[1] s = {{{HUGE}}}> {{ y = Tile(x, s) }}",
                 "g (float[1000000] x) => (float[a, b] y) { y = Einsum <equation = \"i,j->ij\"> (x, x) }",
                 "g (float[n] x) => (float[n] y) { y = Relu(x) }"):
        path = folder / "m.onnx"
        path.write_bytes(onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\n' + text).SerializeToString())
        tool("ds-opt", path, "-o", folder / "m.dsp", memory_gib=4)
        options = [f"--dim=n={1 << 40}"] if "[n]" in text else []  # the largest that a run takes
        result = tool("ds-run", folder / "m.dsp", *options, code=1, says="cannot allocate", timeout=60)
        expect(len(result.err.splitlines()) == 1, f"expected one line: {result}")
    for size in ("-1", "x", "", "99999999999999999999", "9223372036854775807"):
        result = tool("ds-run", folder / "m.dsp", f"--dim=n={size}", code=None, says="error")
        expect(result.code in (1, 2) and len(result.err.splitlines()) == 1, f"expected one line: {result}")


@case(seconds=6)
def long_chains_and_deep_nests(folder):
    """Neither recursion over nodes nor over subgraphs ends the stack."""
    g = generate.Graph()
    value = "x"
    for _ in range(100_000):
        value = g.op("Neg", value)
    model = g.model([generate.value("x", 1, 4)], [generate.value(value, 1, 4)])
    tool("ds-opt", generate.save(model, folder / "chain.onnx"), "--stop-after=graph", "-o", folder / "chain.mlir",
         timeout=100)
    body = "y = Neg(x)"
    for i in range(24):  # Python's protobuf reads no more; the reader's own limit is in test/unit/frontends/onnx
        body = (f"y = If(c) <then_branch = t{i} () => (float[2] y) {{ {body} }}, "
                f"else_branch = e{i} () => (float[2] z) {{ z = Abs(x) }}>")
    path = folder / "nest.onnx"
    text = f'<ir_version: 10, opset_import: ["" : 21]> g (float[2] x, bool c) => (float[2] y) {{ {body} }}'
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    tool("ds-opt", path, "--stop-after=memory", "-o", folder / "nest.mlir", code=None, timeout=60)


@case
def values_that_are_read_twice(folder):
    """At each of 60 levels of one kernel: no walk over it follows every path."""
    g = generate.Graph()
    value = "x"
    for _ in range(60):
        value = g.op("Add", value, value)
    path = generate.save(g.model([generate.value("x", 1, "n")], [generate.value(value, 1, "n")]), folder / "m.onnx")
    x = np.random.default_rng(SEED).standard_normal(5).astype(np.float32)
    tool("ds-opt", path, "-o", folder / "m.dsp", timeout=20)
    expect(np.array_equal(run_package(folder / "m.dsp", {"x": x}, folder)[value], x * np.float32(2)**60), "not 2^60 times its input")


@case
def products_of_values_that_are_read_twice(folder):
    """The same 60 levels before the rows of a product, and before the filters of a convolution."""
    random = np.random.default_rng(SEED)
    x, weight, filters = (random.standard_normal(shape).astype(np.float32) for shape in ((3, 8), (8, 4), (2, 3, 3)))
    image = random.standard_normal((1, 3, 9)).astype(np.float32)
    for kind, start, inputs in (("MatMul", "x", {"x": x}), ("Conv", "k", {"k": filters, "image": image})):
        g = generate.Graph()
        value = start
        for _ in range(60):
            value = g.op("Add", value, value)
        value = g.op("MatMul", value, g.constant(weight)) if kind == "MatMul" else g.op("Conv", "image", value)
        given = [generate.value(name, 1, *array.shape) for name, array in inputs.items()]
        path = generate.save(g.model(given, [generate.value(value, 1, None, None, *[None] * (kind == "Conv"))]), folder / f"{kind}.onnx")
        tool("ds-opt", path, "-o", folder / f"{kind}.dsp", timeout=20)
        found = run_package(folder / f"{kind}.dsp", inputs, folder)[value].astype(np.float64) / 2.0**60
        exact = (x.astype(np.float64) @ weight if kind == "MatMul" else
                 np.stack([[np.sum(image[0, :, i:i + 3].astype(np.float64) * k) for i in range(7)] for k in filters])[None])
        expect(np.allclose(found, exact, rtol=1e-5, atol=1e-5), f"{kind}: {found} instead of {exact}")  # sums of 9 products


@case
def powers_that_no_integer_holds(folder):
    """Folded or computed while the model runs, an integer power that overflows is the same number."""
    bases, exponents = [10, -10, 0, 2], [400, 401, -1, -3]
    constants = f"int64[4] c = {{{', '.join(map(str, bases))}}}, int64[4] e = {{{', '.join(map(str, exponents))}}}"
    text = f"g (int64[4] x) => (int64[4] y, int64[4] z) <{constants}> {{ y = Pow(x, e) z = Pow(c, e) }}"
    path = folder / "m.onnx"
    path.write_bytes(onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\n' + text).SerializeToString())
    found = run_package(compile_model(path, folder), {"x": np.array(bases)}, folder)
    expect(np.array_equal(found["y"], found["z"]), f"expected equal powers, found {found['y']} and {found['z']}")


@case
def attribute_names_are_those_of_the_standard(folder):
    """Models of every operator, each with an attribute that none has: the diagnostics name all that it does have, which
    must be those of ONNX's schemas at each opset, and of ONNX Runtime's for the operators that it contributes."""
    import re
    from onnx import defs, helper
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    runs = [("", opset, {}) for opset in range(1, 28)] + [("com.microsoft", 1, {})]
    for schema in defs.get_all_schemas_with_history():
        for domain, opset, schemas in runs:
            if schema.domain == domain == "" and schema.since_version <= opset:
                if schema.name not in schemas or schemas[schema.name].since_version < schema.since_version:
                    schemas[schema.name] = schema
    runs[-1][2].update((schema.name, schema) for schema in get_all_operator_schema() if schema.domain == "com.microsoft")
    compared = 0
    for domain, opset, schemas in runs:
        nodes = [helper.make_node(name, [], [name], name=name, domain=domain, bogus=1) for name in sorted(schemas)]
        graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info(nodes[0].name, 1, [1])])
        imports = [helper.make_opsetid(domain, opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        said = tool("ds-opt", folder / "m.onnx", "--stop-after=memory", "-o", folder / "out.mlir", code=1).err
        for name, legal in re.findall(r"error: (\w+): expected (.*) at opset \d+, found 'bogus'", said):
            wanted, found = sorted(schemas[name].attributes), sorted(re.findall(r"'(\w+)'", legal))
            expect(found == wanted, f"{domain} {name} at opset {opset}: expected attributes {wanted}, found {found}")
            compared += 1
    expect(compared > 3000, f"expected diagnostics of most operators at 27 opsets, found {compared}")
