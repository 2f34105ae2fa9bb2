"""What files in the wild hold and ONNX Runtime accepts: wrong statements whose intent is plain, with one warning per
kind and file, and inputs without shapes. Every model is built here and compared with ONNX Runtime."""
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

from kit import case, distance, expect, onnx_runtime, run_package, tool
from programs import SEED

FLOAT = np.float32


def value(name, shape, kind=T.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def stored(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def write(path, nodes, inputs, outputs, initializers=(), stated=(), opsets=(("", 17), ("com.microsoft", 1)), ir=8):
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs),
                              [stored(name, array) for name, array in dict(initializers).items()],
                              value_info=list(stated))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=ir), path)
    return path


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def compiled(model, folder, *options):
    """The package and the warnings of its compilation."""
    result = tool("ds-opt", model, "-o", folder / f"{model.stem}.dsp", *options)
    return folder / f"{model.stem}.dsp", [line for line in result.err.splitlines() if "warning: " in line]


def agree(package, model, feeds, folder, tolerance, what=""):
    ours, theirs = run_package(package, feeds, folder), onnx_runtime(model, feeds)
    expect(set(ours) == set(theirs), f"expected outputs {sorted(theirs)}, found {sorted(ours)}")
    for name, expected in theirs.items():
        found = distance(ours[name], expected)
        expect(found <= tolerance,
               f"seed {SEED}: {model.stem} {what}: output {name} is {found:.3g} from ONNX Runtime's, "
               f"{ours[name].dtype}{ours[name].shape} against {expected.dtype}{expected.shape}")


def warned(warnings, *texts):
    """Exactly these warnings, one per text."""
    expect(len(warnings) == len(texts) and all(any(text in line for line in warnings) for text in texts),
           f"expected warnings {texts}, found {warnings}")


def normal(*shape, key=0):
    return np.random.default_rng([SEED, key, *shape]).standard_normal(shape).astype(FLOAT)


def refused(path, *texts, options=()):
    tool("ds-opt", path, "-o", path.with_suffix(".dsp"), *options, code=1, says=texts)


# ---- statements that are wrong ----

@case
def sizes_of_minus_one_are_dynamic(folder):
    model = write(folder / "minus.onnx", [node("Relu", "x", "m"), node("Add", "m b", "y")],
                  [value("x", [-1, 3, -1]), value("b", [-1])], [value("y", [-1, 3, -1])], stated=[value("m", [-1, 3,
                                                                                                              -1])])
    package, warnings = compiled(model, folder)
    warned(warnings, "expected sizes of at least 0, found -1; taken as dynamic (the first of 7 such dimensions)")
    for batch, width in (1, 1), (4, 5), (0, 2):
        agree(package, model, {"x": normal(batch, 3, width), "b": normal(width)}, folder, 0, (batch, width))
    once = write(folder / "once.onnx", [node("Relu", "x", "y")], [value("x", [-1])], [value("y", ["n"])])
    package, warnings = compiled(once, folder)
    warned(warnings, "taken as dynamic")
    expect("the first of" not in warnings[0], warnings)
    # Of an initializer that the graph lists among its inputs, too.
    old = write(folder / "old.onnx", [node("Add", "x w", "y")], [value("x", [2]), value("w", [-1])], [value("y", [2])],
                {"w": np.array([1, 2], FLOAT)}, ir=3)
    agree(compiled(old, folder)[0], old, {"x": normal(2)}, folder, 0)
    # -1 says that a size is not known; another negative number says nothing.
    refused(write(folder / "two.onnx", [node("Relu", "x", "y")], [value("x", [-2])], [value("y", ["n"])]), "found -2")


