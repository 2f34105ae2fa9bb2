#!/usr/bin/env python3
"""Writes tiny Keras transformers as the TensorFlow exporters write them.

usage: write_keras.py FOLDER [--family F,...] [--exporter tf2onnx,keras] [--opset N,...]
Writes FOLDER/FAMILY_EXPORTER_OPSET.onnx, or FOLDER/FAMILY_EXPORTER_OPSET.failed with the exporter's message. tf2onnx is
`tf2onnx.convert.from_function`, keras is `model.export(format="onnx")`. What is there already is left alone.
"""
import argparse
import logging
import os
import sys
import time
from pathlib import Path

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="tensorflow")
import onnx
import tensorflow as tf
import tf2onnx
from keras_families import FAMILIES


def export(model, exporter, opset, path):
    if exporter == "keras":
        model([tf.zeros([1 if size is None else size for size in value.shape], value.dtype) for value in model.inputs])
        model.export(str(path), format="onnx", opset_version=opset, verbose=False)
        return
    signature = [tf.TensorSpec(value.shape, value.dtype, value.name) for value in model.inputs]
    function = tf.function(lambda *inputs: model(list(inputs) if len(inputs) > 1 else inputs[0]),
                           input_signature=signature)
    tf2onnx.convert.from_function(function, input_signature=signature, opset=opset, output_path=str(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--family", default=",".join(FAMILIES))
    parser.add_argument("--exporter", default="tf2onnx,keras")
    # Einsum, which the attention of Keras is made of, came with opset 12.
    parser.add_argument("--opset", default="13,15,18")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)
    for family in arguments.family.split(","):
        if family not in FAMILIES:
            parser.error(f"expected families of {', '.join(FAMILIES)}, found {family}")
        for exporter in arguments.exporter.split(","):
            for opset in map(int, arguments.opset.split(",")):
                path = arguments.folder / f"{family}_{exporter}_{opset}.onnx"
                failed = path.with_suffix(".failed")
                if path.exists() or failed.exists():
                    continue
                start = time.time()
                temporary = path.with_name("." + path.name)
                try:
                    tf.keras.backend.clear_session()
                    export(FAMILIES[family](), exporter, opset, temporary)
                    onnx.checker.check_model(onnx.load(temporary))
                    temporary.rename(path)
                    print(f"{path.name}: {path.stat().st_size >> 10} KiB in {time.time() - start:.1f} s", flush=True)
                except Exception as error:
                    temporary.unlink(missing_ok=True)
                    failed.write_text(f"{type(error).__name__}: {error}\n")
                    print(f"{path.name}: export failed: {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
