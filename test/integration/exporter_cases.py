"""What PyTorch's exporters write of every transformer family: compiled, right at several sizes, recomposed.

`utils/check-models exporters` writes the models (utils/exporters) into build/zoo and runs these cases, one per family; the
table is printed and lies in build/exporters.tsv. A row passes when the model compiles in 20 s, and one package gives ONNX
Runtime's numbers on fresh random inputs at several batch sizes and lengths.
"""
import collections
import os
import re
import time
from pathlib import Path

import numpy as np
import onnx

from kit import ROOT, Skip, case, expect, onnx_runtime, same_numbers, tool

ZOO = Path(os.environ.get("DS_ZOO", ROOT / "build/zoo"))
FAMILIES = ("gpt2", "gpt2-past", "gpt-neox", "gpt-neo", "llama", "llama-past", "qwen2", "qwen3", "gemma2", "t5-encoder",
            "t5-decoder", "bert", "bert-sdpa", "deberta", "vit", "whisper-encoder", "whisper-decoder", "bilstm")
SIZES = [(1, 1), (2, 5), (3, 8), (1, 17), (4, 33)]
VOCABULARY = 101
SECONDS = 20
ROWS = {}


def random_inputs(model, batch, length, seed):
    """Inputs by their type and the names of their dimensions; the example sizes of the exporter never occur."""
    random = np.random.default_rng(seed)
    sizes = {"batch": batch, "length": length, "past": length // 2 + 2, "source": length + 3}
    sizes["total"] = sizes["past"] + sizes["length"]
    inputs = {}
    for value in model.graph.input:
        shape = [sizes[dimension.dim_param] if dimension.dim_param in sizes else dimension.dim_value
                 for dimension in value.type.tensor_type.shape.dim]
        expect(all(shape), f"input {value.name} has a dimension that no size is known for")
        if "mask" in value.name:
            kept = random.integers(1, shape[1] + 1, (shape[0], 1))
            inputs[value.name] = (np.arange(shape[1]) < kept).astype(np.int64)
            if "past.0.key" in (other.name for other in model.graph.input):  # padding of a cache is on the left
                inputs[value.name] = inputs[value.name][:, ::-1].copy()
        elif value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            inputs[value.name] = random.integers(0, VOCABULARY, shape)
        else:
            inputs[value.name] = random.standard_normal(shape, np.float32)
    return inputs


def recomposed(report):
    """`--report` in short: what was recomposed, and how many remarks say why something was not."""
    counts = collections.Counter()
    for name, number in re.findall(r"recompose-([a-z-]+): (\d+)", report):
        counts[name] += int(number)
    return " ".join(f"{name}={number}" for name, number in counts.items() if number)


def check(path, folder):
    """The result of one model: ("pass" or what went wrong, seconds to compile, what was recomposed)."""
    start = time.time()
    result = tool("ds-opt", path, "-o", folder / "model.dsp", "--report", code=None, timeout=5 * SECONDS)
    seconds = time.time() - start
    if result.code:
        return "diagnosed: " + " ".join(result.err.split())[:300], seconds, ""
    report = recomposed(result.out + result.err)
    if seconds > SECONDS:
        return f"compiled in {seconds:.1f} s, expected at most {SECONDS} s", seconds, report
    model = onnx.load(path, load_external_data=False)
    compared, refused = 0, ""
    for seed, (batch, length) in enumerate(SIZES):
        inputs = random_inputs(model, batch, length, seed)
        try:
            onnx_runtime(path, inputs)
        except Exception as error:  # the exporter fixed a size
            refused = f"ONNX Runtime refuses batch={batch} length={length}: {str(error).splitlines()[0][-160:]}"
            continue
        try:
            same_numbers(folder / "model.dsp", path, inputs, folder)
        except AssertionError as error:
            return f"wrong at batch={batch} length={length}: {' '.join(str(error).split())[:300]}", seconds, report
        compared += 1
    if not compared:
        return "export unusable: " + refused, seconds, report
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
                    row = check(path, folder)
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
