"""The rules of ds-differentiate, op by op, against differences in float64 on fresh random inputs."""
from functools import partial

import numpy as np

from gradients import STEP, TOLERANCE, Gradients
from kit import case, compile_model, distance, expect, run_package
from programs import SEED


@case
def unary_functions(folder):
    g = Gradients(opset=22)
    for name in ("Neg", "Exp", "Reciprocal", "Erf", "Tanh", "Sigmoid", "Relu", "Sin", "Cos", "Abs", "Sinh", "Cosh",
                 "Asinh", "Atan", "Softplus", "Softsign", "LeakyRelu", "Elu", "Selu", "Mish", "Celu"):
        g.test(f"y = {name} (x)", x=g.away(3, 5, least=0.6))
    for name in ("HardSigmoid", "HardSwish", "ThresholdedRelu"):
        g.test(f"y = {name} (x)", x=g.between_halves(3, 5))
    for name in ("Log", "Sqrt"):
        g.test(f"y = {name} (x)", x=g.numbers(7, low=0.6))
    for name in ("Asin", "Acos", "Atanh", "Tan"):
        g.test(f"y = {name} (x)", x=g.numbers(7, low=-0.6, high=0.6))
    g.test("y = Acosh (x)", x=g.numbers(7, low=1.7, high=4))
    for name in ("Floor", "Ceil", "Round", "Sign"):
        g.test(f"s = {name} (x) y = Add (s, x)", x=g.away(6) * 0.4)
    g.test('y = Gelu (x)', x=g.numbers(11))
    g.test('y = Gelu <approximate = "tanh"> (x)', x=g.numbers(11))
    g.verify(folder)


@case
def activations_far_and_at_zero(folder):
    """Where the branch that is not taken is infinite, and where slopes of both sides meet."""
    g = Gradients(opset=22)
    for name in ("Softplus", "Mish"):
        g.test(f"y = {name} (x)", x=np.array([0, 300, -300, -40, 1, -1.0]))
    for name in ("Elu", "Celu", "Selu"):
        g.test(f"y = {name} (x)", x=np.array([800, -800, -40, 1, -1.0]))
    g.verify(folder)


@case
def binary_functions(folder):
    g = Gradients()
    for name in ("Add", "Sub", "Mul", "Div"):
        g.test(f"y = {name} (a, b)", a=g.numbers(2, 3), b=g.away(2, 3, least=0.9))
        g.test(f"y = {name} (a, b)", a=g.numbers(2, 1, 3), b=g.away(4, 1, least=0.9))  # both are repeated
        g.test(f"y = {name} (a, b)", a=g.away(), b=g.away(2, 2, least=0.9))
        g.test(f"y = {name} (a, a)", a=g.away(5, least=0.9))  # both are one value
    g.test("y = Pow (a, b)", a=g.numbers(2, 3, low=0.6), b=g.numbers(3))
    g.test("y = Pow (a, b)", a=g.away(6, least=0.9), b=np.array([2.0, 3, 1, 2, 0, -1]), xs=["a"])
    g.test("y = Pow (a, b)", a=g.away(4, least=0.9), b=np.array([3, 2, 0, -2]))  # whole exponents
    for name in ("Min", "Max"):
        g.test(f"y = {name} (a, b, c)", a=g.spread(2, 3), b=g.spread(2, 1) + 0.01, c=g.spread(3) + 0.02)
    g.test("y = Mod <fmod = 1> (a, b)", a=np.array([7.3, -5.2, 3.9]), b=np.array([2.0, 1.5, -1.1]))
    g.test("y = Clip (x, low, high)", x=g.spread(9) + 0.003, low=np.array(-0.6), high=np.array(0.9))
    g.test("y = Where (c, a, b)", c=g.random.integers(0, 2, (2, 1, 4)).astype(bool), a=g.numbers(3, 1), b=g.numbers(4))
    g.test("t = Cast <to = 1> (x) y = Cast <to = $T> (t)", x=g.numbers(5).astype(np.float32).astype(float), xs=[])
    g.functions.pop()
    g.verify(folder)


