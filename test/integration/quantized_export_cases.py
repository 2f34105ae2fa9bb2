"""What MoQ has trained as ONNX with weights of 8 and 4 bits: by ONNX Runtime and by our kernels what training has evaluated."""
import json
import re
import shutil

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import moq
import training_models as models
from kit import case, compile_model, expect, onnx_runtime, run_package, tool
from programs import SEED
from quantized_training_cases import section
from training_onnx_cases import branches, called, constant, data, model, value, weight
from training_runs import log_of, safetensors, settings, small_data, small_package, train, write_config

JUDGED = ["--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels"]
KINDS = {TensorProto.INT8: (8, True), TensorProto.UINT8: (8, False), TensorProto.INT4: (4, True), TensorProto.UINT4: (4, False)}


def integers(tensor):
    """The elements of a tensor of 4 or 8 bits, read from its bytes."""
    bits, is_signed = KINDS[tensor.data_type]
    raw = np.frombuffer(tensor.raw_data, np.uint8)
    values = raw.astype(np.int64) if bits == 8 else np.stack([raw & 15, raw >> 4], 1).ravel().astype(np.int64)
    values = values[:int(np.prod(tensor.dims))]
    return (np.where(values >= 1 << bits - 1, values - (1 << bits), values) if is_signed else values).reshape(tensor.dims)


def weights_in(path):
    """By name what DequantizeLinear and Reshape make of stored codes, in float32, and the bits of the codes."""
    proto, found = onnx.load(path), {}
    onnx.checker.check_model(proto)
    stored = {tensor.name: tensor for tensor in proto.graph.initializer}
    made = {node.output[0]: node for node in proto.graph.node}
    for node in proto.graph.node:
        source = made.get(node.input[0]) if node.op_type == "Reshape" else None
        if source is not None and source.op_type == "DequantizeLinear":
            codes, scales = stored[source.input[0]], numpy_helper.to_array(stored[source.input[1]])
            zero = integers(stored[source.input[2]]) if len(source.input) > 2 else np.zeros(len(scales), np.int64)
            real = (integers(codes) - zero[:, None]).astype(np.float32) * scales[:, None]
            found[node.output[0]] = real.reshape(numpy_helper.to_array(stored[node.input[1]])), KINDS[codes.data_type][0]
    return found


def score(logits, labels):
    logits = logits.astype(np.float64)
    top = logits.max(1, keepdims=True)
    return np.mean(np.log(np.exp(logits - top).sum(1)) + top[:, 0] - logits[np.arange(len(labels)), labels]), np.mean(logits.argmax(1) == labels)


def trained(folder, quantization, *options, steps, held, micro=16, **more):
    """Trains m.onnx; the last line of the log, of the data that were held out."""
    config = write_config(folder, settings(("AdamW", {"lr": 3e-3}), micro=micro, quantize_training=quantization, **more))
    for name in ("m.dsp", "ck"):
        shutil.rmtree(folder / name, ignore_errors=True)
    package = compile_model(folder / "m.onnx", folder, *JUDGED, f"--config={config}", *options, name="m.dsp")
    train(package, folder / "data.npz", f"--steps={steps}", f"--eval-data={held}", f"--log={folder / 'log'}", f"--checkpoint={folder / 'ck'}")
    return package, log_of(folder / "log")[-1]


def export(folder, package, *options, **keywords):
    return tool("ds-run", "checkpoint", "export", folder / "ck", f"--package={package}", "--quantized", "-o", folder / "q.onnx", *options, **keywords)


