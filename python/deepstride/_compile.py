"""Compiling and checking models: ds-opt, with its options as keyword arguments."""
from __future__ import annotations

import contextlib
import difflib
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _arguments, _programs
from ._errors import CompileError, CompileWarning, InternalError, InvalidArgumentError
from ._options import OPTIONS

if TYPE_CHECKING:
    from typing import Unpack

    from ._options import CompileOptions

Source = Union[str, "os.PathLike[str]", bytes, bytearray, Any]
"""A model: the path of an .onnx file, its bytes, or an onnx.ModelProto."""


_ENDED_BY_OTHERS = (130, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL)
_PRINTING = ("report", "print_config")
"""Options whose purpose is what they print."""


class CheckResult(NamedTuple):
    """What `check` found; true where the model is supported."""

    supported: bool
    problems: list[str]
    """A line for each."""
    text: str
    """All that ds-opt printed."""

    def __bool__(self) -> bool:
        return self.supported


def option_arguments(function: str, given: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as ds-opt's options: None and False leave one out, True is one without a value."""
    arguments = []
    for name, value in given.items():
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, 1)
            hint = f"did you mean '{near[0]}'?" if near else "expected one of " + ", ".join(OPTIONS)
            raise InvalidArgumentError(f"{function}: no option '{name}'; {hint}")
        flag, argument = OPTIONS[name]
        if value is None or value is False:
            continue
        if value is True:
            if argument == "required":
                raise InvalidArgumentError(f"{function}: {name}: found True, expected a value")
            arguments.append(flag)
            continue
        if argument == "none":
            raise InvalidArgumentError(f"{function}: {name}: found {value!r}, expected True or False")
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            value = ",".join(map(str, value))
        arguments.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return arguments


def size_arguments(dims: Mapping[str, Any] | None, shapes: Mapping[str, Sequence[Any]] | None) -> list[str]:
    """Sizes of dimensions and shapes of inputs as ds-opt's options."""
    dims, shapes = _arguments.mapping("dims", dims), _arguments.mapping("shapes", shapes)
    for name, shape in shapes.items():
        if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
            raise InvalidArgumentError(f"shapes: '{name}': found {shape!r}, expected a list of sizes and names")
    for name, size in dims.items():
        if isinstance(size, bool):
            raise InvalidArgumentError(f"dims: '{name}': found {size}, expected a size or another dimension's name")
    return [f"--dim={name}={size}" for name, size in dims.items()] + \
           [f"--shape={name}={','.join(map(str, shape))}" for name, shape in shapes.items()]


@contextlib.contextmanager
def model_file(function: str, model: Source) -> Iterator[str]:
    """The path of a model, which is written to a temporary file where it has none yet."""
    if isinstance(model, (str, os.PathLike)):
        path = _arguments.path(f"{function}: model", model)
        # One that begins with a hyphen would be an option.
        yield path if os.path.isabs(path) else os.path.join(os.curdir, path) if path.startswith("-") else path
        return
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise InvalidArgumentError(f"{function}: model: found {type(model).__name__}, expected a path, bytes or an "
                                   "onnx.ModelProto")
    folder = tempfile.mkdtemp(prefix="deepstride-")
    try:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lines_of(text: str, *kinds: str) -> list[str]:
    return [line for line in text.splitlines() if any(f" {kind}: " in line for kind in kinds)]


def _message(text: str) -> str:
    """What is wrong, in one line: the first error, and the note that explains it where one follows."""
    lines = _lines_of(text, "error", "note") or [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "ds-opt failed and printed nothing"
    line = lines[0]
    for prefix in ("ds-opt: error: ", "ds-opt: "):
        line = line.removeprefix(prefix)
    if len(lines) > 1 and " note: " in lines[1]:
        line += "; " + lines[1].split(" note: ", 1)[1]
    return line


def _fail(done: _programs.Output) -> None:
    text = done.err.strip()
    message = _message(text)
    if done.code == 2:
        raise InvalidArgumentError(message)
    if done.code in _ENDED_BY_OTHERS:
        raise CompileError("ds-opt was ended from outside, before it was done: by Ctrl-C, or where memory ran out")
    if done.code != 1:
        error = InternalError(message if done.code > 0 else f"ds-opt was ended by signal {-done.code}")
        error.add_note(text)
        raise error
    problem = CompileError(message)
    problem.details = text
    if len(text.splitlines()) > 1:
        problem.add_note(text)
    raise problem


def compile(model: Source, package: str | os.PathLike[str], *, dims: Mapping[str, int] | None = None,  # noqa: A001
            shapes: Mapping[str, Sequence[int | str]] | None = None, **options: Unpack[CompileOptions]) -> str:
    """Compiles a model into a package and returns the package's path, for `load`.

    model: the path of an .onnx file, its bytes, or an onnx.ModelProto.
    package: the folder to write, whose name ends in .dsp.
    dims: sizes for dynamic dimensions, {"batch": 1}; others stay dynamic.
    shapes: shapes of inputs, {"x": ["batch", 3, 224, 224]}.
    options: those of ds-opt, with _ for -: precision="bf16", quantize="int8", no_cache=True. `deepstride.OPTIONS` lists
    them, and `ds-opt --help` says what they do.

    Raises CompileError where the model is refused, InvalidArgumentError for arguments, and warns by CompileWarning.
    """
    _programs.path_of("ds-opt")  # before anything about the arguments, which need its options
    arguments = size_arguments(dims, shapes) + option_arguments("compile", options)
    target = _arguments.path("compile: package", package)
    if not target.rstrip("/").endswith(".dsp"):
        raise InvalidArgumentError(f"compile: package: found '{target}', expected a name that ends in .dsp")
    with model_file("compile", model) as path:
        done = _programs.run("ds-opt", [path, "-o", target, *arguments])
    if done.code:
        _fail(done)
    for line in _lines_of(done.err, "warning"):
        warnings.warn(line, CompileWarning, stacklevel=2)
    if any(options.get(name) for name in _PRINTING):
        sys.stdout.write(done.out)
    return target


def check(model: Source, *, dims: Mapping[str, int] | None = None,
          shapes: Mapping[str, Sequence[int | str]] | None = None, **options: Unpack[CompileOptions]) -> CheckResult:
    """Says whether a model is supported, and else all that is not, without writing anything.

    The result is true where it is: `if not (found := deepstride.check("m.onnx")): print(found.problems)`.
    """
    _programs.path_of("ds-opt")
    arguments = size_arguments(dims, shapes) + option_arguments("check", options)
    with model_file("check", model) as path:
        if not os.path.exists(path):
            raise CompileError(f"{path}: no such file")
        done = _programs.run("ds-opt", [path, "--check", *arguments])
    if done.code not in (0, 1):
        _fail(done)
    return CheckResult(done.code == 0, _lines_of(done.out + done.err, "error", "note"), done.out + done.err)