@case(seconds=4)
def run_time_broadcasts(folder):
    """Sizes that are 1 or equal are told apart when the model runs."""
    for sizes in ((1, 4, 4), (4, 1, 4), (4, 4, 1), (1, 1, 3), (2, 2, 2)):
        g = Gradients()
        i, j, k = sizes
        dims = {"a": ["i", 3], "b": ["j", 3], "c": ["k", 1, 1]}
        g.test("s = Mul (a, b) y = Add (s, c)", a=g.numbers(i, 3), b=g.numbers(j, 3), c=g.numbers(k, 1, 1), dims=dims)
        g.test("s = Mul (a, b) t = Tanh (s) y = Mul (t, a)", a=g.numbers(i, 3), b=g.numbers(j, 3), dims=dims)
        g.verify(folder, elements=(np.float64,))


@case(seconds=6)
def windows(folder):
    g = Gradients()
    for options, x, w in (("", (2, 3, 5), (4, 3, 2)),
                          ("<strides = [2], pads = [1, 2], dilations = [2]>", (1, 2, 8), (3, 2, 3)),
                          ("<strides = [2, 3], pads = [1, 0, 1, 2]>", (2, 2, 5, 6), (3, 2, 3, 2)),
                          ("<group = 2, strides = [2, 1]>", (2, 4, 5, 4), (6, 2, 2, 3)),
                          ("<group = 4, dilations = [1, 2]>", (1, 4, 3, 4), (4, 1, 2, 2))):
        g.test(f"y = Conv {options} (x, w, b)", x=g.numbers(*x), w=g.numbers(*w), b=g.numbers(w[0]))
    g.test("y = Conv <pads = [1, 1]> (x, w)", x=g.numbers(2, 2, 5), w=g.numbers(3, 2, 3), dims={"x": ["n", 2, "s"]})
    for kind in ("Max", "Average", "Lp"):
        # Differences of the second order of a norm need a window that is not close to the origin.
        numbers = {"Max": g.spread, "Average": g.numbers, "Lp": partial(g.away, least=0.5)}[kind]
        for options in ("kernel_shape = [2]", "kernel_shape = [3], strides = [2], pads = [1, 1]",
                        "kernel_shape = [3], strides = [2], ceil_mode = 1", "kernel_shape = [2], dilations = [2]"):
            if kind != "Lp" or "dilations" not in options and "ceil" not in options:
                g.test(f"y = {kind}Pool <{options}> (x)", x=numbers(2, 2, 6))
        g.test(f"y = {kind}Pool <kernel_shape = [2, 3], strides = [2, 1]> (x)", x=numbers(1, 2, 4, 5),
               dims={"x": ["n", 2, 4, "s"]})
    g.test("y = AveragePool <kernel_shape = [3], strides = [2], pads = [1, 1], count_include_pad = 1> (x)",
           x=g.numbers(2, 2, 6))
    g.test("y = LpPool <p = 3, kernel_shape = [2]> (x)", x=g.away(1, 1, 4, least=0.5))
    for name in ("GlobalAveragePool", "GlobalMaxPool"):
        g.test(f"y = {name} (x)", x=g.spread(2, 2, 3, 2))
    g.verify(folder)


@case
def run_time_movement(folder):
    g = Gradients()
    dims = {"x": ["n", "m"], "z": ["k", "m"]}
    g.test("s = Shape (x) t = Transpose (x) y = Reshape (t, s)", x=g.numbers(3, 4), dims=dims)
    g.test("c = Concat <axis = 0> (x, z) y = Slice (c, b, e, a, s)",
           {"b": np.array([-2, 1]), "e": np.array([-99, 99]), "a": np.array([0, 1]), "s": np.array([-1, 2])},
           x=g.numbers(3, 4), z=g.numbers(2, 4), dims=dims)
    g.test("m = ReduceMean <keepdims = 1> (x, a) v = Sub (x, m) y = Mul (v, v)", {"a": np.array([0])},
           x=g.numbers(3, 4), dims=dims)
    g.verify(folder)


