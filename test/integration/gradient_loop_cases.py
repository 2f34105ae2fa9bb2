"""Gradients through loops: recurrences, Scan and counted Loops, against differences in float64 or what paper says."""
import numpy as np
from onnx import parser, save

from gradient_graph_cases import GRADIENT, HEADER, agree, numbers, results
from gradients import Gradients
from kit import case, tool


def recurrence(g, kind, gates, steps, batch, width, hidden, attributes="", result="y", extra="", **more):
    g.test(f"{'y' if result == 'y' else 'all, y'} = {kind} <hidden_size = {hidden}{attributes}> (x, w, r, b{extra})",
           dims={"x": ("steps", "batch", width)}, x=g.numbers(steps, batch, width), w=g.numbers(1, gates * hidden, width, low=-1, high=1),
           r=g.numbers(1, gates * hidden, hidden, low=-1, high=1), b=g.numbers(1, 2 * gates * hidden), **more)


@case(seconds=23)
def recurrences(folder):
    """Of dynamic length and batch; all states, and the last one."""
    g = Gradients(opset=22)
    recurrence(g, "RNN", 1, 4, 2, 3, 2)
    recurrence(g, "GRU", 3, 3, 2, 2, 3, result="last")
    recurrence(g, "GRU", 3, 3, 1, 2, 2, ", linear_before_reset = 1")
    recurrence(g, "LSTM", 4, 3, 2, 2, 3)
    recurrence(g, "LSTM", 4, 4, 1, 2, 2, result="last", extra=', "", h, c', h=g.numbers(1, 1, 2), c=g.numbers(1, 1, 2))
    recurrence(g, "LSTM", 4, 1, 2, 2, 2, result="last")
    g.verify(folder, orders=(1,))


@case(seconds=14)
def recurrences_of_second_order(folder):
    g = Gradients(opset=22)
    recurrence(g, "RNN", 1, 3, 1, 2, 2)
    recurrence(g, "GRU", 3, 2, 1, 1, 2, result="last")
    recurrence(g, "LSTM", 4, 3, 1, 1, 1)
    g.verify(folder, elements=(), orders=(2,))


@case(seconds=3)
def scans(folder):
    """What is handed on, what is read by rows, forwards and backwards, what all iterations share, what each yields."""
    g = Gradients(opset=21)
    g.test("""last, out = Scan <num_scan_inputs = 1, body = b (h, row) => (next, o) {
                m = Mul (h, row)
                s = Add (m, shared)
                next = Tanh (s)
                o = Sin (next)
              }> (x, rows)
              sum = ReduceSum <keepdims = 0> (out)
              y = Add (last, sum)""", x=g.numbers(2), rows=g.numbers(4, 2), shared=g.numbers(2), dims={"rows": ("n", 2)})
    g.test("""last, y = Scan <num_scan_inputs = 2, body = b (h, row, other) => (next, o) {
                m = Mul (row, other)
                next = Add (h, m)
                o = Mul (next, next)
              }> (x, rows, others)""", x=g.numbers(3), rows=g.numbers(5, 3), others=g.numbers(5, 3), dims={"rows": ("n", 3), "others": ("n", 3)})
    g.verify(folder)


@case
def counted_loops(folder):
    """A Loop of a run-time number of iterations, none at all, one in another."""
    x = numbers(3)
    text = f"""
      m (float[3] x, int64 trips) => (dx, ddx) {{
        y = Loop (trips, "", x) <body = b (int64 i, bool g, float[3] at) => (bool h, float[3] next) {{
          h = Identity (g)
          next = Sin (at)
        }}>
        dx = {GRADIENT} <xs = ["x"], zs = ["trips"], y = "y"> (x, trips)
        ddx = {GRADIENT} <xs = ["x"], zs = ["trips"], y = "dx"> (x, trips)
      }}"""
    for trips in (0, 1, 4):
        at, slope, bend = x.astype(float), 1, 0
        for _ in range(trips):  # chain rule, twice
            bend = -np.sin(at) * slope**2 + np.cos(at) * bend
            slope, at = np.cos(at) * slope, np.sin(at)
        agree(results(folder, text, {"x": x, "trips": np.array(trips)}), dx=slope * np.ones(3), ddx=bend * np.ones(3))
    nested = f"""
      m (float[3] x, float[3] w, int64 trips, int64 inner) => (dx, dw) {{
        y = Loop (trips, "", x) <body = b (int64 i, bool g, float[3] at) => (bool h, float[3] next) {{
          h = Identity (g)
          scaled = Mul (at, w)
          next = Loop (inner, "", scaled) <body = c (int64 j, bool k, float[3] low) => (bool l, float[3] high) {{
            l = Identity (k)
            high = Mul (low, w)
          }}>
        }}>
        dx, dw = {GRADIENT} <xs = ["x", "w"], zs = ["trips", "inner"], y = "y"> (x, w, trips, inner)
      }}"""
    w = numbers(3)
    for trips, inner in ((2, 3), (3, 0), (0, 2)):
        power, wide, base = trips * (inner + 1), x.astype(float), w.astype(float)
        agree(results(folder, nested, {"x": x, "w": w, "trips": np.array(trips), "inner": np.array(inner)}),
              dx=base**power, dw=power * wide * base**(power - 1) if power else np.zeros(3))


@case
def loops_that_a_condition_ends(folder):
    """An error at the node, not a wrong number."""
    save(parser.parse_model(HEADER.format("") + f"""
      m (float[3] x, int64 trips) => (dx) {{
        go = Constant <value_int = 1> ()
        yes = Cast <to = 9> (go)
        y = Loop (trips, yes, x) <body = b (int64 i, bool g, float[3] at) => (bool h, float[3] next) {{
          next = Sin (at)
          sum = ReduceSum <keepdims = 0> (next)
          zero = Constant <value_float = 0.0> ()
          h = Greater (sum, zero)
        }}>
        dx = {GRADIENT} <xs = ["x"], zs = ["trips"], y = "y"> (x, trips)
      }}"""), folder / "m.onnx")
    tool("ds-opt", folder / "m.onnx", "-o", folder / "m.dsp", code=1, says=["'scf.while' has no derivative where a condition may end it"])
