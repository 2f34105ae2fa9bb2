"""bf16 and fp16 on ranks: from stage 1 on, parameters take 2 bytes where they are read and 2 on their way; ranks own the masters in f32.

The oracle rounds bits by itself, and computes bytes from ZeRO's table (1910.02054, section 5) with p = 2, k = 12."""
import json

import numpy as np
from onnx import numpy_helper

from kit import case, expect, tool
from programs import SEED
from ranks_offload_cases import offloading
from ranks_plan_cases import ZERO, counted, padded_elements, planned, same_sites
from ranks_runs import STAGES, Stages, latest, logical, mlp, moved, random, rows, same, with_weights
from training_runs import log_of, settings, train_package

ADAM = ("AdamW", {"lr": 0.02, "weight_decay": 0.1})
# A table of which rows are read, a norm, a product, and one with the table itself.
TIED = """<ir_version: 9, opset_import: ["": 17]> m (int64[n, 3] ids) => (float[n, 3, 23] y)
          { rows = Gather (table, ids) h = LayerNormalization (rows, gain, shift) z = MatMul (h, w) a = Add (z, b) t = Tanh (a) s = Add (t, rows)
            across = Transpose <perm = [1, 0]> (table) y = MatMul (s, across) }"""


def section(number=0):
    """Each test has one of the two, drawn."""
    return {("bf16", "fp16")[(SEED + number) % 2]: {"enabled": True}}


