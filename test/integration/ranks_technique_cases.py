"""What ranks share beside everything else that a training may do: layers that are dropped, weights that are rounded or frozen, heads, ties,
activations that are computed again, other precisions, parameters of odd sizes."""
import json
import re

import numpy as np
import onnx

import training_models as models
from kit import case, expect, tool
from programs import SEED
from ranks_runs import STAGES, Stages, logical, mlp, random, rows, same, tokens, with_weights
from training_runs import OF_THE_MACHINE, log_of, settings, write_config

ADAM = ("AdamW", {"lr": 0.02, "weight_decay": 0.1})


def same_at_each_stage(folder, model, data, *options, ranks=3, logits="y", stages=STAGES, steps=8, **config):
    """State and log; each package exports what its ranks have saved."""
    made, expected = Stages(folder, model, data, *options, logits=logits, stages=stages, **{"optimizer": ADAM, **config}), None
    for stage in stages:
        run = made.run(stage, ranks, steps=steps)
        log = [{key: value for key, value in row.items() if key not in OF_THE_MACHINE} for row in log_of(run.with_suffix(".jsonl"))]
        tool("ds-run", "checkpoint", "export", run, f"--package={made.packages[stage]}", "-o", folder / "trained.onnx")
        found = logical(run), log, (folder / "trained.onnx").read_bytes()
        expected = expected or found
        same(found[0], expected[0], f"stage {stage} on {ranks} ranks")
        expect(found[1] == expected[1], f"seed {SEED}: stage {stage}: the log ends with {found[1][-1]}, expected {expected[1][-1]}")
        expect(found[2] == expected[2], f"stage {stage}: another exported model")
    return expected


@case(seconds=12)
def sizes_of_parameters(folder):
    """None, which is not trained, one, a block, one less and one more; on 8 ranks most hold nothing."""
    g = random()
    text = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 5] x) => (float[n, 4] y)
        { z0 = MatMul (x, w0) a0 = Add (z0, b0) t0 = Tanh (a0) z1 = MatMul (t0, w1) y = Add (z1, b1) }"""
    for size, ranks in ((0, 2), (1, 8), (63, 3), (64, 3), (65, 3)):
        (folder / f"{size}").mkdir()
        arrays = {"w0": g.standard_normal((5, size)) / 2, "b0": g.standard_normal(size), "w1": g.standard_normal((size, 4)) / 2, "b1": g.standard_normal(4)}
        state, _, _ = same_at_each_stage(folder / f"{size}", with_weights(text, arrays), rows(folder / "data.npz", g), "--reference", ranks=ranks, steps=4,
                                         stages=(0, 1 + SEED % 2, 3))
        expect(size == 0 or state["b0"].shape == (size,), f"b0: {sorted(state)}")


@case(seconds=12)
def chosen_parameters(folder):
    """Frozen ones, a new head, one weight that is read twice and one that is stored twice."""
    g, data = random(), rows(folder / "data.npz", random(1))
    tied = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 5] x) => (float[n, 5] y)
        { z0 = MatMul (x, w0) t0 = Tanh (z0) z1 = MatMul (t0, w1) t1 = Tanh (z1) z2 = MatMul (t1, w1) t2 = Add (z2, b) y = MatMul (t2, turned) }"""
    w = g.standard_normal((5, 7)) / 2
    twice = with_weights(tied, {"w0": w, "w1": g.standard_normal((7, 7)) / 3, "b": g.standard_normal(7), "turned": w.T})
    for number, (model, logits, options, kept) in enumerate([(mlp(g), "y", ["--freeze=^w1$|^b0$"], {"w0", "b1", "w2"}),
                                                             (mlp(g), "head", ["--head=y:6", "--train=^head"], {"head.weight", "head.bias"}),
                                                             (twice, "y", [], {"w0", "w1", "b"}),
                                                             (twice, "y", ["--untie"], {"w0", "w1", "b", "turned"})]):
        (folder / f"{number}").mkdir()
        state, _, _ = same_at_each_stage(folder / f"{number}", model, data, "--reference", *options, logits=logits, stages=(0, 1 + SEED % 2, 3), steps=4)
        expect({name for name in state if "/" not in name} == kept, f"{options}: {sorted(state)}")


@case(seconds=6)
def layers_that_are_dropped(folder):
    """The same ones on all ranks; units whose gradients one branch computes together are sent one after the other."""
    model = models.gpt(hidden=16, heads=2, layers=3, seed=SEED)
    drops = {"progressive_layer_drop": {"enabled": True, "theta": 0.3, "gamma": 0.4}}
    _, log, _ = same_at_each_stage(folder, model, tokens(folder / "data.npz", random()), "--shift-labels", "--reference", r"--no-decay=bias|ln_",
                                   logits="logits", steps=12, **drops)
    expect(any(row["blocks"] < 9 for row in log), f"blocks: {[row['blocks'] for row in log]}")


