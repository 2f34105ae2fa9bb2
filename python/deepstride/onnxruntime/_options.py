"""Options of sessions and calls. What has a meaning here is used, what only tunes ONNX Runtime's own machinery is kept and
changes nothing, and what would change results or write files is refused by name."""
from __future__ import annotations

import enum
from typing import Any

from .._errors import InvalidArgumentError

CPU = "CPUExecutionProvider"
# Names that programs ask for: those of other processors are skipped with a warning, as ONNX Runtime does.
KNOWN_PROVIDERS = (CPU, "CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider",
                   "ROCMExecutionProvider", "MIGraphXExecutionProvider", "OpenVINOExecutionProvider",
                   "DnnlExecutionProvider", "DmlExecutionProvider", "CoreMLExecutionProvider", "QNNExecutionProvider",
                   "XnnpackExecutionProvider", "NnapiExecutionProvider", "WebGpuExecutionProvider",
                   "WebNNExecutionProvider", "VitisAIExecutionProvider", "CANNExecutionProvider",
                   "AzureExecutionProvider", "ACLExecutionProvider", "ArmNNExecutionProvider", "JsExecutionProvider",
                   "RknpuExecutionProvider", "TvmExecutionProvider", "VSINPUExecutionProvider")


class GraphOptimizationLevel(enum.IntEnum):
    """How much ONNX Runtime rewrites a graph; Deepstride always compiles all of it."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether nodes run beside each other; Deepstride's kernels run one after the other, on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """The order of nodes, which the compiler chooses here."""

    DEFAULT = 0
    PRIORITY_BASED = 1


class SessionOptions:
    """What ONNX Runtime's class of this name has. `intra_op_num_threads` and sizes of dimensions are used; options of
    ds-opt go by `add_session_config_entry("deepstride.precision", "bf16")`."""

    __slots__ = ("_dims", "_entries", "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse",
                 "enable_profiling", "execution_mode", "execution_order", "graph_optimization_level",
                 "inter_op_num_threads", "intra_op_num_threads", "log_severity_level", "log_verbosity_level", "logid",
                 "optimized_model_filepath", "profile_file_prefix", "use_deterministic_compute",
                 "use_per_session_threads")

    def __init__(self) -> None:
        self._dims: dict[str, int] = {}
        self._entries: dict[str, str] = {}
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes the size of a dimension, as `dims` of deepstride.compile."""
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise InvalidArgumentError(f"dimension '{name}': found {size!r}, expected a number of at least 0")
        self._dims[name] = size

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Refused: dimensions go by name."""
        raise InvalidArgumentError(f"dimensions by denotation are not supported, found '{denotation}'; expected "
                                   "add_free_dimension_override_by_name")

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keys that begin with "deepstride." are options of ds-opt; others are kept, and change nothing."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The value of a key that was added."""
        if key not in self._entries:
            raise InvalidArgumentError(f"SessionOptions has no configuration with key '{key}'")
        return self._entries[key]

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: operators are compiled."""
        raise InvalidArgumentError(f"libraries of custom operators are not supported, found '{path}'")

    def add_initializer(self, name: str, value: Any) -> None:
        """Refused: weights are compiled."""
        raise InvalidArgumentError(f"initializers from outside the model are not supported, found '{name}'")

    def add_external_initializers(self, names: list[str], values: list[Any]) -> None:
        """Refused: weights are compiled."""
        raise InvalidArgumentError(f"initializers from outside the model are not supported, found {names}")


def check_options(options: SessionOptions) -> None:
    """Refuses what a session cannot do."""
    if options.enable_profiling:
        raise InvalidArgumentError("enable_profiling is not supported: ds-run profile measures a package")
    if options.optimized_model_filepath:
        raise InvalidArgumentError("optimized_model_filepath is not supported: models are compiled, found "
                                   f"'{options.optimized_model_filepath}'")
    threads = options.intra_op_num_threads
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise InvalidArgumentError(f"intra_op_num_threads: found {threads!r}, expected a number; 0 or less for all")


def compile_options(options: SessionOptions) -> dict[str, Any]:
    """The options of ds-opt among the entries."""
    prefix = "deepstride."
    texts = {"true": True, "false": False}
    return {key[len(prefix):]: texts.get(value, value) for key, value in options._entries.items()
            if key.startswith(prefix)}


class RunOptions:
    """Options of a call: `terminate` ends it before it begins; the others are kept, and change nothing."""

    __slots__ = ("_entries", "log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches",
                 "terminate", "training_mode")

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self.training_mode = False

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Kept for `get_run_config_entry`."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The value of a key that was added."""
        if key not in self._entries:
            raise InvalidArgumentError(f"RunOptions has no configuration with key '{key}'")
        return self._entries[key]


def get_available_providers() -> list[str]:
    """What sessions can run on."""
    return [CPU]


def get_all_providers() -> list[str]:
    """Names that `providers` may hold."""
    return list(KNOWN_PROVIDERS)


def get_device() -> str:
    """The kind of processor that is used."""
    return "CPU"


def _check_level(what: str, level: int, most: int) -> None:
    if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= most:
        raise InvalidArgumentError(f"{what}: found {level!r}, expected 0 to {most}")


def set_default_logger_severity(severity: int) -> None:
    """Checked only: Deepstride logs nothing."""
    _check_level("severity", severity, 4)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Checked only: Deepstride logs nothing."""
    _check_level("verbosity", verbosity, 2**31 - 1)


def disable_telemetry_events() -> None:
    """Deepstride sends none."""


def enable_telemetry_events() -> None:
    """Deepstride sends none."""
