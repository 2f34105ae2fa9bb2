"""Exceptions: one class for each code of the C API that a program may want to tell apart. All have a one-line message."""
import re

# What ends or hides a line: controls, ends of lines and paragraphs, directions, and halves of what is no UTF-8.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(message: str) -> str:
    """A message whose names break no line, as the runtime and the tools have it."""
    def bytes_of(found: "re.Match[str]") -> str:
        halves = "surrogateescape" if "\udc80" <= found[0] <= "\udcff" else "surrogatepass"
        return "".join(f"\\x{byte:02x}" for byte in found[0].encode("utf-8", halves))
    return _UNSEEN.sub(bytes_of, message)


class Error(RuntimeError):
    """Whatever Deepstride refuses or fails to do. `code` is the number that the C API has for it, 0 for the compiler's."""

    code = 0

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class InvalidArgumentError(Error, ValueError):
    """An argument that names nothing or has no meaning: inputs, entries, dimensions, options."""

    code = 1


class UnboundDimensionError(Error, ValueError):
    """A dimension that no input's shape gives, and that is not among `dims`."""

    code = 2


class BadFileError(Error):
    """A damaged or truncated file."""

    code = 3


class BadPackageError(Error):
    """A package that breaks its format or its checksums."""

    code = 4


class UnsupportedCpuError(Error):
    """No variant of the package fits this processor; the message names what it lacks."""

    code = 5


class ShapeMismatchError(Error, ValueError):
    """Inputs whose type or shape does not fit the signature."""

    code = 6


class ExecutionError(Error):
    """Compiled code reported an error; the message names kernel and ONNX node."""

    code = 7


class CollectiveError(Error):
    """A rank is missing, failed or disagrees."""

    code = 8


class OutOfMemoryError(Error, MemoryError):
    """Memory that is not there."""

    code = 9


class IoError(Error, OSError):
    """A file or folder that cannot be read or written."""

    code = 10


class InternalError(Error):
    """A bug of Deepstride, not of the program that uses it."""

    code = 11


class BadStateError(Error):
    """A state that a failed call may have left half written; restore or reset it."""

    code = 12


class CompileError(Error):
    """A model that the compiler refuses. `details` has all that it printed, where there is more than one line."""

    details = ""


class CompileWarning(UserWarning):
    """What the compiler warns of while it compiles."""


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__() if kind.code}


def of_status(code: int, message: str) -> Error:
    """The exception for a status of the C API."""
    error = _BY_CODE.get(code, Error)(message)
    error.code = code
    return error
