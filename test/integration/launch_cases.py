"""Ranks as processes of this machine: how they end, what is left of them, what they say, and where."""
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from kit import BIN, case, expect
from launch_runs import PATIENCE, environment, gone, launch, pids, running
from programs import SEED


def out_of_memory_kills():
    """None where the kernel does not count them."""
    return next((int(line.split()[1]) for line in open("/proc/vmstat") if line.startswith("oom_kill ")), None)


def sh(text): return ["--exec", "sh", "-c", text]


@case(seconds=6)
def exit_codes(folder):
    """0, 1, another, a signal: of all ranks, and of one of four while the others have a long life before them."""
    for ranks in (1, 4):
        for transport in ("shm", "tcp"):
            launch("-n", ranks, f"--transport={transport}", *sh("exit 0"))
    g = random.Random(SEED)
    kills = out_of_memory_kills()
    for end, code, says in (("exit 1", 1, "ended with exit code 1"), ("exit 77", 77, "ended with exit code 77"),
                            ("kill -9 $$", 137, "was killed by SIGKILL"), ("kill -15 $$", 143, "was killed by SIGTERM"),
                            ("kill -11 $$", 139, "was killed by SIGSEGV")):
        launch("-n", 2, *sh(end), code=code, says=says)
        rank, start = g.randrange(4), time.time()
        out, err = launch("-n", 4, *sh(f"test $DS_RANK = {rank} && {end}; exec sleep 1000"), code=code)
        expect(re.fullmatch(rf"ds-run: error: rank {rank} \(pid \d+\) {says}.*\n", err), f"{rank}, {end}: {err}")
        expect("memory" not in err or kills is None or out_of_memory_kills() != kills, f"nobody ran out of memory: {err}")
        expect(out == "" and time.time() - start < 30, f"{out}, {time.time() - start} s")
    # What does not end by SIGTERM.
    launch("-n", 2, *sh("trap '' TERM; test $DS_RANK = 1 && exit 3; while true; do sleep 0.1; done"), code=3)
    # A rank that is stopped ends, too.
    launch("-n", 2, *sh("test $DS_RANK = 1 && sleep 0.3 && exit 3; kill -STOP $$"), code=3)


@case
def nothing_outlives_a_signal(folder):
    """Ranks, what they have started, and shared memory; whether the launcher was asked to end, or killed."""
    text = f"sleep 1000 & echo $$ $! > {folder}/r$DS_RANK; wait"
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        for file in folder.iterdir():
            file.unlink()
        before = sorted(os.listdir("/dev/shm"))
        with running("-n", 3, *sh(text)) as child:
            processes = pids(folder, 3)
            child.send_signal(number)
            expect(child.wait(PATIENCE) == code, f"{number}: exit code {child.returncode}")
        gone(processes)
        expect(sorted(os.listdir("/dev/shm")) == before, f"left in /dev/shm: {os.listdir('/dev/shm')}")
    for file in folder.iterdir():
        file.unlink()
    with running("-n", 3, "--exec", "sh", "-c", f"echo $$ > {folder}/r$DS_RANK; exec sleep 1000") as child:
        processes = pids(folder, 3)
        child.kill()
        child.wait(PATIENCE)
        gone(processes)


@case
def ranks_may_finish_after_a_signal(folder):
    """They get it, too, and the time that they need; a second one ends them."""
    text = f"trap 'sleep 0.5; echo saved $DS_RANK >> {folder}/saved; exit 0' INT; echo $$ > {folder}/r$DS_RANK; while true; do sleep 0.05; done"
    with running("-n", 3, *sh(text)) as child:
        processes = pids(folder, 3)
        child.send_signal(signal.SIGINT)
        expect(child.wait(PATIENCE) == 130, f"exit code {child.returncode}")
    expect(sorted((folder / "saved").read_text().split("\n")) == ["", "saved 0", "saved 1", "saved 2"], "a rank did not finish")
    gone(processes)
    for file in folder.iterdir():
        file.unlink()
    with running("-n", 2, *sh(f"trap '' INT; echo $$ > {folder}/r$DS_RANK; while true; do sleep 0.05; done")) as child:
        processes, start = pids(folder, 2), time.time()
        child.send_signal(signal.SIGINT)
        time.sleep(0.3)
        expect(child.poll() is None, "ranks that go on were not waited for")
        child.send_signal(signal.SIGINT)
        expect(child.wait(PATIENCE) == 130 and time.time() - start < 25, f"exit code {child.returncode}")
        gone(processes)


