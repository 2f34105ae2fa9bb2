"""Readers for the two checkpoint formats that the trained models come in: safetensors and GGUF, both into float32."""
import json
import struct

import numpy as np


def read_safetensors(path):
    """name -> float32 array. The file is a length, a JSON header with byte ranges, and the data."""
    data = np.memmap(path, np.uint8, "r")
    length = int(data[:8].view("<u8")[0])
    header = json.loads(bytes(data[8:8 + length]))
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = data[8 + length + begin:8 + length + end].view("<f4").reshape(entry["shape"])
    return tensors


GGUF_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


def read_gguf(path):
    """Metadata and name -> float32 array of a GGUF file (version 3; F32, Q8_0 and Q4_1 tensors, blocks of 32)."""
    data = np.memmap(path, np.uint8, "r")
    at = 0

    def take(form):
        nonlocal at
        size = struct.calcsize(form)
        at += size
        return struct.unpack(form, data[at - size:at].tobytes())[0]

    def text():
        nonlocal at
        length = take("<Q")
        at += length
        return data[at - length:at].tobytes().decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            element, count = take("<I"), take("<Q")
            return [value(element) for _ in range(count)]
        return take(GGUF_SCALARS[kind])

    if take("<I") != 0x46554747 or take("<I") != 3:
        raise ValueError(f"{path}: expected a GGUF file of version 3")
    tensors, keys = take("<Q"), take("<Q")
    metadata = {}
    for _ in range(keys):
        name = text()
        metadata[name] = value(take("<I"))
    entries = []
    for _ in range(tensors):
        name = text()
        shape = [take("<Q") for _ in range(take("<I"))][::-1]  # the file lists the innermost axis first
        entries.append((name, shape, take("<I"), take("<Q")))
    alignment = metadata.get("general.alignment", 32)
    start = -(-at // alignment) * alignment
    return metadata, {name: dequantize(data, start + offset, kind, shape) for name, shape, kind, offset in entries}


def dequantize(data, offset, kind, shape):
    count = int(np.prod(shape))
    block = {0: None, 3: 20, 8: 34}.get(kind, 0)
    if block == 0:
        raise ValueError(f"expected tensors of type F32 (0), Q4_1 (3) or Q8_0 (8), found {kind}")
    if block is None:
        return data[offset:offset + 4 * count].view("<f4").reshape(shape)
    rows = data[offset:offset + count // 32 * block].reshape(-1, block)
    scale = rows[:, :2].copy().view("<f2").astype(np.float32)
    if kind == 8:  # scale, 32 signed bytes
        values = scale * rows[:, 2:].view(np.int8)
    else:  # scale, minimum, 16 bytes: low nibbles are elements 0 to 15, high nibbles 16 to 31
        minimum = rows[:, 2:4].copy().view("<f2").astype(np.float32)
        nibbles = np.concatenate([rows[:, 4:] & 15, rows[:, 4:] >> 4], axis=1)
        values = scale * nibbles + minimum
    return values.astype(np.float32).reshape(shape)
