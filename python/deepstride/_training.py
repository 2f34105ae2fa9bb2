"""Training with DeepSpeed's three calls: `loss = engine(batch)`, `engine.backward(loss)`, `engine.step()`."""
from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _arguments, _arrays, _compile, _core
from ._errors import CompileWarning, Error, InvalidArgumentError
from ._model import TensorInfo, _info, _names


class Evaluation(NamedTuple):
    """What a batch gives without being trained on; `float(...)` of it is the loss."""

    loss: float
    counted: int | None
    """Labels that are not ignored; None where the loss is not of classes."""
    correct: int | None
    """Of these, those that have the largest logit."""

    def __float__(self) -> float:
        return self.loss

    def item(self) -> float:
        """The loss."""
        return self.loss


class StepRecord(NamedTuple):
    """What a step did; alike on all ranks."""

    step: int
    samples: int
    """Of all steps so far, on all ranks."""
    loss: float
    """Mean over the step's samples, on all ranks."""
    lr: float
    momentum: float
    grad_norm: float
    """Over the loss scale, before clipping."""
    loss_scale: float
    skipped: bool
    """A number was not finite, and nothing was updated."""


class Loss:
    """The loss of a micro-batch, for `backward`. Forward and backward are one program: it runs in `backward`, or before,
    where the value is read first. A loss that is neither read nor given to `backward` costs nothing and changes nothing."""

    def __init__(self, engine: TrainingEngine, batch: list[tuple[str, str, np.ndarray]]) -> None:
        self._engine: TrainingEngine | None = engine
        self._batch: list[tuple[str, str, np.ndarray]] | None = batch
        self._value: float | None = None

    def item(self) -> float:
        """The value of this rank's micro-batch."""
        if self._value is None:
            self._engine._compute(self)  # type: ignore[union-attr]
        return self._value  # type: ignore[return-value]

    def __float__(self) -> float:
        return self.item()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.item(), dtype)

    def __repr__(self) -> str:
        return f"<deepstride loss {self._value if self._value is not None else 'not computed yet'}>"