SHARED = ({}, {"stage3_prefetch_bucket_size": 0}, {"stage3_prefetch_bucket_size": 1000}, {"stage3_max_reuse_distance": 10**9},
          {"stage3_param_persistence_threshold": 100}, {"offload_param": {"device": "nvme", "max_in_cpu": 0}, "offload_optimizer": {"device": "nvme"}})
BESIDE = ({}, {"activation_checkpointing": {"enabled": True}}, {"bf16": {"enabled": True}},
          {"quantize_training": {"enabled": True, "quantize_bits": {"start_bits": 8, "target_bits": 6},
                                 "quantize_schedule": {"quantize_period": 2, "schedule_offset": 2}}})


@case(seconds=12)
def layers_that_are_dropped_are_not_gathered(folder):
    """A layer's parameters travel in the rounds in which it runs, by the log, on either way, and always in evaluation; the bits are those of stage 2,
    which gathers nothing on the way, whatever else there is."""
    steps, layers, ranks, hidden = 10, 3, int(random(1).integers(2, 4)), 16
    zero, beside = (choices[random(2 + number).integers(len(choices))] for number, choices in enumerate((SHARED, BESIDE)))
    zero = {key: {**keys, "nvme_path": str(folder)} if key.startswith("offload") else keys for key, keys in zero.items()}
    drops = {"progressive_layer_drop": {"enabled": True, "theta": 0.3, "gamma": 0.4}, "optimizer": ADAM, **beside}
    model, data, found = models.gpt(hidden=hidden, heads=2, layers=layers, seed=SEED), tokens(folder / "data.npz", random()), {}
    for stage, keys in ((2, {}), (3, zero)):
        (folder / f"{stage}").mkdir()
        made = Stages(folder / f"{stage}", model, data, "--shift-labels", "--dim=length=6", stages=(stage,), zero=keys, **drops)
        run = made.run(stage, ranks, f"--eval-data={data}", f"--counters={folder / f'{stage}.json'}", accumulation=2, steps=steps)
        log = log_of(run.with_suffix(".jsonl"))
        found[stage] = logical(run), [{key: value for key, value in row.items() if key not in OF_THE_MACHINE} for row in log]
    where = f"seed {SEED}: {ranks} ranks, {zero}, {list(beside)}"
    same(found[3][0], found[2][0], where)
    expect(found[3][1] == found[2][1], f"{where}: the log ends with {found[3][1][-1]}, expected {found[2][1][-1]}")
    rounds = [round(rate * steps * 2) for rate in log[-1]["keep_rates"]]
    expect(len(rounds) == layers and min(rounds) < 2 * steps, f"{where}: no layer was dropped: {rounds}")
    tool("ds-opt", folder / "3/model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=logits", "--labels=labels", "--shift-labels",
                "--dim=length=6", f"--config={folder / '3/ds_config.json'}", f"--mesh=data={ranks}", f"--plan={folder / 'plan.json'}")
    plan = {site["site"]: site for site in json.loads((folder / "plan.json").read_text())["sites"]}
    apart = zero.get("stage3_param_persistence_threshold", 0)  # tensors of fewer elements are whole on all ranks
    ways, width = 1 if "stage3_max_reuse_distance" in zero else 2, 2 if "bf16" in beside else 4
    counters = [{site["site"]: site for site in rank["sites"]} for rank in json.loads((folder / "3.json").read_text())["ranks"]]
    for layer, count in enumerate(rounds):
        sizes = [array.size for name, array in ((tensor.name, onnx.numpy_helper.to_array(tensor)) for tensor in model.graph.initializer) if name.startswith(f"h.{layer}.") and array.size >= apart]
        shard = -(-sum(-(-size // 64) * 64 for size in sizes) // (64 * ranks)) * 64
        own = [name for name in counters[0] if re.fullmatch(rf"micro/(backward/)?block {layer}(, rest)?", name)]
        for name in own:
            calls = {rank[name]["calls"] for rank in counters}
            expect(calls == {count} and plan[name]["calls"] == 2, f"{where}: {name}: {calls} calls in {count} rounds, planned {plan[name]}")
            expect(counters[0][name]["sent"] * 2 == plan[name]["sent"] * count, f"{where}: counted {counters[0][name]}, planned {plan[name]}")
            evaluated = {rank[f"eval/block {layer}"]["calls"] - rank["eval/embeddings"]["calls"] for rank in counters}
            expect(evaluated == {0}, f"{where}: evaluation gathers layer {layer} as often as others and {evaluated}")
        sent, expected = sum(rank[name]["sent"] for rank in counters for name in own), ways * count * ranks * (ranks - 1) * shard * width
        expect(len(own) >= ways and sent == expected, f"{where}: layer {layer}: {sent} bytes by {own}, expected {expected}")


@case(seconds=6)
def weights_that_are_rounded(folder):
    """Stage 3 rounds what it has gathered, in groups of the whole tensor."""
    moq = {"quantize_training": {"enabled": True, "quantize_bits": {"start_bits": 8, "target_bits": 6},
                                 "quantize_schedule": {"quantize_period": 2, "schedule_offset": 2}}}
    _, log, _ = same_at_each_stage(folder, mlp(random()), rows(folder / "data.npz", random(1)), "--reference", steps=12, **moq)
    expect(len({str(row["bits"]) for row in log}) > 2, f"bits: {[row['bits'] for row in log]}")


@case(seconds=6)
def weights_that_are_rounded_by_draws(folder):
    """Stochastic rounding, mixed with what is rounded, in blocks of their own widths: the draws are those of a tensor, not of a part."""
    moq = {"quantize_training": {"enabled": True, "quantize_bits": {"start_bits": 6, "target_bits": 5}, "quantize_algo": {"q_type": "asymmetric",
           "rounding": "stochastic"}, "fp16_mixed_quantize": {"enabled": True, "quantize_change_ratio": 0.1},
           "quantize_schedule": {"quantize_period": 3, "schedule_offset": 1}}}
    same_at_each_stage(folder, mlp(random()), rows(folder / "data.npz", random(1)), "--reference", ranks=2, stages=(0, 3), steps=16, **moq)


@case(seconds=3)
def weights_that_are_rounded_go_on(folder):
    """Images are computed of the tensors that lie in units: what is restored is what the next update moves."""
    moq = {"quantize_training": {"enabled": True, "quantize_bits": {"start_bits": 8, "target_bits": 7},
                                 "quantize_schedule": {"quantize_period": 1, "schedule_offset": 0}}}
    stages = Stages(folder, mlp(random()), rows(folder / "data.npz", random(1)), "--reference", logits="y", stages=(1 + SEED % 2, 3), **moq)
    for stage in stages.packages:
        for ranks in (1, 3):
            whole, half = stages.run(stage, ranks, steps=8), stages.run(stage, ranks, steps=4)
            same(logical(stages.goes_on(half, stage, ranks, steps=8)), logical(whole), f"stage {stage} on {ranks} ranks, gone on with")


@case(seconds=3)
def double_precision(folder):
    state, _, _ = same_at_each_stage(folder, mlp(random()), rows(folder / "data.npz", random(1)), "--reference=f64", ranks=4)
    expect(all(array.dtype == np.float64 for array in state.values()), "not of f64")


@case(seconds=12)
def activations_computed_again(folder):
    """Parameters are gathered for what is computed again, too."""
    model = models.gpt(hidden=16, heads=2, seed=SEED)
    same_at_each_stage(folder, model, tokens(folder / "data.npz", random()), "--shift-labels", "--dim=length=6", logits="logits",
                       stages=(0, int(random(7).integers(2, 4))), activation_checkpointing={"enabled": True})


@case(seconds=10)
def half_precision(folder):
    same_at_each_stage(folder, mlp(random()), rows(folder / "data.npz", random(1)), stages=(0, int(random(7).integers(1, 4))), bf16={"enabled": True})


@case
def names_that_are_taken(folder):
    """A parameter may not be called as a state that ranks share."""
    text = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 5] x) => (float[n, 4] y) { z = MatMul (x, w) y = Tanh (z) }"""
    model = with_weights(text.replace("w)", "w0)"), {"w0": random().standard_normal((5, 4))})
    model.graph.initializer[0].name = model.graph.node[0].input[1] = "zero/layer 0"
    onnx.save(model, folder / "model.onnx")
    for stage in STAGES:
        config = write_config(folder, settings(zero_optimization={"stage": stage}))
        tool("ds-opt", folder / "model.onnx", "-o", folder / "m.dsp", "--reference", "--mode=train", "--logits=y", "--labels=labels", "--loss=cross_entropy",
             f"--config={config}", code=min(stage, 1), says=["begins with 'zero/'", "found 'zero/layer 0'"] if stage else ())
