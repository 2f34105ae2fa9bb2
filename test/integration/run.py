"""Runs the integration cases of this folder. usage: run.py [--slow | --all] [--stop] [PATTERN...]

Each case compiles models with ds-opt, runs packages with ds-run and checks what comes out. Prints one line per case and
a last line `N passed, N failed, N skipped`.
"""
import argparse
import importlib
import sys
import tempfile
import time
import traceback
from pathlib import Path

import kit


def run(function):
    with tempfile.TemporaryDirectory(prefix="ds-") as folder:
        try:
            function(Path(folder))
            return "PASS", ""
        except kit.Skip as reason:
            return "SKIP", str(reason)
        except AssertionError as error:
            return "FAIL", str(error)
        except Exception:
            return "FAIL", traceback.format_exc()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("patterns", nargs="*", help="run the cases whose name contains one of these")
    parser.add_argument("--slow", action="store_true", help="the slow cases, instead of the others")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--stop", action="store_true", help="end with the first case that fails")
    arguments = parser.parse_args()
    here = Path(__file__).parent
    for path in sorted(here.glob("*_cases.py")):
        importlib.import_module(path.stem)
    count = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    for function, slow in kit.CASES:
        name = f"{function.__module__.removesuffix('_cases')}/{function.__name__}"
        if arguments.patterns:
            if not any(pattern in name for pattern in arguments.patterns):
                continue
        elif not arguments.all and slow != arguments.slow:
            continue
        start = time.time()
        result, text = run(function)
        count[result] += 1
        print(f"{result} {name} ({time.time() - start:.1f} s)" + (f": {text}" if text else ""), flush=True)
        if arguments.stop and result == "FAIL":
            break
    print(f"{count['PASS']} passed, {count['FAIL']} failed, {count['SKIP']} skipped")
    return 1 if count["FAIL"] else 0


sys.exit(main())