@case
def indexing(folder):
    g = Gradients()
    i = g.random.integers(-4, 4, (2, 3))
    for axis in (0, 1, 2):
        g.test(f"y = Gather <axis = {axis}> (x, i)", {"i": i}, x=g.numbers(4, 4, 4))
    g.test("y = Gather <axis = 1> (x, i)", {"i": np.array(2)}, x=g.numbers(2, 4))
    g.test("y = Gather (x, i)", x=g.numbers(5, 2), i=np.array([4, 0, 4, -1]))  # indices known when it runs
    g.test("y = GatherElements <axis = 1> (x, i)", {"i": g.random.integers(-4, 4, (2, 6))}, x=g.numbers(2, 4))
    g.test("y = GatherND (x, i)", {"i": g.random.integers(0, 3, (5, 2))}, x=g.numbers(3, 3, 2))
    g.test("y = ScatterElements <axis = 1> (x, i, u)", {"i": np.array([[0, 3], [2, 1]])}, x=g.numbers(2, 4),
           u=g.numbers(2, 2))
    g.test('y = ScatterElements <reduction = "add"> (x, i, u)', {"i": np.array([[0, 1], [0, 2]])}, x=g.numbers(3, 2),
           u=g.numbers(2, 2))
    g.test("y = ScatterND (x, i, u)", {"i": np.array([[2], [0]])}, x=g.numbers(4, 3), u=g.numbers(2, 3))
    g.test('y = ScatterND <reduction = "add"> (x, i, u)', {"i": np.array([[2], [2]])}, x=g.numbers(4, 3),
           u=g.numbers(2, 3))
    g.test("y, j = TopK <axis = 1> (x, k)", {"k": np.array([2])}, x=g.spread(3, 5))
    g.test("y, j = TopK <axis = 0, largest = 0> (x, k)", {"k": np.array([2])}, x=g.spread(4, 2))
    g.test("y = OneHot (i, k, v)", {"i": np.array([2, 0]), "k": np.array(3)}, v=g.numbers(2))
    g.verify(folder)


@case(seconds=4)
def reductions(folder):
    g = Gradients(opset=26)
    for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        numbers = {"Max": g.spread, "Min": g.spread, "LogSum": partial(g.numbers, low=0.3),
                   "L1": g.away, "L2": partial(g.away, least=0.5),
                   # Along a direction v, differences of a product are off by squares of v/x.
                   "Prod": partial(g.away, least=1)}.get(name, g.numbers)
        for axes, keep in (([1], 1), ([0, 2], 0), ([], 0)):
            g.test(f"y = Reduce{name} <keepdims = {keep}> (x, a)", {"a": np.array(axes, np.int64)}, x=numbers(2, 3, 4))
    x = g.numbers(4, 3)
    x[1, 0] = x[2, 1] = x[3, 1] = 0  # no quotients by what is 0
    g.test("y = ReduceProd (x, a)", {"a": np.array([0])}, x=x)
    for options in ("", "<exclusive = 1>", "<reverse = 1>", "<exclusive = 1, reverse = 1>"):
        g.test(f"y = CumSum {options} (x, a)", {"a": np.array(1)}, x=g.numbers(2, 4))
        g.test(f"y = CumProd {options} (x, a)", {"a": np.array(1)}, x=g.numbers(2, 4, 2))
    g.verify(folder)


