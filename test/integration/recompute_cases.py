"""Activations that are computed again: the same bits at every budget, plans that keep to it, and what else a step does with them."""
import json
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx

import training_models as models
from attention_dropout_cases import Dropping
from kit import BIN, case, compile_model, expect, tool
from layer_drop_cases import drops
from programs import SEED
from training_resume_cases import same_after_stops
from training_runs import OF_THE_MACHINE, column, log_of, safetensors, settings, small_package, train, train_package

BATCH = 4


def most_memory(*command):
    """In MiB: VmHWM at the end, above the first one that is seen."""
    process = subprocess.Popen([BIN / "ds-run", *command], stdout=subprocess.DEVNULL)
    seen = []
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        seen += [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")]
        time.sleep(0.005)
    expect(process.returncode == 0 and len(seen) > 10, f"{command}: exit code {process.returncode}, {len(seen)} samples")
    return seen[-1] - seen[0]


def planned(package, **dims):
    pins = [f"--dim={name}={size}" for name, size in dims.items()]
    return json.loads(tool("ds-run", "inspect", package, "--json", *pins).out)["variants"][0]["memory"]


def data_of(folder, model, samples=BATCH, length=8, classes=5, name="data.npz"):
    """Random fields of a model, and labels that its loss can judge."""
    g = np.random.default_rng(SEED)
    fields = {}
    for tensor in model.graph.input:
        shape = [samples if dim.dim_param == "batch" else dim.dim_value or length for dim in tensor.type.tensor_type.shape.dim]
        floats = tensor.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        fields[tensor.name] = g.standard_normal(shape).astype(np.float32) if floats else g.integers(0, 9, shape)
    shape = model.graph.output[0].type.tensor_type.shape.dim
    fields["labels"] = g.integers(0, classes - 2, [samples] if len(shape) == 2 else [samples, length])
    np.savez(folder / name, **fields)
    return folder / name


def gradients(folder, package, data, name):
    tool("ds-run", "gradients", package, f"--inputs={data}", f"--output={folder / name}")
    with np.load(folder / name) as arrays:
        return dict(arrays)


def budgets(folder, model, config, *options, parts=(0.4, 1)):
    """Packages of one model from what it takes by itself to the least, with their plans; the first one has no budget."""
    dims = dict(batch=BATCH)
    first = train_package(folder, model, config, *options, name="all.dsp")
    most = planned(first, **dims)["total_bytes"]
    tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels",
         f"--config={folder / 'ds_config.json'}", *options, "--memory=1", "-o", folder / "no.dsp", code=1, says=["--memory: found 1 bytes, expected at least"])
    refused = tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels",
                   f"--config={folder / 'ds_config.json'}", *options, "--memory=1", "-o", folder / "no.dsp", code=1).err
    least = int(refused.split("at least ")[1].split(",")[0])
    expect(least < most, f"nothing is saved: {least} of {most}")
    yield None, first, most
    for part in parts:
        budget = int(most - part * (most - least))
        package = train_package(folder, model, config, *options, f"--memory={budget}", name=f"part{part}.dsp")
        bytes_ = planned(package, **dims)["total_bytes"]
        expect(bytes_ <= budget, f"a budget of {budget}: {bytes_} bytes are planned")
        expect(part < 1 or bytes_ == least, f"the least is said to be {least}, its plan has {bytes_}")
        yield budget, package, bytes_
    tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels",
         f"--config={folder / 'ds_config.json'}", *options, f"--memory={least - 1}", "-o", folder / "no.dsp", code=1, says=[str(least)])


MODELS = {
    "gpt": (lambda: models.gpt(layers=3), {"length": 8}, {}),
    "bert": (models.bert, {"length": 8}, {}),
    "llama": (models.llama, {"length": 8}, {"bf16": {"enabled": True}}),
    "t5": (models.t5, {"source": 8, "target": 8}, {}),
    "vit": (models.vit, {}, {}),
    "gpt in fp16": (lambda: models.gpt(layers=2), {"length": 8}, {"fp16": {"enabled": True, "initial_scale_power": 8}}),
    "gpt whose blocks are dropped": (lambda: models.gpt(layers=3), {"length": 8}, drops()),
}


