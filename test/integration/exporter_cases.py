"""What the exporters write of every transformer family: compiled, right at several sizes, recomposed.

`utils/check-models exporters` writes the models (utils/exporters) into build/zoo and runs these cases, one per family; the
table is printed and lies in build/exporters.tsv. A row passes when the model compiles in 20 s, one package gives ONNX
Runtime's numbers on fresh random inputs at several batch sizes and lengths, and the report tells each layer with its
attention, norms and activation, or with a remark that says why one of them was not recomposed.
"""
import os
import re
import time
from pathlib import Path

import numpy as np
import onnx

from kit import ROOT, Skip, case, expect, onnx_runtime, same_numbers, tool

ZOO = Path(os.environ.get("DS_ZOO", ROOT / "build/zoo"))
# How many attentions and normalizations the model of a family has (utils/exporters/families.py: two layers each).
FAMILIES = {"gpt2": (2, 5), "gpt2-past": (2, 5), "gpt-neox": (2, 5), "gpt-neo": (2, 5), "llama": (2, 5),
            "llama-past": (2, 5), "qwen2": (2, 5), "qwen3": (2, 9), "gemma2": (2, 9), "t5-encoder": (2, 5),
            "t5-decoder": (4, 7), "bert": (2, 5), "bert-sdpa": (2, 5), "deberta": (2, 6), "vit": (2, 5),
            "whisper-encoder": (2, 5), "whisper-decoder": (4, 7), "bilstm": (0, 0)}
# Written in Keras layers (utils/exporters/keras_families.py), and from checkpoints by optimum (write_optimum.py).
FAMILIES |= {"keras-bert": (2, 5), "keras-gpt2": (2, 5), "keras-seq2seq": (3, 5), "keras-llama": (2, 5),
             "keras-gqa": (2, 4), "keras-vit": (2, 5), "optimum-bert": (2, 5), "optimum-distilbert": (2, 5),
             "optimum-gpt2": (2, 5), "optimum-gpt2-past": (2, 5), "optimum-gpt-neo-past": (2, 5),
             "optimum-llama": (2, 5), "optimum-llama-past": (2, 5), "optimum-qwen2-past": (2, 5),
             "optimum-t5-encoder": (2, 5), "optimum-t5-decoder": (4, 7), "optimum-t5-decoder-past": (4, 7),
             "optimum-t5-merged": (4, 7), "optimum-vit": (2, 5), "optimum-whisper-encoder": (2, 5),
             "optimum-whisper-decoder": (4, 7), "optimum-whisper-decoder-past": (4, 7)}
LAYERS = {family: 0 if family == "bilstm" else 2 for family in FAMILIES}
SIZES = [(1, 1), (2, 5), (3, 8), (1, 17), (4, 33)]
VOCABULARY = 101
SECONDS = 20
ROWS = {}


def size_of(value, axis, batch, length):
    """The size of an input's axis by the name of its dimension; by its place where the exporter only numbers them."""
    dimension = value.type.tensor_type.shape.dim[axis]
    past = length // 2 + 2
    sizes = {"batch": batch, "length": length, "past": past, "source": length + 3, "total": past + length,
             "batch_size": batch, "sequence_length": length, "past_sequence_length": past,
             "past_sequence_length + sequence_length": past + length, "encoder_sequence_length": length + 3,
             "encoder_sequence_length_out": length + 3, "decoder_sequence_length": length,
             "past_decoder_sequence_length": past, "past_decoder_sequence_length + sequence_length": past + length,
             "num_channels": 3, "height": 24, "width": 24, "feature_size": 10, "nb_max_frames": 3000,
             "encoder_sequence_length / 2": 1500}
    if dimension.dim_param.startswith("unk__"):
        return (batch, length + 3 if value.name == "source_ids" else length)[axis]
    return sizes.get(dimension.dim_param, dimension.dim_value)


