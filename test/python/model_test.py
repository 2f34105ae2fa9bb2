"""Compiling, loading and calling, judged by NumPy."""
import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import numpy as np

import deepstride
from support import Case, MODELS, package

WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2) / 4
TABLE = np.arange(20, dtype=np.float32).reshape(5, 4)


def aligned(shape, dtype, offset=0):
    """An array that lies `offset` bytes behind a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    return memory[begin:begin + size].view(dtype).reshape(shape)


def anonymous_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


class Foreign:
    """An array that only DLPack gets at."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Anew(Case):
    """Packages under one path, one after the other, the first of which is still loaded."""

    def test_each_runs_its_own_code(self):
        text = """func.func @main(%x: tensor<3xf32> {ds.name = "x", ds.dims = [3]}) -> (tensor<3xf32> {ds.name = "y"}) attributes {ds.entry} {
            %%y = ds.binary %s %%x, %%x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
            return %%y : tensor<3xf32>
        }""".replace("%x:", "%%x:")
        x, models = np.array([1, 2, 3], np.float32), []
        for kind, expected in (("add", x + x), ("mul", x * x), ("sub", x - x)):
            (self.folder / "m.mlir").write_text(text % kind)
            models.append((deepstride.load(deepstride.compile(self.folder / "m.mlir", self.folder / "m.dsp")), expected))
            for model, y in models:
                np.testing.assert_array_equal(model(x), y)


