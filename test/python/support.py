"""What the tests of the wheel share: models that make_models.py wrote, compiled once, and a place for files."""
import functools
import os
import tempfile
import unittest
from pathlib import Path

import deepstride

MODELS = Path(os.environ["DS_TEST_MODELS"])
ROOT = Path(os.environ["DS_TEST_ROOT"])
# A state that adds up what it is given.
COUNTER = """func.func @main(%x: tensor<2xf32> {ds.name = "x", ds.dims = [2]},
    %total: tensor<2xf32> {ds.name = "total", ds.dims = [2], ds.state = "total"})
    -> (tensor<2xf32> {ds.name = "y"}, tensor<2xf32> {ds.state = "total"}) attributes {ds.entry} {
  %y = ds.binary add %x, %total : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y, %y : tensor<2xf32>, tensor<2xf32>
}
"""
_folder = tempfile.TemporaryDirectory()


@functools.cache
def package(name):
    """The path of a model's package."""
    source = MODELS / f"{name}.onnx"
    if name == "counter":
        source = Path(_folder.name) / "counter.mlir"
        source.write_text(COUNTER)
    return deepstride.compile(source, Path(_folder.name) / f"{name}.dsp")


class Case(unittest.TestCase):
    """A test with a folder of its own, and messages that are compared whole or by a part."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def refuses(self, kind, message, call, *arguments, **named):
        with self.assertRaises(kind) as found:
            call(*arguments, **named)
        text = str(found.exception)
        self.assertIn(message, text)
        self.assertNotIn("\n", text)
        return found.exception