@case(seconds=3)
def normalizations(folder):
    g = Gradients()
    for axis in (0, 1, -1):
        g.test(f"y = Softmax <axis = {axis}> (x)", x=g.numbers(3, 4, 2))
        g.test(f"y = LogSoftmax <axis = {axis}> (x)", x=g.numbers(3, 4, 2))
    for axis in (1, -1):
        shape = (3, 4) if axis == 1 else (4,)
        g.test(f"y = LayerNormalization <axis = {axis}> (x, s, b)", x=g.scattered(2, 3, 4), s=g.numbers(*shape),
               b=g.numbers(*shape))
    g.test("y = LayerNormalization (x, s)", x=g.scattered(5, 6), s=g.numbers(6))
    g.test("q = Mul (x, x) m = ReduceMean <keepdims = 1> (q, a) e = Add (m, eps) r = Sqrt (e) d = Div (x, r) "
           "y = Mul (d, s)", {"a": np.array([-1]), "eps": np.array(1e-5)}, x=g.scattered(4, 5), s=g.numbers(5))
    g.test("y = SoftmaxCrossEntropyLoss (x, t)", x=g.numbers(4, 3), t=np.array([0, 2, 1, 1]))
    g.test("y = BatchNormalization (x, s, b, m, v)", {"m": g.numbers(3), "v": g.numbers(3, low=0.5)},
           x=g.numbers(2, 3, 4), s=g.numbers(3), b=g.numbers(3))
    g.test("y = InstanceNormalization (x, s, b)", x=g.scattered(2, 3, 4), s=g.numbers(3), b=g.numbers(3))
    g.verify(folder)


@case(seconds=5)
def products(folder):
    g = Gradients()
    for a, b in (((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 2, 3), (3, 4)),
                 ((2, 1, 2, 3), (4, 3, 2)), ((2, 3), (5, 3, 2)), ((1, 2, 3), (4, 3, 2)), ((3,), (2, 3, 4))):
        g.test("y = MatMul (a, b)", a=g.numbers(*a), b=g.numbers(*b))
    for left in (0, 1):
        for right in (0, 1):
            g.test(f"y = Gemm <transA = {left}, transB = {right}, alpha = 0.7, beta = 1.3> (a, b, c)",
                   a=g.numbers(*((3, 2) if left else (2, 3))), b=g.numbers(*((4, 3) if right else (3, 4))),
                   c=g.numbers(4))
    g.test("y = MatMul (a, a)", a=g.numbers(3, 3))
    g.test("y = MatMul (a, w)", {"w": g.numbers(3, 4)}, a=g.numbers(2, 5, 3))  # becomes ds.linear
    g.test("p = MatMul (a, w) y = Add (p, b)", {"w": g.numbers(3, 4), "b": g.numbers(4)}, a=g.numbers(2, 5, 3))
    g.test("y = Einsum <equation = \"bij,bkj->ik\"> (a, b)", a=g.numbers(2, 3, 4), b=g.numbers(2, 5, 4))
    g.test("y = MatMul (a, b)", a=g.numbers(2, 3, 4), b=g.numbers(1, 4, 2), dims={"a": ["p", 3, "k"],
                                                                                 "b": ["q", "k", 2]})
    g.verify(folder)


ATTENTION = """
  k = Transpose <perm = [0, 1, 3, 2]> (key)
  raw = MatMul (q, k)
  scores = Mul (raw, scale)
  masked = Add (scores, mask)
  p = Softmax <axis = -1> (masked)
  y = MatMul (p, v)
"""


@case(seconds=12)
def attention(folder):
    g = Gradients()
    scale = {"scale": np.array(0.4)}
    for mask in ((2, 3), (2, 1, 2, 3), (4, 2, 3)):
        g.test(ATTENTION, scale, q=g.numbers(2, 4, 2, 6), key=g.numbers(2, 4, 3, 6), v=g.numbers(2, 4, 3, 5),
               mask=g.numbers(*mask), becomes=["ds.attention"])
    g.test(ATTENTION, scale, q=g.numbers(1, 2, 3, 4), key=g.numbers(1, 2, 3, 4), v=g.numbers(1, 2, 3, 4), xs=["q"],
           mask=np.triu(np.full((3, 3), -np.inf), 1), becomes=["ds.attention"])
    dims = {"q": ["b", 2, "s", 4], "key": ["b", 2, "t", 4], "v": ["b", 2, "t", 3], "mask": ["s", "t"]}
    g.test(ATTENTION, scale, q=g.numbers(2, 2, 3, 4), key=g.numbers(2, 2, 2, 4), v=g.numbers(2, 2, 2, 3),
           mask=g.numbers(3, 2), dims=dims, becomes=["ds.attention"])
    # One key and value head for two heads of the query.
    g.test("""u = Unsqueeze (kv, two) e = Expand (u, many) key = Reshape (e, flat)
           v = Tanh (key)""" + ATTENTION,
           {"two": np.array([2]), "many": np.array([1, 2, 2, 3, 4]), "flat": np.array([1, 4, 3, 4]),
            "scale": np.array(0.5)}, q=g.numbers(1, 4, 2, 4), kv=g.numbers(1, 2, 3, 4), mask=g.numbers(2, 3))
    # Self attention: query, key and value are one value.
    g.test(ATTENTION.replace("q,", "x,").replace("key)", "x)").replace("v)", "x)"), scale, x=g.numbers(1, 2, 3, 4),
           mask=g.numbers(3, 3))
    g.verify(folder)