def random_inputs(model, batch, length, seed):
    """Inputs by their type and the names of their dimensions; the example sizes of the exporter never occur."""
    random = np.random.default_rng(seed)
    has_past = any(value.name.startswith("past") for value in model.graph.input)
    inputs = {}
    for value in model.graph.input:
        shape = [size_of(value, axis, batch, length) for axis in range(len(value.type.tensor_type.shape.dim))]
        expect(all(shape), f"input {value.name} has a dimension that no size is known for")
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if "mask" in value.name:
            kept = random.integers(1, shape[1] + 1, (shape[0], 1))
            inputs[value.name] = (np.arange(shape[1]) < kept).astype(kind)
            if has_past:  # padding of a cache is on the left
                inputs[value.name] = inputs[value.name][:, ::-1].copy()
        elif value.name == "position_ids":
            start = length // 2 + 2 if has_past else 0
            inputs[value.name] = np.broadcast_to(np.arange(start, start + length), shape).astype(kind)
        elif np.issubdtype(kind, np.integer):
            inputs[value.name] = random.integers(0, 2 if value.name == "token_type_ids" else VOCABULARY, shape, kind)
        elif kind == bool:
            inputs[value.name] = np.array([seed % 2 == 0])
        else:
            inputs[value.name] = random.standard_normal(shape, kind)
    return inputs


def recomposed(path, family, folder, options, decoders):
    """Which blocks the graph phase holds, out of how many; and those that lack without a remark that says why."""
    result = tool("ds-opt", path, "-o", folder / "graph.mlir", "--stop-after=graph", "--report", *options)
    report = result.out + result.err
    program = (folder / "graph.mlir").read_text()
    found, silent = [], []
    for block, ops, expected in zip(("attention", "norm"), ("attention", "(?:layer|rms)_norm"), FAMILIES[family]):
        count = len(re.findall(rf"= ds\.{ops}\b", program))
        expected *= decoders
        found.append(f"{block} {count}/{expected}")
        if count < expected and not re.search(rf"remark: [a-z- ]*{block} not recomposed", report):
            silent.append(block)
    lines = re.findall(r"^layer \d+: (.*)$", report, re.MULTILINE)
    if len(lines) != decoders * LAYERS[family]:
        silent.append(f"the report, which tells {len(lines)} layers of {decoders * LAYERS[family]}")
    for number, line in enumerate(lines):
        parts = {"attention": "attention", "norm": r"(layer|rms) norm", "activation": r"gelu|geglu|relu|silu|swiglu"}
        silent += [f"{part} of layer {number} in the report" for part, text in parts.items()
                   if "not recomposed" not in line and not re.search(rf"(^|, )({text})", line)]
    return ", ".join(found), silent


def pinned(path, name, value, folder):
    """The model with its input of one bool given: what --dim makes of it, for ONNX Runtime."""
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([value]), name))
    given = [entry for entry in model.graph.input if entry.name != name]
    del model.graph.input[:]
    model.graph.input.extend(given)
    onnx.save(model, folder / f"{name}_{int(value)}.onnx")
    return folder / f"{name}_{int(value)}.onnx"


def runs(folder, inputs):
    """Whether the package takes sizes that ONNX Runtime refuses. Refusing is right too, crashing is not."""
    np.savez(folder / "inputs.npz", **inputs)
    return not tool("ds-run", folder / "model.dsp", "--inputs", folder / "inputs.npz", code=None).code


def check(path, family, folder):
    """The result of one model: ("pass" or what went wrong, seconds to compile, what was recomposed)."""
    inputs = onnx.load(path, load_external_data=False).graph.input
    if all(entry.name != "use_cache_branch" for entry in inputs):
        return check_program(path, path, family, folder, [])
    # Two decoders in one: --dim chooses which, otherwise each call does.
    for branch in (True, False, None):
        chosen = [] if branch is None else ["--dim", f"use_cache_branch={int(branch)}"]
        oracle = path if branch is None else pinned(path, "use_cache_branch", branch, folder)
        row = check_program(path, oracle, family, folder, chosen, decoders=2 if branch is None else 1)
        if not row[0].startswith("pass"):
            return row
    return row


