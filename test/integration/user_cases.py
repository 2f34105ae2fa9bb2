"""What users meet around a compilation and a run: interrupted work, full disks, permissions, names of packages."""
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import numpy as np

import generate
from kit import BIN, ROOT, Skip, case, compile_model, expect, tool


def small(folder):
    return generate.save(generate.small(), folder / "small.onnx")


def start(*command, **keywords):
    return subprocess.Popen([BIN / command[0], *map(str, command[1:])], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, **keywords)


def refused(command, *texts, **keywords):
    """The command ends with exit code 1 and one line on stderr that has these texts."""
    child = start(*command, **keywords)
    out, err = child.communicate(timeout=120)
    shown = f"{' '.join(map(str, command))}\nexit code {child.returncode}\n{err}"
    expect(child.returncode == 1 and err.count("\n") == 1, f"expected exit code 1 and one line: {shown}")
    for text in (*texts, "error:"):
        expect(text in err, f"expected '{text}': {shown}")
    expect("internal" not in err, f"expected what the user can mend: {shown}")


def unfinished(folder):
    return sorted(path.name for path in folder.iterdir() if ".tmp" in path.name)


def interrupted(folder, model, number, name="out.dsp"):
    """Starts a compilation, sends the signal once its folder is there, and returns (process, name of the folder)."""
    def as_by_default():  # whoever runs the tests may ignore some
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)

    child = start("ds-opt", model, "-o", folder / name, preexec_fn=as_by_default)
    deadline = time.time() + 60
    while not (found := [other for other in unfinished(folder) if f".tmp-{child.pid}-" in other]):
        expect(child.poll() is None and time.time() < deadline, "the compilation never made a folder")
        time.sleep(0.001)
    child.send_signal(number)
    return child, found[0]


@case
def interrupted_compilations_leave_nothing(folder):
    model = generate.save(generate.bert(layers=2, hidden=32, heads=2), folder / "bert.onnx")
    out = folder / "packages"
    out.mkdir()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        child, _ = interrupted(out, model, number)
        child.communicate(timeout=60)
        expect(child.returncode == -number, f"expected to end by signal {number}, found {child.returncode}")
        time.sleep(0.2)  # a linker may still be ending
        expect(not list(out.iterdir()), f"signal {number} left {list(out.iterdir())}")


def between(folder, **settings):
    """How to start a tool on the system of system.c."""
    if "SANITIZED" in os.environ:
        raise Skip("the sanitizer stands there already")
    library = folder / "system.so"
    subprocess.run(["cc", "-shared", "-fPIC", Path(__file__).with_name("system.c"), "-o", library, "-ldl"], check=True)
    return {"env": {**os.environ, "LD_PRELOAD": str(library), **settings},
            "preexec_fn": lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL)}


@case
def signals_right_after_something_is_made(folder):
    model, out, temporary = small(folder), folder / "out", folder / "temporary"
    out.mkdir(), temporary.mkdir()
    graph = folder / "graph.mlir"
    tool("ds-opt", model, "--stop-after=graph", "-o", graph)
    verify = [graph, "--ds-widen-floats", "--verify-numerics", "-o", "/dev/null"]
    for at, command in ((".mlir.", [model, "--stop-after=graph", "-o", out / "100%.mlir"]),
                        ("/ds-verify-numerics", verify), ("/before.mlir", verify), ("/before.dsp.tmp-", verify),
                        ("/after.dsp.tmp-", verify)):
        child = start("ds-opt", *command, **between(folder, SIGNAL_AT=at, TMPDIR=str(temporary)))
        _, err = child.communicate(timeout=60)
        expect(child.returncode == -signal.SIGTERM, f"{at}: expected to end by the signal, found {child.returncode}: {err}")
        left = [*out.iterdir(), *temporary.iterdir()]
        expect(not left, f"a signal after {at} was made left {left}")


