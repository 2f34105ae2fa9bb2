#!/usr/bin/env python3
"""Builds the wheels from build/ and runs the tests of this folder in an environment that has one of them and NumPy only.

usage: build/venv/bin/python test/python/run.py [TEST...]     such as model_test.Calls
Ends in the line `N passed, N failed, N skipped`.
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build/wheel"


def run(*command, **keywords):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **keywords)
    return done.returncode, done.stdout


def require(*command):
    code, out = run(*command)
    if code:
        print(out + "\n0 passed, 1 failed, 0 skipped")
        raise SystemExit(1)


def environment(project):
    """A new Python environment with the NumPy of ours, and a wheel as pip installs it."""
    venv = WORK / f"venv-{project}"
    shutil.rmtree(venv, ignore_errors=True)
    require(sys.executable, "-m", "venv", "--without-pip", venv)
    ours, theirs = (Path(prefix) / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
                    for prefix in (sys.prefix, venv))
    for part in ours.glob("numpy*"):
        (theirs / part.name).symlink_to(part)
    wheel, = WORK.glob(f"{project.replace('-', '_')}-[0-9]*.whl")
    require(Path(sys.prefix) / "bin/pip", "--disable-pip-version-check", "--python", venv / "bin/python", "install", "--quiet",
            "--no-index", "--no-compile", wheel)
    return venv / "bin/python"


def count(code, out):
    ran = re.search(r"^Ran (\d+) tests?", out, re.M)
    if not ran:
        return 0, 1, 0
    numbers = {name: sum(map(int, re.findall(rf"\b{name}=(\d+)", out))) for name in ("failures", "errors", "skipped")}
    failed = max(numbers["failures"] + numbers["errors"], int(bool(code)))
    return max(int(ran[1]) - failed - numbers["skipped"], 0), failed, numbers["skipped"]


def main():
    models = WORK / "models"
    models.mkdir(parents=True, exist_ok=True)
    require(sys.executable, HERE / "make_models.py", models)
    for old in WORK.glob("*.whl"):
        old.unlink()
    require(ROOT / "utils/wheel", "--build-dir", ROOT / "build", "--compression", "0")
    # Nothing of this process's environment: what is not in the wheel must not be found by chance.
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(WORK / "home"), "DS_CACHE": "", "DS_TEST_MODELS": str(models),
             "DS_TEST_ROOT": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "DS_SEED": os.environ.get("DS_SEED", "1")}
    total = [0, 0, 0]
    wanted, pythons = sys.argv[1:], {}
    # ml_dtypes, which is no requirement, for the tests about it.
    extra = WORK / "extra"
    extra.mkdir(exist_ok=True)
    shutil.copytree(importlib.util.find_spec("ml_dtypes").submodule_search_locations[0], extra / "ml_dtypes", dirs_exist_ok=True)
    special = {"runtime_test", "types_test"}
    for project, tests, places in (
            ("deepstride", sorted({path.stem for path in HERE.glob("*_test.py")} - special), {}),
            ("deepstride", ["types_test"], {"PYTHONPATH": str(extra)}), ("deepstride-runtime", ["runtime_test"], {})):
        tests = [name for name in wanted if name.split(".")[0] in tests] if wanted else tests
        if not tests:
            continue
        if project not in pythons:
            pythons[project] = environment(project)
        code, out = run(pythons[project], "-m", "unittest", *tests, cwd=HERE, env={**clean, **places})
        if code:
            print(out)
        total = [a + b for a, b in zip(total, count(code, out))]
    print("{} passed, {} failed, {} skipped".format(*total))
    return int(total[1] > 0)


if __name__ == "__main__":
    sys.exit(main())
