"""Losses, norms and weights of whole trainings against PyTorch's, with the same weights and batches."""
import json
import math
import shutil

import numpy as np

import training_models as models
from kit import case, expect, tool
from training_runs import (by_torch, column, log_of, settings, small_data, small_package, train, train_package, weights,
                           write_config)

GPT = "cross_entropy|logits|labels|-100|shift", ["--shift-labels"]
BERT = "cross_entropy|logits|labels|-100", []
CYCLE = "OneCycle", {"cycle_min_lr": 1e-4, "cycle_max_lr": 3e-3, "cycle_first_step_size": 8, "cycle_second_step_size": 10,
                     "decay_step_size": 3, "decay_lr_rate": 0.1, "cycle_min_mom": 0.85, "cycle_max_mom": 0.95}
# A share of the loss, of a norm, of a tensor's norm: sums in another order, a few units in the last place of f64 that hundreds of steps
# enlarge (1e-13 was seen). Weights whose gradient is nothing but such units, as a key's bias, are moved by Adagrad and Adam all the same.
LOSS, NORM, WEIGHT = 1e-9, 1e-9, 1e-6


def gpt_data(folder, samples=37):
    g = np.random.default_rng(5)
    tokens = g.integers(0, 61, (samples, 11))
    labels = tokens.copy()
    labels[3, 6:] = -100
    np.savez(folder / "data.npz", input_ids=tokens, labels=labels)
    return folder / "data.npz"


def bert_data(folder, samples=37):
    g = np.random.default_rng(6)
    mask = (np.arange(9) < g.integers(1, 10, samples)[:, None]).astype(np.int64)
    np.savez(folder / "data.npz", input_ids=g.integers(0, 61, (samples, 9)), attention_mask=mask, labels=g.integers(0, 3, samples))
    return folder / "data.npz"


def run_both(folder, kind, config, steps, reference, threads=1):
    """Our log, our weights, and PyTorch's."""
    model, data, (loss, options) = (models.gpt(layers=4), gpt_data(folder), GPT) if kind == "gpt" else (models.bert(), bert_data(folder), BERT)
    package = train_package(folder, model, config, *options, *["--reference=f64"] * reference)
    train(package, data, f"--steps={steps}", "--shuffle=off", f"--log={folder / 'log.jsonl'}", f"--checkpoint={folder / 'ck'}")
    rows = log_of(folder / "log.jsonl")
    expect([row["step"] for row in rows] == list(range(steps)), f"steps of the log: {[row['step'] for row in rows]}")
    theirs = by_torch(folder, data, loss, config, steps, double=reference, threads=threads)
    return rows, weights(folder / "ck"), theirs


def near(name, ours, theirs, bound):
    off = np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-6)
    worst = int(np.argmax(off))
    expect(np.all(off <= bound), f"{name} of step {worst} is {ours[worst]}, expected {theirs[worst]}, off by {off[worst]:.3g}")


def same_rates(rows, theirs):
    near("lr", column(rows, "lr"), theirs["lr"], 1e-12)
    if theirs["momentum"].any():
        near("momentum", column(rows, "momentum"), theirs["momentum"], 1e-12)
    else:
        expect(all(row["momentum"] is None for row in rows), "an optimizer without momentum has some in the log")


def same_weights(ours, theirs, bound):
    expected = {name.removeprefix("weight/"): array for name, array in theirs.items() if name.startswith("weight/")}
    expect(ours.keys() == expected.keys(), f"exported: {sorted(ours.keys() ^ expected.keys())} on one side only")
    whole = max(np.linalg.norm(array) / math.sqrt(array.size) for array in expected.values())
    for name, array in expected.items():
        off = np.linalg.norm(ours[name].astype(float) - array) / max(np.linalg.norm(array), 0.01 * whole * math.sqrt(array.size))
        expect(off <= bound, f"{name} is off by {off:.3g}")


def curve(folder, kind, config, steps=24, weight=WEIGHT, loss=LOSS, norm=NORM):
    """The reference, whose states are f64, too, against PyTorch in double precision."""
    rows, ours, theirs = run_both(folder, kind, config, steps, reference=True)
    same_rates(rows, theirs)
    near("loss", column(rows, "loss"), theirs["loss"], loss)
    near("grad_norm", column(rows, "grad_norm"), theirs["grad_norm"], norm)
    same_weights(ours, theirs, weight)
    return rows


@case(seconds=5)
def plain_descent(folder):
    curve(folder, "gpt", settings(("SGD", {"lr": 0.05})))


