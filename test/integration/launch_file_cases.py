"""What the launcher reads: hostfiles, filters, environment files; and what --dry-run makes of them, by hand."""
import itertools
import os
import shlex
import socket

from kit import BIN, case, expect
from launch_runs import environment, launch

SELF = str((BIN / "ds-run").resolve())


def hostfile(folder, text, name="hosts"):
    (folder / name).write_text(text)
    return folder / name


def dry(*arguments, **keywords):
    """Lines of ranks, and the command by its words."""
    keywords = {"env": environment()} | keywords
    out, err = launch("--dry-run", *arguments, **keywords)
    expect(err == "", err)
    *ranks, command = out.splitlines()
    return ranks, shlex.split(command)


def places(text):
    return [f"rank {rank} host {place.split('/')[0]} slot {place.split('/')[1]}" for rank, place in enumerate(text.split())]


@case
def plans_of_ranks(folder):
    hosts = hostfile(folder, "# cluster\nb slots=2\n\na slots=3 # old\nc.x slots=1\n")
    for options, expected in (([], "b/0 b/1 a/0 a/1 a/2 c.x/0"), (["--ranks=4"], "b/0 b/1 a/0 a/1"), (["-n", "1"], "b/0"),
                              (["--include=a:2,0@b:1"], "b/1 a/2 a/0"), (["-i", "c.x"], "c.x/0"), (["--exclude=a@b:0"], "b/1 c.x/0"),
                              (["-e", "b"], "a/0 a/1 a/2 c.x/0"), (["--num_nodes=2"], "b/0 b/1 a/0 a/1 a/2"),
                              (["--num_gpus=1"], "b/0 a/0 c.x/0"), (["--num_nodes=2", "--num_gpus=2"], "b/0 b/1 a/0 a/1"),
                              (["--exclude=a:1", "--ranks=3"], "b/0 b/1 a/0")):
        ranks, command = dry(f"--hostfile={hosts}", *options, "train", "m.dsp", "--data=x")
        expect(ranks == places(expected), f"{options}: {ranks}, expected {expected}")
        expect(command[-4:] == [SELF, "train", "m.dsp", "--data=x"], f"{options}: {command}")
        # By mpirun: as many slots of each host as it has ranks.
        names = [place.split("/")[0] for place in expected.split()]
        listed = ",".join(f"{name}:{len(list(group))}" for name, group in itertools.groupby(names))
        at = command.index("mpirun")
        expect(command[:at] == ["DS_TRANSPORT=mpi"] and command[command.index("--host") + 1] == listed, f"{command}")
        expect(command[command.index("-n", at) + 1] == str(len(names)), f"{command}")
        ranks, command = dry(f"--hostfile={hosts}", "--launcher=slurm", *options, "train", "m.dsp", "--data=x")
        expect(ranks == places(expected) and command == ["DS_TRANSPORT=mpi", "srun", f"--ntasks={len(names)}", "--kill-on-bad-exit=1",
                                                         "--distribution=arbitrary", "--nodelist=" + ",".join(names),
                                                         f"--nodes={len(set(names))}", SELF, "train", "m.dsp", "--data=x"], f"{command}")


