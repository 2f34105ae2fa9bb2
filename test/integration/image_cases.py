"""Images that are enlarged by whole scales and put together from windows, against ONNX's reference evaluator and NumPy."""
import numpy as np

from kit import case
from operator_cases import check, numbers
from programs import SEED


@case
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


@case
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