@case
def domains_of_one_version_need_no_import(folder):
    gelu = [helper.make_node("Gelu", ["x"], ["m"], domain="com.microsoft"),
            helper.make_node("BiasGelu", ["m", "b"], ["y"], domain="com.microsoft")]
    model = write(folder / "gelu.onnx", gelu, [value("x", ["n", 4])], [value("y", ["n", 4])], {"b": normal(4)},
                  opsets=[("", 17)])
    package, warnings = compiled(model, folder)
    warned(warnings,
           "found domain 'com.microsoft', whose only version is 1, without an import (the first of 2 such nodes)")
    # erf as a polynomial
    agree(package, model, {"x": normal(3, 4, key=1)}, folder, 1e-6)
    step = helper.make_node("Momentum", ["r", "t", "x", "g", "v"], ["y", "w"], domain="ai.onnx.preview.training",
                            alpha=0.9,
                            beta=1.0, mode="standard", norm_coefficient=0.0)
    model = write(folder / "step.onnx", [step], [value("r", []), value("t", [], T.INT64), *(value(n,
                                                                                                  [3]) for n in "xgv")],
                  [value("y", [3]), value("w", [3])], opsets=[("", 17)])
    package, warnings = compiled(model, folder)  # ONNX Runtime has no kernel for it
    warned(warnings, "found domain 'ai.onnx.preview.training'")
    x, g, v = (normal(3, key=key) for key in range(3))
    found = run_package(package, {"r": FLOAT(0.5), "t": np.int64(1), "x": x, "g": g, "v": v}, folder)
    expect(np.allclose(found["y"], x - 0.5 * (0.9 * v + g), atol=1e-6), found)
    # Both names of one domain, with one version; what another version would mean is open.
    both = [node("Relu", "x", "y")], [value("x", [2])], [value("y", [2])]
    model = write(folder / "both.onnx", *both, opsets=[("", 17), ("ai.onnx", 17)])
    warned(compiled(model, folder)[1])
    refused(write(folder / "versions.onnx", *both, opsets=[("", 17), ("ai.onnx", 11)]), "found 17 and 11")
    refused(write(folder / "foreign.onnx", [helper.make_node("Foo", ["x"], ["y"], domain="com.other")], *both[1:]),
            "found domain 'com.other'")


@case(seconds=3)
def constants_may_be_defined_twice_with_equal_contents(folder):
    def constant(name, array):
        return helper.make_node("Constant", [], [name], value=stored("", np.asarray(array, FLOAT)))

    large = np.tile(normal(1500), 2).reshape(2, 1500)[0]  # more than stays in the IR
    ends = [value("x", [1500])], [value("y", [1500])]
    add = [node("Add", "x c", "m"), node("Mul", "m d", "y")]
    model = write(folder / "twice.onnx", [constant("c", large), constant("d", [2]), *add, constant("c", large.copy()),
                                          constant("d", [2])], *ends)
    package, warnings = compiled(model, folder)
    warned(warnings, "found 'c' defined twice in one graph, with equal contents (the first of 2 such values)")
    agree(package, model, {"x": normal(1500, key=1)}, folder, 0)
    model = write(folder / "stored.onnx", [constant("c", large), constant("d", [2]), *add], *ends, {"c": large})
    package, warnings = compiled(model, folder)
    warned(warnings, "found 'c' defined twice in one graph, with equal contents")
    agree(package, model, {"x": normal(1500, key=1)}, folder, 0)
    # Two initializers of one name.
    model = write(folder / "both.onnx", [constant("d", [2]), *add], *ends, {"c": large})
    proto = onnx.load(model)
    proto.graph.initializer.append(stored("c", large))
    onnx.save(proto, model)
    warned(compiled(model, folder)[1], "found 'c' defined twice in one graph, with equal contents")
    # The attributes of a Constant that hold the same tensor.
    pairs = [({"value_floats": [1.0, 2.0]}, np.array([1, 2], FLOAT)), ({"value_float": 2.0}, FLOAT(2)),
             ({"value_floats": [-0.0]}, np.array([-0.0], FLOAT)), ({"value_ints": [3, 3]}, np.array([3, 3])),
             ({"value_int": 3}, np.int64(3))]
    for count, (held, array) in enumerate(pairs):
        nodes = [helper.make_node("Constant", [], ["c"], **held), node("Cast", "c", "f", to=T.FLOAT),
                 node("Add", "x f", "y"), helper.make_node("Constant", [], ["c"], value=stored("", array))]
        model = write(folder / f"held{count}.onnx", nodes, [value("x", [2])], [value("y", [2])])
        package, warnings = compiled(model, folder)
        warned(warnings, "found 'c' defined twice in one graph, with equal contents")
        agree(package, model, {"x": normal(2)}, folder, 0)
        for changed in array + 1, array[None], array.astype(np.int32 if array.dtype == np.int64 else np.float64):
            nodes[-1] = helper.make_node("Constant", [], ["c"], value=stored("", changed))
            refused(write(folder / "differs.onnx", nodes, [value("x", [2])], [value("y", [2])]),
                    "found 'c' defined twice in one graph")
    other = large.copy()
    other[-1] += 1
    for name, second in ("bytes", constant("c", other)), ("shape", constant("c", [large])), ("op", node("Relu", "x",
                                                                                                        "c")):
        refused(write(folder / f"{name}.onnx", [constant("c", large), constant("d", [2]), *add, second], *ends),
                "found 'c' defined twice in one graph")


