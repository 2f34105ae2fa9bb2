"""What is said of a compilation: remarks once, slow kernels by name, and on a terminal where it stands."""
import os
import pty
import re
import subprocess

from onnx import parser, save

import generate
from integer_cases import HEAD
from kit import BIN, MINILM, case, expect, tool


def on_terminal(*command):
    """What a program writes to its stderr where that is a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    child.stdout.read()
    os.close(ours)
    return child.wait(), text.decode()


@case
def one_line_at_the_end(folder):
    """Of who watches: seconds, size, layers; who does not watch reads nothing."""
    model = generate.save(generate.small(), folder / "small.onnx")
    code, text = on_terminal(BIN / "ds-opt", model, "-o", folder / "m.dsp", "--no-cache")
    match = re.fullmatch(r"(?:\r\x1b\[Kds-opt: \w+, \d+ s)*(?:\r\x1b\[K)?ds-opt: \S+m\.dsp: [\d.]+ s, ([\d.]+) kB\r\n", text)
    size = sum(path.stat().st_size for path in (folder / "m.dsp").rglob("*") if path.is_file())
    expect(code == 0 and match and abs(float(match[1]) - size / 1e3) < 0.06, f"{size} bytes, found {text!r}")
    for ending in ("", ", from the cache"):
        code, text = on_terminal(BIN / "ds-opt", model, "-o", folder / "c.dsp", f"--cache={folder / 'cache'}")
        expect(code == 0 and text.endswith(f" kB{ending}\r\n"), f"{text!r}")
    expect(tool("ds-opt", model, "-o", folder / "m.dsp", "--no-cache").err == "", "expected no line without a terminal")
    code, text = on_terminal(BIN / "ds-opt", folder / "none.onnx", "-o", folder / "n.dsp")
    expect(code == 1 and text.count("\n") == 1 and "none.onnx" in text, f"{text!r}")


@case(seconds=12)
def a_long_compilation_shows_where_it_stands(folder):
    code, text = on_terminal(BIN / "ds-opt", MINILM, "-o", folder / "m.dsp", "--no-cache", "--mcpu=x86-64-v3,x86-64-v4,znver4,skylake")
    shown = re.findall(r"\r\x1b\[Kds-opt: (\w+), (\d+) s", text)
    last = text.split("\x1b[K")[-1]
    expect(code == 0 and re.search(r"m\.dsp: [\d.]+ s, [\d.]+ MB, 3 layers recognised", last), f"{text!r}")
    seconds = float(re.search(r": ([\d.]+) s", last)[1])
    expect(seconds < 2.5 or (shown and {stage for stage, _ in shown} <= {"import", "graph", "training", "distribution", "optimization", "memory",
                                                                       "codegen", "output"} and int(shown[0][1]) >= 2), f"{shown}")


@case
def slow_kernels_have_a_line_each(folder):
    """Plain loops, copies and what stands alone; a kernel that is launched often has one line with the number."""
    save(parser.parse_model(HEAD + """
m (float[n, 8] x, double[n, 8] d) => (float[8, n] t, float[8, n] t2, double[n, n] p, float[n, 8] s)
{
  t = Transpose <perm = [1, 0]> (x)
  e = Softmax (x)
  s = Softmax (e)
  t2 = Transpose <perm = [1, 0]> (s)
  r = Transpose <perm = [1, 0]> (d)
  p = MatMul (d, r)
}
"""), folder / "m.onnx")
    for arguments in (["--check"], ["-o", folder / "m.dsp", "--report"]):
        out = tool("ds-opt", folder / "m.onnx", *arguments).out
        lines = out[out.index("kernels slow"):].splitlines()[1:]
        copies = [line for line in lines if "only copies (ds.transpose), 2 launches, the first of '" in line]
        expect(len(copies) == 1, f"expected one line for both copies: {out}")
    save(parser.parse_model(HEAD + "m (float[n, 8] x) => (float[n, 8] y) { y = Softmax (x) }"), folder / "fast.onnx")
    expect(tool("ds-opt", folder / "fast.onnx", "--check").out.count("\n") == 1, "nothing is slow there")


@case
def equal_remarks_are_said_once(folder):
    result = tool("ds-opt", MINILM, "-o", folder / "m.dsp", "--report")
    remarks = [line.split(": remark: ", 1)[1] for line in result.err.splitlines() if ": remark: " in line]
    texts = [re.sub(r" \(\d+ times, the last of '.*'\)$", "", remark) for remark in remarks]
    expect(len(set(texts)) == len(texts) > 3, f"said twice: {[text for text in texts if texts.count(text) > 1]}")
    times = [int(found[1]) for remark in remarks if (found := re.search(r"\((\d+) times, the last of '", remark))]
    expect(times and max(times) >= 3 and len(remarks) < 30, f"expected fewer lines than 56 with their numbers: {remarks}")