TRANSFORMER = """
  x = Gather (embedding, ids)
  n1 = LayerNormalization <axis = -1> (x, scale1, bias1)
  qkv = MatMul (n1, wqkv)
  flat_q, flat_k, flat_v = Split <axis = -1, num_outputs = 3> (qkv)
  heads_q = Reshape (flat_q, heads)
  heads_k = Reshape (flat_k, heads)
  heads_v = Reshape (flat_v, heads)
  q = Transpose <perm = [0, 2, 1, 3]> (heads_q)
  key = Transpose <perm = [0, 2, 1, 3]> (heads_k)
  v = Transpose <perm = [0, 2, 1, 3]> (heads_v)
""" + ATTENTION.replace("y = ", "o = ") + """
  back = Transpose <perm = [0, 2, 1, 3]> (o)
  joined = Reshape (back, tokens)
  projected = MatMul (joined, wo)
  x2 = Add (x, projected)
  n2 = LayerNormalization <axis = -1> (x2, scale2, bias2)
  up = MatMul (n2, w1)
  up_b = Add (up, b1)
  active = Gelu (up_b)
  down = MatMul (active, w2)
  x3 = Add (x2, down)
  out = Transpose <perm = [1, 0]> (embedding)
  logits = MatMul (x3, out)
  classes = Transpose <perm = [0, 2, 1]> (logits)
  y = SoftmaxCrossEntropyLoss (classes, labels)
"""


@case(seconds=3)
def transformer_block(folder):
    """A layer between an embedding and the loss that shares its weight: the gradient of every parameter."""
    g = Gradients()
    width, vocabulary, batch, length = 4, 6, 2, 3
    tokens = g.random.integers(0, vocabulary, (2, batch, length))
    g.test(TRANSFORMER, {"heads": np.array([0, 0, 2, 2]), "tokens": np.array([0, 0, width]), "scale": np.array(0.7),
                         "mask": np.triu(np.full((length, length), -1e9), 1)},
           dims={"ids": ["batch", length], "labels": ["batch", length]}, becomes=["ds.attention"],
           embedding=g.scattered(vocabulary, width), scale1=g.numbers(width), bias1=g.numbers(width),
           wqkv=g.numbers(width, 3 * width), wo=g.numbers(width, width), scale2=g.numbers(width),
           bias2=g.numbers(width), w1=g.numbers(width, 5), b1=g.numbers(5), w2=g.numbers(5, width),
           ids=tokens[0], labels=tokens[1])
    g.verify(folder, orders=(1,))


