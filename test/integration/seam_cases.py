"""The smallest real programs over the seams that later work stands on: state, collectives, branches, shared weights.

No frontend writes such programs yet, so they are given as text.
"""
import json
import shutil

import numpy as np

from kit import BIN, case, compile_model, expect, tool

HAS_MPI = bool(shutil.which("mpirun")) and (BIN.parent / "lib/libds_mpi.so").exists()

STATE = """
func.func @main(%x: tensor<?xf32> {ds.name = "x", ds.dims = ["n"]},
                %total: tensor<3xf32> {ds.name = "total", ds.dims = [3], ds.state = "total"})
    -> (tensor<f32> {ds.name = "mean"}, tensor<3xf32> {ds.state = "total"}) attributes {ds.entry} {
  %sum = ds.reduce sum %x axes [0] keep false : (tensor<?xf32>) -> tensor<f32>
  %next = ds.binary add %total, %sum : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %mean = ds.reduce mean %next axes [0] keep false : (tensor<3xf32>) -> tensor<f32>
  return %mean, %next : tensor<f32>, tensor<3xf32>
}
"""

ALL_REDUCE = """
func.func @main(%x: tensor<?xf32> {ds.name = "x", ds.dims = ["n"]}) -> (tensor<?xf32> {ds.name = "y"})
    attributes {ds.entry} {
  %double = ds.binary add %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %pending = dist.all_reduce_start sum %double site "gradient" : tensor<?xf32>
  %other = ds.unary neg %x : (tensor<?xf32>) -> tensor<?xf32>
  %sum = dist.wait %pending : tensor<?xf32>
  %y = ds.binary add %sum, %other : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
"""

BRANCH = """
func.func @main(%x: tensor<?x512xf32> {ds.name = "x", ds.dims = ["n", 512]}, %keep: tensor<i1> {ds.name = "keep", ds.dims = []})
    -> (tensor<?x512xf32> {ds.name = "y"}) attributes {ds.entry} {
  %w = ds.weight @w : tensor<512x512xf32>
  %k = tensor.extract %keep[] : tensor<i1>
  %y = scf.if %k -> (tensor<?x512xf32>) {
    %0 = ds.matmul %x, %w transpose [false, false] : (tensor<?x512xf32>, tensor<512x512xf32>) -> tensor<?x512xf32>
    %1 = ds.unary tanh %0 : (tensor<?x512xf32>) -> tensor<?x512xf32>
    %2 = ds.matmul %1, %w transpose [false, false] : (tensor<?x512xf32>, tensor<512x512xf32>) -> tensor<?x512xf32>
    %3 = ds.binary add %x, %2 : (tensor<?x512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    scf.yield %3 : tensor<?x512xf32>
  } else {
    scf.yield %x : tensor<?x512xf32>
  }
  return %y : tensor<?x512xf32>
}
"""

TWO_ENTRIES = """
func.func @forward(%x: tensor<?x512xf32> {ds.name = "x", ds.dims = ["n", 512]}) -> (tensor<?x512xf32> {ds.name = "y"})
    attributes {ds.entry} {
  %w = ds.weight @w : tensor<512x512xf32>
  %y = ds.matmul %x, %w transpose [false, false] : (tensor<?x512xf32>, tensor<512x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
func.func @activated(%x: tensor<?x512xf32> {ds.name = "x", ds.dims = ["n", 512]}) -> (tensor<?x512xf32> {ds.name = "y"})
    attributes {ds.entry} {
  %w = ds.weight @w : tensor<512x512xf32>
  %0 = ds.matmul %x, %w transpose [false, false] : (tensor<?x512xf32>, tensor<512x512xf32>) -> tensor<?x512xf32>
  %y = ds.unary tanh %0 : (tensor<?x512xf32>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
"""


def compile_text(text, folder, weight=None):
    if weight is not None:
        path = folder / "w.bin"
        path.write_bytes(weight.tobytes())
        text += f'ds.recipe @w {{\n  %0 = ds.source "{path}" [0, {weight.nbytes}] : tensor<512x512xf32>\n' \
                "  ds.yield %0 : tensor<512x512xf32>\n}\n"
    (folder / "program.mlir").write_text(text)
    return compile_model(folder / "program.mlir", folder)


@case
def state_updated_in_place_and_saved(folder):
    package = compile_text(STATE, folder)
    entry = json.loads(tool("ds-run", "inspect", package, "--json").out)["variants"][0]["entries"][0]
    states = [i for i, buffer in enumerate(entry["buffers"]) if buffer["role"] == "state"]
    expect(len(states) == 1, f"expected one buffer for the state, old and new: {entry['buffers']}")
    np.save(folder / "x.npy", np.array([1, 2, 4], np.float32))
    saved, expected = [], np.zeros(3, np.float32)
    for call in range(3):
        options = ["--state-in", folder / f"state{call - 1}.npz"] if call else []
        tool("ds-run", package, "--input", f"x=@{folder}/x.npy", "--output", folder / "y.npz", "--state-out",
             folder / f"state{call}.npz", *options)
        expected += 7
        with np.load(folder / f"state{call}.npz") as state, np.load(folder / "y.npz") as outputs:
            expect(np.array_equal(state["total"], expected), f"call {call}: state {state['total']}, expected {expected}")
            expect(outputs["mean"] == expected.mean(), f"call {call}: mean {outputs['mean']}")
            expect(list(outputs) == ["mean"], f"a state is no output, found {list(outputs)}")


