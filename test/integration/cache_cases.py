"""The cache of finished packages: who compiles again gets the same bytes, whatever happened to the cache meanwhile.

A hit is told from a compilation by the cache: it leaves the entry where it is and marks when it was used.
"""
import contextlib
import os
import subprocess
import time

import numpy as np
from onnx import TensorProto, helper

import generate
from kit import BIN, Skip, case, expect, onnx_runtime, run_package, tool

X = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}


def written(model, path):
    """A model old enough that its times can tell whether it changed."""
    generate.save(model, path)
    time.sleep(0.06)
    return path


def entries(cache):
    """Entry -> (when it was made, when it was used)."""
    def made(path):
        facts = path / "entry.json"
        return (path.stat().st_ino, facts.stat().st_mtime_ns) if facts.exists() else None
    return {path.name: (made(path), path.stat().st_mtime_ns) for path in cache.iterdir() if path.is_dir()} if cache.exists() else {}


def contents(package):
    return {path.name: path.read_bytes() for path in package.iterdir()}


def compiled(model, package, cache, *options, **keywords):
    """How the package came about: hit, kept or not kept."""
    before = entries(cache)
    tool("ds-opt", model, "-o", package, f"--cache={cache}", *options, **keywords)
    after = entries(cache)
    expect(not list(package.parent.glob("*.tmp-*")), f"{list(package.parent.iterdir())}")
    if any(before.get(name, (0,))[0] != made for name, (made, _) in after.items()):
        return "kept"
    return "hit" if any(before[name][1] < used for name, (_, used) in after.items()) else "not kept"


def twice(model, package, cache, *options):
    """Compiled once more, and then not."""
    for wanted in ("kept", "hit"):
        found = compiled(model, package, cache, *options)
        expect(found == wanted, f"{model.name} {' '.join(map(str, options))}: expected {wanted}, found {found}")


@contextlib.contextmanager
def environment(**settings):
    """Variables with these values; None: not set."""
    before = {name: os.environ.get(name) for name in settings}
    try:
        for name, value in settings.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, str(value))
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


@case
def the_other_cases_have_no_cache(folder):
    expect(os.environ.get("DS_CACHE") == "", f"DS_CACHE is {os.environ.get('DS_CACHE')!r}: a stale package could hide a fault")


@case
def a_hit_gives_the_same_package(folder):
    model, cache = written(generate.small(), folder / "m.onnx"), folder / "cache"
    tool("ds-opt", model, "-o", folder / "plain.dsp", "--no-cache")
    expect(not cache.exists(), "--no-cache made a cache")
    expect(compiled(model, folder / "a.dsp", cache) == "kept", "the first compilation was not kept")
    for name in ("b.dsp", "a.dsp", "b.dsp"):  # a new place, and places with this package
        expect(compiled(model, folder / name, cache) == "hit", f"{name}: compiled again")
        expect(contents(folder / name) == contents(folder / "plain.dsp"), f"{name}: other bytes than a compilation writes")
        found = run_package(folder / name, X, folder)["y"]
        expect(np.allclose(found, onnx_runtime(model, X)["y"], 1e-5, 1e-5), "other numbers than ONNX Runtime's")
    generate.save(generate.small(seed=1), folder / "other.onnx")
    tool("ds-opt", folder / "other.onnx", "-o", folder / "b.dsp", "--no-cache")
    expect(compiled(model, folder / "b.dsp", cache) == "hit", "in the place of another package: compiled again")
    expect(contents(folder / "b.dsp") == contents(folder / "plain.dsp"), "the other package was not replaced")


