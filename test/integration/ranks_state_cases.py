"""What several ranks save is one state: it goes on at any stage on any number of ranks, and tools take it as one. One step beside NumPy."""
import json
import os
import signal

import numpy as np
from onnx import numpy_helper

from kit import case, expect, tool
from launch_runs import PATIENCE, children, running, until
from programs import SEED
from ranks_runs import STAGES, STEPS, Stages, latest, logical, mlp, random, rows, same, with_weights
from training_runs import log_of, safetensors

STILL = "the gradient of '{}' was 0 in each of the first 5 steps: it does not move"
ADAM = ("AdamW", {"lr": 0.02, "weight_decay": 0.1})


def small(folder, *options, samples=50, **config):
    return Stages(folder, mlp(random()), rows(folder / "data.npz", random(1), samples), "--reference", *options, logits="y", **config)


@case(seconds=6)
def goes_on_at_any_stage_on_any_number(folder):
    """Saved by 4 ranks at stage 3; loaded by others, which save it unchanged, and train on, to the bits of a run without a stop where they are as many."""
    stages = small(folder, optimizer=ADAM)
    stopped, whole = stages.run(3, 4, steps=7), logical(stages.run(3, 4, steps=12))
    before = logical(stopped)
    expect(any("pieces" in tensor for tensor in json.loads((latest(stopped) / "checkpoint.json").read_text())["tensors"]), "no tensor is cut")
    for stage in STAGES:
        for ranks in (1, 2, 3, 4, 8):
            again = stages.goes_on(stopped, stage, ranks, steps=7)
            same(logical(again), before, f"loaded at stage {stage} on {ranks} ranks")
            if ranks == 4 or (SEED + stage + ranks) % 4 == 0:
                after = logical(stages.goes_on(stopped, stage, ranks, steps=12))
                expect(ranks != 4 or not same(after, whole, f"goes on at stage {stage}"), "")
                expect(all(not np.array_equal(array, before[name]) for name, array in after.items()), "nothing was trained")


@case(seconds=3)
def tools_see_one_state(folder):
    """Inspected, verified, compared and exported as what one process saves."""
    stages = small(folder, stages=(0, 3), optimizer=ADAM)
    runs = stages.run(3, 4), stages.run(0, 4), stages.run(0, 1, accumulation=4)
    state = logical(runs[0])
    exported = []
    for number, run in enumerate(runs):
        tool("ds-run", "checkpoint", "verify", run)
        text = tool("ds-run", "checkpoint", "inspect", run).out
        expect(all(name in text for name in ("w0", "b0", "w1", "b1", "w2")), text)
        tool("ds-run", "checkpoint", "diff", latest(run), latest(runs[0]))
        out = folder / f"{number}.safetensors"
        tool("ds-run", "checkpoint", "export", run, "-o", out)
        exported.append(safetensors(out))
        same(exported[-1], {name: state[name] for name in ("w0", "b0", "w1", "b1", "w2")}, f"export {number}")
        tool("ds-run", "checkpoint", "export", run, f"--package={stages.packages[3]}", "-o", folder / f"{number}.onnx")
    expect((folder / "0.onnx").read_bytes() == (folder / "2.onnx").read_bytes(), "exported models differ")
    flipped = latest(runs[0]) / "parameters-rank2.safetensors"
    content = bytearray(flipped.read_bytes())
    content[-1 - SEED % 16] ^= 1 << SEED % 8
    flipped.write_bytes(content)
    tool("ds-run", "checkpoint", "verify", runs[0], code=1, says=flipped.name)


