"""Transformer layers with products and rows of other types than f32: how many launches one takes, numbers beside ONNX Runtime's
of the same model in f32, bits without fusion, and bits of a row in batches."""
import functools

import numpy as np
from onnx import TensorProto

import generate
import layers
from kit import case, compile_model, expect, onnx_runtime, processors, run_package
from layer_cases import LAUNCHES, SIZES, compare, dims_of, launches
from programs import SEED

OPTIONS = {"bf16": ["--precision=bf16"], "f16": ["--precision=f16"], "f16 beside codes": ["--precision=f16", "--quantize=int8"],
           "bytes": ["--quantize=int8", "--activations=int8"], "int4": ["--quantize=int4,group=32"],
           "int4 beside bf16": ["--quantize=int4,group=32", "--precision=bf16"]}
# Launches where rows are rounded before they are multiplied: a norm's sum with the residual is in memory before that.
ROUNDED = {"olmo 2": 7}
# What 4, 8 and 11 bits of rows and weights come to in two layers whose result is normalized, several times as much as was seen.
TOLERANCES = {"bf16": 0.05, "f16": 0.005, "bytes": 0.2}


@case(seconds=23)
def launches_of_rounded_layers(folder):
    for option, arguments in OPTIONS.items():
        for name, (make, expected, _) in LAUNCHES.items():
            # An encoder's result becomes codes once for all layers, and in the kernel of its product where one reads it.
            # Of the last of four layers, all weights may be stored in finer steps.
            found, expected = launches(folder, make, arguments, fewest=4), expected if option == "int4" else ROUNDED.get(name, expected)
            expect(found == expected, f"{name} {option}: a layer takes {found} launches, expected {expected}")


@case(seconds=23)
def rounded_layers(folder):
    for number, (option, tolerance) in enumerate(TOLERANCES.items()):
        arguments = dict(options=OPTIONS[option], tolerance=tolerance)
        compare(folder, functools.partial(layers.llama, normed=True), 20 + number, SIZES[:1], **arguments)
        compare(folder, functools.partial(layers.vit, layers=1), 30 + number, [dict(SIZES[0], tokens=9)], steps=1, **arguments)


@case(seconds=12)
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


@case(seconds=23)
def projections_of_other_codes(folder):
    """Queries and keys in 4 bits beside values in 8, in one kernel: of one row and of several blocks of them, of columns and
    rows that fill no panel and no group."""
    for number, (options, sizes) in enumerate(((["int4,group=32", "--precision=bf16"], dict(heads=3, groups=1, width=14, hidden=50)),
                                               (["int4,group=16,scheme=asymmetric"], dict(heads=10, groups=5, width=20, hidden=72)))):
        make = functools.partial(layers.llama, layers=1, inner=40, tokens="tokens", normed=number == 1, **sizes)
        compare(folder, make, 60 + number, [dict(SIZES[0], batch=3), dict(SIZES[1], tokens=150)], steps=1,
                options=[f"--quantize={options[0]}", *options[1:]], tolerance=2, cpus=[processors()[number % 2 - 1]])
    compare(folder, functools.partial(layers.whisper, layers=1, hidden=40, heads=2, first=True), 64, [dict(SIZES[0], frames=140), SIZES[1]],
            steps=1, options=OPTIONS["int4"], tolerance=1, cpus=processors()[-1:])


# Of files of another type: how far results are from those of the f32 model, whose parameters these are before they are rounded.
STORED = {"f16": (TensorProto.FLOAT16, np.float16, 0.03), "bf16": (TensorProto.BFLOAT16, np.float32, 0.25), "f64": (TensorProto.DOUBLE, np.float64, 2e-4)}


# Of more than the 4 KiB of a parameter that stay in the program, as the f32 ones of LAUNCHES are.
WIDER = {name: functools.partial(layers.llama, hidden=96, width=32, **options)
         for name, options in {"llama": {}, "qwen3": {"normed": True}, "llama, many tokens": {"tokens": "tokens"},
                               "olmo 2": {"normed": True, "norms": ["behind"]}, "gemma 2": {"norms": ["before", "behind"]}}.items()}


@case(seconds=12)
def launches_of_other_files(folder):
    for element, (code, _, _) in STORED.items():
        for name, (make, expected, _) in LAUNCHES.items():
            found = launches(folder, lambda number, make=WIDER.get(name, make): layers.stored_as(make(number), code))
            expect(found == expected, f"{name} of {element}: a layer takes {found} launches, expected {expected}")


def compare_stored(folder, make, seed, size):
    random = np.random.default_rng([SEED, seed])
    number = int(random.integers(1000))
    generate.save(make(seed=number), folder / "wide.onnx")
    feed = {}
    for name, dims in dims_of(make()).items():
        shape = [dict(size, total=size["past"] + size["tokens"]).get(d, d) for d in dims]
        feed[name] = size["past"] + np.arange(shape[1])[None].repeat(shape[0], 0) if name == "positions" else random.standard_normal(shape).astype(np.float16).astype(np.float32)
    expected = onnx_runtime(folder / "wide.onnx", feed, cache={})
    for element, (code, array_type, tolerance) in STORED.items():
        write = layers.between_floats if element == "bf16" else layers.stored_as
        generate.save(write(make(seed=number), code), folder / f"{element}.onnx")
        given = {name: array if array.dtype == np.int64 else array.astype(array_type) for name, array in feed.items()}
        for cpu in dict.fromkeys(["x86-64-v3", processors()[-1]]):
            # Without any fusion each elementwise op rounds to 16 bits.
            packages = [compile_model(folder / f"{element}.onnx", folder, f"--fusion={fusion}", f"--mcpu={cpu}", name=f"{fusion}.dsp")
                        for fusion in ("none" if element == "f64" else "generic", "specialized")]
            found = [run_package(package, given, folder, f"--threads={1 + 2 * threads}") for threads, package in enumerate(packages)]
            for name, array in expected.items():
                error = np.abs(found[1][name].astype(np.float64) - array).max(initial=0)
                expect(error <= tolerance, f"{element} {cpu} {name} of {size}: an error of {error} (DS_SEED={SEED})")
                same = found[0][name].tobytes() == found[1][name].tobytes()
                distance = np.abs(found[0][name].astype(np.float64) - found[1][name]).max(initial=0)
                expect(same, f"{element} {cpu} {name} of {size}: fusion changes bits, by {distance} (DS_SEED={SEED})")


@case(seconds=23)
def layers_of_other_files(folder):
    compare_stored(folder, functools.partial(layers.vit, layers=1), 81, dict(SIZES[0], tokens=9))
    compare_stored(folder, functools.partial(layers.llama, normed=True, layers=1), 82, SIZES[2])
    compare_stored(folder, functools.partial(layers.llama, layers=1, heads=2, groups=1, hidden=96, width=48), 83, SIZES[0])
