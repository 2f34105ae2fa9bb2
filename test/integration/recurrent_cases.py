"""RNN, GRU and LSTM of random attributes, shapes and optional inputs against ONNX Runtime. DS_SEED repeats a failure."""
import numpy as np

from kit import case, compile_model, expect, onnx_runtime, run_package, same_numbers
from programs import SEED

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
PARAMETERS = {"Affine": 2, "LeakyRelu": 1, "ThresholdedRelu": 1, "ScaledTanh": 2, "HardSigmoid": 2, "Elu": 1}
PLAIN = ["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus"]
DEFAULTS = ["LeakyRelu", "HardSigmoid", "Elu"]  # whose parameters the standard states


def attributes(random, operator, directions):
    result = {}
    if random.random() < 0.7:
        names = [str(name) for name in random.choice([*PLAIN, *PARAMETERS], ACTIVATIONS[operator] * directions)]
        result["activations"] = names
        if not all(name in PLAIN + DEFAULTS for name in names) or random.random() < 0.5:
            alphas = sum(name in PARAMETERS for name in names)
            betas = sum(PARAMETERS.get(name) == 2 for name in names)
            for key, count in ("activation_alpha", alphas), ("activation_beta", betas):
                if count:
                    result[key] = [float(value) for value in random.uniform(0.1, 1, count)]
    if random.random() < 0.3:
        result["clip"] = float(random.uniform(0.2, 1))
    if operator == "GRU" and random.random() < 0.5:
        result["linear_before_reset"] = 1
    if operator == "LSTM" and random.random() < 0.3:
        result["input_forget"] = 1
    return result


