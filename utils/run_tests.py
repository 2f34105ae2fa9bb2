"""Second half of utils/test: the build and each kind of test as a step that counts what passed, failed, was skipped."""
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
REPORTS = BUILD / "reports"
SECONDS = 240  # a program of unit tests may take: four times what the longest takes alone
FUZZED = (["wire"], ["config"], ["hostfile"], ["npy", "npz", "tensor", "package"], ["safetensors", "data", "checkpoint"])
TAIL = 60  # lines of a failing step's output, or of one test's, that are shown
failures = []  # what was shown of failures: said again at the end, since logs are often kept from their ends


def run(*command, show=False, log_name="last.log"):
    """Runs a command with its output in a log; returns (exit code, output)."""
    with open(REPORTS / log_name, "w+") as log:
        process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        for line in process.stdout:
            log.write(line)
            if show:
                print("   " + line, end="", flush=True)
        code = process.wait()
        log.seek(0)
        return code, log.read()


def seed_of_tree():
    """What random tests start from: each commit draws anew, and the same wherever it is tested; changed files draw freely."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    commit = git("rev-parse", "HEAD")
    return int(commit[:8], 16) if commit and not git("status", "--porcelain") else int.from_bytes(os.urandom(4), "big")


def tail(output):
    text = "\n".join("   " + line for line in output.splitlines()[-TAIL:])
    print(text)
    failures.append(text)


def one(code, output):
    """A command that counts as one test."""
    if code:
        tail(output)
    return (0, 1, 0) if code else (1, 0, 0)


def closing_line(code, output, show=True):
    """A command that counts itself, in the form of our own last line."""
    found = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", output, re.M)
    if not found or (code and found[-1][1] == "0"):
        tail(output)
        return 0, 1, 0
    if code and show:
        tail(output)
    elif code:
        failures.extend(re.findall(r"^FAIL .*?(?=^(?:PASS|SKIP|FAIL) |^\d+ (?:passed|long cases))", output, re.M | re.S))
    return tuple(map(int, found[-1]))


def junit(code, output, paths):
    """A command that wrote JUnit reports."""
    cases = [case for path in paths for case in ElementTree.parse(path).getroot().iter("testcase")]
    faults = [(case, part) for case in cases for part in case if part.tag in ("failure", "error")]
    failed = len({id(case) for case, _ in faults})
    skipped = sum(any(part.tag == "skipped" for part in case) or case.get("status") == "notrun" for case in cases)
    for case, fault in faults:
        tail(f"{case.get('classname')}.{case.get('name')}\n{fault.text or fault.get('message')}")
    if code or not cases:  # its own last lines name programs that crashed or ran out of time
        tail(output if not faults else "\n".join(output.splitlines()[-12:]))
        failed = max(failed, 1)
    return max(len(cases) - failed - skipped, 0), failed, skipped


def build():
    code, output = run("ninja", "-C", BUILD)
    return one(code, output)


def unit():
    folder = REPORTS / "unit"
    shutil.rmtree(folder, ignore_errors=True)
    os.environ["GTEST_OUTPUT"] = f"xml:{folder}/"
    code, output = run("ctest", "--test-dir", BUILD, "--output-on-failure", "--timeout", SECONDS, "-j2")
    return junit(code, output, sorted(folder.glob("*.xml")))


def lit():
    path = REPORTS / "lit.xml"
    path.unlink(missing_ok=True)
    code, output = run("/usr/bin/lit-22", "-v", "-j2", "--xunit-xml-output", path, BUILD / "test")
    failures = "\n".join(line for line in output.splitlines() if not re.match(r"(PASS|UNSUPPORTED): ", line))
    return junit(code, failures, [path] if path.exists() else [])


def layout():
    def tested(path):
        code, output = run(sys.executable, path, log_name=path.stem + ".log")
        count = re.search(r"^Ran (\d+) tests?", output, re.M)
        return (int(count.group(1)), 0, 0) if code == 0 and count else one(1, output)
    with ThreadPoolExecutor(2) as pool:
        counts = [one(*run(ROOT / "utils/check-layout")), *pool.map(tested, sorted((ROOT / "test/utils").glob("*_test.py")))]
    return tuple(map(sum, zip(*counts)))


def formatting():
    names = subprocess.run(["git", "ls-files", "*.cpp", "*.h", "*.hpp", "*.c"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    code, output = run("clang-format-22", "--dry-run", "--Werror", *names)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error: code should be clang-formatted", output, re.M)))
    return one(code, "repair with: clang-format-22 -i " + " ".join(wrong) if wrong else output)


def docs():
    script = ROOT / "utils/gen-docs"
    return one(*run(script, "--check")) if script.exists() else (0, 0, 1)


def integration():
    return closing_line(*run(sys.executable, "-u", ROOT / "test/integration/run.py", show=True), show=False)


def conformance():
    return closing_line(*run(ROOT / "utils/conformance", "--subset", ROOT / "test/integration/conformance-subset.txt"))


def wheel():
    return closing_line(*run(sys.executable, ROOT / "test/python/run.py"))


def fuzz():
    # Building for the sanitizers takes minutes, fuzzing seconds: a third of the seeds have one group of targets each.
    turn, others = divmod(int(os.environ["DS_SEED"]), 3)
    if others:
        print("   no turn with this seed: utils/fuzz")
        return 0, 0, 1
    targets = FUZZED[turn % len(FUZZED)]
    return closing_line(*run(ROOT / "utils/fuzz", *targets, "--seconds", "20", "--jobs", "2", "--seed", "1", show=True), show=False)


STEPS = [("build", build, "build everything"), ("layout", layout, "rules of the tree"),
         ("format", formatting, "clang-format"), ("unit", unit, "unit tests"), ("lit", lit, "lit tests"),
         ("docs", docs, "generated documents are up to date"),
         ("integration", integration, "models, files and command lines, end to end"),
         ("conformance", conformance, "a fixed part of ONNX's own test suite"),
         ("wheel", wheel, "the Python package, from its wheel in an environment of its own"),
         ("fuzz", fuzz, "twenty seconds of some fuzz targets, with sanitizers, where they have a turn")]


def main():
    wanted = sys.argv[1:]
    if wanted == ["--list"]:
        print("\n".join(f"{name:12} {what}" for name, _, what in STEPS))
        return 0
    unknown = set(wanted) - {name for name, _, _ in STEPS}
    if unknown:
        print(f"utils/test: no step {', '.join(sorted(unknown))}; utils/test --list names the steps")
        return 2
    REPORTS.mkdir(parents=True, exist_ok=True)
    os.environ["DS_CACHE"] = ""  # a package of yesterday must not hide a fault
    seed = os.environ.setdefault("DS_SEED", str(seed_of_tree()))
    print(f"random tests start from DS_SEED={seed}", flush=True)
    total = [0, 0, 0]
    for name, step, what in STEPS:
        if wanted and name not in wanted:
            continue
        print(f"== {name}: {what}", flush=True)
        start = time.time()
        counts = step()
        total = list(map(sum, zip(total, counts)))
        print(f"   {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped in {time.time() - start:.0f} s", flush=True)
        if name == "build" and counts[1]:
            break  # nothing after it could tell more
    if failures:
        print("== what failed, once more", *failures, sep="\n")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["PYTHONHASHSEED"] = "0"  # the order of sets must not change what is drawn
    sys.exit(main())
