"""Which tests execute which lines of the compiler: what utils/check-mutants runs on a mutant.

A build with clang's source coverage in the mutated folders runs every test apart. What is measured is kept in a file,
test after test; when sources have changed since then, it is carried over to the lines as they are now.
"""
import difflib
import hashlib
import json
import re
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutant_tree import run

BATCH = 16
TOOLS = ("llvm-profdata-22", "llvm-cov-22")
CASE = re.compile(r"^@case\ndef (\w+)", re.M)
LIT = "/usr/bin/lit-22"
LIT_LEFT_OUT = ("test/docs/writing-a-pass",)  # compiles a pass for half a minute


def parse(lcov, root):
    """{path below root: {line: how often}} of the lines that hold code."""
    files, lines = {}, {}
    for record in lcov.splitlines():
        if record.startswith("SF:"):
            name = record[3:]
            lines = files.setdefault(name[len(f"{root}/"):], {}) if name.startswith(f"{root}/") else {}
        elif record.startswith("DA:"):
            number, count = record[3:].split(",")[:2]
            lines[int(number)] = int(count)
    return files


def carried(before, after, lines):
    """Line numbers of one text as those of another: where lines were replaced, one of them stands for all."""
    result, lines = set(), set(lines)
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes():
        here = [line for line in range(a + 1, b + 1) if line in lines]
        if tag == "equal":
            result.update(line - a + c for line in here)
        elif here:
            result.update(range(c + 1, d + 1))
    return sorted(result)


def ranges(lines):
    """[[first, last], ...]"""
    result = []
    for line in sorted(lines):
        if result and result[-1][1] == line - 1:
            result[-1][1] = line
        else:
            result.append([line, line])
    return result


def lines_of(spans):
    return [line for first, last in spans for line in range(first, last + 1)]


class Reach:
    """What is known: tests, as kind/name, with the time that each took and the lines that it executed."""

    def __init__(self, path):
        self.path = path
        known = json.loads(path.read_text()) if path.exists() else {}
        self.sources = known.get("sources", {})  # path -> the text that the lines are numbered in
        self.code = known.get("code", {})  # path -> the lines that hold code
        self.tests = known.get("tests", {})  # name -> {"seconds", "text": digest of its file, "lines": {path: ranges}}

    def save(self):
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"sources": self.sources, "code": self.code, "tests": self.tests}))
        part.rename(self.path)

    def follow(self, sources):
        """Carries what is known over to these sources."""
        for path, text in sources.items():
            before = self.sources.get(path, text)
            if before != text:
                for lines in [self.code, *(test["lines"] for test in self.tests.values())]:
                    if path in lines:
                        lines[path] = ranges(carried(before, text, lines_of(lines[path])))
        self.sources = dict(sources)

    def tests_of(self, mutant, source):
        """The tests that execute a line of the mutant, the fast ones that execute little else first; of a line without
        code those of the file."""
        last = source.count("\n", 0, mutant.end) + 1
        lines = {line for line in lines_of(self.code.get(mutant.path, [])) if mutant.line <= line <= last}
        within = lambda spans: any(first <= line <= end for first, end in spans for line in lines) if lines else bool(spans)
        names = [name for name, test in self.tests.items() if within(test["lines"].get(mutant.path, []))]
        return sorted(names, key=lambda name: (self.cost(name), name))

    def cost(self, name):
        test = self.tests[name]
        return test["seconds"] * sum(last - first + 1 for spans in test["lines"].values() for first, last in spans)


def tests_in(tree):
    """{kind/name: digest of the text that it is in} of the tests of a tree."""
    digest = lambda text: hashlib.sha256(text).hexdigest()[:8]
    folder, found = tree.path / "test", {}
    units = b"".join(path.read_bytes() for path in sorted((folder / "unit").rglob("*")) if path.is_file())
    found.update({f"unit/{name}": digest(units) for name in tree.units()})
    # As test/lit.cfg.py says.
    for path in sorted(path for suffix in ("mlir", "onnxtext", "test") for path in folder.rglob(f"*.{suffix}")):
        name = path.relative_to(tree.path).as_posix()
        if not re.search("/(Inputs|unit|integration)/", name) and not name.startswith(LIT_LEFT_OUT):
            found[f"lit/{name[len('test/'):]}"] = digest(path.read_bytes())
    for path in sorted((folder / "integration").glob("*_cases.py")):
        for name in CASE.findall(path.read_text()):
            found[f"integration/{path.stem.removesuffix('_cases')}/{name}"] = digest(path.read_bytes())
    return found


