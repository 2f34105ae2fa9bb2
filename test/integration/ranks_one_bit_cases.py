"""1-bit optimizers on several ranks beside one_bit.py: parameters, momentum and what messages leave out, over the end of the warm-up; what
is sent; steps that overflow; checkpoints, also on another number of ranks; what is refused."""
import json
import shutil

import numpy as np
from onnx import numpy_helper

import training_models as models
from kit import case, expect, tool
from one_bit import OneBitAdam, OneBitLamb, tanh_gradients
from programs import SEED
from ranks_runs import logical, mlp, random, replace_manifest, same
from training_runs import column, log_of, settings, train_package, write_config

MICRO, ACCUMULATION, STEPS, FREEZE = 2, 2, 10, 4
NUMBERS = {"lr": 0.01, "weight_decay": 0.1, "eps": 1e-6, "freeze_step": FREEZE}
LAMB = {"weight_decay": 2.0, "min_coeff": 0.02, "max_coeff": 3.0, "coeff_beta": 0.7, "factor_min": 0.4, "factor_max": 2.0, "factor_threshold": 0.15}
CLIP = 0.4
# Tensors of one message part each: those of a layer lie behind one another.
GROUPS = [["w0", "b0"], ["w1", "b1"], ["w2"]]
TOLERANCE = 2e-5  # scales travel in f32


def samples(path, g, count=200, silent=2):
    """One feature is 0 in all of the warm-up of few ranks, and in no sample after it."""
    x = g.standard_normal((count, 5), np.float32)
    x[:FREEZE * MICRO * ACCUMULATION, silent] = 0
    np.savez(path, x=x, labels=g.integers(0, 4, count))
    return path


def configuration(kind="OneBitAdam", accumulation=ACCUMULATION, numbers=NUMBERS, **more):
    return settings((kind, numbers), micro=MICRO, accumulation=accumulation, gradient_clipping=CLIP, **more)


def package_of(folder, model, *options, name="model.dsp", **keywords):
    return train_package(folder, model, configuration(**keywords), "--no-decay=^b", *options, logits="y", name=name)


def train(package, data, ranks, out, *options, steps=STEPS, **keywords):
    launch = [f"--ranks={ranks}", f"--transport={('shm', 'tcp')[(SEED + ranks) % 2]}"] if ranks > 1 else []
    return tool("ds-run", *launch, "train", package, f"--data={data}", f"--steps={steps}", "--threads=1", "--shuffle=off", f"--checkpoint={out}",
                f"--log={out}.jsonl", *options, **keywords)


def local_gradients(data, weights, ranks, step):
    """Of each rank: the mean over its micro-batches of a step, of which number k is rank k mod N's."""
    result = []
    for rank in range(ranks):
        own = []
        for k in range(rank, ranks * ACCUMULATION, ranks):
            first = (step * ranks * ACCUMULATION + k) * MICRO
            own.append(tanh_gradients(weights, data["x"][first:first + MICRO].astype(float), data["labels"][first:first + MICRO]))
        result.append({name: sum(g[name] for g in own) / len(own) for name in own[0]})
    return result


def simulate(oracle, data, steps):
    for _ in range(steps):
        oracle.step(local_gradients(data, oracle.x, oracle.ranks, oracle.count))
    return oracle


def oracle_of(model, ranks, optimizer=OneBitAdam, groups=GROUPS, decay=NUMBERS["weight_decay"], **more):
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return optimizer(weights, groups, ranks, FREEZE, lr=NUMBERS["lr"], eps=NUMBERS["eps"], decay=decay, clip=CLIP,
                     spared=("b0", "b1"), **more)


def near(found, expected, what, tolerance=TOLERANCE):
    scale = max(np.abs(expected).max(initial=0), 1e-3)
    off = np.abs(found - expected).max(initial=0) / scale
    expect(off < tolerance, f"seed {SEED}: {what}: off by {off:.2e} of {scale:.2e}")


def like_oracle(state, oracle, what):
    for name in oracle.x:
        near(state[name], oracle.x[name], f"{what}: {name}")
        near(state[f"{name}/exp_avg"], oracle.m[name], f"{what}: {name}/exp_avg")
        near(state[f"{name}/exp_avg_sq"], oracle.v[name], f"{what}: {name}/exp_avg_sq")
    for group, message in zip(oracle.groups, oracle.messages):
        for name, start in zip(group, message.starts):
            shape, place = oracle.x[name].shape, slice(start, start + oracle.x[name].size)
            near(state[f"{name}/worker_error"], message.worker[:, place].reshape(-1, *shape), f"{what}: {name}/worker_error")
            near(state[f"{name}/server_error"], message.server[place].reshape(shape), f"{what}: {name}/server_error")


