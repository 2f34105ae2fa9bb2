"""Running ds-opt and ds-run on a random or mutated model, within limits of time and memory."""
import os
import re
import subprocess
from pathlib import Path

os.environ["DS_CACHE"] = ""  # thousands of models that nobody compiles again
TIMEOUT, MEMORY_GIB = 60, 8


class Fault(Exception):
    """Ends a run of a model: its class and what was seen."""


def call(arguments, folder):
    """Raises a Fault unless the tool succeeds: `diagnosed` where one line says why not."""
    command = ["sh", "-c", f'ulimit -v {MEMORY_GIB << 20}; ulimit -c 0; exec "$@"', "sh", *map(str, arguments)]
    name = Path(arguments[0]).name
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL, cwd=folder)
    except subprocess.TimeoutExpired:
        raise Fault("HANG", f"{name}: still running after {TIMEOUT} s")
    text = done.stderr.decode(errors="replace").strip()
    if done.returncode not in (0, 1):
        raise Fault("CRASH", f"{name}: exit code {done.returncode}: {text[-300:]}")
    lines = [line for line in text.splitlines() if "warning:" not in line]
    if done.returncode:
        if not lines or "error:" not in lines[0]:
            raise Fault("CRASH", f"{name}: exit code {done.returncode} without a message: {text[:300]}")
        if any(not re.search("error:|note:", line) or len(line) > 1000 for line in lines):
            raise Fault("LONG", f"{name}: {text[:600]}")
        raise Fault("diagnosed", f"{name}: {lines[0]}")
