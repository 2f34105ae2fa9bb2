"""Training on several ranks: the bits of one process that accumulates, whatever is trained and however states are shared."""
import json

import numpy as np
import onnx
from onnx import numpy_helper

import eigenvalue_cases as curvature
import training_dropout_cases as dropout
import training_statistics_cases as batch_norms
from kit import case, compile_model, expect, tool
from launch_runs import launch
from layer_drop_cases import drops, gates_of, gpt, theta_of, tokens
from programs import SEED
from quantized_training_cases import section
from ranks_training_runs import RANDOM, as_one_process, logical, same_tensors, train_ranks
from training_runs import log_of, settings, small_data, small_package, train, train_package, write_config


def shared(stage, **more):
    whole = {"stage3_param_persistence_threshold": 0} if stage == 3 else {} # tensors of models like these would stay whole
    return {"zero_optimization": {"stage": stage} | whole} | more


@case(seconds=6)
def bits_of_one_process(folder):
    """Every stage and number of ranks; ends of epochs leave ranks without samples, and evaluation has fewer batches than ranks."""
    samples = RANDOM.randrange(11, 40)
    data, eval_data = small_data(folder, samples, SEED), small_data(folder, RANDOM.randrange(3, 12), SEED + 1, "eval.npz")
    for stage in range(4):
        config = settings(RANDOM.choice(["AdamW", ("SGD", {"momentum": 0.9}), "Adagrad"] + ["Lamb"] * (stage == 0)), micro=2, gradient_clipping=0.5, **shared(stage))
        package = small_package(folder, config)
        for ranks in RANDOM.sample((2, 3, 4, 8), 2):
            rows = as_one_process(folder, package, data, config, ranks, "--epochs=2", f"--seed={SEED}", f"--eval-data={eval_data}", "--eval-interval=2")
            expect(rows[-1]["samples"] == 2 * samples, f"{rows[-1]['samples']} samples of {2 * samples}")
            expect(rows[-1]["eval_loss"] > 0, f"{rows[-1]}")


@case(seconds=6)
def accumulation_on_ranks(folder):
    """Losses and counts of several rounds. Sums of gradients have another order, so that nothing moves here."""
    data = small_data(folder, 23, SEED)
    config = settings(("SGD", {"lr": 0}), micro=2, accumulation=3)
    rows = as_one_process(folder, small_package(folder, config), data, config, 2, "--epochs=3", skipped=["grad_norm"])
    expect(rows[-1]["samples"] == 3 * 23, f"{rows[-1]}")


@case(seconds=6)
def dropout_of_one_process(folder):
    """A micro-batch drops what it would drop as the same micro-batch of one process."""
    dropout.model(folder)
    config = settings(("SGD", {"lr": 1e-4}), micro=1, **shared(RANDOM.randrange(4)))
    package = compile_model(folder / "m.onnx", folder, "--mode=train", "--loss=loss", f"--config={write_config(folder, config)}")
    as_one_process(folder, package, folder / "x.npz", config, RANDOM.choice((2, 4)), "--epochs=2", "--seed=5")


@case(seconds=3)
def overflows_of_one_process(folder):
    """Scales, hysteresis and skipped steps: what overflows on one rank is skipped on all."""
    fp16 = {"enabled": True, "initial_scale_power": 26, "loss_scale_window": 3, "hysteresis": 2}
    config = settings("AdamW", micro=2, fp16=fp16, **shared(RANDOM.randrange(3)))
    ranks = RANDOM.choice((2, 4))
    package, data = small_package(folder, config), small_data(folder, 30, SEED)
    rows = as_one_process(folder, package, data, config, ranks, "--steps=14")
    expect(any(row["overflow"] for row in rows) and not all(row["overflow"] for row in rows), f"{[row['overflow'] for row in rows]}")


@case(seconds=3)
def widths_of_one_process(folder):
    """MoQ: the same widths, the same random rounding on all ranks."""
    config = settings("AdamW", micro=2, quantize_training=section(period=2, rounding=RANDOM.choice(["nearest", "stochastic"])))
    package, data = small_package(folder, config), small_data(folder, 30, SEED)
    rows = as_one_process(folder, package, data, config, 4, "--steps=40")
    expect(rows[-1]["bits"] != rows[2]["bits"], f"{rows[-1]['bits']}: no bit was dropped")


@case(seconds=10)
def curvature_of_one_process(folder):
    """Eigenvalues are of the step's last micro-batch, whichever rank trains on it: all ranks come to the same periods."""
    g = np.random.default_rng(SEED)
    np.savez(folder / "data.npz", x=g.standard_normal((22, 5)).astype(np.float32), labels=g.integers(0, 4, 22))
    widths = section(start=8, target=6, period=1, offset=1, eigenvalue=curvature.eigenvalue("net.layer", 2, tol=0.01, max_iter=20, verbose=False))
    config = settings(("AdamW", {"lr": 0.01}), micro=2, quantize_training=widths)
    rows = as_one_process(folder, train_package(folder, curvature.small(), config), folder / "data.npz", config, RANDOM.choice((2, 4)), "--steps=16")
    expect(len({str(row["bits"]) for row in rows}) > 2, f"{rows}")