@case(seconds=12)
def whatever_decides_a_result_makes_a_miss(folder):
    cache, package = folder / "cache", folder / "m.dsp"
    model = written(generate.small(), folder / "m.onnx")
    twice(model, package, cache)
    for options in (["--dim", "n=3"], ["--dim=n=4"], ["--mcpu=x86-64-v3"], ["--fusion=none"], ["--reference"], ["--reference=f64"], ["--shape=x=5,4"]):
        twice(model, package, cache, *options)
    large = written(generate.bert(layers=1, hidden=64, heads=2), folder / "bert.onnx")
    for options in ([], ["--quantize=int8"], ["--quantize=int8,group=4"]):
        twice(large, package, cache, *options)
    (folder / "sub").mkdir()
    twice(written(generate.small(seed=1), folder / "m.onnx"), package, cache)
    twice(written(generate.small(), folder / "named.onnx"), package, cache)  # the manifest has the name
    moved = written(generate.small(), folder / "sub/m.onnx")
    expect(compiled(moved, package, cache) == "hit", "the same model in another folder was compiled again")


@case
def programs_are_cached_too(folder):
    cache = folder / "cache"
    model = written(generate.small(), folder / "m.onnx")
    program = folder / "p.mlir"
    tool("ds-opt", model, "--stop-after=graph", "-o", program)
    time.sleep(0.06)
    twice(program, folder / "p.dsp", cache)
    tool("ds-opt", model, "--emit=onnx", "-o", program)
    expect(compiled(program, folder / "q.dsp", cache) == "not kept", "a program of nodes reads files that nobody lists")


@case(seconds=4)
def another_build_makes_a_miss(folder):
    """A library loaded into ds-opt stands for another version of one."""
    if "SANITIZED" in os.environ:
        raise Skip("the sanitizer must be loaded first")
    model, cache = written(generate.small(), folder / "m.onnx"), folder / "cache"
    twice(model, folder / "m.dsp", cache)
    for number in (1, 2):
        source, library = folder / "library.c", folder / "library.so"
        source.write_text(f"int ds_test_version(void) {{ return {number}; }}\n")
        for identity in ("none", "sha1"):
            subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,--build-id={identity}", source, "-o", library], check=True)
            with environment(LD_PRELOAD=library):
                twice(model, folder / "m.dsp", cache)
    expect(compiled(model, folder / "m.dsp", cache) == "hit", "without it: compiled again")


@case(seconds=3)
def data_beside_the_model_is_compared(folder):
    """By content: size and time of the file say nothing. Small tensors are read by the import, large ones at the end."""
    for shape in ((4, 8), (4, 4096)):
        home, cache = folder / f"m{shape[1]}", folder / f"cache{shape[1]}"
        home.mkdir()
        weights, package = np.ones(shape, np.float32), home / "m.dsp"
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="w.bin")
        graph = helper.make_graph(nodes, "g", [generate.value("x", TensorProto.FLOAT, "n", 4)],
                                  [generate.value("y", TensorProto.FLOAT, "n", shape[1])], [tensor])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (home / "w.bin").write_bytes(weights.tobytes())
        twice(written(model, home / "m.onnx"), package, cache)
        first, times = contents(package), (home / "w.bin").stat()
        weights[-1, -1] = 2
        (home / "w.bin").write_bytes(weights.tobytes())
        os.utime(home / "w.bin", ns=(times.st_atime_ns, times.st_mtime_ns))
        time.sleep(0.06)
        twice(home / "m.onnx", package, cache)
        expect(contents(package) != first, "the other weights did not arrive")
        found = run_package(package, {"x": np.ones((1, 4), np.float32)}, folder)["y"]
        expect(found[0, -1] == 5 and found[0, 0] == 4, f"wrong numbers: {found}")
        weights[-1, -1] = 1
        (home / "w.bin").write_bytes(weights.tobytes())
        expect(compiled(home / "m.onnx", package, cache) == "hit", "the first weights again: compiled again")
        expect(contents(package) == first, "other bytes than before")
        (home / "w.bin").rename(folder / "elsewhere.bin")
        (home / "w.bin").symlink_to(folder / "elsewhere.bin")
        tool("ds-opt", home / "m.onnx", "-o", package, f"--cache={cache}", code=1, says="w.bin")


