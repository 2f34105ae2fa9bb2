"""ONNX Runtime's Python API over Deepstride: `import deepstride.onnxruntime as ort`, or `import deepstride as ort`."""
from . import capi  # noqa: F401
from ._options import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions,
                       disable_telemetry_events, enable_telemetry_events, get_all_providers, get_available_providers,
                       get_device, set_default_logger_severity, set_default_logger_verbosity)
from ._session import InferenceSession, IOBinding, ModelMetadata, NodeArg
from ._values import OrtDevice, OrtValue
from .. import __version__ as __version__

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
           "ModelMetadata", "NodeArg", "OrtDevice", "OrtValue", "RunOptions", "SessionOptions", "capi", "disable_telemetry_events",
           "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_device",
           "set_default_logger_severity", "set_default_logger_verbosity"]
