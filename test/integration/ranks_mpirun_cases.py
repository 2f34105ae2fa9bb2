"""Ranks of an mpirun that somebody else has called, one of which ends before it looks for the others."""
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import time

from kit import BIN, Skip, case, expect
from launch_runs import PATIENCE, environment, gone, launch, processes_under, signals_by_default
from ranks_training_runs import RANDOM
from training_runs import settings, small_data, small_package

RANKS, STARTS = 3, 15


def called(script):
    """mpirun as a process of its own session; (seconds until a line of standard error says whose end it is, exit code, standard error)."""
    root = ["--allow-run-as-root"] * (os.geteuid() == 0)
    child = subprocess.Popen(["mpirun", *root, "--oversubscribe", "-n", str(RANKS), "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True, preexec_fn=signals_by_default)
    start, named, lines, seen = time.time(), None, [], []
    try:
        for line in child.stderr:
            seen = seen or processes_under(child.pid)
            lines.append(line)
            if named is None and re.search(r"\brank \d+ (\(host|with PID)", line):
                named = time.time() - start
        child.wait(PATIENCE)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    gone(seen)
    return named, child.returncode, "".join(lines)


@case(seconds=12)
def ended_before_mpi_had_found_it(folder):
    """Well, at once or later, or by kill -9: named with its host, by other ranks where mpirun does not see it, long before these give up; a package that is
    not there, too. Five seconds are for ranks that run: starting them takes its time on a busy machine."""
    if not shutil.which("mpirun"):
        raise Skip("needs Open MPI")
    package, data, host = small_package(folder, settings("AdamW", micro=2)), small_data(folder), re.escape(socket.gethostname())
    train = f"exec {BIN / 'ds-run'} train {package} --data={data} --steps=2"
    late = 1.5
    for how, after, says in (("exit 0", 0, rf"rank %d \(host {host}\) ended before it had found the others"),
                             (f"sleep {late} && exit 0", late, rf"rank %d (\(host {host}, pid \d+\) ended before it had found|with PID \d+ on\s+node \S+ exiting)"),
                             (f"sleep {late} && kill -9 $$", late, r"mpirun noticed that process rank %d with PID \d+ on node \S+ exited on signal 9"),
                             (train.replace(str(package), "none.dsp"), 0, rf"rank %d \(host {host}\) did not arrive; rank %d failed: none.dsp: not a package")):
        victim = RANDOM.randrange(RANKS)
        named, code, said = called(f"test $OMPI_COMM_WORLD_RANK = {victim} && {how}; {train}")
        expect(code not in (0, None), f"{how}: exit code {code}: {said}")
        expect(re.search(says.replace("%d", str(victim)), said), f"{how} as rank {victim}: {said}")
        expect(named is not None and named - after < 5 + STARTS, f"{how}: named after {named} s: {said}")


STUCK = """#!/usr/bin/env python3
import ctypes, subprocess
rank = subprocess.Popen(["sleep", "1"]) # of which it never learns how it ended
lock = ctypes.c_int(2)
while True: # as Open MPI's, which waits for a lock of its own
    ctypes.CDLL(None).syscall(202, ctypes.byref(lock), 128, 2, None, None, 0)
"""


@case(seconds=2)
def one_that_waits_for_itself(folder):
    """An mpirun that does not end though its ranks have: it is killed, and the run ends with an error, not never. (Open MPI 4.1.4 with PMIx 4.2.2 does that after
    one of some fifty kills of a rank.)"""
    if platform.machine() != "x86_64":
        raise Skip("knows the number of futex on x86-64")
    package, data, fake = small_package(folder, settings("AdamW", micro=2)), small_data(folder), folder / "mpirun"
    fake.write_text(STUCK)
    fake.chmod(0o755)
    out, err = launch("--ranks=2", "--transport=mpi", "train", package, f"--data={data}", "--steps=2", code=128 + signal.SIGKILL,
                      env=environment(PATH=f"{folder}:{os.environ['PATH']}"))
    expect(err == "ds-run: error: mpirun waits for itself, with all of its ranks ended: it is killed\n", err)