@case
def narrow_floats(folder):
    """f16 and bf16, whose sums are kept in f32: as far from float64 as their results round."""
    g = Gradients(opset=21)
    g.test("y = Softmax (x)", x=g.numbers(3, 5))
    g.test("y = LayerNormalization (x, s, b)", x=g.scattered(3, 8), s=g.numbers(8), b=g.numbers(8))
    g.test("y = MatMul (a, b)", a=g.numbers(3, 4), b=g.numbers(4, 2))
    g.test("s = Mul (a, b) y = Tanh (s)", a=g.numbers(3, 4), b=g.numbers(4))
    g.test("y = Div (a, b)", a=g.numbers(4), b=g.away(4, least=0.9))
    g.test("y = ReduceL2 (x, a)", {"a": np.array([1])}, x=g.scattered(3, 4))
    g.test("t = Cast <to = 1> (x) u = Sin (t) y = Cast <to = $T> (u)", x=g.numbers(5))
    g.verify(folder, elements=(np.float16,), orders=(1,))


@case
def gelu_flavours(folder):
    g = Gradients()
    g.test("s = Mul (x, c) e = Erf (s) o = Add (e, one) m = Mul (x, o) y = Mul (m, half)",
           {"c": np.array(np.sqrt(0.5)), "one": np.array(1.0), "half": np.array(0.5)}, x=g.numbers(3, 4),
           becomes=["ds.gelu erf"])
    g.test("""c = Mul (x, x) d = Mul (c, x) e = Mul (d, cubic) f = Add (x, e) h = Mul (f, root) t = Tanh (h)
           o = Add (t, one) m = Mul (x, o) y = Mul (m, half)""",
           {"cubic": np.array(0.044715), "root": np.array(np.sqrt(2 / np.pi)), "one": np.array(1.0),
            "half": np.array(0.5)}, x=g.numbers(3, 4), becomes=["ds.gelu tanh"])
    g.test("s = Mul (x, c) t = Sigmoid (s) y = Mul (x, t)", {"c": np.array(1.702)}, x=g.numbers(3, 4),
           becomes=["ds.gelu quick"])
    g.verify(folder, elements=(np.float64, np.float32, np.float16))


def op_gradients(folder, text, forward, inputs, name):
    """The gradient through one op that no ONNX operator yields as it is, against differences of a NumPy function."""
    random = np.random.default_rng(SEED)
    types = {x: f"tensor<{''.join(f'{size}x' for size in array.shape)}f64>" for x, array in inputs.items()}
    weights = random.uniform(0.5, 2, forward(**inputs).shape)
    y = f"tensor<{''.join(f'{size}x' for size in weights.shape)}f64>"
    arguments = ", ".join(f'%{x}: {types[x]} {{ds.name = "{x}", ds.dims = {list(inputs[x].shape)}}}' for x in inputs)
    results = ", ".join(f'{types[x]} {{ds.name = "d{x}"}}' for x in inputs)
    xs, given = ", ".join(types.values()), ", ".join(f"%{x}" for x in inputs)
    (folder / f"{name}.mlir").write_text(f"""
func.func @main({arguments}, %weights: {y} {{ds.name = "weights", ds.dims = {list(weights.shape)}}}) -> ({results}) attributes {{ds.entry}} {{
  %d:{len(inputs)} = train.gradient ({given}) at (%weights) {{
  ^bb0({', '.join(f'%x{i}: {t}' for i, t in enumerate(types.values()))}, %factors: {y}):
    %0 = {text.format(*(f'%x{i}' for i in range(len(inputs))))} : ({xs}) -> {y}
    %1 = ds.binary mul %0, %factors : ({y}, {y}) -> {y}
    train.yield %1 : {y}
  }} : ({xs}, {y}) -> ({xs})
  return {', '.join(f'%d#{i}' for i in range(len(inputs)))} : {xs}
}}
""")
    found = run_package(compile_model(folder / f"{name}.mlir", folder, name=f"{name}.dsp"),
                        {**inputs, "weights": weights}, folder)
    for x, array in inputs.items():
        slopes = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            step = np.zeros_like(array)
            step[place] = STEP
            slopes[place] = np.sum(weights * (forward(**{**inputs, x: array + step}) -
                                              forward(**{**inputs, x: array - step}))) / (2 * STEP)
        off = distance(found[f"d{x}"], slopes, magnitude=1)  # differences of sums near 1, whatever the slope is
        expect(off <= TOLERANCE[np.float64], f"seed {SEED}: gradient of '{text}' with respect to {x} is off by {off:.3g}:"
               f"\n{found[f'd{x}']}\nexpected\n{slopes}")


