"""Tensors outside of calls: OrtValue, and the names that ONNX Runtime has for types and devices."""
from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _arrays
from .._errors import InvalidArgumentError

# The runtime's type: ONNX's number and ONNX Runtime's name.
_TYPES = {"f32": (1, "float"), "u8": (2, "uint8"), "i8": (3, "int8"), "u16": (4, "uint16"), "i16": (5, "int16"),
          "i32": (6, "int32"), "i64": (7, "int64"), "i1": (9, "bool"), "f16": (10, "float16"), "f64": (11, "double"),
          "u32": (12, "uint32"), "u64": (13, "uint64"), "bf16": (16, "bfloat16"), "f8e4m3fn": (17, "float8e4m3fn"),
          "f8e4m3fnuz": (18, "float8e4m3fnuz"), "f8e5m2": (19, "float8e5m2"), "f8e5m2fnuz": (20, "float8e5m2fnuz"),
          "u4": (21, "uint4"), "i4": (22, "int4"), "f4e2m1": (23, "float4e2m1"), "f8e8m0": (24, "float8e8m0"),
          "u2": (25, "uint2"), "i2": (26, "int2")}


def type_text(kind: str) -> str:
    """tensor(float) for "f32"."""
    return f"tensor({_TYPES[kind][1]})"


def kind_of_number(element: int) -> str | None:
    """The runtime's type for ONNX's number of one; None for strings and the like."""
    return next((kind for kind, (number, _) in _TYPES.items() if number == element), None)


class OrtDevice:
    """A place of memory; the CPU's is the only one here."""

    def __init__(self, name: str, device_id: int) -> None:
        self._name, self._id = name, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The CPU by its name; others are refused."""
        check_device(ort_device_name, device_id)
        return OrtDevice("cpu", 0)

    def device_id(self) -> int:
        """Its number among those of its kind."""
        return self._id

    def device_type(self) -> int:
        """ONNX Runtime's number of the kind: 0, the CPU."""
        return 0

    def device_mem_type(self) -> int:
        """ONNX Runtime's number of the kind of memory: 0, the default."""
        return 0

    def device_vendor_id(self) -> int:
        """The vendor's number: 0, none."""
        return 0

    def __str__(self) -> str:
        return self._name


def check_device(device_type: str | OrtDevice, device_id: int = 0) -> None:
    """Refuses memory that is not the CPU's."""
    if str(device_type).lower() != "cpu" or device_id != 0:
        raise InvalidArgumentError(f"device: found '{device_type}' {device_id}, expected 'cpu' 0")


def element_dtype(element_type: Any) -> np.dtype:
    """The NumPy type for a NumPy type, or for ONNX's number of one."""
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        for kind, (number, _) in _TYPES.items():
            if number == element_type:
                return _arrays.dtype_of(kind)
        raise InvalidArgumentError(f"element type: found {element_type}, expected ONNX's number of a type")
    try:
        found: np.dtype[Any] = np.dtype(element_type)
    except TypeError:
        raise InvalidArgumentError(f"element type: found {element_type!r}, expected a type of NumPy's") from None
    return found


def array_at(address: int, element_type: Any, shape: Sequence[int]) -> np.ndarray:
    """Somebody else's memory as an array."""
    dtype = element_dtype(element_type)
    sizes = [int(size) for size in shape]
    if not address or any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"memory at {address!r} of shape {list(shape)}: expected an address and sizes")
    count = math.prod(sizes)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(int(address))
    return np.frombuffer(memoryview(memory).cast("B"), dtype, count).reshape(sizes)


class OrtValue:
    """A tensor in memory of the CPU."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: np.ndarray, device_type: str | OrtDevice = "cpu", device_id: int = 0) -> OrtValue:
        """A value over an array's own memory: what is written to the array later, calls read."""
        check_device(device_type, device_id)
        return OrtValue(array if array.flags.c_contiguous else np.ascontiguousarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any = None, device_type: str | OrtDevice = "cpu",
                                     device_id: int = 0) -> OrtValue:
        """A value with memory of its own whose elements are zero."""
        check_device(device_type, device_id)
        if element_type is None:
            raise InvalidArgumentError("element_type: found None, expected a type of NumPy's")
        array = _arrays.empty([int(size) for size in shape], element_dtype(element_type))
        array[...] = 0
        return OrtValue(array)

    @staticmethod
    def from_dlpack(data: Any, is_bool_tensor: bool = False) -> OrtValue:
        """A value over the memory of another library's array."""
        array = np.from_dlpack(data)
        return OrtValue(array.view(np.bool_) if is_bool_tensor else array)

    def numpy(self) -> np.ndarray:
        """The tensor as an array, over the same memory."""
        return self._array

    def shape(self) -> list[int]:
        """Its sizes."""
        return list(self._array.shape)

    def element_type(self) -> int:
        """ONNX's number of its type."""
        return _TYPES[self._kind()][0]

    def data_type(self) -> str:
        """Its type as text, such as tensor(float)."""
        return type_text(self._kind())

    def device_name(self) -> str:
        """Where it is."""
        return "cpu"

    def data_ptr(self) -> int:
        """The address of its first element."""
        return self._array.ctypes.data

    def tensor_size_in_bytes(self) -> int:
        """How much memory it takes."""
        return self._array.nbytes

    def has_value(self) -> bool:
        """Always, here."""
        return True

    def is_tensor(self) -> bool:
        """Always, here."""
        return True

    def is_tensor_sequence(self) -> bool:
        """Never, here."""
        return False

    def is_sparse_tensor(self) -> bool:
        """Never, here."""
        return False

    def update_inplace(self, array: np.ndarray) -> None:
        """Overwrites its elements by those of an array of the same type and shape."""
        if array.shape != self._array.shape or array.dtype != self._array.dtype:
            raise InvalidArgumentError(f"update_inplace: found {array.dtype}{list(array.shape)}, expected "
                                       f"{self._array.dtype}{list(self._array.shape)}")
        self._array[...] = array

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def _kind(self) -> str:
        return _arrays.kind_of(self._array.dtype)
