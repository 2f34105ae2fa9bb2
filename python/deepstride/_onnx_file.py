"""What an ONNX file says about itself: names, declared shapes and metadata, without reading its weights."""
from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from ._errors import BadFileError


class Declared(NamedTuple):
    """An input or output as the file declares it; a size is a number, a name, or None where the file says nothing."""

    name: str
    shape: list[int | str | None] | None


class ModelFacts(NamedTuple):
    """The parts of a ModelProto around its nodes and weights."""

    producer_name: str = ""
    domain: str = ""
    version: int = 0
    description: str = ""
    graph_name: str = ""
    graph_description: str = ""
    metadata: dict[str, str] = {}
    inputs: list[Declared] = []
    outputs: list[Declared] = []


def _varint(data: Any, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise BadFileError("not an ONNX model: a number ends too late")


def _fields(data: Any, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, begin, end) of each field of a message; for an integer, its value stands in place of `begin`."""
    while at < end:
        tag, at = _varint(data, at, end)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at, end)
            yield tag >> 3, value, -1
            continue
        size, at = _varint(data, at, end) if kind == 2 else ({1: 8, 5: 4}.get(kind, end), at)
        if size > end - at:
            raise BadFileError("not an ONNX model: a field is longer than what it is in")
        yield tag >> 3, at, at + size
        at += size


def _text(data: Any, begin: int, end: int) -> str:
    return bytes(data[begin:end]).decode(errors="replace") if end >= 0 else ""


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _size(data: Any, begin: int, end: int) -> int | str | None:
    for number, at, to in _fields(data, begin, end):
        if number == 1 and to < 0:
            return _signed(at)
        if number == 2 and to > at:
            return _text(data, at, to)
    return None


def _within(data: Any, begin: int, end: int, number: int) -> Iterator[tuple[int, int]]:
    return ((at, to) for found, at, to in _fields(data, begin, end) if found == number and to >= 0)


def _declared(data: Any, begin: int, end: int) -> Declared:
    name, shape = "", None
    for number, at, to in _fields(data, begin, end):
        if number == 1:
            name = _text(data, at, to)
        elif number == 2 and to >= 0:
            for tensor in _within(data, at, to, 1):
                for sizes in _within(data, *tensor, 2):
                    shape = [_size(data, *size) for size in _within(data, *sizes, 1)]
    return Declared(name, shape)


def _entry(data: Any, begin: int, end: int) -> tuple[str, str]:
    texts = {number: _text(data, at, to) for number, at, to in _fields(data, begin, end)}
    return texts.get(1, ""), texts.get(2, "")


def _facts(data: Any) -> ModelFacts:
    found: dict[str, Any] = {"metadata": {}, "inputs": [], "outputs": []}
    texts = {2: "producer_name", 4: "domain", 6: "description"}
    graph_texts = {2: "graph_name", 10: "graph_description"}
    for number, at, to in _fields(data, 0, len(data)):
        if number in texts:
            found[texts[number]] = _text(data, at, to)
        elif number == 5 and to < 0:
            found["version"] = _signed(at)
        elif number == 14 and to >= 0:
            key, value = _entry(data, at, to)
            found["metadata"][key] = value
        elif number == 7 and to >= 0:
            for inner, begin, end in _fields(data, at, to):
                if inner in graph_texts:
                    found[graph_texts[inner]] = _text(data, begin, end)
                elif inner in (11, 12) and end >= 0:
                    found["inputs" if inner == 11 else "outputs"].append(_declared(data, begin, end))
    return ModelFacts(**found)


def read_facts(model: str | os.PathLike[str] | bytes) -> ModelFacts:
    """Reads what an ONNX file, or its bytes, say about themselves."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _facts(model)
    with open(model, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return ModelFacts()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _facts(data)
