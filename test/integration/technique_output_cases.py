"""What logs, event files, pages and messages say of blocks that are dropped and of weights that are rounded, and loops of one's own that
do both."""
import ctypes

import numpy as np
import onnx
from onnx import numpy_helper

from eigenvalue_cases import eigenvalue
from kit import BIN, case, expect
from layer_drop_cases import drops, gates_of, theta_of
from programs import SEED
from quantized_training_cases import section
from training_output_cases import Page, same_curve, scalars
from training_runs import column, log_of, settings, train, train_package

BLOCKS = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 4] x) => (float[n, 3] logits)
            { a = MatMul (x, w0) b = Tanh (a) r = Add (x, b) c = MatMul (r, w1) d = Tanh (c) s = Add (r, d) logits = MatMul (s, head) }"""
FAULTY = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 4] x, float[n, 4] z) => (float[n, 3] logits)
            { one = Constant <value_float = 1.0> () a = MatMul (x, w0) a1 = Mul (a, a) a2 = Add (a1, one) b = Log (a2) r = Add (x, b)
              c = MatMul (r, w1) d = Mul (c, c) e = Add (d, z) f = Log (e) s = Add (r, f) logits = MatMul (s, head) }"""
NAMES = {"w0": "net.layer.0.weight", "w1": "net.layer.1.weight", "head": "head"}


def two_blocks(text, names=None):
    g, proto = np.random.default_rng(SEED), onnx.parser.parse_model(text)
    names = names or {name: name for name in NAMES}
    for name, shape in (("w0", (4, 4)), ("w1", (4, 4)), ("head", (4, 3))):
        proto.graph.initializer.append(numpy_helper.from_array(g.standard_normal(shape).astype(np.float32) / 2, names[name]))
    for node in proto.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    return proto


def samples(folder, count, name="data.npz", **fields):
    g = np.random.default_rng(SEED)
    np.savez(folder / name, x=g.standard_normal((count, 4)).astype(np.float32), labels=g.integers(0, 3, count), **fields)
    return folder / name


@case(seconds=6)
def curves_of_blocks_and_widths(folder):
    """Event files and the page of a run that goes on from a stop have the numbers of the log, those from before the stop, too."""
    quantization = section(start=8, target=5, period=1, offset=2, eigenvalue=eigenvalue("net.layer", 2, tol=0.01, max_iter=20))
    board = {"enabled": True, "output_path": str(folder), "job_name": "curves"}
    package = train_package(folder, two_blocks(BLOCKS, NAMES), settings(("AdamW", {"lr": 0.01}), 2, 2, tensorboard=board, quantize_training=quantization,
                                                                        **drops(0.2, 0.3)))
    data = samples(folder, 40)
    for steps, more in ((15, []), (120, ["--resume"])):
        train(package, data, f"--steps={steps}", f"--seed={SEED % 2**32}", f"--checkpoint={folder / 'ck'}", f"--log={folder / 'log'}",
              f"--html={folder / 'page.html'}", *more)
    rows = log_of(folder / "log")
    widths = [row["bits"] if isinstance(row["bits"], list) else [row["bits"]] if row["bits"] else [] for row in rows]
    expect(len(rows) == 120 and any(len(width) > 1 for width in widths) and len(set(column(rows, "blocks"))) > 1, f"{rows}")
    events = {}
    for path in (folder / "curves").iterdir():
        for tag, step, number, _ in scalars(path):
            events.setdefault(tag, {})[step] = number
    for tag, numbers in (("pld_theta", column(rows, "theta")), ("blocks", column(rows, "blocks")), ("bits", [max(width, default=None) for width in widths])):
        expected = {row["samples"]: float(np.float32(number)) for row, number in zip(rows, numbers) if number is not None}
        expect(events["Train/Samples/" + tag] == expected, f"DS_SEED={SEED}, {tag}: {events['Train/Samples/' + tag]}, in the log {expected}")
    page, at = Page((folder / "page.html").read_text()), list(range(120))
    curves = {}
    for title, _, points in page.curves:
        curves.setdefault(title, []).append(points)
    some = [max(width, default=None) for width in widths], [min(width, default=None) for width in widths]
    for title, lines in (("theta of layer dropping", [column(rows, "theta")]), ("blocks that ran in a step", [column(rows, "blocks")]),
                         ("bits of quantized weights", some)):
        known = [number for line in lines for number in line if number is not None]
        first = next(step for step in at if lines[0][step] is not None)
        expect(len(curves[title]) == len(lines), f"{title}: {len(curves[title])} lines")
        for points, line in zip(curves[title], lines):
            same_curve(points, at, list(line), min(known), max(known), title, of=at[first:])


