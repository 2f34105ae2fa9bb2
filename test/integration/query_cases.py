"""Attention of one query a head against NumPy, in float64: caches of every length, shared heads, masks, what is yielded."""
import numpy as np
import onnx
from onnx import TensorProto, helper

from kit import case, expect, run_package, tool
from programs import SEED

# heads of queries, of keys, features of keys, of values; which of the cache's results are outputs
SHAPES = [(2, 2, 64, 64, ()), (4, 2, 128, 32, ("present_key", "present_value")), (3, 1, 16, 48, ("present_value",)),
          (2, 2, 24, 20, ("present_key", "present_value")), (1, 1, 256, 128, ()), (6, 3, 96, 64, ("key", "value"))]


def attention(feed, mask):
    keys, values = (np.concatenate([feed[f"past_{name}"], feed[name]], axis=2).astype(np.float64) for name in ("key", "value"))
    query = feed["query"].astype(np.float64)
    repeat = query.shape[1] // keys.shape[1]
    scores = np.einsum("bhqd,bhkd->bhqk", query, np.repeat(keys, repeat, axis=1)) / np.sqrt(query.shape[3])
    scores = scores + mask if mask.dtype != bool else np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights @ np.repeat(values, repeat, axis=1)


@case(seconds=6)
def one_query_a_head(folder):
    random = np.random.default_rng([SEED, 13])
    for number, (heads, groups, depth, width, given) in enumerate(SHAPES):
        isFloat = number % 2 == 0
        value = lambda name, shape, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)
        inputs = [value("query", ["b", heads, 1, depth]), value("key", ["b", groups, 1, depth]), value("value", ["b", groups, 1, width]),
                  value("mask", ["b", 1, 1, "total"], TensorProto.FLOAT if isFloat else TensorProto.BOOL),
                  value("past_key", ["b", groups, "past", depth]), value("past_value", ["b", groups, "past", width])]
        scaled = [helper.make_node("Tanh", [name], [f"own_{name}"]) for name in ("key", "value") if name in given]
        source = lambda name: f"own_{name}" if name in given and not name.startswith("present") else name
        node = helper.make_node("Attention", ["query", source("key"), source("value"), "mask", "past_key", "past_value"],
                                ["y", "present_key", "present_value"])
        outputs = [value("y", None), *(value(source(name), None) for name in given)]
        graph = helper.make_graph([*scaled, node], "query", inputs, outputs)
        path = folder / f"query{number}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), str(path))
        package = folder / f"query{number}.dsp"
        tool("ds-opt", path, "-o", package)
        for batch, past in ((1, 0), (3, 1), (2, 15), (1, 16), (2, 47), (5, 130)):
            feed = {"query": random.standard_normal((batch, heads, 1, depth)), "key": random.standard_normal((batch, groups, 1, depth)),
                    "value": random.standard_normal((batch, groups, 1, width)),
                    "past_key": random.standard_normal((batch, groups, past, depth)),
                    "past_value": random.standard_normal((batch, groups, past, width))}
            feed = {name: (2 * array).astype(np.float32) for name, array in feed.items()}
            hidden = random.random((batch, 1, 1, past + 1)) < 0.3
            hidden[..., -1] = False
            feed["mask"] = np.where(hidden, -1e4, random.standard_normal(hidden.shape)).astype(np.float32) if isFloat else ~hidden
            used = dict(feed, **{name: np.tanh(feed[name]) for name in ("key", "value") if name in given})
            found = run_package(package, feed, folder, "--threads=2")
            what = f"{heads}/{groups} heads of {depth} and {width}, batch {batch}, past {past} (DS_SEED={SEED})"
            wanted = attention(used, feed["mask"])
            # a score is a sum of depth products in f32, and moves its weight by what it is off
            error = np.abs(found["y"] - wanted).max()
            expect(found["y"].shape == wanted.shape and error <= 2e-5 * np.abs(wanted).max(), f"{what}: {error}")
            for name in given:
                part = name.removeprefix("present_")
                right = used[name] if part == name else np.concatenate([used[f"past_{part}"], used[part]], axis=2)
                expect(np.allclose(found[source(name)], right, rtol=1e-6, atol=1e-6), f"{what}: {name}")
            one = run_package(package, feed, folder, "--threads=1")
            expect(all(found[name].tobytes() == one[name].tobytes() for name in found), f"{what}: other bits with one thread")
            if batch > 1:
                last = run_package(package, {name: array[-1:] for name, array in feed.items()}, folder)
                expect(all(found[name][-1:].tobytes() == last[name].tobytes() for name in found), f"{what}: other bits with batch 1")


