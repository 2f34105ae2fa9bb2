"""utils/check-random-models makes the same models in one run and in pieces, and sees what is wrong; utils/check-mutated-models
sees it, too. ds-opt is a stand-in."""
import importlib.machinery
import importlib.util
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "build/venv"
if Path(sys.prefix) != VENV and (VENV / "bin/python").exists():
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])

import numpy as np

SEED = int(os.environ.get("DS_SEED", np.random.SeedSequence().entropy % (1 << 32)))


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "utils" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Pieces(unittest.TestCase):
    def test_pieces_make_the_whole(self):
        tool, seen = load("check-random-models"), []

        def run_batch(cases, opset, options, arguments):
            seen.append([(case.index, case.operator, opset, len(case.nodes)) for case in cases])
            return [(case, "WRONG" if case.index == 3 else "ok", "as planned") for case in cases]

        tool.run_batch = run_batch
        with tempfile.TemporaryDirectory() as folder:
            tool.ROOT = Path(folder)

            def run(*options):
                seen.clear()
                sys.argv = ["check-random-models", "--seed", "9", "--jobs", "1", *options]
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    code = tool.main()
                return code, list(seen), output.getvalue()

            code, whole, _ = run("--models", "60")
            self.assertEqual(code, 1)
            self.assertFalse(list(Path(folder).rglob("*.json")))
            first = run("--models", "20", "--resume")[1]
            code, second, output = run("--models", "60", "--resume")
            self.assertEqual(first + second, whole)
            self.assertEqual(code, 1)
            self.assertIn("WRONG 3 ", output)  # of the first piece
            state, = Path(folder).rglob("*.json")
            self.assertEqual(json.loads(state.read_text())["models"], sum(map(len, whole)))
            self.assertEqual(run("--models", "60", "--resume")[1], [])  # nothing is left to do
            self.assertEqual(run("Add", "--models", "8", "--resume")[1][0][0][1], "Add")  # other operators are another run