@case
def file_systems_that_cannot_exchange_names(folder):
    """A package that cannot be moved to its place leaves the one that was there."""
    model, out = small(folder), folder / "out"
    out.mkdir()
    package = out / "x.dsp"
    tool("ds-opt", model, "-o", package, "--reference")
    before = {path.name: path.read_bytes() for path in package.iterdir()}
    refused(["ds-opt", model, "-o", package], "Disk quota exceeded",
            **between(folder, PLAIN_RENAMES="1", REFUSES_RENAMES="1"))
    expect([path.name for path in out.iterdir()] == ["x.dsp"], f"found {list(out.iterdir())}")
    expect({path.name: path.read_bytes() for path in package.iterdir()} == before, "the old package changed")
    child = start("ds-opt", model, "-o", package, **between(folder, PLAIN_RENAMES="1"))
    _, err = child.communicate(timeout=60)
    expect(child.returncode == 0 and [path.name for path in out.iterdir()] == ["x.dsp"], f"{err}: {list(out.iterdir())}")
    expect({path.name: path.read_bytes() for path in package.iterdir()} != before, "the package was not replaced")
    tool("ds-run", package, "--dim=n=1", "--seed=1")


@case
def killed_compilations_are_swept_by_the_next(folder):
    model = generate.save(generate.bert(layers=2, hidden=32, heads=2), folder / "bert.onnx")
    out = folder / "packages"
    out.mkdir()
    living, own = interrupted(out, model, signal.SIGSTOP)
    killed, abandoned = interrupted(out, model, signal.SIGKILL, "killed.dsp")
    killed.communicate(timeout=60)
    expect((out / abandoned).is_dir(), "expected the folder of the killed process to be there still")
    # What looks like it and holds something else, or has another name, is not ours to remove.
    stem = own.rsplit("-", 1)[0]
    for name, file in ((stem + "-0123abcd", "thesis.txt"), ("out.dsp.tmp-notes", "weights.bin"),
                       ("out.dsp.tmp-0123abcd", "weights.bin")):
        (out / name).mkdir()
        (out / name / file).write_text("mine")
    (out / (stem + "-0123abce")).write_text("a file")
    before = set(unfinished(out))
    tool("ds-opt", small(folder), "-o", out / "other.dsp")
    expect(before - set(unfinished(out)) == {abandoned},
           f"expected {abandoned} alone to be removed, found {before - set(unfinished(out))}")
    living.send_signal(signal.SIGCONT)
    _, err = living.communicate(timeout=120)
    expect(living.returncode == 0, f"the process that was alive could not finish: {err}")
    tool("ds-run", "inspect", out / "out.dsp")


@case(seconds=3)
def names_of_packages(folder):
    model = small(folder)
    (folder / "here").mkdir()
    tool("ds-opt", model, "-o", f"{folder}/slash.dsp/")
    tool("ds-opt", model, "-o", f"{folder}/slash.dsp//")  # replaces it
    tool("ds-run", f"{folder}/slash.dsp/", "--dim=n=1", "--seed=1")
    tool("ds-opt", model, "--stop-after=graph", "-o", folder / "small.mlir")
    tool("ds-opt", folder / "small.mlir", "-o", f"{folder}/text.dsp/")
    (folder / "link.dsp").symlink_to("slash.dsp")
    tool("ds-opt", model, "-o", folder / "link.dsp")
    expect((folder / "link.dsp").is_symlink() and not (folder / "slash.dsp").is_symlink(), "the link was replaced")
    tool("ds-run", folder / "link.dsp", "--dim=n=1", "--seed=1")
    project = folder / "project"
    project.mkdir()
    (project / "manifest.json").write_text("{}")
    (project / "SHA256SUMS").write_text("")
    (project / "app.js").write_text("mine")
    (folder / "file.dsp").write_text("mine")
    for name, text in ((f"{folder}/here", "is no package"), (f"{folder}/here/", "is no package"),
                       (".", "is no package"), ("/", "is no package"), ("..", "is no package"),
                       (f"{folder}/file.dsp", "is no folder"), (f"{folder}/file.dsp/", ""), (f"{folder}/file.dsp/x.dsp", ""), (project, "app.js"),
                       (f"{folder}/none/x.dsp", "No such file"), ("/dev/full", "is no folder"),
                       (f"{folder}/{'x' * 300}.dsp", "too long")):
        refused(["ds-opt", model, "-o", name], str(name), text, cwd=folder)
        refused(["ds-opt", "missing.onnx", "-o", name], str(name), cwd=folder)  # known before the model is read
    expect((folder / "file.dsp").read_text() == "mine" and len(list(project.iterdir())) == 3, "a user's file is gone")
    expect(not unfinished(folder), f"found {unfinished(folder)}")