@case
def outputs_are_apart_from_the_cache(folder):
    """Who writes into a package, or removes it, changes neither the cache nor another package."""
    model, cache = written(generate.small(), folder / "m.onnx"), folder / "cache"
    tool("ds-opt", model, "-o", folder / "plain.dsp", "--no-cache")
    plain = contents(folder / "plain.dsp")
    compiled(model, folder / "a.dsp", cache), compiled(model, folder / "b.dsp", cache)
    for name in ("a.dsp", "b.dsp"):
        for path in (folder / name).iterdir():
            path.chmod(0o644)
            with open(path, "r+b") as file:
                file.write(b"x" * 10)
        expect(compiled(model, folder / "c.dsp", cache) == "hit", f"{name} was written to: compiled again")
        expect(contents(folder / "c.dsp") == plain, f"what was written into {name} came back")
        expect(compiled(model, folder / name, cache) == "hit", "compiled again")
        expect(contents(folder / name) == plain, f"{name} was not repaired")


@case(seconds=23)
def damaged_entries_are_compiled_again(folder):
    model, cache = written(generate.small(), folder / "m.onnx"), folder / "cache"
    twice(model, folder / "m.dsp", cache)
    plain = contents(folder / "m.dsp")
    entry = next(path for path in cache.iterdir() if path.is_dir())
    names = sorted(path.name for path in entry.iterdir())
    expect(len(names) == 5, f"{names}")
    for name in names:
        for damage in (lambda data: data[:-1], lambda data: b"", lambda data: bytes([data[0] ^ 1]) + data[1:], None):
            path = entry / name
            path.chmod(0o644)
            path.write_bytes(damage(path.read_bytes())) if damage else path.unlink()
            subprocess.run(["rm", "-r", folder / "m.dsp"], check=True)
            found = compiled(model, folder / "m.dsp", cache)
            expect(found == "kept", f"{name} was damaged: expected a compilation that is kept, found {found}")
            expect(contents(folder / "m.dsp") == plain, f"{name} was damaged: other bytes")


@case(seconds=12)
def processes_share_a_cache(folder):
    """Several at once, to one place and to others, with room for one package only."""
    models = [written(generate.small(seed), folder / f"{seed}.onnx") for seed in (1, 2)]
    for seed, model in enumerate(models, 1):
        tool("ds-opt", model, "-o", folder / f"plain{seed}.dsp", "--no-cache")
    size = sum(map(len, contents(folder / "plain1.dsp").values()))
    for bound in ("1G", str(size * 3 // 2)):
        cache = folder / f"cache{bound}"
        started = [subprocess.Popen([BIN / "ds-opt", models[i % 2], "-o", folder / f"{'same' if i < 4 else i}.dsp",
                                     f"--cache={cache}", f"--cache-size={bound}"], stderr=subprocess.PIPE, text=True)
                   for i in list(range(8)) * 2]
        for process in started:
            _, err = process.communicate(timeout=120)
            expect(process.returncode == 0 and not err, f"exit code {process.returncode}: {err}")
        plain = [contents(folder / f"plain{seed}.dsp") for seed in (1, 2)]
        for i in range(4, 8):
            expect(contents(folder / f"{i}.dsp") == plain[i % 2], f"{i}.dsp: other bytes")
        expect(contents(folder / "same.dsp") in plain, "same.dsp is neither package")
        names = sorted(path.name for path in cache.iterdir() if path.is_dir())
        held = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
        expect(len(names) == (2 if bound == "1G" else 1), f"{bound}: {held} bytes in {names}: {[list(path.iterdir()) for path in cache.iterdir() if path.is_dir()]}")
        leftovers = list(folder.glob("*.tmp-*")) + list(cache.glob("new-*"))
        expect(not leftovers, f"left over: {leftovers}")


@case(seconds=6)
def a_cache_is_bounded(folder):
    cache = folder / "cache"
    models = [written(generate.small(seed), folder / f"{seed}.onnx") for seed in range(3)]
    how = [compiled(model, folder / "m.dsp", cache, "--cache-size=0") for model in models]
    expect(how == ["not kept"] * 3, f"a cache of no bytes: {how}")
    for model in models[:2]:
        twice(model, folder / "m.dsp", cache)
    size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    compiled(models[0], folder / "m.dsp", cache)  # so that 1 was used longest ago
    how = compiled(models[2], folder / "m.dsp", cache, f"--cache-size={size + 200}")
    kept = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    expect(how == "kept" and kept <= size + 200, f"{how}: {kept} bytes, expected at most {size + 200}")
    how = [compiled(models[i], folder / "m.dsp", cache) for i in (0, 2, 1)]
    expect(how == ["hit", "hit", "kept"], f"expected that 1 had to go, found {how}")
    for text in ("10X", "-1", "", "1.5G", "G", "99999999999T"):
        tool("ds-opt", models[0], "-o", folder / "m.dsp", f"--cache-size={text}", code=2, says="--cache-size expects")


@case
def a_cache_that_cannot_be_written(folder):
    """One warning, and a package."""
    model = written(generate.small(), folder / "m.onnx")
    (folder / "file").write_text("")
    for place in (folder / "file", folder / "file/cache", "/proc/cache"):
        package = folder / "m.dsp"
        result = tool("ds-opt", model, "-o", package, f"--cache={place}")
        lines = result.err.splitlines()
        expect(len(lines) == 1 and f"ds-opt: warning: the cache '{place}' is not used: " in lines[0], f"{result}")
        run_package(package, X, folder)
        with environment(DS_CACHE=place):  # the same, whoever names the folder
            expect(tool("ds-opt", model, "-o", package).err.splitlines() == lines, f"DS_CACHE: other than {lines}")


@case
def a_cache_on_a_full_disk(folder):
    model, cache = written(generate.small(), folder / "m.onnx"), folder / "cache"
    cache.mkdir()
    script = 'mount -t tmpfs -o size=20k none "$1" || exit 99; shift; "$@" && ls "$0"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, cache, cache, BIN / "ds-opt", model, "-o", folder / "m.dsp",
                           f"--cache={cache}"], capture_output=True, text=True)
    if done.returncode == 99 or "unshare" in done.stderr:
        raise Skip("needs to mount a small file system")
    expect(done.returncode == 0 and len(done.stderr.splitlines()) == 1 and "No space left" in done.stderr, f"{done}")
    expect("new-" not in done.stdout and "-" not in done.stdout, f"left over: {done.stdout}")
    run_package(folder / "m.dsp", X, folder)


