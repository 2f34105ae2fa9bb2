"""Arrays and element types: what NumPy has, what it lacks, and how what it lacks travels."""
from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import InvalidArgumentError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# Types of the runtime that NumPy has itself; integers narrower than a byte lie in bytes.
_NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
          "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "i1": np.bool_,
          "i4": np.int8, "u4": np.uint8, "i2": np.int8, "u2": np.uint8}
# Those that the package ml_dtypes adds, and the type of their bits.
_ML_DTYPES = {"bf16": ("bfloat16", np.uint16), "f8e4m3fn": ("float8_e4m3fn", np.uint8),
              "f8e4m3fnuz": ("float8_e4m3fnuz", np.uint8), "f8e5m2": ("float8_e5m2", np.uint8),
              "f8e5m2fnuz": ("float8_e5m2fnuz", np.uint8), "f8e8m0": ("float8_e8m0fnu", np.uint8),
              "f4e2m1": ("float4_e2m1fn", np.uint8)}
_TYPE_OF_ML_DTYPE = {name: (kind, bits) for kind, (name, bits) in _ML_DTYPES.items()}
# Of numbers that lie in a byte each.
_RANGES = {"i4": (-8, 7), "u4": (0, 15), "i2": (-2, 1), "u2": (0, 3)}
_NARROW = {"int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}


def dtype_of(kind: str) -> np.dtype[Any]:
    """The NumPy type for a type of the runtime, such as "f32"."""
    if kind in _NUMPY:
        return np.dtype(_NUMPY[kind])
    name, _ = _ML_DTYPES[kind]
    try:
        import ml_dtypes  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise InvalidArgumentError(f"NumPy has no type {kind}; install the package ml_dtypes, which adds it, or ask "
                                   "for arrays of DLPack: run(..., dlpack=True)") from None
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


ALIGNMENT = 64


def empty(shape: int | Sequence[int], dtype: DTypeLike = np.float32) -> np.ndarray[Any, Any]:
    """An array like numpy.empty's that lies at a multiple of 64 bytes, so that calls read it in place."""
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"dtype: found {dtype!r}, expected a type of NumPy's") from None
    if found.hasobject or found.itemsize == 0:
        raise InvalidArgumentError(f"dtype: found {dtype!r}, expected a type of elements that are in the array themselves")
    try:
        sizes = tuple(operator.index(size) for size in ((shape,) if isinstance(shape, (int, np.integer)) else shape))
    except TypeError:
        sizes = (-1,)
    if isinstance(shape, (bytes, Mapping)) or any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"shape: found {shape!r}, expected sizes of 0 or more")
    count = math.prod(sizes)
    memory = np.empty(count * found.itemsize + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin:begin + count * found.itemsize].view(found).reshape(sizes)


def prepare(name: str, value: Any, kind: str) -> tuple[Any, str | None]:
    """An input as the extension module takes it: an array, and its type where the array cannot tell it.

    Arrays go in as they are; numbers and lists, which have no type of their own, take that of the input.
    """
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
            if kind not in _RANGES:
                return value, None
            value = np.from_dlpack(value)
        if hasattr(value, "__array__") or isinstance(value, np.generic):
            value = np.asarray(value)
        else:
            value = _of_numbers(name, value, kind)
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidArgumentError(f"input '{name}': expected an array of {kind}, found one with a mask")
    value = np.asarray(value, order="C")
    if value.dtype.byteorder == ">":
        value = value.astype(value.dtype.newbyteorder("="))
    if value.dtype.name in _TYPE_OF_ML_DTYPE:
        kind_of_value, bits = _TYPE_OF_ML_DTYPE[value.dtype.name]
        return value.view(bits), kind_of_value
    if value.dtype.name in _NARROW:
        value = value.astype(_NARROW[value.dtype.name])
    if value.dtype.kind not in "fiub" or value.dtype.itemsize > 8:
        raise InvalidArgumentError(f"input '{name}': expected an array of {kind}, found one of {value.dtype.name}")
    if kind not in _RANGES or value.dtype.name not in ("int8", "uint8"):
        return value, None
    # Bytes may be the numbers of an input in 4 or 2 bits: the array cannot say so.
    _check_range(name, value, kind, *_RANGES[kind])
    return value.astype(_NUMPY[kind]), kind


def _check_range(name: str, value: np.ndarray[Any, Any], kind: str, least: int, most: int) -> None:
    for found in (value.min(), value.max()) if value.size else ():
        if not least <= int(found) <= most:
            raise InvalidArgumentError(f"input '{name}': found {found}, expected numbers of {kind}, {least} to {most}")


def _of_numbers(name: str, value: Any, kind: str) -> np.ndarray[Any, Any]:
    """Numbers and lists of them as an array of a type that holds each."""
    target = dtype_of(kind)
    try:
        found = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"input '{name}': expected an array of {kind}, found {type(value).__name__}: "
                                   f"{error}") from None
    is_whole = target.kind in "iub"
    if found.size and found.dtype.kind not in ("iub" if is_whole else "iubf"):
        kinds = "whole numbers" if is_whole else "numbers"
        raise InvalidArgumentError(f"input '{name}': expected {kinds} of {kind}, found {type(value).__name__} of "
                                   f"{found.dtype.name}")
    if is_whole and found.size:
        limits = (0, 1) if target.kind == "b" else (int(np.iinfo(target).min), int(np.iinfo(target).max))
        _check_range(name, found, kind, *limits)
    return found.astype(target)


def finish(array: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
    """An output as the user sees it: bits of a type that NumPy lacks get their type."""
    return array if kind in _NUMPY else array.view(dtype_of(kind))


def kind_of(dtype: np.dtype[Any]) -> str:
    """The runtime's type for one of NumPy's."""
    if dtype.name in _TYPE_OF_ML_DTYPE:
        return _TYPE_OF_ML_DTYPE[dtype.name][0]
    for kind, known in _NUMPY.items():
        if np.dtype(known) == dtype:
            return kind
    raise InvalidArgumentError(f"found elements of {dtype.name}, expected numbers")
