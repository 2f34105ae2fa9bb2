"""Transformer layers with products and rows of other types than f32: how many launches one takes, numbers beside ONNX Runtime's
of the same model in f32, bits without fusion, and bits of a row in batches."""
import functools

import numpy as np

import generate
import layers
from kit import case, compile_model, expect, run_package
from layer_cases import LAUNCHES, SIZES, compare, launches
from programs import SEED

OPTIONS = {"bf16": ["--precision=bf16"], "f16": ["--precision=f16"], "f16 beside codes": ["--precision=f16", "--quantize=int8"]}
# What 8 and 11 bits of rows and weights come to in two layers whose result is normalized, several times as much as was seen.
TOLERANCES = {"bf16": 0.05, "f16": 0.005}


@case
def launches_of_rounded_layers(folder):
    for option, arguments in OPTIONS.items():
        for name, (make, expected) in LAUNCHES.items():
            found = launches(folder, make, arguments)
            expect(found == expected, f"{name} {option}: a layer takes {found} launches, expected {expected}")


@case
def rounded_layers(folder):
    for number, (option, tolerance) in enumerate(TOLERANCES.items()):
        arguments = dict(options=OPTIONS[option], tolerance=tolerance)
        compare(folder, functools.partial(layers.llama, normed=True), 20 + number, SIZES[:1], **arguments)
        compare(folder, functools.partial(layers.vit, layers=1), 30 + number, [dict(SIZES[0], tokens=9)], steps=1, **arguments)


@case
def rounded_rows_in_batches(folder):
    """A row has the bits that it has alone, of 1 and of more than 128 rows, which blocks of a norm and sweeps hold."""
    random = np.random.default_rng([SEED, 71])
    generate.save(layers.vit(layers=1, seed=int(random.integers(1000))), folder / "m.onnx")
    x = random.standard_normal((150, 1, 64)).astype(np.float32)
    for option, arguments in OPTIONS.items():
        package = compile_model(folder / "m.onnx", folder, *arguments, name=f"{option.split()[0]}-{len(arguments)}.dsp")
        whole = run_package(package, {"hidden": x}, folder, "--threads=2")
        for row in random.choice(150, 3, replace=False):
            alone = run_package(package, {"hidden": x[row:row + 1]}, folder, "--threads=1")
            for name, array in alone.items():
                expect(array.tobytes() == whole[name][row:row + 1].tobytes(), f"{option}: row {row} of {name} has other bits alone (DS_SEED={SEED})")
