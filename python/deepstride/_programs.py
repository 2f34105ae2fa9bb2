"""The programs that travel in the wheel: where they are, and how they are run."""
from __future__ import annotations

import os
import signal
import subprocess
import threading
from types import FrameType
from typing import NamedTuple

from ._errors import Error, InvalidArgumentError

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
_SECONDS_TO_CLEAN_UP = 10


class Output(NamedTuple):
    """What a program left: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def path_of(name: str) -> str:
    """The path of a program of this wheel."""
    path = os.path.join(_FOLDER, name)
    if not os.path.exists(path):
        raise Error(f"{name} is not in the package deepstride-runtime, which only runs models; to compile them, "
                    "install deepstride in its place: pip uninstall deepstride-runtime, pip install deepstride")
    return path


def run(name: str, arguments: list[str]) -> Output:
    """Runs a program to its end. What interrupts the wait, such as Ctrl-C, ends the program, which then cleans up."""
    command = [path_of(name), *arguments]
    for argument in arguments:
        if "\0" in argument:
            raise InvalidArgumentError(f"{name}: found {argument!r}, expected arguments without zeros")
    held = _HeldInterrupt()
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except BaseException:
        held.release()
        raise
    with child:
        try:
            held.release()
            out, err = child.communicate()
        except BaseException:
            _end(child)
            raise
    return Output(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


class _HeldInterrupt:
    """Keeps Ctrl-C until it is released: inside of Popen it would leave a program that nobody knows."""

    def __init__(self) -> None:
        self.frames: list[FrameType | None] = []
        self.handler = signal.getsignal(signal.SIGINT)
        # Only the main thread gets it; and what is no handler of Python's has no KeyboardInterrupt.
        self.is_held = callable(self.handler) and threading.current_thread() is threading.main_thread()
        if self.is_held:
            signal.signal(signal.SIGINT, lambda number, frame: self.frames.append(frame))

    def release(self) -> None:
        if self.is_held:
            signal.signal(signal.SIGINT, self.handler)
            if self.frames and callable(self.handler):
                self.handler(signal.SIGINT, self.frames[0])


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        child.wait(_SECONDS_TO_CLEAN_UP)
    except BaseException as reason:  # too slow, or interrupted once more
        child.kill()
        child.wait()
        if not isinstance(reason, subprocess.TimeoutExpired):
            raise
