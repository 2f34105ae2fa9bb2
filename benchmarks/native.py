"""Deepstride's runtime in this process, by its C interface: what a benchmark needs to take turns call by call."""
import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p

import ml_dtypes
import numpy as np

# In the order of ds_type.
TYPES = [np.dtype(kind) for kind in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.int32, np.int16,
                                     np.int8, np.uint64, np.uint32, np.uint16, np.uint8, np.bool_)]
ALIGNMENT = 64  # inputs that are aligned so are used in place


class Tensor(Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("type", c_int), ("rank", c_size_t),
                ("shape", POINTER(c_int64)), ("data", c_void_p)]


class LoadOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("skip_verification", c_int), ("variant", c_char_p)]


class SessionOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_uint), ("group", c_void_p), ("rank", c_uint)]


def aligned(array):
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Session:
    """A package with one set of inputs."""

    def __init__(self, library, package, inputs, threads):
        self.runtime = ctypes.CDLL(str(library))
        for function, result in (("ds_status_message", c_char_p), ("ds_outputs_count", c_size_t),
                                 ("ds_outputs_get", POINTER(Tensor))):
            getattr(self.runtime, function).restype = result
        for function in ("ds_package_load", "ds_session_create", "ds_session_run"):
            getattr(self.runtime, function).restype = c_void_p
        self.runtime.ds_session_run.argtypes = [c_void_p, c_size_t, POINTER(Tensor), c_size_t, POINTER(c_void_p)]
        self.runtime.ds_status_message.argtypes = [c_void_p]
        self.package, self.session, self.outputs = c_void_p(), c_void_p(), c_void_p()
        self.arrays = {name: aligned(array) for name, array in inputs.items()}
        self.shapes = [(c_int64 * array.ndim)(*array.shape) for array in self.arrays.values()]
        self.inputs = (Tensor * len(inputs))(*[
            Tensor(ctypes.sizeof(Tensor), name.encode(), TYPES.index(array.dtype), array.ndim, shape, array.ctypes.data)
            for (name, array), shape in zip(self.arrays.items(), self.shapes)])
        self.check(self.runtime.ds_package_load(str(package).encode(), byref(LoadOptions(ctypes.sizeof(LoadOptions), 1, None)),
                                                byref(self.package)))
        self.check(self.runtime.ds_session_create(
            self.package, byref(SessionOptions(ctypes.sizeof(SessionOptions), threads, None, 0)), byref(self.session)))

    def check(self, status):
        if status:
            raise RuntimeError(self.runtime.ds_status_message(status).decode())

    def run(self):
        self.check(self.runtime.ds_session_run(self.session, 0, self.inputs, len(self.inputs), byref(self.outputs)))

    def results(self):
        """The outputs of the last call by name; copies."""
        found = {}
        for index in range(self.runtime.ds_outputs_count(self.outputs)):
            tensor = self.runtime.ds_outputs_get(self.outputs, c_size_t(index)).contents
            shape, kind = tuple(tensor.shape[axis] for axis in range(tensor.rank)), TYPES[tensor.type]
            data = ctypes.string_at(tensor.data, int(np.prod(shape)) * kind.itemsize) if tensor.data else b""
            found[tensor.name.decode()] = np.frombuffer(data, kind).reshape(shape)
        return found

    def close(self):
        for free, value in (("ds_outputs_free", self.outputs), ("ds_session_free", self.session),
                            ("ds_package_free", self.package)):
            getattr(self.runtime, free)(value)
