"""GroupQueryAttention of com.microsoft: prompts, decoding with rows of different length, and buffers for the cache."""
import numpy as np

import generate
import layers
from kit import case, compile_model, expect, onnx_runtime, run_package
from layer_cases import dims_of, launches
from microsoft import Cases
from programs import SEED

f32 = np.float32


def total(random, shape, sizes):
    return sizes["total"]


def spread(random, shape, sizes):
    """The last place of each row: the longest row fills the total length, and rows differ when they decode."""
    last = np.full(shape, sizes["total"] - 1)
    if sizes["seq"] == 1:
        last[1:] -= random.integers(0, sizes["total"] - 1, shape[0] - 1)
    return last


def operands(c, heads=4, groups=2, size=16, past=None):
    query = c.input(["batch", "seq", heads * size])
    key, value = (c.input(["batch", "seq", groups * size]) for _ in range(2))
    cache = [c.input(["batch", groups, past, size]) for _ in range(2)] if past else [None, None]
    return [query, key, value, *cache, c.input(["batch"], spread, np.int32), c.input([1], total, np.int32)]


VARIANTS = ({}, {"scale": 0.2}, {"softcap": 3.0}, {"local_window_size": 3}, {"smooth_softmax": 1},
            {"local_window_size": 2, "softcap": 2.0, "smooth_softmax": 1})
PROMPT = {"batch": 2, "seq": 5, "total": 5}, {"batch": 1, "seq": 9, "total": 9}
DECODE = {"batch": 3, "seq": 1, "total": 9, "past": 8}, {"batch": 1, "seq": 1, "total": 5, "past": 4}
SHARED = {"batch": 2, "seq": 6, "total": 6}, {"batch": 3, "seq": 1, "total": 11}, {"batch": 1, "seq": 4, "total": 9}
ALL = [f32, f32, f32]


def variants(c, common, heads=4, groups=2):
    """Every attribute alone and some together, on the same operands."""
    for attributes in VARIANTS:
        c.node("GroupQueryAttention", common, ALL, num_heads=heads, kv_num_heads=groups, **attributes)
    caches = [c.input([16, 8]) for _ in range(2)]
    for interleaved in (0, 1):
        c.node("GroupQueryAttention", [*common, *caches], ALL, num_heads=heads, kv_num_heads=groups, do_rotary=1,
               rotary_interleaved=interleaved)
    # ONNX Runtime counts on from the first position of a prompt, so positions follow each other.
    places = c.input(["batch", "seq"], lambda random, shape, sizes: random.integers(0, 6) + np.broadcast_to(
        np.arange(shape[1]), shape), np.int64)
    c.node("GroupQueryAttention", [*common, *caches, places], ALL, num_heads=heads, kv_num_heads=groups, do_rotary=1)
    for dims in (["batch", heads, "seq", "total"], [1, 1, "seq", "total"]):
        c.node("GroupQueryAttention", [*common, None, None, None, c.input(dims)], ALL, num_heads=heads,
               kv_num_heads=groups)
    c.node("GroupQueryAttention", [*common, None, None, None, None, c.input([heads])], ALL, num_heads=heads,
           kv_num_heads=groups)


@case(seconds=12)
def group_query_prompt(folder):
    c = Cases()
    variants(c, operands(c))
    c.node("GroupQueryAttention", operands(c, groups=4), ALL, num_heads=4, kv_num_heads=4)
    query, _, _, *rest = operands(c)
    packed = c.input(["batch", "seq", 128])
    caches = [c.input([16, 8]) for _ in range(2)]
    c.node("GroupQueryAttention", [packed, None, None, *rest], ALL, num_heads=4, kv_num_heads=2)
    c.node("GroupQueryAttention", [packed, None, None, *rest, *caches], ALL, num_heads=4, kv_num_heads=2, do_rotary=1)
    c.node("GroupQueryAttention", operands(c), num_heads=4, kv_num_heads=2, causal=0)
    c.node("GroupQueryAttention", [*operands(c, size=32), *caches], ALL, num_heads=4, kv_num_heads=2, do_rotary=1)
    # Scores before the softmax are defined at the places that a row attends to.
    c.node("GroupQueryAttention", operands(c), [*ALL, f32], num_heads=4, kv_num_heads=2, qk_output=2)
    c.node("GroupQueryAttention", operands(c), [*ALL, f32], num_heads=4, kv_num_heads=2, qk_output=1, softcap=2.0,
           keep=lambda array, sizes, values: np.where(np.tri(sizes["seq"]) != 0, array, 0) if array.shape[-2:] == (
               sizes["seq"], sizes["seq"]) else array)
    c.run(folder, *PROMPT)


