"""Ranks of a training that are killed, stopped or busy for ever: each of three on every transport is named with host, collective, tensor
and step, and nothing of the job is left."""
import os
import re
import shutil
import signal
import socket
import time

import numpy as np
from onnx import parser

from kit import BIN, Skip, case, expect
from launch_runs import PATIENCE, environment, gone, launch, processes_under, rank_of, running, until
from programs import SEED
from ranks_training_cases import shared
from ranks_training_runs import RANDOM
from training_runs import settings, small_data, small_package, train_package

RANKS = 3
# A loop that the data end, beside the path of derivatives.
COUNTING = """<ir_version: 9, opset_import: ["": 17]> m (float[n, 3] x, int64[n, 1] rounds) => (float[n, 4] y)
  <float[3, 4] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.1, 0.2, 0.3, -0.3, 0.5}, int64 zero = {0}, int64 one = {1}> {
    most = ReduceMax <keepdims = 0> (rounds)
    begins = Less (zero, most)
    last = Loop ("", begins, zero) <body = b (int64 i, bool c, int64 a) => (bool d, int64 next) { next = Add (a, one) d = Less (next, most) }>
    counted = Cast <to = 1> (last)
    z = MatMul (x, w)
    y = Add (z, counted) }"""


def needs(transport):
    if transport == "mpi" and not shutil.which("mpirun"):
        raise Skip("needs Open MPI")


def process_of(rank, processes):
    found = next((process for process in processes if rank_of(process) == rank), None)
    expect(found, f"none of the processes {processes} is rank {rank}")
    return found


def named(said, victim, what, step=r"\d+"):
    """Others name the rank and what they miss it in; errors that tell of anything else are those of who has started the ranks."""
    place = rf"(?:entry '\w+': )?(?:\w+ '[^']+': )?\w+ '[^']+' at '[^']+', step {step}: rank {victim} \(host \S+\) {what}"
    errors = re.findall(r"^ds-run: error: (?:ranks? [\d, ]+: )?(.*)$", said, re.M)
    others = [error for error in errors if not re.fullmatch(place, error)]
    expect(len(others) < len(errors), f"rank {victim} is not named as one that {what}: {said}")
    expect(all(re.fullmatch(rf"rank {victim} \(pid \d+\) was killed by SIGKILL.*|\(pid \d+\) was killed by SIGKILL.*", error) for error in others), said)


def what_is_left(segments, processes):
    gone(processes)
    until(lambda: set(os.listdir("/dev/shm")) <= segments, f"an end of segments but {segments}")


def signalled(folder, transport, number, what):
    """Each rank gets the signal in a job of its own, amid steps."""
    needs(transport)
    package, data = small_package(folder, settings("AdamW", micro=2, **shared(2))), small_data(folder)
    for victim in range(RANKS):
        log, segments = folder / f"log{victim}.jsonl", set(os.listdir("/dev/shm"))
        with running(f"--ranks={RANKS}", f"--transport={transport}", "train", package, f"--data={data}", "--steps=10000000", f"--log={log}", env=environment()) as job:
            until(lambda: log.exists() and len(log.read_text().splitlines()) > 5, "some steps")
            processes = processes_under(job.pid)
            os.kill(process_of(victim, processes), number)
            start = time.time()
            _, said = job.communicate(timeout=PATIENCE)
        expect(time.time() - start < PATIENCE / 2, f"{time.time() - start} s")
        expect(job.returncode == (137 if number == signal.SIGKILL else 1), f"exit code {job.returncode}: {said}")
        named(said, victim, what)
        what_is_left(segments, processes)


def busy(folder, transport):
    """Each rank is given a sample for which its model never ends."""
    needs(transport)
    package = train_package(folder, parser.parse_model(COUNTING), settings("AdamW", micro=1, **shared(2)), logits="y")
    g = np.random.default_rng(SEED)
    for victim in range(RANKS):
        step, data, segments = int(g.integers(1, 8)), folder / f"data{victim}.npz", set(os.listdir("/dev/shm"))
        rounds = g.integers(1, 5, (10 * RANKS, 1))
        rounds[step * RANKS + victim] = 2 ** 62
        np.savez(data, x=g.standard_normal((len(rounds), 3), np.float32), rounds=rounds, labels=g.integers(0, 4, len(rounds)))
        with running(f"--ranks={RANKS}", f"--transport={transport}", "--timeout=1.5", "train", package, f"--data={data}", "--steps=10", "--shuffle=off",
                     env=environment()) as job:
            until(lambda: len(processes_under(job.pid)) >= RANKS, "the ranks")
            processes = processes_under(job.pid)
            _, said = job.communicate(timeout=PATIENCE)
        expect(job.returncode == 1, f"exit code {job.returncode}: {said}")
        named(said, victim, r"did not arrive in 1\.5 s", step)
        what_is_left(segments, processes)


@case(seconds=12)
def killed_over_shared_memory(folder):
    signalled(folder, "shm", signal.SIGKILL, "has died")


@case(seconds=12)
def killed_over_tcp(folder):
    signalled(folder, "tcp", signal.SIGKILL, "has died")


@case(seconds=12)
def killed_over_mpi(folder):
    signalled(folder, "mpi", signal.SIGKILL, "has died")


@case(seconds=16)
def stopped_over_shared_memory(folder):
    signalled(folder, "shm", signal.SIGSTOP, "is stopped")


@case(seconds=19)
def stopped_over_tcp(folder):
    signalled(folder, "tcp", signal.SIGSTOP, "is stopped")


@case(seconds=12)
def stopped_over_mpi(folder):
    signalled(folder, "mpi", signal.SIGSTOP, "is stopped")


@case(seconds=12)
def busy_over_shared_memory(folder):
    busy(folder, "shm")


@case(seconds=12)
def busy_over_tcp(folder):
    busy(folder, "tcp")


@case(seconds=12)
def busy_over_mpi(folder):
    busy(folder, "mpi")


@case(seconds=12)
def ended_before_it_was_found(folder):
    """Others would look for it until their time is up, half a minute: who has started them knows better. mpirun does not, and who calls that is told."""
    package, data = small_package(folder, settings("AdamW", micro=2)), small_data(folder)
    has_mpi = bool(shutil.which("mpirun"))
    for transport, victims in (("shm", range(RANKS)), ("tcp", range(RANKS)), *([("mpi", [RANDOM.randrange(RANKS)])] if has_mpi else [])):
        for victim in victims:
            for code in (0, 7):
                script = f"test $DS_RANK = {victim} && exit {code}; exec {BIN / 'ds-run'} train {package} --data={data} --steps=2"
                start = time.time()
                _, err = launch(f"--ranks={RANKS}", f"--transport={transport}", "--exec", "sh", "-c", script, code=code or 1, env=environment())
                host = rf"host {re.escape(socket.gethostname())}, " if transport == "mpi" else ""
                why = f"ended with exit code {code}" + " before it had found the others, which look for it" * (code == 0 or transport != "mpi")
                expect(re.search(rf"^ds-run: error: rank {victim} \({host}pid \d+\) {why}$", err, re.M), err)
                # mpirun has words of its own, and now and then a crash of its own when it is ended while it ends.
                said = [line for line in err.splitlines() if transport != "mpi" or line.startswith("ds-run: ")]
                expect(time.time() - start < 20 and (len(said) == 1 or transport == "mpi" and code), f"{time.time() - start} s: {err}")
    # Who looks for nobody may come and go.
    launch("--ranks=2", "--exec", "sh", "-c", "test $DS_RANK = 1 || sleep 0.5", env=environment())