@case(seconds=12)
def classifier(folder):
    """Weights are the images of what was trained, bit by bit; accuracy is the evaluation's, the loss its but for the order of sums. Our
    package keeps codes: products of 4 and of 8 bits."""
    g = np.random.default_rng(SEED)
    onnx.save(models.bert(hidden=64), folder / "m.onnx")
    for name, samples in (("data", 64), ("held", 160)):
        ids = g.integers(0, 61, (samples, 9))
        np.savez(folder / f"{name}.npz", input_ids=ids, attention_mask=np.ones_like(ids), labels=ids[:, 0] % 3)
    held = dict(np.load(folder / "held.npz"))
    labels = held.pop("labels")
    kinds = (8, 1, "symmetric"), (4, 8, "symmetric"), (8, 8, "asymmetric"), (2, 4, "symmetric"), (4, 1, "asymmetric")
    for bits, groups, scheme in {kinds[SEED % 5], kinds[(SEED + 1) % 5]}:
        where = f"DS_SEED={SEED}, {bits} bits, {groups} groups, {scheme}"
        package, last = trained(folder, section(start=bits + 2, target=bits, period=10, offset=0, groups=groups, scheme=scheme), steps=40,
                                held=folder / "held.npz")
        expect(last["bits"] == bits, where)
        export(folder, package)
        tool("ds-run", "checkpoint", "export", folder / "ck", "-o", folder / "masters.safetensors")
        masters, found = safetensors(folder / "masters.safetensors"), weights_in(folder / "q.onnx")
        expect(set(found) == {name for name, array in masters.items() if array.ndim > 1}, f"{where}: {sorted(found)}")
        for name, (array, width) in found.items():
            expected = moq.image(masters[name], bits, groups, scheme)
            same = np.array_equal(array, expected) if bits > 2 else np.allclose(array, expected, rtol=1e-6, atol=0)
            expect(same and width == (8 if bits > 4 else 4), f"{where}: {name} of {width} bits is not what was trained with")
        inference = compile_model(folder / "q.onnx", folder, "--report", name="q.dsp")
        report = tool("ds-opt", folder / "q.onnx", "--report", "-o", folder / "r.dsp")
        recovered = int(re.search(r"recover-codes: (\d+) weights recovered", report.out + report.err).group(1))
        expect(recovered >= 13, f"{where}: {recovered} products by codes")
        floats = sum(array.size * 4 for array in masters.values())
        tables = 4 * sum(array.size for name, array in masters.items() if "embeddings" in name)
        size = (inference / "weights.bin").stat().st_size
        expect(size < tables + (floats - tables) * (0.35 if bits > 4 else 0.23) + 60000, f"{where}: {size} bytes of weights, {floats} as floats")
        for who, logits in (("ONNX Runtime", onnx_runtime(shutil.copy(folder / "q.onnx", folder / f"{bits}{groups}{scheme}.onnx"), held)["logits"]),
                            ("our package", run_package(inference, held, folder)["logits"])):
            loss, accuracy = score(logits, labels)
            expect(abs(loss - last["eval_loss"]) < 2e-5 * max(1, loss) and accuracy == last["accuracy"],
                   f"{where}: {who} has loss {loss} and accuracy {accuracy}, the evaluation had {last['eval_loss']} and {last['accuracy']}")


@case(seconds=6)
def where_weights_lie(folder):
    """Initializers and Constant nodes of graphs, branches, loops and functions, and one that is stored twice, once transposed."""
    g = np.random.default_rng(SEED)
    zero = numpy_helper.from_array(np.float32(0), "zero")
    body = helper.make_graph(
        [constant(g, "w", 4, 4), helper.make_node("MatMul", ["h", "w"], ["p"]), helper.make_node("Unsqueeze", ["column", "last"], ["c"]),
         helper.make_node("Add", ["p", "c"], ["a"]), helper.make_node("Tanh", ["a"], ["next"])],
        "body", [value("h", "n", 4), value("column", "n")], [value("next", "n", 4)])
    loop = [helper.make_node("MatMul", ["x", "v"], ["start"]),
            helper.make_node("Scan", ["start", "x"], ["logits"], body=body, num_scan_inputs=1, scan_input_axes=[1])]
    tied = weight(g, "tied", 3, 4)
    turned = numpy_helper.from_array(numpy_helper.to_array(tied).T.copy(), "turned")
    twice = [helper.make_node("MatMul", ["x", "tied"], ["h"]), helper.make_node("MatMul", ["h", "turned"], ["back"]),
             helper.make_node("MatMul", ["back", "tied"], ["logits"])]
    named = [helper.make_node("MatMul", ["x", "w"], ["w/codes"]), helper.make_node("Add", ["w/codes", "w/scales"], ["logits"])]
    listed = model([helper.make_node("MatMul", ["x", "w"], ["logits"])], [weight(g, "w", 3, 4)])
    listed.graph.input.append(value("w", 3, 4))  # as all initializers had to be
    listed.ir_version, listed.opset_import[0].version = 3, 9
    for name, proto, count in (("branches", model(branches([weight(g, "wt", 3, 4)], [constant(g, "we", 3, 4)]), [zero, weight(g, "b", 4)]), 2),
                               ("loop", model(loop, [weight(g, "v", 3, 4), numpy_helper.from_array(np.array([1]), "last")]), 2),
                               ("functions", called(g), 2), ("twice", model(twice, [tied, turned]), 2),
                               ("names", model(named, [weight(g, "w", 3, 4), weight(g, "w/scales", 4)]), 1), ("inputs", listed, 1)):
        onnx.checker.check_model(proto)
        onnx.save(proto, folder / "m.onnx")
        held = data(folder)
        for bits, scheme in ((8, "symmetric"), (4, "asymmetric")):
            package, last = trained(folder, section(start=bits, target=bits, offset=0, scheme=scheme), "--reference", steps=5, held=held, micro=4)
            export(folder, package)
            out = shutil.copy(folder / "q.onnx", folder / f"{name}{bits}.onnx")
            proto = onnx.load(out)
            onnx.checker.check_model(proto)
            found = sum(node.op_type == "DequantizeLinear" for part in (proto.graph, *proto.functions) for node in every_node(part))
            expect(found == count, f"{name}: {found} weights of codes, expected {count}")
            arrays = dict(np.load(held))
            # Branches choose by all of a batch, and an evaluation has batches of four.
            logits = np.concatenate([onnx_runtime(out, {"x": arrays["x"][i:i + 4]})["logits"] for i in range(0, 12, 4)])
            loss, accuracy = score(logits, arrays["labels"])
            expect(abs(loss - last["eval_loss"]) < 1e-5 * max(1, loss) and accuracy == last["accuracy"], f"{name}, {bits} bits: {loss}, {accuracy}, {last}")


