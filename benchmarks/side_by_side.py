"""What the benchmarks against ONNX Runtime share: both sides in turn on the same inputs, ratios per round, a bar plot."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / "build/venv"
if Path(sys.prefix) != VENV:
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])

sys.path.insert(0, str(ROOT / "test/integration"))
import numpy as np
import onnxruntime

import judge
import native

WORK = ROOT / "build/benchmarks"
SLICE = 0.05  # seconds
LONGEST = 30  # seconds for all rounds of a row: a call of seconds gets fewer rounds, and its row says how many
SCALE = 1e-3  # ONNX Runtime's Sigmoid rounds small probabilities to 0; errors far below this are no difference


class Refused(Exception):
    """One side does not take the model or the inputs; the text says which and why."""


def cpu():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def tool(command, timeout=600):
    try:
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Refused(f"{Path(command[0]).name} runs longer than {timeout} s") from None
    if run.returncode:
        said = run.stderr.strip().splitlines() or [f"exit code {run.returncode}"]
        raise Refused(f"{Path(command[0]).name}: {said[0]}")


def compile_model(model, package, binaries):
    """The seconds that it takes."""
    start = time.perf_counter()
    tool([binaries / "ds-opt", model, "-o", package, "--no-cache"])
    return time.perf_counter() - start


def bench(package, inputs, arguments):
    """What ds-run bench reports of a package with the inputs of an .npz file."""
    path = WORK / "bench.json"
    tool([arguments.bin / "ds-run", "bench", package, "--no-verify", "--inputs", inputs, f"--threads={arguments.threads}",
          f"--duration={arguments.seconds}", "--json", path])
    return json.loads(path.read_text())


def open_session(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    # Threads that wait in a loop beyond the end of a call would take the processors from the other side.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise Refused(f"ONNX Runtime: {str(error).splitlines()[0]}") from None


# What a call takes: real time, or processor time of the calling thread, which all work is in when there is one thread.
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}


def calls(run, clock, seconds):
    """The ms of each call within a slice of time. A first call that is short wakes threads and fills caches, and does
    not count; for a long one that is nothing."""
    times, end = [], clock() + seconds
    while len(times) < 2 or clock() < end:
        start = clock()
        run()
        times.append(1000 * (clock() - start))
        if times[0] > 1000 * seconds:
            return times
    return times[1:]


class Pair:
    """A package and a session of ONNX Runtime on the same inputs, in this process."""

    def __init__(self, package, session, inputs, folder, arguments):
        threads, binaries = arguments.threads, arguments.bin
        self.clock = CLOCKS[arguments.clock]
        np.savez(folder / "inputs.npz", **inputs)
        self.report = None
        if arguments.roofline:
            tool([binaries / "ds-run", "bench", package, "--no-verify", f"--threads={threads}", "--duration=0.05",
                  "--inputs", folder / "inputs.npz", "--json", folder / "bench.json"])
            self.report = json.loads((folder / "bench.json").read_text())
        self.session, self.inputs = session, inputs
        try:
            self.theirs = session.run(None, inputs)
            # Bound inputs and outputs: no copy and no allocation per call, as on our side.
            self.binding = session.io_binding()
            for name, array in inputs.items():
                self.binding.bind_cpu_input(name, np.ascontiguousarray(array))
            for output in session.get_outputs():
                self.binding.bind_output(output.name)
            session.run_with_iobinding(self.binding)
        except Exception as error:
            raise Refused(f"ONNX Runtime: {str(error).splitlines()[0]}") from None
        self.ours = native.Session(binaries.resolve().parent / "lib/libds_runtime.so", package, inputs, threads)

    def difference(self):
        """The largest relative error of an output: the share of its largest number, or of `SCALE` if that is more. None,
        as JSON has no infinity: another type or shape, other integers, or NaN on one side."""
        self.ours.run()
        results = self.ours.results()
        largest = max(judge.distance(results[output.name], array, SCALE)
                      for output, array in zip(self.session.get_outputs(), self.theirs))
        return largest if np.isfinite(largest) else None

    def round(self, seconds):
        """The ms of all calls of both sides, in slices that take turns, so that both meet the same load."""
        mine, theirs = [], []
        while sum(mine) < 1000 * seconds or sum(theirs) < 1000 * seconds:
            mine += calls(self.ours.run, self.clock, SLICE)
            theirs += calls(lambda: self.session.run_with_iobinding(self.binding), self.clock, SLICE)
        return mine, theirs

    def measure(self, count, seconds):
        """Ratios are those of the rounds: what slows both sides of a round down leaves its ratio as it is. `best_ratio`
        is that of the fastest calls of all rounds, which other work on the machine disturbs least."""
        rounds, end = [], self.clock() + LONGEST
        while len(rounds) < count and (not rounds or self.clock() < end):
            rounds.append(self.round(seconds))
        mine, ort = ([statistics.median(calls) for calls in side] for side in zip(*rounds))
        best = min(min(side) for side, _ in rounds)
        return {
            "rounds": len(rounds), "deepstride_ms": spread(mine), "onnxruntime_ms": spread(ort),
            "ratio": spread([a / b for a, b in zip(mine, ort)]),
            "best_ms": {"deepstride": best, "onnxruntime": min(min(side) for _, side in rounds)},
            "best_ratio": best / min(min(side) for _, side in rounds),
            **({key: self.report[key] for key in ("flops", "bytes", "roofline_ms", "ceilings")} if self.report else {}),
        }

    def close(self):
        self.ours.close()


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def rooflines(rows):
    """The share of the roofline that each row reaches. Of arithmetic, with the best ceiling that any row found: other work
    on the machine makes it lower, never higher; all rows then name the same. Of memory, with the row's own: how fast it
    is depends on how much a call moves."""
    rows = [row for row in rows if "ceilings" in row]
    best = {name: max((row["ceilings"][name] for row in rows if row["ceilings"][name] is not None), default=None)
            for name in (rows[0]["ceilings"] if rows else ()) if name != "working_set_gbps"}
    for row in rows:
        found = row.pop("ceilings")
        memory = row["bytes"] / found["working_set_gbps"] * 1e-6
        compute = row["roofline_ms"] * found["f32_gflops"] / best["f32_gflops"] if row["roofline_ms"] > memory else 0
        row["working_set_gbps"] = found["working_set_gbps"]
        row["roofline_ms"] = max(memory, compute)
        row["roofline_fraction"] = row["roofline_ms"] / row["best_ms"]["deepstride"]
    return best


def turns_parser(description, seconds, rounds):
    """The options of all benchmarks whose sides take turns."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--rounds", type=int, default=rounds)
    result.add_argument("--seconds", type=float, default=seconds, help="per round and side")
    result.add_argument("--threads", type=int, default=2)
    result.add_argument("--bin", type=Path, default=ROOT / "build/bin")
    result.add_argument("--output", type=Path, help="write the result as JSON, for benchmarks/results/, and a plot beside it")
    return result