class Measurement:
    """Runs the tests of an instrumented tree that are new or changed since they were measured."""

    def __init__(self, tree, reach, folders, python):
        self.tree, self.reach, self.folders, self.python = tree, reach, folders, python
        self.failed = []

    def run(self):
        """Returns the tests that fail."""
        texts = tests_in(self.tree)
        for name in [name for name in self.reach.tests if name not in texts]:
            del self.reach.tests[name]
        due = [name for name, text in texts.items() if self.reach.tests.get(name, {}).get("text") != text]
        for start in range(0, len(due), BATCH):
            batch = due[start:start + BATCH]
            print(f"measuring what tests execute: {start} of {len(due)}", flush=True)
            with tempfile.TemporaryDirectory(prefix="ds-") as profiles, ThreadPoolExecutor(2) as pool:
                seconds = self.cases([name for name in batch if name.startswith("integration/")], profiles)
                others = [name for name in batch if not name.startswith("integration/")]
                seconds.update(zip(others, pool.map(lambda name: self.other(name, profiles), others)))
                for name, files in zip(batch, pool.map(lambda name: self.executed(name, profiles), batch)):
                    self.note(name, texts[name], seconds.get(name), files)
            self.reach.save()
        return self.failed

    def note(self, name, text, seconds, files):
        if seconds is None:
            self.failed.append(name)
            return
        for path, lines in files.items():
            code = lines_of(self.reach.code.get(path, []))
            self.reach.code[path] = ranges({*code, *lines})
        executed = {path: ranges(line for line, count in lines.items() if count) for path, lines in files.items()}
        self.reach.tests[name] = {"seconds": seconds, "text": text, "lines": {path: spans for path, spans in executed.items() if spans}}

    def cases(self, names, profiles):
        """{name: seconds} of the integration cases that do not fail."""
        if not names:
            return {}
        patterns = [name.removeprefix("integration/") for name in names]
        _, output = self.tree.run([self.python, "-u", "test/integration/run.py", "--jobs", "2", "--profiles", profiles, *patterns], 3600)
        found = re.findall(r"^(?:PASS|SKIP) (\S+) \(([\d.]+) s\)", output, re.M)
        return {f"integration/{name}": float(seconds) for name, seconds in found if name in patterns}

    def other(self, name, profiles):
        """The seconds of a unit or lit test, None when it fails."""
        kind, place = name.split("/", 1)
        build = self.tree.place / "build"
        command = [build / "bin" / place] if kind == "unit" else [LIT, build / "test" / place]
        start = time.time()
        code, _ = self.tree.run(command, 600, {"LLVM_PROFILE_FILE": f"{self.folder(name, profiles)}/%1m.profraw"})
        return round(time.time() - start, 1) if code == 0 else None

    def folder(self, name, profiles):
        kind, place = name.split("/", 1)
        return Path(profiles, place.replace("/", "."))

    def executed(self, name, profiles):
        """What the test left, as `parse` gives it; its profiles are removed."""
        folder = self.folder(name, profiles)
        raw = list(folder.glob("*.profraw"))
        if not raw:
            return {}
        binary = self.tree.build / "bin" / (name.split("/")[1] if name.startswith("unit/") else "ds-opt")
        merged = folder / "merged"
        run([TOOLS[0], "merge", "--sparse", "--failure-mode=all", "-o", merged, *raw], 300)
        code, output = run([TOOLS[1], "export", "--format=lcov", f"--instr-profile={merged}", binary,
                            "--sources", *(self.tree.place / folder for folder in self.folders)], 300)
        shutil.rmtree(folder)
        if code != 0:
            raise OSError(f"{TOOLS[1]}: {output[-1000:]}")
        return parse(output, self.tree.place)
