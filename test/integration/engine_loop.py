"""A training loop against ds/engine.h by ctypes: a program that ds-run starts as ranks, or that runs alone. It prints a line of JSON per step.

usage: engine_loop.py RUNTIME PACKAGE DATA.npz STEPS FOLDER [--config=FILE] [--seed=N] [--stop=N]     --stop: saves, loads and goes on after N steps
"""
import argparse
import ctypes as c
import json
import sys

import numpy as np

TYPES = {"float32": 1, "int64": 4}  # numbers of ds_type


class Tensor(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("type", c.c_int), ("rank", c.c_size_t), ("shape", c.POINTER(c.c_int64)),
                ("data", c.c_void_p)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("threads", c.c_uint), ("config", c.c_char_p), ("seed", c.c_uint64), ("is_alone", c.c_int)]


class Step(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("step", c.c_int64), ("samples", c.c_int64), *((name, c.c_double) for name in (
        "loss", "learning_rate", "momentum", "grad_norm", "loss_scale")), ("is_skipped", c.c_int)]


class Evaluation(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("loss", c.c_double), ("counted", c.c_int64), ("correct", c.c_int64)]


class Library:
    def __init__(self, path):
        self.own = c.CDLL(path)
        self.own.ds_status_message.restype = c.c_char_p
        self.own.ds_engine_note.restype = c.c_char_p
        for name in ("micro_batches", "micro_batches_done", "micro_batch_size", "steps", "skipped_steps"):
            getattr(self.own, "ds_engine_" + name).restype = c.c_int64
        for name in ("learning_rate", "loss_scale"):
            getattr(self.own, "ds_engine_" + name).restype = c.c_double

    def call(self, name, *arguments):
        function = getattr(self.own, name)
        function.restype = c.c_void_p
        if status := function(*arguments):
            sys.exit("engine_loop: error: " + self.own.ds_status_message(c.c_void_p(status)).decode())

    def tensors(self, arrays):
        made = (Tensor * len(arrays))()
        for tensor, (name, array) in zip(made, arrays.items()):
            shape = (c.c_int64 * max(array.ndim, 1))(*array.shape)
            tensor.struct_size, tensor.name, tensor.type, tensor.rank = c.sizeof(Tensor), name.encode(), TYPES[str(array.dtype)], array.ndim
            tensor.shape, tensor.data = shape, array.ctypes.data
        return made


def main():
    parser = argparse.ArgumentParser()
    for name in ("runtime", "package", "data", "steps", "folder"):
        parser.add_argument(name)
    parser.add_argument("--config")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stop", type=int, default=-1)
    parser.add_argument("--fault", default="")
    given = parser.parse_args()
    library, data = Library(given.runtime), dict(np.load(given.data))
    package, engine = c.c_void_p(), c.c_void_p()
    library.call("ds_package_load", given.package.encode(), None, c.byref(package))
    options = Options(c.sizeof(Options), 1, given.config.encode() if given.config else None, given.seed, 0)
    library.call("ds_engine_create", package, c.byref(options), c.byref(engine))
    if given.fault == "second":
        library.call("ds_engine_create", package, c.byref(options), c.byref(c.c_void_p()))
    rank, world = library.own.ds_engine_rank(engine), library.own.ds_engine_world(engine)
    micro, rounds = library.own.ds_engine_micro_batch_size(engine), library.own.ds_engine_micro_batches(engine)
    samples = len(next(iter(data.values())))
    for step in range(int(given.steps)):
        if given.fault == "early":
            library.call("ds_engine_step", engine, None)
        for number in range(rounds):
            place = ((step * rounds + number) * world + rank) * micro % samples  # what ds-run train reads in order
            batch = {name: np.ascontiguousarray(array[place:place + micro]) for name, array in data.items()}
            if given.fault == f"shape of rank {rank}" and step == 1:
                batch["x"] = np.ascontiguousarray(batch["x"][:, 1:])
            loss = c.c_double()
            library.call("ds_engine_micro_batch", engine, library.tensors(batch), len(batch), c.byref(loss))
            if given.fault == "late" and number + 1 == rounds:
                library.call("ds_engine_micro_batch", engine, library.tensors(batch), len(batch), None)
        record = Step(c.sizeof(Step))
        library.call("ds_engine_step", engine, c.byref(record))
        if rank == 0:
            print(json.dumps({name: getattr(record, name) for name, _ in Step._fields_[1:]}), flush=True)
        if step + 1 == given.stop:
            state = c.c_char_p()
            library.call("ds_engine_save", engine, given.folder.encode(), b"stop", b'{"of": "mine"}')
            library.call("ds_engine_load", engine, given.folder.encode(), b"stop", c.byref(state))
            if json.loads(state.value) != {"of": "mine"}:
                sys.exit(f"client state: {state.value}")
    evaluation = Evaluation(c.sizeof(Evaluation))
    library.call("ds_engine_evaluate", engine, library.tensors(batch), len(batch), c.byref(evaluation), None)
    if rank == 0:
        print(json.dumps({"evaluation": evaluation.loss, "counted": evaluation.counted}))
    library.call("ds_engine_save", engine, given.folder.encode(), None, None)
    library.own.ds_engine_free(engine)
    library.own.ds_package_free(package)


main()
