"""What training on several ranks refuses, and what is left when ranks end: one line, no rank that hangs, checkpoints that load."""
import os
import shutil
import signal
import time

import numpy as np

from kit import BIN, case, expect, tool
from launch_runs import children, gone, launch, running, until
from programs import SEED
from ranks_training_cases import shared
from ranks_training_runs import RANDOM, same_tensors, train_ranks
from training_runs import bits, settings, small_data, small_package, train, write_config


def each(ranks, command, code=0, says=(), **keywords):
    """The command of each rank, in which $DS_RANK is its number."""
    words = " ".join(str(word) for word in command)
    return launch(f"--ranks={ranks}", "--exec", "sh", "-c", f"exec {BIN / 'ds-run'} {words}", code=code, says=says, **keywords)


@case(seconds=5)
def ranks_that_disagree(folder):
    """Before the first step: package, configuration, seed, data, options. All that follows from one rank's word reaches the others."""
    config = settings("AdamW", micro=2)
    package, data = small_package(folder, config), small_data(folder)
    shutil.copytree(package, folder / "p0")
    small_package(folder, settings("AdamW", micro=2, gradient_clipping=1), name="p1")
    small_data(folder, 22, 1, "d0.npz"), small_data(folder, 21, 1, "d1.npz")
    write_config(folder, settings(("AdamW", {"lr": 0.001}), micro=2), "c0.json")
    write_config(folder, settings(("AdamW", {"lr": 0.002}), micro=2), "c1.json")
    common = "train", package, f"--data={data}", "--steps=2"
    for command, says in (((*common, "--seed=$DS_RANK"), "ranks disagree: rank 1 has seed 1, rank 0 0"),
                          ((*common[:3], "--steps=$((DS_RANK + 2))"), "ranks disagree: rank 1 has --steps 3, rank 0 2"),
                          (("train", folder / "p$DS_RANK", *common[2:]), "ranks disagree: rank 1 has package "),
                          (("train", package, f"--data={folder / 'd$DS_RANK.npz'}", "--steps=2"), "rank 1 has data of 21 samples, rank 0 22 samples"),
                          ((*common, f"--config={folder / 'c$DS_RANK.json'}"), "ranks disagree: rank 1 has configuration "),
                          (("eval", package, f"--data={folder / 'd$DS_RANK.npz'}"), "rank 1 has data of 21 samples, rank 0 22 samples")):
        start = time.time()
        _, err = each(2, command, code=1, says=says)
        expect(time.time() - start < 20 and "\n" not in err.strip(), f"{time.time() - start} s: {err}")


@case(seconds=6)
def batches_that_do_not_divide(folder):
    """Where the number of ranks came from, and what would be legal; sizes for another number of ranks than one compile."""
    def package(**sizes):
        config = settings("AdamW", **shared(1)) | {"train_micro_batch_size_per_gpu": 2} | sizes
        return small_package(folder, {key: value for key, value in config.items() if value})
    data = small_data(folder, 24)
    three = package(train_batch_size=12, gradient_accumulation_steps=2)
    train_ranks(3, three, data, "--steps=2", f"--log={folder / 'log.jsonl'}")
    expect([row["samples"] for row in bits(folder / "log.jsonl")] == [12, 24], "steps of 12 samples")
    for ranks, where in ((2, "2 ranks (that the run was started with)"), (4, "4 ranks (that the run was started with)")):
        train_ranks(ranks, three, data, "--steps=2", code=2, says=[f"train_batch_size: found 12, ", where])
    tool("ds-run", "train", three, f"--data={data}", "--steps=2", code=2,
         says="is 4; with 1 rank (one process; ds-run --ranks=N starts more) micro-batch x accumulation may be 1x12, 2x6, 3x4, 4x3, 6x2, 12x1")
    train_ranks(5, package(train_batch_size=12), data, "--steps=2", code=2, says="expected a multiple of 5 ranks")
    whole = package(train_batch_size=12, train_micro_batch_size_per_gpu=None)
    train_ranks(4, whole, data, "--steps=2", f"--log={folder / 'log.jsonl'}")
    expect([row["samples"] for row in bits(folder / "log.jsonl")] == [12, 24], "steps of 12 samples")


@case(seconds=8)
def tags_of_ranks(folder):
    """checkpoint.tag_validation: another tag of a rank is nothing, a warning, or an error."""
    data = small_data(folder)
    for validation, code, says in (("IGNORE", 0, ""), ("WARN", 0, "rank 1 would save under 't1', rank 0 under 't0', which counts"),
                                   ("FAIL", 1, "checkpoint.tag_validation: rank 1 would save under 't1', rank 0 under 't0'")):
        package = small_package(folder, settings("AdamW", micro=2, checkpoint={"tag_validation": validation}))
        _, err = each(2, ("train", package, f"--data={data}", "--steps=2", f"--checkpoint={folder / validation}", "--tag=t$DS_RANK"), code=code, says=says)
        expect((folder / validation / "t0").exists() == (code == 0) and not (folder / validation / "t1").exists(), f"{validation}: {err}")
        expect(says or not err, err)


@case(seconds=6)
def a_wrong_label_of_one_rank(folder):
    package, data = small_package(folder, settings("AdamW", micro=2)), small_data(folder)
    fields = dict(np.load(data))
    fields["labels"][5] = 77
    np.savez(data, **fields)
    start = time.time()
    _, err = train_ranks(4, package, data, "--steps=2", "--shuffle=off", code=2)
    expect("sample 5 of the data" in err and "found label 77" in err and time.time() - start < 20, f"{time.time() - start} s: {err}")


