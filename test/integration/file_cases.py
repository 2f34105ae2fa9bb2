"""Files that are damaged, cut short or hostile: each is refused with a diagnostic, none is believed."""
import os
import shutil

import numpy as np
from concurrent.futures import ThreadPoolExecutor

import generate
from kit import case, compile_model, expect, run_package, same_numbers, tool

X = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}
GIB = 1 << 30


def small_package(folder):
    model = generate.save(generate.small(), folder / "small.onnx")
    return model, compile_model(model, folder)


def refused(package, names, what, dim="--dim=n=3"):
    result = tool("ds-run", package, dim, code=1)
    expect(any(name in result.err for name in names), f"{what}: expected a diagnostic that names {names[0]}: {result}")


def flip(folder, every):
    """Flips one bit in every `every`-th byte of each file; a second copy lets two processes work at once."""
    _, package = small_package(folder)
    copies = [shutil.copytree(package, folder / f"copy{i}.dsp") for i in range(2)]

    def work(which):
        count = 0
        for name in sorted(os.listdir(copies[which])):
            path = copies[which] / name
            original = path.read_bytes()
            for at in range(which * every, len(original), 2 * every):
                damaged = bytearray(original)
                damaged[at] ^= 1 << at % 8
                path.write_bytes(damaged)
                refused(copies[which], [name, "SHA256SUMS"], f"byte {at} of {name} flipped")
                count += 1
            path.write_bytes(original)
        return count

    with ThreadPoolExecutor() as pool:
        return sum(pool.map(work, range(2)))


@case(seconds=4)
def package_with_a_flipped_byte(folder):
    expect(flip(folder, 31) > 100, "expected to try more than a hundred bytes")


@case(slow=True)
def package_with_any_flipped_byte(folder):
    flip(folder, 1)


@case
def package_with_missing_or_added_files(folder):
    _, package = small_package(folder)
    for name in sorted(os.listdir(package)):
        damaged = shutil.copytree(package, folder / "damaged.dsp")
        for size in sorted({0, 1, (package / name).stat().st_size // 2, (package / name).stat().st_size - 1}):
            (damaged / name).write_bytes((package / name).read_bytes()[:size])
            refused(damaged, [name, "SHA256SUMS"], f"{name} cut to {size} bytes")
        (damaged / name).write_bytes((package / name).read_bytes() + b"\0")
        refused(damaged, [name, "SHA256SUMS"], f"{name} with a byte added")
        (damaged / name).unlink()
        refused(damaged, [name], f"{name} missing")
        shutil.rmtree(damaged)
    (package / "extra").write_text("x")
    refused(package, ["extra"], "a file added")
    for path, what in ((folder / "none.dsp", "no such folder"), (folder / "small.onnx", "a file")):
        refused(path, [path.name], what)


@case(seconds=5)
def model_cut_short(folder):
    whole = generate.small().SerializeToString()
    path = folder / "cut.onnx"
    for size in range(0, len(whole), 5):
        path.write_bytes(whole[:size])
        tool("ds-opt", path, "-o", folder / "cut.dsp", code=1, says="error")
        expect(not (folder / "cut.dsp").exists(), f"a model cut to {size} bytes left a package")


def mutate(folder, count):
    """Random damage to the model: anything but a crash or a hang."""
    whole = generate.bert(layers=1, hidden=8, heads=2, vocabulary=16, positions=16).SerializeToString()
    random = np.random.default_rng(0)
    path = folder / "mutant.onnx"
    for _ in range(count):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), random.integers(1, 9)):
            damaged[at] = random.integers(0, 256)
        path.write_bytes(damaged)
        result = tool("ds-opt", path, "-o", folder / "mutant.dsp", code=None, timeout=60)
        if result.code == 0:
            tool("ds-run", folder / "mutant.dsp", "--dim=batch=1", "--dim=sequence=3", code=None, timeout=60)
        shutil.rmtree(folder / "mutant.dsp", ignore_errors=True)


@case(seconds=12)
def damaged_models(folder):
    mutate(folder, 40)


@case(slow=True)
def many_damaged_models(folder):
    mutate(folder, 1500)


@case
def not_a_model(folder):
    (folder / "noise.onnx").write_bytes(np.random.default_rng(0).bytes(100000))
    (folder / "text.onnx").write_text("this is not a model\n" * 100)
    (folder / "empty.onnx").write_bytes(b"")
    os.mkfifo(folder / "pipe.onnx")
    for name in ("noise", "text", "empty", "pipe", "absent"):
        tool("ds-opt", folder / f"{name}.onnx", "-o", folder / "out.dsp", code=1, says=f"{name}.onnx")
    tool("ds-opt", folder, "-o", folder / "out.dsp", code=1)