def every_node(part):
    for node in part.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from every_node(attribute.g)


@case(seconds=5)
def what_has_no_codes(folder):
    """A weight on one side of 0, whose zero point no byte holds, is stored as what it is rounded to; with more than 8 bits, or before
    anything is rounded, or with weights mixed in, there is nothing to store."""
    g = np.random.default_rng(SEED)
    onnx.save(model([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "v"], ["logits"])],
                    [numpy_helper.from_array(3 + g.random((3, 4), np.float32) / 8, "w"), weight(g, "v", 4, 4)]), folder / "m.onnx")
    held = data(folder)
    package, last = trained(folder, section(start=8, target=8, offset=0, scheme="asymmetric"), "--reference", steps=3, held=held)
    export(folder, package, says="'w' is stored as floats: the elements of group 0 lie on one side of 0, where no zero point of 8 bits reaches")
    tool("ds-run", "checkpoint", "export", folder / "ck", "-o", folder / "masters.safetensors")
    stored = {t.name: numpy_helper.to_array(t) for t in onnx.load(folder / "q.onnx").graph.initializer if t.data_type == TensorProto.FLOAT}
    expect(np.array_equal(stored["w"], moq.image(safetensors(folder / "masters.safetensors")["w"], 8, 1, "asymmetric")), "w is another one")
    expect(list(weights_in(folder / "q.onnx")) == ["v"], "v has codes")
    plain = small_package(folder, settings("AdamW"), "--reference", name="plain.dsp")
    train(plain, small_data(folder, name="s.npz"), "--steps=2", f"--checkpoint={folder / 'pk'}")
    tool("ds-run", "checkpoint", "export", folder / "pk", f"--package={plain}", "--quantized", "-o", folder / "no.onnx", code=2,
         says="--quantized: expected a package that trains with quantize_training")
    export(folder, package, "--quantized", code=0)
    tool("ds-run", "checkpoint", "export", folder / "ck", "--quantized", "-o", folder / "no.safetensors", code=2, says="--quantized: expected -o OUT.onnx")
    tool("ds-run", "checkpoint", "inspect", folder / "ck", "--quantized", code=2, says="inspect: --quantized is about exports")
    for quantization, text in ((section(start=12, target=12, offset=0), "no weight has codes of at most 8 bits"),
                               (section(start=8, target=8, offset=3), "found no weight rounded after 2 updates, expected at least 3, as schedule_offset says"),
                               (section(start=8, target=8, offset=0, ratio=0.25), "found 0.75 of the weights themselves mixed in, expected 0, as after 3 more updates")):
        package = small_package(folder, settings("AdamW", quantize_training=quantization), "--reference", name="s.dsp")
        shutil.rmtree(folder / "sk", ignore_errors=True)
        train(package, folder / "s.npz", "--steps=20", "--save-interval=2", f"--checkpoint={folder / 'sk'}")
        tool("ds-run", "checkpoint", "export", folder / "sk/global_step2", f"--package={package}", "--quantized", "-o", folder / "no.onnx", code=2, says=text)
        expect(not (folder / "no.onnx").exists(), f"{text}: a file is left")


@case
def old_formats(folder):
    """Of a format whose initializers are inputs, too: what is exported is of one that lets codes be none."""
    g = np.random.default_rng(SEED)
    proto = model([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["logits"])], [weight(g, "w", 3, 4), weight(g, "b", 4)])
    proto.ir_version = 3
    proto.graph.input.extend([value("w", 3, 4), value("b", 4)])
    onnx.checker.check_model(proto)
    onnx.save(proto, folder / "m.onnx")
    held = data(folder)
    package, last = trained(folder, section(start=8, target=8, offset=0), "--reference", steps=3, held=held, micro=4)
    export(folder, package)
    expect(list(weights_in(folder / "q.onnx")) == ["w"], "w has no codes")
    arrays = dict(np.load(held))
    loss, accuracy = score(onnx_runtime(folder / "q.onnx", {"x": arrays["x"]})["logits"], arrays["labels"])
    expect(abs(loss - last["eval_loss"]) < 1e-5 * max(1, loss) and accuracy == last["accuracy"], f"{loss}, {accuracy}, {last}")