@case(seconds=12)
def resumed_on_others(folder):
    """A checkpoint of any stage and number of ranks goes on at any other, with the bits that one process has that goes on from it."""
    data = small_data(folder, 40, SEED)
    packages = [small_package(folder, settings("AdamW", micro=1, gradient_clipping=0.5, **shared(stage)), name=f"stage{stage}.dsp") for stage in range(4)]
    train_ranks(4, packages[3], data, "--steps=3", f"--checkpoint={folder / 'saved'}")
    for stage in range(4):
        for ranks in (1, 2, 3, 8) if stage == 3 else [RANDOM.choice((1, 2, 3, 8))]:
            ends = []
            for name, count, accumulation in (("ranks", ranks, 1), ("alone", 1, ranks)):
                end = folder / f"{name}{stage}{ranks}"
                shutil.copytree(folder / "saved", end)
                config = write_config(folder, settings("AdamW", micro=1, accumulation=accumulation, gradient_clipping=0.5, **shared(stage)), f"{name}.json")
                command = packages[stage], data, "--steps=5", f"--checkpoint={end}", "--resume", f"--config={config}"
                train(*command) if count == 1 else train_ranks(count, *command)
                ends.append(end / "global_step5")
            same_tensors(*ends)
    train_ranks(2, packages[0], data, "--steps=3", f"--checkpoint={folder / 'whole'}")
    train_ranks(2, packages[2], data, "--steps=3", f"--checkpoint={folder / 'cut'}")
    same_tensors(folder / "whole" / "global_step3", folder / "cut" / "global_step3")


@case(seconds=6)
def stopped_by_a_signal(folder):
    """All ranks end after the same step, save, and go on to the bits of a run without the stop."""
    package, data = small_package(folder, settings("AdamW", micro=2, **shared(2))), small_data(folder)
    log, run = folder / "log.jsonl", folder / "run"
    with running("--ranks=3", "train", package, f"--data={data}", "--steps=100000", f"--checkpoint={run}", f"--log={log}") as child:
        until(lambda: log.exists() and len(log.read_text().splitlines()) > 5, "some steps")
        child.send_signal(signal.SIGINT)
        expect(child.wait(60) == 130, f"exit code {child.returncode}")
    steps = int((run / "latest").read_text().strip().removeprefix("global_step"))
    train_ranks(3, package, data, f"--steps={steps + 3}", f"--checkpoint={run}", "--resume", f"--log={log}")
    train_ranks(3, package, data, f"--steps={steps + 3}", f"--checkpoint={folder / 'whole'}", f"--log={folder / 'whole.jsonl'}")
    same_tensors(run / f"global_step{steps + 3}", folder / "whole" / f"global_step{steps + 3}")
    expect(bits(log) == bits(folder / "whole.jsonl"), "the log differs from that of a run without the stop")


@case(seconds=14)
def killed_while_it_saves(folder):
    """Whichever rank is killed, whenever: the latest checkpoint is whole and the run goes on to the bits of an undisturbed one."""
    package, data = small_package(folder, settings("AdamW", micro=2, **shared(3))), small_data(folder)
    run, command = folder / "run", ("train", package, f"--data={data}", f"--checkpoint={folder / 'run'}", "--save-interval=1", "--keep=2")
    train_ranks(3, package, data, "--steps=1", f"--checkpoint={run}")
    for _ in range(8):
        before = (run / "latest").read_text()
        with running("--ranks=3", *command, "--steps=100000", "--resume") as child:
            until(lambda: (run / "latest").read_text() != before, "a checkpoint")
            time.sleep(RANDOM.random() * 0.1)
            ranks = children(child.pid)
            os.kill(RANDOM.choice(ranks), signal.SIGKILL)
            child.wait(60)
            gone(ranks)
        tool("ds-run", "checkpoint", "verify", run)
    steps = int((run / "latest").read_text().strip().removeprefix("global_step")) + 2
    train_ranks(3, package, data, f"--steps={steps}", f"--checkpoint={run}", "--resume")
    train_ranks(3, package, data, f"--steps={steps}", f"--checkpoint={folder / 'whole'}")
    same_tensors(run / f"global_step{steps}", folder / "whole" / f"global_step{steps}")


@case(seconds=6)
def what_does_not_move(folder):
    """Warnings are of all ranks' parts together: a parameter that moves on one rank moves, one without gradient does not, and is named once."""
    package = small_package(folder, settings(("SGD", {"lr": 0.1}), micro=2, **shared(3)))
    _, err = train_ranks(4, package, small_data(folder), "--steps=6")
    expect(err == "", err)
    zeros = folder / "zeros.npz"
    np.savez(zeros, x=np.zeros((22, 3), np.float32), labels=np.arange(22) % 4)
    _, err = train_ranks(4, package, zeros, "--steps=6")
    expect(err == "ds-run: warning: the gradient of 'w' was 0 in each of the first 5 steps: it does not move\n", err)


@case(seconds=6)
def compression_that_never_begins(folder):
    """freeze_step beyond the run; the same run on one rank has nothing to compress."""
    package, data = small_package(folder, settings(("OneBitAdam", {"freeze_step": 6}), micro=2)), small_data(folder)
    train_ranks(2, package, data, "--steps=6", code=2,
                says="optimizer.params.freeze_step: found 6, expected less than the 6 steps of this run: no message would be compressed")
    train(package, data, "--steps=6")