@case
def faults_of_blocks_that_ran(folder):
    """The step that went wrong is computed once more with the blocks that it ran: a NaN of the second one is found there."""
    seed = SEED % 1000
    runs = [gates_of(seed, step, 0, 2, theta_of(step, 0, 1e3))[1] > 0 for step in range(60)]
    wrong = next(step for step in range(2, 60) if runs[step] and not runs[step + 1])
    z = np.ones((2 * 60, 4), np.float32)
    z[2 * wrong:2 * wrong + 2] = -1e6
    data = samples(folder, len(z), z=z)
    package = train_package(folder, two_blocks(FAULTY), settings(("SGD", {"lr": 1e-3}), 2, **drops(0, 1e3)), "--reference")
    train(package, data, "--steps=60", "--shuffle=off", f"--seed={seed}", code=1,
          says=[f"step {wrong}: NaN in tensor 'f' of node ", f"samples {2 * wrong}, {2 * wrong + 1}"])


class Loop:
    """A loop of one's own, by the C interface."""

    class Tensor(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_size_t),
                    ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]

    def __init__(self, package):
        self.api = ctypes.CDLL(str(BIN.parent / "lib/libds_runtime.so"))
        self.api.ds_status_message.restype = ctypes.c_char_p
        loaded, self.trainer = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("ds_package_load", str(package).encode(), None, ctypes.byref(loaded))
        self.call("ds_trainer_create", loaded, None, ctypes.byref(self.trainer))

    def call(self, name, *arguments):
        function = getattr(self.api, name)
        function.restype = ctypes.c_void_p
        if status := function(*arguments):
            raise AssertionError(self.api.ds_status_message(ctypes.c_void_p(status)).decode())

    def step(self, micro_batches):
        """The mean of their losses."""
        losses = []
        self.call("ds_trainer_zero_gradients", self.trainer)
        for fields in micro_batches:
            tensors, loss = (self.Tensor * len(fields))(), ctypes.c_double()
            shapes = [(ctypes.c_int64 * array.ndim)(*array.shape) for array in fields.values()]
            for slot, (name, array), shape in zip(tensors, fields.items(), shapes):
                slot.struct_size, slot.name, slot.type = ctypes.sizeof(self.Tensor), name.encode(), {"float32": 1, "int64": 4}[array.dtype.name]
                slot.rank, slot.shape, slot.data = array.ndim, shape, array.ctypes.data
            self.call("ds_trainer_backward", self.trainer, tensors, ctypes.c_size_t(len(fields)), ctypes.c_double(1 / len(micro_batches)), ctypes.byref(loss))
            losses.append(loss.value)
        self.call("ds_trainer_step", self.trainer, None, None)
        return np.mean(losses)


@case(seconds=6)
def loops_of_ones_own(folder):
    """Blocks that run and what weights are rounded to are those of ds-run train, from the same seed: before a checkpoint, and in another
    process' trainer that loads it."""
    steps, stop, seed = 8, 4, SEED % 2**40 + 2**33
    quantization = section(start=5, target=4, period=3, offset=1, rounding="stochastic")
    package = train_package(folder, two_blocks(BLOCKS), settings(("AdamW", {"lr": 0.01}), 2, 3, quantize_training=quantization, **drops(0.1, 1.0)))
    data = samples(folder, 6 * steps)
    train(package, data, f"--steps={steps}", "--shuffle=off", f"--seed={seed}", f"--log={folder / 'log'}")
    rows, arrays = log_of(folder / "log"), dict(np.load(data))
    expect(np.any(column(rows, "blocks") < 6) and rows[-1]["bits"] == 4, f"{rows}")
    loop = Loop(package)
    loop.call("ds_trainer_set_seed", loop.trainer, ctypes.c_uint64(seed))
    for step, row in enumerate(rows):
        if step == stop:
            loop.call("ds_trainer_save", loop.trainer, str(folder / "ck").encode(), None, None)
            loop = Loop(package)
            loop.call("ds_trainer_load", loop.trainer, str(folder / "ck").encode(), None, None)
        found = loop.step([{name: np.ascontiguousarray(array[at:at + 2]) for name, array in arrays.items()} for at in range(6 * step, 6 * step + 6, 2)])
        expect(abs(found - row["loss"]) < 1e-6 * abs(row["loss"]), f"DS_SEED={SEED}, step {step}: loss {found}, by ds-run train {row['loss']}")
