"""What an ONNX file says about itself: names, declared shapes and metadata, without reading its weights; and the file
without some of its initializers, whose inputs then must be given."""
from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ._errors import BadFileError


class Declared(NamedTuple):
    """An input or output as the file declares it; a size is a number, a name, or None where the file says nothing."""

    name: str
    shape: list[int | str | None] | None
    element: int = 0
    """ONNX's number of the type of its elements; 0 where the file says nothing."""


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
    ir_version: int = 0
    initializers: list[str] = []
    has_external_data: bool = False

    def overridable(self) -> list[Declared]:
        """Inputs that have an initializer, which a call may replace; up to IR version 3 initializers had to be inputs."""
        names = set(self.initializers) if self.ir_version >= 4 else set()
        return [one for one in self.inputs if one.name in names]


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
    return ((number, begin, to) for _, number, begin, to in _spans(data, at, end))


def _spans(data: Any, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """`_fields`, each with the place of its tag before."""
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at, end)
            yield start, tag >> 3, value, -1
            continue
        size, at = _varint(data, at, end) if kind == 2 else ({1: 8, 5: 4}.get(kind, end), at)
        if size > end - at:
            raise BadFileError("not an ONNX model: a field is longer than what it is in")
        yield start, tag >> 3, at, at + size
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
    name, shape, element = "", None, 0
    for number, at, to in _fields(data, begin, end):
        if number == 1:
            name = _text(data, at, to)
        elif number == 2 and to >= 0:
            for tensor in _within(data, at, to, 1):
                element = next((value for field, value, end in _fields(data, *tensor) if field == 1 and end < 0), 0)
                for sizes in _within(data, *tensor, 2):
                    shape = [_size(data, *size) for size in _within(data, *sizes, 1)]
    return Declared(name, shape, element)


def _entry(data: Any, begin: int, end: int) -> tuple[str, str]:
    texts = {number: _text(data, at, to) for number, at, to in _fields(data, begin, end)}
    return texts.get(1, ""), texts.get(2, "")


def _facts(data: Any) -> ModelFacts:
    found: dict[str, Any] = {"metadata": {}, "inputs": [], "outputs": [], "initializers": []}
    texts = {2: "producer_name", 4: "domain", 6: "description"}
    graph_texts = {2: "graph_name", 10: "graph_description"}
    for number, at, to in _fields(data, 0, len(data)):
        if number in texts:
            found[texts[number]] = _text(data, at, to)
        elif number in (1, 5) and to < 0:
            found["ir_version" if number == 1 else "version"] = _signed(at)
        elif number == 14 and to >= 0:
            key, value = _entry(data, at, to)
            found["metadata"][key] = value
        elif number == 7 and to >= 0:
            for inner, begin, end in _fields(data, at, to):
                if inner in graph_texts:
                    found[graph_texts[inner]] = _text(data, begin, end)
                elif inner in (11, 12) and end >= 0:
                    found["inputs" if inner == 11 else "outputs"].append(_declared(data, begin, end))
                elif inner == 5 and end >= 0:
                    name, is_external = _stored(data, begin, end)
                    found["initializers"].append(name)
                    found["has_external_data"] = found.get("has_external_data", False) or is_external
    return ModelFacts(**found)


def _stored(data: Any, begin: int, end: int) -> tuple[str, bool]:
    """The name of a tensor, and whether it lies in a file of its own."""
    name, is_external = "", False
    for number, at, to in _fields(data, begin, end):
        if number == 8:
            name = _text(data, at, to)
        elif number == 14 and to < 0:
            is_external = at == 1
    return name, is_external


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes(found) + bytes([value])


def without_initializers(data: Any, names: Collection[str]) -> bytes:
    """A model's bytes without the initializers of these names: their inputs must be given."""
    parts, done = [], 0
    for place, number, at, to in _spans(data, 0, len(data)):
        if number != 7 or to < 0:
            continue
        kept, begin = [], at
        for start, inner, tensor, end in _spans(data, at, to):
            if inner == 5 and end >= 0 and _stored(data, tensor, end)[0] in names:
                kept.append(data[begin:start])
                begin = end
        graph = b"".join([*kept, data[begin:to]])
        parts += [data[done:place], _number(7 << 3 | 2), _number(len(graph)), graph]
        done = to
    return b"".join([*parts, data[done:]])


def read_facts(model: str | os.PathLike[str] | bytes) -> ModelFacts:
    """Reads what an ONNX file, or its bytes, say about themselves."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _facts(model)
    with open(model, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return ModelFacts()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _facts(data)
