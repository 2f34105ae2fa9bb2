"""Ranks that others start: mpirun where it is installed, and what is asked of srun, by a program in its place."""
import os
import re
import shutil
import signal
import subprocess

from kit import BIN, Skip, case, expect
from launch_runs import PATIENCE, environment, gone, launch, pids, running

SELF = str((BIN / "ds-run").resolve())


def needs_mpirun():
    if not shutil.which("mpirun"):
        raise Skip("needs Open MPI")


def mpi(*arguments, **keywords):
    return launch("--transport=mpi", *arguments, **({"env": environment()} | keywords))


@case(seconds=4)
def ranks_of_mpirun(folder):
    """They are told the same as ranks of ours; output of rank 0, logs, variables and exit codes are the same, too."""
    needs_mpirun()
    (folder / "env").write_text("SPACED=a  b=c\n")
    text = f'echo "$DS_RANK $DS_WORLD $DS_LOCAL_RANK $DS_TRANSPORT $DS_TIMEOUT $SPACED|" > {folder}/r$DS_RANK; echo out $DS_RANK; echo err $DS_RANK >&2'
    out, err = mpi("-n", 3, "--timeout=3", f"--env-file={folder / 'env'}", "--log-dir", folder / "logs", "--exec", "sh", "-c", text)
    expect(out == "out 0\n" and sorted(err.splitlines()) == ["err 0", "err 1", "err 2"], out + err)
    for rank in range(3):
        expect((folder / f"r{rank}").read_text() == f"{rank} 3 {rank} mpi 3 a  b=c|\n", (folder / f"r{rank}").read_text())
        lines = (folder / f"logs/rank-{rank}.log").read_text().splitlines()
        expect(sorted(lines) == [f"err {rank}", f"out {rank}"], f"rank {rank}: {lines}")
    for end, code, says in (("exit 3", 3, "ended with exit code 3"), ("kill -9 $$", 137, "was killed by SIGKILL")):
        _, err = mpi("-n", 3, "--exec", "sh", "-c", f"test $DS_RANK = 2 && {end}; exec sleep 1000", code=code)
        expect(re.search(rf"ds-run: error: rank 2 \(host \S+, pid \d+\) {says}", err), err)
    _, err = mpi("-n", 2, "none.dsp", code=1, says="none.dsp: not a package directory")


@case
def ranks_of_mpirun_end_with_it(folder):
    needs_mpirun()
    text = f"sleep 1000 & echo $$ $! > {folder}/r$DS_RANK; wait"
    for number in (signal.SIGINT, signal.SIGTERM):
        for file in folder.iterdir():
            file.unlink()
        with running("--transport=mpi", "-n", 2, "--exec", "sh", "-c", text, env=environment()) as child:
            processes = pids(folder, 2)
            child.send_signal(number)
            expect(child.wait(PATIENCE) != 0, "mpirun was interrupted and says that all went well")
            gone(processes)


@case
def restarts_of_mpirun(folder):
    needs_mpirun()
    text = "echo at ${DS_RESTART:-0} >&2; test ${DS_RESTART:-0} = 1 && exit 0; echo 'ds-run: error: x' >&2; exit 5"
    _, err = mpi("-n", 2, "--restarts=3", "--log-dir", folder / "logs", "--exec", "sh", "-c", text)
    expect(err.count("at 0\n") == 2 and err.count("at 1\n") == 2 and "ds-run: restart 1 of 3: 2 ranks, the same command\n" in err, err)
    for rank in range(2):
        expect(f"ds-run: error: rank {rank}: x\n" in err, err)
        expect((folder / f"logs/rank-{rank}.log").read_text() == "at 0\nds-run: error: x\nat 1\n", f"rank {rank}")


@case
def called_by_mpirun(folder):
    """mpirun ds-run ... without a launcher of ours; --ranks may say how many there are."""
    needs_mpirun()
    root = ["--allow-run-as-root"] * (os.geteuid() == 0)
    for more, code in (([], 0), (["--ranks=2"], 0), (["--ranks=3"], 2)):
        found = subprocess.run(["mpirun", *root, "--oversubscribe", "-n", "2", SELF, *more, "--exec", "sh", "-c", "echo $DS_RANK of $DS_WORLD"],
                               capture_output=True, text=True, env=environment(), timeout=PATIENCE, stdin=subprocess.DEVNULL)
        expect(found.returncode == code and found.stdout == "0 of 2\n" * (code == 0), f"{more}: {found}")
        expect(code == 0 or "expected 2, as many as mpirun has started" in found.stderr, found.stderr)


def stand_in(folder, name, code):
    """A program of this name in PATH that writes its words and ends so."""
    (folder / name).write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/words\nenv > {folder}/variables\nexit {code}\n')
    (folder / name).chmod(0o755)
    return environment(PATH=f"{folder}:{os.environ['PATH']}", HOME=str(folder))


@case
def what_srun_is_asked_for(folder):
    (folder / "hosts").write_text("n2 slots=2\nn1 slots=1\n")
    (folder / ".deepspeed_env").write_text("MORE=1 2\n")
    out, err = launch("--launcher=slurm", "-H", folder / "hosts", "--timeout=9", "train", "m.dsp", "--data=a b", code=7, env=stand_in(folder, "srun", 7))
    expect(out + err == "", out + err)
    expect((folder / "words").read_text().splitlines() == ["--ntasks=3", "--kill-on-bad-exit=1", "--distribution=arbitrary", "--nodelist=n2,n2,n1", "--nodes=2",
                                                           SELF, "train", "m.dsp", "--data=a b"], (folder / "words").read_text())
    variables = (folder / "variables").read_text().splitlines()
    expect({"MORE=1 2", "DS_TRANSPORT=mpi", "DS_TIMEOUT=9"} <= set(variables), f"{variables}")


@case
def what_mpirun_is_asked_for(folder):
    (folder / "hosts").write_text("n2 slots=2\nn1 slots=1\n")
    launch("-H", folder / "hosts", "--num_gpus=1", "m.dsp", "--input", "x=$1", code=0, env=stand_in(folder, "mpirun", 0))
    words = (folder / "words").read_text().splitlines()
    expect(words[-4:] == [SELF, "m.dsp", "--input", "x=$1"] and words[words.index("--host") + 1] == "n2:1,n1:1", f"{words}")
    expect(words[words.index("-n") + 1] == "2" and words[words.index("--map-by") + 1] == "slot", f"{words}")


@case
def ranks_of_srun(folder):
    """As srun would start them."""
    def rank(number, *options, code=0, **more):
        return launch(*options, "--exec", "sh", "-c", "echo $DS_RANK of $DS_WORLD at $DS_LOCAL_RANK", code=code,
                      env=environment(SLURM_PROCID=str(number), SLURM_NTASKS="3", SLURM_LOCALID="1", SLURM_STEP_ID="4", **more))[0]
    expect(rank(0) == "0 of 3 at 1\n", "rank 0")
    expect(rank(2, "--ranks=3") == "", "output of another rank")
    rank(2, "--ranks=2", code=2)
    expect(rank(2, DS_LOG_DIR=str(folder)) == "" and (folder / "rank-2.log").read_text() == "2 of 3 at 1\n", "the log of rank 2")
