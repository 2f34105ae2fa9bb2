"""Random command lines over the tools' own option tables, and interrupts at random moments: whatever is given, a tool ends in
time with exit code 0, 1 or 2 and, where that is not 0, says why."""
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from kit import BIN
from launch_runs import signals_by_default

PATIENCE = 120
NUMBERS = ("", "-1", "0", "x", "nan", "inf", "1e400", "99999999999999999999", "2.5", " 3", "0x10", "\u0663", "--")
PATHS = ("", "/proc/none/x", "/dev/null", "/dev/full", ".", "-", "a" * 5000, "\x01\n", "\udcff", "m.onnx", "m.dsp", "text.txt", "empty")
TEXTS = ("", "=", "n", "n=", "=3", "n=-1", "n=3=4", "x=@none.npy", "x=[[1,2],[3]]", "x=[", "n=99999999999999999999", "\u00fc", "'", "$(x)", "*", "a" * 5000)
# --exec runs whatever stands behind it, and a thousand ranks would be started.
LEFT_OUT = {"--exec", "--mode", "--help", "-h", "--version", "--hostfile", "-H", "--include", "-i", "--exclude", "-e", "--launcher", "--num_nodes", "--num_gpus"}
LEAST = {"--ranks": ("", "-1", "0", "x", "99999999"), "--duration": ("", "-1", "x", "nan", "0.001", "1e9"), "--streams": ("", "0", "-1", "x", "9999"),
         "--iterations": ("", "-1", "0", "x", "2.5", "99999999"), "--warmup": ("", "-1", "x", "99999999"), "--cache-size": ("", "x", "-1", "1Y")}
RIGHT = {"--dim": "n=3", "--input": "x=1", "--inputs": "x.npz", "--duration": "0.02", "--iterations": "2", "--warmup": "0", "--streams": "2",
         "--percentiles": "50", "--values": "y", "--seed": "1", "--threads": "1", "--ranks": "2", "--timeout": "5", "--entry": "main",
         "--mcpu": "x86-64-v3", "--rtol": "1e-3", "--atol": "1e-5", "--graph": "g.svg", "--shape": "x=n,4", "--quantize": "int8",
         "--memory": "1GiB", "--mesh": "data=2", "--cache-size": "1G", "--onnxruntime": "m.onnx", "--module-depth": "1", "--top-modules": "1",
         "--reference": "f64", "--config": "c.json", "--labels": "z", "--logits": "y", "--loss": "mse", "--train": ".*", "--freeze": "b",
         "--no-decay": "b", "--head": "y:3", "--ceilings": "bench.json", "--data": "t.npz", "--eval-data": "t.npz", "--tag": "global_step1",
         "--checkpoint": "ck", "--state-in": "empty.npz", "--device-memory": "1GiB", "--min-lr": "1e-6", "--max-lr": "1e-3", "--resume": "global_step1"}
# Options of ds-opt that need --mode=train, and what a training is.
TRAINING = {"--loss": "mse", "--logits": "y", "--labels": "z"}
FOR_TRAINING = {*TRAINING, "--shift-labels", "--ignore-index", "--train", "--freeze", "--no-decay", "--head", "--seed", "--untie", "--config", "--memory",
                "--mesh", "--plan", "--strict", "--print-config"}
# What each command of ds-run is given at the least.
ARGUMENTS = {"": ["m.dsp"], "bench": ["m.dsp"], "profile": ["m.dsp"], "inspect": ["m.dsp"], "compare": ["m.dsp"], "probe": [], "gradients": ["t.dsp"],
             "train": ["t.dsp", "--data=t.npz", "--steps=1"], "eval": ["t.dsp", "--data=t.npz"], "schedule": ["t.dsp"],
             "lr-range": ["t.dsp", "--data=t.npz", "--steps=3"], "checkpoint": ["verify", "ck"]}


def tables(tool):
    """Options and their values by command, from the manual page that the tool makes of its table."""
    page = subprocess.run([BIN / tool, "--man-page"], capture_output=True, text=True, check=True).stdout.replace("\\-", "-").replace("\\:", "")
    found = {}
    for part in re.split(r"^\.S[SH] ", page, flags=re.M):
        title = part.splitlines()[0].strip('"')
        if title != "OPTIONS" and not title.startswith(tool):
            continue
        options = found.setdefault("" if title == "OPTIONS" else title.split()[1], {})
        for line in re.findall(r"^\.TP\n(.*)", part, re.M):
            for name, bracket, value in re.findall(r"\\fB(-[\w-]+)\\fR(?:(\[?)[= ]\\fI(.*?)\\fR)?", line):
                options[name] = bracket + value  # "[FILE": a value that may be left out
    return found


