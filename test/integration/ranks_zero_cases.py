"""One package for any number of ranks: parameters have the same bits whatever ranks share, by which transport they talk, and in messages
of which size; on 2, 4 and 8 ranks they are those of one process that accumulates as many micro-batches."""
import json

import numpy as np

import training_models as models
from kit import case, expect, tool
from programs import SEED
from ranks_runs import STAGES, Stages, logical, mlp, moved, random, rows, same, tokens, with_weights
from training_runs import log_of

NORMED = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 1, 6, 5] x) => (float[n, 3] logits)
  { c0 = Conv (x, k0) h0, m0, v0 = BatchNormalization <training_mode = 1, momentum = 0.875> (c0, scale0, shift0, mean0, var0)
    r0 = Relu (h0) c1 = Conv (r0, k1) h1, m1, v1 = BatchNormalization <training_mode = 1, momentum = 0.75> (c1, scale1, shift1, mean1, var1)
    r1 = Relu (h1) g = GlobalAveragePool (r1) f = Flatten (g) logits = Gemm (f, head, bias) }"""


def normed(g):
    """A CNN whose batch norms are trained: each rank's micro-batches move the running statistics."""
    arrays = {"k0": g.standard_normal((4, 1, 3, 3)) / 2, "scale0": 1 + g.random(4), "shift0": g.standard_normal(4) / 3, "mean0": g.standard_normal(4),
              "var0": 0.5 + g.random(4), "k1": g.standard_normal((6, 4, 2, 2)) / 3, "scale1": 1 + g.random(6), "shift1": g.standard_normal(6) / 3,
              "mean1": g.standard_normal(6), "var1": 0.5 + g.random(6), "head": g.standard_normal((6, 3)), "bias": g.standard_normal(3)}
    return with_weights(NORMED, arrays), ("mean0", "var0", "mean1", "var1")


def some_stages():
    """Stage 0 and another one, drawn: compiling a transformer takes seconds."""
    return 0, int(random(7).integers(1, 4))


def same_bits(stages, model=None, ranks=(2, 3, 4), own=()):
    """`own` are names of states that one process alone moves otherwise: running statistics."""
    for number, count in enumerate(ranks):
        states = {}
        for stage in stages.packages:
            transport = ("shm", "tcp")[(SEED + stage + number) % 2]
            run = stages.run(stage, count, transport=transport)
            states[stage] = logical(run)
            same(states[stage], states[min(states)], f"stage {stage} on {count} ranks, {transport}")
            stages.clips(run)
        if model:
            moved(states[min(states)], model)
        if count & (count - 1) == 0:
            alone = logical(stages.run(min(states), 1, accumulation=count))
            same(states[min(states)], alone, f"{count} ranks beside one process", [name for name in alone if name not in own])


@case(seconds=23)
def gpt(folder):
    """Its table is the first block's and the head's."""
    model = models.gpt(hidden=16, heads=2, seed=SEED)
    stages = Stages(folder, model, tokens(folder / "data.npz", random()), "--shift-labels", stages=some_stages(), optimizer=("AdamW", {"lr": 0.01}))
    same_bits(stages, model)


@case(seconds=12)
def bert(folder):
    model = models.bert(hidden=16, heads=2, seed=SEED)
    data = folder / "data.npz"
    g = random()
    np.savez(data, input_ids=g.integers(0, 61, (50, 6)), attention_mask=(g.integers(0, 6, (50, 1)) >= np.arange(6)).astype(np.int64), labels=g.integers(0, 3, 50))
    same_bits(Stages(folder, model, data, "--reference", optimizer=("AdamW", {"lr": 0.01, "weight_decay": 0.1})), model)


@case(seconds=12)
def t5(folder):
    """Two stacks over one table; the encoder's blocks come before the decoder's."""
    model = models.t5(hidden=16, heads=2, layers=1, seed=SEED)
    data = tokens(folder / "data.npz", random(), ("decoder_input_ids", "input_ids"))
    same_bits(Stages(folder, model, data, "--shift-labels", stages=some_stages(), optimizer=("Adam", {"lr": 0.01})), model)


@case(seconds=9)
def batch_norm(folder):
    """Running statistics have the same bits at each stage; one process moves them one micro-batch after the other."""
    model, statistics = normed(random())
    g = random(1)
    np.savez(folder / "data.npz", x=g.standard_normal((50, 1, 6, 5), np.float32), labels=g.integers(0, 3, 50))
    same_bits(Stages(folder, model, folder / "data.npz", stages=some_stages(), optimizer=("SGD", {"lr": 0.1, "momentum": 0.9})), model, own=statistics)


@case(seconds=5)
def eight_ranks(folder):
    """More ranks than blocks of elements: most have nothing of most units."""
    model = mlp(random())
    same_bits(Stages(folder, model, rows(folder / "data.npz", random(1)), "--reference", logits="y", optimizer=("AdamW", {"lr": 0.02})), model, ranks=(8,))


def small(folder, *options, samples=50, **config):
    """Plain loops compile in a seventh of the time."""
    return Stages(folder, mlp(random()), rows(folder / "data.npz", random(1), samples), "--reference", *options, logits="y", **config)


