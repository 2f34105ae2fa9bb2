"""Exceptions: one class for each code of the C API that a program may want to tell apart. All have a one-line message."""


class Error(RuntimeError):
    """Whatever Deepstride refuses or fails to do. `code` is the number that the C API has for it, 0 for the compiler's."""

    code = 0


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