def goes_on_alike(package, path, run, steps):
    """From a checkpoint of a run on 3 ranks to the end of that run."""
    cut = run.with_name(f"cut{steps}")
    shutil.copytree(run / f"global_step{steps}", cut / f"global_step{steps}")
    (cut / "latest").write_text(f"global_step{steps}")
    train(package, path, 3, cut, "--resume")
    same(logical(cut), logical(run), f"stopped after {steps} steps")


def said(result, ranks):
    text = f"step {FREEZE}: second averages stay as they are from here on" + (", and momentum travels in 1 bit" if ranks > 1 else "")
    expect(result.out.count(text) == 1, f"expected once: {text}\n{result}")


@case
def adam_as_in_the_paper(folder):
    """In f64, so that a sign is one of rounding once in many billions; the same package on each number of ranks."""
    model, path = mlp(random(1)), samples(folder / "data.npz", random(2))
    data, package = np.load(path), package_of(folder, model, "--reference=f64")
    for ranks in (1, 2, 3, 4):
        result = train(package, path, ranks, folder / f"run{ranks}")
        said(result, ranks)
        oracle = simulate(oracle_of(model, ranks), data, STEPS)
        like_oracle(logical(folder / f"run{ranks}"), oracle, f"{ranks} ranks")
        norms = column(log_of(folder / f"run{ranks}.jsonl"), "grad_norm")
        near(norms, np.array(oracle.norms), f"{ranks} ranks: norms")
        expect((norms > CLIP).any() and (norms[FREEZE:] > CLIP).any(), f"nothing was clipped: {norms}")
        silent = oracle.v["w0"][2] == 0
        expect(silent.all() == (ranks == 1), f"{ranks} ranks: the oracle has no parameter without a gradient in the warm-up: {oracle.v['w0'][2]}")


def like_lamb(state, oracle, what):
    like_oracle(state, oracle, what)
    for name in oracle.x:
        near(state[f"{name}/exp_avg_sq_fresh"], oracle.fresh[name], f"{what}: {name}/exp_avg_sq_fresh")
        for suffix, values in (("momentum_scale", oracle.scales), ("trust_factor", oracle.factors), ("trust_average", oracle.average)):
            near(state[f"{name}/{suffix}"], np.array(values[name]), f"{what}: {name}/{suffix}")


@case(seconds=3)
def lamb_as_in_the_paper(folder):
    """All states, and the same bits after a stop before the end of the warm-up and behind it."""
    model, path = mlp(random(21)), samples(folder / "data.npz", random(22))
    data, package = np.load(path), package_of(folder, model, "--reference=f64", kind="OneBitLamb", numbers=NUMBERS | LAMB)
    for ranks in (1, 2, 3, 4):
        train(package, path, ranks, folder / f"run{ranks}", "--save-interval=1")
        oracle = oracle_of(model, ranks, OneBitLamb, [sum(GROUPS, [])], LAMB["weight_decay"], trust=(LAMB["min_coeff"], LAMB["max_coeff"]),
                           coeff_beta=LAMB["coeff_beta"], factor=(LAMB["factor_min"], LAMB["factor_max"]), threshold=LAMB["factor_threshold"])
        like_lamb(logical(folder / f"run{ranks}"), simulate(oracle, data, STEPS), f"{ranks} ranks")
        factors = list(oracle.factors.values())
        expect(len({round(factor, 9) for factor in factors}) > 1, f"{ranks} ranks: factors were all bounded alike: {factors}")
    for steps in (3, 6):
        goes_on_alike(package, path, folder / "run3", steps)