class TrainingEngine:
    """A model in training, as `initialize` makes it. DeepSpeed's names mean what they mean there.

    Each call takes a micro-batch: arrays by name, in the order of `inputs`, or one dictionary. After as many as
    gradient_accumulation_steps says, `step` updates the parameters; before, it does nothing, as DeepSpeed's. Learning
    rates, loss scales, clipping and dropped layers follow the configuration: steps have the bits of `ds-run train`.
    """

    def __init__(self, core: _core.Engine, folder: str | None = None) -> None:
        self._core, self._folder = core, folder
        self._inputs = [_info(*found) for found in core.inputs]
        self._trains = True
        self._process = os.getpid()
        self._loss: Loss | None = None  # that was computed, and not given to backward yet
        self.last_step: StepRecord | None = None
        """What the last step did."""

    # Forward, backward, step.
    def __call__(self, *batch: Any, **named: Any) -> Any:
        """The loss of a micro-batch; in evaluation (`eval()`) an Evaluation, without dropout, that changes nothing."""
        self._check()
        arrays = self._prepare(batch, named)
        if not self._trains:
            loss, counted, correct = self._core.evaluate(arrays)
            return Evaluation(loss, counted if counted >= 0 else None, correct if counted >= 0 else None)
        if self._loss is not None:
            raise InvalidArgumentError("forward: the loss of the batch before was read, so its gradients are there, but "
                                       "backward(loss) was not called; engine.eval() is for losses without training")
        return Loss(self, arrays)

    forward = __call__

    def backward(self, loss: Loss) -> Loss:
        """Adds the micro-batch's gradients to those of the step."""
        if not isinstance(loss, Loss) or (loss._engine is not self):
            raise InvalidArgumentError(f"backward: found {loss!r}, expected a loss of this engine, which backward has not "
                                       "seen yet; a loss of several terms must be an output of the model")
        loss.item()
        self._loss = None
        loss._engine = None
        return loss

    def step(self) -> None:
        """Updates the parameters where the step has all of its micro-batches, and does nothing before."""
        self._check()
        if self._loss is not None:
            raise InvalidArgumentError("step: the loss of the last batch was read but not given to backward(loss)")
        if not self.is_gradient_accumulation_boundary():
            return
        self.last_step = StepRecord(*self._core.step())

    def _compute(self, loss: Loss) -> None:
        self._check()
        if self._loss is not None:
            raise InvalidArgumentError("the loss of another batch was computed, and backward(loss) was not called for it")
        loss._value = self._core.micro_batch(loss._batch)
        loss._batch = None
        self._loss = loss

    def _prepare(self, batch: Sequence[Any], named: Mapping[str, Any]) -> list[tuple[str, str, np.ndarray]]:
        if len(batch) == 1 and isinstance(batch[0], Mapping):
            named, batch = {**batch[0], **named}, ()
        elif len(batch) == 1 and isinstance(batch[0], (tuple, list)) and len(self._inputs) > 1:
            batch = batch[0]
        if len(batch) > len(self._inputs):
            raise InvalidArgumentError(f"found {len(batch)} arrays, expected {len(self._inputs)}: {_names(self._inputs)}")
        given = {info.name: array for info, array in zip(self._inputs, batch)}
        for name in named:
            if name in given:
                raise InvalidArgumentError(f"input '{name}' is given twice")
            if name not in {info.name for info in self._inputs}:
                raise InvalidArgumentError(f"no input '{name}', expected {_names(self._inputs)}")
        given.update(named)
        missing = [info for info in self._inputs if info.name not in given]
        if missing:
            raise InvalidArgumentError(f"input {_names(missing)} is missing, expected {_names(self._inputs)}")
        arrays = []
        for info in self._inputs:
            value = given[info.name]
            if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
                value = np.from_dlpack(value)
            array, kind = _arrays.prepare(info.name, value, info.type)
            array = np.array(array, order="C")  # the caller may fill its own again before backward
            arrays.append((info.name, kind or _arrays.kind_of(array.dtype), array))
        return arrays

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise InvalidArgumentError("the engine is of the process that this one was forked from, and its threads are "
                                       "not here: make engines after a fork")

    def train(self, mode: bool = True) -> TrainingEngine:
        """Calls train from now on, or evaluate."""
        self._trains = bool(mode)
        return self

    def eval(self) -> TrainingEngine:
        """Calls evaluate from now on."""
        return self.train(False)

    # Checkpoints.
    def save_checkpoint(self, save_dir: str | os.PathLike[str], tag: str | None = None,
                        client_state: Mapping[str, Any] | None = None) -> None:
        """Writes what `ds-run train --resume` and `load_checkpoint` go on from; all ranks call it together.

        tag: the folder below save_dir; None: global_step and the number of steps.
        client_state: whatever JSON can hold, for load_checkpoint to give back.
        """
        try:
            text = json.dumps(client_state, allow_nan=False) if client_state is not None else None
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"client_state: {error}") from None
        self._check()
        self._core.save(_arguments.path("save_dir", save_dir), None if tag is None else _arguments.text("tag", str(tag)), text)

    def load_checkpoint(self, load_dir: str | os.PathLike[str], tag: str | None = None) -> tuple[str, Any]:
        """Goes on from a checkpoint of any number of ranks and any stage of ZeRO: its path, and its client state or {}.

        tag: the folder below load_dir; None: the latest.
        """
        self._check()
        folder, tag = _arguments.path("load_dir", load_dir), None if tag is None else _arguments.text("tag", str(tag))
        text = self._core.load(folder, tag)
        self._loss = self.last_step = None
        if tag is None:
            with open(os.path.join(folder, "latest"), encoding="utf-8") as file:
                tag = file.read().strip()
        return os.path.join(folder, tag), json.loads(text) if text is not None else {}

    # Numbers.
    @property
    def inputs(self) -> list[TensorInfo]:
        """What a micro-batch holds: the model's inputs, then the labels."""
        return list(self._inputs)

    @property
    def global_rank(self) -> int:
        """The number of this process among the ranks."""
        return self._core.rank

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self._core.world

    @property
    def global_steps(self) -> int:
        """Steps so far, those that were skipped too."""
        return self._core.steps

    @property
    def skipped_steps(self) -> int:
        """Steps that updated nothing, since a number was not finite."""
        return self._core.skipped_steps

    @property
    def micro_steps(self) -> int:
        """Micro-batches of this rank so far."""
        return self._core.steps * self._core.micro_batches + self._core.micro_batches_done

    def is_gradient_accumulation_boundary(self) -> bool:
        """Whether the step has all of its micro-batches, so that `step` updates."""
        return self._core.micro_batches_done == self._core.micro_batches

    def gradient_accumulation_steps(self) -> int:
        """Micro-batches of a step, on each rank."""
        return self._core.micro_batches

    def train_micro_batch_size_per_gpu(self) -> int:
        """Samples of a micro-batch."""
        return self._core.micro_batch_size

    def train_batch_size(self) -> int:
        """Samples of a step, on all ranks."""
        return self._core.micro_batch_size * self._core.micro_batches * self._core.world

    def get_lr(self) -> list[float]:
        """The learning rate of the next step."""
        return [self._core.learning_rate]

    def get_mom(self) -> list[float]:
        """The momentum of the next step."""
        return [self._core.momentum]

    def get_global_grad_norm(self) -> float | None:
        """The norm of the last step's gradients before clipping; None before the first step."""
        return self.last_step.grad_norm if self.last_step else None

    @property
    def cur_scale(self) -> float:
        """What the next losses are multiplied by; 1 without fp16."""
        return self._core.loss_scale

    def close(self) -> None:
        """Ends this rank's part; the engine is of no use afterwards."""
        if os.getpid() != self._process:
            return
        self._core.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> TrainingEngine:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_folder", None) and os.getpid() == self._process:
            shutil.rmtree(self._folder, ignore_errors=True)


