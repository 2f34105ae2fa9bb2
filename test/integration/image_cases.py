"""Images that are enlarged by whole scales and put together from windows, against ONNX's reference evaluator and NumPy."""
import math
from fractions import Fraction

import numpy as np
import onnx
from onnx import helper, numpy_helper

from kit import case, compile_model, tool
from operator_cases import check, numbers
from programs import SEED


@case(seconds=5)
def resizing_by_whole_scales(folder):
    """Elements are repeated where the nearest of place i is i / scale, which some ways of counting places give."""
    x = numbers(2, 3, 5, 9, dtype=np.float32)
    for scales in ((1, 2, 3, 1.5), (2, 1, 8, 4)):
        scales = np.array(scales, np.float32)
        for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
            for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
                if scales[3] == 1.5 and coordinates != "asymmetric":
                    continue  # coordinates that are whole up to rounding, which the evaluator does elsewhere
                lists = [("s", scales)] if nearest != "ceil" else [("s", None), ("n", np.floor(x.shape * scales).astype(np.int64))]
                if nearest == "ceil" and scales[3] == 1.5:
                    continue  # sizes give another scale
                given = [("x", x), ("roi", None), *lists]
                check(folder, "Resize", given, opset=19, initializers=[lists[-1][0]], tolerance=0, expected=None,
                      coordinate_transformation_mode=coordinates, nearest_mode=nearest)
    y = x.repeat(2, 0).repeat(8, 2).repeat(4, 3)  # scales are those of the last turn
    check(folder, "Resize", [("x", x), ("roi", None), ("s", scales)], opset=19, initializers=["s"], tolerance=0,
          expected={"y": y}, coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor")
    check(folder, "Upsample", [("x", x), ("s", scales)], opset=9, initializers=["s"], tolerance=0, expected={"y": y})


@case(seconds=6)
def symmetric_places_are_exact(folder):
    """half_pixel_symmetric by fractions: a place that meets an element exactly is that element, however it is rounded."""
    random = np.random.default_rng([SEED, 4])
    pick = lambda *numbers: numbers[random.integers(len(numbers))]
    for _ in range(12):
        length, scale = int(random.integers(1, 12)), Fraction(pick(3, 5, 7, 9, 2, 6), pick(2, 4))
        size = math.floor(length * scale)
        if size < 1:
            continue
        x = random.standard_normal((1, length)).astype(np.float32)
        nearest = pick("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        half = Fraction(1, 2)
        rounding = {"floor": math.floor, "ceil": math.ceil, "round_prefer_floor": lambda p: math.ceil(p - half), "round_prefer_ceil": lambda p: math.floor(p + half)}
        middle = Fraction(length, 2) * (1 - Fraction(size) / (scale * length))
        places = [min(max(rounding[nearest](middle + (i + half) / scale - half), 0), length - 1) for i in range(size)]
        given = [("x", x), ("roi", None), ("s", np.array([1, float(scale)], np.float32))]
        for stored in (["s"], []):
            check(folder, "Resize", given, opset=19, initializers=stored, tolerance=0, expected={"y": x[:, places]},
                  coordinate_transformation_mode="half_pixel_symmetric", nearest_mode=nearest)


@case
def windows_that_do_not_fit(folder):
    """Channels that are no multiple of the taps, places that are not one for each window, when compiling and when running."""
    for shape, says in (((1, 5, 4), "axis 1: expected channels times taps, a multiple of 4, found 5"),
                        ((1, 4, 4), "axis 2: expected one place for each window, 5, found 4")):
        for dims in (list(shape), ["b", "c", "l"]):
            isStatic = dims[0] == 1
            graph = helper.make_graph([helper.make_node("Col2Im", ["x", "i", "k"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, dims)],
                                      [helper.make_tensor_value_info("y", 1, None)],
                                      [numpy_helper.from_array(np.array(a), name) for name, a in (("i", [2, 6]), ("k", [2, 2]))])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), str(folder / "m.onnx"))
            if isStatic:
                tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", code=1, says=says)
                continue
            package = compile_model(folder / "m.onnx", folder)
            np.savez(folder / "x.npz", x=np.zeros(shape, np.float32))
            tool("ds-run", package, "--inputs", folder / "x.npz", code=1)


@case(seconds=4)
def windows_added_up(folder):
    """Col2Im of strides and dilations below, at and beyond the block, in one to three axes; sums are in the order of taps."""
    random = np.random.default_rng(SEED)
    for image, block, strides, dilations, pads in (
            ((6, 5), (2, 2), (2, 1), (1, 2), (0, 0, 0, 1)), ((9, 21), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
            ((8, 12), (2, 3), (2, 3), (1, 1), (0, 0, 0, 0)), ((11, 18), (3, 5), (2, 2), (1, 1), (1, 0, 2, 3)),
            ((12, 9), (2, 3), (3, 4), (1, 1), (0, 2, 0, 0)), ((9, 9), (2, 3), (2, 1), (3, 2), (0, 0, 0, 0)), ((20,), (4,), (1,), (3,), (2, 0)),
            ((5, 6, 7), (2, 1, 3), (1, 2, 2), (2, 1, 1), (0, 0, 1, 1, 0, 0))):
        rank = len(image)
        padded = [image[i] + pads[i] + pads[rank + i] for i in range(rank)]
        count = [(padded[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
        columns = random.standard_normal((2, 3, *block, *count)).astype(np.float32)
        columns[random.random(columns.shape) < 0.2] = -0.0
        y = np.zeros((2, 3, *padded), np.float32)
        for tap in np.ndindex(*block):
            places = tuple(slice(tap[i] * dilations[i], tap[i] * dilations[i] + strides[i] * (count[i] - 1) + 1, strides[i])
                           for i in range(rank))
            y[(..., *places)] += columns[(slice(None), slice(None), *tap)]
        y = y[(..., *(slice(pads[i], pads[i] + image[i]) for i in range(rank)))]
        x = columns.reshape(2, 3 * int(np.prod(block)), -1)
        check(folder, "Col2Im", [("x", x), ("i", np.array(image)), ("b", np.array(block))], initializers=["i", "b"], tolerance=0,
              expected={"y": y}, pads=list(pads), strides=list(strides), dilations=list(dilations))
        check(folder, "Col2Im", [("x", x), ("i", np.array(image)), ("b", np.array(block))], tolerance=0, expected={"y": y},
              pads=list(pads), strides=list(strides), dilations=list(dilations))
