"""Packages: loading, inputs and outputs, calls."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _arguments, _arrays, _core
from ._errors import Error, InvalidArgumentError

_INPUTS, _OUTPUTS, _STATES = 0, 1, 2


class TensorInfo(NamedTuple):
    """An input, output or state as the package describes it."""

    name: str
    type: str
    """The type of its elements, such as "f32"."""
    shape: tuple[int | str, ...] | None
    """A size is a number, or an expression over dimensions such as "batch" or "past + 1"; None: the rank varies."""
    bound: int | None = None
    """Integers of an input must lie in [0, bound); None: any."""

    @property
    def dtype(self) -> np.dtype:
        """The type that NumPy has for it; bf16 and narrow floats need the package ml_dtypes."""
        return _arrays.dtype_of(self.type)


def _info(name: str, kind: str, shape: list[str] | None, bound: int) -> TensorInfo:
    sizes = None if shape is None else tuple(int(size) if size.isdigit() else size for size in shape)
    return TensorInfo(name, kind, sizes, bound or None)


class Model:
    """A loaded package: call it, or `run` it by names.

    Calls from several threads wait for each other, and let other threads of Python run. Arrays that a call returns are
    the caller's: later calls never change them. Input arrays that lie dense in memory at a multiple of 64 bytes are
    read in place, others are copied once.
    """

    def __init__(self, path: str | os.PathLike[str], *, threads: int | None = None,
                 dims: Mapping[str, int] | None = None, variant: str | None = None, verify: bool = True,
                 weights: str = "copied") -> None:
        self.path = _arguments.path("path of the package", path)
        sizes = _arguments.mapping("dims", dims)
        if not isinstance(verify, bool):
            raise InvalidArgumentError(f"verify: found {verify!r}, expected True or False")
        if weights not in ("copied", "mapped"):
            raise InvalidArgumentError(f"weights: found {weights!r}, expected 'copied' or 'mapped'")
        count = _arguments.threads(threads)
        self._package = _core.Package(self.path, verify, None if variant is None else _arguments.text("variant", variant),
                                      weights == "mapped")
        self._session = _core.Session(self._package, count)
        self._process = os.getpid()
        self._entries = self._package.entries
        self._tensors = [[[_info(*found) for found in self._package.tensors(entry, kind)]
                          for kind in (_INPUTS, _OUTPUTS, _STATES)] for entry in range(len(self._entries))]
        for name, size in sizes.items():
            self.pin(name, size)

    def __repr__(self) -> str:
        return f"<deepstride.Model {self.path!r}: {', '.join(map(_text, self.inputs))} -> " \
               f"{', '.join(map(_text, self.outputs))}>"

    @property
    def entries(self) -> list[str]:
        """Names of what can be called; the first is what a call runs that names none."""
        return list(self._entries)

    @property
    def inputs(self) -> list[TensorInfo]:
        """Inputs of the first entry, in its order."""
        return list(self._tensors[0][_INPUTS])

    @property
    def outputs(self) -> list[TensorInfo]:
        """Outputs of the first entry, in its order."""
        return list(self._tensors[0][_OUTPUTS])

    @property
    def states(self) -> list[TensorInfo]:
        """Tensors that the package keeps from call to call."""
        return list(self._tensors[0][_STATES])

    def signature(self, entry: str | None = None) -> tuple[list[TensorInfo], list[TensorInfo]]:
        """Inputs and outputs of an entry."""
        inputs, outputs, _ = self._tensors[self._entry(entry)]
        return list(inputs), list(outputs)

    @property
    def variants(self) -> list[str]:
        """CPUs that the package has code for."""
        return self._package.variants

    @property
    def variant(self) -> str:
        """The one of `variants` that runs here."""
        return self._package.variant

    def pin(self, dimension: str, size: int) -> None:
        """Gives a dimension its size for all later calls; only those need it that no input's shape gives."""
        _arguments.text("dimension", dimension)
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 0 <= size < 2**63:
            raise InvalidArgumentError(f"dimension '{dimension}': found {size!r}, expected a number of at least 0")
        self._session.pin(dimension, int(size))

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], *, outputs: Sequence[str] | None = None,
            entry: str | None = None, dlpack: bool = False) -> dict[str, Any]:
        """Runs an entry and returns its outputs by name.

        inputs: arrays by name, or in the order of the package: NumPy's, or any that know DLPack, in memory of the CPU.
        outputs: names of those to return; None: all.
        entry: the name of what to run; None: the first.
        dlpack: return objects for `from_dlpack` of any library instead of NumPy's arrays.
        """
        if os.getpid() != self._process:
            raise Error(f"{self.path}: the model was loaded before this process was forked, and has no threads here; load "
                        "it in each process, or start processes by spawn")
        at = self._entry(entry)
        known, results, _ = self._tensors[at]
        if not isinstance(inputs, Mapping):
            inputs = self._by_position(inputs, known)
        if outputs is not None and (isinstance(outputs, (str, bytes)) or not isinstance(outputs, Iterable)):
            raise InvalidArgumentError(f"outputs: found {outputs!r}, expected a list of names")
        wanted = [result.name for result in results] if outputs is None else list(outputs)
        legal = {result.name for result in results}
        for name in wanted:
            if name not in legal:
                raise InvalidArgumentError(f"no output '{name}', expected one of {_names(results)}")
        kinds = {info.name: info.type for info in known}
        for name in inputs:
            if name not in kinds:
                raise InvalidArgumentError(f"no input '{name}', expected {_names(known)}")
        missing = [info for info in known if info.name not in inputs]
        if missing:
            raise InvalidArgumentError(f"input {_names(missing)} is missing, expected {_names(known)}")
        prepared = [_arrays.prepare(name, inputs[name], kinds[name]) for name in kinds]
        arrays = self._session.run(at, list(kinds), [array for array, _ in prepared], [kind for _, kind in prepared],
                                   not dlpack)
        by_name = {result.name: (array, result.type) for result, array in zip(results, arrays)}
        if dlpack:
            return {name: by_name[name][0] for name in wanted}
        return {name: _arrays.finish(*by_name[name]) for name in wanted}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Runs the first entry: inputs by position or name; returns the output, or a tuple where there are several."""
        if arguments:
            given = self._by_position(arguments, self._tensors[0][_INPUTS])
            twice = [name for name in named if name in given]
            if twice:
                raise InvalidArgumentError(f"input '{twice[0]}' is given twice")
            named = {**given, **named}
        results = tuple(self.run(named).values())
        return results[0] if len(results) == 1 else results

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Writes all states as an .npz, complete under its name or not there at all."""
        self._session.save_states(_arguments.path("path of the states", path))

    def restore_states(self, path: str | os.PathLike[str]) -> None:
        """Reads states from an .npz; those that it lacks keep their values."""
        self._session.restore_states(_arguments.path("path of the states", path))

    def reset_states(self) -> None:
        """All states back to their initial values."""
        self._session.reset_states()

    def _entry(self, name: str | None) -> int:
        if name is None:
            return 0
        if name not in self._entries:
            raise InvalidArgumentError(f"no entry '{name}', expected one of {', '.join(map(repr, self._entries))}")
        return self._entries.index(name)

    @staticmethod
    def _by_position(arrays: Sequence[Any], known: list[TensorInfo]) -> dict[str, Any]:
        if isinstance(arrays, (str, bytes)) or not isinstance(arrays, Sequence):
            raise InvalidArgumentError(f"inputs: found {type(arrays).__name__}, expected arrays by name, or a list in "
                                       f"the order {_names(known)}")
        if len(arrays) > len(known):
            raise InvalidArgumentError(f"found {len(arrays)} inputs, expected {len(known)}: {_names(known)}")
        return {info.name: array for info, array in zip(known, arrays)}


def _names(infos: Sequence[TensorInfo]) -> str:
    return ", ".join(f"'{info.name}'" for info in infos) or "none"


def _text(info: TensorInfo) -> str:
    sizes = "of any rank" if info.shape is None else "[" + ", ".join(map(str, info.shape)) + "]"
    return f"{info.name}: {info.type}{sizes}"


def load(path: str | os.PathLike[str], *, threads: int | None = None, dims: Mapping[str, int] | None = None,
         variant: str | None = None, verify: bool = True, weights: str = "copied") -> Model:
    """Loads a package that `compile` wrote.

    threads: how many compute; None: DS_NUM_THREADS, else as many as there are processors.
    dims: sizes of dimensions that no input's shape gives.
    variant: one of the package's variants by name; None: the best that this processor can run.
    verify: compare the checksums of all bytes first.
    weights: "copied" to huge pages, which calls read faster, if half of the memory that is available has room; "mapped":
        read from the file, whose pages processes share.
    """
    return Model(path, threads=threads, dims=dims, variant=variant, verify=verify, weights=weights)
