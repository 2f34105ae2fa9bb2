"""Types that NumPy lacks, where the package ml_dtypes is there, which adds them."""
import unittest

import ml_dtypes
import numpy as np

import deepstride
import deepstride.onnxruntime as ort
from support import Case, package


class Types(Case):
    def setUp(self):
        super().setUp()
        self.model = deepstride.load(package("half"))
        self.half = np.array([1, 2, 3], np.float16)
        self.flags = np.array([True, False, True])

    def test_go_in_and_out_as_arrays(self):
        for a in (np.array([1, 2, 3], ml_dtypes.bfloat16), [1, 2, 3]):
            y, d = self.model(a, self.half, self.flags)
            self.assertEqual(y.dtype, ml_dtypes.bfloat16)
            np.testing.assert_array_equal(y.astype(np.float32), [2, 4, 6])
            np.testing.assert_array_equal(d, ~self.flags)
        self.assertEqual(self.model.inputs[0].dtype, ml_dtypes.bfloat16)

    def test_narrower_than_a_byte_go_in_bytes(self):
        model = deepstride.load(package("narrow"))
        b = np.array([1.5, 2, -4], ml_dtypes.float8_e4m3fn)
        for a in (np.array([-8, 0, 7], ml_dtypes.int4), np.array([-8, 0, 7], np.int8), [-8, 0, 7]):
            y, z, s = model(a, b)
            self.assertEqual((y.dtype, z.dtype), (np.int8, ml_dtypes.float8_e4m3fn))
            np.testing.assert_array_equal(y, [-8, 0, 7])
            np.testing.assert_array_equal(s, [-6.5, 2, 3])
        for wrong in (np.array([-8, 0, 8], np.int8), np.array([0, 200, 1], np.uint8), [-9, 0, 1]):
            self.refuses(deepstride.InvalidArgumentError, "numbers of i4, -8 to 7", model, wrong, b)

    def test_go_from_call_to_call_by_dlpack(self):
        inputs = {"a": np.array([1, 2, 3], ml_dtypes.bfloat16), "b": self.half, "c": self.flags}
        results = self.model.run(inputs, dlpack=True)
        y, d = self.model(results["y"], self.half, results["d"])
        np.testing.assert_array_equal(y.astype(np.float32), [3, 6, 9])
        np.testing.assert_array_equal(d, self.flags)

    def test_are_values_of_onnx_runtime(self):
        value = ort.OrtValue.ortvalue_from_shape_and_type([2], 16)
        self.assertEqual((value.data_type(), value.element_type(), value.numpy().dtype),
                         ("tensor(bfloat16)", 16, ml_dtypes.bfloat16))

    def test_of_other_width_are_refused(self):
        narrow = np.zeros(3, ml_dtypes.float8_e4m3fn)
        self.refuses(deepstride.ShapeMismatchError, "f8e4m3fn", self.model, narrow, self.half, self.flags)


if __name__ == "__main__":
    unittest.main()
