#!/usr/bin/env python3
"""Writes tiny models of every transformer family as PyTorch's two exporters write them.

usage: write.py FOLDER [--family F,...] [--exporter torchscript,dynamo] [--opset N,...]
Writes FOLDER/FAMILY_EXPORTER_OPSET.onnx, or FOLDER/FAMILY_EXPORTER_OPSET.failed with the exporter's message where the
exporter does not manage. What is there already is left alone.
"""
import argparse
import contextlib
import inspect
import logging
import os
import sys
import time
import warnings
from pathlib import Path

import onnx
import torch
from families import FAMILIES

EXPORTERS = ("torchscript", "dynamo")
OPSETS = (11, 13, 14, 17, 18, 20, 23)


def export(case, exporter, opset, path):
    names, example = list(case.inputs), tuple(case.inputs.values())
    common = dict(input_names=names, output_names=case.outputs, opset_version=opset)
    if exporter == "torchscript":
        torch.onnx.export(case.module, example, str(path), dynamo=False, dynamic_axes=case.axes,
                          training=torch.onnx.TrainingMode.PRESERVE, **common)
    else:
        shapes = [case.axes.get(name, {}) for name in names]
        torch.onnx.export(case.module, example, str(path), dynamo=True, dynamic_shapes=dynamic(case, shapes),
                          external_data=False, **common)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=False)
    written = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if written != opset:
        raise RuntimeError(f"asked for opset {opset}, the exporter wrote opset {written}")


@contextlib.contextmanager
def silence():
    """The exporters print whole graphs, from C++ too."""
    sys.stdout.flush(), sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1), os.dup2(nothing, 2)
        yield
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os.dup2(kept[0], 1), os.dup2(kept[1], 2)
        for file in (*kept, nothing):
            os.close(file)


def dynamic(case, shapes):
    """torch.export wants a structure like the signature: what a *parameter takes is one tuple."""
    parameters = inspect.signature(case.module.forward).parameters.values()
    result, used = {}, 0
    for parameter in parameters:
        if parameter.kind == parameter.VAR_POSITIONAL:
            result[parameter.name] = tuple(shapes[used:])
        else:
            result[parameter.name] = shapes[used]
            used += 1
    return result


def write(folder, family, exporter, opset):
    path = folder / f"{family}_{exporter}_{opset}.onnx"
    failed = path.with_suffix(".failed")
    if path.exists() or failed.exists():
        return None
    # The dynamo exporter writes opset 18 and converts from there. Where a conversion downwards does not manage, the
    # ones further down, each half a minute of work, do not either.
    above = folder / f"{family}_{exporter}_17.failed"
    if exporter == "dynamo" and opset < 17 and above.exists():
        failed.write_text("as at opset 17: " + above.read_text())
        return f"{path.name}: export failed: as at opset 17"
    temporary = folder / f".{path.name}"
    start = time.time()
    try:
        with silence(), torch.no_grad():
            export(FAMILIES[family](), exporter, opset, temporary)
        temporary.rename(path)
        return f"{path.name}: {path.stat().st_size >> 10} KiB in {time.time() - start:.1f} s"
    except Exception as error:
        temporary.unlink(missing_ok=True)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        failed.write_text(f"{type(error).__name__}: {error}\n")
        return f"{path.name}: export failed: {type(error).__name__}: {lines[0][:160] if lines else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--family", default=",".join(FAMILIES))
    parser.add_argument("--exporter", default=",".join(EXPORTERS))
    parser.add_argument("--opset", default=",".join(map(str, OPSETS)))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for family in arguments.family.split(","):
        if family not in FAMILIES:
            parser.error(f"expected families of {', '.join(FAMILIES)}, found {family}")
        for exporter in arguments.exporter.split(","):
            for opset in sorted(map(int, arguments.opset.split(",")), reverse=True):
                line = write(arguments.folder, family, exporter, opset)
                if line:
                    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