@case(seconds=10)
def what_is_sent(folder):
    """Plan and counters in both regimes, as the formula has it; stage 1 has the bits of stage 0, and says that nothing is shared."""
    model, path = mlp(random(3), inner=256, more=65), samples(folder / "data.npz", random(4))
    groups = [["w0", "b0"], ["w1"], ["b1"], ["w2"]]  # a large tensor has a part of its own
    states = []
    for stage in (0, 1):
        package = package_of(folder, model, name=f"{stage}.dsp", zero_optimization={"stage": stage})
        for ranks in (2, 3):
            counters, plan = folder / "counters.json", folder / "plan.json"
            train(package, path, ranks, folder / f"run{stage}{ranks}", f"--counters={counters}")
            result = tool("ds-opt", folder / "model.onnx", "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels",
                          f"--config={folder / 'ds_config.json'}", f"--mesh=data={ranks}", f"--plan={plan}", "--no-decay=^b")
            note = "each rank has all states of the optimizer: momentum is compressed as a whole"
            expect((note in result.err) == (stage == 1), f"stage {stage}: {result}")
            plan, counters = json.loads(plan.read_text()), json.loads(counters.read_text())
            calls = {"micro": FREEZE, "update": FREEZE, "local_norm": STEPS - FREEZE, "update_compressed": STEPS - FREEZE}
            expected = {site["site"]: [calls[site["entry"]] * site[key] for key in ("calls", "sent", "received")] for site in plan["sites"]}
            for rank in counters["ranks"]:
                found = {site["site"]: [site[key] for key in ("calls", "sent", "received")] for site in rank["sites"]}
                expect(found == expected, f"{ranks} ranks: counted {found}, planned {expected}")
                expect(all(rank["bytes"][key] == plan["bytes"][key] for key in ("optimizer", "residuals")), f"{rank['bytes']}, planned {plan['bytes']}")
            messages = oracle_of(model, ranks, groups=groups).messages
            sent, residuals = sum(message.bytes() for message in messages), sum(4 * (ranks + 1) * message.shard for message in messages)
            expect(expected["momentum"][1] == (STEPS - FREEZE) * sent, f"{ranks} ranks: sends {expected['momentum']}, expected {sent} bytes a step")
            expect(plan["bytes"]["residuals"] == residuals, f"{ranks} ranks: {plan['bytes']}, expected {residuals} bytes of residuals")
            states.append(logical(folder / f"run{stage}{ranks}"))
    same(states[2], states[0], "stage 1 on 2 ranks")
    same(states[3], states[1], "stage 1 on 3 ranks")


@case(seconds=6)
def checkpoints(folder):
    """A run that was stopped before the end of the warm-up, and after it, goes on with the same bits."""
    model, path = mlp(random(5)), samples(folder / "data.npz", random(6))
    package = package_of(folder, model)
    train(package, path, 3, folder / "whole", "--save-interval=1")
    oracle = simulate(oracle_of(model, 3), np.load(path), STEPS)
    for name, expected in oracle.x.items():  # in f32, where rounding may change a sign
        near(logical(folder / "whole")[name], expected, f"optimized code: {name}", 0.05)
    for steps in (2, 7):
        goes_on_alike(package, path, folder / "whole", steps)


@case
def other_numbers_of_ranks(folder):
    """What each rank had left out becomes the mean on every new one; what was left out of means stays where it is."""
    model, path = mlp(random(7)), samples(folder / "data.npz", random(8), count=400)
    data, package = np.load(path), package_of(folder, model, "--reference=f64")
    for before, after in ((4, 2), (3, 4), (2, 1), (1, 2)):
        out = folder / f"from{before}to{after}"
        train(package, path, before, out, steps=6)
        old = simulate(oracle_of(model, before), data, 6)
        # The place in the data goes on in micro-batches: as many samples were read.
        train(package, path, after, out, "--resume", steps=9)
        oracle = oracle_of(model, after)
        oracle.x, oracle.m, oracle.v, oracle.count = old.x, old.m, old.v, 6
        for message, was in zip(oracle.messages, old.messages):
            some = was.elements
            message.worker[:, :some] = was.worker.mean(0)[:some]
            message.server[:some] = was.server[:some]
        rows = {key: array[6 * before * ACCUMULATION * MICRO - 6 * after * ACCUMULATION * MICRO:] if before > after else
                np.concatenate([np.zeros((6 * (after - before) * ACCUMULATION * MICRO, *array.shape[1:]), array.dtype), array]) for key, array in data.items()}
        like_oracle(logical(out), simulate(oracle, rows, 3), f"{before} ranks, then {after}")


@case(seconds=12)
def overflows(folder):
    """The norm is reduced, so that all ranks leave a step out, or none does; then no bit of any state changes."""
    model, path = mlp(random(9)), samples(folder / "data.npz", random(10))
    half = {"enabled": True, "loss_scale": 0, "initial_scale_power": 14, "loss_scale_window": 2, "hysteresis": 1}
    package = package_of(folder, model, accumulation=1, fp16=half)
    train(package, path, 2, folder / "run", "--save-interval=1", steps=24)
    log = log_of(folder / "run.jsonl")
    left_out = [row["step"] for row in log if row["overflow"]]
    late = [step for step in left_out if step - left_out.index(step) > FREEZE]
    expect(late, f"seed {SEED}: no step overflowed behind the warm-up: {left_out}")
    for step in late:
        (folder / "run" / "latest").write_text(f"global_step{step}")
        before = logical(folder / "run")
        (folder / "run" / "latest").write_text(f"global_step{step + 1}")
        same(logical(folder / "run"), before, f"step {step}, which overflowed")