def same_at_every_budget(folder, names):
    for name in names:
        make, dims, more = MODELS[name]
        model = make()
        config, options = settings("AdamW", BATCH, 2, **more), [f"--dim={key}={size}" for key, size in dims.items()]
        first, taken = None, []
        for budget, package, bytes_ in budgets(folder, model, config, *options):
            taken.append(bytes_)
            found = gradients(folder, package, data_of(folder, model), "g.npz")
            first = first or found
            expect(found.keys() == first.keys(), f"{name}: other gradients at a budget of {budget}")
            for key, array in found.items():
                expect(array.tobytes() == first[key].tobytes() and np.all(np.isfinite(array)), f"seed {SEED}, {name}, {budget} bytes: '{key}' has other bits")
        expect(taken == sorted(taken, reverse=True), f"{name}: plans {taken}")


@case(seconds=23)
def decoders(folder):
    same_at_every_budget(folder, ["gpt"])


@case(seconds=34)
def encoders(folder):
    same_at_every_budget(folder, ["bert"])


@case(seconds=23)
def rounded_products(folder):
    same_at_every_budget(folder, ["llama"])


@case(seconds=23)
def encoders_and_decoders(folder):
    same_at_every_budget(folder, ["t5"])


@case(seconds=23)
def images(folder):
    same_at_every_budget(folder, ["vit"])


@case(seconds=23)
def precisions(folder):
    same_at_every_budget(folder, ["gpt in fp16"])


@case(seconds=23)
def blocks_that_may_be_dropped(folder):
    same_at_every_budget(folder, ["gpt whose blocks are dropped"])


def dropped_again(folder, model, weights, width, share):
    """The same bits with and without activations kept, and less than a share of them where they are not."""
    g = np.random.default_rng(SEED)
    for name, shape in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array((g.standard_normal(shape) / 8).astype(np.float32), name))
    data, bits, kept = data_of(folder, model, samples=2 * width), [], []
    for number, more in enumerate(({}, {"activation_checkpointing": {"enabled": True}})):
        package = train_package(folder, model, settings("AdamW", width, 2, **more), name=f"{number}.dsp")
        train(package, data, "--steps=3", "--seed=4", f"--checkpoint={folder / str(number)}")
        bits.append({part: (folder / str(number) / "global_step3" / f"{part}.safetensors").read_bytes() for part in ("parameters", "optimizer")})
        kept.append(planned(package, batch=width)["activations"])
    expect(kept[1] < share * kept[0], f"activations have {kept[1]} bytes, {kept[0]} without")
    expect(bits[0] == bits[1], f"seed {SEED}: other bits where activations with dropout are computed again")


@case(seconds=12)
def dropout(folder):
    """Between products that are computed again."""
    dropped_again(folder, onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> m (float[batch, 16] x) => (float[batch, 5] logits)
        { ratio = Constant <value_float = 0.4> () yes = Constant <value_int = 1> () mode = Cast <to = 9> (yes)
          a = MatMul (x, u) b = Tanh (a) c, m0 = Dropout (b, ratio, mode) d = MatMul (c, v) e = Tanh (d) f, m1 = Dropout (e, ratio, mode)
          logits = MatMul (f, w) }"""), {"u": (16, 256), "v": (256, 256), "w": (256, 5)}, 32, 0.7)


@case(seconds=18)
def dropout_that_is_drawn_again(folder):
    """Nothing but what is dropped could be kept, so that less is kept only where that is drawn once more."""
    parts = range(6)
    made = "".join(f"a{i} = Mul (x, u{i}) c{i}, m{i} = Dropout (a{i}, ratio, mode) p{i} = MatMul (c{i}, w{i}) " for i in parts)
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> m (float[batch, 512] x) => (float[batch, 5] logits)
        {{ ratio = Constant <value_float = 0.4> () yes = Constant <value_int = 1> () mode = Cast <to = 9> (yes)
          {made} logits = Sum ({", ".join(f"p{i}" for i in parts)}) }}""")
    dropped_again(folder, model, {f"u{i}": (512,) for i in parts} | {f"w{i}": (512, 5) for i in parts}, 32, 0.5)