def rotate(x, c, s, interleaved):
    pairs = x.reshape(*x.shape[:-1], -1, 2) if interleaved else np.stack(np.split(x, 2, -1), -1)

    def of(angle, index):  # one for each element, or one for each pair
        if angle.shape[-1] != x.shape[-1]:
            return angle
        return angle[..., index::2] if interleaved else np.split(angle, 2, -1)[index]
    first, second = pairs[..., 0], pairs[..., 1]
    turned = first * of(c, 0) - second * of(s, 0), second * of(c, 1) + first * of(s, 1)
    return np.stack(turned, -1).reshape(x.shape) if interleaved else np.concatenate(turned, -1)


@case(seconds=6)
def single_ops(folder):
    random = np.random.default_rng(SEED + 1)

    def numbers(*shape):
        return random.uniform(-2, 2, shape)
    for index, shape in enumerate([(5,), (2, 5), (2, 3, 5)]):
        op_gradients(folder, "ds.linear {0}, {1}, {2}", lambda x, w, b: x @ w + b,
                     {"x": numbers(*shape), "w": numbers(5, 4), "b": numbers(4)}, f"linear{index}")
    op_gradients(folder, "ds.linear {0}, {1}", lambda x, w: x @ w, {"x": numbers(3, 2), "w": numbers(2, 2)}, "plain")
    for name, interleaved in (("halves", False), ("pairs", True)):
        for count in (6, 3):
            op_gradients(folder, f"ds.rotary {{0}}, {{1}}, {{2}} interleaved {str(interleaved).lower()}",
                         lambda x, c, s, how=interleaved: rotate(x, c, s, how),
                         {"x": numbers(2, 3, 4, 6), "c": numbers(4, count), "s": numbers(4, count)}, f"{name}{count}")
            op_gradients(folder, f"ds.rotary {{0}}, {{1}}, {{2}} interleaved {str(interleaved).lower()} first 6",
                         lambda x, c, s, how=interleaved: np.concatenate((rotate(x[..., :6], c, s, how), x[..., 6:]), -1),
                         {"x": numbers(2, 3, 4, 9), "c": numbers(4, count), "s": numbers(4, count)}, f"first{name}{count}")

    def inserted(u, i):
        result = i.copy()
        result[1:3, 2:3] = u
        return result
    op_gradients(folder, "ds.insert {0} into {1} starts [1, 2]", inserted, {"u": numbers(2, 1), "i": numbers(4, 3)},
                 "insert")
    op_gradients(folder, "ds.rms_norm {0}, {1} axis 1 epsilon 1.0e-5",
                 lambda x, s: x / np.sqrt(np.mean(x * x, (1, 2), keepdims=True) + 1e-5) * s,
                 {"x": numbers(2, 3, 4), "s": numbers(3, 4)}, "rms")
    for mask in ("", " [add {3}]", " [multiply {3}, add {4}]"):
        for group in (1, 2):
            def attend(q, k, v, f=np.ones(()), m=np.zeros(())):
                k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
                scores = 1.5 * np.tanh(0.3 * q @ k.swapaxes(2, 3) / 1.5) * f + m
                shares = np.exp(scores)
                return shares / shares.sum(-1, keepdims=True) @ v
            inputs = {"q": numbers(2, 2 * group, 3, 4), "k": numbers(2, 2, 5, 4), "v": numbers(2, 2, 5, 3)}
            if "multiply" in mask:
                inputs["f"] = numbers(3, 5)
            if mask:
                inputs["m"] = numbers(2 * group, 1, 5)
            op_gradients(folder, f"ds.attention {{0}}, {{1}}, {{2}}{mask} scale 0.3 softcap 1.5 guard", attend, inputs,
                         f"attention{group}{len(mask)}")


    place = np.arange(3)[:, None] + 1
    inside = (np.arange(5) >= place - 1) & (np.arange(5) <= place)
    for name, steps, forward in (
            ("choose", "[window else -1.0]", lambda s, m: np.where(inside, s, -1)),
            ("add", "[add {3}, window_add else -1.0]", lambda s, m: s + m + np.where(inside, 0, -1)),
            ("mask", "[window_mask {3} else -1.0, window else 0.5]", lambda s, m: np.where(inside, s + m, 0.5)),
            ("order", "[window else -1.0, multiply {3}]", lambda s, m: np.where(inside, s, -1) * m)):
        def windowed(q, k, v, m=0, apply=forward):
            shares = np.exp(apply(0.3 * q @ k.swapaxes(2, 3), m))
            return shares / shares.sum(-1, keepdims=True) @ v
        inputs = {"q": numbers(2, 2, 3, 4), "k": numbers(2, 2, 5, 4), "v": numbers(2, 2, 5, 3)}
        if "{3}" in steps:
            inputs["m"] = numbers(2, 1, 5)
        op_gradients(folder, f"ds.attention {{0}}, {{1}}, {{2}} {steps} past [1] left 1 right 0 scale 0.3", windowed, inputs,
                     f"window_{name}")


