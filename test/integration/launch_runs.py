"""What the cases of the launcher share: starting it beside the test, and looking for what it left."""
import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from kit import BIN, expect

PATIENCE = 60  # seconds after which something hangs


def signals_by_default():
    """Tests may run in the background of a shell, which ignores some; what is ignored is inherited."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def launcher(*arguments, **keywords):
    """ds-run as a process of its own session, so that signals reach it alone."""
    keywords = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True,
                "preexec_fn": signals_by_default} | keywords
    return subprocess.Popen([str(BIN / "ds-run"), *map(str, arguments)], **keywords)


@contextlib.contextmanager
def running(*arguments, **keywords):
    child = launcher(*arguments, **keywords)
    try:
        yield child
    finally:
        child.kill()
        child.communicate(timeout=PATIENCE)


def launch(*arguments, code=0, says=(), timeout=PATIENCE, **keywords):
    """Runs ds-run to its end; (standard output, standard error)."""
    child = launcher(*arguments, **keywords)
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        raise AssertionError(f"still running after {timeout} s: {arguments}") from None
    expect(child.returncode == code, f"{arguments}: exit code {child.returncode}, expected {code}\n{out}{err}")
    for text in [says] if isinstance(says, str) else says:
        expect(text in err, f"{arguments}: expected '{text}' in\n{err}")
    return out, err


def until(condition, what):
    deadline = time.time() + PATIENCE
    while not condition():
        expect(time.time() < deadline, f"not in {PATIENCE} s: {what}")
        time.sleep(0.01)


def is_alive(pid):
    """Whether it is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def processes_under(pid):
    return [process for child in children(pid) for process in (child, *processes_under(child))]


def rank_of(pid):
    """By its environment, whoever has started it; None: it is no rank."""
    try:
        words = dict(word.split("=", 1) for word in Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0") if "=" in word)
    except OSError:
        return None
    return next((int(words[name]) for name in ("DS_RANK", "OMPI_COMM_WORLD_RANK") if name in words), None)


def ranks_under(pid):
    return [process for process in processes_under(pid) if rank_of(process) is not None]


def environment(**changes):
    """This process's, without what would say that it is a rank."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("DS_", "OMPI_", "SLURM_"))} | changes


def pids(folder, count):
    """What ranks have written to files r0, r1, ... as soon as all have."""
    files = [folder / f"r{rank}" for rank in range(count)]
    until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files), f"{count} ranks to start")
    return [int(word) for file in files for word in file.read_text().split()]


def gone(processes):
    until(lambda: not any(map(is_alive, processes)), f"the end of {[pid for pid in processes if is_alive(pid)]}")
