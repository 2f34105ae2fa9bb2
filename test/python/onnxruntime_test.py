"""Programs for ONNX Runtime, with the import changed and nothing else; judged by NumPy."""
import os
import random
import threading
import unittest

import numpy as np

import deepstride
import deepstride as onnxruntime
import deepstride.onnxruntime as ort
from deepstride._onnx_file import read_facts
from support import Case, MODELS, package

LINEAR = str(MODELS / "linear.onnx")
WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2) / 4
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = X @ WEIGHT


class Sessions(Case):
    def test_a_program_as_the_documentation_has_it(self):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(LINEAR, options, providers=onnxruntime.get_available_providers())
        name = session.get_inputs()[0].name
        y, z = session.run(None, {name: X})
        np.testing.assert_array_equal(y, Y)
        np.testing.assert_array_equal(z, -Y)
        again, = session.run(["z"], {name: X}, onnxruntime.RunOptions())
        np.testing.assert_array_equal(again, -Y)
        self.assertEqual([len(session.run(names, {name: X})) for names in ([], ["z", "y"])], [2, 2])

    def test_describes_the_model(self):
        session = ort.InferenceSession(LINEAR)
        x, = session.get_inputs()
        self.assertEqual((x.name, x.type, x.shape), ("x", "tensor(float)", ["batch", 3]))
        self.assertEqual(str(x), "NodeArg(name='x', type='tensor(float)', shape=['batch', 3])")
        self.assertEqual([(y.name, y.shape) for y in session.get_outputs()], [("y", ["batch", 2]), ("z", ["batch", 2])])
        meta = session.get_modelmeta()
        self.assertEqual((meta.producer_name, meta.graph_name, meta.version, meta.custom_metadata_map),
                         ("tests", "m", 7, {"labels": "one\ntwo"}))
        self.assertEqual((session.get_providers(), ort.get_device()), (["CPUExecutionProvider"], "CPU"))
        types = [one.type for one in ort.InferenceSession(str(MODELS / "half.onnx")).get_inputs()]
        self.assertEqual(types, ["tensor(bfloat16)", "tensor(float16)", "tensor(bool)"])

    def test_takes_bytes_packages_and_files_of_other_names(self):
        other = self.folder / "model.bin"
        other.write_bytes((MODELS / "linear.onnx").read_bytes())
        for model in ((MODELS / "linear.onnx").read_bytes(), package("linear"), other):
            np.testing.assert_array_equal(ort.InferenceSession(model).run(["y"], {"x": X})[0], Y)

    def test_takes_from_the_cache_what_was_compiled_before(self):
        before = os.environ.get("DS_CACHE", "")
        self.addCleanup(os.environ.__setitem__, "DS_CACHE", before)
        os.environ["DS_CACHE"] = str(self.folder / "cache")
        used = []
        for _ in range(2):
            np.testing.assert_array_equal(ort.InferenceSession(LINEAR).run(["y"], {"x": X})[0], Y)
            entry, = (path for path in (self.folder / "cache").iterdir() if path.is_dir())
            used.append(entry.stat().st_mtime_ns)
        self.assertLess(used[0], used[1])

    def test_fixes_sizes_and_passes_options_of_the_compiler(self):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("batch", 2)
        options.add_session_config_entry("deepstride.reference", "f64")
        session = ort.InferenceSession(LINEAR, options)
        self.assertEqual(session.get_inputs()[0].shape, [2, 3])
        options.add_session_config_entry("deepstride.precison", "bf16")
        self.refuses(deepstride.InvalidArgumentError, "did you mean 'precision'?", ort.InferenceSession, LINEAR, options)

    def test_inputs_with_initializers_may_be_given(self):
        """Each set of them; judged by NumPy. Up to IR version 3 an initializer had to be an input, and is none."""
        session = ort.InferenceSession(str(MODELS / "defaults.onnx"))
        found = [(one.name, one.type, one.shape) for one in session.get_overridable_initializers()]
        self.assertEqual(found, [("w", "tensor(float)", [3, 2]), ("b", "tensor(float)", [2])])
        self.assertEqual([one.name for one in session.get_inputs()], ["x"])
        w, b = np.array([[1, 0], [0, 1], [1, 1]], np.float32), np.array([1, 2], np.float32)
        for given in ({}, {"w": 2 * w}, {"b": -b}, {"w": w + 1, "b": b + 1}, {"w": 3 * w}):
            expected = X @ given.get("w", w) + given.get("b", b)
            np.testing.assert_array_equal(session.run(["y"], {"x": X, **given})[0], expected)
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_cpu_input("b", 5 * b)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X @ w + 5 * b)
        path = self.folder / "m.onnx"
        path.write_bytes((MODELS / "defaults.onnx").read_bytes())
        session = ort.InferenceSession(str(path))
        path.unlink()  # a session is of the model that it was made of
        np.testing.assert_array_equal(session.run(["y"], {"x": X, "w": 4 * w})[0], X @ (4 * w) + b)
        state = ort.capi.onnxruntime_pybind11_state
        self.refuses(state.InvalidArgument, "'w'", session.run, None, {"x": X, "w": w[0]})
        old = (MODELS / "defaults.onnx").read_bytes()
        self.assertEqual(old[:2], b"\x08\x09")
        session = ort.InferenceSession(b"\x08\x03" + old[2:])
        self.assertEqual(session.get_overridable_initializers(), [])
        np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X @ w + b)
        self.refuses(state.InvalidArgument, "no input 'w'", session.run, None, {"x": X, "w": w})

    def test_all_processors_for_no_number_of_threads(self):
        for threads in (0, -1, -7):
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            np.testing.assert_array_equal(ort.InferenceSession(LINEAR, options).run(["y"], {"x": X})[0], Y)

    def test_skips_other_processors_with_a_warning(self):
        with self.assertWarnsRegex(UserWarning, "CUDAExecutionProvider are not available"):
            ort.InferenceSession(LINEAR, providers=[("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"])
        self.refuses(ValueError, "found 'CUDA', expected one of CPUExecutionProvider", ort.InferenceSession, LINEAR,
                     providers=["CUDA"])

    def test_raises_the_exceptions_that_programs_catch(self):
        state = ort.capi.onnxruntime_pybind11_state
        self.refuses(state.NoSuchFile, "none.onnx: no such file", ort.InferenceSession, "none.onnx")
        self.refuses(state.NotImplemented, "Unheard", ort.InferenceSession, str(MODELS / "refused.onnx"))
        session = ort.InferenceSession(LINEAR)
        self.refuses(ValueError, "Required inputs (['x']) are missing", session.run, None, {})
        self.refuses(state.InvalidArgument, "no input 'w'", session.run, None, {"x": X, "w": X})
        self.refuses(state.InvalidArgument, "no output 'q'", session.run, ["q"], {"x": X})
        self.refuses(state.InvalidArgument, "f64", session.run, None, {"x": X.astype(np.float64)})
        self.refuses(state.InvalidArgument, "'x'", session.run, None, {"x": X[0]})
        stopped = ort.RunOptions()
        stopped.terminate = True
        self.refuses(state.Fail, "terminate", session.run, None, {"x": X}, stopped)

    def test_reads_damaged_files_without_harm(self):
        data = bytearray((MODELS / "linear.onnx").read_bytes())
        g = random.Random(int(os.environ.get("DS_SEED", "1")))
        damaged = [data[:size] for size in range(len(data))]
        for _ in range(500):
            other = bytearray(data)
            other[g.randrange(len(data))] = g.randrange(256)
            damaged.append(other)
        for one in damaged:
            try:
                self.assertIsInstance(read_facts(bytes(one)).metadata, dict)
            except deepstride.BadFileError as error:
                self.assertIn("not an ONNX model", str(error))

    def test_refuses_what_it_cannot_do(self):
        for name, value in (("enable_profiling", True), ("optimized_model_filepath", "o.onnx"), ("intra_op_num_threads", 1.5)):
            options = ort.SessionOptions()
            setattr(options, name, value)
            self.refuses(deepstride.InvalidArgumentError, name, ort.InferenceSession, LINEAR, options)
        options = ort.SessionOptions()
        self.refuses(deepstride.InvalidArgumentError, "ops.so", options.register_custom_ops_library, "ops.so")
        with self.assertRaises(AttributeError):
            options.intra_op_num_thread = 1
        self.refuses(deepstride.InvalidArgumentError, "no argument 'sess_option'", ort.InferenceSession, LINEAR,
                     sess_option=options)

    def test_calls_back(self):
        done, found = threading.Event(), []

        def callback(results, data, message):
            found.append((results, data, message))
            done.set()

        session = ort.InferenceSession(LINEAR)
        session.run_async(["y"], {"x": X}, callback, "data")
        self.assertTrue(done.wait(60))
        (results, data, message), = found
        np.testing.assert_array_equal(results[0], Y)
        self.assertEqual((data, message), ("data", ""))


class Bindings(Case):
    def setUp(self):
        super().setUp()
        self.session = ort.InferenceSession(LINEAR)
        self.binding = self.session.io_binding()

    def test_binds_arrays(self):
        self.binding.bind_cpu_input("x", X)
        self.binding.bind_output("z")
        self.binding.bind_output("y", "cpu")
        self.session.run_with_iobinding(self.binding)
        z, y = self.binding.copy_outputs_to_cpu()
        np.testing.assert_array_equal(y, Y)
        np.testing.assert_array_equal(z, -Y)
        self.assertEqual([value.data_type() for value in self.binding.get_outputs()], ["tensor(float)"] * 2)

    def test_reads_and_writes_memory_of_the_caller(self):
        x, y = X.copy(), np.zeros_like(Y)
        self.binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
        self.binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
        for factor in (1, 2):  # bound once, called often
            x[...] = X * factor
            self.session.run_with_iobinding(self.binding)
            np.testing.assert_array_equal(y, Y * factor)
        self.binding.bind_output("y", "cpu", 0, np.float32, (1, 2), y.ctypes.data)
        self.refuses(deepstride.InvalidArgumentError, "output 'y': found memory for float32[1, 2], expected float32[2, 2]",
                     self.session.run_with_iobinding, self.binding)

    def test_binds_values(self):
        own = X.copy()
        shared = ort.OrtValue.ortvalue_from_numpy(own)
        own[...] = 7  # ONNX Runtime shares memory on the CPU, too
        self.assertTrue((shared.numpy() == 7).all())
        x = ort.OrtValue.ortvalue_from_numpy(X.copy())
        y = ort.OrtValue.ortvalue_from_shape_and_type(Y.shape, np.float32, "cpu", 0)
        self.assertEqual((x.shape(), x.data_type(), x.element_type(), x.device_name()), ([2, 3], "tensor(float)", 1, "cpu"))
        self.binding.bind_ortvalue_input("x", x)
        self.binding.bind_ortvalue_output("y", y)
        x.update_inplace(X * 3)
        self.session.run_with_iobinding(self.binding)
        np.testing.assert_array_equal(y.numpy(), Y * 3)
        z, = self.session.run_with_ort_values(["z"], {"x": x})
        np.testing.assert_array_equal(np.from_dlpack(z), -Y * 3)

    def test_refuses_other_devices_and_names(self):
        self.refuses(deepstride.InvalidArgumentError, "found 'cuda' 0, expected 'cpu' 0", self.binding.bind_output, "y", "cuda")
        self.refuses(deepstride.InvalidArgumentError, "no input or output 'q', expected one of x", self.binding.bind_cpu_input,
                     "q", X)
        self.refuses(deepstride.InvalidArgumentError, "no output is bound", self.session.run_with_iobinding, self.binding)
        self.refuses(deepstride.InvalidArgumentError, "found 'cuda'", ort.OrtValue.ortvalue_from_numpy, X, "cuda")
        self.refuses(deepstride.InvalidArgumentError, "found 'cuda'", ort.OrtDevice.make, "cuda", 0)
        device = onnxruntime.OrtDevice.make("cpu", 0)
        self.assertEqual((device.device_type(), device.device_id()), (0, 0))
        self.binding.bind_output("y", device)


if __name__ == "__main__":
    unittest.main()
