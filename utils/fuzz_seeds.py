"""Seeds of utils/fuzz: what its targets mutate. Made of the installed onnx package, numpy and our own compiler."""
import hashlib
import io
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Models of Slice with run-time bounds compile to size expressions so long that, instrumented, a run takes seconds.
SLOW = "test_slice*"
LARGEST = {"wire": 8192, "importer": 2048, "tensor": 2048}


def suite(pattern, largest):
    """Files of ONNX's test suite, by content, so that equal ones count once."""
    import onnx
    data = Path(onnx.__file__).parent / "backend/test/data"
    files = [path for path in sorted(data.rglob(pattern))
             if path.stat().st_size <= largest and not path.parent.match(SLOW)]
    return list({path.read_bytes(): None for path in files})


def own_models(largest):
    """The models of the importer's lit tests, wrong ones among them."""
    import onnx.parser
    for path in sorted((ROOT / "test/frontends/onnx").rglob("*.onnxtext")):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("//")]
        try:
            content = onnx.parser.parse_model("\n".join(lines)).SerializeToString()
        except onnx.parser.ParseError:  # a text that its RUN lines complete
            continue
        if len(content) <= largest:
            yield content


def arrays():
    import numpy as np
    for kind in "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 >i4 >f8 >u2".split():
        for shape in ((), (3,), (2, 3), (0, 4), (1, 2, 2)):
            yield np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    yield np.asfortranarray(np.arange(12, dtype="f4").reshape(3, 4))


def npy():
    import numpy as np
    for version in ((1, 0), (2, 0), (3, 0)):
        for array in arrays():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, version=version)
            yield stream.getvalue()


def npz():
    import numpy as np
    for write in (np.savez, np.savez_compressed):
        all_arrays = list(arrays())
        for i in range(0, len(all_arrays), 3):
            stream = io.BytesIO()
            write(stream, **{f"x{j}": array for j, array in enumerate(all_arrays[i:i + 3])})
            yield stream.getvalue()


def packages():
    """The manifests of small models, compiled here where ds-opt is built, and a SHA256SUMS for what PackageTarget.cpp
    has in its folder."""
    for path in sorted((ROOT / "test/fuzz/seeds/package").iterdir()):
        yield path.read_bytes()
    digest = hashlib.sha256(b"w" * 4096).hexdigest()
    for lines in (f"{digest}  weights.bin:0+4096\n", f"{digest}  weights.bin\n", ""):
        yield f"{lines}{hashlib.sha256(lines.encode()).hexdigest()}  SHA256SUMS\n".encode()
    compiler = ROOT / "build/bin/ds-opt"
    if not compiler.exists():
        return
    import onnx
    data = Path(onnx.__file__).parent / "backend/test/data"
    for case in ("node/test_layer_normalization_2d_axis1", "node/test_nonzero_example", "node/test_range_float_type_positive_delta",
                 "node/test_softmax_axis_0", "node/test_reshape_reordered_all_dims", "simple/test_expand_shape_model1"):
        with tempfile.TemporaryDirectory() as folder:
            model, package = data / case / "model.onnx", Path(folder) / "m.dsp"
            subprocess.run([compiler, model, "-o", package, "--no-cache"], capture_output=True)
            if (package / "manifest.json").exists():
                yield (package / "manifest.json").read_bytes()


def configs():
    return [path.read_bytes() for path in sorted((ROOT / "test/unit/config/Inputs").glob("*.json"))]


def safetensors(tensors, data, **metadata):
    """A file of a header, with where each tensor lies, and data."""
    header = json.dumps({**{name: dict(dtype=kind, shape=shape, data_offsets=offsets)
                            for name, (kind, shape, offsets) in tensors.items()},
                         **({"__metadata__": metadata} if metadata else {})}, separators=(",", ":")).encode()
    return len(header).to_bytes(8, "little") + header + data


def safetensors_files():
    sizes = dict(F64=8, F32=4, F16=2, BF16=2, I64=8, I32=4, I16=2, I8=1, U64=8, U32=4, U16=2, U8=1, BOOL=1, F8_E4M3=1,
                 F8_E5M2=1)
    for kind, size in sizes.items():
        yield safetensors({"w": (kind, [2, 1], [0, 2 * size]), "e": (kind, [0, 3], [2 * size, 2 * size]),
                           "s": (kind, [], [2 * size, 3 * size])}, bytes(range(3 * size)), step="7")
    yield safetensors({}, b"")


