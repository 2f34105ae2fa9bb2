"""docs/ranks.md: its commands as they stand there, its hostfile, and the options and variables that it names."""
import contextlib
import re
import shlex

import numpy as np

from kit import case, compile_model, expect, tool
from launch_runs import environment, launch
from programs import SEED
from training_docs_cases import FIRST, blocks, commands, document, prepare

HOSTS = "node1 slots=4\nnode2 slots=4\n"


def trained(folder, out):
    # Three times 6 micro-batches of at most 8 of the 44 samples, four of them a step.
    expect((folder / "run/latest").read_text().strip() == "global_step5" and "5 steps, 132 samples" in out, out)
    expect(sorted(path.name for path in (folder / "logs").iterdir()) == [f"rank-{rank}.log" for rank in range(4)], "other logs")


def called(folder, out):
    expect(all((folder / f"y{rank}.npz").exists() for rank in range(2)) and out == "", out)


def planned(folder, out):
    *ranks, command = out.splitlines()
    expect(ranks == [f"rank {rank} host node{1 + rank // 4} slot {rank % 4}" for rank in range(7)], out)
    expect("mpirun" in command and "node1:4,node2:3" in command, command)


KNOWN = {
    "ds-run --ranks=4 train m.dsp --data=train.npz --epochs=3 --checkpoint=run --save-interval=5 --restarts=2 --log-dir=logs": trained,
    "ds-run --ranks=2 model.dsp --inputs=x.npz --output=y{rank}.npz": called,
    "ds-run --hostfile=hosts --exclude=node2:3 --dry-run train m.dsp --data=train.npz --epochs=3": planned,
}


@case(seconds=4)
def commands_of_the_page(folder):
    prepare(folder)
    (folder / "hosts").write_text(HOSTS)
    np.savez(folder / "x.npz", x=np.random.default_rng(SEED).standard_normal((3, 6), np.float32))
    compile_model(folder / "model.onnx", folder)
    found = commands(document("ranks"))
    expect(set(found) == set(KNOWN), f"without a check here, or no more in the page: {sorted(set(found) ^ set(KNOWN))}")
    with contextlib.chdir(folder):
        tool(*FIRST.split())
        for command in found:
            out, err = launch(*shlex.split(command)[1:], env=environment())
            expect(err == "", f"{command} warns: {err}")
            KNOWN[command](folder, out)


@case
def names_of_the_page(folder):
    """Options are those of --help, all of the group; variables are those that ranks find."""
    text = document("ranks")
    group = tool("ds-run", "--help").out.split("Ranks (docs/ranks.md):")[1].split("\n\n")[0]
    options = set(re.findall(r"--[a-z_-]+", group)) - {"--help"}
    named = set(re.findall(r"--[a-z][a-z_-]*", text))
    others = {"--data", "--epochs", "--checkpoint", "--save-interval", "--inputs", "--output", "--json", "--plan", "--counters"}
    expect(options <= named and named <= options | others, f"{sorted(options ^ named)}")
    out, _ = launch("-n", 1, "--timeout=3", "--restarts=1", "--exec", "sh", "-c", "test -n \"$DS_RESTART\" || exit 1; env", env=environment())
    expect(set(re.findall(r"\bDS_[A-Z_]+\b", text)) == set(re.findall(r"^DS_[A-Z_]+", out, re.M)), out)


@case
def hostfile_of_the_page(folder):
    (example,) = ["\n".join(lines) for language, lines in blocks(document("ranks")) if not language and not lines[0].startswith("ds-run")]
    (folder / "hosts").write_text(example)
    out, _ = launch("-H", folder / "hosts", "--dry-run", "m.dsp", env=environment())
    expect(len(out.splitlines()) == 9 and "node2:4" in out, out)