def rates(folder, number=0):
    """Which kernels multiply bf16 is not measured, which neighbours would disturb, but drawn."""
    (folder / "rates.json").write_text(json.dumps({"ceilings": {"f32_gflops": 100, "bf16_gflops": (50, 200)[(SEED // 2 + number) % 2]}}))
    return f"--ceilings={folder / 'rates.json'}"


def rounded(array, kind):
    """What bf16 or fp16 has of f32, to the nearest, ties to even."""
    if kind == "fp16":
        return array.astype(np.float16).astype(np.float64)
    bits = np.asarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32).astype(np.float64)


def tied(g):
    return with_weights(TIED, {"table": g.standard_normal((23, 11)), "gain": 1 + g.random(11), "shift": g.standard_normal(11) / 3, "w": g.standard_normal((11, 11)) / 3,
                               "b": g.standard_normal(11) / 3})


def tied_data(folder, g):
    np.savez(folder / "data.npz", ids=g.integers(0, 23, (50, 3)), labels=g.integers(0, 23, (50, 3)))
    return folder / "data.npz"


def small(folder, number=0, **config):
    return Stages(folder, mlp(random()), rows(folder / "data.npz", random(1)), rates(folder, number), logits="y", **{"optimizer": ADAM, **section(number), **config})


@case(seconds=6)
def same_bits_at_all_stages(folder):
    """Parameters, which are the masters, and what evaluation finds of what is read of them."""
    for kind in ("bf16", "fp16"):
        model = tied(random())
        stages = Stages(folder, model, tied_data(folder, random(1)), rates(folder), logits="y", optimizer=ADAM, **{kind: {"enabled": True}})
        for ranks in (2, 3):
            runs = [stages.run(stage, ranks, f"--eval-data={folder / 'data.npz'}", "--eval-interval=5") for stage in STAGES]
            states, logs = [logical(run) for run in runs], [[(row["loss"], row.get("eval_loss")) for row in log_of(run.with_suffix(".jsonl"))] for run in runs]
            moved(states[0], model)
            expect(all(np.any(rounded(states[0][name], kind) != states[0][name]) for name in ("table", "gain", "w")), "masters are as coarse as what is read")
            for stage in STAGES:
                same(states[stage], states[0], f"{kind}: stage {stage} on {ranks} ranks")
                expect(logs[stage] == logs[0], f"seed {SEED}, {kind}: stage {stage} on {ranks} ranks: losses {logs[stage]}, expected {logs[0]}")
            if ranks == 2:
                same(states[0], logical(stages.run(2, 1, accumulation=2)), f"{kind}: beside one process")


@case(seconds=6)
def optimizers(folder):
    """Trust ratios are of masters, whole ones and parts; tensors that stay whole at stage 3 are rounded, too; messages are cut."""
    for number, (optimizer, zero) in enumerate(((("Lamb", {"lr": 0.02}), {}), (("SGD", {"lr": 0.1, "momentum": 0.9}), {"allgather_bucket_size": 70}),
                                                (ADAM, {"stage3_param_persistence_threshold": 20, "stage3_prefetch_bucket_size": 70}))):
        stages = small(folder, number, stages=(0, 1 + (SEED + number) % 2, 3), optimizer=optimizer, zero=zero)
        states = [logical(stages.run(stage, 3)) for stage in stages.packages]
        for state in states[1:]:
            same(state, states[0], f"{optimizer[0]}, {zero}")


@case(seconds=6)
def bytes_of_the_formula(folder):
    """p = 2, g = 4, k = 12: planned, held and sent."""
    g = random(2)
    data = rows(folder / "data.npz", g)
    for stage in (1, 2, 3):
        config = settings(micro=2, zero_optimization=ZERO | {"stage": stage}, **section(stage))
        package = train_package(folder, mlp(g, inner=130, more=65), config, rates(folder), logits="y")
        for ranks in (2, 3):
            where = f"stage {stage} on {ranks} ranks"
            plan = planned(folder, ranks, "--logits=y")
            same_sites(plan, counted(folder, package, data, ranks), where)
            shards = [-(-unit["elements"] // (64 * ranks)) * 64 for unit in plan["units"]]
            expect(sum(unit["elements"] for unit in plan["units"]) == padded_elements(folder / "model.onnx"), f"{where}: units {plan['units']}")
            part, whole = sum(shards), ranks * sum(shards)
            held = {"parameters": 2 * (part if stage == 3 else whole), "gradients": 4 * (whole if stage == 1 else part), "optimizer": 12 * part}
            expect({key: plan["bytes"][key] for key in held} == held, f"{where}: planned {plan['bytes']}, expected {held}")
            sent = {kind: sum(site["sent"] for site in plan["sites"] if site["calls"] and site["type"] == kind and not site["site"].startswith("norm"))
                    for kind in ("f32", "bf16", "f16")}
            expect(sent["f32"] == (ranks - 1) * 4 * part, f"{where}: sends {sent}")
            # What is read on the way there alone is gathered once.
            once, twice = (ranks - 1) * 2 * part, (ranks - 1) * 2 * 2 * part
            found = sent["bf16"] + sent["f16"]
            expect(found == once if stage < 3 else once < found <= twice, f"{where}: sends {sent}, expected {once} or {twice} of parameters")
            if stage == 3:
                most = sorted((2 * ranks * shard for shard in shards), reverse=True)
                expect(0 < plan["bytes"]["gathered"] <= sum(most[:2]), f"{where}: gathers {plan['bytes']['gathered']}, units take {most}")


@case(seconds=6)
def goes_on_at_any_stage(folder):
    """What is read follows from the masters of a checkpoint, which has nothing else of parameters."""
    stages = small(folder)
    stopped, whole = stages.run(3, 4, steps=7), logical(stages.run(3, 4, steps=12))
    before = logical(stopped)
    expect(sorted(before) == sorted(f"{name}{suffix}" for name in ("w0", "b0", "w1", "b1", "w2") for suffix in ("", "/exp_avg", "/exp_avg_sq")), f"{sorted(before)}")
    expect(all(array.dtype == np.float32 for array in before.values()), "states are not f32")
    for stage in STAGES:
        for ranks in (1, 2, 3, 4):
            again = stages.goes_on(stopped, stage, ranks, steps=7)
            same(logical(again), before, f"loaded at stage {stage} on {ranks} ranks")
        same(logical(stages.goes_on(stopped, stage, 4, steps=12)), whole, f"goes on at stage {stage}")
    plain = train_package(folder, mlp(random()), settings(micro=2, optimizer=ADAM), "--reference", logits="y", name="plain.dsp")
    tool("ds-run", "train", plain, f"--data={stages.data}", "--steps=7", f"--checkpoint={stopped}", "--resume")
    same(logical(stopped), before, "loaded in f32")
    found = [tool("ds-run", "eval", stages.packages[stage], f"--data={stages.data}", f"--checkpoint={stopped}").out for stage in (0, 2, 3)]
    expect(found[0] and found == [found[0]] * 3, f"evaluations: {found}")


@case(seconds=6)
def states_in_files(folder):
    """Masters go with the optimizer's states, what is read of them with parameters."""
    stages = small(folder)
    (folder / "disk").mkdir()
    for stage in STAGES[1:]:
        stages.zero = {}
        expected = logical(stages.run(stage, 3, steps=8))
        stages.zero = offloading(stage, folder / "disk")
        count = folder / f"{stage}.json"
        run = stages.run(stage, 3, f"--counters={count}", steps=4)
        for rank in json.loads(count.read_text())["ranks"]:
            inFiles = rank["bytes"]["optimizer"] + (rank["bytes"]["parameters"] if stage == 3 else 0)
            expect(rank["places"]["file"] == inFiles, f"stage {stage}: {rank['places']}, expected {inFiles} bytes in files")
        same(logical(stages.goes_on(run, stage, 3, steps=8)), expected, f"stage {stage}, in files")


def by_numpy(weights, x, labels, kind, rate, readers):
    """Parameters after steps of plain descent, in float64, but that products round both sides, and readers what `readers` says; masters are f32."""
    r, state = (lambda array: rounded(np.asarray(array, np.float32), kind)), {name: array.astype(np.float64) for name, array in weights.items()}
    for batch, expected in zip(x, labels):
        w = {name: r(array) if name in readers else array for name, array in state.items()}
        t0 = np.tanh(r(batch) @ r(w["w0"]) + w["b0"])
        t1 = np.tanh(r(t0) @ r(w["w1"]) + w["b1"])
        y = r(t1) @ r(w["w2"])
        share = np.exp(y - y.max(1, keepdims=True))
        dy = (share / share.sum(1, keepdims=True) - np.eye(4)[expected]) / len(batch)
        d1 = r(dy) @ r(w["w2"]).T * (1 - t1 ** 2)
        d0 = r(d1) @ r(w["w1"]).T * (1 - t0 ** 2)
        gradients = {"w2": r(t1).T @ r(dy), "w1": r(t0).T @ r(d1), "b1": d1.sum(0), "w0": r(batch).T @ r(d0), "b0": d0.sum(0)}
        state = {name: (array - rate * gradients[name]).astype(np.float32).astype(np.float64) for name, array in state.items()}
    return state


@case(seconds=6)
def steps_beside_numpy(folder):
    """Three steps of one rank: biases are read rounded, too, and masters lose nothing between steps."""
    g, kind = random(5), ("bf16", "fp16")[SEED % 2]
    x, labels = g.standard_normal((3, 8, 5), np.float32), g.integers(0, 4, (3, 8))
    np.savez(folder / "data.npz", x=x.reshape(24, 5), labels=labels.reshape(24))
    model = mlp(random(6))
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    scale = {"loss_scale": 1} if kind == "fp16" else {}
    for stage in (0, 2):
        package = train_package(folder, model, settings(("SGD", {"lr": 0.5}), micro=8, zero_optimization={"stage": stage}, **{kind: {"enabled": True, **scale}}), rates(folder), logits="y")
        tool("ds-run", "train", package, f"--data={folder / 'data.npz'}", "--steps=3", "--shuffle=off", f"--checkpoint={folder / f'run{stage}'}")
        found = logical(folder / f"run{stage}")
        expected, others = (by_numpy(weights, x, labels, kind, 0.5, names) for names in (tuple(weights), ("w0", "w1", "w2")))
        off, away = (sum(np.sum((found[name] - state[name]) ** 2) for name in weights) ** 0.5 for state in (expected, others))
        expect(off < away / 2, f"seed {SEED}, {kind}, stage {stage}: {off:.3g} from what reads rounded biases, {away:.3g} from what reads exact ones")


@case(seconds=6)
def quantized_weights_stay_f32(folder):
    """MoQ rounds from f32; a note says that parameters take 4 bytes."""
    config = settings(micro=2, zero_optimization={"stage": 1}, quantize_training={"enabled": True, "quantize_bits": {"start_bits": 5, "target_bits": 4},
                                                                                         "quantize_schedule": {"quantize_period": 1, "schedule_offset": 1}}, **section())
    package = train_package(folder, mlp(random()), config, logits="y")
    result = tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--labels=labels", "--logits=y",
                  f"--config={folder / 'ds_config.json'}", "--mesh=data=2", f"--plan={folder / 'plan.json'}")
    expect("note: quantize_training: parameters stay f32" in result.err, f"expected a note: {result}")
    plan = json.loads((folder / "plan.json").read_text())
    part, gathers = sum(unit["shard"] for unit in plan["units"]), {site["type"] for site in plan["sites"] if site["site"].startswith("parameters")}
    held = {"parameters": 4 * 2 * part, "optimizer": 8 * part}
    expect({key: plan["bytes"][key] for key in held} == held and gathers == {"f32"}, f"planned {plan['bytes']}, gathers of {gathers}, expected {held}")
    same_sites(plan, counted(folder, package, rows(folder / "data.npz", random()), 2), "quantized")
