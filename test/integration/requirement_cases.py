"""What ops require of sizes that only a run knows, where the compiler folds or recomposes the op: sizes that ONNX Runtime
refuses are refused with one line, all others run and agree."""
import itertools

import numpy as np
import onnx
from onnx import parser

from kit import case, distance, expect, onnx_runtime, tool
from programs import SEED

HEAD = '<ir_version: 9, opset_import: ["" : %d]>\n'


def built(folder, text, opset=18, name="model"):
    path = folder / f"{name}.onnx"
    onnx.save(parser.parse_model(HEAD % opset + text), path)
    tool("ds-opt", path, "-o", folder / f"{name}.dsp")
    return path


def normal(*shape, key=0):
    return np.random.default_rng([SEED, key, *shape]).standard_normal(shape).astype(np.float32)


def like_onnx_runtime(model, feeds, folder, tolerance=1e-5):
    """Whether ONNX Runtime accepts the sizes; ours must do the same."""
    what = f"seed {SEED}: {model.stem}: " + ", ".join(
        f"{name}={feed.shape if feed.dtype == np.float32 else feed.tolist()}" for name, feed in feeds.items())
    try:
        theirs = onnx_runtime(model, feeds)
    except Exception as refusal:  # ONNX Runtime has several kinds of them
        expect("ONNXRuntimeError" in str(refusal), f"{what}: {refusal}")
        theirs = None
    np.savez(folder / "in.npz", **feeds)
    result = tool("ds-run", model.with_suffix(".dsp"), "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=None)
    if theirs is None:
        expect(result.code == 1 and len(result.err.strip().splitlines()) == 1, f"{what}: expected a refusal, found {result}")
        return False
    expect(result.code == 0, f"{what}: expected a result, found {result}")
    with np.load(folder / "out.npz") as ours:
        for name, expected in theirs.items():
            found = ours[name]
            expect(found.shape == expected.shape and found.dtype == expected.dtype and
                   distance(found, expected) <= tolerance, f"{what}: {name}: expected {expected}, found {found}")
    return True


def both(outcomes, what):
    expect(len(set(outcomes)) == 2, f"{what}: expected sizes that run and sizes that do not, found only {set(outcomes)}")


# ---- folding ----

# Each has x: float[4] and reads s: int64[1]; what it does to the sizes folds to nothing, or to a constant.
FOLDED = {
    "expand": "y = Expand (x, s)",
    "expand_of_expand": "e = Expand (x, s) y = Expand (e, four)",
    "expand_between": "n = Neg (x) e = Expand (n, s) y = Neg (e)",
    "expand_of_numbers": "e = Expand (numbers, s) c = Cast <to = 1> (e) y = Add (x, c)",
    "expand_of_zeros": "e = Expand (zeros, s) y = Add (x, e)",
    "expand_that_sizes_read": "e = Expand (numbers, s) p = ReduceSum <keepdims = 1> (e) y = Expand (one, p)",
    "reshape": "y = Reshape <allowzero = 1> (x, s)",
    "reshape_of_reshape": "p = Concat <axis = 0> (s, two) r = Reshape <allowzero = 1> (x, p) y = Reshape (r, four)",
    "reshape_and_back": "p = Concat <axis = 0> (two, s) r = Reshape <allowzero = 1> (x, p) n = Neg (r) "
                        "y = Reshape (n, all)",
    "slice_of_tile": "t = Tile (x, s) y = Slice (t, zero, four)",
    "shared": "e = Expand (x, s) f = Expand (x, s) y = Add (e, f)",
}
LIST = "<int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] all = {-1}, float[1] one = {1}, " \
       "int64[4] numbers = {1, 2, 3, 4}, float[4] zeros = {0, 0, 0, 0}>"


def define(name):
    def run(folder):
        model = built(folder, f"m (float[4] x, int64[1] s) => (float[n] y) {LIST} {{ {FOLDED[name]} }}")
        numbers = [4, 1, 2, -7, 3, 5, 7, -2, -4, 8, 2**31] + [int(n) for n in
                                                             np.random.default_rng(SEED).integers(-9, 9, 4)]
        if name == "expand_that_sizes_read":
            numbers.remove(2**31)
        both([like_onnx_runtime(model, {"x": normal(4), "s": np.array([n])}, folder)
              for n in numbers if n not in (0, -1)], name)
    run.__name__ = f"safety_of_folded_{name}"
    case(run)


for name in FOLDED:
    define(name)


@case
def safety_of_folded_places(folder):
    """A slice that is whole where it is legal at all: refused where it is not."""
    source = folder / "m.mlir"
    source.write_text("""
func.func @main(%x: tensor<4xf32> {ds.name = "x", ds.dims = [4]}, %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]})
    -> (tensor<4xf32> {ds.name = "y"}) attributes {ds.entry} {
  %0 = ds.slice %x starts ["s[0]"] sizes [4] steps [1] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = ds.slice %0 starts [0] sizes [4] steps [1] : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
""")
    tool("ds-opt", source, "-o", folder / "m.dsp")
    for start in 0, 1, -1, 4, 2**62:
        np.savez(folder / "in.npz", x=normal(4), s=np.array([start]))
        result = tool("ds-run", folder / "m.dsp", "--inputs", folder / "in.npz", code=0 if start == 0 else 1)
        expect(start == 0 or len(result.err.strip().splitlines()) == 1, f"{start}: {result}")


@case
def safety_of_gradients(folder):
    """Of a function of which nothing but the gradient is left."""
    source = folder / "m.mlir"
    source.write_text("""
func.func @main(%x: tensor<4xf32> {ds.name = "x", ds.dims = [4]}, %s: tensor<1xi64> {ds.name = "s", ds.dims = [1]})
    -> (tensor<4xf32> {ds.name = "dx"}) attributes {ds.entry} {
  %dx = train.gradient (%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = ds.broadcast %a ["s[0]"] : (tensor<4xf32>) -> tensor<4xf32>
    %1 = ds.reduce sum %0 axes [0] keep false : (tensor<4xf32>) -> tensor<f32>
    train.yield %1 : tensor<f32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}
""")
    tool("ds-opt", source, "-o", folder / "m.dsp")
    for size in 4, 1, 2, 0, -7:
        np.savez(folder / "in.npz", x=normal(4), s=np.array([size]))
        tool("ds-run", folder / "m.dsp", "--inputs", folder / "in.npz", code=0 if size in (1, 4) else 1)


BRANCHES = """
m (float[4] x, int64[1] s, bool c) => (float[n] y) {
  y = If (c) <
    then_branch = yes () => (float[k] a) { a = Expand (x, s) },
    else_branch = no () => (float[l] b) { b = OTHER (x) }
  >
}
"""


@case
def safety_of_folds_in_branches(folder):
    """What a branch requires is required where it is taken, also where nothing else is left of it."""
    for other in "Neg", "Identity":
        model = built(folder, BRANCHES.replace("OTHER", other), name=f"branch_{other}")
        both([like_onnx_runtime(model, {"x": normal(4), "s": np.array([s]), "c": np.array(c)}, folder)
              for s, c in itertools.product((4, 1, 2, -7), (True, False))], other)


LOOP = """
m (float[4] x, int64[1] s, int64 trips) => (float[4] y) <bool go = {1}> {
  y = Loop (trips, go, x) <
    body = b (int64 i, bool more, float[4] a) => (bool on, float[4] next) {
      on = Identity (more)
      e = Expand (a, s)
      next = Neg (e)
    }
  >
}
"""


@case
def safety_of_folds_in_loops(folder):
    """A loop that does not run requires nothing of sizes."""
    model = built(folder, LOOP, name="loop")
    both([like_onnx_runtime(model, {"x": normal(4), "s": np.array([s]), "trips": np.array(trips)}, folder)
          for s, trips in itertools.product((4, 1, 2, -7), (0, 1, 3))], "loop")


# ---- recompositions ----

ATTENTION = """
m (float[b, 2, s, 8] q, float[b, 2, s, 8] k, float[b, 2, s, 8] v, float[m, 1, s, s] mask) => (float[c, 2, s, 8] y)
    <float low = {-10000}, float zero = {0}, int64 i0 = {0}, int64 i1 = {1}, int64[1] first = {0}, int64[2] ones = {1, 1},
     int64[1] begin = {0}, int64[1] two = {2}, int64[1] end = {4}> {
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  product = MatMul (q, kt)
  sizes = Shape (mask)
  MASK
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, v)
}
"""
CAUSAL = """
  dims = Shape (mask)
  n = Gather (dims, last)
  columns = Range (i0, n, i1)
  rows = Unsqueeze (columns, at)
  seen = LessOrEqual (columns, rows)
"""
# How the mask comes to the scores: what an attention does not read must fit all the same.
MASKS = {
    "given": "scores = Add (product, mask)",
    "void": "none = Expand (zero, sizes) scores = Add (product, none)",
    "causal": CAUSAL + "triangle = Where (seen, zero, low) wide = Expand (triangle, sizes) scores = Add (product, wide)",
    "causal_choice": CAUSAL + "wide = Expand (seen, sizes) scores = Where (wide, product, low)",
    "causal_batches": CAUSAL + "triangle = Where (seen, zero, low) batch = Slice (sizes, begin, ones1) "
                      "front = Concat <axis = 0> (batch, ones3) wide = Expand (triangle, front) "
                      "scores = Add (product, wide)",
    "choice_of_all": "all = Expand (yes, sizes) scores = Where (all, product, low)",
}


def define_attention(name):
    def run(folder):
        constants = "int64 last = {3}, int64[1] at = {1}, int64[1] ones1 = {1}, int64[3] ones3 = {1, 1, 1}, bool yes = {1}, "
        model = built(folder, ATTENTION.replace("MASK", MASKS[name]).replace("<float low", "<" + constants + "float low"))
        outcomes = []
        for b, m, s in [(2, 2, 5), (2, 1, 5), (1, 3, 4), (2, 3, 4), (3, 2, 5), (1, 1, 1), (3, 3, 1), (4, 2, 3)]:
            feeds = {name: normal(b, 2, s, 8, key=key) for key, name in enumerate("qkv")}
            feeds["mask"] = normal(m, 1, s, s)
            outcomes.append(like_onnx_runtime(model, feeds, folder, 2e-5))
        both(outcomes, name)
    run.__name__ = f"safety_of_attention_with_{name}_mask"
    case(run)


for name in MASKS:
    define_attention(name)


@case
def safety_of_attention_in_batches_of_heads(folder):
    """Scores that are split into batch and heads for the mask: the sizes of the run must be those."""
    model = built(folder, """
m (float[bh, s, 8] q, float[bh, s, 8] k, float[bh, s, 8] v, float[b, 1, t, t] mask) => (float[bh, s, 8] y)
    <int64[1] begin = {0}, int64[1] one = {1}, int64[1] heads = {2}, int64[1] two = {2}, int64[1] three = {3}> {
  kt = Transpose <perm = [0, 2, 1]> (k)
  product = MatMul (q, kt)
  sizes = Shape (mask)
  batch = Slice (sizes, begin, one)
  rows = Slice (sizes, two, three)
  four = Concat <axis = 0> (batch, heads, rows, rows)
  split = Reshape (product, four)
  scores = Add (split, mask)
  joint = Shape (product)
  weights = Softmax <axis = -1> (scores)
  joined = Reshape (weights, joint)
  y = MatMul (joined, v)
}
""")
    outcomes = []
    for b, m, s, t in [(2, 2, 5, 5), (1, 1, 4, 4), (2, 1, 5, 5), (1, 2, 4, 4), (3, 3, 1, 1), (2, 2, 5, 4), (2, 2, 4, 8), (4, 1, 2, 4)]:
        feeds = {name: normal(2 * b, s, 8, key=key) for key, name in enumerate("qkv")}
        outcomes.append(like_onnx_runtime(model, {**feeds, "mask": normal(m, 1, t, t)}, folder, 2e-5))
    both(outcomes, "batches of heads")


@case
def safety_of_repeated_heads(folder):
    """Keys and values of fewer heads, expanded by a list of the run: the attention repeats them by itself."""
    model = built(folder, """
m (float[b, 4, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 8] v, int64[1] n) => (float[c, 4, s, 8] y)
    <int64[1] third = {2}, int64[1] two = {2}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] one = {1},
     int64[4] joint = {0, 4, -1, 8}> {
  list = Concat <axis = 0> (n, two, two, one, eight)
  k5 = Unsqueeze (k, third)
  ke = Expand (k5, list)
  kr = Reshape (ke, joint)
  v5 = Unsqueeze (v, third)
  ve = Expand (v5, list)
  vr = Reshape (ve, joint)
  kt = Transpose <perm = [0, 1, 3, 2]> (kr)
  scores = MatMul (q, kt)
  weights = Softmax <axis = -1> (scores)
  y = MatMul (weights, vr)
}
""")
    outcomes = []
    for b, n, s, t in [(2, 2, 3, 5), (2, 1, 3, 5), (1, 1, 4, 1), (2, 3, 3, 5), (3, 2, 3, 5), (2, -1, 3, 5), (2, 0, 3, 5), (1, 4, 2, 3)]:
        feeds = {"q": normal(b, 4, s, 8), "k": normal(b, 2, t, 8), "v": normal(b, 2, t, 8, key=1), "n": np.array([n])}
        outcomes.append(like_onnx_runtime(model, feeds, folder, 2e-5))
    both(outcomes, "repeated heads")


BODIES = """
m (float[b, 2, s, 8] q, float[b, 2, s, 8] k, float[b, 2, s, 8] v, float[m] z, KIND) => (float[b, 2, s, 8] y) <bool go = {1}> {
  y = NODE
}
"""
BODY = """
    e = Expand (zero, list)
    kt = Transpose <perm = [0, 1, 3, 2]> (k)
    product = MatMul (a, kt)
    scores = Add (product, e)
    weights = Softmax <axis = -1> (scores)
    attended = MatMul (weights, v)
"""


@case
def safety_of_attention_in_bodies(folder):
    """What an attention inside of a branch or a loop requires is required where that runs."""
    head = "zero = Constant <value_float = 0.0> () size = Shape (z) ones = Constant <value_ints = [1, 1, 1]> () " \
           "list = Concat <axis = 0> (size, ones) " + BODY
    nodes = {"branch": ("bool c", "If (c) < then_branch = yes () => (float[b, 2, s, 8] r) { a = Identity (q) " + head +
                        " r = Neg (attended) }, else_branch = no () => (float[b, 2, s, 8] p) { p = Neg (q) } >"),
             "loop": ("int64 c", "Loop (c, go, q) < body = l (int64 i, bool more, float[b, 2, s, 8] a) => "
                      "(bool on, float[b, 2, s, 8] r) { on = Identity (more) " + head + " r = Neg (attended) } >")}
    for name, (kind, node) in nodes.items():
        model = built(folder, BODIES.replace("KIND", kind).replace("NODE", node), name=name)
        outcomes = []
        for b, m, s in [(2, 2, 3), (2, 1, 3), (2, 3, 3), (3, 2, 1), (1, 1, 2)]:
            for c in (np.array(False), np.array(True)) if name == "branch" else (np.array(0), np.array(2)):
                feeds = {name: normal(b, 2, s, 8, key=key) for key, name in enumerate("qkv")}
                outcomes.append(like_onnx_runtime(model, {**feeds, "z": normal(m), "c": c}, folder, 2e-5))
        both(outcomes, name)


@case
def safety_of_rotary_embeddings(folder):
    model = built(folder, """
m (float[b, 2, s, 8] x, float[m, 1, t, 8] c, float[n, 1, t, 8] d) => (float[k, 2, s, 8] y)
    <int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] three = {3}> {
  first = Slice (x, zero, four, three)
  second = Slice (x, four, eight, three)
  negative = Neg (second)
  turned = Concat <axis = -1> (negative, first)
  a = Mul (x, c)
  z = Mul (turned, d)
  y = Add (a, z)
}
""")
    outcomes = []
    for b, m, n, s, t in [(2, 2, 2, 5, 5), (2, 1, 2, 5, 5), (2, 1, 1, 5, 1), (1, 2, 2, 3, 3), (2, 3, 1, 5, 5), (2, 1, 3, 5, 5),
                          (2, 2, 2, 5, 4), (1, 2, 3, 4, 4), (1, 2, 1, 1, 4)]:
        feeds = {"x": normal(b, 2, s, 8), "c": normal(m, 1, t, 8), "d": normal(n, 1, t, 8, key=1)}
        outcomes.append(like_onnx_runtime(model, feeds, folder))
    both(outcomes, "rotary")


@case
def safety_of_linear_layers(folder):
    """A width of the run meets a weight and a bias of the model."""
    model = built(folder, """
m (float[n, w] x, float[r, w] z) => (float[k, 3] y) <float[4, 3] weight = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float[3] bias = {1, 2, 3}> {
  p = MatMul (x, weight)
  q = Add (p, bias)
  r0 = MatMul (z, weight)
  y = Add (q, r0)
}
""")
    both([like_onnx_runtime(model, {"x": normal(n, w), "z": normal(r, w)}, folder)
          for n, r, w in [(2, 2, 4), (1, 2, 4), (2, 3, 4), (2, 2, 3), (2, 1, 5), (3, 3, 1)]], "linear")


@case
def safety_of_norms(folder):
    """A norm whose width only the run knows, with a scale and a bias of the model."""
    for name, centre in (("layer", "c = Sub (x, mean)"), ("rms", "c = Identity (x)")):
        model = built(folder, f"""
m (float[n, w] x) => (float[n, k] y) <float[4] scale = {{1, 2, 3, 4}}, float[4] bias = {{4, 5, 6, 7}}, float epsilon = {{0.00001}}> {{
  mean = ReduceMean <axes = [-1]> (x)
  {centre}
  square = Mul (c, c)
  variance = ReduceMean <axes = [-1]> (square)
  shifted = Add (variance, epsilon)
  root = Sqrt (shifted)
  normal = Div (c, root)
  scaled = Mul (normal, scale)
  y = Add (scaled, bias)
}}
""", opset=17, name=name)
        both([like_onnx_runtime(model, {"x": normal(n, w)}, folder) for n, w in [(2, 4), (1, 4), (2, 3), (3, 1), (2, 8)]], name)


# ---- parts ----

@case
def safety_of_split_by_a_list(folder):
    for name, split in (("given", None), ("written", [2, 3])):
        for opset in (11, 18) if split else (18,):
            listed = "" if split is None else (" <split = [2, 3]>" if opset == 11 else "")
            inputs = ", int64[2] s" if split is None else ""
            constants = "<int64[2] s = {2, 3}>" if split and opset == 18 else ""
            operand = "" if split and opset == 11 else ", s"
            for outputs in "y, z", "y, unread":
                read = "float[i] y, float[j] z" if "z" in outputs else "float[i] y"
                model = built(folder, f"m (float[n, 2] x{inputs}) => ({read.replace(']', ', 2]')}) {constants} "
                                      f"{{ {outputs} = Split{listed} (x{operand}) }}", opset, f"{name}{opset}{outputs[3:]}")
                lists = [[2, 3], [0, 5], [5, 0], [2, 2], [3, 3], [-1, 6], [6, -1], [0, 0]] if split is None else [None]
                both([like_onnx_runtime(model, {"x": normal(n, 2)} | ({} if l is None else {"s": np.array(l)}), folder)
                      for n in (5, 4, 6, 0) for l in lists], model.stem)


@case(seconds=3)
def safety_of_split_into_equal_parts(folder):
    for opset, attribute in ((11, ""), (13, ""), (18, " <num_outputs = 2>")):
        for outputs in "y, z", "y, unread", "unread, y":
            read = "float[i] y, float[j] z" if "z" in outputs else "float[i] y"
            model = built(folder, f"m (float[n] x) => ({read}) {{ {outputs} = Split{attribute} (x) }}", opset,
                          f"equal{opset}{outputs.replace(', ', '_')}")
            outcomes = [like_onnx_runtime(model, {"x": normal(n)}, folder) for n in (2, 3, 4, 5, 6, 7, 9)]
            expect(opset == 18 or len(set(outcomes)) == 2, f"{model.stem}: {outcomes}")
    # The standard makes the last of four parts smaller as long as there is one; ONNX Runtime wants it to have an element.
    for outputs in "a, b, c, y", "y, b, c, d":
        model = built(folder, f"m (float[n] x) => (float[i] y) {{ {outputs} = Split <num_outputs = 4> (x) }}", 18,
                      "four" + outputs[:1])
        for n, size in ((4, 1), (7, 2), (8, 2), (13, 4), (9, 3), (5, None), (2, None)):
            np.savez(folder / "in.npz", x=normal(n))
            result = tool("ds-run", model.with_suffix(".dsp"), "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=None)
            expect(result.code == (0 if size else 1), f"{n} into 4: {result}")
            if not size:
                continue
            with np.load(folder / "out.npz") as found:
                start = 3 * size if outputs[0] == "a" else 0
                expect(np.array_equal(found["y"], normal(n)[start:start + size]), f"{n} into 4: found {found['y']}")


@case
def requirements_without_a_place(folder):
    """A requirement that was written by hand: its diagnostic begins with the sizes."""
    (folder / "m.mlir").write_text("""
func.func @main(%x: tensor<?xf32> {ds.name = "x", ds.dims = ["n"]}, %z: tensor<?xf32> {ds.name = "z", ds.dims = ["m"]})
    -> (tensor<?xf32> {ds.name = "y", ds.dims = ["n"]}) attributes {ds.entry} {
  ds.require "n" at least "m"
  %0 = ds.unary neg %x : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
""")
    tool("ds-opt", folder / "m.mlir", "-o", folder / "m.dsp")
    for n, m in ((3, 2), (2, 3)):
        np.savez(folder / "in.npz", x=normal(n), z=normal(m))
        result = tool("ds-run", folder / "m.dsp", "--inputs", folder / "in.npz", code=0 if n >= m else 1)
        expect(n >= m or "entry 'main': n >= m does not hold, found 2 and 3" in result.err, f"{result}")