class Calls(Case):
    def setUp(self):
        super().setUp()
        self.model = deepstride.load(package("linear"))
        self.x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)

    def judge(self, y, x=None):
        np.testing.assert_array_equal(y, (self.x if x is None else x) @ WEIGHT)

    def test_calls_by_name_position_and_dictionary(self):
        for y, z in (self.model(x=self.x), self.model(self.x)):
            self.judge(y)
            self.judge(-z)
        results = self.model.run({"x": self.x})
        self.assertEqual(list(results), ["y", "z"])
        self.judge(results["y"])
        only = self.model.run([self.x], outputs=["z"])
        self.assertEqual(list(only), ["z"])
        self.judge(-only["z"])

    def test_takes_no_numbers_that_the_type_has_not(self):
        model = deepstride.load(package("ids"))
        for wrong, says in (([[0.7]], "whole numbers of i64"), ([["1"]], "whole numbers of i64"), ([[2**64]], "i64")):
            self.refuses(deepstride.InvalidArgumentError, says, model, wrong)
        self.refuses(deepstride.InvalidArgumentError, "numbers of f32", self.model, [["1", "2", "3"]])
        self.refuses(deepstride.InvalidArgumentError, "mask", self.model, np.ma.masked_array(self.x, self.x > 3))
        self.refuses(deepstride.InvalidArgumentError, "a list of names", self.model.run, [self.x], outputs="y")
        self.refuses(deepstride.InvalidArgumentError, "sizes of 0 or more", deepstride.empty, (-1, 2))

    def test_takes_lists_and_numbers_as_the_input_s_type(self):
        self.judge(self.model(self.x.tolist())[0])

    def test_takes_what_is_not_dense_not_aligned_or_not_of_this_machine_s_order(self):
        for x in (np.asfortranarray(self.x), np.repeat(self.x, 2, axis=1)[:, ::2], self.x.astype(">f4")):
            self.judge(self.model(x)[0])
        x = aligned((2, 3), np.float32, 4)
        x[...] = self.x
        self.judge(self.model(x)[0])

    def test_reads_arrays_that_may_not_be_written(self):
        self.x.setflags(write=False)
        self.judge(self.model(self.x)[0])

    def test_serves_all_sizes(self):
        for rows in (1, 0, 7):
            x = np.random.default_rng(rows).integers(-8, 8, (rows, 3)).astype(np.float32)
            self.judge(self.model(x)[0], x)

    def test_takes_dlpack_and_gives_it(self):
        self.judge(self.model(Foreign(self.x))[0])
        results = self.model.run([self.x], dlpack=True)
        self.judge(np.from_dlpack(results["y"]))

    def test_results_never_change(self):
        kept = [self.model(self.x * i)[0] for i in range(1, 6)]
        views = [self.model(self.x * i)[0][:, 1:] for i in range(1, 6)]  # a view keeps its memory, too
        for i in range(1, 6):
            self.judge(kept[i - 1], self.x * i)
            np.testing.assert_array_equal(views[i - 1], (self.x * i @ WEIGHT)[:, 1:])

    def test_memory_of_dropped_results_is_used_again(self):
        addresses = set()
        for _ in range(20):
            addresses.add(self.model(self.x)[0].ctypes.data)
        self.assertLessEqual(len(addresses), 2)

    def test_results_outlive_the_model(self):
        y = deepstride.load(package("linear"))(self.x)[0]
        self.judge(y)
        y[0, 0] = 5  # and are the caller's

    def test_threads_share_a_model(self):
        wrong = []

        def work(seed):
            x = np.random.default_rng(seed).integers(-8, 8, (seed + 1, 3)).astype(np.float32)
            for _ in range(50):
                if not np.array_equal(self.model(x)[0], x @ WEIGHT):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_forked_process_is_refused_and_ends(self):
        self.model(self.x)
        child = os.fork()
        if child == 0:
            try:
                self.model(self.x)
            except deepstride.Error as error:
                del self.model  # its threads are not there to be waited for
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        give_up = time.monotonic() + 30
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < give_up:
            time.sleep(0.01)
        if not ended[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.assertEqual(ended, (child, 0))
        self.judge(self.model(self.x)[0])

    def test_describes_itself(self):
        (x,), (y, z) = self.model.inputs, self.model.outputs
        self.assertEqual(x, ("x", "f32", ("batch", 3), None))
        self.assertEqual((y.name, y.type, y.shape[1], z.name, x.dtype), ("y", "f32", 2, "z", np.dtype(np.float32)))
        self.assertEqual((self.model.states, self.model.entries), ([], ["main"]))
        self.assertIn(self.model.variant, self.model.variants)
        self.assertIn("x: f32[batch, 3]", repr(self.model))
        ids, = deepstride.load(package("ids")).inputs
        self.assertEqual((ids.type, ids.shape), ("i64", ("batch", "n")))

    def test_refuses_what_does_not_fit(self):
        model = self.model
        self.refuses(deepstride.InvalidArgumentError, "no input 'w', expected 'x'", model, w=self.x)
        self.refuses(deepstride.InvalidArgumentError, "input 'x' is missing", model)
        self.refuses(deepstride.InvalidArgumentError, "input 'x' is given twice", model, self.x, x=self.x)
        self.refuses(deepstride.InvalidArgumentError, "found 2 inputs, expected 1: 'x'", model, self.x, self.x)
        self.refuses(deepstride.InvalidArgumentError, "no output 'q', expected one of 'y', 'z'", model.run, [self.x],
                     outputs=["q"])
        self.refuses(deepstride.InvalidArgumentError, "no entry 'q', expected one of 'main'", model.run, [self.x], entry="q")
        self.refuses(deepstride.InvalidArgumentError, "found str, expected arrays by name", model.run, "x")
        self.refuses(deepstride.InvalidArgumentError, "input 'x': expected numbers of f32", model, ["a", "b"])
        self.refuses(deepstride.InvalidArgumentError, "found one of complex64", model, self.x.astype(np.complex64))
        self.refuses(deepstride.ShapeMismatchError, "f64", model, self.x.astype(np.float64))
        error = self.refuses(deepstride.ShapeMismatchError, "'x'", model, self.x[:, :2])
        self.assertEqual(error.code, 6)
        self.assertIsInstance(error, ValueError)
        self.judge(model(self.x)[0])  # a refusal leaves no trace

    def test_refuses_an_index_out_of_range(self):
        model = deepstride.load(package("ids"))
        np.testing.assert_array_equal(model(ids=np.array([[4, 0]])), TABLE[[[4, 0]]])
        self.refuses(deepstride.Error, "", model, ids=np.array([[5]]))


# Prints how much memory a call adds to the most that the process ever had.
MEMORY = """
import resource, sys
import numpy as np, deepstride
model = deepstride.load(sys.argv[1], threads=1)
memory = deepstride.empty((1 << 25) + 16)
x = memory[int(sys.argv[2]):][:1 << 25]
memory[:] = 1
model(x[:16])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert model(x)[0] == 1 << 25
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


class Costs(Case):
    def test_copies_only_what_is_not_aligned(self):
        grown = [int(subprocess.run([sys.executable, "-c", MEMORY, package("sum"), str(offset)], check=True,
                                    capture_output=True, text=True).stdout) for offset in (0, 1, 16)]
        self.assertLess(grown[0], 30000)  # of 131072 KiB
        self.assertGreater(grown[1], 100000)
        self.assertLess(grown[2], 30000)

    def test_makes_arrays_that_are_aligned(self):
        for shape, dtype in (((3, 5), np.float32), (7, np.int8), ((), np.float64), ((1, 2), np.int64)):
            array = deepstride.empty(shape, dtype)
            self.assertEqual((array.shape, array.dtype, array.ctypes.data % 64),
                             (shape if isinstance(shape, tuple) else (shape,), np.dtype(dtype), 0))

    def test_lets_other_threads_run(self):
        model = deepstride.load(package("sum"), threads=1)
        x = deepstride.empty(1 << 25)
        x[:] = 1
        during, done = [], threading.Event()

        def count():
            while not done.is_set():
                during.append(time.perf_counter())
                time.sleep(0.0005)

        other = threading.Thread(target=count)
        other.start()
        begin = time.perf_counter()
        for _ in range(5):
            model(x)
        end = time.perf_counter()
        done.set()
        other.join()
        longest = max(b - a for a, b in zip([begin, *during], [*during, end]))
        self.assertGreater(sum(begin < at < end for at in during), 15, f"{longest} of {end - begin} s")


class Packages(Case):
    def test_refuses_to_load(self):
        self.refuses(deepstride.BadPackageError, "not a package", deepstride.load, self.folder / "none.dsp")
        self.refuses(deepstride.Error, "no-such-cpu", deepstride.load, package("linear"), variant="no-such-cpu")
        for threads in (0, -1, "two", True):
            self.refuses(deepstride.InvalidArgumentError, f"threads: found {threads!r}", deepstride.load,
                         package("linear"), threads=threads)
        self.refuses(deepstride.InvalidArgumentError, "no dimension 'q'", deepstride.load, package("linear"), dims={"q": 1})
        self.refuses(deepstride.InvalidArgumentError, "found -1", deepstride.load, package("linear"), dims={"batch": -1})

    def test_notices_a_changed_byte(self):
        copy = deepstride.compile(MODELS / "linear.onnx", self.folder / "copy.dsp")
        weights = self.folder / "copy.dsp/weights.bin"
        weights.chmod(0o644)
        data = bytearray(weights.read_bytes())
        data[0] ^= 1
        weights.write_bytes(data)
        self.refuses(deepstride.BadPackageError, "weights.bin", deepstride.load, copy)
        deepstride.load(copy, verify=False)

    def test_weights_lie_in_memory_or_in_the_file(self):
        """As /proc tells: 16 MiB of a matrix are memory of this process when they are copied, and pages of a file when they are mapped."""
        places = np.arange(2048)
        weight, compiled = ((5 * places[:, None] + 3 * places) % 7 - 3).astype(np.float32), package("wide")
        x = np.random.default_rng().integers(-3, 4, (1, 2048)).astype(np.float32)
        taken = {}
        for weights in ("mapped", "copied"):
            before = anonymous_bytes()
            model = deepstride.load(compiled, threads=1, weights=weights)
            np.testing.assert_array_equal(model(x), x @ weight) # whole numbers, exact in any order
            taken[weights] = anonymous_bytes() - before
            del model
        self.assertGreater(taken["copied"] - taken["mapped"], 15 << 20, taken)
        self.assertLess(taken["mapped"], 8 << 20, taken)
        self.refuses(deepstride.InvalidArgumentError, "weights: found 'shared', expected 'copied' or 'mapped'", deepstride.load, compiled, weights="shared")

    def test_says_which_package_has_types_that_numpy_lacks(self):
        model = deepstride.load(package("half"))
        others = np.array([1, 2, 3], np.float16), np.array([True, False, True])
        self.refuses(deepstride.InvalidArgumentError, "install the package ml_dtypes", model, [1, 2, 3], *others)
        self.refuses(deepstride.ShapeMismatchError, "'a'", model, np.zeros(3, np.uint16), *others)

    def test_states_go_on_from_call_to_call(self):
        model = deepstride.load(package("counter"))
        self.assertEqual([state.name for state in model.states], ["total"])
        x = np.array([1, 2], np.float32)
        np.testing.assert_array_equal(model(x), x)
        np.testing.assert_array_equal(model(x), 2 * x)
        model.save_states(self.folder / "s.npz")
        np.testing.assert_array_equal(np.load(self.folder / "s.npz")["total"], 2 * x)
        model.reset_states()
        np.testing.assert_array_equal(model(x), x)
        model.restore_states(self.folder / "s.npz")
        np.testing.assert_array_equal(model(x), 3 * x)
        self.refuses(deepstride.Error, "none.npz", model.restore_states, self.folder / "none.npz")


class Compiling(Case):
    def test_pins_sizes_and_maps_options(self):
        path = deepstride.compile(MODELS / "linear.onnx", self.folder / "a.dsp", dims={"batch": 2}, precision="f32",
                                  no_cache=True, report=None)
        self.assertEqual(path, str(self.folder / "a.dsp"))
        self.assertEqual(deepstride.load(path).inputs[0].shape, (2, 3))
        shaped = deepstride.compile(MODELS / "linear.onnx", self.folder / "b.dsp", shapes={"x": [5, 3]})
        self.assertEqual(deepstride.load(shaped).inputs[0].shape, (5, 3))

    def test_prints_a_report_where_it_is_asked_for(self):
        for options, is_printed in (({}, False), ({"report": True}, True)):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                deepstride.compile(MODELS / "linear.onnx", self.folder / "a.dsp", no_cache=True, **options)
            self.assertEqual(bool(printed.getvalue()), is_printed)

    def test_takes_the_bytes_of_a_model(self):
        path = deepstride.compile((MODELS / "linear.onnx").read_bytes(), self.folder / "a.dsp")
        self.assertEqual(deepstride.load(path)([[0, 0, 0]])[0].tolist(), [[0, 0]])

    def test_refuses_arguments_by_name(self):
        def compiling(**options):
            return deepstride.compile(MODELS / "linear.onnx", self.folder / "a.dsp", **options)

        refused = deepstride.InvalidArgumentError
        self.refuses(refused, "no option 'precison'; did you mean 'precision'?", compiling, precison="f32")
        self.refuses(refused, "no option 'zzz'; expected one of ", compiling, zzz=1)
        self.refuses(refused, "--precision expects f32, bf16 or f16, found 'f17'", compiling, precision="f17")
        self.refuses(refused, "precision: found True, expected a value", compiling, precision=True)
        self.refuses(refused, "report: found 'yes', expected True or False", compiling, report="yes")
        self.refuses(refused, "dims: found 3, expected a dictionary", compiling, dims=3)
        self.refuses(refused, "--dim expects NAME=VALUE", compiling, dims={"batch": -1})
        self.refuses(refused, "expected a list of sizes and names", compiling, shapes={"x": "1,2"})
        self.refuses(refused, "expected a name that ends in .dsp", deepstride.compile, MODELS / "linear.onnx", "a.zip")
        self.refuses(refused, "found int, expected a path", deepstride.compile, 3, self.folder / "a.dsp")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_says_what_is_wrong_with_a_model(self):
        error = self.refuses(deepstride.CompileError, "com.example", deepstride.compile, MODELS / "refused.onnx",
                             self.folder / "a.dsp")
        self.assertIn("Unheard", error.details)
        self.refuses(deepstride.CompileError, "none.onnx", deepstride.compile, "none.onnx", self.folder / "a.dsp")
        self.refuses(deepstride.CompileError, "", deepstride.compile, b"no model", self.folder / "a.dsp")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_checks_without_compiling(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue(deepstride.check(MODELS / "linear.onnx"))
        found = deepstride.check(MODELS / "refused.onnx")
        self.assertFalse(found)
        self.assertTrue(any("Unheard" in problem for problem in found.problems), found)
        self.refuses(deepstride.CompileError, "none.onnx: no such file", deepstride.check, "none.onnx")

    def test_a_size_of_no_input_is_asked_for(self):
        model = deepstride.load(package("unbound"))
        self.assertEqual(model([2], [1, 2, 3]).tolist(), [[1, 2, 3]] * 2)


if __name__ == "__main__":
    unittest.main()
