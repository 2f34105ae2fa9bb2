"""What shells and man are told of ds-run's and ds-opt's command lines: a shell completes with it, and groff reads it."""
import re
import shutil
import subprocess

from kit import Skip, case, expect, tool

TOOLS = ("ds-run", "ds-opt")


def options_of(help_text):
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]+", help_text))


def complete(script, name, *words):
    """The words that bash offers for the last one, which is split at '=' as bash does it."""
    split = [part for word in words for part in re.findall(r"=|[^=]+|^$", word)]
    if words[-1].endswith("="):  # the cursor is behind the sign
        split = split[:-1] + ["="]
    program = (f"source {script}; COMP_WORDS=({name} {' '.join(repr(word) for word in split)}); COMP_CWORD={len(split)}; "
               f"_{name.replace('-', '_')} {name} {split[-1]!r} \"${{COMP_WORDS[COMP_CWORD-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "--norc", "-c", program], cwd=script.parent, capture_output=True, text=True, timeout=30)
    expect(done.returncode == 0 and not done.stderr, f"{words}: {done}")
    return {word for word in done.stdout.split("\n") if word}


@case
def bash_completes(folder):
    for name in TOOLS:
        (folder / name).write_text(tool(name, "--completion", "bash").out)
    (folder / "my model.dsp").mkdir()

    def run(*words):
        return complete(folder / "ds-run", "ds-run", *words)

    def opt(*words):
        return complete(folder / "ds-opt", "ds-opt", *words)

    expect({"bench", "compare", "inspect", "profile", "probe", "train", "checkpoint"} <= run(""), f"{run('')}")
    expect(run("ben") == {"bench"} and run("pro") == {"probe", "profile"}, f"{run('pro')}")
    expect("inspect" not in run("bench", ""), "a command behind a command")
    expect(run("bench", "--iter") == {"--iterations="} and run("inspect", "--iter") == set(), "options of their command")
    expect(run("bench", "--no-v") == {"--no-verify"}, "a flag has no value")
    expect(run("--transport=t") == {"tcp", "threads"} == run("--transport", "t"), f"{run('--transport=t')}")
    expect(run("--transport=") == {"shm", "tcp", "mpi", "threads"} == run("--transport", ""), f"{run('--transport=')}")
    expect(run("train", "--shuffle", "o") == {"on", "off"}, f"{run('train', '--shuffle', 'o')}")
    expect(run("bench", f"{folder}/my") == {f"{folder}/my model.dsp"}, "a name with a blank")
    expect(run("bench", "--json", f"{folder}/my") == {f"{folder}/my model.dsp"}, "a file")
    expect(run("bench", "--dim", "") == set(), "what only the user knows")
    expect(opt("--fusion=") == {"none", "generic", "specialized"} and opt("--fusion", "g") == {"generic"}, f"{opt('--fusion=')}")
    expect(opt("--stop-after=") == {"import", "graph", "training", "distribution", "optimization", "memory", "codegen"}, "phases")
    # Each option that the help has, and no other.
    for name in TOOLS:
        told = {word.rstrip("=") for word in complete(folder / name, name, "--")}
        expect(told == options_of(tool(name, "--help").out) & told and len(told) > 10, f"{name}: {told}")
    for command in ("bench", "compare", "profile", "train"):
        told = {word.rstrip("=") for word in run(command, "--")}
        missing = {line.split()[0].split(",")[-1].split("{")[0] for line in tool("ds-run", command, "--help").out.splitlines() if re.match(r"  (-\w,)?--\w", line)} - told
        expect(not missing, f"{command}: {missing}")


@case
def manual_pages_are_read_without_a_warning(folder):
    if not shutil.which("groff"):
        raise Skip("there is no groff here")
    for name in TOOLS:
        page = tool(name, "--man-page").out
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou"], input=page, capture_output=True, text=True, timeout=30)
        expect(done.returncode == 0 and not done.stderr, f"{name}: {done.stderr}")
        told = {option.rstrip("=") for option in options_of(done.stdout.replace("\u2010\n", ""))}
        missing = options_of(tool(name, "--help").out) - told - {"--help-hidden"}
        expect(not {option for option in missing if option in page}, f"{name}: {missing}")
        for section in ("NAME", "SYNOPSIS", "OPTIONS", "NOTES"):
            expect(f"\n{section}\n" in done.stdout, f"{name}: no section {section}")


@case
def zsh_reads_its_completion(folder):
    if not shutil.which("zsh"):
        raise Skip("there is no zsh here")
    for name in TOOLS:
        script = folder / f"_{name}"
        script.write_text(tool(name, "--completion", "zsh").out)
        program = (f"autoload -Uz compinit; compinit -D -d {folder}/dump; source {script}; print -r -- ${{_comps[{name}]}}")
        done = subprocess.run(["zsh", "-f", "-c", program], capture_output=True, text=True, timeout=60)
        expect(done.returncode == 0 and not done.stderr and done.stdout == f"_{name.replace('-', '_')}\n", f"{name}: {done}")
