"""Transposes that put few elements side by side which lie apart, against NumPy, of every element type."""
import numpy as np

from kit import case
from products import FLOATS, WHOLE, Model

SHAPES = (([3, 2, "n"], [0, 2, 1]), ([2, "n"], [1, 0]), ([4, "n"], [1, 0]), ([3, "n"], [1, 0]), ([2, 3, 2, 2, 3, "n"], [0, 1, 4, 2, 5, 3]),
          (["n", 4, 5, 19], [1, 0, 3, 2]), ([2, 4, "n"], [2, 1, 0]), ([4, 2, "n"], [2, 0, 1]), ([4, 3, "n"], [1, 2, 0]), ([2, 7, "n", 1], [1, 3, 2, 0]),
          ([5, 2, 33], [0, 2, 1]), ([2, 64], [1, 0]))


@case(seconds=4)
def rows_side_by_side(folder):
    """Two, three and four rows, also where these do not lie behind each other, of lengths around those of vectors."""
    m = Model("interleaves")
    for number, (dims, order) in enumerate(SHAPES):
        for element in (("f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i64") if number % 2 else (FLOATS[number // 2 % 4], "i8", WHOLE[number // 2 % 4], "f32")):
            x = m.input(element, dims)
            m.check(m.node("Transpose", [x], perm=order), element, [x], lambda a, order=order: np.transpose(a, order))
    package = m.compiled(folder)
    for number, length in enumerate((1, 7, 8, 15, 16, 17, 33, 64, 129, 0, 1023, 1025, 3000)):
        m.verify(package, m.feed({"n": length}), folder, f"--threads={1 + number % 3}", about=f"{length}:")
