"""Inference with DeepSpeed's call: `deepstride.init_inference(model, dtype="bf16")`."""
from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

from . import _arguments, _compile, _programs
from ._errors import Error, InvalidArgumentError
from ._model import Model

# What a type's name means: precision of products, or weights in 8 bits.
_TYPES = {"float32": {}, "fp32": {}, "float": {}, "f32": {}, "float16": {"precision": "f16"}, "fp16": {"precision": "f16"},
          "half": {"precision": "f16"}, "f16": {"precision": "f16"}, "bfloat16": {"precision": "bf16"},
          "bf16": {"precision": "bf16"}, "int8": {"quantize": "int8"}, "int4": {"quantize": "int4"}}


def _type_options(dtype: Any) -> Mapping[str, str]:
    """Of "fp16", numpy.float16, torch.float16 and so on."""
    if dtype is None:
        return {}
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.removeprefix("torch.")
    if name not in _TYPES:
        raise InvalidArgumentError(f"dtype: found {dtype!r}, expected one of {', '.join(_TYPES)}")
    return _TYPES[name]


def _trained(package: str, checkpoint: str, folder: str) -> str:
    """The model of a training package with the parameters of a checkpoint."""
    path = os.path.join(folder, "trained.onnx")
    command = [_programs.path_of("ds-run"), "checkpoint", "export", checkpoint, f"--package={package}", "-o", path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error: " in line] or [done.stderr.strip()]
        kind = InvalidArgumentError if done.returncode == 2 else Error
        raise kind(lines[0].removeprefix("ds-run: error: "))
    return path


def init_inference(model: Any, *, mp_size: int = 1, dtype: Any = None, checkpoint: str | os.PathLike[str] | None = None,
                   threads: int | None = None, dims: Mapping[str, int] | None = None,
                   shapes: Mapping[str, Any] | None = None, **options: Any) -> Model:
    """A model, ready to run: compiled for this machine, as fast as it goes.

    model: an .onnx file, its bytes, an onnx.ModelProto, or a package, which is loaded as it is. With a checkpoint, the
    package of training that has written it, or the package of `deepstride.compile(..., mode="train")` alike.
    mp_size: among how many ranks tensors are sliced; 1, since models are not sliced yet.
    dtype: what products compute in: "fp32", "fp16", "bf16", or "int8" and "int4" for weights; NumPy's and PyTorch's too.
    checkpoint: a folder of checkpoints, whose latest parameters the model gets, or one of them.
    options: others of `deepstride.compile`.
    """
    if isinstance(mp_size, bool) or not isinstance(mp_size, int) or mp_size < 1:
        raise InvalidArgumentError(f"mp_size: found {mp_size!r}, expected 1")
    if mp_size > 1:
        raise InvalidArgumentError(f"mp_size: found {mp_size}, expected 1: models are not sliced among ranks yet")
    chosen = {**_type_options(dtype), **options}
    is_package = isinstance(model, (str, os.PathLike)) and os.path.isdir(model)
    if checkpoint is not None and not is_package:
        raise InvalidArgumentError("checkpoint: expected model to be the package of training that has written it, since "
                                   f"that knows where its parameters belong; found {model if isinstance(model, str) else type(model).__name__}")
    place = None if checkpoint is None else _arguments.path("checkpoint", checkpoint)
    if is_package and place is None:
        if chosen or shapes:
            raise InvalidArgumentError(f"init_inference: {next(iter(chosen or {'shapes': 0}))}: the package is compiled already")
        return Model(model, threads=threads, dims=dims)
    folder = tempfile.mkdtemp(prefix="deepstride-")
    try:
        if place is not None:
            model = _trained(_arguments.path("model", model), place, folder)
        package = os.path.join(folder, "model.dsp")
        _compile.compile(model, package, dims=dims, shapes=shapes, **chosen)
        return Model(package, threads=threads)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