@case
def model_of_two_gib(folder):
    """Protocol buffers end at 2 GiB; the diagnostic says what to do instead."""
    path = generate.save(generate.small(), folder / "large.onnx")
    with open(path, "ab") as file:
        file.truncate(2 * GIB + 100)
    tool("ds-opt", path, "-o", folder / "large.dsp", code=1, says="external data")


def external_model(folder, location, **keywords):
    model, data = generate.external(location, **keywords)
    folder.mkdir(exist_ok=True)
    return generate.save(model, folder / "model.onnx"), data


@case(seconds=3)
def external_data(folder):
    """Weights beside the model, in a folder below it and at an offset: the numbers of the model that holds them."""
    expected = run_package(small_package(folder)[1], X, folder)["y"]
    for location, offset, length in (("w.bin", None, None), ("w.bin", 0, 128), ("sub/w.bin", 4096, 128), ("w.bin", 4, None)):
        path, data = external_model(folder / "m", location, offset=offset, length=length)
        target = folder / "m" / location
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(b"\xff" * (offset or 0) + data)
        found = run_package(compile_model(path, folder), X, folder)["y"]
        expect(np.array_equal(found, expected), f"{location} at offset {offset}: other numbers than the plain model")


@case
def external_data_of_many_gib(folder):
    """A sparse file: only the range that the model names is read."""
    offset = 40 * GIB + 64
    path, data = external_model(folder / "m", "w.bin", offset=offset, length=128)
    with open(folder / "m/w.bin", "wb") as file:
        file.seek(offset)
        file.write(data)
        file.truncate(64 * GIB)
    expected = run_package(small_package(folder)[1], X, folder)["y"]
    found = run_package(compile_model(path, folder, memory_gib=4), X, folder)["y"]
    expect(np.array_equal(found, expected), "other numbers than the plain model")


@case
def external_data_attacks(folder):
    outside, inside = folder / "outside", folder / "m"
    outside.mkdir(), inside.mkdir()
    secret = outside / "w.bin"
    secret.write_bytes(bytes(1000))
    (inside / "good.bin").write_bytes(bytes(1000))
    (inside / "short.bin").write_bytes(bytes(127))
    (inside / "link.bin").symlink_to(secret)
    (inside / "linked").symlink_to(outside)
    (inside / "near.bin").symlink_to("good.bin")
    os.link(secret, inside / "hard.bin")
    os.mkfifo(inside / "pipe")
    (inside / "folder").mkdir()
    attacks = {
        "parent folder": ("../outside/w.bin", None, None), "parent folder inside": ("folder/../../outside/w.bin", None, None),
        "absolute path": (secret, None, None), "device": ("/dev/zero", None, None), "process file": ("/proc/self/mem", 0, 128),
        "symlink": ("link.bin", None, None), "symlinked folder": ("linked/w.bin", None, None),
        "symlink to a neighbour": ("near.bin", None, None), "hard link": ("hard.bin", None, None),
        "pipe": ("pipe", None, None), "folder": ("folder", None, None), "no file": ("none.bin", None, None),
        "empty name": ("", None, None), "short file": ("short.bin", None, None), "offset behind the end": ("good.bin", 4096, 128),
        "range behind the end": ("good.bin", 900, 128), "length too small": ("good.bin", 0, 127),
        "length too large": ("good.bin", 0, 129), "length of zero": ("good.bin", 0, 0),
        "sum that overflows": ("good.bin", 2**63 - 64, 128), "sum that wraps around": ("good.bin", 2**64 - 64, 128),
        "negative offset": ("good.bin", -128, 128), "negative length": ("good.bin", 0, -128),
        "offset of 30 digits": ("good.bin", 10**29, 128), "offset that is no number": ("good.bin", "0x10", 128),
    }
    for what, (location, offset, length) in attacks.items():
        path, _ = external_model(inside, str(location), offset=offset, length=length)
        result = tool("ds-opt", path, "-o", folder / "out.dsp", code=None, timeout=20)
        expect(result.code == 1 and "error" in result.err, f"{what} ({location}): expected a refusal: {result}")
        expect(not (folder / "out.dsp").exists(), f"{what}: left a package behind")
    for shape in ((2**31, 2**31, 2**31), (-4, 8), (2**62,)):
        path, _ = external_model(inside, "good.bin", shape=shape)
        tool("ds-opt", path, "-o", folder / "out.dsp", code=1, says="error", memory_gib=4)


@case
def external_data_same_numbers(folder):
    """A real encoder saved with its weights outside."""
    import onnx
    model = generate.bert(layers=1, hidden=32, heads=2)
    onnx.save(model, folder / "bert.onnx", save_as_external_data=True, location="bert.weights", size_threshold=64)
    inputs = {"input_ids": np.arange(10).reshape(2, 5), "attention_mask": np.ones((2, 5), np.int64)}
    same_numbers(compile_model(folder / "bert.onnx", folder), folder / "bert.onnx", inputs, folder)