@case(seconds=18)
def optimizers(folder):
    """Each rule, with parameters that do not decay in units of their own."""
    rules = ("Adam", {"lr": 0.02, "adam_w_mode": False, "weight_decay": 0.1}), ("AdamW", {"lr": 0.02, "weight_decay": 0.1}), \
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("Adagrad", {"lr": 0.1}), ("Lamb", {"lr": 0.05, "weight_decay": 0.1})
    for rule in rules:
        (folder / rule[0]).mkdir()
        stages = small(folder / rule[0], *["--no-decay=^b"] * (rule[0] not in ("Adagrad", "Lamb")), optimizer=rule)
        same_bits(stages, mlp(random()), ranks=(2 + SEED // 2 % 3,))
        expect("zero/layer 0 without decay" in tool("ds-run", "inspect", stages.packages[1]).out or rule[0] in ("Adagrad", "Lamb"), "no unit without decay")


@case(seconds=12)
def sizes_of_messages(folder):
    """Of 1 element, of some tensors, of all, under way or waited for, gathered ahead or not, small tensors whole or not: the bits of ranks' sums
    do not depend on what travels together, nor when."""
    kinds = ({"reduce_bucket_size": 1, "allgather_bucket_size": 1, "stage3_prefetch_bucket_size": 70, "overlap_comm": True},
             {"reduce_bucket_size": 100, "allgather_bucket_size": 100, "stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 10000,
              "overlap_comm": False},
             {"stage3_param_persistence_threshold": 50, "stage3_max_live_parameters": 200, "stage3_max_reuse_distance": 1, "overlap_comm": True})
    expected = {}
    for number, zero in enumerate(kinds):
        (folder / f"{number}").mkdir()
        stages = small(folder / f"{number}", zero=zero, optimizer=("AdamW", {"lr": 0.02}))
        for stage in STAGES:
            for accumulation in (1, 3) if stage in (1, 2) else (1,):
                key = accumulation, accumulation > 1 and stage > 1  # what stages 2 and 3 add up first
                state = logical(stages.run(stage, 3, accumulation=accumulation, transport=("shm", "tcp")[(number + stage) % 2]))
                same(state, expected.setdefault(key, state), f"stage {stage}, {accumulation} micro-batches, {zero}")


@case(seconds=10)
def parameters_that_arrive_late(folder):
    """The next micro-batch begins while parameters of 9 MB are on their way from the ranks that have updated them: it reads them when they are there."""
    expected = None
    for overlaps in (False, True):
        own = folder / str(overlaps)
        own.mkdir()
        model = mlp(random(), 1500, 1500)
        stages = Stages(own, model, rows(own / "data.npz", random(1), 24), "--reference", logits="y", stages=(1, 2), zero={"overlap_comm": overlaps},
                        optimizer=("AdamW", {"lr": 0.02}))
        for stage, package in stages.packages.items():
            update = next(e for e in json.loads((package / "manifest.json").read_text())["variants"][0]["entries"] if e["name"] == "update")
            late = [c.get("deferred", False) for c in update["collectives"] if c["site"].startswith("parameters/")]
            expect(len(late) == 3 and set(late) == {overlaps}, f"stage {stage}, overlap_comm {overlaps}: deferred {late}")
            for transport in ("shm", "tcp"):
                state = logical(stages.run(stage, 3, transport=transport, steps=5))  # the first one waits: whether parameters move is watched
                moved(state, model)
                expected = expected or state
                same(state, expected, f"stage {stage}, {transport}, overlap_comm {overlaps}")


@case(seconds=4)
def several_micro_batches(folder):
    """Stages 0 and 1 add up micro-batches, then ranks; 2 and 3 the other way round."""
    stages = small(folder, optimizer=("AdamW", {"lr": 0.02}))
    states = [logical(stages.run(stage, 2, accumulation=3)) for stage in STAGES]
    same(states[1], states[0], "stages 0 and 1")
    same(states[3], states[2], "stages 2 and 3")
    moved(states[3], mlp(random()))
    for name, array in states[0].items():
        off = np.max(np.abs(array - states[2][name])) / max(np.max(np.abs(array)), 1e-9)
        expect(off < 1e-3, f"seed {SEED}: {name}: stages 0 and 2 are {off:.3g} apart")


@case(seconds=5)
def last_steps_with_fewer_micro_batches(folder):
    """An epoch that ends with a micro-batch for some ranks only, and with one that is smaller."""
    stages = small(folder, samples=11, optimizer=("AdamW", {"lr": 0.02}))
    same_bits(stages, ranks=(3, 4))


@case(seconds=12)
def overflows_skip_on_all_ranks(folder):
    """One rank's batch overflows; all skip the step, and halve the scale."""
    g = random(3)
    x, labels = g.standard_normal((32, 5), np.float32), g.integers(0, 4, 32)
    x[g.integers(0, 32), g.integers(0, 5)] = 1e5  # no f16; of four ranks, one has it
    np.savez(folder / "data.npz", x=x, labels=labels)
    fp16 = {"enabled": True, "initial_scale_power": 14, "loss_scale_window": 2, "hysteresis": 1}
    stages = Stages(folder, mlp(random()), folder / "data.npz", logits="y", stages=some_stages(), fp16=fp16, optimizer=("SGD", {"lr": 0.01, "momentum": 0.9}))
    expected = None
    for stage in stages.packages:
        run = stages.run(stage, 4)
        log = log_of(run.with_suffix(".jsonl"))
        flags = [row["overflow"] for row in log]
        expect(any(flags) and not all(flags), f"seed {SEED}: overflows at stage {stage}: {flags}")
        found = logical(run), flags, [row["loss_scale"] for row in log], [row["grad_norm"] for row in log if not row["overflow"]]
        expected = expected or found
        expect(found[1:] == expected[1:], f"seed {SEED}: stage {stage}: {found[1:]}, expected {expected[1:]}")
        same(found[0], expected[0], f"stage {stage}")
