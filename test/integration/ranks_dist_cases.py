"""Collectives that no training pass creates yet, in programs given as text: blocks for every rank, what one rank tells all, neighbours.

The oracle is NumPy: what each rank must have, from what all ranks were given."""
import json
import shutil

import numpy as np

from kit import BIN, case, compile_model, expect, tool
from programs import SEED

TRANSPORTS = ("threads", "shm", "tcp", *["mpi"] * bool(shutil.which("mpirun") and (BIN.parent / "lib/libds_mpi.so").exists()))

PROGRAM = """
func.func @main(%a: tensor<?xf32> {ds.name = "a", ds.dims = ["n"]}, %b: tensor<?x3xi64> {ds.name = "b", ds.dims = ["m", 3]},
                %c: tensor<5xf32> {ds.name = "c", ds.dims = [5]}, %d: tensor<7xf32> {ds.name = "d", ds.dims = [7]},
                %e: tensor<?xf32> {ds.name = "e", ds.dims = ["n"]}, %h: tensor<?xi8> {ds.name = "h", ds.dims = ["k"]},
                %s: tensor<33xf32> {ds.name = "s", ds.dims = [33], ds.state = "s"})
    -> (tensor<?xf32> {ds.name = "blocks"}, tensor<?xf32> {ds.name = "space"}, tensor<?x3xi64> {ds.name = "last"}, tensor<?xi8> {ds.name = "first"},
        tensor<?xf32> {ds.name = "next"}, tensor<?xf32> {ds.name = "ring"}, tensor<?xf32> {ds.name = "far"}, tensor<?xi8> {ds.name = "back"},
        tensor<?xf32> {ds.name = "twice"}, tensor<33xf32> {ds.state = "s"}) attributes {ds.entry} {
  %twice = ds.binary add %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %p0 = dist.all_to_all_start %twice site "blocks" : tensor<?xf32>
  %p1 = dist.all_to_all_start %c, %d layouts [#dist.layout<[0, 8] of 16 by 4>] site "space" : tensor<5xf32>, tensor<7xf32>
  %p2 = dist.broadcast_start %b root -1 site "last" : tensor<?x3xi64>
  %p3 = dist.broadcast_start %h root 0 site "first" : tensor<?xi8>
  %old = ds.unary neg %a : (tensor<?xf32>) -> tensor<?xf32>
  %p4 = dist.send_recv_start %twice by 1 into %old : tensor<?xf32> site "next" : tensor<?xf32>
  %p5 = dist.send_recv_start %a by -1 rotate site "ring" : tensor<?xf32>
  %p6 = dist.send_recv_start %a by 3 into %e : tensor<?xf32> site "far" : tensor<?xf32>
  %p7 = dist.send_recv_start %h by -2 into %h : tensor<?xi8> site "back" : tensor<?xi8>
  %p8 = dist.broadcast_start %s root 0 site "state" : tensor<33xf32>
  %y0 = dist.wait %p0 sizes [["ceildiv(n, mesh.data)*mesh.data"]] : tensor<?xf32>
  %y1 = dist.wait %p1 sizes [["4*ceildiv(16, 4*mesh.data)*mesh.data"]] : tensor<?xf32>
  %y2 = dist.wait %p2 : tensor<?x3xi64>
  %y3 = dist.wait %p3 : tensor<?xi8>
  %y7 = dist.wait %p7 : tensor<?xi8>
  %y4 = dist.wait %p4 : tensor<?xf32>
  %y6 = dist.wait %p6 : tensor<?xf32>
  %y5 = dist.wait %p5 : tensor<?xf32>
  %next = dist.wait %p8 : tensor<33xf32>
  return %y0, %y1, %y2, %y3, %y4, %y5, %y6, %y7, %twice, %next : tensor<?xf32>, tensor<?xf32>, tensor<?x3xi64>, tensor<?xi8>,
      tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi8>, tensor<?xf32>, tensor<33xf32>
}
"""


def compiled(text, folder):
    (folder / "program.mlir").write_text(text)
    return compile_model(folder / "program.mlir", folder)


def draw(random, n, m, k):
    return {"a": random.standard_normal(n, np.float32), "b": random.integers(-2**62, 2**62, (m, 3)), "c": random.standard_normal(5, np.float32),
            "d": random.standard_normal(7, np.float32), "e": random.standard_normal(n, np.float32), "h": random.integers(-128, 127, k).astype(np.int8)}


def blocks_for(rank, spaces):
    """Of the spaces of all ranks, each of as many parts: part `rank` of each."""
    return np.concatenate([np.split(space, len(spaces))[rank] for space in spaces])


def padded(array, size):
    return np.concatenate([array, np.zeros(size - len(array), array.dtype)])