class Judging(unittest.TestCase):
    """Only floats may be those of the reference evaluator where ONNX Runtime has a say."""

    class Case:
        outputs, drawn, scale, operator = ["y"], False, 1.0, "Add"

    def setUp(self):
        self.tool = load("check-random-models")

    def judged(self, ours, theirs, exact=None, operator="Add"):
        ours, theirs, case = np.asarray(ours), np.asarray(theirs), self.Case()
        case.operator = operator
        self.tool.oracles = lambda case, opset: iter([("ONNX Runtime", {"y": theirs})])
        self.tool.by_the_standard = lambda case, opset: {"y": np.asarray(ours if exact is None else exact)}
        return self.tool.judged(case, 20, {"y": ours})[0]

    def test_floats(self):
        one, off = np.ones(3, np.float32), np.full(3, 1.1, np.float32)
        self.assertEqual(self.judged(one, one, np.zeros(3)), "ok")
        self.assertEqual(self.judged(one, off, np.ones(3)), "ok")
        self.assertEqual(self.judged(off, one, np.ones(3)), "WRONG")
        self.assertEqual(self.judged(off, one, np.full(3, 1.1, np.float32)), "WRONG")  # not in float64
        self.assertEqual(self.judged(np.zeros(3, np.float32), np.full(3, 1e-6, np.float32), np.full(3, 1e-6)), "WRONG")

    def test_shapes_types_and_integers(self):
        self.assertEqual(self.judged(np.ones((3, 1)), np.ones(3), np.ones((3, 1))), "WRONG")
        self.assertEqual(self.judged(np.ones(3), np.ones(3, np.float32), np.ones(3)), "WRONG")
        self.assertEqual(self.judged([1, 2], [1, 3], [1, 2]), "WRONG")
        self.assertEqual(self.judged([True], [False], [True]), "WRONG")

    def test_integers_are_neighbours_only_where_reals_are_rounded(self):
        rounding = ["QuantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "Resize", "ReduceMean", "ReduceL2", "ReduceLogSumExp"]
        for operator in rounding:
            for dtype in (np.uint8, np.int8, np.int32):
                one, two, three = (np.array([1, n], dtype) for n in (1, 2, 3))
                self.assertEqual(self.judged(one, two, operator=operator), "ok", operator)
                self.assertEqual(self.judged(two, one, operator=operator), "ok", operator)
                self.assertEqual(self.judged(one, three, operator=operator), "WRONG", operator)
        for operator in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare", "DequantizeLinear"):
            self.assertEqual(self.judged([1, 2], [2, 3], operator=operator), "WRONG", operator)
        for operator in ("ReduceMax", "ReduceMin", *rounding):
            self.assertEqual(self.judged([True, False], [False, True], operator=operator), "WRONG", operator)


class JudgingMutants(unittest.TestCase):
    """Planted answers for a model of a softmax and an argument of the maximum."""

    def setUp(self):
        import onnx.parser
        self.tool = load("check-mutated-models")
        self.model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 20]> g (float[2, 3000] x) => (float[2, 3000] y, '
                                             "int64[2, 1] i) { y = Softmax (x) i = ArgMax <axis = 1> (y) }")
        self.feeds = {"x": np.random.default_rng(SEED).standard_normal((2, 3000)).astype(np.float32)}
        self.right = self.tool.evaluate(self.model, self.feeds)
        self.tool.compiled = lambda *_: None

    def judged(self, expected=None, nudged=None, **planted):
        self.tool.run = lambda *_: {**self.right, **planted}
        self.tool.nudged = lambda *_: nudged or expected or self.right  # a steady model, unless said otherwise
        try:
            self.tool.compare(self.model, [(self.feeds, expected or self.right)], None)
        except self.tool.Fault as fault:
            return fault.args[0]
        return "ok"

    def test_planted_answers(self):
        y, i = self.right["y"], self.right["i"]
        self.assertEqual(self.judged(), "ok")
        for wrong in (np.zeros_like(y), y[::-1], np.roll(y, 1, 1), y.astype(np.float64), y[:, :-1], y * np.nan):
            self.assertEqual(self.judged(y=wrong), "WRONG", f"DS_SEED={SEED}")
        for wrong in (i + 1, i.astype(np.int32), i[:, 0]):
            self.assertEqual(self.judged(i=wrong), "WRONG", f"DS_SEED={SEED}")

    def test_what_nudging_moves_excuses_itself_alone(self):
        y, i = self.right["y"], self.right["i"]
        flipped = {**self.right, "i": i + [[1], [0]]}
        self.assertEqual(self.judged(nudged=flipped, i=i + [[2], [0]]), "unsteady", f"DS_SEED={SEED}")
        for wrong in ({"y": np.zeros_like(y)}, {"y": y[::-1], "i": i + [[1], [0]]}, {"i": i + [[1], [1]]}, {"i": i + [[0], [1]]}):
            self.assertEqual(self.judged(nudged=flipped, **wrong), "WRONG", f"DS_SEED={SEED}")
        overflown = {**self.right, "y": np.where(np.arange(3000) == 5, np.inf, y)}
        self.assertEqual(self.judged(nudged=overflown, y=np.where(np.arange(3000) == 5, np.float32(9), y)), "unsteady", f"DS_SEED={SEED}")
        self.assertEqual(self.judged(nudged=overflown, y=np.where(np.arange(3000) == 6, np.float32(9), y)), "WRONG", f"DS_SEED={SEED}")

    def test_rounding_is_near_the_standard(self):
        """Where ONNX Runtime is far from float64, too, what is farther is not rounding."""
        y = self.right["y"]
        self.assertEqual(self.judged({**self.right, "y": y * np.float32(1.0005)}, y=y * np.float32(0.999)), "unsteady", f"DS_SEED={SEED}")
        self.assertEqual(self.judged({**self.right, "y": y * np.float32(0.6)}, y=np.zeros_like(y)), "WRONG", f"DS_SEED={SEED}")

    def test_the_runtime_is_overruled_on_floats_only(self):
        self.assertEqual(self.judged({**self.right, "y": self.right["y"] * np.float32(1.5)}), "ok")
        self.assertEqual(self.judged({**self.right, "i": self.right["i"] + 1}), "WRONG")


if __name__ == "__main__":
    unittest.main()
