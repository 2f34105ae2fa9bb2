"""Transformer layers as ONNX Runtime's quantize_dynamic writes them: how many launches one takes, its numbers beside ONNX
Runtime's, and its bits without fusion."""
import numpy as np
import onnx

import generate
from kit import case, compile_model, expect, onnx_runtime, processors, run_package
from layer_cases import launches
from optimized_cases import apart, quantization
from programs import SEED, some

LAUNCHES = 11


def quantized(folder, layers, **options):
    """Weights of 7 bits: on CPUs without VNNI, ONNX Runtime's sums of two u8 × i8 products saturate at 16 bits."""
    tools = quantization()
    generate.save(generate.bert(layers=layers, hidden=128, heads=4, vocabulary=50, positions=64), folder / "float.onnx")
    path = folder / f"quantized-{layers}.onnx"
    tools.quantize_dynamic(folder / "float.onnx", path, reduce_range=True, **options)
    return path


def feed(random, batch, length):
    return {"input_ids": random.integers(1, 50, (batch, length)),
            "attention_mask": (np.arange(length) < random.integers(1, length + 1, (batch, 1))).astype(np.int64)}


@case
def launches_of_a_dynamically_quantized_layer(folder):
    found = launches(folder, lambda layers: onnx.load(quantized(folder, layers)))
    expect(found == LAUNCHES, f"a layer takes {found} launches, expected {LAUNCHES}")


def compare(folder, **options):
    """No bit may depend on fusion, which decides whose kernel multiplies the zero points."""
    model, random = quantized(folder, 1, **options), np.random.default_rng([SEED, len(options)])
    inputs = [feed(random, *sizes) for sizes in ((1, 1), (2, 7), (5, 33))]
    for cpu in some(processors(), 1):
        packages = [compile_model(model, folder, f"--mcpu={cpu}", f"--fusion={fusion}", name=f"{fusion}-{cpu}.dsp")
                    for fusion in ("none", "specialized")]
        for given in inputs:
            found = [run_package(package, given, folder, f"--threads={threads}")
                     for package, threads in zip([*packages, packages[-1]], (2, 3, 1))]
            expected = onnx_runtime(model, given)
            for name, array in expected.items():
                for other in found[1:]:
                    expect(other[name].tobytes() == found[0][name].tobytes(), f"{cpu} {name} of {array.shape}: fusion changes bits (DS_SEED={SEED})")
                far = apart(found[0][name], array)
                expect(far < 0.02, f"{cpu} {name} of {array.shape}: relative root mean square {far:.3g} from ONNX Runtime")


@case(seconds=5)
def dynamically_quantized_layer(folder):
    compare(folder)


@case(seconds=6)
def dynamically_quantized_layer_per_channel(folder):
    compare(folder, per_channel=True)
