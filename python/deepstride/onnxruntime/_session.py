"""InferenceSession: compiles a model, or takes the package from ds-opt's cache, and runs it."""
from __future__ import annotations

import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _compile
from .._errors import Error, InvalidArgumentError
from .._model import Model, TensorInfo
from .._onnx_file import Declared, ModelFacts, read_facts, without_initializers
from ._options import CPU, KNOWN_PROVIDERS, RunOptions, SessionOptions, check_options, compile_options
from ._values import OrtDevice, OrtValue, array_at, check_device, kind_of_number, type_text
from .capi import onnxruntime_pybind11_state as errors


class NodeArg:
    """An input or output."""

    def __init__(self, name: str, kind: str, shape: list[int | str | None]) -> None:
        self.name, self.type, self.shape = name, kind, shape

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What a model says about itself."""

    def __init__(self, facts: ModelFacts) -> None:
        self.producer_name = facts.producer_name
        self.graph_name = facts.graph_name
        self.domain = facts.domain
        self.description = facts.description
        self.graph_description = facts.graph_description
        self.version = facts.version
        self.custom_metadata_map = dict(facts.metadata)


def _node_arg(info: TensorInfo, declared: Mapping[str, Declared]) -> NodeArg:
    """Sizes that are fixed are numbers; others are called what the file calls them, None where it does not."""
    shape: list[int | str | None] = list(info.shape or [])
    said = declared[info.name].shape if info.name in declared else None
    if said is not None and len(said) == len(shape):
        shape = [size if isinstance(size, int) else name if not isinstance(name, int) else size
                 for size, name in zip(shape, said)]
    return NodeArg(info.name, type_text(info.type), shape)


def _check_providers(providers: Sequence[Any] | None) -> None:
    names = [entry if isinstance(entry, str) else entry[0] for entry in providers or [CPU]]
    for name in names:
        if name not in KNOWN_PROVIDERS:
            raise ValueError(f"providers: found '{name}', expected one of {', '.join(KNOWN_PROVIDERS)}")
    skipped = [name for name in names if name != CPU]
    if skipped:
        warnings.warn(f"providers {', '.join(skipped)} are not available; {CPU} is used", stacklevel=3)


def _threads(options: SessionOptions) -> int | None:
    """All processors for 0 and for less, as ONNX Runtime has it."""
    return options.intra_op_num_threads if options.intra_op_num_threads > 0 else None


def _load(model: Any, options: SessionOptions) -> tuple[Model, ModelFacts]:
    """Compiles into a folder that goes again once the package is mapped: ds-opt's cache keeps what it compiled."""
    threads = _threads(options)
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if not os.path.exists(path):
            raise errors.NoSuchFile(f"{path}: no such file")
        if os.path.isdir(path):  # a package is compiled already
            return Model(path, threads=threads, dims=options._dims), ModelFacts()
        if not path.endswith(".onnx"):
            with open(path, "rb") as file:
                model = file.read()
    folder = tempfile.mkdtemp(prefix="deepstride-")
    try:
        package = os.path.join(folder, "session.dsp")
        _compile.compile(model, package, dims=options._dims, **compile_options(options))
        return Model(package, threads=threads), read_facts(model)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class InferenceSession:
    """ONNX Runtime's class of this name: a model, ready to run.

    path_or_bytes: an .onnx file, its bytes, or a package of deepstride.compile.
    providers: names in the order of preference; all but CPUExecutionProvider are skipped with a warning.
    """

    def __init__(self, path_or_bytes: str | bytes | os.PathLike[str], sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None, provider_options: Sequence[dict[str, Any]] | None = None,
                 **kwargs: Any) -> None:
        for name in kwargs:
            if name not in ("disabled_optimizers", "enable_fallback"):  # these tune ONNX Runtime's own machinery
                raise InvalidArgumentError(f"InferenceSession: no argument '{name}', expected sess_options, "
                                           "providers, provider_options, disabled_optimizers or enable_fallback")
        self._options = sess_options if sess_options is not None else SessionOptions()
        _check_providers(providers)
        check_options(self._options)
        try:
            self._model, facts = _load(path_or_bytes, self._options)
        except Error as error:
            raise errors.of_error(error) from None
        self._source = path_or_bytes
        self._overridable = {one.name: one for one in facts.overridable()} if not facts.has_external_data else {}
        if self._overridable and isinstance(path_or_bytes, (str, os.PathLike)):  # the file may be another one by then
            with open(path_or_bytes, "rb") as file:
                self._source = file.read()
        self._overriding: dict[frozenset[str], Model] = {}
        self._metadata = ModelMetadata(facts)
        self._inputs = [_node_arg(info, {one.name: one for one in facts.inputs}) for info in self._model.inputs]
        self._outputs = [_node_arg(info, {one.name: one for one in facts.outputs}) for info in self._model.outputs]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[np.ndarray]:
        """Runs the model and returns outputs in the order of the names; None or no names: all."""
        if run_options is not None and run_options.terminate:
            raise errors.Fail("run_options.terminate is set, so the call does not begin")
        missing = [one.name for one in self._inputs if one.name not in input_feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        feed = {name: value.numpy() if isinstance(value, OrtValue) else value for name, value in input_feed.items()}
        wanted = list(output_names) if output_names else [one.name for one in self._outputs]
        try:
            found = self._model_for(feed).run(feed, outputs=wanted)
        except Error as error:
            raise errors.of_error(error) from None
        return [found[name] for name in wanted]

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """`run` with values in and out."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[list[np.ndarray], Any, str], None], user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        """`run` in a thread of its own, which then calls callback(results, user_data, message); no message: it worked."""
        def call() -> None:
            try:
                results, message = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                results, message = [], str(error)
            callback(results, user_data, message)

        threading.Thread(target=call).start()

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that are bound once, for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model on what is bound."""
        iobinding._run(run_options)

    def get_inputs(self) -> list[NodeArg]:
        """Inputs, in the order of the model."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Outputs, in the order of the model."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs that have an initializer: a call may give them, else the initializer is used. The first call that gives
        some compiles a program for it, since weights are compiled."""
        return [NodeArg(one.name, type_text(kind_of_number(one.element)), list(one.shape or []))
                for one in self._overridable.values() if kind_of_number(one.element)]

    def _model_for(self, feed: Mapping[str, Any]) -> Model:
        """The model that takes what a call gives."""
        given = frozenset(name for name in feed if name in self._overridable)
        if not given:
            return self._model
        if given not in self._overriding:
            self._overriding[given], _ = _load(without_initializers(self._source, given), self._options)
        return self._overriding[given]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself."""
        return self._metadata

    def get_session_options(self) -> SessionOptions:
        """The options that the session has."""
        return self._options

    def get_providers(self) -> list[str]:
        """What the session runs on."""
        return [CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The CPU has none."""
        return {CPU: {}}

    def set_providers(self, providers: Sequence[Any] | None = None,
                      provider_options: Sequence[dict[str, Any]] | None = None) -> None:
        """Checks the names; the session goes on on the CPU."""
        _check_providers(providers)

    def enable_fallback(self) -> None:
        """There is one provider, which is never left for another."""

    def disable_fallback(self) -> None:
        """There is one provider, which is never left for another."""

    def end_profiling(self) -> str:
        """Refused: see ds-run profile."""
        raise InvalidArgumentError("end_profiling: no profiling was begun; ds-run profile measures a package")


class IOBinding:
    """Arrays and memory that calls of a session read and write."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, np.ndarray | None] = {}  # by name: memory to write, or None for new memory
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """An array as an input; it is read at each call."""
        self._inputs[self._known(name, [*self._session.get_inputs(), *self._session.get_overridable_initializers()])] = arr_on_cpu

    def bind_input(self, name: str, device_type: str | OrtDevice, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Memory as an input; it is read at each call and stays the caller's."""
        check_device(device_type, device_id)
        known = self._known(name, [*self._session.get_inputs(), *self._session.get_overridable_initializers()])
        self._inputs[known] = array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """A value as an input."""
        self.bind_cpu_input(name, ortvalue.numpy())

    def bind_output(self, name: str, device_type: str | OrtDevice = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Asks for an output: in memory that is given, else in new memory at each call."""
        check_device(device_type, device_id)
        memory = None
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise InvalidArgumentError(f"output '{name}': a buffer_ptr needs an element_type and a shape")
            memory = array_at(buffer_ptr, element_type, shape)
        self._outputs[self._known(name, self._session.get_outputs())] = memory

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """A value that calls write an output into."""
        self._outputs[self._known(name, self._session.get_outputs())] = ortvalue.numpy()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: memory is the CPU's."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: memory is the CPU's."""

    def get_outputs(self) -> list[OrtValue]:
        """Outputs of the last call, in the order of their binding."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """Outputs of the last call as arrays of the caller's own."""
        return [np.array(value.numpy()) for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forgets inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets outputs, and those of the last call."""
        self._outputs.clear()
        self._results = []

    def _run(self, run_options: RunOptions | None) -> None:
        if not self._outputs:
            raise errors.InvalidArgument("no output is bound; bind_output names what is wanted")
        found = self._session.run(list(self._outputs), self._inputs, run_options)
        results = []
        for (name, memory), array in zip(self._outputs.items(), found):
            if memory is not None and (memory.shape != array.shape or memory.dtype != array.dtype):
                raise errors.InvalidArgument(f"output '{name}': found memory for {memory.dtype}{list(memory.shape)}, "
                                             f"expected {array.dtype}{list(array.shape)}")
            results.append(array if memory is None else memory)
        for (name, memory), array in zip(self._outputs.items(), found):
            if memory is not None:
                memory[...] = array
        self._results = [OrtValue(array) for array in results]

    @staticmethod
    def _known(name: str, known: list[NodeArg]) -> str:
        if name not in [one.name for one in known]:
            raise errors.InvalidArgument(f"no input or output '{name}', expected one of "
                                         f"{', '.join(one.name for one in known)}")
        return name
