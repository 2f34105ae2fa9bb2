"""Products of computed operands in bf16, summed in f32, against NumPy on rounded operands in double precision."""
import ml_dtypes
import numpy as np

from kit import case, expect, run_package, tool
from programs import SEED, some

UNIT = 2.0**-24
# Axes of batches on either side, rows, K, columns: odd K, no whole tiles, batches that broadcast, empty ones.
SHAPES = (((), (), 33, 49, 65), ((2, 1), (3,), 9, 31, 20), ((), (), 5, 0, 6), ((0,), (0,), 4, 5, 6))
LARGE = (((), (), 3, 1030, 64), ((), (), 130, 7, 70), ((2,), (2,), 64, 128, 20), ((), (), 1, 1, 1), ((2,), (), 257, 64, 33))


def program(shapes):
    """Every shape under every transposition, as a module; the sizes of operands."""
    arguments, results, body, sizes = [], [], [], {}
    kind = lambda shape, element: f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"
    for i, (a, b, m, k, n) in enumerate(shapes):
        for left in (False, True):
            for right in (False, True):
                name = f"{i}{'nt'[left]}{'nt'[right]}"
                x, y = (*a, *((k, m) if left else (m, k))), (*b, *((n, k) if right else (k, n)))
                out = kind((*np.broadcast_shapes(a, b), m, n), "f32")
                sizes[name] = (x, y, left, right)
                for side, shape in (("a", x), ("b", y)):
                    arguments.append(f'%{side}{name}: {kind(shape, "f32")} {{ds.name = "{side}{name}"}}')
                results.append(f'{out} {{ds.name = "y{name}"}}')
                flags = f"[{str(left).lower()}, {str(right).lower()}]"
                body.append(f'%y{name} = ds.matmul %a{name}, %b{name} transpose {flags} : ({kind(x, "f32")}, {kind(y, "f32")}) -> {out}')
    plain = [text.split(" {")[0] for text in results]
    return (f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) attributes {{ds.entry}} {{\n  " + "\n  ".join(body)
            + f"\n  return {', '.join(f'%y{name}' for name in sizes)} : {', '.join(plain)}\n}}\n"), sizes


@case(seconds=6)
def every_transposition(folder):
    random = np.random.default_rng([SEED, 31])
    text, sizes = program([*SHAPES, *some(LARGE, 2)])
    (folder / "plain.mlir").write_text(text)
    feed = {side + name: random.standard_normal(shape).astype(np.float32) for name, (x, y, *_) in sizes.items() for side, shape in (("a", x), ("b", y))}
    for machine in ("512,bfloat_dot=2", "512"):
        rounded = folder / "rounded.mlir"
        tool("ds-opt", folder / "plain.mlir", f"--ds-round-products=type=bf16 computed=true machine={machine}", "-o", rounded)
        expect(("wide" in rounded.read_text()) == ("dot" in machine), f"{machine}: {rounded.read_text()[:400]}")
        for option in ("--mcpu=host", "--mcpu=x86-64-v3", "--reference") if "dot" in machine else ("--mcpu=host",):
            package = folder / f"{len(list(folder.iterdir()))}.dsp"
            tool("ds-opt", rounded, option, "-o", package)
            bits = None
            for threads in (1, 2, 3):
                found = run_package(package, feed, folder, f"--threads={threads}")
                expect(bits is None or all(found[key].tobytes() == bits[key].tobytes() for key in bits),
                       f"{option}: other bits with {threads} threads (DS_SEED={SEED})")
                bits = found
            for name, (_, _, left, right) in sizes.items():
                a, b = (feed[side + name].astype(ml_dtypes.bfloat16).astype(np.float64) for side in "ab")
                a, b = np.swapaxes(a, -1, -2) if left else a, np.swapaxes(b, -1, -2) if right else b
                far, bound = np.abs(found["y" + name] - a @ b), (2 * a.shape[-1] + 2) * UNIT * (np.abs(a) @ np.abs(b))
                expect((far <= bound).all(), f"{machine} {option} {name}: off by {(far - bound).max(initial=0)} beyond rounding (DS_SEED={SEED})")