@case
def plans_of_this_machine(folder):
    processors = len(os.sched_getaffinity(0))
    for options, count in (([], processors), (["--ranks=5"], 5), (["--num_gpus=1"], 1), (["--include=localhost:0"], 1)):
        for transport in ("shm", "tcp", "threads"):
            ranks, command = dry(*options, f"--transport={transport}", "m.dsp", "--entry", "1 2")
            expect(ranks == places(" ".join(f"localhost/{slot}" for slot in range(count))), f"{options}: {ranks}")
            expect(command[-4:] == [SELF, "m.dsp", "--entry", "1 2"], f"{command}")
            variables = dict(word.split("=", 1) for word in command[:-4])
            expected = {} if transport == "threads" else {
                "DS_NUM_THREADS": str(max(1, processors // count)), "DS_RANK": "0", "DS_WORLD": str(count), "DS_LOCAL_RANK": "0",
                "DS_HOST": "localhost", "DS_TRANSPORT": transport, "DS_RENDEZVOUS": "fd:K" + "@127.0.0.1:PORT" * (transport == "tcp")}
            expect(variables == expected, f"{variables}, expected {expected}")
    # Names of this machine in a hostfile.
    here = socket.gethostname()
    ranks, command = dry("-H", hostfile(folder, f"localhost slots=1\n{here} slots=1\n"), "--timeout=4", "m.dsp")
    expect(ranks == places(f"localhost/0 {here}/0") and "DS_TRANSPORT=shm" in command and "DS_TIMEOUT=4" in command, f"{ranks} {command}")
    ranks, command = dry("-n", 3, "--launcher=slurm", "--num_nodes=2", "m.dsp")  # Slurm knows its nodes
    expect(not ranks and command == ["DS_TRANSPORT=mpi", "srun", "--ntasks=3", "--kill-on-bad-exit=1", "--nodes=2", SELF, "m.dsp"], f"{command}")
    ranks, command = dry("-n", 2, "--transport=mpi", "--exec", "prog", "it's", "--ranks")
    expect(command[-5:] == [SELF, "--exec", "prog", "it's", "--ranks"], f"{command}")


@case
def hostfiles_with_faults(folder):
    good = "a slots=2\nb slots=1\n"
    for text, options, says, code in (
            ("a slots=1\n#\na slots=2\n", [], ":3: host 'a' stands at ", 1), ("a slots=0\n", [], ":1: host 'a' has slots=0, expected 1 to 4096", 1),
            ("\na\n", [], ":2: found 'a', expected NAME slots=K", 1), ("a slots=x\n", [], ":1: host 'a' has slots=x", 1),
            ("a slots=1 x\n", [], ":1: found 'a slots=1 x'", 1), ("-a slots=1\n", [], ":1: found '-a'", 1), ("", [], ": no host", 1),
            ("\x00\xff slots=1\n", [], ":1: found '\\x00", 1),
            (good, ["--include=c"], "--include: no host 'c', expected one of [a, b]", 2),
            (good, ["--include=a:2"], "host 'a' has no slot '2', expected 0 to 1", 2),
            (good, ["--include=a:"], "--include: host 'a' has no slot ''", 2), (good, ["--include=a@"], "--include: found 'a@'", 2),
            (good, ["--exclude=a@b"], "leaves no slot", 2), (good, ["--include=a", "--exclude=b"], "expected one of them, found both", 2),
            (good, ["--include=a", "--num_nodes=1"], "--num_nodes: expected no --include beside it", 2),
            (good, ["--num_nodes=3"], "--num_nodes: found 3, expected 1 to 2", 2),
            (good, ["--num_gpus=2"], "--num_gpus: found 2, expected 1 to 1, the slots of host 'b'", 2),
            (good, ["--ranks=4"], "--ranks: found 4, expected 1 to 3, the slots of ", 2),
            (good, ["--launcher=local"], "host 'a' is not this machine", 2), (good, ["--transport=shm"], "host 'a' is not this machine", 2),
            (good, ["--transport=tcp"], "--transport=mpi", 2), (good, ["--launcher=openmpi", "--transport=tcp"], "--transport=tcp", 2)):
        _, err = launch("-H", hostfile(folder, text), *options, "train", "m.dsp", "--data=x", code=code, says=says)
        expect(len(err.splitlines()) == 1 and err.startswith("ds-run: error: "), err)
    os.mkfifo(folder / "pipe")
    for name, says in (("none", "No such file"), ("", "expected a file"), ("pipe", "expected a file")):
        launch("-H", folder / name, "m.dsp", code=1, says=says)


@case
def options_that_do_not_fit(folder):
    for options, says in (
            (["--ranks=0", "m.dsp"], "1 to 4096"), (["-n", "-1", "m.dsp"], "1 to 4096"), (["--ranks=x", "m.dsp"], "'x'"), (["m.dsp", "--ranks"], "--ranks"),
            (["--ranks=", "m.dsp"], "expected a value"), (["-n2", "--transport=udp", "m.dsp"], "udp"), (["-n2", "--launcher=pdsh", "m.dsp"], "pdsh"),
            (["-n2", "--timeout=nan", "m.dsp"], "nan"), (["-n2", "--restarts=-1", "m.dsp"], "-1"), (["-n2", "inspect", "m.dsp"], "inspect is one process"),
            (["-n2", "--transport=threads", "train", "m.dsp", "--data=x"], "--transport=threads: expected ds-run PKG, found train"),
            (["-n2", "--transport=threads", "--log-dir=l", "m.dsp"], "--log-dir: is for ranks that are processes"),
            (["-n65", "--transport=threads", "m.dsp"], "expected 1 to 64"), (["-n2", "--restarts=1", "m.dsp"], "expected ds-run train with --checkpoint=DIR"),
            (["-n2", "--restarts=1", "train", "m.dsp", "--data=x"], "--checkpoint"), (["--launcher=slurm", "m.dsp"], "--ranks=N or --hostfile=FILE"),
            (["-n2", "--launcher=slurm", "--include=a", "m.dsp"], "--include: chooses from a hostfile"),
            (["-n2", "--launcher=local", "--transport=mpi", "m.dsp"], "--launcher=openmpi or slurm"), (["-n2"], "no package given")):
        _, err = launch(*options, code=2, says=says, env=environment())
        expect(len(err.splitlines()) == 1 and err.startswith("ds-run: error: "), f"{options}: {err}")
    nothing = environment(PATH=str(folder))
    for name in ("openmpi", "slurm"):
        _, err = launch("-n2", f"--launcher={name}", "m.dsp", code=1, says=f"--launcher={name}", env=nothing)
        expect(len(err.splitlines()) == 1 and "PATH has no " in err, err)


def shown(folder, *options, home=None, cwd=None):
    """What ranks find in A to D."""
    out, _ = launch("-n", 1, *options, "--exec", "sh", "-c", 'printf "%s|" "$A" "$B" "$C" "$D"', env=environment(HOME=str(home or folder), A="outer"),
                    cwd=cwd or folder)
    return out.split("|")[:-1]


@case
def files_of_variables(folder):
    home, here = folder / "home", folder / "here"
    home.mkdir(), here.mkdir()
    expect(shown(folder, home=home, cwd=here) == ["outer", "", "", ""], "without files")
    (home / ".deepspeed_env").write_text("# for all\n\nA=1=2==\nB=of home\n   C=last\n")
    expect(shown(folder, home=home, cwd=here) == ["1=2==", "of home", "last", ""], "of home")
    (here / ".deepspeed_env").write_text("B=of \"here\"  \nD=# $A\n")
    expect(shown(folder, home=home, cwd=here) == ["1=2==", "of \"here\"  ", "last", "# $A"], "of both")
    (folder / "env").write_text("C=\r\nB=x\r\n")
    expect(shown(folder, f"--env-file={folder / 'env'}", home=home, cwd=here) == ["outer", "x", "", ""], "of --env-file only")
    _, command = dry("-n", 2, "--transport=mpi", "m.dsp", env=environment(HOME=str(home), NCCL_X="1", PYTHONX="2", UCX_X="3", OTHER="4", DS_NUM_THREADS="3"), cwd=here)
    values = dict(word.split("=", 1) for word in command[:command.index("mpirun")])
    expect(values == {"A": "1=2==", "B": "of \"here\"  ", "C": "last", "D": "# $A", "DS_TRANSPORT": "mpi", "DS_NUM_THREADS": "3"}, f"{values}")
    exported = {after for before, after in zip(command, command[1:]) if before == "-x"}
    expect(exported >= {*values, "NCCL_X", "PYTHONX", "UCX_X"} and not exported & {"OTHER", "PATH", "HOME"}, f"{exported}")
    for text, says in (("A=1\n\nB\n", ":3: found 'B', expected NAME=VALUE"), ("=1\n", ":1: found '=1'"), ("A B=1\n", ":1: found 'A B=1'"),
                       ("A=1\x00\n", ":1: the value of 'A'"), ("DS_WORLD=2\n", ":1: 'DS_WORLD' is set for each rank")):
        (folder / "env").write_text(text)
        _, err = launch("-n", 2, f"--env-file={folder / 'env'}", "--exec", "true", code=1, says=says, env=environment())
        expect(len(err.splitlines()) == 1 and "--env-file" in err, err)
        (here / ".deepspeed_env").write_text(text)
        launch("-n", 2, "--exec", "true", code=1, says=".deepspeed_env" + says, env=environment(HOME=str(folder / "none")), cwd=here)
    launch("-n", 2, "--env-file", folder / "none", "--exec", "true", code=1, says="No such file")
    launch("-n", 2, "--env-file", folder, "--exec", "true", code=1, says="expected a file")
