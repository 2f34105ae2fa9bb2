"""ONNX Runtime's exceptions by their names; each is also one of Deepstride's."""
from ..._errors import BadFileError, CompileError, Error, ExecutionError, InvalidArgumentError


class Fail(Error):
    """Whatever has no name of its own."""


class InvalidArgument(InvalidArgumentError):
    """Inputs, outputs or options that do not fit the model."""


class NoSuchFile(BadFileError):
    """A model that is not there."""


class NotImplemented(CompileError):  # noqa: A001
    """A model that the compiler refuses."""


class RuntimeException(ExecutionError):
    """A call that failed while it computed."""


def of_error(error: Error) -> Error:
    """The exception that ONNX Runtime's users expect for one of ours."""
    kind: type[Error]
    if isinstance(error, CompileError):
        kind = NotImplemented
    elif error.code in (1, 2, 6):
        kind = InvalidArgument
    elif error.code == 7:
        kind = RuntimeException
    elif type(error) is Error:
        kind = Fail
    else:
        return error
    found = kind(str(error))
    found.code = error.code
    if isinstance(error, CompileError) and isinstance(found, CompileError):
        found.details = error.details
    return found