class Lines:
    """Command lines for a folder that command_line_cases.prepare has filled; every other one is legal but for one value."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tables = {tool: tables(tool) for tool in ("ds-run", "ds-opt")}

    def right(self, name, value):
        if "|" in value and name not in RIGHT:
            return self.random.choice(value.split("|"))
        return RIGHT.get(name, "out.file" if value.startswith(("FILE", "PATH")) else "out" if value.startswith("DIR") else "1")

    def wrong(self, name, value):
        is_path, is_number = value.startswith(("FILE", "DIR", "MODEL", "PATH")), value in ("N", "SECONDS", "BYTES", "UINT", "FLOAT")
        return self.random.choice(LEAST.get(name) or (PATHS if is_path else NUMBERS if is_number else TEXTS + NUMBERS))

    def arguments(self, tool, command, chosen):
        """What makes the chosen options legal."""
        if tool == "ds-opt":
            words = ["m.onnx"]
            if FOR_TRAINING & set(chosen):
                words += ["--mode=train", *(f"{name}={value}" for name, value in TRAINING.items() if name not in chosen)]
            return words + ([] if {"--check", "--plan", "--stop-after", "--emit"} & set(chosen) else ["-o", "out.dsp"])
        words = list(ARGUMENTS[command])
        if command == "compare" and "--onnxruntime" not in chosen:
            words.append("m.dsp")
        if words[:1] == ["m.dsp"] and command != "inspect" and not {"--dim", "--input", "--inputs"} & set(chosen):
            words.append("--dim=n=3")
        if command == "gradients" and not {"--dim", "--input", "--inputs"} & set(chosen):
            words.append("--dim=n=3")
        if command in ("bench", "profile") and not {"--duration", "--iterations"} & set(chosen):
            words.append("--iterations=2")
        return words

    def next(self):
        tool = self.random.choice(("ds-run", "ds-run", "ds-opt"))
        command = self.random.choice(sorted(self.tables[tool]))
        options = {name: value for name, value in self.tables[tool][command].items() if name not in LEFT_OUT and name != "-o"}
        chosen = self.random.sample(sorted(options), min(len(options), self.random.randint(1, 3)))
        words = ([command] if command else []) + self.arguments(tool, command, chosen)
        values = {name: self.right(name, options[name].strip("[")) if options[name] else None for name in chosen}
        taking = [name for name in chosen if options[name]]
        if self.random.random() < 0.5:
            if taking and self.random.random() < 0.8:
                victim = self.random.choice(taking)
                values[victim] = self.wrong(victim, options[victim].strip("["))
            else:
                words.insert(self.random.randint(0, len(words)), self.random.choice(TEXTS + PATHS + tuple(options)))
        for name, value in values.items():
            is_joined = options[name].startswith("[") or (name.startswith("--") and self.random.random() < 0.7)
            words += [name] if value is None else [f"{name}={value}"] if is_joined else [name, value]
        return tool, words


def environment(folder):
    for name in ("tmp", "home"):
        Path(folder, name).mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(Path(folder, "tmp")), "HOME": str(Path(folder, "home")), "DS_CACHE": "", "DS_NUM_THREADS": "2",
            "DS_PYTHON": sys.executable}


def fault_of(folder, tool, words):
    """What is wrong with how the tool took a command line, empty if nothing is, and its exit code."""
    shown = f"{tool} {' '.join(repr(word[:80]) for word in words)}"
    command = [str(BIN / tool), *words]
    try:
        done = subprocess.run([os.fsencode(word) for word in command], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"{shown}: still running after {PATIENCE} s", None
    err = done.stderr.decode(errors="replace")
    if done.returncode not in (0, 1, 2):
        return f"{shown}: exit code {done.returncode}: {err[-500:]}", done.returncode
    # A comparison that finds a difference says so on standard output.
    if done.returncode and not re.search(r"\w{3}", err) and not done.stdout.strip():
        return f"{shown}: exit code {done.returncode} without a word", done.returncode
    if "internal error" in err or "Assertion" in err or "reproducer" in err:
        return f"{shown}: {err[-500:]}", done.returncode
    return "", done.returncode


def left_behind(folder):
    """Files that nobody asked for."""
    return sorted(str(path.relative_to(folder)) for path in Path(folder, "tmp").rglob("*")) + [
        path.name for path in Path(folder).iterdir() if re.search(r"tmp|unfinished|\.part", path.name) and path.name != "tmp"]


def interrupt(folder, tool, words, after, results):
    """Ctrl-C after so many seconds. Returns what is wrong, and whether the tool was interrupted before it had ended."""
    before = {path.name for path in Path(folder).iterdir()}
    child = subprocess.Popen([BIN / tool, *words], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=signals_by_default)
    time.sleep(after)
    os.killpg(child.pid, signal.SIGINT)
    try:
        err = child.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return f"{tool} after {after:.3f} s: still running {PATIENCE} s later", True
    # A shell has 130 for a process that the signal has ended, too.
    if child.returncode not in (0, 130, -signal.SIGINT):
        return f"{tool} after {after:.3f} s: exit code {child.returncode}: {err[-500:]}", True
    is_done = child.returncode == 0
    new = {path.name for path in Path(folder).iterdir()} - before - {"tmp", "home"}
    wrong = left_behind(folder) + sorted(new - set(results))
    if not is_done:
        wrong += sorted(new & set(results))
    if wrong:
        return f"{tool} after {after:.3f} s: left {wrong}", not is_done
    return "", not is_done