def _config_file(config: str | os.PathLike[str] | Mapping[str, Any] | None, folder: str) -> str | None:
    if config is None or isinstance(config, (str, os.PathLike)):
        return None if config is None else _arguments.path("config", config)
    if not isinstance(config, Mapping):
        raise InvalidArgumentError(f"config: found {type(config).__name__}, expected a dictionary or the path of a "
                                   "ds_config.json")
    path = os.path.join(folder, "ds_config.json")
    try:
        text = json.dumps(config, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"config: {error}") from None
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def initialize(model: Any, config: str | os.PathLike[str] | Mapping[str, Any] | None = None, *,
               threads: int | None = None, seed: int = 0, **options: Any) -> TrainingEngine:
    """An engine that trains a model as a ds_config.json says.

    model: an .onnx file, its bytes, or an onnx.ModelProto, which is compiled for this machine; or a package of
    `deepstride.compile(..., mode="train")`. Where ds-run, mpirun or srun has started this process as one of several
    ranks it must be a package: all ranks run the same one.
    config: the path of a ds_config.json, or a dictionary; of a package None, or one that differs in nothing compiled.
    threads: how many compute on this rank; None: DS_NUM_THREADS, else as many as there are processors.
    seed: what dropout, dropped layers and stochastic rounding draw by.
    options: those of `deepstride.compile`, of a model that is compiled: loss="cross_entropy", logits=, labels=, dims=.

        engine = deepstride.initialize("m.onnx", "ds_config.json", loss="cross_entropy", logits="logits", labels="y")
        for batch in batches:
            loss = engine(batch)
            engine.backward(loss)
            engine.step()
        engine.save_checkpoint("run")
    """
    count = _arguments.threads(threads)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise InvalidArgumentError(f"seed: found {seed!r}, expected 0 to 2**64 - 1")
    is_package = isinstance(model, (str, os.PathLike)) and os.path.isdir(model)
    folder = tempfile.mkdtemp(prefix="deepstride-")
    try:
        file = _config_file(config, folder)
        if is_package:
            if options:
                raise InvalidArgumentError(f"initialize: {next(iter(options))}: the package is compiled already")
            package = _arguments.path("model", model)
        else:
            if (os.environ.get("DS_WORLD") or os.environ.get("OMPI_COMM_WORLD_SIZE") or "1") != "1":
                raise InvalidArgumentError("initialize: model: found a model, expected a package, which all ranks run "
                                           "alike: compile it once before with deepstride.compile(..., mode='train')")
            package = os.path.join(folder, "train.dsp")
            given = {"mode": "train", "config": file, **options}
            dims, shapes = given.pop("dims", None), given.pop("shapes", None)
            _compile.compile(model, package, dims=dims, shapes=shapes, **given)
            file = None
        core = _core.Engine(package, count, file, seed, False)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, Error) and isinstance(config, Mapping) and error.args:  # the file is ours: nobody knows it
            error.args = (str(error.args[0]).replace(os.path.join(folder, "ds_config.json"), "config"), *error.args[1:])
        raise
    for note in core.notes:
        if core.rank == 0:
            warnings.warn(note, CompileWarning, stacklevel=2)
    return TrainingEngine(core, folder)