@case
def a_launcher_without_terminal(folder):
    """SIGHUP does not end what nohup has started."""
    with running("-n", 2, *sh(f"echo $$ > {folder}/r$DS_RANK; while ! test -e {folder}/go; do sleep 0.02; done"),
                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as child:
        pids(folder, 2)
        child.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        (folder / "go").touch()
        expect(child.wait(PATIENCE) == 0, f"exit code {child.returncode}")


@case
def a_stopped_launcher(folder):
    """Ranks go on without it, and it tells how they ended."""
    with running("-n", 2, *sh(f"echo $$ > {folder}/r$DS_RANK; while ! test -e {folder}/go; do sleep 0.02; done; echo done >&2; exit $((DS_RANK * 5))")) as child:
        processes = pids(folder, 2)
        child.send_signal(signal.SIGSTOP)
        (folder / "go").touch()
        gone(processes)
        child.send_signal(signal.SIGCONT)
        out, err = child.communicate(timeout=PATIENCE)
        expect(child.returncode == 5 and "done\n" in err and "rank 1" in err, f"exit code {child.returncode}: {err}")


@case
def jobs_beside_each_other(folder):
    """No port and no memory is shared."""
    for transport in ("tcp", "shm"):
        jobs = [folder / f"{transport}{i}" for i in range(4)]
        for job in jobs:
            job.mkdir()
        # A file's name in /proc has the number of a socket; memory without a name is told apart by its own.
        text = "test $DS_RANK = 1 && exit 0; exec {} -c 'import os, sys; r = os.environ[\"DS_RENDEZVOUS\"]; print(r, os.stat(int(r[3:].split(\"@\")[0])).st_ino, flush=True); sys.stdin.read()'"
        reader = [os.pipe() for _ in jobs]
        started = [running("-n", 2, f"--transport={transport}", *sh(text.format(sys.executable)), stdin=read) for read, _ in reader]
        with started[0] as a, started[1] as b, started[2] as c, started[3] as d:
            seen = [child.stdout.readline().split() for child in (a, b, c, d)]
            for read, write in reader:
                os.close(write)
                os.close(read)
            expect([child.wait(PATIENCE) for child in (a, b, c, d)] == [0] * 4, "a job failed")
        expect(len({words[1] for words in seen}) == 4, f"{transport}: shared by jobs: {seen}")
        if transport == "tcp":
            expect(len({words[0].split("@")[1] for words in seen}) == 4, f"an address is used twice: {seen}")


@case
def what_ranks_are_told(folder):
    """Each its own number, all the rest the same; descriptors that are open."""
    text = f"exec {sys.executable} -c 'import json, os, sys; e = {{k: v for k, v in os.environ.items() if k.startswith(\"DS_\")}}; " \
           f"fd = e[\"DS_RENDEZVOUS\"].split(\"@\")[0]; e[\"target\"] = os.readlink(\"/proc/self/fd/\" + fd[3:]) if fd.startswith(\"fd:\") else \"\"; " \
           f"e[\"starter\"] = os.readlink(\"/proc/self/fd/\" + e[\"DS_STARTER\"][3:]); e[\"fds\"] = len(os.listdir(\"/proc/self/fd\")); json.dump(e, open(\"{folder}/\" + e[\"DS_RANK\"], \"w\"))'"
    for transport in ("shm", "tcp"):
        launch("-n", 3, f"--transport={transport}", "--timeout=2.5", *sh(text), env=environment())
        ranks = [json.loads((folder / str(rank)).read_text()) for rank in range(3)]
        for rank, found in enumerate(ranks):
            expected = {"DS_RANK": str(rank), "DS_WORLD": "3", "DS_LOCAL_RANK": str(rank), "DS_TRANSPORT": transport, "DS_TIMEOUT": "2.5",
                        "DS_HOST": "localhost", "DS_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // 3))}
            expect({key: found[key] for key in expected} == expected, f"{found}, expected {expected}")
            owns = transport == "shm" or rank == 0
            expect(("memfd" in found["target"]) == (transport == "shm") and ("socket:" in found["target"]) == (transport == "tcp" and rank == 0), f"{found}")
            expect(found["fds"] == 5 + owns and "pipe:" in found["starter"], f"rank {rank} has other descriptors than 0, 1, 2, starter and rendezvous: {found}")
        if transport == "tcp":
            address = ranks[0]["DS_RENDEZVOUS"].split("@")[1]
            expect([rank["DS_RENDEZVOUS"] for rank in ranks[1:]] == [address] * 2, f"{ranks}")
    launch("-n", 2, *sh("test $DS_NUM_THREADS = 7"), env=environment(DS_NUM_THREADS="7"))


@case
def output_of_ranks(folder):
    """Rank 0's as it is; errors with their rank, or without where all have them; lines of several ranks once."""
    out, err = launch("-n", 3, *sh("echo out $DS_RANK; printf 'no end'; echo note >&2; echo own $DS_RANK >&2; echo note >&2; printf last >&2"))
    expect(out == "out 0\nno end", out)
    expect(sorted(err.splitlines()) == sorted(["note", "note", "own 0", "own 1", "own 2", "last"]), err)
    _, err = launch("-n", 3, *sh("echo 'ds-run: error: a: bad' >&2; exit 2"), code=2)
    expect(err == "ds-run: error: a: bad\n", err)
    _, err = launch("-n", 3, *sh("test $DS_RANK = 1 && echo 'ds-run: error: a: bad' >&2 && exit 2; exec sleep 1000"), code=2)
    expect(err == "ds-run: error: rank 1: a: bad\n", err)
    big = "head -c 3000000 /dev/zero | tr '\\0' x"
    out, err = launch("-n", 2, *sh(f"{big}; {big} >&2"))
    expect(out == "x" * 3000000 and len(err.replace("\n", "")) >= 3000000, f"{len(out)} and {len(err)} bytes")
    out, _ = launch("-n", 2, *sh("cat; test $DS_RANK = 0 || exit 0"), stdin=open(__file__))
    expect(out == Path(__file__).read_text(), "rank 0 has another standard input")


@case
def a_terminal_is_one_for_rank_0(folder):
    """Progress is drawn on it."""
    main, other = pty.openpty()
    with running("-n", 2, *sh("test -t 2 && printf '\\rprogress' >&2 && sleep 0.2; printf '\\r\\033[Kend\\n' >&2"), stderr=other) as child:
        os.close(other)
        seen = b""
        expect(child.wait(PATIENCE) == 0, f"exit code {child.returncode}")
        try:
            while part := os.read(main, 1000):
                seen += part
        except OSError:  # its other end is closed
            pass
        os.close(main)
    expect(seen.count(b"\rprogress") == 1 and seen.count(b"end") == 1, f"{seen}")


@case
def logs(folder):
    """One for each rank, with both of its outputs; the terminal has what it has without."""
    text = "echo out $DS_RANK; echo err $DS_RANK >&2; echo note >&2"
    for directory in ("logs", "logs", "a/b"):  # begun anew each time
        out, err = launch("-n", 3, "--log-dir", folder / directory, *sh(text))
        expect(out == "out 0\n" and sorted(err.split()) == sorted("err 0 err 1 err 2 note".split()), out + err)
        expect(sorted(path.name for path in (folder / directory).iterdir()) == [f"rank-{rank}.log" for rank in range(3)], "other logs")
        for rank in range(3):
            lines = (folder / directory / f"rank-{rank}.log").read_text().splitlines()
            expect(sorted(lines) == sorted([f"out {rank}", f"err {rank}", "note"]), f"rank {rank}: {lines}")
    (folder / "file").touch()
    launch("-n", 2, "--log-dir", folder / "file", *sh("exit 0"), code=1, says="--log-dir")
    if Path("/dev/full").exists():
        (folder / "full").mkdir()
        (folder / "full/rank-0.log").symlink_to("/dev/full")
        _, err = launch("-n", 2, "--log-dir", folder / "full", *sh("echo $DS_RANK; echo $DS_RANK >&2"))
        expect(err.count("rank-0.log: cannot write: No space left on device") == 1, err)


@case
def programs_that_cannot_start(folder):
    launch("-n", 2, "--exec", folder / "none", code=1, says="cannot start")
    launch("-n", 2, "--exec", folder, code=1, says="cannot start")
    launch("-n", 2, "--exec", code=2, says="--exec: expected a command behind it")
    launch("-n", 2, "m.dsp", "--exec", "true", code=2, says="'m.dsp'")
    _, err = launch("-n", 4, "none.dsp", code=1)
    expect(len(err.splitlines()) == 1 and "none.dsp" in err, err)


@case
def what_is_inherited(folder):
    """Standard descriptors that are closed, a limit of descriptors, and signals that are ignored."""
    text = 'exec "$@" --ranks=2 --exec sh -c "echo out; ls -l /proc/self/fd | grep -c memfd >&2; exit 4"'
    for closed, out, err in (("<&-", "out\n", "1\n1\n"), ("<&- >&-", "", "1\n1\n"), ("<&- >&- 2>&-", "", ""), ("2>&-", "out\n", "")):
        found = subprocess.run(["sh", "-c", f"{text} {closed}", "sh", BIN / "ds-run"], capture_output=True, text=True, timeout=PATIENCE)
        lines = [line for line in found.stderr.splitlines() if line.isdigit()]
        expect(found.returncode == 4 and found.stdout == out, f"{closed}: {found}")
        expect(set(lines) == set(err.split()), f"{closed}: {found}")
    found = subprocess.run([BIN / "ds-run", "-n", "3", *sh("exit $DS_RANK")], capture_output=True, text=True, timeout=PATIENCE,
                           preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    expect(found.returncode in (1, 2), f"{found}")
    found = subprocess.run(["sh", "-c", 'ulimit -Sn 64; ulimit -Hn 2000; exec "$@"', "sh", BIN / "ds-run", "-n", "300", *sh("exit 0")],
                           capture_output=True, text=True, timeout=PATIENCE)
    expect(found.returncode == 0, f"{found}")


@case
def many_ranks(folder):
    ranks = 48
    launch("-n", ranks, *sh(f"echo $$ > {folder}/r$DS_RANK"))
    expect(len({pid for pid in pids(folder, ranks)}) == ranks, "ranks are missing")


@case
def a_rank_that_is_one_does_not_launch(folder):
    _, err = launch("-n", 2, "--exec", BIN / "ds-run", "-n", 2, "--exec", "true", code=2)
    expect(re.search(r"--exec: ds-run has started the ranks already", err), err)
    launch("-n", 3, "m.dsp", env=environment(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2"), code=2, says="expected 2, as many as mpirun has started")
    launch("--log-dir=x", "m.dsp", env=environment(SLURM_PROCID="0", SLURM_NTASKS="2", SLURM_STEP_ID="0"), code=2, says="--log-dir: srun has started")
    launch("m.dsp", env=environment(DS_RANK="x"), code=2, says="DS_RANK: found 'x', expected a number")
    launch("m.dsp", env=environment(DS_RANK="2", DS_WORLD="2"), code=2, says="DS_RANK: found 2, expected less than DS_WORLD, 2")
    # A batch script of Slurm, and a shell of one task, are where ranks are started from.
    for more in ({}, {"SLURM_STEP_ID": "0"}):
        out, _ = launch("-n", 2, *sh("echo $DS_WORLD"), env=environment(SLURM_PROCID="0", SLURM_NTASKS="1", **more))
        expect(out == "2\n", out)