def expected(rank, given, states):
    world = len(given)
    n, mine = len(given[0]["a"]), given[rank]
    of = lambda name, other: given[other][name] if 0 <= other < world else None
    whole, space = -(-n // world) * world, -(-16 // (4 * world)) * 4 * world
    before, third, after = of("a", rank - 1), of("a", rank - 3), of("h", rank + 2)
    return {
        "blocks": blocks_for(rank, [padded(2 * each["a"], whole) for each in given]),
        "space": blocks_for(rank, [padded(np.concatenate([padded(each["c"], 8), each["d"]]), space) for each in given]),
        "last": given[-1]["b"], "first": given[0]["h"],
        "next": -mine["a"] if before is None else 2 * before,
        "ring": given[(rank + 1) % world]["a"],
        "far": mine["e"] if third is None else third,
        "back": mine["h"] if after is None else after,
        "twice": 2 * mine["a"], "s": states[0],
    }


def sent_bytes(rank, world, n, m, k):
    """By site, from what the collectives say they do."""
    others, share = world - 1, -(-n // world)
    space = -(-16 // (4 * world)) * 4
    return {"blocks": 4 * others * share, "space": 4 * others * space, "last": others * 24 * m * (rank == others), "first": others * k * (rank == 0),
            "next": 4 * n * (rank + 1 < world), "ring": 4 * n * (world > 1), "far": 4 * n * (rank + 3 < world), "back": k * (rank >= 2),
            "state": others * 132 * (rank == 0)}


def received_bytes(rank, world, n, m, k):
    others = world - 1
    return {**sent_bytes(rank, world, n, m, k), "last": 24 * m * (rank != others), "first": k * (rank != 0), "next": 4 * n * (rank > 0),
            "far": 4 * n * (rank >= 3), "back": k * (rank + 2 < world), "state": 132 * (rank != 0)}


def value(text, names):
    functions = {"ceildiv": lambda a, b: -(-a // b), "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "min": min, "max": max,
                 "eq": lambda a, b: int(a == b), "lt": lambda a, b: int(a < b), "select": lambda c, a, b: a if c else b}
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, f"({names[name]})") if "." in name else text
    return eval(text, functions, {name: number for name, number in names.items() if "." not in name})


def check_plan(package, world, n, m, k):
    """The bytes that the package states, by its expressions."""
    sites = {item["site"]: item for item in json.loads((package / "manifest.json").read_text())["variants"][0]["entries"][0]["collectives"]}
    for rank in range(world):
        names = {"n": n, "m": m, "k": k, "mesh.data": world, "mesh.data.index": rank}
        for key, right in (("sent", sent_bytes(rank, world, n, m, k)), ("received", received_bytes(rank, world, n, m, k))):
            found = {site: value(item[key], names) for site, item in sites.items()}
            expect(found == right, f"rank {rank} of {world}, n={n}: {key} {found}, expected {right}")


@case
def exchanges_on_every_transport(folder):
    package = compiled(PROGRAM, folder)
    random = np.random.default_rng(SEED)
    for world in (1, 2, 3, 4):
        for transport in TRANSPORTS if world > 1 else (None,):
            # Nothing, less than a rank each, what does not divide, more than a message.
            n, m, k = (int(random.choice(sizes)) for sizes in ((0, 1, 2, 7, 1001, 100003), (0, 1, 50, 20001), (0, 1, 3, 1000, 300001)))
            given = [draw(random, n, m, k) for _ in range(world)]
            states = [random.standard_normal(33, np.float32) for _ in range(world)]
            for rank in range(world):
                np.savez(folder / f"in{rank}.npz", **given[rank])
                np.savez(folder / f"state{rank}.npz", s=states[rank])
            launch = ["-n", world, f"--transport={transport}"] if transport else []
            files = [f"{folder}/{name}{{rank}}.npz" if world > 1 else f"{folder}/{name}0.npz" for name in ("in", "out", "state", "after")]
            tool("ds-run", package, *launch, "--inputs", files[0], "--output", files[1], "--state-in", files[2], "--state-out", files[3])
            for rank in range(world):
                right = expected(rank, given, states)
                with np.load(folder / f"out{rank}.npz") as found, np.load(folder / f"after{rank}.npz") as after:
                    for name, array in right.items():
                        here = (after if name == "s" else found)[name]
                        expect(here.dtype == array.dtype and here.tobytes() == array.tobytes(),
                               f"{transport}: rank {rank} of {world}, n={n}, m={m}, k={k}: {name} is wrong, {here} instead of {array}")
            check_plan(package, world, n, m, k)


TELL = """
func.func @main(%x: tensor<?xf32> {ds.name = "x", ds.dims = ["n"]}) -> (tensor<?xf32> {ds.name = "y"}) attributes {ds.entry} {
  %p = dist.broadcast_start %x root 2 site "told/x" : tensor<?xf32>
  %y = dist.wait %p : tensor<?xf32>
  return %y : tensor<?xf32>
}
"""
LINE = """
func.func @main(%x: tensor<?xf32> {ds.name = "x", ds.dims = ["n"]}) -> (tensor<?xf32> {ds.name = "y"}) attributes {ds.entry} {
  %p = dist.send_recv_start %x by 1 into %x : tensor<?xf32> site "forward/x" : tensor<?xf32>
  %y = dist.wait %p : tensor<?xf32>
  return %y : tensor<?xf32>
}
"""


@case
def exchanges_that_cannot_be(folder):
    """Too few ranks, ranks that disagree, and a rank that fails: named, and nobody hangs."""
    (folder / "tell").mkdir(), (folder / "line").mkdir()
    tell, line = compiled(TELL, folder / "tell"), compiled(LINE, folder / "line")
    for name, sizes in (("x", (4, 4)), ("z", (4, 4, 5))):
        for rank, n in enumerate(sizes):
            np.save(folder / f"{name}{rank}.npy", np.full(n, rank, np.float32))
    for transport in ("threads", "shm", "tcp"):
        for package, world, code, name, said in ((tell, 2, 2, "x", "broadcast 'told/x': comes from rank 2, expected more ranks than 2"),
                                                 (line, 3, 1, "z", "ranks disagree: rank "), (line, 3, 1, "x", "x2.npy")):
            result = tool("ds-run", package, "-n", world, f"--transport={transport}", "--input", f"x=@{folder}/{name}{{rank}}.npy", "--timeout=5",
                          "--output", f"{folder}/y{{rank}}.npz", code=code, timeout=40)
            lines = [each for each in result.err.splitlines() if "ds-run: error:" in each]
            expect(lines and all(said in line for line in lines), f"{transport}: {result.err}")
    result = tool("ds-run", tell, "--input", f"x=@{folder}/x0.npy", code=2)
    expect("expected more ranks than 1" in result.err, f"one rank: {result.err}")
