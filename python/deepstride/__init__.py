"""Deepstride compiles ONNX models to machine code and runs them.

    import deepstride
    deepstride.compile("m.onnx", "m.dsp", dims={"batch": 1})
    m = deepstride.load("m.dsp")
    y = m(ids=array)

The names of ONNX Runtime's API are here, too, over the same: `import deepstride as onnxruntime`.
"""
from ._arrays import empty
from ._compile import CheckResult, check, compile  # noqa: A004
from ._core import runtime_version as _runtime_version
from ._errors import (BadFileError, BadPackageError, BadStateError, CollectiveError, CompileError, CompileWarning,
                      Error, ExecutionError, InternalError, InvalidArgumentError, IoError, OutOfMemoryError,
                      ShapeMismatchError, UnboundDimensionError, UnsupportedCpuError)
from ._inference import init_inference
from ._model import Model, TensorInfo, load
from ._options import OPTIONS
from ._training import Evaluation, Loss, StepRecord, TrainingEngine, initialize

__version__ = _runtime_version()

from . import onnxruntime  # noqa: E402
from .onnxruntime import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, InferenceSession,  # noqa: E402
                          IOBinding, ModelMetadata, NodeArg, OrtDevice, OrtValue, RunOptions, SessionOptions, capi,
                          disable_telemetry_events, enable_telemetry_events, get_all_providers,
                          get_available_providers, get_device, set_default_logger_severity,
                          set_default_logger_verbosity)

__all__ = ["Evaluation", "Loss", "StepRecord", "TrainingEngine", "init_inference", "initialize", "BadFileError", "BadPackageError", "BadStateError", "CheckResult", "CollectiveError", "CompileError",
           "CompileWarning", "Error", "ExecutionError", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel",
           "IOBinding", "InferenceSession", "InternalError", "InvalidArgumentError", "IoError", "Model",
           "ModelMetadata", "NodeArg", "OPTIONS", "OrtDevice", "OrtValue", "OutOfMemoryError", "RunOptions", "SessionOptions",
           "ShapeMismatchError", "TensorInfo", "UnboundDimensionError", "UnsupportedCpuError", "capi", "check",
           "compile", "disable_telemetry_events", "empty", "enable_telemetry_events", "get_all_providers",
           "get_available_providers", "get_device", "load", "onnxruntime", "set_default_logger_severity",
           "set_default_logger_verbosity"]