@case(seconds=12)
def dropout_of_attentions(folder):
    """Attentions draw in their kernels; those that are computed again draw the same."""
    model, states = models.gpt(layers=2, positions=8, graph=Dropping(0.3)), []
    data = data_of(folder, model, samples=8)
    for extra in ({}, {"activation_checkpointing": {"enabled": True}}):
        package = train_package(folder, model, settings("AdamW", 2, 2, **extra), "--dim=length=8")
        entries = json.loads((package / "manifest.json").read_text())["variants"][0]["entries"]
        again = [work for entry in entries for launch in entry["launches"] for work in launch["work"] if (work["op"], work["role"]) == ("attention", "recompute")]
        expect(len(again) == (2 if extra else 0), f"attentions that are computed again: {again}")
        train(package, data, "--steps=3", "--seed=4", f"--checkpoint={folder / 'run'}")
        states.append([(folder / "run" / "global_step3" / f"{part}.safetensors").read_bytes() for part in ("parameters", "optimizer")])
        shutil.rmtree(folder / "run")
    expect(states[0] == states[1], f"seed {SEED}: other bits where attentions with dropout are computed again")


@case(seconds=12)
def interactions(folder):
    """Blocks that are dropped, several micro-batches, activations computed again, overflows of the loss scale, stops: all of them
    together have the bits of the run that keeps everything and never stops."""
    model = models.gpt(layers=3, positions=8)
    more = {"fp16": {"enabled": True, "initial_scale_power": 24, "hysteresis": 1}, **drops()}
    data = data_of(folder, model, samples=26)
    logs, states = {}, {}
    for name, extra in (("kept", {}), ("again", {"activation_checkpointing": {"enabled": True}})):
        package = train_package(folder, model, settings("AdamW", 2, 3, **more, **extra), "--dim=length=8", name=f"{name}.dsp")
        part = folder / name
        part.mkdir()
        whole = same_after_stops(part, package, data, 9, [2, 3, 7], "--seed=11")
        logs[name] = log_of(part / "whole.jsonl")
        states[name] = [safetensors(whole / "global_step9" / f"{file}.safetensors") for file in ("parameters", "optimizer")]
    for row, other in zip(logs["kept"], logs["again"]):
        expect(all(row[key] == other[key] for key in row if key not in OF_THE_MACHINE), f"{row}, with activations computed again {other}")
    expect(any(row["overflow"] for row in logs["kept"]), "no step overflowed")
    expect(np.any(column(logs["kept"], "blocks") < 9), "no block was dropped")
    for kept, again in zip(*states.values()):
        expect(all(kept[name].tobytes() == again[name].tobytes() for name in kept), f"seed {SEED}: other bits")


