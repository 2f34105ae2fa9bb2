"""What ds-run profile writes: a page and JSON with the same numbers, whatever nodes are called."""
import json
import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

import generate
from kit import case, compile_model, expect, tool

HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ['</title><script src="http://example.com/x.js"></script>', "<img src=x onerror='alert(1)'>", '"><a href="//example.com">',
           "&lt;b&amp;", "]]><!-- ", "\x01\x1f\ttab", "ü\U0001f600" * 30, "\uffff\ufffe", "/" * 50, "'quoted' \"twice\""]


def profiled(package, folder, *options):
    report, page = folder / "profile.json", folder / "profile.html"
    text = tool("ds-run", "profile", package, *options, "--threads=1", "--duration=0.05", "--json", report, "--html", page, "--trace", folder / "trace.json").out
    return json.loads(report.read_text()), page.read_text(encoding="utf-8"), text


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def rows_of(page, name):
    """Per row of a table: the names, in full, and the numbers, in full."""
    table = next(element for element in page.iter(HTML + "table") if element.get("id") == name)
    return [([cell.get("title") for cell in row if cell.get("title") is not None],
             [json.loads(cell.get("data-value")) for cell in row if cell.get("data-value") is not None])
            for row in table.find(HTML + "tbody")]


def check_page(report, text):
    page = ElementTree.fromstring(text)
    html_parser = HTMLParser()
    html_parser.feed(text)  # as a browser would read it
    html_parser.close()

    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td",
               "svg", "g", "rect", "line", "circle", "text"}
    for element in page.iter():
        tag = element.tag.removeprefix(HTML).removeprefix(SVG)
        expect(tag in allowed, f"unexpected element {tag}")
        for name, value in element.attrib.items():
            expect(name not in ("src", "href", "style") and not name.startswith("on") and "}" not in name, f"{tag} {name}={value}")
    for style in page.iter(HTML + "style"):
        expect("url(" not in style.text and "@import" not in style.text, "the style loads something")
    expect(not re.search(r"<script|<link|<img|<iframe|<object|javascript:", text), "the page has an element that loads or runs something")

    expect(close(report["ms"], sum(node["ms"] for node in report["nodes"])), "nodes do not add up")
    for name, keys in (("kernels", ("kernel", "site")), ("nodes", ("site", "kernel", "layer"))):
        found = rows_of(page, name)
        expect(len(found) == len(report[name]) > 0, f"{name}: {len(found)} rows for {len(report[name])}")
        times = [share["ms"] for share in report[name]]
        expect(times == sorted(times, reverse=True), f"{name}: not sorted: {times}")
        expect(close(sum(times), report["ms"]), f"{name}: do not add up")
        for (names, numbers), share in zip(found, report[name]):
            wanted = ["".join(" " if c < " " or c in "\ufffe\uffff" else c for c in share[key]) for key in keys]
            expect(names == wanted, f"{name}: {names}, expected {wanted}")
            ms, bytes_ = share["ms"], share["memory_bytes"] + share["workspace_bytes"]
            derived = [ms, ms / report["ms"], share["calls"], share["flops"] / ms * 1e-6, bytes_ / ms * 1e-6, share["roofline_ms"],
                       share["roofline_ms"] / ms]
            expect(all(map(close, numbers, derived)) and len(numbers) == len(derived), f"{name}: {numbers}, expected {derived}")
            expect(0 < share["roofline_ms"] < math.inf, f"{share}")
    bars = [json.loads(group.get("data-value")) for group in page.iter(SVG + "g") if group.get("class") == "layer"]
    expect(bars == [layer["ms"] for layer in report["layers"]], f"bars: {bars}")
    points = [element for element in page.iter(SVG + "circle") if element.get("class") == "kernel"]
    plotted = [share["kernel"] for share in report["kernels"] if share["flops"] > 0]
    expect([point.find(SVG + "title").text.split("\n")[0] for point in points] == plotted, "points of the roofline")
    for point in points:
        expect(64 <= float(point.get("cx")) <= 824 and 12 <= float(point.get("cy")) <= 432, f"a point outside: {point.attrib}")
    lines = [element for element in page.iter(SVG + "line") if element.get("class") == "ceiling"]
    expect(len(lines) >= 3, f"{len(lines)} ceilings, expected two of memory and one of arithmetic")
    return page