@case(seconds=4)
def momentum(folder):
    curve(folder, "bert", settings(("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01})))


@case(seconds=7)
def nesterov(folder):
    curve(folder, "gpt", settings(("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}), accumulation=4))


@case(seconds=5)
def clipped_descent(folder):
    """The norm in the log is that before clipping."""
    rows = curve(folder, "gpt", settings(("SGD", {"lr": 0.05, "momentum": 0.9}), gradient_clipping=0.5))
    expect(column(rows, "grad_norm").min() > 0.5, "nothing was clipped")


@case(seconds=8)
def adamw(folder):
    curve(folder, "gpt", settings(("AdamW", {"lr": 1e-3, "weight_decay": 0.05, "betas": [0.8, 0.95]}), accumulation=4, gradient_clipping=0.7))


@case(seconds=4)
def decay_in_the_gradient(folder):
    curve(folder, "bert", settings(("Adam", {"lr": 1e-3, "weight_decay": 0.05, "adam_w_mode": False})))


@case(seconds=5)
def cycled_momentum(folder):
    curve(folder, "gpt", settings("AdamW", scheduler=CYCLE))


@case(seconds=4)
def cycled_momentum_of_descent(folder):
    curve(folder, "bert", settings(("SGD", {"momentum": 0.9}), scheduler=CYCLE))


@case(seconds=7)
def lamb(folder):
    curve(folder, "gpt", settings(("Lamb", {"lr": 4e-3, "weight_decay": 0.01, "min_coeff": 0.08, "max_coeff": 0.5})))


@case(seconds=6)
def lamb_otherwise(folder):
    """Ratios that are not clipped, eps below the root, no bias correction, accumulation."""
    curve(folder, "bert", settings(("Lamb", {"lr": 2e-3, "weight_decay": 0.1, "eps": 1e-6, "eps_inside_sqrt": True, "bias_correction": False,
                                             "min_coeff": 1e-4, "max_coeff": 100}), accumulation=2))


@case(seconds=6)
def adagrad(folder):
    curve(folder, "gpt", settings(("Adagrad", {"lr": 0.01, "weight_decay": 0.01, "lr_decay": 0.1})))


@case(seconds=4)
def adagrad_that_begins_with_sums(folder):
    curve(folder, "bert", settings(("Adagrad", {"lr": 0.05, "initial_accumulator_value": 0.1})), steps=12)


@case(seconds=4)
def last_step_of_the_data(folder):
    """10 batches, three to a step: the last step has one, and its gradient is that of this one."""
    config, data = settings(("SGD", {"lr": 0.1, "momentum": 0.9}), accumulation=3), bert_data(folder)
    package = train_package(folder, models.bert(), config, "--reference=f64")
    train(package, data, "--epochs=1", "--shuffle=off", f"--log={folder / 'log.jsonl'}", f"--checkpoint={folder / 'ck'}")
    rows, theirs = log_of(folder / "log.jsonl"), by_torch(folder, data, BERT[0], config, 4, double=True, epochs=1)
    expect([row["samples"] for row in rows] == [12, 24, 36, 37], f"samples of steps: {[row['samples'] for row in rows]}")
    near("loss", column(rows, "loss"), theirs["loss"], LOSS)
    near("grad_norm", column(rows, "grad_norm"), theirs["grad_norm"], NORM)
    same_weights(weights(folder / "ck"), theirs, WEIGHT)


@case(seconds=4)
def chosen_parameters(folder):
    """Some do not decay, others are not trained, and are no part of the norm."""
    config, data = settings(("AdamW", {"lr": 3e-3, "weight_decay": 0.5})), bert_data(folder)
    names = [tensor.name for tensor in models.bert().graph.initializer]
    expect(any("bias" in name for name in names) and any("word" in name for name in names), f"names are {names}")
    package = train_package(folder, models.bert(), config, "--no-decay=bias|[Nn]orm", "--freeze=word", "--reference=f64")
    train(package, data, "--steps=15", "--shuffle=off", f"--log={folder / 'log.jsonl'}", f"--checkpoint={folder / 'ck'}")
    rows = log_of(folder / "log.jsonl")
    theirs = by_torch(folder, data, BERT[0], config, 15, double=True, no_decay=["bias", "Norm", "norm"], frozen=["word"])
    near("loss", column(rows, "loss"), theirs["loss"], LOSS)
    near("grad_norm", column(rows, "grad_norm"), theirs["grad_norm"], NORM)
    same_weights(weights(folder / "ck"), theirs, WEIGHT)


@case(seconds=2)
def mean_squares(folder):
    g = np.random.default_rng(2)
    np.savez(folder / "data.npz", x=g.standard_normal((22, 3), np.float32), labels=g.standard_normal((22, 4), np.float32))
    config = settings(("Adam", {"lr": 0.01}), accumulation=2)
    package = small_package(folder, config, "--reference=f64", loss="mse")
    train(package, folder / "data.npz", "--steps=20", "--shuffle=off", f"--log={folder / 'log.jsonl'}", f"--checkpoint={folder / 'ck'}")
    rows, theirs = log_of(folder / "log.jsonl"), by_torch(folder, folder / "data.npz", "mse|y|labels", config, 20, double=True)
    near("loss", column(rows, "loss"), theirs["loss"], LOSS)
    near("grad_norm", column(rows, "grad_norm"), theirs["grad_norm"], NORM)
    same_weights(weights(folder / "ck"), theirs, WEIGHT)


@case(seconds=10)
def gpt_in_single_precision(folder):
    rows, _, theirs = run_both(folder, "gpt", settings("AdamW", accumulation=4, scheduler=CYCLE, gradient_clipping=1.0), 30, reference=False)
    same_rates(rows, theirs)
    near("loss", column(rows, "loss"), theirs["loss"], 1e-5)
    near("grad_norm", column(rows, "grad_norm"), theirs["grad_norm"], 1e-4)
    near("first grad_norms", column(rows[:3], "grad_norm"), theirs["grad_norm"][:3], 1e-5)


@case(seconds=12)
def bert_in_single_precision(folder):
    rows, _, theirs = run_both(folder, "bert", settings(("SGD", {"lr": 0.02, "momentum": 0.9})), 50, reference=False)
    near("loss", column(rows, "loss"), theirs["loss"], 1e-4)
    near("first grad_norms", column(rows[:3], "grad_norm"), theirs["grad_norm"][:3], 1e-5)


@case(seconds=3)
def vectors_of_schedules(folder):
    """Rates that DeepSpeed's formulas give at `it`, which step it + 1 uses; the log has the same as the command."""
    package, data = small_package(folder, settings("AdamW")), small_data(folder)
    warmup = {"warmup_max_lr": 1e-3, "warmup_num_steps": 1000}
    cycle = {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-3, "cycle_first_step_size": 1000, "cycle_second_step_size": 1000, "decay_step_size": 1000,
             "decay_lr_rate": 0.001, "cycle_min_mom": 0.85, "cycle_max_mom": 0.99}
    ranges = {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 200, "lr_range_test_step_rate": 5}
    momentum = {0: 0.98986, 499: 0.92, 999: 0.85, 1999: 0.99}
    for kind, p, vector in (
            ("WarmupLR", warmup, {0: 0, 1: 1.0034e-4, 9: 3.333e-4, 99: 6.667e-4, 499: 8.997e-4, 999: 1e-3, 2500: 1e-3}),
            ("OneCycle", cycle, {0: 1.009e-4, 499: 5.5e-4, 999: 1e-3, 1999: 1e-4, 2999: 9.990e-5}),
            ("LRRangeTest", ranges, {0: 1.025e-4, 199: 6e-4, 399: 1.1e-3}),
            ("LRRangeTest", {**ranges, "lr_range_test_staircase": True}, {0: 1e-4, 198: 1e-4, 199: 6e-4, 399: 1.1e-3}),
            ("WarmupDecayLR", {"warmup_max_lr": 1e-3, "warmup_num_steps": 10, "total_num_steps": 110}, {60: 5e-4, 110: 0, 500: 0}),
            ("WarmupCosineLR", {"warmup_num_steps": 10, "total_num_steps": 110, "warmup_type": "linear"}, {5: 5e-4, 109: 1e-7, 500: 1e-7})):
        config = write_config(folder, settings("AdamW", scheduler=(kind, p)), f"{kind}.json")
        table = json.loads(tool("ds-run", "schedule", package, f"--config={config}", "--steps=3001", "--json").out)
        expect([row["step"] for row in table] == list(range(3001)), f"{kind}: steps of the table")
        for it, lr in vector.items():
            found = table[it + 1]["lr"] if it < 3000 else 0
            expect(abs(found - lr) <= 5e-4 * lr + 1e-12, f"{kind}: rate at {it} is {found}, expected {lr}")
            if kind == "OneCycle" and it in momentum:
                expect(abs(table[it + 1]["momentum"] - momentum[it]) < 1e-5, f"momentum at {it} is {table[it + 1]['momentum']}")
        train(package, data, "--steps=25", f"--config={config}", f"--log={folder / 'log.jsonl'}")
        for row in log_of(folder / "log.jsonl"):
            expect((row["lr"], row["momentum"]) == (table[row["step"]]["lr"], table[row["step"]]["momentum"]), f"{kind}: {row}")


@case(seconds=12)
def schedules_against_formulas(folder):
    """Cycles of different halves, cycles without momentum, warm-ups of other shapes, all against torch_training.py's formulas."""
    data, cycle = small_data(folder), {key: value for key, value in CYCLE[1].items() if not key.startswith("decay") and "mom" not in key}
    for optimizer, scheduler in (
            (("SGD", {"momentum": 0.9}), CYCLE),
            (("SGD", {"momentum": 0.6}), ("OneCycle", {**cycle, "decay_step_size": 3, "decay_lr_rate": 0.1, "cycle_momentum": False})),
            ("AdamW", ("OneCycle", {**cycle, "cycle_min_mom": 0.85, "cycle_max_mom": 0.95, "decay_step_size": 0})),
            (("Adam", {"lr": 0.02}), ("WarmupCosineLR", {"warmup_num_steps": 5, "total_num_steps": 20, "cos_min_ratio": 0.1, "warmup_min_ratio": 0.2})),
            ("Lamb", ("WarmupLR", {"warmup_min_lr": 1e-4, "warmup_max_lr": 2e-3, "warmup_num_steps": 9, "warmup_type": "linear"})),
            ("Adagrad", ("WarmupDecayLR", {"warmup_max_lr": 2e-3, "warmup_num_steps": 1, "total_num_steps": 17})),
            ("AdamW", ("LRRangeTest", {"lr_range_test_step_size": 4, "lr_range_test_staircase": True}))):
        config = settings(optimizer, scheduler=scheduler)
        package = small_package(folder, config, "--reference=f64")
        train(package, data, "--steps=24", "--shuffle=off", f"--log={folder / 'log.jsonl'}")
        rows = log_of(folder / "log.jsonl")
        theirs = by_torch(folder, data, "cross_entropy|y|labels|-100", config, 24, double=True)
        same_rates(rows, theirs)
        near("loss", column(rows, "loss"), theirs["loss"], LOSS)


@case(slow=True)
def long_curves(folder):
    """300 steps of each rule, in double and in single precision. f32 may stray by three times what PyTorch's threads do, or 3e-4
    of the loss."""
    faults = []
    cycle = "OneCycle", {**CYCLE[1], "cycle_max_lr": 2e-3, "cycle_first_step_size": 100, "cycle_second_step_size": 120}
    for kind, config in (
            ("gpt", settings(("SGD", {"lr": 0.02}))),
            ("gpt", settings(("SGD", {"lr": 0.01, "momentum": 0.9}), gradient_clipping=1.0)),
            ("bert", settings(("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}), accumulation=4)),
            ("gpt", settings(("AdamW", {"lr": 5e-4, "weight_decay": 0.01}), accumulation=4)),
            ("bert", settings(("AdamW", {"weight_decay": 0.01}), scheduler=cycle, gradient_clipping=1.0)),
            ("gpt", settings("AdamW", scheduler=cycle)),
            ("gpt", settings(("Lamb", {"lr": 2e-3, "weight_decay": 0.01}))),
            ("bert", settings(("Adagrad", {"lr": 0.01})))):
        for reference in (True, False):
            name = f"{kind} {config} {'f64' if reference else 'f32'}"
            try:
                if reference:
                    curve(folder, kind, config, 300)
                    continue
                rows, ours, theirs = run_both(folder, kind, config, 300, reference)
                found = column(rows, "loss")
                near(name + ": early loss", found[:50], theirs["loss"][:50], 1e-4)
                data, loss = folder / "data.npz", (GPT if kind == "gpt" else BERT)[0]
                other = by_torch(folder, data, loss, config, 300, threads=2)
                spread = max(np.max(np.abs(other["loss"] - theirs["loss"])), 1e-4 * np.max(theirs["loss"]))
                off = np.max(np.abs(found - theirs["loss"]))
                expect(off <= 3 * spread, f"{name}: loss is off by {off:.3g}, PyTorch's threads differ by {spread:.3g}")
            except AssertionError as fault:
                faults.append(str(fault))
            finally:
                shutil.rmtree(folder / "ck", ignore_errors=True)
    expect(not faults, "\n".join(faults))
