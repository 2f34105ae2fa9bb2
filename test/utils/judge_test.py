"""The judge of the integration cases catches planted wrong answers, and overrules ONNX Runtime only where it may."""
import math
import os
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "build/venv"
if Path(sys.prefix) != VENV and (VENV / "bin/python").exists():
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])
sys.path.insert(0, str(ROOT / "test/integration"))

import ml_dtypes
import numpy as np
import onnx
import onnx.parser

import judge
import kit

SEED = int(os.environ.get("DS_SEED", np.random.SeedSequence().entropy % (1 << 32)))
TOLERANCE = 1e-4
HEADER = '<ir_version: 10, opset_import: ["" : 23]>\n'


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class PlantedAnswers(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(SEED)
        self.words = softmax(self.random.standard_normal((2, 30522))).astype(np.float32)
        self.square = self.random.standard_normal((7, 7)).astype(np.float32)

    def caught(self, wrong, right):
        self.assertGreater(judge.distance(np.asarray(wrong), np.asarray(right)), TOLERANCE, f"DS_SEED={SEED}")
        found = judge.faults({"y": np.asarray(wrong)}, {"y": np.asarray(right)}, TOLERANCE, lambda: self.fail_to_evaluate())
        self.assertEqual(len(found), 1, f"DS_SEED={SEED}")

    def fail_to_evaluate(self):
        raise NotImplementedError("no such operator")

    def test_what_is_right(self):
        for array in (self.words, self.square, np.zeros(3, np.float32), np.zeros((0, 4)), np.float32(2), np.arange(5),
                      np.array([np.nan, np.inf, -np.inf, 1]), np.ones(3, ml_dtypes.bfloat16), np.array(True)):
            array = np.asarray(array)
            self.assertEqual(judge.distance(array, array.copy()), 0)
        near = self.words * (1 + np.float32(1e-6))
        self.assertEqual(judge.faults({"y": near}, {"y": self.words}, TOLERANCE, self.fail_to_evaluate), {})

    def test_zeros_for_a_softmax(self):
        self.caught(np.zeros_like(self.words), self.words)

    def test_an_even_softmax(self):
        self.caught(np.full_like(self.words, 1 / 30522), self.words)

    def test_a_row_of_another_batch(self):
        self.caught(self.words[::-1], self.words)

    def test_a_shift_by_one_place(self):
        self.caught(np.roll(self.words, 1, -1), self.words)

    def test_a_transposed_output_of_equal_shape(self):
        self.caught(self.square.T, self.square)

    def test_one_wrong_number_of_many(self):
        wrong = self.words.copy()
        place = np.unravel_index(self.random.integers(wrong.size), wrong.shape)
        wrong[place] += np.float32(2 * TOLERANCE) * self.words.max()
        self.caught(wrong, self.words)

    def test_small_numbers_are_numbers(self):
        self.caught(np.zeros(4, np.float32), np.full(4, 1e-30, np.float32))
        self.caught(np.full(4, 1e-30, np.float32), np.zeros(4, np.float32))

    def test_small_numbers_beside_large_ones(self):
        right = np.concatenate([np.full(500, 1e4), 1 + self.random.random(500)]).astype(np.float32)
        self.random.shuffle(right)
        for wrong in (0, 0.3 * right, right + 3):
            wrong = np.where(right < 10, wrong, right).astype(np.float32)
            self.assertLess(judge.distance(wrong, right), 10 * TOLERANCE)  # which is why it is not enough
            found = judge.faults({"y": wrong}, {"y": right}, 10 * TOLERANCE, lambda: {"y": right.astype(float)})
            self.assertIn("many small numbers lost", found["y"], f"DS_SEED={SEED}")

    def test_sums_that_cancel(self):
        """What rounding leaves of f32 sums, in any order, is no fault: the few that cancel have errors of their own size."""
        terms = self.random.standard_normal((4000, 64))
        ours, theirs = terms.astype(np.float32).sum(1), terms.astype(np.float32)[:, ::-1].cumsum(1, np.float32)[:, -1]
        self.assertEqual(judge.faults({"y": ours}, {"y": theirs}, TOLERANCE, self.fail_to_evaluate), {}, f"DS_SEED={SEED}")
        half = terms.astype(np.float16)
        ours, theirs = half.astype(np.float32).sum(1).astype(np.float16), half[:, ::-1].cumsum(1, np.float16)[:, -1]
        self.assertEqual(judge.faults({"y": ours}, {"y": theirs}, 2e-2, self.fail_to_evaluate), {}, f"DS_SEED={SEED}")

    def test_a_sign(self):
        self.caught(-self.square, self.square)
        self.caught(np.array([-np.inf, 1]), np.array([np.inf, 1]))

    def test_numbers_that_are_none(self):
        for bad in (np.nan, np.inf, -np.inf):
            wrong = self.square.copy()
            wrong[2, 3] = bad
            self.caught(wrong, self.square)
            self.caught(self.square, wrong)
        self.caught(np.array([np.nan]), np.array([np.inf]))
        self.caught(np.full(3, np.nan), np.zeros(3))

    def test_shapes(self):
        self.caught(self.square[None], self.square)
        self.caught(self.square[:6], self.square)
        self.caught(np.zeros((0, 3)), np.zeros((0, 4)))
        self.caught(np.ones(1), np.float64(1))

    def test_types(self):
        self.caught(self.square.astype(np.float64), self.square)
        self.caught(np.arange(3, dtype=np.int32), np.arange(3))
        self.caught(np.array([1, 0], np.uint8), np.array([True, False]))

    def test_an_integer_off_by_one(self):
        right = np.arange(30522)
        wrong = right.copy()
        wrong[self.random.integers(30522)] += 1
        self.caught(wrong, right)
        self.caught(np.array([2**63 - 1]), np.array([2**63 - 2]))
        self.caught(np.array([False, True]), np.array([True, True]))

    def test_a_missing_and_a_superfluous_output(self):
        one, two = {"y": self.square}, {"y": self.square, "z": self.square}
        for ours, theirs in ((one, two), (two, one)):
            self.assertTrue(judge.faults(ours, theirs, TOLERANCE, self.fail_to_evaluate))

    def test_a_stated_magnitude(self):
        rest = np.array([1e-8, -2e-8])  # of numbers near 1 that were subtracted in f32
        self.assertGreater(judge.distance(np.zeros(2), rest), TOLERANCE)
        self.assertLess(judge.distance(np.zeros(2), rest, magnitude=1), TOLERANCE)
        self.assertGreater(judge.distance(rest + 1e-3, rest, magnitude=1), TOLERANCE)


class Overruling(unittest.TestCase):
    """The standard decides between two floats, and nothing else."""

    def faults(self, ours, theirs, exact):
        return judge.faults({"y": np.asarray(ours)}, {"y": np.asarray(theirs)}, TOLERANCE, lambda: {"y": exact})

    def test_floats(self):
        right, off = np.array([1, 2], np.float32), np.array([1, 2.1], np.float32)
        self.assertEqual(self.faults(right, off, np.array([1.0, 2.0])), {})
        self.assertTrue(self.faults(off, right, np.array([1.0, 2.0])))
        self.assertTrue(self.faults(off, right, np.array([1.0, 3.0])))

    def test_lost_numbers(self):
        exact = np.array([1e5] * 8 + [1.0] * 8)
        right, lost = exact.astype(np.float32), np.array([1e5] * 8 + [0] * 8, np.float32)
        self.assertEqual(self.faults(right, lost, exact), {})
        self.assertTrue(self.faults(lost, right, exact))
        self.assertTrue(self.faults(lost, np.zeros(16, np.float32), exact))

    def test_ours_must_be_within_the_tolerance(self):
        self.assertTrue(self.faults(np.array([1.05], np.float32), np.array([1.1], np.float32), np.array([1.0])))

    def test_a_narrow_evaluation_does_not_count(self):
        self.assertTrue(self.faults(np.array([1], np.float32), np.array([2], np.float32), np.array([1], np.float32)))

    def test_shapes_types_integers_and_booleans(self):
        for ours, theirs in ((np.ones((2, 1)), np.ones(2)), (np.ones(2), np.ones(2, np.float32)), (np.array([1]), np.array([2])),
                             (np.array([True]), np.array([False]))):
            self.assertTrue(self.faults(ours, theirs, np.asarray(ours)))

    def test_a_wrong_neighbour_is_not_excused(self):
        two = {"y": np.ones(1), "z": np.ones(1)}
        found = judge.faults(two, {"y": np.zeros(1), "z": np.zeros(1)}, TOLERANCE, lambda: {"y": np.ones(1), "z": np.zeros(1)})
        self.assertEqual(list(found), ["z"])
        self.assertIn("output z", found["z"])

    def test_without_the_operator_the_runtime_stands(self):
        model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]> '
                                        "g (float[2] x) => (float[2] y) { y = com.microsoft.QuickGelu (x) }")
        x = np.ones(2, np.float32)
        found = judge.faults({"y": x}, {"y": 2 * x}, TOLERANCE, lambda: judge.by_the_standard(model, {"x": x}))
        self.assertIn("cannot say", found["y"])