@case
def what_is_refused(folder):
    model = models.gpt()
    onnx.save(model, folder / "model.onnx")
    (folder / "ds_config.json").write_text(json.dumps(settings("AdamW", BATCH)))
    common = [folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels", "-o", folder / "m.dsp"]
    tool("ds-opt", *common, "--memory=100MiB", code=1, says=["--memory", "'length'", "--dim length="])
    for wrong in ("0", "x", "-5", "12MB", "99999999999GiB", "", "1.5GiB"):
        tool("ds-opt", *common, f"--memory={wrong}", code=2, says=["--memory expects a number of bytes above 0", f"'{wrong}'"])
    tool("ds-opt", folder / "model.onnx", "--memory=1GiB", "-o", folder / "m.dsp", code=2, says=["--memory is about training"])
    for key, value, words in (("enabled", 3, "activation_checkpointing.enabled"), ("cpu_checkpointing", True, "cpu_checkpointing")):
        (folder / "bad.json").write_text(json.dumps(settings("AdamW", BATCH, activation_checkpointing={key: value})))
        tool("ds-opt", *common, f"--config={folder / 'bad.json'}", code=1, says=[words])


@case
def dimensions_that_are_not_given(folder):
    """A plan names them all, and computes no size of those that it lacks: one is a divisor here."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> m (float[batch, t] x, float[batch, s] y) => (float[batch, 5] logits)
        { shape = Shape (y) rest = Constant <value_ints = [-1]> () target = Concat <axis = 0> (shape, rest) rows = Reshape (x, target)
          means = ReduceMean <axes = [2], keepdims = 0> (rows) parts = Mul (means, y) all = Constant <value_ints = [1]> ()
          sum = ReduceSum (parts, all) logits = MatMul (sum, w) }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 5), np.float32), "w"))
    package = train_package(folder, model, settings("AdamW", BATCH))
    expect(planned(package)["depends_on"] == ["batch", "s", "t"], f"{planned(package)}")
    expect(planned(package, batch=BATCH)["depends_on"] == ["s", "t"], f"{planned(package, batch=BATCH)}")
    expect(planned(package, batch=BATCH, s=3, t=6)["total_bytes"] > 0, "no plan")


@case(seconds=8)
def data_of_all_micro_batches(folder):
    """By hand: a micro-batch of a step has samples, labels, the weight of its loss and whether it is the first and the last, of 64 bytes each; an evaluation
    beside them has samples, labels, logits, the loss, and how many labels count and are met."""
    samples, batch = 4 * 3 + 8, 1024
    for accumulation in (1, 2, 5):
        package = small_package(folder, settings("SGD", batch, accumulation), name="small.dsp")
        expected = accumulation * (batch * samples + 3 * 64) + batch * (samples + 4 * 4) + 3 * 64
        found = planned(package, n=batch)["data"]
        expect(found == expected, f"{accumulation} micro-batches: {found} bytes, by hand {expected}")


@case(seconds=12)
def plans_are_what_is_measured(folder):
    """The most that a process has in memory, less what it has before it loads the package, as the log says and as is seen from outside:
    within 1 % of the plan with what threads need, and 8 MiB, which are the package's code and what describes it, stacks of threads, and a batch that is read."""
    hidden, length, batch = 512, 256, 4
    model = models.gpt(layers=4, hidden=hidden, heads=8, vocabulary=8000, positions=length)
    for extra in ({}, {"activation_checkpointing": {"enabled": True}}):
        package = train_package(folder, model, settings("AdamW", batch, **extra), f"--dim=length={length}")
        data = data_of(folder, model, samples=8, length=length)
        plan = planned(package, batch=batch)
        # Evaluations come within the run, so that the log sees their memory.
        seen = most_memory("train", package, f"--data={data}", f"--eval-data={data}", "--eval-interval=1", "--steps=3", "--threads=2", f"--log={folder / 'log.jsonl'}")
        logged = [row / 2**20 for row in column(log_of(folder / "log.jsonl"), "peak_bytes")]
        total = (plan["total_bytes"] + 2 * plan["scratch_per_thread"]) / 2**20
        expect(logged == sorted(logged) and -0.01 * total < logged[-1] - total < 0.01 * total + 8, f"logged {logged} MiB, planned {total:.1f} MiB: {plan}")
        # From outside the process is seen before its libraries are there, which take some MiB.
        expect(abs(seen - logged[-1]) < 16, f"the log says {logged[-1]:.1f} MiB, seen from outside {seen:.1f} MiB")


@case(seconds=30)
def with_quantized_weights(folder):
    """MoQ beside layer dropping and recomputation: with theta 1 the bits of MoQ alone, with blocks dropped those without recomputation."""
    model, data = models.gpt(positions=8), None
    quantized = {"quantize_training": {"enabled": True, "quantize_bits": {"start_bits": 9, "target_bits": 8},
                                       "quantize_schedule": {"quantize_period": 2, "schedule_offset": 1}}}
    data = data_of(folder, model, samples=16)
    states = {}
    for name, more in (("alone", {}), ("open", drops(theta=1)), ("dropped", drops()), ("again", {**drops(), "activation_checkpointing": {"enabled": True}})):
        package = train_package(folder, model, settings("AdamW", 2, 2, **quantized, **more), "--dim=length=8", name=f"{name}.dsp")
        train(package, data, "--steps=5", "--seed=6", f"--checkpoint={folder / name}", f"--log={folder / f'{name}.jsonl'}", f"--eval-data={data}")
        rows = log_of(folder / f"{name}.jsonl")
        expect(rows[-1]["bits"] == 8 and np.isfinite(rows[-1]["eval_loss"]), f"{name}: {rows[-1]}")
        states[name] = [safetensors(folder / name / "global_step5" / f"{part}.safetensors") for part in ("parameters", "optimizer")]
    for one, other in (("alone", "open"), ("dropped", "again")):
        for a, b in zip(states[one], states[other]):
            expect(a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a), f"seed {SEED}: {one} and {other} differ")
    expect(any(np.any(states["open"][0][name] != states["dropped"][0][name]) for name in states["open"][0]), "no block was dropped")