@case(seconds=6)
def refused(folder):
    path = samples(folder / "data.npz", random(12))
    package = package_of(folder, mlp(random(11)), kind="ZeroOneAdam", numbers={"lr": 0.01, "weight_decay": 0.1})
    train(package, path, 2, folder / "no", code=2, says="optimizer.type: found ZeroOneAdam")
    cycle = {"type": "OneCycle", "params": {"cycle_min_lr": 0.001, "cycle_max_lr": 0.01, "cycle_momentum": True}}
    for config, says in ((dict(zero_optimization={"stage": 2}), "zero_optimization.stage: found 2 with optimizer.type OneBitAdam, expected 0 or 1"),
                         (dict(scheduler=cycle), "scheduler.params.cycle_momentum: found true with optimizer.type OneBitAdam, expected false"),
                         (dict(sparse_gradients=True), "sparse_gradients: found true with optimizer.type OneBitAdam, expected false"),
                         (dict(numbers={"freeze_step": 0}), "optimizer.params.freeze_step: found 0, expected an integer >= 1")):
        numbers = config.pop("numbers", NUMBERS)
        write_config(folder, settings(("OneBitAdam", numbers), micro=MICRO) | config)
        tool("ds-opt", folder / "model.onnx", "-o", folder / "no.dsp", "--mode=train", "--loss=cross_entropy", "--logits=y", "--labels=labels",
             f"--config={folder / 'ds_config.json'}", code=1, says=says)


@case(seconds=6)
def packages_that_lie(folder):
    """Errors of another size, a share that is no whole number of bytes, a range: said before anything is written."""
    package, path = package_of(folder, mlp(random(13)), "--reference"), samples(folder / "data.npz", random(14))
    manifest = json.loads((package / "manifest.json").read_text())
    entry = next(entry for entry in manifest["variants"][0]["entries"] if entry["name"] == "update_compressed")
    part = entry["collectives"][0]["parts"][0]
    small = next(i for i, buffer in enumerate(entry["buffers"])
                 if buffer["role"] == "state" and entry["states"][buffer["index"]]["name"] == "b1")
    for key, value, says in (("worker_error", small, f"buffer {small} does not hold"), ("server_error", small, f"buffer {small} does not hold"),
                             ("shard", "52", "expected whole bytes of bits"), ("end", "88", "from 0 to 88, expected whole bytes of bits"),
                             ("begin", "8", "is not in 8 to")):
        before, part[key] = part[key], value
        replace_manifest(package, manifest)
        train(package, path, 2, folder / "no", code=1, says=says)
        part[key] = before


@case(seconds=6)
def layers_that_are_dropped(folder):
    """The gradient of a block that no rank runs is 0: its momentum decays, and what messages had left out is still sent."""
    g = random(15)
    path, out, beta = folder / "data.npz", folder / "run", 0.9
    np.savez(path, input_ids=g.integers(0, 61, (100, 6)), labels=g.integers(0, 61, (100, 6)))
    drops = {"progressive_layer_drop": {"enabled": True, "theta": 0.3, "gamma": 1.0}}
    config = settings(("OneBitAdam", NUMBERS), micro=MICRO, **drops)
    package = train_package(folder, models.gpt(hidden=16, heads=2, layers=3, seed=SEED), config, "--reference")
    train(package, path, 2, out, "--save-interval=1")
    checked = 0
    for step in range(FREEZE + 1, STEPS):
        states = []
        for number in (step, step + 1):
            (out / "latest").write_text(f"global_step{number}")
            states.append(logical(out))
        gates = json.loads((out / f"global_step{step + 1}" / "checkpoint.json").read_text())["trainer"]["layers"]["gates"]
        for block, runs in enumerate(gates[0]):
            # A block is an attention or a feed-forward network.
            own = f"h.{block}." if len(gates[0]) == 3 else f"h.{block // 2}.{('attn', 'mlp')[block % 2]}."
            for name in (name for name in states[0] if name.startswith(own) and f"{name}/exp_avg" in states[0] and not runs):
                before, after = ({key: state[f"{name}/{key}"] for key in ("exp_avg", "worker_error", "server_error", "exp_avg_sq")} for state in states)
                told = after["exp_avg"] + after["worker_error"].mean(0) + after["server_error"]
                expected = beta * before["exp_avg"] + before["worker_error"].mean(0) + before["server_error"]
                alive = before["exp_avg_sq"] > 0
                near(told[alive], expected[alive], f"step {step}, {name}")
                checked += alive.any()
    expect(checked > 0, f"seed {SEED}: no block was dropped")