@case
def evaluates_as_one_process(folder):
    stages = small(folder, stages=(0, 3), optimizer=ADAM)
    evals = rows(folder / "eval.npz", random(2), 23)
    found = []
    for stage, ranks, accumulation in ((0, 1, 4), (3, 1, 4), (0, 4, 1), (3, 4, 1)):
        run = stages.run(stage, ranks, f"--eval-data={evals}", "--eval-interval=5", accumulation=accumulation)
        found.append([(row["eval_loss"], row["accuracy"]) for row in log_of(run.with_suffix(".jsonl")) if "eval_loss" in row])
    expect(len(found[0]) == STEPS // 5 and len({loss for loss, _ in found[0]}) > 1, f"evaluations: {found[0]}")
    expect(all(other == found[0] for other in found), f"seed {SEED}: evaluations: {found}")


@case(seconds=3)
def one_step_beside_numpy(folder):
    """Averaged gradients of ranks' batches are those of all samples at once, written down here in float64."""
    g = random(5)
    x, labels = g.standard_normal((8, 5), np.float32), g.integers(0, 4, 8)
    np.savez(folder / "data.npz", x=x, labels=labels)
    stages = Stages(folder, mlp(random()), folder / "data.npz", "--reference", logits="y", optimizer=("SGD", {"lr": 0.5}), gradient_clipping=0.2)
    w = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in mlp(random()).graph.initializer}
    t0 = np.tanh(x @ w["w0"] + w["b0"])
    t1 = np.tanh(t0 @ w["w1"] + w["b1"])
    y = t1 @ w["w2"]
    share = np.exp(y - y.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    loss = -np.mean(np.log(share[np.arange(8), labels]))
    dy = (share - np.eye(4)[labels]) / 8
    d1 = dy @ w["w2"].T * (1 - t1 ** 2)
    d0 = d1 @ w["w1"].T * (1 - t0 ** 2)
    gradients = {"w2": t1.T @ dy, "w1": t0.T @ d1, "b1": d1.sum(0), "w0": x.T.astype(float) @ d0, "b0": d0.sum(0)}
    norm = np.sqrt(sum(np.sum(gradient ** 2) for gradient in gradients.values()))
    expect(norm > 0.2, f"seed {SEED}: norm {norm}")
    for stage in STAGES:
        run = stages.run(stage, 4, steps=1)
        row, state = log_of(run.with_suffix(".jsonl"))[0], logical(run)
        expect(abs(row["loss"] - loss) < 1e-5 * loss and abs(row["grad_norm"] - norm) < 1e-5 * norm, f"{row}: expected {loss}, {norm}")
        for name, gradient in gradients.items():
            step = w[name] - 0.5 * gradient * min(1, 0.2 / (norm + 1e-6))
            off = np.max(np.abs(state[name] - step))
            expect(off < 1e-5 * np.max(np.abs(step)), f"seed {SEED}: stage {stage}: {name} is off by {off:.3g}")

@case(seconds=3)
def parameters_that_do_not_move(folder):
    """A parameter of which ranks have parts moves where a bit of any part does; one that does not is named once."""
    g = random(6)
    text = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 5] x) => (float[n, 4] y)
        { z0 = MatMul (x, w0) t0 = Tanh (z0) dead = Mul (t0, zero) z1 = MatMul (dead, w1) z2 = MatMul (t0, w2) y = Add (z1, z2) }"""
    arrays = {"w0": g.standard_normal((5, 40)) / 2, "w1": g.standard_normal((40, 4)), "w2": g.standard_normal((40, 4)), "zero": np.zeros(())}
    stages = Stages(folder, with_weights(text, arrays), rows(folder / "data.npz", g), "--reference", logits="y", optimizer=("SGD", {"lr": 0.1}))
    for stage in STAGES:
        for ranks in (1, 3):
            said = stages.train(stage, ranks, steps=6).err
            expect(said.count("does not move") == 1 and STILL.format("w1") in said, f"stage {stage} on {ranks} ranks: {said}")


@case(seconds=6)
def killed_and_started_again(folder):
    """A rank that is killed is named, and so is what others miss it in; a run that is started again ends with the bits of one that was not."""
    stages = small(folder, stages=(3,), optimizer=ADAM)
    steps = 1500
    whole = logical(stages.run(3, 3, steps=steps))
    for transport in ("shm", "tcp"):
        victim, out = int(random(8).integers(3)), folder / transport
        with running("--ranks=3", f"--transport={transport}", "--restarts=1", "train", stages.packages[3], f"--data={stages.data}", f"--steps={steps}",
                     f"--config={folder / 'run1.json'}", f"--checkpoint={out}", "--save-interval=100", "--keep=2", f"--seed={SEED}", "--threads=1") as job:
            until(lambda: (out / "latest").exists(), "a checkpoint")
            at = latest(out).name
            os.kill(children(job.pid)[victim], signal.SIGKILL)
            _, said = job.communicate(timeout=PATIENCE)
        expect(job.returncode == 0, f"exit code {job.returncode}: {said}")
        expect(at != f"global_step{steps}", "killed after the end")
        expect(f"rank {victim} (pid " in said and "was killed by SIGKILL" in said and f"rank {victim} (host localhost) has died" in said, said)
        same(logical(out), whole, f"killed rank {victim}, {transport}")