@case
def a_page_of_a_transformer(folder):
    """Four equal layers are four bars, and the numbers are those of the JSON of the same run."""
    model = generate.save(generate.bert(layers=4, hidden=64, heads=2), folder / "bert.onnx")
    package = compile_model(model, folder)
    report, text, printed = profiled(package, folder, "--dim=batch=1", "--dim=sequence=16")
    check_page(report, text)
    names = [layer["name"] for layer in report["layers"]]
    expect([name for name in names if name.startswith("layer")] == [f"layer {i} of 4" for i in (1, 2, 3, 4)], f"layers: {names}")
    layers = [layer for layer in report["layers"] if layer["name"].startswith("layer")]
    expect(len({(layer["calls"], layer["flops"], layer["memory_bytes"]) for layer in layers}) == 1, f"equal layers differ: {layers}")
    expect(close(sum(layer["ms"] for layer in report["layers"]), report["ms"]), "layers do not add up")
    expect(sum(layer["calls"] for layer in report["layers"]) == report["launches"], "launches are lost")
    expect(printed.startswith(f"{report['launches']} launches"), f"printed: {printed[:200]}")
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    expect(len(events) == report["launches"], f"{len(events)} events for {report['launches']} launches")
    for kernel in report["kernels"]:
        expect(kernel["kernel"] in printed, f"{kernel['kernel']} is not printed")
    gather = [share for share in report["kernels"] if share["kernel"].startswith("gather")]
    expect(gather and all(share["memory_bytes"] < 64 * 4 * 16 * 10 for share in gather), f"tables count by their rows: {gather}")


@case
def names_that_are_markup(folder):
    nodes, last = [], "x"
    for i, name in enumerate(HOSTILE):
        nodes += [helper.make_node("MatMul", [last, "w"], [f"h{i}"], name=name), helper.make_node("Erf", [f"h{i}"], [f"e{i}"], name=name + "!")]
        last = f"e{i}"
    graph = helper.make_graph(nodes, HOSTILE[0], [generate.value("x", TensorProto.FLOAT, "n", 8)],
                              [generate.value(last, TensorProto.FLOAT, "n", 8)], [numpy_helper.from_array(np.eye(8, dtype=np.float32), "w")])
    path = folder / '<b>&"m.onnx'
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    package = compile_model(path, folder, "--fusion=none")
    report, text, _ = profiled(package, folder, "--dim=n=3")
    page = check_page(report, text)
    expect(page.find(f"{HTML}body/{HTML}h1").text.startswith('<b>&"m.onnx, entry '), "the model's name was changed")
    sites = {node["site"] for node in report["nodes"]}
    missing = [name for name in HOSTILE if name + "!" not in sites and name not in sites]
    expect(not missing, f"nodes without a row: {missing}; found {sites}")


@case
def pages_of_small_and_odd_programs(folder):
    """One launch, no arithmetic, no elements."""
    x = generate.value("x", TensorProto.FLOAT, "n", 4)
    for name, nodes, n in (("copy", [helper.make_node("Identity", ["x"], ["y"])], 3), ("one", [helper.make_node("Tanh", ["x"], ["y"])], 0)):
        graph = helper.make_graph(nodes, "g", [x], [generate.value("y", TensorProto.FLOAT, "n", 4)])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / f"{name}.onnx")
        package = compile_model(folder / f"{name}.onnx", folder, name=f"{name}.dsp")
        report, text, _ = profiled(package, folder, f"--dim=n={n}")
        ElementTree.fromstring(text)
        expect(not re.search(r"\b(nan|inf)\b", text), f"{name}: {text}")
        expect(all(math.isfinite(node["ms"]) for node in report["nodes"]), f"{report}")
    tool("ds-run", "profile", package, "--dim=n=1", "--html", folder / "none/file", code=1, says="none/file")
    for option in ("--html", "--json", "--trace"):
        tool("ds-run", "profile", package, "--dim=n=1", f"{option}=", code=2)
