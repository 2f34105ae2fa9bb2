"""That guard pages (test/guarded) see what leaves a buffer: kernels whose manifest states other sizes than they were compiled for."""
import json

import numpy as np

from kit import case, compile_model, tool

PROGRAM = """func.func @main(%x: tensor<64xf32> {{ds.name = "x", ds.dims = [64]}}) -> (tensor<64xf32> {{ds.name = "y"}}) attributes {{ds.entry}} {{
  %y = {0} : (tensor<64xf32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}}
"""


def damaged(folder, text, change):
    """A package of one kernel whose entry in the manifest is changed, and an input of the size that it then states."""
    (folder / "program.mlir").write_text(PROGRAM.format(text))
    package = compile_model(folder / "program.mlir", folder, "--mcpu=x86-64-v3")
    manifest = json.loads((package / "manifest.json").read_text())
    entry = manifest["variants"][0]["entries"][0]
    change(entry)
    (package / "manifest.json").write_text(json.dumps(manifest))
    np.savez(folder / "in.npz", x=np.ones(int(entry["inputs"][0]["shape"][0]), np.float32))
    return [package, "--no-verify", "--inputs", folder / "in.npz", "--output", folder / "out.npz"]


@case
def a_read_behind_the_end_is_seen(folder):
    command = damaged(folder, "ds.unary neg %x", lambda entry: entry["inputs"][0].update(shape=["63"]))
    tool("ds-run", *command)
    tool("ds-run-guarded-front", *command)
    tool("ds-run-guarded-end", *command, code=-11, says="access 0 bytes behind the end of a buffer of 252 bytes")


@case
def a_read_before_the_front_is_seen(folder):
    def longer(entry):
        entry["sizes"] = ["65"]
        entry["outputs"][0].update(shape=["65"])
    command = damaged(folder, "ds.slice %x starts [63] sizes [64] steps [-1]", longer)
    tool("ds-run", *command)
    tool("ds-run-guarded-end", *command)
    tool("ds-run-guarded-front", *command, code=-11, says="access 4 bytes before a buffer of 256 bytes")


@case
def a_write_behind_the_end_is_seen(folder):
    command = damaged(folder, "ds.unary neg %x", lambda entry: entry["outputs"][0].update(shape=["63"]))
    tool("ds-run", *command)
    tool("ds-run-guarded-end", *command, code=-11, says="behind the end of a buffer of 252 bytes")
