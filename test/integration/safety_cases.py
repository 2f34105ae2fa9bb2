"""Places and counts that come from the run: legal ones give NumPy's result, all others a diagnosis before memory is touched."""
import numpy as np

from kit import case, compile_model, expect, tool
from programs import SEED

HEAD = """
func.func @main(%x: tensor<?x6xf32> {{ds.name = "x", ds.dims = ["n", 6]}},
                %y: tensor<?x6xf32> {{ds.name = "y", ds.dims = ["m", 6]}},
                %at: tensor<4xi64> {{ds.name = "at", ds.dims = [4]}})
    -> ({type} {{ds.name = "z"}}) attributes {{ds.entry}} {{
  {body}
  return %z : {type}
}}
"""
BOX = "(tensor<?x6xf32>) -> tensor<?x?xf32>"


def box(x, start, count, step):
    """The rows of x that a slice names, or nothing where the box reaches outside."""
    if count < 0 or (count > 0 and not (0 <= start < len(x) and 0 <= start + (count - 1) * step < len(x))):
        return None
    return x[[start + i * step for i in range(count)]]


def forward(x, y, at):
    if at[0] < 0 or at[2] < 0 or at[0] + at[1] > len(x) or at[2] + at[3] > 6:
        return None
    rows = box(x, at[0], at[1], 1)
    columns = None if rows is None else box(rows.T, at[2], at[3], 1)
    return None if columns is None else columns.T


def backward(x, y, at):
    if at[1] == 0:  # a walk backwards through nothing may start one place before the first element
        return x[:0] if -1 <= at[0] < len(x) else None
    return box(x, at[0], at[1], -1)


def strided(x, y, at):
    if at[1] == 0:
        return x[:0] if 0 <= at[0] and at[0] - 2 < len(x) else None
    return box(x, at[0], at[1], 2)


def insert(x, y, at):
    if at[0] < 0 or at[1] != 0 or at[0] + len(y) > len(x):
        return None
    result = x.copy()
    result[at[0]:at[0] + len(y)] = y
    return result


def reshape(x, y, at):
    return x.reshape(at[0], at[1]) if at[0] >= 0 and at[1] >= 0 and at[0] * at[1] == x.size else None


def broadcast(x, y, at):
    if at[0] < 0 or (len(x) != at[0] and 1 not in (len(x), at[0])):
        return None
    return np.broadcast_to(x, (len(x) if at[0] == 1 else at[0], 6))


def iota(x, y, at):
    return np.arange(at[0]) if 0 <= at[0] < 1 << 40 else None


def top_k(x, y, at):
    return -np.sort(-x, axis=0, kind="stable")[:at[0]] if 0 <= at[0] <= len(x) else None


def pad(x, y, at):
    if len(x) + at[0] + at[1] < 0:
        return None
    rows = [x[i] if 0 <= i < len(x) else np.full(6, 7, np.float32) for i in range(-at[0], len(x) + at[1])]
    return np.array(rows, np.float32).reshape(len(rows), 6)


OPS = {
    "slice": (forward, "tensor<?x?xf32>",
              '%z = ds.slice %x starts ["at[0]", "at[2]"] sizes ["at[1]", "at[3]"] steps [1, 1] : ' + BOX),
    "slice_backward": (backward, "tensor<?x6xf32>",
                       '%z = ds.slice %x starts ["at[0]", 0] sizes ["at[1]", 6] steps [-1, 1] : '
                       "(tensor<?x6xf32>) -> tensor<?x6xf32>"),
    "slice_strided": (strided, "tensor<?x6xf32>",
                      '%z = ds.slice %x starts ["at[0]", 0] sizes ["at[1]", 6] steps [2, 1] : '
                      "(tensor<?x6xf32>) -> tensor<?x6xf32>"),
    "insert": (insert, "tensor<?x6xf32>",
               '%z = ds.insert %y into %x starts ["at[0]", "at[1]"] : '
               "(tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>"),
    "reshape": (reshape, "tensor<?x?xf32>", '%z = ds.reshape %x ["at[0]", "at[1]"] : ' + BOX),
    "broadcast": (broadcast, "tensor<?x6xf32>",
                  '%z = ds.broadcast %x ["at[0]", 6] : (tensor<?x6xf32>) -> tensor<?x6xf32>'),
    "iota": (iota, "tensor<?xi64>", '%z = ds.iota 0 ["at[0]"] : tensor<?xi64>'),
    "top_k": (top_k, "tensor<?x6xf32>",
              '%z, %i = ds.top_k %x axis 0 k ["at[0]"] largest true : '
              "(tensor<?x6xf32>) -> (tensor<?x6xf32>, tensor<?x6xi64>)"),
    "pad": (pad, "tensor<?x6xf32>",
            "%v = ds.constant dense<7.0> : tensor<f32>\n  "
            '%z = ds.pad constant %x, %v low ["at[0]", 0] high ["at[1]", 0] : '
            "(tensor<?x6xf32>, tensor<f32>) -> tensor<?x6xf32>"),
}