@case
def a_folder_that_can_only_be_read(folder):
    """What is kept there is used; root may write everywhere, so a file system that is mounted read-only."""
    model, cache = written(generate.small(), folder / "m.onnx"), folder / "cache"
    other = written(generate.small(seed=1), folder / "other.onnx")
    twice(model, folder / "m.dsp", cache)
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 99; "$@"'
    for path, warnings in ((model, 0), (other, 1)):
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, cache, BIN / "ds-opt", path, "-o", folder / "n.dsp",
                               f"--cache={cache}"], capture_output=True, text=True)
        if done.returncode == 99 or "unshare" in done.stderr:
            raise Skip("needs to mount a file system")
        expect(done.returncode == 0 and done.stderr.count("warning:") == len(done.stderr.splitlines()) == warnings, f"{done}")
        run_package(folder / "n.dsp", X, folder)


@case(seconds=6)
def the_default_folder(folder):
    model = written(generate.small(), folder / "m.onnx")
    home, cache = folder / "home", folder / "xdg"
    home.mkdir()

    def used(where, warns="", **settings):
        with environment(**{"DS_CACHE": None, "XDG_CACHE_HOME": None, "HOME": None, **settings}):
            result = tool("ds-opt", model, "-o", folder / "m.dsp")
        expect(warns in result.err and (warns or not result.err), f"{settings}: {result}")
        places = [path for path in (home / ".cache/deepstride", cache / "deepstride", folder / "own") if entries(path)]
        expect(places == ([where] if where else []), f"{settings}: expected {where}, found {places}")
        for path in places:
            expect(path.stat().st_mode & 0o077 == 0, f"{path} is open to others")
            subprocess.run(["rm", "-r", path], check=True)
        run_package(folder / "m.dsp", X, folder)

    used(None)
    used(None, HOME="")
    used(home / ".cache/deepstride", HOME=home)
    used(home / ".cache/deepstride", HOME=home, XDG_CACHE_HOME="relative")
    used(cache / "deepstride", HOME=home, XDG_CACHE_HOME=cache)
    used(folder / "own", HOME=home, DS_CACHE=folder / "own")
    used(None, HOME=home, DS_CACHE="")
    (home / ".cache/deepstride").mkdir(parents=True)
    (home / ".cache/deepstride").chmod(0o777)
    used(None, warns="expected", HOME=home)
    if os.geteuid() == 0:
        os.chown(home / ".cache/deepstride", 12345, -1), (home / ".cache/deepstride").chmod(0o755)
        used(None, warns="to belong to this user", HOME=home)