@case(seconds=12)
def group_query_growing_cache(folder):
    c = Cases()
    variants(c, operands(c, past="past"))
    c.node("GroupQueryAttention", operands(c, past="past"), ALL, num_heads=4, kv_num_heads=2, causal=0)
    c.run(folder, *DECODE)


@case(seconds=7)
def group_query_buffers(folder):
    """The cache lies in a buffer of 16 places: a prompt, decoding with ragged rows, and a second prompt."""
    c = Cases()
    variants(c, operands(c, past=16))
    packed, caches = c.input(["batch", "seq", 128]), [c.input([16, 8]) for _ in range(2)]
    c.node("GroupQueryAttention", [packed, None, None, *operands(c, past=16)[3:], *caches], ALL, num_heads=4,
           kv_num_heads=2, do_rotary=1)
    c.run(folder, *SHARED)


@case
def group_query_norms(folder):
    """Norms of query and key, and the weights as output, against NumPy: the CPU provider lacks the former."""
    c = Cases()
    common = operands(c)
    norms = [c.input([16]) for _ in range(2)]

    def reference(query, key, value, *rest):
        batch, rows, _ = query.shape
        query, key, value = (x.astype(np.float64).reshape(batch, rows, -1, 16) for x in (query, key, value))
        query, key = (x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale
                      for x, scale in ((query, rest[11]), (key, rest[12])))
        query, key, value = (np.moveaxis(x, 1, 2) for x in (query, key, value))
        scores = query @ np.swapaxes(np.repeat(key, 2, 1), 2, 3) / 4
        weights = np.exp(np.where(np.tri(rows, dtype=bool), scores, -np.inf))
        weights /= weights.sum(-1, keepdims=True)
        result = weights @ np.repeat(value, 2, 1)
        return [np.moveaxis(result, 1, 2).reshape(batch, rows, 64), key, value, weights]
    c.node("GroupQueryAttention", [*common, *[None] * 7, *norms], [*ALL, f32], num_heads=4, kv_num_heads=2,
           qk_norm_epsilon=1e-5, qk_output=2, reference=reference)
    c.run(folder, *PROMPT)


@case(seconds=8)
def group_query_layers(folder):
    """Attention turns new rows and writes them into the caches; rows of a batch differ in length."""
    found = launches(folder, layers.grouped)
    expect(found == 5, f"a layer takes {found} launches, expected 5")
    random = np.random.default_rng([SEED, 91])
    for sizes in ({}, dict(heads=6, groups=3, width=16, hidden=50, inner=30)):
        generate.save(model := layers.grouped(seed=int(random.integers(1000)), **sizes), folder / "m.onnx")
        packages = [compile_model(folder / "m.onnx", folder, f"--fusion={fusion}", name=f"{fusion}.dsp") for fusion in ("none", "specialized")]
        for batch, past in ((1, 1), (3, 9), (17, 5)):
            total = past + 1
            feed = {name: random.standard_normal([{"batch": batch, "past": past}.get(d, d) for d in dims]).astype(f32)
                    for name, dims in dims_of(model).items()}
            lengths = random.integers(0, total, batch)
            lengths[0] = past
            feed |= {"lengths": lengths.astype(np.int32), "total": np.array([total], np.int32)}
            expected = onnx_runtime(folder / "m.onnx", feed, cache={})
            results = [run_package(package, feed, folder, f"--threads={threads}") for package in packages for threads in (1, 3)]
            for name, array in expected.items():
                valid = np.ones(array.shape, bool)
                if name.startswith("present"):
                    valid &= (np.arange(total) <= lengths[:, None])[:, None, :, None]
                error = np.abs(np.where(valid, results[-1][name] - array, 0)).max()
                expect(error <= 2e-4, f"{name} of {batch} x {past}: an error of {error} (DS_SEED={SEED})")
                for other in results:
                    expect(other[name].tobytes() == results[0][name].tobytes(), f"{name} of {batch} x {past}: bits differ (DS_SEED={SEED})")