# ONNX type; NumPy's, or of what is cast inside the model; least steps of the type that a result may be off
TYPES = [(TensorProto.FLOAT16, np.float16, 2.0 ** -10), (TensorProto.DOUBLE, np.float64, 1e-13), (TensorProto.BFLOAT16, np.float32, 2.0 ** -7)]


@case(seconds=7)
def other_types(folder):
    """f16 and bf16 are multiplied and summed in f32 and rounded once, f64 in f64: one query and many, shared heads, causal, masked."""
    random = np.random.default_rng([SEED, 14])
    for number, (kind, dtype, step) in enumerate(TYPES):
        for heads, groups, depth, width, queries, causal in ((4, 2, 64, 32, 1, 0), (2, 2, 24, 48, "s", 1), (3, 1, 64, 64, "s", 0)):
            isCast = kind == TensorProto.BFLOAT16
            outer = TensorProto.FLOAT if isCast else kind
            value = lambda name, shape: helper.make_tensor_value_info(name, outer, shape)
            inputs = [value("query", ["b", heads, queries, depth]), value("key", ["b", groups, "t", depth]),
                      value("value", ["b", groups, "t", width]), value("mask", [queries, "t"])]
            nodes = [helper.make_node("Cast", [name], [f"{name}.n"], to=kind) for name in ("query", "key", "value", "mask")] if isCast else []
            names = [f"{name}.n" if isCast else name for name in ("query", "key", "value", "mask")]
            nodes.append(helper.make_node("Attention", names[:3] + ([""] if causal else names[3:]), ["y.n" if isCast else "y"], is_causal=causal))
            nodes += [helper.make_node("Cast", ["y.n"], ["y"], to=outer)] if isCast else []
            graph = helper.make_graph(nodes, "types", inputs, [value("y", None)])
            path, package = folder / "types.onnx", folder / "types.dsp"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11), str(path))
            tool("ds-opt", path, "-o", package)
            for batch, rows, keys in ((1, 1, 1), (2, 5, 37), (1, 70, 70)):
                rows = 1 if queries == 1 else keys if causal else rows
                feed = {"query": random.standard_normal((batch, heads, rows, depth)), "key": random.standard_normal((batch, groups, keys, depth)),
                        "value": random.standard_normal((batch, groups, keys, width)), "mask": random.standard_normal((rows, keys))}
                feed = {name: array.astype(dtype) for name, array in feed.items()}
                if isCast:  # numbers that bf16 has
                    feed = {name: (array.view(np.uint32) & 0xffff0000).view(np.float32) for name, array in feed.items()}
                mask = np.tril(np.ones((rows, keys), bool)) if causal else feed["mask"].astype(np.float64)
                wanted = attention({**feed, "past_key": feed["key"][:, :, :0], "past_value": feed["value"][:, :, :0]}, mask)
                found = run_package(package, feed, folder, "--threads=2")["y"]
                what = f"type {kind}, {heads}/{groups} heads of {depth} and {width}, {rows} of {keys}, batch {batch} (DS_SEED={SEED})"
                error = np.abs(found.astype(np.float64) - wanted).max()
                expect(found.dtype == dtype and found.shape == wanted.shape and error <= step * np.abs(wanted).max(), f"{what}: {error}")
