"""Arguments of the wrong kind, refused before the extension module would, which knows only C++ types."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ._errors import InvalidArgumentError


def text(what: str, value: Any) -> str:
    """A text that the runtime takes: a name, or a path."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{what}: found {value!r}, expected text")
    if "\0" in value:
        raise InvalidArgumentError(f"{what}: found {value!r}, expected text without zeros")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{what}: found {value!r}, expected text that UTF-8 can hold") from None
    return value


def path(what: str, value: Any) -> str:
    """A path: text, or a pathlib.Path."""
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise InvalidArgumentError(f"{what}: found {_short(value)}, expected a path: text, or a pathlib.Path")
    return text(what, found)


def mapping(what: str, value: Any) -> Mapping[Any, Any]:
    """A dictionary; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{what}: found {value!r}, expected a dictionary")
    return value


def threads(value: Any) -> int:
    """How many threads, for the runtime: 0 for None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidArgumentError(f"threads: found {value!r}, expected a number of at least 1, or None for all")
    return min(value or 0, 2**32 - 1)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{type(value).__name__} ({shown[:60]}...)"
