"""The wheel deepstride-runtime: packages run, and what compiles says what to install."""
import importlib.metadata
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import deepstride
from support import Case, MODELS


class Runtime(Case):
    def setUp(self):
        super().setUp()
        # The compiler of the build tree stands for another machine.
        self.package = self.folder / "linear.dsp"
        compiler = Path(os.environ["DS_TEST_ROOT"]) / "build/bin/ds-opt"
        subprocess.run([compiler, MODELS / "linear.onnx", "-o", self.package, "--no-cache"], check=True)

    def test_runs_packages(self):
        x = np.ones((1, 3), np.float32)
        expected = x @ (np.arange(6, dtype=np.float32).reshape(3, 2) / 4)
        np.testing.assert_array_equal(deepstride.load(self.package)(x)[0], expected)
        np.testing.assert_array_equal(deepstride.InferenceSession(self.package).run(["y"], {"x": x})[0], expected)
        ds_run = Path(sys.executable).parent / "ds-run"
        text = subprocess.run([ds_run, "inspect", self.package], check=True, capture_output=True, text=True).stdout
        self.assertIn("batch", text)

    def test_says_what_compiles(self):
        for call in (lambda: deepstride.compile(MODELS / "linear.onnx", self.folder / "m.dsp"),
                     lambda: deepstride.check(MODELS / "linear.onnx"),
                     lambda: deepstride.InferenceSession(str(MODELS / "linear.onnx"))):
            self.refuses(deepstride.Error, "pip install deepstride", call)

    def test_is_small(self):
        files = importlib.metadata.distribution("deepstride-runtime").files
        self.assertLess(sum(os.path.getsize(file.locate()) for file in files), 20e6)
        self.assertFalse([file for file in files if "LLVM" in file.name or file.name in ("ds-opt", "ld.lld")])


if __name__ == "__main__":
    unittest.main()
