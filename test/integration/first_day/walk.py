"""Walks of new users: a text of commands and of what each prints, from an empty folder on.

    ## What the user wants.
    $ ds-opt model.onnx -o model.dsp
    ds-opt: error: model.onnx: No such file or directory
    [1]

Standard error follows standard output; `[N]` is an exit code that is not 0. Numbers with a unit of time or rate become `#`, and so do all numbers of a command that
begins with `$~`, whose lines are those of the machine; `$-` drops the output. Commands are bash, with our tools, `python` and `make-model` on the PATH.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
UNITS = re.compile(rf"{NUMBER}( ?(?:ns|us|µs|ms|s|seconds|GB/s|GFLOP/s|Gbit/s|calls/s))(?![\w/])")


def parse(text):
    """[comment lines, marker, command, expected lines]"""
    steps, comment = [], []
    for line in text.splitlines():
        found = re.match(r"\$([~-]?) (.*)", line)
        if found:
            steps.append([comment, found[1], found[2], []])
            comment = []
        elif line.startswith("## "):
            comment.append(line)
        elif steps and not comment:
            steps[-1][3].append(line)
    for step in steps:
        while step[3] and not step[3][-1]:
            step[3].pop()
    return steps


def normal(text, folder, marker):
    text = text.replace(str(folder), "FOLDER").replace(str(HERE), "HERE")
    lines = [line.rstrip() for line in text.replace("\r", "").splitlines()]
    if marker == "-":
        return []
    lines = [re.sub(r"sha256:[0-9a-f]+", "sha256:#", line) for line in lines]
    if marker == "~":
        lines = [re.sub(r" +", " ", re.sub(rf"(?<![\w]){NUMBER}", "#", line)) for line in lines]
    else:
        lines = [UNITS.sub(r"#\1", line) for line in lines]
    return [re.sub(r"^(ceilings: .* f32 # GFLOP/s), .*", r"\1", line) for line in lines]  # what else there is, is the processor's


def environment(folder, bin_folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DS_") or name == "DS_CACHE_TEST"}
    path = [str(bin_folder), str(HERE), str(Path(sys.executable).parent), kept.get("PATH", "")]
    return kept | {"PATH": ":".join(path), "DS_CACHE": str(folder.parent / "cache"), "HOME": str(folder.parent), "DS_NUM_THREADS": "2", "COLUMNS": "120",
                   "LC_ALL": "C.UTF-8"}


def walk(path, bin_folder, patience=120):
    """What the walk prints now: the same text where nothing has changed."""
    text = []
    with tempfile.TemporaryDirectory(prefix="walk-") as parent:
        folder = Path(parent) / "empty"
        folder.mkdir()
        for comment, marker, command, _ in parse(path.read_text()):
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment(folder, bin_folder), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=patience)
            lines = normal(done.stdout + done.stderr, folder, marker)
            text += ["", *comment] if comment else [""]
            text += [f"${marker} {command}", *lines] + ([f"[{done.returncode}]"] if done.returncode else [])
    return "\n".join(text).lstrip("\n") + "\n"


def main():
    """usage: walk.py BIN [--update] [WALK...]"""
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    walks = [Path(name) for name in arguments[1:]] or sorted(HERE.glob("*.walk"))
    for path in walks:
        found = walk(path, Path(arguments[0]).resolve())
        if found != path.read_text():
            print(f"{path.name} has changed" + (", written" if "--update" in sys.argv else ""))
            if "--update" in sys.argv:
                path.write_text(found)
            else:
                print(found)


if __name__ == "__main__":
    main()