@case
def inference_wins_over_stated_shapes(folder):
    nodes = [node("Relu", "x", "m"), node("Neg", "m", "k"), node("Abs", "k", "y"), node("Neg", "c", "z")]
    wrong = [value("m", [7]), value("k", [2, 4]), value("c", [9]), value("x", [2, 3, 1])]
    ends = [value("x", [2, 3])], [value("y", [6]), value("z", [3])]
    model = write(folder / "stale.onnx", nodes, *ends, {"c": normal(3)}, wrong)
    package, warnings = compiled(model, folder)
    warned(warnings, "expected one shape, found f32[2, 3] and f32[2, 3, 1]",
           "Relu: output 0 ('m'): the model states f32[7], it is f32[2, 3] (the first of 3 such shapes)")
    expect("the first of 2 such statements" in warnings[0], warnings)
    agree(package, model, {"x": normal(2, 3)}, folder, 0)
    # Two statements about one value that contradict each other: neither counts.
    model = write(folder / "two.onnx", nodes[:1], [value("x", [2, 3])], [value("m", [5])], stated=[value("m", [2, 9])])
    package, warnings = compiled(model, folder)
    warned(warnings, "expected one shape")
    agree(package, model, {"x": normal(2, 3)}, folder, 0)
    # Elements of another type, operands that contradict each other and defaults of inputs stay errors.
    refused(write(folder / "type.onnx", nodes, *ends, {"c": normal(3)}, [value("m", [2, 3], T.INT64)]),
            "expected i64[2, 3], as the model states, found f32[2, 3]")
    refused(write(folder / "operands.onnx", [node("Add", "x c", "y")], [value("x", [2, 3])], [value("y", None)],
                  {"c": normal(4)}), "shapes do not broadcast")
    refused(write(folder / "default.onnx", nodes, [value("x", [2, 3]), value("c", [4])], ends[1], {"c": normal(3)}),
            "initializer: expected f32[4], as the model states, found f32[3]")