def data():
    """Training data for the inputs of DataTarget.cpp."""
    import gzip
    import numpy as np
    x, y = np.arange(8, dtype="f4").reshape(4, 2), np.arange(4)
    images, tokens = np.arange(16, dtype="f2").reshape(4, 1, 2, 2), np.arange(12, dtype="i4").reshape(4, 3)
    for arrays in (dict(x=x, y=y), dict(x=x.astype("u1"), y=y.astype("u2")), dict(x=images, y=y.astype("u1")),
                   dict(x=tokens, y=tokens), dict(x=tokens)):
        for write in (np.savez, np.savez_compressed):
            stream = io.BytesIO()
            write(stream, **arrays)
            yield stream.getvalue()
        yield "".join(json.dumps({name: array[i].tolist() for name, array in arrays.items()}) + "\n"
                      for i in range(4)).encode()
    for kind in "u2 i4 i8 >u2".split():
        for array in (np.arange(20), np.arange(12).reshape(4, 3), np.arange(12).reshape(3, 4).T):
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array.astype(kind))
            yield stream.getvalue()
    for code, kind in ((8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")):
        shape = (4, 3)
        content = (bytes([0, 0, code, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape) +
                   np.arange(12).astype(kind).tobytes())
        yield content
        yield gzip.compress(content, mtime=0)


def checkpoints():
    """checkpoint.json for the file that CheckpointTarget.cpp writes."""
    content = safetensors({"w": ("F32", [2], [0, 8])}, b"tensors.")
    document = {
        "version": 1, "step": 7, "samples": 224, "loader": {"epoch": 2, "position": 30}, "seed": "42",
        "loss_scale": {"scale": 65536.0, "iteration": 7, "last_overflow": -1, "hysteresis": 2}, "trainer": {"skipped": 1},
        "client_state": {"note": ["a", 1, None]}, "chunk_bytes": 1 << 20,
        "files": [{"name": "parameters.safetensors", "bytes": len(content), "header_bytes": len(content) - 8,
                   "header_sha256": hashlib.sha256(content[:-8]).hexdigest()}],
        "tensors": [{"name": "w", "dtype": "f32", "shape": [2], "file": "parameters.safetensors",
                     "sha256": [hashlib.sha256(content[-8:]).hexdigest()]}]}
    yield json.dumps(document).encode()
    # The same in two pieces, of two ranks.
    pieces = safetensors({"w[0:1]": ("F32", [1], [0, 4])}, b"tens"), safetensors({"w[1:2]": ("F32", [1], [0, 4])}, b"ors.")
    names = "parameters-rank0.safetensors", "parameters-rank1.safetensors"
    cut = document | {"version": 2, "files": [
        {"name": name, "bytes": len(piece), "header_bytes": len(piece) - 4, "header_sha256": hashlib.sha256(piece[:-4]).hexdigest()}
        for name, piece in zip(names, pieces)]}
    cut["tensors"] = [{"name": "w", "dtype": "f32", "shape": [2], "pieces": [
        {"file": name, "begin": i, "end": i + 1, "sha256": [hashlib.sha256(piece[-4:]).hexdigest()]} for i, (name, piece) in enumerate(zip(names, pieces))]}]
    yield json.dumps(cut).encode()
    document.update(files=[], tensors=[], client_state=None, trainer={})
    yield json.dumps(document).encode()


def hostfiles():
    """A filter is the last line."""
    hosts = "# two racks\na slots=4\n\nb.rack2\tslots=2 # spare\r\nlocalhost slots=1\n"
    yield from ((hosts + line).encode() for line in ("", "a:3,1@b.rack2", "localhost", "a:0,1,2,3"))
    yield b"A=1\n# comment\n\n  B=x=y\r\nNCCL_DEBUG=\nA=2\n"


def programs():
    """Bytes that steer test/fuzz/ProgramGenerator.cpp."""
    import random
    source = random.Random(1)
    return [source.randbytes(length) for length in (16, 32, 64, 128, 256) for _ in range(20)]


def models():
    return [*suite("model.onnx", LARGEST["importer"]), *own_models(2 * LARGEST["importer"])]


MAKERS = {
    "wire": lambda: suite("model.onnx", LARGEST["wire"]),
    "importer": models,
    "refusals": models,
    "tensor": lambda: suite("*.pb", LARGEST["tensor"]),
    "package": packages,
    "config": configs,
    "npy": npy,
    "npz": npz,
    "safetensors": safetensors_files,
    "data": data,
    "checkpoint": checkpoints,
    "hostfile": hostfiles,
    "program": programs,
}


def make(target, folder):
    """Writes the seeds of a target to an empty folder; one that has files is left as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        return
    for content in MAKERS[target]():
        (folder / hashlib.sha1(content).hexdigest()[:16]).write_bytes(content)