def draws(random):
    """Sizes n and m, then four places or counts, most of them near the edges of what is legal."""
    far = [-1, -2, -10**8, -2**63, 2**31, 2**62, 2**63 - 1]
    for _ in range(60):
        n, m = (int(random.choice([0, 1, 2, 5, 7])) for _ in range(2))
        near = [0, 0, 1, 2, 6, n, n - 1, n + 1, n - m]
        yield n, m, [int(random.choice(far)) if random.random() < 0.15 else int(random.choice(near)) for _ in range(4)]
    for start in (0, 1, 3):  # all four are rarely legal by chance
        yield 5, 2, [start, 5 - start, start, 6 - start]
    yield 5, 2, [3, 0, 1, 2]
    yield 5, 2, [4, 5, 0, 6]
    yield 5, 2, [10, 3, 0, 6]
    for place in (-10, -20, -30):  # some ops take nearly all that is drawn above
        yield 5, 2, [place] * 4


def check(name, folder):
    oracle, type_, body = OPS[name]
    source = folder / "program.mlir"
    source.write_text(HEAD.format(type=type_, body=body))
    package = compile_model(source, folder)
    random = np.random.default_rng(SEED)
    legal = refused = 0
    for n, m, at in draws(random):
        if name == "insert" and random.random() < 0.8:
            at[1] = 0
        if name == "reshape" and random.random() < 0.5:
            at[0], at[1] = (6, n) if random.random() < 0.5 else (2, 3 * n)
        results = {"iota": at[0], "broadcast": at[0], "pad": n + at[0] + at[1]}.get(name, 0)
        if results > 1 << 20 or (name == "pad" and results >= 0 and abs(at[0]) > 1 << 20):
            continue  # a machine may or may not have the memory
        if name == "reshape" and 0 in at[:2] and max(at[:2]) > 1 << 40:
            continue  # no elements, but more than NumPy counts along one axis
        x, y = (random.standard_normal((rows, 6)).astype(np.float32) for rows in (n, m))
        np.savez(folder / "in.npz", x=x, y=y, at=np.array(at, np.int64))
        expected = oracle(x, y, at)
        what = f"seed {SEED}: {name}: n={n} m={m} at={at}"
        result = tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=None)
        if expected is None:
            refused += 1
            expect(result.code == 1 and len(result.err.strip().splitlines()) == 1, f"{what}: expected a refusal, found {result}")
            continue
        legal += 1
        expect(result.code == 0, f"{what}: expected a result, found {result}")
        with np.load(folder / "out.npz") as outputs:
            found = outputs["z"]
        expect(found.shape == expected.shape and np.array_equal(found, expected), f"{what}: expected {expected}, found {found}")
    expect(legal >= 3 and refused >= 3, f"seed {SEED}: {name}: drew {legal} legal and {refused} illegal places, expected 3 of each")


def define(name):
    def run(folder):
        check(name, folder)
    run.__name__ = f"safety_{name}"
    case(run)


for name in OPS:
    define(name)


@case
def safety_state_insert(folder):
    """A place outside of a cache: refused, and the cache is as it was."""
    source = folder / "program.mlir"
    source.write_text("""
func.func @main(%row: tensor<1x4xf32> {ds.name = "row", ds.dims = [1, 4]},
                %at: tensor<1xi64> {ds.name = "at", ds.dims = [1]},
                %cache: tensor<8x4xf32> {ds.name = "cache", ds.dims = [8, 4], ds.state = "cache"})
    -> (tensor<f32> {ds.name = "sum"}, tensor<8x4xf32> {ds.state = "cache"}) attributes {ds.entry} {
  %next = ds.insert %row into %cache starts ["at[0]", 0] : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %sum = ds.reduce sum %next axes [0, 1] keep false : (tensor<8x4xf32>) -> tensor<f32>
  return %sum, %next : tensor<f32>, tensor<8x4xf32>
}
""")
    package = compile_model(source, folder)
    for at, legal in ((0, True), (7, True), (8, False), (-1, False), (-10**8, False), (2**63 - 1, False)):
        np.savez(folder / "in.npz", row=np.ones((1, 4), np.float32), at=np.array([at]))
        result = tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=None)
        expect(result.code == (0 if legal else 1), f"at {at}: {result}")
        if legal:
            with np.load(folder / "out.npz") as outputs:
                expect(outputs["sum"] == 4, f"at {at}: expected 4, found {outputs['sum']}")


@case
def safety_negative_symbol(folder):
    """A size that the program computes is refused where it is negative."""
    source = folder / "program.mlir"
    source.write_text("""
func.func @main(%c: tensor<i64> {ds.name = "c", ds.dims = []}, %d: tensor<i64> {ds.name = "d", ds.dims = []})
    -> (tensor<?xi64> {ds.name = "z"}) attributes {ds.entry} {
  %s = ds.binary bit_xor %c, %d : (tensor<i64>, tensor<i64>) -> tensor<i64>
  ds.define "count" = %s : tensor<i64>
  %z = ds.iota 0 ["count"] : tensor<?xi64>
  return %z : tensor<?xi64>
}
""")
    package = compile_model(source, folder)
    for count in (0, 3, -1, -2**63):
        np.savez(folder / "in.npz", c=np.array(count), d=np.array(0))
        result = tool("ds-run", package, "--inputs", folder / "in.npz", "--output", folder / "out.npz", code=None)
        expect(result.code == (0 if count >= 0 else 1), f"{count}: {result}")
        expect(count >= 0 or "negative" in result.err, f"{count}: {result}")