@case(seconds=4)
def disks_that_are_full(folder):
    """A limit on the size of files stands for a disk without room."""
    model, out = small(folder), folder / "out"
    out.mkdir()
    package = compile_model(model, folder)
    sizes = sorted(path.stat().st_size for path in package.iterdir())
    for limit in (0, *(size - 1 for size in sizes)):
        refused(["ds-opt", model, "-o", out / "x.dsp"],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        expect(not list(out.iterdir()), f"limit of {limit} bytes: found {list(out.iterdir())}")
    refused(["ds-opt", model, "--stop-after=graph", "-o", out / "x.mlir"],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    expect(not list(out.iterdir()), f"found {list(out.iterdir())}")
    refused(["ds-opt", model, "--stop-after=graph", "-o", "/dev/full"], "/dev/full", "No space left")
    refused(["ds-opt", model, "-o", out / "x.dsp", "--dump-dir", "/dev/full"], "/dev/full")
    tool("ds-opt", model, "--stop-after=graph", "-o", folder / "graph.mlir")
    tool("ds-opt", folder / "graph.mlir", "--ds-widen-floats", "--verify-numerics", "-o", "/dev/full", code=1,
         says="/dev/full: error: No space left")
    for arguments in (["--help"], ["--version"], ["--list-phases"], [model, "--stop-after=graph"],
                      [model, "-o", out / "x.dsp", "--report"], [model, "--check"], [model, "--emit=onnx"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "ds-opt", *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
        expect(done.returncode == 1 and "No space left" in done.stderr and done.stderr.count("error:") == 1,
               f"ds-opt {arguments}: exit code {done.returncode}: {done.stderr}")


def other_user(folder):
    """How to run a tool as somebody who may not read what this user protects."""
    if os.getuid() != 0:
        return {}
    folder.chmod(0o755)
    try:
        subprocess.run([BIN / "ds-run", "--version"], user=65534, group=65534, extra_groups=[], check=True,
                       capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Skip(f"another user cannot run the tools: {error}")
    return {"user": 65534, "group": 65534, "extra_groups": []}


@case
def files_that_others_may_not_read(folder):
    other = other_user(folder)
    model = small(folder)
    package = compile_model(model, folder)
    n = "--dim=n=1"
    for name in ("manifest.json", "weights.bin", "SHA256SUMS", next(path.name for path in package.glob("code-*"))):
        (package / name).chmod(0)
        for command in (["ds-run", package, n], ["ds-run", "inspect", package], ["ds-run", "bench", package, n],
                        ["ds-run", "profile", package, n], ["ds-run", "compare", package, package, n]):
            refused(command, name, "Permission denied", **other)
        (package / name).chmod(0o644)
    locked = folder / "locked"
    locked.mkdir()
    shutil.copytree(package, locked / "model.dsp")
    np.savez(locked / "x.npz", x=np.zeros((1, 4), np.float32))
    open_package = folder / "open.dsp"
    shutil.copytree(package, open_package)
    locked.chmod(0)
    package.chmod(0)
    denied = "Permission denied"
    for found in (package, locked / "model.dsp"):
        for command in (["ds-run", found, n], ["ds-run", "inspect", found],
                        ["ds-run", "compare", open_package, found, n]):
            refused(command, str(found), denied, **other)
    for option in ("--inputs", "--state-in"):
        refused(["ds-run", open_package, n, "--seed=1", option, locked / "x.npz"], "x.npz", denied, **other)
    refused(["ds-run", open_package, "--input", f"x=@{locked}/x.npy"], "x.npy", denied, **other)
    refused(["ds-run", open_package, n, "--seed=1", "--output", locked / "y.npz"], "y.npz", denied, **other)
    refused(["ds-opt", model, "-o", locked / "x.dsp"], "x.dsp", denied, **other)
    refused(["ds-opt", model, "-o", locked / "deep/x.dsp"], "x.dsp", denied, **other)
    refused(["ds-opt", model, "--stop-after=graph", "-o", locked / "x.mlir"], "x.mlir", denied, **other)
    model.chmod(0)
    refused(["ds-opt", model, "--check"], model.name, denied, **other)
    for path in (package, locked):
        path.chmod(0o755)  # the folder of this case is removed


@case
def packages_follow_the_umask(folder):
    model = small(folder)
    for mask in (0o022, 0o077, 0o002):
        package = folder / f"{mask:o}.dsp"
        child = start("ds-opt", model, "-o", package, umask=mask)
        _, err = child.communicate(timeout=60)
        expect(child.returncode == 0, err)
        for path in (package, *package.iterdir()):
            mode = stat.S_IMODE(path.stat().st_mode)
            wanted = (0o777 if path == package or path.suffix == ".so" else 0o666) & ~mask
            expect(mode == wanted, f"umask {mask:o}: {path.name} has mode {mode:o}, expected {wanted:o}")
        text = folder / f"{mask:o}.mlir"
        child = start("ds-opt", model, "--stop-after=graph", "-o", text, umask=mask)
        child.communicate(timeout=60)
        mode = stat.S_IMODE(text.stat().st_mode)
        expect(mode == 0o666 & ~mask, f"umask {mask:o}: {text.name} has mode {mode:o}")


@case(seconds=12)
def compare_with_the_reference_twin(folder):
    """By default: no difference that rounding explains is reported, and one that it does not explain is."""
    model = generate.save(generate.bert(layers=2, hidden=32, heads=2), folder / "bert.onnx")
    package = compile_model(model, folder)
    sizes = ["--dim=batch=2", "--dim=sequence=7"]
    for name in ("--reference", "--reference=f64"):
        twin = compile_model(model, folder, name, name="twin.dsp")
        for pair in ((package, twin), (twin, package), (package, package)):
            for seed in range(3):
                result = tool("ds-run", "compare", *pair, *sizes, f"--seed={seed}")
                expect("block : " not in result.out and "block #" not in result.out, f"unnamed blocks: {result}")
    lines = tool("ds-run", "compare", package, twin, *sizes).out.splitlines()
    named = [{value["value"] for launch in json.loads((path / "manifest.json").read_text())["variants"][0]["entries"][0]
              ["launches"] for value in launch["results"] if value["value"]} for path in (package, twin)]
    alone = {line.split(": only in ")[0].removeprefix("block ") for line in lines if ": only in " in line}
    expect(alone == named[0] ^ named[1], f"without a partner: {sorted(alone)}, expected {sorted(named[0] ^ named[1])}")
    import onnx
    changed = onnx.load(model)
    for tensor in changed.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) == 2:
            values = onnx.numpy_helper.to_array(tensor).copy()
            values[0] += np.float32(0.5)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    other = compile_model(generate.save(changed, folder / "changed.onnx"), folder, name="changed.dsp")
    tool("ds-run", "compare", package, other, *sizes, code=1)


STEP = """
func.func @main(%x: tensor<3xf32> {ds.name = "x", ds.dims = [3]}, %i: tensor<?xi64> {ds.name = "i", ds.dims = ["n"]},
                %total: tensor<3xf32> {ds.name = "total", ds.dims = [3], ds.state = "total"})
    -> (tensor<?xf32> {ds.name = "y"}, tensor<3xf32> {ds.state = "total"}) attributes {ds.entry} {
  %next = ds.binary add %total, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %y = ds.gather 0 %next, %i : (tensor<3xf32>, tensor<?xi64>) -> tensor<?xf32>
  return %y, %next : tensor<?xf32>, tensor<3xf32>
}
"""


class Library:
    """The C API, as far as a training loop needs it."""

    def __init__(self):
        import ctypes
        self.c = ctypes
        self.api = ctypes.CDLL(str(BIN.parent / "lib/libds_runtime.so"))
        for name in ("ds_package_load", "ds_session_create", "ds_session_run", "ds_session_save_states",
                     "ds_session_restore_states", "ds_session_reset_states"):
            getattr(self.api, name).restype = ctypes.c_void_p
        self.api.ds_status_message.restype = ctypes.c_char_p

        class Tensor(ctypes.Structure):
            _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_int),
                        ("rank", ctypes.c_size_t), ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]

        self.Tensor = Tensor

    def call(self, name, *arguments):
        """The message of the status; empty for success."""
        status = getattr(self.api, name)(*arguments)
        return self.api.ds_status_message(self.c.c_void_p(status)).decode() if status else ""

    def open(self, package):
        loaded, session = self.c.c_void_p(), self.c.c_void_p()
        message = self.call("ds_package_load", str(package).encode(), None, self.c.byref(loaded))
        expect(not message, message)
        message = self.call("ds_session_create", loaded, None, self.c.byref(session))
        expect(not message, message)
        return session

    def run(self, session, outputs, **inputs):
        tensors = (self.Tensor * len(inputs))()
        for slot, (name, value) in zip(tensors, inputs.items()):
            shape = (self.c.c_int64 * value.ndim)(*value.shape)
            slot.struct_size, slot.name, slot.rank = self.c.sizeof(self.Tensor), name.encode(), value.ndim
            slot.type = {"float32": 1, "int64": 4}[value.dtype.name]
            slot.shape, slot.data = shape, value.ctypes.data
        return self.call("ds_session_run", session, self.c.c_size_t(0), tensors, self.c.c_size_t(len(inputs)),
                         self.c.byref(outputs))


@case
def a_failed_step_leaves_no_half_written_state(folder):
    """An index out of range after the sum was written, in a real package."""
    (folder / "step.mlir").write_text(STEP)
    package = compile_model(folder / "step.mlir", folder)
    entry = json.loads((package / "manifest.json").read_text())["variants"][0]["entries"][0]
    state = next(i for i, buffer in enumerate(entry["buffers"]) if buffer["role"] == "state")
    writes = [any(value["buffer"] == state for value in launch["results"]) for launch in entry["launches"]]
    gathers = next(i for i, launch in enumerate(entry["launches"]) if any(value["value"] == "y" or entry["buffers"][
        value["buffer"]]["role"] == "output" for value in launch["results"]))
    is_written = any(writes[:gathers])
    if "SANITIZED" in os.environ:
        raise Skip("the library needs a process that was built with the sanitizer")
    library = Library()
    session, outputs = library.open(package), library.c.c_void_p()
    x, good, bad = np.array([1, 2, 4], np.float32), np.array([2, 0]), np.array([2, 3])

    def saved():
        path = folder / "state.npz"
        path.unlink(missing_ok=True)
        message = library.call("ds_session_save_states", session, str(path).encode())
        expect(path.exists() != bool(message), f"a file and a message: {message}")
        return message or np.load(path)["total"]

    expect(library.run(session, outputs, i=good, x=x) == "", "the inputs go by their names")
    before = saved()
    expect(np.array_equal(before, x), f"found {before}")
    (folder / "state.npz").rename(folder / "before.npz")
    message = library.run(session, outputs, x=x, i=bad)
    expect("index out of range" in message, message)
    after = saved()
    if is_written:
        expect("'total' may be half written" in str(after) and message in after, f"expected a refusal: {after}")
        expect("may be half written" in library.run(session, outputs, x=x, i=good), "the next call ran")
        message = library.call("ds_session_restore_states", session, str(folder / "before.npz").encode())
        expect(not message, message)
    else:
        expect(np.array_equal(after, before), f"expected {before}, found {after}")
    expect(library.run(session, outputs, x=x, i=good) == "", "the call after")
    expect(np.array_equal(saved(), 2 * x), f"expected {2 * x}, found {saved()}")
    library.run(session, outputs, x=x, i=bad)
    expect(library.call("ds_session_reset_states", session) == "", "reset")
    expect(np.array_equal(saved(), 0 * x), "expected the initial value")


@case
def installing_asks_for_a_release(folder):
    if not (BIN.parent / "cmake_install.cmake").exists():
        raise Skip("the tools do not lie in a build tree")
    for options in ([], ["--config", "Release"]):  # which does not make it one
        done = subprocess.run(["cmake", "--install", BIN.parent, "--prefix", folder / "root", "--component", "runtime", *options],
                              capture_output=True, text=True)
        expect(done.returncode != 0 and "cmake --preset release" in " ".join(done.stderr.split()), done.stderr)
        expect(not (folder / "root").exists(), "something was installed")
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    dev = next(preset for preset in presets if preset["name"] == "dev")
    expect("install" in dev["displayName"], "the preset dev does not say that it is not to be installed")