@case(seconds=12)
def layers_of_ranks(folder):
    """All ranks drop the same blocks in a round: where both read the same, they train what one process does with as many micro-batches as rounds."""
    config = settings(("SGD", {"lr": 0.01}), micro=1, accumulation=2, **drops(), **shared(RANDOM.randrange(4)))
    package = train_package(folder, gpt(), config)
    single = tokens(folder, 12, "single.npz")
    np.savez(folder / "double.npz", **{name: np.repeat(array, 2, axis=0) for name, array in np.load(single).items()})
    common = "--steps=6", "--seed=3", "--shuffle=off"
    train(package, single, *common, f"--checkpoint={folder / 'alone'}", f"--log={folder / 'alone.jsonl'}")
    train_ranks(2, package, folder / "double.npz", *common, f"--checkpoint={folder / 'ranks'}", f"--log={folder / 'ranks.jsonl'}")
    same_tensors(folder / "ranks" / "global_step6", folder / "alone" / "global_step6", names=logical(folder / "alone" / "global_step6"))
    for row, other in zip(log_of(folder / "ranks.jsonl"), log_of(folder / "alone.jsonl")):
        expect(row["blocks"] == 2 * other["blocks"] and row["keep_rates"] == other["keep_rates"], f"{row}, of one process {other}")
    found = json.loads((folder / "ranks" / "global_step6" / "checkpoint.json").read_text())["trainer"]["layers"]["gates"]
    drawn = [[bool(gate) for gate in gates_of(3, 5, micro, 4, theta_of(5, 0.3, 0.4))] for micro in range(2)]
    expect(found == drawn, f"gates of the checkpoint: {found}, drawn {drawn}")


@case(seconds=3)
def statistics_of_ranks(folder):
    """Each rank moves running statistics by its own micro-batch, and a step keeps the mean: that of as many processes with one micro-batch each."""
    g = batch_norms.random(SEED)
    proto, _ = batch_norms.model(g)
    config = settings(("SGD", {"lr": 0}), micro=4)
    package = train_package(folder, proto, config)
    x, labels = batch_norms.data(folder, g, 12)
    train_ranks(3, package, folder / "data.npz", "--steps=1", "--shuffle=off", f"--checkpoint={folder / 'ranks'}")
    own = []
    for rank in range(3):
        rows = slice(4 * rank, 4 * rank + 4)
        np.savez(folder / f"{rank}.npz", x=x[rows], labels=labels[rows])
        train(package, folder / f"{rank}.npz", "--steps=1", "--shuffle=off", f"--checkpoint={folder / str(rank)}")
        own.append(logical(folder / str(rank) / "global_step1"))
    found = logical(folder / "ranks" / "global_step1")
    for name in batch_norms.STATISTICS:
        mean = np.mean([each[name].astype(float) for each in own], axis=0)
        expect(np.allclose(found[name], mean, rtol=1e-6, atol=0), f"{name}: {found[name]}, expected {mean}")
        expect(not np.allclose(own[0][name], own[1][name]), f"{name} is the same on both ranks: proves nothing")


@case(seconds=6)
def evaluation_on_ranks(folder):
    """The figures of one process, of a checkpoint that shares parameters, too."""
    config = settings("AdamW", micro=3, **shared(3))
    package, data = small_package(folder, config), small_data(folder, 20, SEED)
    eval_data = small_data(folder, RANDOM.randrange(4, 30), SEED + 1, "eval.npz")
    train_ranks(4, package, data, "--steps=3", f"--checkpoint={folder / 'run'}")
    command = "eval", package, f"--data={eval_data}", f"--checkpoint={folder / 'run'}", "--json"
    expected = json.loads(tool("ds-run", *command).out)
    for ranks in (2, 3, 8):
        found, err = launch(f"--ranks={ranks}", *command)
        expect(json.loads(found) == expected and err == "", f"{ranks} ranks: {found}{err}, one: {expected}")


@case(seconds=6)
def exports_and_inspection_of_shared_checkpoints(folder):
    """Commands show logical tensors, whoever wrote them."""
    config = settings("AdamW", micro=2, **shared(3))
    package, data = small_package(folder, config), small_data(folder)
    train_ranks(3, package, data, "--steps=4", f"--checkpoint={folder / 'run'}")
    end = folder / "run" / "global_step4"
    found = json.loads(tool("ds-run", "checkpoint", "inspect", end, "--json").out)
    tensors = logical(end)
    expect({tensor["name"]: tensor["shape"] for tensor in found["tensors"]} == {name: list(array.shape) for name, array in tensors.items()}, f"{found}")
    expect(len({piece["file"] for tensor in found["tensors"] for piece in tensor.get("pieces", [tensor])}) > 2, f"nothing is shared: {found['tensors']}")
    tool("ds-run", "checkpoint", "verify", end)
    tool("ds-run", "checkpoint", "export", end, f"--package={package}", "-o", folder / "trained.onnx")
    exported = {item.name: numpy_helper.to_array(item) for item in onnx.load(folder / "trained.onnx").graph.initializer}
    for name, array in exported.items():
        expect(array.tobytes() == tensors[name].tobytes(), f"{name} is another in the exported model")
