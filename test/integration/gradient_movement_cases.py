"""Gradients of ops that move elements, against differences in float64: where elements came from, and what meets there."""
import itertools

import numpy as np

from gradients import Gradients
from kit import case


def slices(parts):
    """y of other functions of x[:, begin:end]."""
    functions = "Sin", "Exp", "Cos", "Tanh"
    nodes = [f"b{i} = Constant <value_ints = [{begin}]> () e{i} = Constant <value_ints = [{end}]> () a{i} = Constant <value_ints = [1]> () "
             f"p{i} = Slice (x, b{i}, e{i}, a{i}) q{i} = {functions[i % 4]} (p{i})" for i, (begin, end) in enumerate(parts)]
    return " ".join(nodes) + f" y = Concat <axis = 1> ({', '.join(f'q{i}' for i in range(len(parts)))})"


@case
def movement(folder):
    g = Gradients()
    g.test("y = Reshape (x, s)", {"s": np.array([3, 4])}, x=g.numbers(2, 6))
    g.test("y = Transpose <perm = [2, 0, 1]> (x)", x=g.numbers(2, 3, 4))
    g.test("y = Concat <axis = 1> (a, b, a)", a=g.numbers(2, 3), b=g.numbers(2, 1))
    g.test("y = Expand (x, s)", {"s": np.array([2, 3, 4])}, x=g.numbers(3, 1))
    g.test("y = Tile (x, s)", {"s": np.array([2, 3])}, x=g.numbers(2, 2))
    g.test("y, z = Split <num_outputs = 2, axis = 1> (x)", x=g.numbers(2, 5))
    for starts, ends, axes, steps in (([1], [4], [0], [1]), ([0, 5], [9, -9], [0, 1], [2, -1]),
                                      ([5, 1], [-9, 6], [0, 1], [-2, 3]), ([4], [0], [1], [-3])):
        g.test("y = Slice (x, b, e, a, s)", {"b": np.array(starts), "e": np.array(ends), "a": np.array(axes),
                                             "s": np.array(steps)}, x=g.numbers(6, 7))
    for pads in ([1, 0, 0, 2], [-1, 2, 0, -1], [0, 0, -2, -2]):
        g.test("y = Pad (x, p, v)", {"p": np.array(pads)}, x=g.numbers(3, 4), v=g.numbers())
    g.test("y = Trilu (x)", x=g.numbers(3, 3))
    g.test("y = DepthToSpace <blocksize = 2> (x)", x=g.numbers(1, 4, 2, 1))
    g.test("t = Squeeze (x, a) u = Unsqueeze (t, b) y = Flatten (u)", {"a": np.array([0]), "b": np.array([2])},
           x=g.numbers(1, 2, 3))
    g.verify(folder)


@case(seconds=4)
def parts_of_a_tensor(folder):
    """Slices that meet, in all orders, overlap, leave gaps or repeat, of other steps, of slices, and beside other readers."""
    g = Gradients()
    cuts = [(0, 2), (2, 3), (3, 7)]
    for order in itertools.permutations(cuts):
        g.test(slices(order), x=g.numbers(2, 7))
    for parts in ([(0, 3), (2, 7)], [(0, 2), (4, 7)], [(1, 3), (3, 6)], [(0, 7), (0, 7)], [(0, 2), (2, 2), (2, 7)], [(0, 4), (4, 7), (0, 4), (4, 7)],
                  [(0, 1), (3, 5), (1, 3)], [(0, 2), (5, 7), (2, 3), (1, 4)]):
        g.test(slices(parts), x=g.numbers(2, 7))
    g.test(slices(cuts).replace(" y =", " z =") + " w = Mul (x, x) y = Mul (w, z)", x=g.numbers(2, 7))
    g.test("a, b = Split <axis = 1, num_outputs = 2> (x) c, d = Split <axis = 0, num_outputs = 2> (a) e = Sin (c) f = Exp (b) h = Concat <axis = 0> (e, d) y = Mul (h, f)",
           x=g.numbers(4, 6))
    g.test("a, b, c = Split <axis = 1, num_outputs = 3> (x) d = Sin (c) e = Mul (a, d) y = Mul (e, b)", x=g.numbers(4, 6), dims={"x": ("n", 6)})
    g.test("a, b = Split <axis = 0> (x, s) d = Sin (a) e = Exp (b) y = Concat <axis = 0> (e, d)", {"s": np.array([1, 3])}, x=g.numbers(4, 3), dims={"x": (4, "m")})
    g.verify(folder)


@case
def copies_at_borders(folder):
    g = Gradients()
    for mode in ("edge", "reflect", "wrap"):
        g.test(f'y = Pad <mode = "{mode}"> (x, p)', {"p": np.array([1, 2, 0, 3])}, x=g.numbers(3, 4))
        g.test(f'y = Pad <mode = "{mode}"> (x, p)', {"p": np.array([0, 2, 0, 0])}, x=g.numbers(2, 3),
               dims={"x": ["n", "m"]})
    g.verify(folder)
