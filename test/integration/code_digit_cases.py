"""Rows of f32 as digits by codes (the micro-kernel code_digits) against NumPy in double precision: numbers at the ends of what digits
hold, and where codes lie. Processors without its instruction multiply the same rows by codes that became floats."""
import numpy as np

from kit import case, expect, run_package
from programs import SEED
from quantized_weight_cases import UNIT, Products, constants, option, quantized

SHAPES = ((32, 49), (65, 200), (86, 97), (96, 193), (770, 210))
# Groups of one scale whose sums of three digits become one number, or of two, and groups in parts.
HOWS = ((8, 0, "symmetric"), (4, 32, "symmetric"), (8, 32, "asymmetric"), (4, 8, "asymmetric"), (8, 0, "asymmetric"), (4, 96, "symmetric"),
        (8, 32, "symmetric"), (4, 32, "asymmetric"), (8, 160, "symmetric"), (4, 104, "asymmetric"))


def groups_of(k, group):
    group = group if 0 < group < k else k
    return [slice(at, at + group) for at in range(0, k, group)]


def farthest(x, stands, bias):
    """Half a unit of the lowest digit for each element, 2^-22.9 of the greatest of its row, but 2^-126 at least; then some roundings for
    each group, one of the unit, and one of the bias."""
    units = np.maximum(np.abs(x).max(1) * 2.0**-22.9, 2.0**-126)[:, None] * np.abs(stands).sum(0)
    return units + (len(stands) + 5) * UNIT * (np.abs(x) @ np.abs(stands) + np.abs(bias))


def packages(folder, name):
    for how in HOWS[:4]:
        m = Products(f"{name} {how}", SHAPES)
        yield how, m, m.compiled(folder, option(*how))


def store(m):
    """What the weights and biases have become."""
    constant = {initializer.name: initializer for initializer in m.model.graph.initializer}
    for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
        constant[f"w{i}"].raw_data, constant[f"b{i}"].raw_data = w.tobytes(), bias.tobytes()


def judge(m, feed, found, how, what):
    for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
        x = feed[f"x{i}"].astype(np.float64)
        stands = quantized(w, *how)[0]
        far = np.abs(found[f"y{i}"] - (x @ stands + bias))
        expect((far <= farthest(x, stands, bias)).all(), f"{what}, {how}, y{i}: {np.nanmax(far)} away (DS_SEED={SEED})")


@case(seconds=20)
def rows_at_the_ends_of_digits(folder):
    for how in HOWS:
        m = Products(f"digits {how}", SHAPES)
        package = m.compiled(folder, option(*how))
        g = m.random
        rows = {
            "powers of two": lambda shape: np.exp2(g.integers(-30, 30, shape)) * g.choice([-1, 1], shape),
            "just below powers of two": lambda shape: (2 - np.exp2(-g.integers(4, 25, shape).astype(float))) * np.exp2(g.integers(-3, 1, shape)),
            "all as great as can be": lambda shape: np.full(shape, np.float32(2 - 2**-23)) * g.choice([-1, 1], (shape[0], 1)),
            "one far above the others": lambda shape: g.standard_normal(shape) * np.where(g.random(shape) < 2 / shape[1], 1e6, 1),
            "tiny": lambda shape: g.standard_normal(shape) * np.exp2(g.integers(-149, -90, (shape[0], 1)).astype(float)),
            "huge": lambda shape: g.standard_normal(shape) * 1e25,
            "zeros": lambda shape: np.zeros(shape) * g.choice([-1, 1], shape),
            "mostly zeros": lambda shape: g.standard_normal(shape) * (g.random(shape) < 0.02),
        }
        for name, make in rows.items():
            feed = {f"x{i}": make((g.integers(1, 12), len(w))).astype(np.float32) for i, w in enumerate(m.weights)}
            feed = {key: np.resize(x, (len(feed["x0"]), x.shape[1])) for key, x in feed.items()}
            judge(m, feed, run_package(package, feed, folder), how, name)


@case(seconds=6)
def small_integers_stay_exact(folder):
    """A number of whole units keeps all of its bits, and sums of bytes are exact: as with floats, 8 bits by codes lose nothing."""
    for how in (how for how in HOWS if how[2] == "symmetric"):
        g = np.random.default_rng([SEED, *str(how).encode()])
        m = Products(f"whole {how}", SHAPES)
        span = 2**(how[0] - 1) - 1
        for i, (w, bias) in enumerate(zip(m.weights, m.biases)):  # on a grid already
            whole = g.integers(-span, span + 1, w.shape)
            for at in groups_of(len(w), how[1]):
                whole[at.start], whole[at][-1] = span, -span - 1
            w[:], bias[:] = whole, g.integers(-9, 9, bias.shape)
        store(m)
        package = m.compiled(folder, option(*how))
        feed = {f"x{i}": g.integers(-200, 201, (5, len(w))).astype(np.float32) for i, w in enumerate(m.weights)}
        found = run_package(package, feed, folder)
        for i, (w, bias) in enumerate(zip(m.weights, m.biases)):
            right = feed[f"x{i}"].astype(np.float64) @ w.astype(np.float64) + bias
            expect((found[f"y{i}"] == right).all(), f"{how}, y{i}: {np.abs(found[f'y{i}'] - right).max()} away (DS_SEED={SEED})")


