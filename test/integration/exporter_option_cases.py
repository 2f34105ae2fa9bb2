"""What the exporters write (exporter_cases.py), with weights in 8 bits, in groups, too, and products of bf16: beside ONNX Runtime in f32.

Bounded is ||ours - theirs|| / ||theirs|| of each output of floats, by what the report says of the weights and products
(docs/rationale/quantization.md, "What the errors do to a model"). One file for each family and exporter: that of the highest opset.
"""
import re

import numpy as np
import onnx

from exporter_cases import FAMILIES, SECONDS, SIZES, ZOO, random_inputs
from kit import Skip, case, expect, onnx_runtime, run_package, tool

OPTIONS = ("--precision=bf16", "--precision=f16", "--quantize=int8", "--quantize=int8,group=32", "--quantize=int4",
           "--quantize=int8 --activations=int8")


def bound_of(report, family):
    """Three times the root of the sum of squares of what each weight, or each rounded product, is off; five times where attention does
    not scale its scores, as errors of scores are multiplied by them."""
    factor = 5 if "t5" in family or re.search(r"\bgpt-neo\b", family) else 3
    weights = [float(error) for error in re.findall(r"remark: (?:table|weight) '.*relative error ([\d.e+-]+)", report)]
    products = sum(times * int(count) for times, what in ((1, "products"), (2, "attentions"))
                   for count in re.findall(rf"^round-{what[:9]}s?: (\d+) {what} rounded", report, re.M))
    # A row whose greatest element is four times its root mean square: a step of 4 / 127, over the root of 12.
    rows = sum(int(count) for count in re.findall(r"^quantize-activations: (\d+) products in bytes", report, re.M))
    expect(weights or products, f"no error is told: {report}")
    return factor * np.sqrt(np.sum(np.square(weights)) + products * 2.0**-16 + rows * 0.009**2)


def newest(family):
    """The models of a family that each exporter wrote with its highest opset."""
    found = {}
    for path in ZOO.glob(f"{family}_*.onnx"):
        _, exporter, opset = path.stem.split("_")
        if exporter not in found or int(opset) > int(found[exporter].stem.split("_")[2]):
            found[exporter] = path
    return sorted(found.values())


def distances(path, package, folder):
    """The greatest distance of an output, with its name, over calls of several sizes; None where ONNX Runtime takes none."""
    model, worst = onnx.load(path, load_external_data=False), None
    for seed, (batch, length) in enumerate(SIZES[1:4]):
        inputs = random_inputs(model, batch, length, seed)
        try:
            theirs = onnx_runtime(path, inputs)
        except Exception:  # a size that the exporter fixed
            continue
        ours = run_package(package, inputs, folder)
        for name, array in theirs.items():
            if not np.issubdtype(array.dtype, np.floating):
                expect((ours[name] == array).all(), f"{path.stem}: {name} differs")
                continue
            far = np.linalg.norm((ours[name] - array).astype(np.float64)) / max(np.linalg.norm(array.astype(np.float64)), 1e-30)
            expect(np.isfinite(far), f"{path.stem}: {name} is not finite")
            worst = max(worst or (0, ""), (float(far), name))
    return worst


def options_of(family):
    def function(folder):
        paths = newest(family)
        if not paths:
            raise Skip(f"no models in {ZOO}; utils/check-models exporters writes them")
        wrong = []
        for path in paths:
            for option in OPTIONS:
                package = folder / "model.dsp"
                result = tool("ds-opt", path, *option.split(), "--report", "-o", package, code=None, timeout=5 * SECONDS)
                if result.code:
                    text = " ".join(result.err.split())[:200]
                    print(f"  {path.stem} {option}: diagnosed: {text}", flush=True)
                    # What compiles by itself compiles with the option, but where there is nothing that it could change.
                    if not tool("ds-opt", path, "-o", package, code=None, timeout=5 * SECONDS).code and not re.search(
                            "no product was rounded|no weight was quantized", result.err):
                        wrong.append(f"{path.stem} {option}: {text}")
                    continue
                found, bound = distances(path, package, folder), bound_of(result.out + result.err, family)
                print(f"  {path.stem} {option}: " + ("ONNX Runtime takes none of the sizes" if found is None else
                                                     f"{found[1]} is {100 * found[0]:.2f} % off, of {100 * bound:.2f} %"), flush=True)
                if found is not None and found[0] > bound:
                    wrong.append(f"{path.stem} {option}: {found[1]} is {found[0]:.3g} off; the bound is {bound:.3g}")
        expect(not wrong, "; ".join(wrong))

    function.__name__ = family
    function.__module__ = __name__
    return function


for name in FAMILIES:
    case(options_of(name), slow=True)