def random_function(g, statements=12):
    """A graph of smooth functions of bounded values, in which values have several uses and broadcast."""
    shapes = {"a": (3, 3), "b": (1, 3), "c": (3, 1), "d": ()}
    text = []

    def pick(fits=lambda shape: True):
        names = [name for name, shape in shapes.items() if fits(shape)]
        return names[min(int(g.random.exponential(len(names) / 3)), len(names) - 1) * -1 - 1]  # late ones more often

    def add(expression, shape):
        shapes[f"v{len(text)}"] = shape
        text.append(f"v{len(text)} = {expression}")
    for _ in range(statements):
        kind = g.random.integers(9)
        if kind < 2:
            x = pick()
            add(f"{g.random.choice(['Sin', 'Tanh', 'Sigmoid', 'Cos', 'Neg', 'Erf'])} ({x})", shapes[x])
        elif kind < 5:
            x, z = pick(), pick()
            add(f"{g.random.choice(['Add', 'Mul', 'Sub'])} ({x}, {z})", np.broadcast_shapes(shapes[x], shapes[z]))
            add(f"Tanh (v{len(text) - 1})", shapes[f"v{len(text) - 1}"])
        elif kind == 5:
            x = pick(lambda shape: shape[-1:] == (3,))
            z = pick(lambda shape: shape[:1] == (3,))
            add(f"MatMul ({x}, {z})", (shapes[x][0], shapes[z][1]))
            add(f"Tanh (v{len(text) - 1})", shapes[f"v{len(text) - 1}"])
        elif kind == 6:
            x = pick(lambda shape: len(shape) == 2)
            axis = int(g.random.integers(2))
            add(f"{g.random.choice(['ReduceMean', 'ReduceLogSumExp'])} <keepdims = 1> ({x}, axis{axis})",
                (1, shapes[x][1]) if axis == 0 else (shapes[x][0], 1))
        elif kind == 7:
            x = pick(lambda shape: len(shape) == 2)
            add(f"Transpose ({x})", shapes[x][::-1])
        else:
            x, axis = pick(lambda shape: len(shape) == 2), int(g.random.integers(2))
            add(f"Softmax <axis = {axis}> ({x})", shapes[x])
    last = [name for name in shapes if name.startswith("v")][-3:]
    return "\n".join(text) + f"\nm = Sum ({', '.join(last)}) y = Tanh (m)"


@case(seconds=6)
def random_graphs(folder):
    g = Gradients()
    for _ in range(10):
        g.test(random_function(g), {"axis0": np.array([0]), "axis1": np.array([1])}, a=g.numbers(3, 3), b=g.numbers(1, 3),
               c=g.numbers(3, 1), d=g.numbers())
    g.verify(folder, slack=50)  # a dozen functions in a row multiply slopes, and what differences are off by
