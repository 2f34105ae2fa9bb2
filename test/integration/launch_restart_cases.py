"""--restarts: a training whose ranks are killed ends as one that nobody disturbed; hosts may be lost meanwhile."""
import os
import random
import re
import shutil
import signal
import time

from kit import Skip, case, expect
from launch_runs import PATIENCE, children, environment, launch, ranks_under, running, until
from programs import SEED
from training_resume_cases import bits
from training_runs import log_of, same_state, settings, small_data, small_package


def saved_step(checkpoint):
    """The step of the newest checkpoint in a folder; 0 when there is none."""
    latest = checkpoint / "latest"
    return int(latest.read_text().strip().removeprefix("global_step")) if latest.exists() else 0


def killed_at_times(arguments, kills, g, checkpoint, steps):
    """Runs a training; kills a random rank each time that all were started and a random step is saved, a moment later.

    Times alone would not do: a fast machine is through before they pass. What ds-run said, and how many kills there were.
    """
    after = sorted(g.randrange(1, steps * 3 // 4) for _ in range(kills))
    with running(*arguments, env=environment()) as child:
        done, last = 0, set()
        while child.poll() is None and done < kills:
            ranks = ranks_under(child.pid)
            if saved_step(checkpoint) < after[done] or not ranks or last & set(ranks):
                time.sleep(0.002)
                continue
            time.sleep(g.uniform(0, 0.03))
            last = set(ranks_under(child.pid))
            try:
                os.kill(g.choice(sorted(last)), signal.SIGKILL)
                done += 1
            except (ProcessLookupError, IndexError):  # it was done before
                break
        out, err = child.communicate(timeout=PATIENCE)
        expect(child.returncode == 0, f"exit code {child.returncode} after {done} kills: {out}{err}")
        return out, err, done


@case(seconds=6)
def a_killed_training_goes_on(folder):
    package, data = small_package(folder, settings("AdamW", accumulation=3)), small_data(folder)
    train = ["train", package, f"--data={data}", "--steps=1500", "--seed=3", "--save-interval=20", "--keep=3"]
    g = random.Random(SEED)
    for ranks, transport in ((1, "shm"), (3, "shm"), (2, "tcp")):
        for name in ("whole", "parts"):
            shutil.rmtree(folder / name, ignore_errors=True)
        job = [f"--ranks={ranks}", f"--transport={transport}", "--restarts=20", *train]
        launch(*job, f"--checkpoint={folder / 'whole'}", f"--log={folder / 'whole.jsonl'}")
        out, err, kills = killed_at_times([*job, f"--checkpoint={folder / 'parts'}", f"--log={folder / 'parts.jsonl'}"], 4, g, folder / "parts", 1500)
        expect(kills >= 1 and "1500 steps" in out, f"{kills} kills: {out}")
        expect(all(line.startswith("ds-run: ") for line in err.splitlines()), err)
        lines = re.findall(r"^ds-run: restart (\d+) of 20: (\d) ranks?, from .*/parts/global_step\d+$", err, re.M)
        expect(lines == [(str(number + 1), str(ranks)) for number in range(kills)], f"{kills} kills: {err}")
        expect(len(re.findall(r"^ds-run: error: rank \d \(pid \d+\) was killed by SIGKILL", err, re.M)) == kills, err)
        same_state(folder / "whole", folder / "parts", 1500)
        expect(bits(folder / "whole.jsonl") == bits(folder / "parts.jsonl"), "the logs differ")


@case(seconds=12)
def a_killed_training_goes_on_over_mpi(folder):
    """mpirun ends with the rank, and is called again."""
    if not shutil.which("mpirun"):
        raise Skip("needs Open MPI")
    package, data = small_package(folder, settings("AdamW", accumulation=3)), small_data(folder)
    job = ["--ranks=2", "--transport=mpi", "--restarts=9", "train", package, f"--data={data}", "--steps=1000", "--seed=3", "--save-interval=20", "--keep=3"]
    launch(*job, f"--checkpoint={folder / 'whole'}", env=environment())
    _, err, kills = killed_at_times([*job, f"--checkpoint={folder / 'parts'}"], 2, random.Random(SEED), folder / "parts", 1000)
    restarts = re.findall(r"^ds-run: restart (\d+) of 9: 2 ranks, from .*/parts/global_step\d+$", err, re.M)
    expect(kills >= 1 and restarts == [str(number + 1) for number in range(kills)], f"{kills} kills: {err}")
    same_state(folder / "whole", folder / "parts", 1000)


@case(seconds=5)
def checkpoints_of_another_training_are_left_alone(folder):
    """They lie in the same folder; a training that was not asked to resume begins anew until it has one of its own."""
    package, data = small_package(folder, settings("AdamW", accumulation=3)), small_data(folder)
    launch("train", package, f"--data={data}", "--steps=7", "--seed=8", f"--checkpoint={folder / 'parts'}")
    train = ["train", package, f"--data={data}", "--steps=3000", "--seed=3"]
    launch(*train, f"--checkpoint={folder / 'whole'}")
    log = folder / "log.jsonl"
    with running("--ranks=1", "--restarts=1", *train, f"--checkpoint={folder / 'parts'}", f"--log={log}", env=environment()) as child:
        until(lambda: log.exists() and log.stat().st_size > 0, "the first step")
        os.kill(children(child.pid)[0], signal.SIGKILL)
        _, err = child.communicate(timeout=PATIENCE)
        expect(child.returncode == 0 and "ds-run: restart 1 of 1: 1 rank, from where it started\n" in err, err)
    same_state(folder / "whole", folder / "parts", 3000)


@case
def restarts_are_counted(folder):
    text = f"test $DS_RANK = 1 && echo x >> {folder}/runs; exit $((DS_RANK * 5))"
    for restarts in (0, 1, 3):
        _, err = launch("-n", 2, f"--restarts={restarts}", "--exec", "sh", "-c", text, code=5)
        expect((folder / "runs").read_text() == "x\n" * (restarts + 1), f"{restarts} restarts: {(folder / 'runs').read_text()}")
        expect(re.findall(r"^ds-run: restart (\d) of \d: 2 ranks, the same command$", err, re.M) == [str(i + 1) for i in range(restarts)], err)
        (folder / "runs").unlink()
    # It went well at last; logs go on, and ranks know how often they were started.
    out, _ = launch("-n", 2, "--restarts=5", "--log-dir", folder / "logs", "--exec", "sh", "-c", "echo at ${DS_RESTART:-0}; test ${DS_RESTART:-0} = 2")
    expect(out == "at 0\nat 1\nat 2\n" and (folder / "logs/rank-1.log").read_text() == out, out)
    # What is wrong on the command line is so again, and who ends the ranks does not want them back.
    launch("-n", 2, "--restarts=5", "--exec", "sh", "-c", f"echo x >> {folder}/runs; exit 2", code=2)
    expect((folder / "runs").read_text() == "x\n" * 2, "a usage error was repeated")
    with running("-n", 2, "--restarts=5", "--exec", "sh", "-c", f"echo x > {folder}/started$DS_RANK; exec sleep 1000") as child:
        while not all((folder / f"started{rank}").exists() for rank in range(2)):
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=PATIENCE)
        expect(child.returncode == 143 and "restart" not in err, err)


@case
def restarts_on_fewer_ranks(folder):
    """What the hostfile has no more is not used any more; what is new is not, either."""
    hosts = folder / "hosts"
    here = os.uname().nodename
    hosts.write_text(f"localhost slots=3\n{here} slots=2\n")
    runs = [f"localhost slots=2\n{here} slots=9\n", f"other slots=7\n{here} slots=1\n"]
    for number, text in enumerate(runs):
        (folder / f"hosts{number}").write_text(text)
    text = f"n=${{DS_RESTART:-0}}; test $DS_RANK = 0 || exit 0; echo $DS_WORLD $DS_HOST; test $n = 2 || {{ cp {folder}/hosts$n {hosts}; exit 1; }}"
    out, err = launch("-H", hosts, "--restarts=3", "--exec", "sh", "-c", text)
    expect(out == f"5 localhost\n4 localhost\n1 {here}\n", out)
    expect(re.findall(r"restart \d of 3: (\d rank)", err) == ["4 rank", "1 rank"], err)
    hosts.write_text("localhost slots=2\n")
    _, err = launch("-H", hosts, "--restarts=3", "--exec", "sh", "-c", f"echo 'other slots=1' > {hosts}; exit 1", code=2)
    expect("none of the 2 slots is left" in err, err)


@case(seconds=7)
def a_training_on_fewer_ranks(folder):
    """Of 4 slots 3 are left, and 8 samples a step divide among 2: the training goes on there, on all of its data."""
    config = settings("AdamW", micro=1, train_batch_size=8)
    package, data = small_package(folder, config), small_data(folder, samples=64)
    hosts, log = folder / "hosts", folder / "log.jsonl"
    hosts.write_text("localhost slots=4\n")
    with running("-H", hosts, "--restarts=1", "train", package, f"--data={data}", "--steps=3000", f"--checkpoint={folder / 'run'}", "--save-interval=10",
                 f"--log={log}", env=environment()) as child:
        until(lambda: (folder / "run/latest").exists(), "a checkpoint")
        hosts.write_text("localhost slots=3\n")
        os.kill(children(child.pid)[2], signal.SIGKILL)
        _, err = child.communicate(timeout=PATIENCE)
    expect(child.returncode == 0 and re.search(r"^ds-run: restart 1 of 1: 2 ranks, from .*/run/global_step\d+$", err, re.M), err)
    rows = log_of(log)
    expect([row["step"] for row in rows] == list(range(3000)) and [row["samples"] for row in rows] == [8 * (step + 1) for step in range(3000)],
           f"{rows[-1]}")
