"""Gradients through branches, against differences in float64: what a side keeps for the way back, in branches of branches, in
loops and around them, and that no side computes anything again."""
import re

import numpy as np
from onnx import parser, save

from gradient_graph_cases import GRADIENT, HEADER
from gradients import Gradients
from kit import case, expect, tool

DEEP = """y = If (c) <
    then_branch = t () => (o) { p = MatMul (x, w) q = Tanh (p) s = Softmax <axis = -1> (q) o = Mul (s, q) },
    else_branch = e () => (f) { u = Mul (x, x) v = ReduceSum <keepdims = 1> (u) r = Sqrt (v) k = Div (x, r) l = MatMul (k, w) f = Exp (l) }>"""


@case(seconds=6)
def sides_with_much_to_keep(folder):
    """Products, sums and elementwise ops in both sides, of dynamic sizes."""
    g = Gradients()
    for c in (True, False):
        g.test(DEEP, x=g.away(3, 4), w=g.numbers(4, 2), c=np.array(c), dims={"x": ("n", 4)})
    g.verify(folder, orders=(1, 2))


@case
def branches_of_branches(folder):
    g = Gradients()
    for c, d in ((True, True), (True, False), (False, True)):
        g.test("""s = Sin (x)
              y = If (c) <
                then_branch = t () => (o) {
                  a = Mul (s, x)
                  i = If (d) <then_branch = tt () => (p) { p1 = Exp (a) p = Mul (p1, s) }, else_branch = te () => (q) { q1 = Tanh (a) q = Mul (q1, q1) }>
                  b = Cos (i)
                  o = Mul (b, i)
                }, else_branch = e () => (r) {
                  r1 = If (d) <then_branch = et () => (u) { u1 = Mul (x, z) u = Sin (u1) }, else_branch = ee () => (v) { v = Identity (z) }>
                  r = Mul (r1, s)
                }>""", x=g.numbers(3), z=g.numbers(3), c=np.array(c), d=np.array(d), dims={"x": ("n",), "z": ("n",)})
    g.verify(folder, orders=(1, 2))


@case
def conditions_of_what_varies(folder):
    """The condition depends on x, which does not come near to where it changes."""
    g = Gradients()
    for sign in (1, -1):
        g.test("""sum = ReduceSum <keepdims = 0> (x)
              none = Constant <value = double {0.0}> ()
              zero = CastLike (none, sum)
              c = Greater (sum, zero)
              y = If (c) <then_branch = t () => (o) { o1 = Exp (x) o = Mul (o1, x) }, else_branch = e () => (p) { p1 = Mul (x, x) p = Mul (p1, x) }>""",
               x=sign * g.numbers(4, low=0.5, high=2))
    g.verify(folder, orders=(1, 2))


@case
def loops_in_branches(folder):
    g = Gradients()
    for c in (True, False):
        g.test("""y = If (c) <
                then_branch = t () => (o) {
                  o1, rest = Scan <num_scan_inputs = 1, body = b (h, row) => (next, out) { m = Mul (h, row) next = Tanh (m) out = Sin (next) }> (z, rows)
                  o = Mul (o1, o1)
                }, else_branch = e () => (p) { p1 = Mul (z, z) p = Exp (p1) }>""",
               z=g.numbers(2), rows=g.numbers(4, 2), c=np.array(c), dims={"rows": ("n", 2)})
    g.verify(folder)


@case
def branches_in_loops(folder):
    """Each iteration goes its own way: what one has kept is a row of what the loop keeps."""
    g = Gradients()
    g.test("""last, y = Scan <num_scan_inputs = 2, body = b (h, row, which) => (next, out) {
            m = Mul (h, row)
            next = If (which) <
              then_branch = t () => (o) { o1 = Tanh (m) o2 = Mul (o1, m) o = Mul (o2, w) },
              else_branch = e () => (p) { p1 = Sin (m) p = Mul (p1, p1) }>
            out = Mul (next, row)
          }> (x, rows, choices)""",
           x=g.numbers(2), rows=g.numbers(5, 2), w=g.numbers(2), choices=np.array([True, False, False, True, True]))
    g.verify(folder)


@case
def sides_that_compute_sizes(folder):
    """How many elements are chosen is known in the side alone, which runs once more."""
    g = Gradients()
    for c in (True, False):
        g.test("""y = If (c) <
                then_branch = t () => (o) {
                  chosen = Compress <axis = 0> (x, which)
                  e1 = Exp (chosen)
                  e2 = Mul (e1, chosen)
                  o = ReduceSum <keepdims = 0> (e2)
                }, else_branch = e () => (p) { q = Mul (x, x) p = ReduceSum <keepdims = 0> (q) }>""",
               x=g.numbers(6), which=np.array([True, False, True, True, False, True]), c=np.array(c), xs=["x"])
    g.verify(folder)


@case
def nothing_is_computed_again(folder):
    """Before kernels are made, the exponential of each side stands there once, and the way back reads it."""
    text = """m (float[n] x, bool c) => (dx) {
        y = If (c) <
          then_branch = t () => (o) { o1 = Exp (x) o2 = Sin (o1) o = Mul (o2, o1) },
          else_branch = e () => (p) { p1 = Tanh (x) p2 = Exp (p1) p = Mul (p2, p2) }>
        dx = GRADIENT <xs = ["x"], zs = ["c"], y = "y"> (x, c)
      }"""
    save(parser.parse_model(HEADER.format("") + text.replace("GRADIENT", GRADIENT)), folder / "m.onnx")
    tool("ds-opt", folder / "m.onnx", "-o", folder / "m.mlir", "--stop-after=training")
    program = (folder / "m.mlir").read_text()
    for op, count in (("exp", 2), ("tanh", 1), ("sin", 1)):
        found = len(re.findall(rf"ds\.unary +{op} ", program))
        expect(found == count, f"{found} times {op}, expected {count}:\n{program}")