def check_program(source, path, family, folder, options, decoders=1):
    """As above, of the model `source` compiled with options that make it the model `path`; it may hold the family's
    layers more than once."""
    start = time.time()
    result = tool("ds-opt", source, "-o", folder / "model.dsp", "--report", *options, code=None, timeout=5 * SECONDS)
    seconds = time.time() - start
    if result.code:
        try:
            onnx_runtime(path, {})
        except Exception as error:
            if "INVALID_GRAPH" in str(error):  # the exporter wrote no legal model, and we say so
                return f"export invalid: {' '.join(str(error).split())[:200]}; {' '.join(result.err.split())[:200]}", seconds, ""
        return "diagnosed: " + " ".join(result.err.split())[:300], seconds, ""
    report, silent = recomposed(source, family, folder, options, decoders)
    if seconds > SECONDS:
        return f"compiled in {seconds:.1f} s, expected at most {SECONDS} s", seconds, report
    model = onnx.load(path, load_external_data=False)
    compared, refused = 0, ""
    for seed, (batch, length) in enumerate(SIZES):
        inputs = random_inputs(model, batch, length, seed)
        oracle = path
        try:
            onnx_runtime(path, inputs)
        except Exception as error:  # the exporter fixed a size, or wrote what only some runtimes take
            refused = f"ONNX Runtime refuses batch={batch} length={length}: {str(error).splitlines()[0][-160:]}"
            oracle = path.with_name(f"{path.stem.rpartition('_')[0]}_18.onnx")  # has the same weights
            if oracle == path or not oracle.exists():
                continue
        try:
            if oracle != path and not runs(folder, inputs):
                continue
            same_numbers(folder / "model.dsp", oracle, inputs, folder)
        except AssertionError as error:
            return f"wrong at batch={batch} length={length}: {' '.join(str(error).split())[:300]}", seconds, report
        compared += 1
    if not compared:
        return "export unusable: " + refused, seconds, report
    if silent:
        return f"right, but no remark says why not: {' and '.join(silent)}", seconds, report
    return f"pass {compared}/{len(SIZES)}" + ("; " + refused if refused else ""), seconds, report


def matrix(family):
    def function(folder):
        paths = sorted(path for suffix in ("onnx", "failed") for path in ZOO.glob(f"{family}_*.{suffix}"))
        if not paths:
            raise Skip(f"no models in {ZOO}; utils/check-models exporters writes them")
        wrong = []
        for path in paths:
            _, exporter, opset = path.stem.split("_")
            if path.suffix == ".failed":
                row = ("export failed: " + " ".join(path.read_text().split())[:160], 0, "")
            else:
                try:
                    row = check(path, family, folder)
                except AssertionError as error:
                    row = ("crashed: " + " ".join(str(error).split())[:300], 0, "")
            ROWS[family, exporter, int(opset)] = row
            print(f"  {path.stem}: {row[0]}; {row[1]:.1f} s; {row[2]}", flush=True)
            if not row[0].startswith(("pass", "export")):
                wrong.append(path.stem)
        expect(not wrong, f"not right: {', '.join(wrong)}")

    function.__name__ = family
    function.__module__ = __name__
    return function


for name in FAMILIES:
    case(matrix(name), slow=True)


@case(slow=True)
def table(folder):
    """Not a check of its own: writes what the cases before found."""
    if not ROWS:
        raise Skip("no model was checked")
    lines = ["family\texporter\topset\tresult\tseconds\trecomposed"]
    for (family, exporter, opset), (result, seconds, report) in sorted(ROWS.items()):
        lines.append(f"{family}\t{exporter}\t{opset}\t{result}\t{seconds:.1f}\t{report}")
    (ROOT / "build/exporters.tsv").write_text("\n".join(lines) + "\n")
    opsets = sorted({opset for _, _, opset in ROWS})
    print("  " + " " * 28 + "".join(f"{opset:>12}" for opset in opsets))
    for family, exporter in sorted({key[:2] for key in ROWS}):
        cells = (ROWS.get((family, exporter, opset), ("-",))[0] for opset in opsets)
        print(f"  {family + ' ' + exporter:28}" + "".join(f"{cell.split(':')[0].split(';')[0][:11]:>12}" for cell in cells))