def model_of(random, operator, path):
    """Writes a model with batch and length as dynamic dimensions; returns its inputs and a description."""
    from onnx import TensorProto, helper, numpy_helper, save
    direction = str(random.choice(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    length, batch, inputs, hidden = (int(random.integers(1, 7)) for _ in range(4))
    rows = GATES[operator] * hidden
    numbers = lambda *shape: (0.4 * random.standard_normal(shape)).astype(np.float32)
    weights = {"W": numbers(directions, rows, inputs), "R": numbers(directions, rows, hidden)}
    feeds, dims, names = {"X": numbers(length, batch, inputs)}, {"X": ["length", "batch", inputs]}, ["X", "W", "R"]

    def optional(name, array, shape=None):
        given = random.random() < 0.6
        names.append(name if given else "")
        if given and shape:
            feeds[name], dims[name] = array, shape
        elif given:
            weights[name] = array

    optional("B", numbers(directions, 2 * rows))
    optional("lengths", random.integers(0, length + 1, batch).astype(np.int32), ["batch"])
    # Files seldom say that the batch of a state is that of the input, or that its size is the weights'.
    state = lambda name: [str(random.choice(["batch", f"{name}_batch"])), hidden if random.random() < 0.5 else f"{name}_size"]
    optional("h", numbers(directions, batch, hidden), [directions, *state("h")])
    if operator == "LSTM":
        optional("c", numbers(directions, batch, hidden), [directions, *state("c")])
        optional("P", numbers(directions, 3 * hidden))
    given = attributes(random, operator, directions)
    outputs = ["Y", "Y_h", "Y_c"][:3 if operator == "LSTM" else 2]
    node = helper.make_node(operator, names, outputs, hidden_size=hidden, direction=direction, **given)
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}
    graph = helper.make_graph(
        [node], operator, [helper.make_tensor_value_info(name, kinds[feeds[name].dtype], dims[name]) for name in feeds],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    opset = int(random.choice([7, 14, 22]))
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return feeds, f"seed {SEED}: {operator} {direction} {given} {names} {opset}"


def bounded_models(random, operator, folder, count, largest=100):
    """Yields the paths, inputs and descriptions of models whose numbers stay small. Gates without a bound multiply states
    by states: six steps reach 1e30, where f32 loses its digits and ONNX Runtime's Softplus overflows, so that such a
    model says nothing about either."""
    drawn = 0
    while count:
        model = folder / f"{drawn}.onnx"
        drawn += 1
        feeds, text = model_of(random, operator, model)
        if all(np.abs(array).max(initial=0) <= largest for array in onnx_runtime(model, feeds).values()):
            count -= 1
            yield model, feeds, text


def agrees(operator, folder, count=10):
    random = np.random.default_rng([SEED, GATES[operator]])
    for model, feeds, text in bounded_models(random, operator, folder, count):
        try:
            # f32 in another order, over at most 6 steps of bounded values.
            same_numbers(compile_model(model, folder, name=f"{model.stem}.dsp"), model, feeds, folder, tolerance=2e-5)
        except AssertionError as error:
            raise AssertionError(f"{text}: {error}") from None


@case(seconds=23)
def rnn(folder):
    agrees("RNN", folder)


@case(seconds=23)
def gru(folder):
    agrees("GRU", folder)


@case(seconds=10)
def lstm(folder):
    agrees("LSTM", folder)


@case(seconds=12)
def batch_first_is_transposed(folder):
    """ONNX Runtime refuses layout 1 on the CPU; the same weights with layout 0 give the same numbers, transposed."""
    import onnx
    random = np.random.default_rng(SEED)
    for operator in GATES:
        model = folder / f"{operator}.onnx"
        feeds, text = model_of(random, operator, model)
        plain = run_package(compile_model(model, folder, name="0.dsp"), feeds, folder)
        proto = onnx.load(model)
        proto.opset_import[0].version = 14
        proto.graph.node[0].attribute.append(onnx.helper.make_attribute("layout", 1))
        swap = {name: array.swapaxes(0, 1) if array.ndim == 3 else array for name, array in feeds.items()}
        for value in proto.graph.input:
            dims = value.type.tensor_type.shape.dim
            if len(dims) == 3:
                first, second = onnx.TensorShapeProto.Dimension(), onnx.TensorShapeProto.Dimension()
                first.CopyFrom(dims[0]), second.CopyFrom(dims[1])
                dims[0].CopyFrom(second), dims[1].CopyFrom(first)
        onnx.save(proto, model)
        swapped = run_package(compile_model(model, folder, name="1.dsp"), swap, folder)
        for name, array in plain.items():
            wanted = array.transpose(2, 0, 1, 3) if name == "Y" else array.swapaxes(0, 1)
            expect(np.array_equal(swapped[name], wanted), f"{text}: {name} differs with layout 1")


@case(seconds=3)
def gates_that_are_shut(folder):
    """Gates of a saturated LSTM and GRU reach far below 1e-18: states are as good as in double, and hardly one is subnormal:
    three gates that are nearly shut still make one, of a thousand in some draws. Not shut, they make several of a hundred."""
    from onnx import TensorProto, helper, numpy_helper, save
    random = np.random.default_rng([SEED, 7])
    length, batch, inputs, hidden = 12, 3, 5, 37
    for operator in ("GRU", "LSTM"):
        x = random.standard_normal((length, batch, inputs)).astype(np.float32)
        w = (random.standard_normal((1, GATES[operator] * hidden, inputs)) * 25).astype(np.float32)
        r = (random.standard_normal((1, GATES[operator] * hidden, hidden)) * 3).astype(np.float32)
        node = helper.make_node(operator, ["X", "W", "R"], ["Y"], hidden_size=hidden)
        graph = helper.make_graph([node], operator, [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["l", "b", inputs])],
                                  [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(w, "W"), numpy_helper.from_array(r, "R")])
        model = folder / f"{operator}.onnx"
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), model)
        y = run_package(compile_model(model, folder, name=f"{operator}.dsp"), {"X": x}, folder)["Y"][:, 0]
        subnormal = (y != 0) & (np.abs(y) < np.finfo(np.float32).tiny)
        expect(subnormal.mean() <= 0.005, f"{operator}: {int(subnormal.sum())} of {y.size} states are subnormal (DS_SEED={SEED})")
        expect((y == 0).any() or operator == "GRU", f"{operator}: no gate is shut (DS_SEED={SEED})")
        # Each step in double from the state that was found: rounding does not add up over steps.
        state = np.zeros((batch, hidden))
        cell = np.zeros((batch, hidden))
        sigmoid = lambda v: 1 / (1 + np.exp(-v))
        with np.errstate(over="ignore"):
            for t in range(length):
                gates = x[t].astype(np.float64) @ w[0].T.astype(np.float64)
                back = state @ r[0].T.astype(np.float64)
                parts = lambda a: np.split(a, GATES[operator], axis=1)
                if operator == "LSTM":
                    i, o, f, c = parts(gates + back)
                    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
                    wanted = sigmoid(o) * np.tanh(cell)
                else:
                    (z, reset, c), (rz, rr, _) = parts(gates), parts(back)
                    z, reset = sigmoid(z + rz), sigmoid(reset + rr)
                    c = np.tanh(c + (reset * state) @ r[0][2 * hidden:].T.astype(np.float64))
                    wanted = (1 - z) * c + z * state
                # Sums of up to a few hundred are off by 1e-5 of themselves, and so are gates in their slope; cells keep an error
                # of all steps before, as they are never seen.
                far = np.abs(y[t] - wanted).max()
                expect(far <= 1e-3, f"{operator}: step {t} is off by {far} (DS_SEED={SEED})")
                state = y[t].astype(np.float64)