@case
def all_reduce_between_two_ranks(folder):
    package = compile_text(ALL_REDUCE, folder)
    x = [np.random.default_rng(rank).standard_normal(1000, np.float32) for rank in range(2)]
    for rank in range(2):
        np.save(folder / f"x{rank}.npy", x[rank])
    found = {}
    for transport in ("threads", "shm", "tcp", *["mpi"] * HAS_MPI):
        tool("ds-run", package, "-n", 2, f"--transport={transport}", "--input", f"x=@{folder}/x{{rank}}.npy", "--output", f"{folder}/y{{rank}}.npz")
        for rank in range(2):
            with np.load(folder / f"y{rank}.npz") as outputs:
                expected = (x[0] + x[0]) + (x[1] + x[1]) - x[rank]
                expect(np.allclose(outputs["y"], expected, 1e-6, 1e-6), f"{transport}: rank {rank}: wrong sum")
                expect(found.setdefault(rank, outputs["y"].tobytes()) == outputs["y"].tobytes(), f"{transport}: rank {rank}: other bits than threads")


@case
def all_reduce_with_a_missing_rank(folder):
    """Named instead of waited for: one rank fails on its input, the other learns of it."""
    package = compile_text(ALL_REDUCE, folder)
    np.save(folder / "x0.npy", np.zeros(4, np.float32))
    for transport in ("threads", "shm", "tcp", *["mpi"] * HAS_MPI):
        result = tool("ds-run", package, "-n", 2, f"--transport={transport}", "--input", f"x=@{folder}/x{{rank}}.npy", "--timeout=2", code=1, timeout=20)
        said = [line for line in result.err.splitlines() if "ds-run: error:" in line]  # mpirun says more
        expect("x1.npy" in result.err and (len(said) == 1 or transport == "mpi"), f"{transport}: expected the missing file by name, in one line: {result}")


@case(seconds=6)
def skipped_block_costs_nothing(folder):
    weight = np.random.default_rng(0).standard_normal((512, 512), np.float32) / 23
    package = compile_text(BRANCH, folder, weight)
    x = np.random.default_rng(1).standard_normal((64, 512), np.float32)
    np.save(folder / "x.npy", x)
    median = {}
    for keep in (0, 1):
        np.save(folder / f"keep{keep}.npy", np.array(bool(keep)))
        inputs = ["--input", f"x=@{folder}/x.npy", "--input", f"keep=@{folder}/keep{keep}.npy"]
        tool("ds-run", package, *inputs, "--output", folder / "y.npz")
        expected = x + np.tanh(x @ weight) @ weight if keep else x
        with np.load(folder / "y.npz") as outputs:
            expect(np.allclose(outputs["y"], expected, 1e-4, 1e-4), f"keep={keep}: wrong numbers")
        tool("ds-run", "bench", package, *inputs, "--threads=1", "--duration=0.3", "--json", folder / "bench.json")
        median[keep] = json.loads((folder / "bench.json").read_text())["latency_ms"]["median"]
    expect(median[0] < median[1] / 5, f"skipping takes {median[0]:.3f} ms, computing {median[1]:.3f} ms")


@case
def two_entries_share_a_packed_weight(folder):
    weight = np.random.default_rng(0).standard_normal((512, 512), np.float32) / 23
    package = compile_text(TWO_ENTRIES, folder, weight)
    stored = (package / "weights.bin").stat().st_size
    expect(weight.nbytes <= stored < 1.5 * weight.nbytes, f"weights.bin has {stored} bytes, the weight {weight.nbytes}")
    constants = json.loads(tool("ds-run", "inspect", package, "--json").out)["variants"][0]["constants"]
    expect(any(constant["layout"] != "dense" for constant in constants), f"the weight is not packed: {constants}")
    x = np.random.default_rng(1).standard_normal((5, 512), np.float32)
    np.save(folder / "x.npy", x)
    for entry, expected in (("forward", x @ weight), ("activated", np.tanh(x @ weight))):
        tool("ds-run", package, "--entry", entry, "--input", f"x=@{folder}/x.npy", "--output", folder / "y.npz")
        with np.load(folder / "y.npz") as outputs:
            expect(np.allclose(outputs["y"], expected, 1e-4, 1e-4), f"{entry}: wrong numbers")