@case(seconds=6)
def weights_and_rows_far_from_one(folder):
    """Sums of codes that wait for their unit, and units, are numbers that f32 holds wherever the result is one."""
    for how in HOWS:
        for power in (-112, -70, 80, 120):
            m = Products(f"far from one {how} {power}", SHAPES[1:3])
            for w, bias in zip(m.weights, m.biases):
                w *= np.float32(2.0**power)
                w[:64, ::3] *= power > 100  # the first scales of some columns say nothing of the others
                bias[:] = 0
            store(m)
            package = m.compiled(folder, option(*how))
            feed = {name: x * np.float32(2.0**(-power * 0.9)) for name, x in m.feed(3).items()}
            judge(m, feed, run_package(package, feed, folder), how, f"weights times 2^{power}")


@case(seconds=6)
def rows_that_are_not_finite(folder):
    """They give nothing that is finite, where their weights are not 0, and rows beside them keep their bits."""
    for how, m, package in packages(folder, "not finite"):
        feed = m.feed(7)
        before = run_package(package, feed, folder)
        for x in feed.values():
            x[1, m.random.integers(x.shape[1])] = np.nan
            x[3, m.random.integers(x.shape[1])] = np.inf
            x[6, m.random.integers(x.shape[1])] = -np.inf
        after = run_package(package, feed, folder)
        for i, w in enumerate(m.weights):
            y, others = after[f"y{i}"], [0, 2, 4, 5]
            expect((y[others] == before[f"y{i}"][others]).all(), f"{how}, y{i}: rows beside them changed (DS_SEED={SEED})")
            expect(np.isnan(y[1]).all(), f"{how}, y{i}: NaN became {y[1][~np.isnan(y[1])][:3]} (DS_SEED={SEED})")
            expect(not np.isfinite(y[[3, 6]]).any(), f"{how}, y{i}: infinity became a number (DS_SEED={SEED})")


@case(seconds=6)
def a_row_has_the_same_bits_wherever_it_lies(folder):
    for how, m, package in packages(folder, "bits"):
        feed = m.feed(131)
        whole = run_package(package, feed, folder, "--threads=1")
        for first, count, threads in ((0, 1, 2), (3, 2, 1), (17, 4, 3), (40, 9, 2), (100, 31, 2), (0, 131, 3)):
            part = run_package(package, {name: x[first:first + count] for name, x in feed.items()}, folder, f"--threads={threads}")
            for name, y in part.items():
                expect((y == whole[name][first:first + count]).all(), f"{how}, {name}: {count} rows from {first} on, {threads} threads (DS_SEED={SEED})")


@case(seconds=5)
def codes_lie_as_digits_meet_them(folder):
    """Code by code the same as where floats meet them, in fours along K, or eights: those at even places in the low halves."""
    for bits, group in ((8, 0), (8, 32), (4, 32), (4, 8)):
        m = Products(f"eights {bits} {group}", SHAPES[1:])
        found = {}
        for cpu in ("x86-64-v3", "znver4"):
            stored = constants(m.compiled(folder, option(bits, group, "symmetric"), f"--mcpu={cpu}"))
            for i, w in enumerate(m.weights):
                info, data = stored[f"w{i}.int{bits}.packed"]
                panels, steps, width = info["shape"]
                columns = stored[f"w{i}.scales.packed"][0]["shape"][-1]
                codes = np.frombuffer(data, np.int8).reshape(panels, steps, columns, width // columns)
                if bits == 4:
                    codes = np.stack([np.left_shift(codes, 4) >> 4, codes >> 4], 4).reshape(panels, steps, columns, -1)
                expect(codes.shape[3] == {"x86-64-v3": 8 // bits, "znver4": 32 // bits}[cpu], f"{cpu}: {info['shape']} in {bits} bits")
                found[cpu, i] = codes.transpose(1, 3, 0, 2).reshape(steps * codes.shape[3], -1)[:len(w), :w.shape[1]]
        for i in range(len(m.weights)):
            expect((found["x86-64-v3", i] == found["znver4", i]).all(), f"{bits} bits, group {group}: codes of w{i} differ (DS_SEED={SEED})")
