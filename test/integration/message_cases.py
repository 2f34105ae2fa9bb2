"""A message is a line, whatever names are in it: with control characters in the names of tensors, dimensions, nodes, files and
keys, each command prints as many lines as with plain names, and no control character but the ends of lines."""
import json
import re

import onnx
from onnx import TensorProto, helper

import generate
from kit import case, expect, tool

# As lines end, a terminal is steered, and a text changes its direction.
BREAKS = ("\n", "\r\n", "\x1b[31m", "\x07", "\x85", "\u2028", "\u202e")


def model_of(name, folder, operator="Relu"):
    x, y, n = name("x"), name("y"), name("n")
    graph = helper.make_graph([helper.make_node(operator, [x], [y], name=name("node"))], name("graph"),
                              [generate.value(x, TensorProto.FLOAT, n, 3)], [generate.value(y, TensorProto.FLOAT, n, 3)])
    path = folder / f"{name(operator)}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def commands(name, folder):
    """Right ones and wrong ones, in an order that builds on one another."""
    good, bad = model_of(name, folder), model_of(name, folder, "Nothing")
    package, config = folder / f"{name('p')}.dsp", folder / f"{name('config')}.json"
    config.write_text(json.dumps({name("key"): 1, "train_micro_batch_size_per_gpu": name("many")}))
    dim = f"--dim={name('n')}=2"
    return [
        ("ds-opt", good, "-o", package), ("ds-opt", "--inputs", good), ("ds-opt", "--check", good), ("ds-opt", "--check", bad),
        ("ds-opt", folder / name("none.onnx"), "-o", package), ("ds-opt", good, "-o", folder / name("no") / "x.dsp"),
        ("ds-opt", good, "-o", package, f"--dim={name('other')}=2"), ("ds-opt", good, "-o", package, f"--{name('option')}=2"),
        ("ds-opt", good, "-o", package, f"--mcpu={name('cpu')}"), ("ds-opt", good, "-o", package, f"--shape={name('x')}=1"),
        ("ds-opt", good, "-o", package, f"--cache={config / 'under'}", dim),
        ("ds-opt", good, "-o", folder / "t.dsp", "--mode=train", f"--loss={name('y')}", f"--config={config}"),
        ("ds-run", package), ("ds-run", package, dim), ("ds-run", "inspect", package), ("ds-run", "compare", package, package, dim),
        ("ds-run", package, f"--dim={name('other')}=2"), ("ds-run", package, f"--input={name('z')}=1"),
        ("ds-run", package, dim, f"--output={folder / name('no') / 'y.npz'}"), ("ds-run", folder / name("none.dsp")),
        ("ds-run", name("inspec"), package), ("ds-run", f"--{name('option')}", package), ("ds-run", "profile", package, f"--entry={name('e')}")]


def hostile(text):
    return text[:1] + BREAKS[sum(map(ord, text)) % len(BREAKS)] + text[1:]


@case(seconds=3)
def a_message_is_a_line(folder):
    compared = 0
    for which in ("plain", "hostile"):
        (folder / which).mkdir()
    for clean, odd in zip(commands(str, folder / "plain"), commands(hostile, folder / "hostile")):
        expected, found = (tool(*command, code=None) for command in (clean, odd))
        expect(found.code == expected.code, f"exit codes differ: {expected}, {found}")
        for kind in ("out", "err"):
            lines, texts = getattr(expected, kind).split("\n"), getattr(found, kind).split("\n")
            expect(len(lines) == len(texts), f"{kind}: expected {len(lines)} lines as in {expected}, found {len(texts)}: {found}")
            unseen = re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", "\n".join(texts))
            expect(not unseen, f"{kind}: characters that show nothing: {unseen}, {found}")
            compared += len(texts) - 1
    expect(compared > 40, f"compared {compared} lines only")