class TheStandard(unittest.TestCase):
    """The widened copy computes in float64 from end to end."""

    def evaluate(self, text, dtype=np.float64, header=HEADER, **inputs):
        y = judge.by_the_standard(onnx.parser.parse_model(header + text), inputs)["y"]
        self.assertEqual(y.dtype, dtype)
        return y

    def test_constants_casts_and_sums(self):
        tiny = np.array([1e-12], np.float64)  # lost beside 1 in f32
        for text in ("float[1] one = {1}> { a = Add (one, x) y = Sub (a, one) }",
                     "float[1] u = {0}> { one = Constant <value_floats = [1.0]> () a = Add (one, x) y = Sub (a, one) }",
                     "float[1] u = {0}> { one = Constant <value_float = 1.0> () a = Add (one, x) y = Sub (a, one) }",
                     "float[1] u = {0}> { one = Constant <value = float[1] {1}> () a = Add (one, x) y = Sub (a, one) }",
                     "float16[1] h = {1}> { one = Cast <to = 1> (h) a = Add (one, x) y = Sub (a, one) }",
                     "int64[1] n = {1}> { one = ConstantOfShape <value = float[1] {1}> (n) a = Add (one, x) y = Sub (a, one) }",
                     "int64[1] n = {1}> { o = ConstantOfShape (n) one = Cos (o) a = Add (one, x) y = Sub (a, one) }"):
            y = self.evaluate(f"g (float[1] x) => (float[1] y) <{text}", x=tiny.astype(np.float32))
            np.testing.assert_allclose(y, tiny, rtol=1e-3)

    def test_erf_and_gelu_in_all_digits(self):
        x = np.array([0.3, 1.7], np.float32)
        wide = np.array([math.erf(float(number)) for number in x])
        self.assertTrue(np.allclose(self.evaluate("g (float[2] x) => (float[2] y) { y = Erf (x) }", x=x), wide, rtol=1e-14, atol=0))
        gelu = [float(number) / 2 * (1 + math.erf(float(number) / math.sqrt(2))) for number in x]
        self.assertTrue(np.allclose(self.evaluate("g (float[2] x) => (float[2] y) { y = Gelu (x) }", x=x), gelu, rtol=1e-14, atol=0))

    def test_casts_round(self):
        """A compiler that drops a cast to fewer bits is wrong; whether a body or the graph holds it."""
        x = np.array([1.0004, 3.14159, 7e4, 1e-8], np.float32)
        half, short = x.astype(np.float16).astype(float), x.astype(ml_dtypes.bfloat16).astype(float)
        to_half = "h = Cast <to = 10> (x) y = Cast <to = 1> (h)"
        for text, expected in (
                (f"<float[1] u = {{0}}> {{ {to_half} }}", half),
                ("<float[1] u = {0}> { h = Cast <to = 16> (x) y = Cast <to = 1> (h) }", short),
                ("<float16 u = {0}> { h = CastLike (x, u) y = CastLike (h, x) }", half),
                ("<bool c = {1}> { y = If (c) <then_branch = t () => (float[4] p) { h = Cast <to = 10> (x) p = Cast <to = 1> (h) }, "
                 "else_branch = e () => (float[4] p) { p = Identity (x) }> }", half)):
            np.testing.assert_array_equal(self.evaluate(f"g (float[4] x) => (float[4] y) {text}", x=x), expected)
        model = f'g (float[4] x) => (float[4] y) {{ y = own.f (x) }}\n<domain: "own", opset_import: ["" : 23]> f (x) => (y) {{ {to_half} }}'
        header = '<ir_version: 10, opset_import: ["" : 23, "own" : 1]>\n'
        np.testing.assert_array_equal(self.evaluate(model, header=header, x=x), half)
        found = judge.faults({"y": x}, {"y": half.astype(np.float32)}, TOLERANCE, lambda: judge.by_the_standard(
            onnx.parser.parse_model(f"{HEADER}g (float[4] x) => (float[4] y) {{ {to_half} }}"), {"x": x}))
        self.assertEqual(list(found), ["y"])

    def test_casts_of_doubles_round(self):
        tiny, one = np.array([1e-12]), "double[1] one = {1}> { a = Add (one, x)"
        y = self.evaluate(f"g (double[1] x) => (float[1] y) <{one} b = Cast <to = 1> (a) o = Cast <to = 1> (one) y = Sub (b, o) }}", x=tiny)
        self.assertEqual(y[0], 0)
        y = self.evaluate(f"g (double[1] x) => (float[1] y) <{one} s = Sub (a, one) y = Cast <to = 1> (s) }}", x=tiny)
        np.testing.assert_allclose(y, tiny, rtol=1e-3)

    def test_branches_and_loops(self):
        text = ("g (float[1] x) => (float[1] y) <bool c = {1}> { y = If (c) <then_branch = t () => (float[1] p) "
                "{ one = Constant <value = float[1] {1}> () a = Add (one, x) p = Sub (a, one) }, "
                "else_branch = e () => (float[1] q) { q = Identity (x) }> }")
        np.testing.assert_allclose(self.evaluate(text, x=np.array([1e-12], np.float32)), [1e-12], rtol=1e-3)

    def test_functions_of_the_model(self):
        header = '<ir_version: 10, opset_import: ["" : 23, "own" : 1]>\n'
        text = ('g (float[1] x) => (float[1] y) { y = own.f (x) }\n<domain: "own", opset_import: ["" : 23]> f (x) => (y) '
                "{ one = Constant <value = float[1] {1}> () a = Add (one, x) y = Sub (a, one) }")
        np.testing.assert_allclose(self.evaluate(text, header=header, x=np.array([1e-12], np.float32)), [1e-12], rtol=1e-3)

    def test_integers_stay(self):
        text = "g (int32[1] x) => (int32[1] y) <int32[1] one = {1}> { y = Add (x, one) }"
        self.assertEqual(self.evaluate(text, np.int32, x=np.array([2**31 - 1], np.int32))[0], -2**31)

    def test_the_model_is_left_alone(self):
        model = onnx.parser.parse_model(HEADER + "g (float[1] x) => (float[1] y) <float[1] one = {1}> { y = Add (x, one) }")
        before = model.SerializeToString()
        judge.by_the_standard(model, {"x": np.ones(1, np.float32)})
        self.assertEqual(model.SerializeToString(), before)


class MaskedValues(unittest.TestCase):
    """A finite result for a NaN that only a weight of 0 multiplies, where the case says so."""

    def judged(self, ours, unread):
        runs, runtime = kit.run_package, kit.onnx_runtime
        weights = np.array([[0.25, 0.75, 0]])
        kit.run_package = lambda *_: {"y": np.asarray(ours)}
        kit.onnx_runtime = lambda _, inputs: {"y": weights @ inputs["v"]}
        try:
            kit.same_numbers(None, "no-such-model", {"v": np.array([[4.0], [8.0], [np.nan]])}, None, unread=unread)
        finally:
            kit.run_package, kit.onnx_runtime = runs, runtime

    def test_allowed_exactly_there(self):
        unread = {"v": np.array([[False], [False], [True]])}
        self.judged([[7.0]], unread)
        self.judged([[np.nan]], unread)
        for ours, marked in (([[6.0]], unread), ([[np.inf]], unread), ([[7.0]], None), ([[7.0]], {"v": ~unread["v"]})):
            with self.assertRaises(AssertionError):
                self.judged(ours, marked)


if __name__ == "__main__":
    unittest.main()