def parser(description, seconds, rounds):
    result = turns_parser(description, seconds, rounds)
    result.add_argument("patterns", nargs="*", metavar="PATTERN", help="only these")
    result.add_argument("--clock", choices=CLOCKS, default="wall",
                        help="cpu: time of the calling thread, for one thread on a machine with other work")
    result.add_argument("--no-roofline", dest="roofline", action="store_false",
                        help="without ds-run bench, whose ceilings take seconds for every row")
    return result


def parse(of):
    arguments = of.parse_args()
    if getattr(arguments, "clock", "wall") == "cpu" and arguments.threads != 1:
        of.error(f"--clock=cpu counts one thread: expected --threads=1, found --threads={arguments.threads}")
    WORK.mkdir(parents=True, exist_ok=True)
    return arguments


def error(row):
    return "differs" if row["relative_error"] is None else f"{row['relative_error']:.1e}"


def geometric_mean(values):
    return statistics.geometric_mean(values) if values else None


def machine(arguments):
    return {"cpu": cpu(), "threads": arguments.threads, "clock": getattr(arguments, "clock", "wall"),
            "seconds": arguments.seconds, "onnxruntime": onnxruntime.__version__, "load_average": os.getloadavg()[0]}


def plot(path, title, bars):
    """Bars of ratios on a logarithmic axis, left of 1 where we are faster; `bars` are (label, median, min, max)."""
    row, left, width = 18, 300, 560
    edges = [value for bar in bars for value in bar[1:]] + [0.5, 2]
    low, high = (np.log(edge) for edge in (min(edges) / 1.1, max(edges) * 1.1))
    place = lambda ratio: left + width * (np.log(ratio) - low) / (high - low)
    height = 60 + row * len(bars)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 70}" height="{height}" '
             'font-family="sans-serif" font-size="11">',
             f'<rect width="100%" height="100%" fill="white"/><text x="10" y="18" font-size="13">{escape(title)}</text>']
    for tick in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32, 64):
        if low <= np.log(tick) <= high:
            x, shade = place(tick), "black" if tick == 1 else "#cccccc"
            lines.append(f'<line x1="{x:.1f}" y1="42" x2="{x:.1f}" y2="{height - 10}" stroke="{shade}"/>'
                         f'<text x="{x:.1f}" y="38" text-anchor="middle">{tick:g}</text>')
    for number, (label, median, least, most) in enumerate(bars):
        y, start, end = 46 + row * number, *sorted((place(1), place(median)))
        fill = "#3a7d44" if median <= 1 else "#b5493b"
        lines.append(f'<text x="{left - 6}" y="{y + 11}" text-anchor="end">{escape(label)}</text>'
                     f'<rect x="{start:.1f}" y="{y + 1}" width="{max(end - start, 1):.1f}" height="{row - 5}" fill="{fill}"/>'
                     f'<line x1="{place(least):.1f}" y1="{y + row / 2 - 1.5}" x2="{place(most):.1f}" '
                     f'y2="{y + row / 2 - 1.5}" stroke="black" stroke-width="1.5"/>'
                     f'<text x="{left + width + 8}" y="{y + 11}">{median:.2f}</text>')
    path.write_text("\n".join([*lines, "</svg>", ""]))