@case
def stale_shapes_in_a_loop_are_counted_once(folder):
    body = helper.make_graph([node("Identity", "go", "on"), node("Add", "a a", "b")], "body",
                             [value("i", [], T.INT64), value("go", [], T.BOOL), value("a", [2])],
                             [value("on", [], T.BOOL), value("b", [5])])
    model = write(folder / "loop.onnx", [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
                  [value("n", [], T.INT64), value("x", [2])], [value("y", [2])])
    package, warnings = compiled(model, folder)
    warned(warnings, "Add: output 0 ('b'): the model states f32[5], it is f32[2]")
    expect("the first of" not in warnings[0], warnings)
    agree(package, model, {"n": np.array(3), "x": normal(2)}, folder, 0)


# ---- inputs without shapes ----

@case(seconds=3)
def shapes_of_inputs_come_from_the_command_line(folder):
    nodes = [node("MatMul", "x w", "m"), node("Add", "m s", "y")]
    model = write(folder / "bare.onnx", nodes, [value("x", None), value("s", None)], [value("y", None)],
                  {"w": normal(3, 4)})
    refused(model, "input 'x': expected a type with a shape", "--shape x=1,3,224,224 or --shape x=batch,seq",
            "input 's': expected a type with a shape")
    package, warnings = compiled(model, folder, "--shape", "x=batch,seq,3", "--shape=s=")
    warned(warnings)
    for shape in (1, 1), (2, 5), (0, 2):
        agree(package, model, {"x": normal(*shape, 3), "s": normal()}, folder, 1e-6, shape)
    # Names are shared, --dim pins them, and sizes are checked in every call.
    package, _ = compiled(model, folder, "--shape", "x=n,3", "--shape", "s=n,1", "--dim", "n=2")
    agree(package, model, {"x": normal(2, 3), "s": normal(2, 1)}, folder, 1e-6)
    package, _ = compiled(model, folder, "--shape", "x=2,3", "--shape", "s=4")
    np.savez(folder / "wrong.npz", x=normal(3, 3), s=normal(4))
    tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says="'x'")
    # What the file states stays; what it leaves open may be said.
    model = write(folder / "half.onnx", [node("Add", "x z", "y")], [value("x", ["batch", None, 3]), value("z",
                                                                                                          ["batch", 1,
                                                                                                           1])],
                  [value("y", None)])
    package, _ = compiled(model, folder, "--shape", "x=2,width,3")
    agree(package, model, {"x": normal(2, 5, 3), "z": normal(2, 1, 1)}, folder, 0)
    for shape, says in [("x=2,3", "expected 3 axes, as the model states, found 2"),
                        ("x=2,7,4", "axis 2: expected 3, as the model states, found '4'"),
                        ("x=b,7,3", "axis 0: expected a size or 'batch', as the model states, found 'b'"),
                        ("q=2", "--shape: expected the name of an input, found 'q'; inputs: x, z")]:
        refused(model, says, options=["--shape", shape])
    refused(model, "two sizes, 2 and 4", options=["--shape", "x=2,w,3", "--shape", "z=4,1,1"])
    refused(model, "two sizes, 2 and 4", options=["--shape", "x=2,w,3", "--dim", "batch=4"])
    # A name that looks as if it were made up is the file's all the same.
    model = write(folder / "named.onnx", [node("Add", "x z", "y")], [value("x", ["x_d0", None]), value("z", ["x_d0", 1])],
                  [value("y", None)])
    refused(model, "axis 0: expected a size or 'x_d0', as the model states, found 'n'", options=["--shape", "x=n,4"])
    package, _ = compiled(model, folder, "--shape", "x=3,width")
    agree(package, model, {"x": normal(3, 4), "z": normal(3, 1)}, folder, 0)
    np.savez(folder / "wrong.npz", x=normal(3, 4), z=normal(1, 1))
    tool("ds-run", package, "--inputs", folder / "wrong.npz", code=1, says="'z'")
    package, _ = compiled(model, folder, "--dim", "x_d1=4")
    agree(package, model, {"x": normal(2, 4), "z": normal(2, 1)}, folder, 0)
    for text in "x", "=2", "x=-1", "x=2,,3", "x=2,", "x=2;3", "x=99999999999999":
        tool("ds-opt", model, "-o", folder / "m.dsp", "--shape", text, code=2,
             says="--shape expects NAME=SIZE,SIZE,...")
    tool("ds-opt", model, "-o", folder / "m.dsp", "--shape=x=1", "--shape=x=2", code=2, says="gives 'x' two shapes")


@case
def programs_state_the_shapes_of_their_inputs(folder):
    model = write(folder / "m.onnx", [node("Relu", "x", "y")], [value("x", None)], [value("y", None)])
    tool("ds-opt", model, "--emit=onnx", "-o", folder / "onnx.mlir")
    tool("ds-opt", folder / "onnx.mlir", "-o", folder / "m.dsp", "--shape", "x=n,2")
    agree(folder / "m.dsp", model, {"x": normal(3, 2)}, folder, 0)
    tool("ds-opt", model, "--stop-after=import", "-o", folder / "ds.mlir", "--shape", "x=n,2")
    tool("ds-opt", folder / "ds.mlir", "-o", folder / "m.dsp", "--shape", "x=n,2", code=1,
         says="--shape expects a model")
