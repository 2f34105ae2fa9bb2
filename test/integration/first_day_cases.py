"""The first day of new users: walks through our tools with right and wrong commands, each from an empty folder, beside what they printed when they were read last."""
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

from kit import BIN, ROOT, case, expect

sys.path.insert(0, str(Path(__file__).with_name("first_day")))
import walk as walks  # noqa: E402

FOLDER = Path(__file__).with_name("first_day")


def check(path):
    """Goldens are read by people before they are committed: DS_UPDATE=1 writes what is printed now."""
    expected, found = path.read_text(), walks.walk(path, BIN)
    if os.environ.get("DS_UPDATE") and found != expected:
        path.write_text(found)
        expected = found
    steps = walks.parse(expected)
    expect(len(steps) >= 8, f"{path.name}: {len(steps)} commands, expected 8 or more")
    expect(any(step[3] and step[3][-1].startswith("[") for step in steps), f"{path.name}: every command is right")
    expect(found == expected, "\n".join(difflib.unified_diff(expected.splitlines(), found.splitlines(), path.name, "printed now", lineterm="", n=2)))


def register(path):
    def walk(folder):
        check(path)
    walk.__name__ = path.stem.split("-", 1)[1].replace("-", "_")
    walk.__module__ = __name__
    return case(seconds=9)(walk)


WALKS = [register(path) for path in sorted(FOLDER.glob("*.walk"))]


@case(seconds=6)
def coming_from(folder):
    """Each command of docs/coming-from.md, those of ours, in the order of the page."""
    page = (ROOT / "docs/coming-from.md").read_text()
    commands = [text for row in page.splitlines() if row.startswith("| ") for text in re.findall(r"`((?:DS_\w+=\S+ )?ds-(?:opt|run) [^`]*)`", row.split(" | ", 1)[1])]
    expect(len(commands) > 50, f"{len(commands)} commands")
    prepare = "make-model mlp model.onnx && make-model data x.npz x=float32:4,8 && " \
        "python -c \"import numpy, onnxruntime; s = onnxruntime.InferenceSession('model.onnx'); numpy.savez('y.npz', logits=s.run(None, dict(numpy.load('x.npz')))[0])\""
    place = folder / "empty"
    place.mkdir()
    done = set()
    for command in [prepare, *commands]:
        if command in done:
            continue
        done.add(command)
        result = subprocess.run(["bash", "-c", command], cwd=place, env=walks.environment(place, BIN), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        expect(result.returncode == 0, f"{command}\nexit code {result.returncode}: {result.stderr}")
