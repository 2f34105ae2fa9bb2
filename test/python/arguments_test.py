"""Arguments of the wrong kind: each function says what it wants, in a line of its own and not in C++'s."""
import inspect
import os
import unittest
from unittest import mock

import numpy as np

import deepstride
from support import Case, MODELS, package

# What a program passes by mistake; each is wrong for some parameters and right for others.
ODD = [b"m.dsp", 3, -1, 2.5, True, [1], ["a", "b"], {"a": 1}, {3: 4}, object(), "no\0thing", "\ud800", "two\nlines", np.float32(1), (), ""]


class Arguments(Case):
    def functions(self):
        """Each with arguments that are right, by the names of its parameters."""
        model = deepstride.load(package("linear"))
        counter = deepstride.load(package("counter"))
        linear, target = str(MODELS / "linear.onnx"), str(self.folder / "m.dsp")
        x = np.ones((1, 3), np.float32)
        return [
            (deepstride.load, {"path": package("linear"), "threads": 1, "dims": {"batch": 1}, "variant": None, "verify": True}),
            (deepstride.compile, {"model": linear, "package": target, "dims": {"batch": 1}, "shapes": {}}),
            (deepstride.check, {"model": linear, "dims": {}, "shapes": {}}),
            (deepstride.init_inference, {"model": linear, "mp_size": 1, "dtype": None, "checkpoint": None, "threads": 1,
                                         "dims": {}, "shapes": {}}),
            (deepstride.initialize, {"model": linear, "config": None, "threads": 1, "seed": 0}),
            (deepstride.empty, {"shape": (2,), "dtype": np.float32}),
            (model.pin, {"dimension": "batch", "size": 1}),
            (model.run, {"inputs": {"x": x}, "outputs": None, "entry": None}),
            (model.signature, {"entry": None}),
            (counter.save_states, {"path": str(self.folder / "s.npz")}),
            (counter.restore_states, {"path": str(self.folder / "none.npz")})]

    def test_what_is_wrong_is_said_by_us(self):
        """Arguments only: in the place of ds-opt stands a program that fails."""
        functions = self.functions()
        stand_in = mock.patch.object(deepstride._programs, "path_of", lambda name: "/bin/false")
        stand_in.start()
        self.addCleanup(stand_in.stop)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)  # where texts that are paths by chance lead
        calls = refusals = 0
        for function, right in functions:
            for name in right:
                self.assertIn(name, inspect.signature(function).parameters)
                for value in ODD:
                    calls += 1
                    with self.subTest(function=function.__qualname__, argument=name, value=repr(value)):
                        try:
                            function(**{**right, name: value})
                        except deepstride.Error as error:
                            refusals += 1
                            self.assertTrue(str(error).isprintable(), str(error))
                            self.assertNotIn("incompatible function arguments", str(error))
        self.assertGreater(refusals, calls / 2)

    def test_names_what_is_wanted(self):
        for named, says in (({"path": b"m.dsp"}, "path of the package: found b'm.dsp', expected a path: text, or a pathlib.Path"),
                            ({"variant": 3}, "variant: found 3, expected text"),
                            ({"dims": ["batch"]}, "dims: found ['batch'], expected a dictionary"),
                            ({"dims": {"batch": True}}, "batch"),
                            ({"verify": "no"}, "verify: found 'no', expected True or False")):
            self.refuses(deepstride.InvalidArgumentError, says, deepstride.load, **{"path": package("linear"), **named})

    def test_names_break_no_line(self):
        for name in ("a\nb", "a\x1b[31mb", "a\u2028b", "a\x85b", "a\u202eb"):
            error = self.refuses(deepstride.Error, "\\x", deepstride.load, name)
            self.assertEqual(len(str(error).splitlines()), 1)
            self.assertTrue(str(error).isprintable(), repr(str(error)))
            self.refuses(deepstride.InvalidArgumentError, "\\x", deepstride.load(package("linear")).run, {name: 1, "x": 2})


if __name__ == "__main__":
    unittest.main()