@case
def what_was_printed_is_printed_again(folder):
    """A shape that the model states wrongly is a warning, which names the file as it was given."""
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], name="a")], "g", [generate.value("x", TensorProto.FLOAT, 2, 3)],
                              [generate.value("y", TensorProto.FLOAT, 2, 3)])
    graph.node.add(op_type="Relu", input=["y"], output=["z"], name="b")
    graph.output[0].CopyFrom(generate.value("z", TensorProto.FLOAT, 2, 3))
    graph.value_info.append(generate.value("y", TensorProto.FLOAT, 4, 5))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path, cache = written(model, folder / "m.onnx"), folder / "cache"
    said = []
    for given in (path, path, folder / "./m.onnx", os.path.join(folder, ".", "m.onnx"), f"{folder}/./m.onnx", f"{folder}/./m.onnx"):
        before = entries(cache)
        said.append((str(given), tool("ds-opt", given, "-o", folder / "m.dsp", f"--cache={cache}").err,
                     {name: made for name, (made, _) in before.items()} == {name: made for name, (made, _) in entries(cache).items()}))
    for given, err, _ in said:
        expect(err.count("warning:") == 1 and err.startswith(f"{given}: 'a': warning: "), f"{given}: {err}")
    expect([hit for _, _, hit in said][:2] == [False, True] and said[-1][2], f"hits: {said}")


@case(seconds=3)
def what_prints_more_is_compiled(folder):
    model, cache = written(generate.small(), folder / "m.onnx"), folder / "cache"
    twice(model, folder / "m.dsp", cache)
    before = entries(cache)
    for _ in range(2):
        for options in (["--report"], ["--dump-dir", folder / "dumps"]):
            result = tool("ds-opt", model, "-o", folder / "m.dsp", f"--cache={cache}", *options)
            expect("linear" in result.out + result.err or options[0] != "--report", f"no report: {result}")
        expect(len(list((folder / "dumps").iterdir())) >= 4, "no dumps")
        subprocess.run(["rm", "-r", folder / "dumps"], check=True)
        expect("func.func" in tool("ds-opt", model, "--stop-after=graph", f"--cache={cache}").out, "no program")
        expect("supported" in tool("ds-opt", "--check", model, f"--cache={cache}").out, "no answer")
    expect(entries(cache) == before, "the cache was used")


@case
def faults_are_found_with_a_cache_too(folder):
    """What is refused before a compilation is refused before a hit."""
    model, cache = written(generate.small(), folder / "m.onnx"), folder / "cache"
    twice(model, folder / "m.dsp", cache)
    (folder / "diary").mkdir()
    (folder / "diary/today").write_text("dear")
    tool("ds-opt", model, "-o", folder / "diary", f"--cache={cache}", code=1)
    (folder / "d.dsp").mkdir()
    (folder / "d.dsp/today").write_text("dear")
    for package in (folder / "d.dsp", folder / "none/m.dsp", folder / "m.onnx/m.dsp"):
        tool("ds-opt", model, "-o", package, f"--cache={cache}", code=1, says="cannot write")
    expect((folder / "d.dsp/today").read_text() == "dear", "a folder that is no package was touched")
    tool("ds-opt", model, "-o", folder / "m.dsp", f"--cache={cache}", "--mcpu=z80", code=2)
    (folder / "m.onnx").unlink()
    tool("ds-opt", model, "-o", folder / "m.dsp", f"--cache={cache}", code=1, says="No such file")
