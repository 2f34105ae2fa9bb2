"""Runs the integration cases of this folder. usage: run.py [--slow | --all | --every-turn] [--stop] [--jobs N] [--profiles FOLDER] [PATTERN...]

Each case compiles models with ds-opt, runs packages with ds-run and checks what comes out. Prints one line per case and
a last line `N passed, N failed, N skipped`. Long cases take turns: without a pattern, each runs with one of two to
twelve seeds (DS_SEED), the longer the fewer, and the line before the last says how many were left to others.
"""
import argparse
import importlib
import math
import multiprocessing.connection
import os
import sys
import tempfile
import time
import traceback
import zlib
from pathlib import Path

import kit
from programs import SEED

SHARE = 1.0  # seconds of a run that a case may take on average
RAREST = 12  # but a case runs with one of so many seeds at least


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


def in_turn(cases):
    """(name, result, text, seconds) of each case."""
    for name, function in cases:
        start = time.time()
        result, text = run(function)
        yield name, result, text, time.time() - start


def beside_each_other(cases, jobs, profiles):
    """The same, each case in a process of its own, as they end."""
    fork, waiting, running = multiprocessing.get_context("fork"), list(cases), {}

    def child(name, function, answer):
        if profiles:
            os.environ["LLVM_PROFILE_FILE"] = str(Path(profiles, name.replace("/", "."), "%1m.profraw"))
        answer.send(run(function))
        answer.close()

    while waiting or running:
        while waiting and len(running) < jobs:
            name, function = waiting.pop(0)
            answer, end = fork.Pipe(duplex=False)
            sys.stdout.flush()
            process = fork.Process(target=child, args=(name, function, end))
            process.start()
            end.close()
            running[answer] = name, process, time.time()
        for answer in multiprocessing.connection.wait(running):
            name, process, start = running.pop(answer)
            try:
                result, text = answer.recv()
            except EOFError:
                process.join()
                result, text = "FAIL", f"its process ended with exit code {process.exitcode}"
            process.join()
            yield name, result, text, time.time() - start


def has_turn(name, seconds):
    """Whether a case runs with this seed: the longer, the fewer seeds, so that none takes more than SHARE seconds of a run on
    average; by its name, so that cases of a file do not come together."""
    turns = min(math.ceil(seconds / SHARE), RAREST) if seconds else 1
    return (SEED + zlib.crc32(name.encode())) % turns == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("patterns", nargs="*", help="run the cases whose name contains one of these")
    parser.add_argument("--slow", action="store_true", help="the slow cases, instead of the others")
    parser.add_argument("--all", action="store_true", help="all cases, slow ones, too")
    parser.add_argument("--every-turn", action="store_true", help="all but slow cases, those that have no turn, too")
    parser.add_argument("--stop", action="store_true", help="end with the first case that fails")
    parser.add_argument("--jobs", type=int, help="cases at the same time (2; slow cases one by one, they tell each other what they found)")
    parser.add_argument("--profiles", metavar="FOLDER", help="where instrumented tools leave what each case executed (FOLDER/file.name)")
    arguments = parser.parse_args()
    here = Path(__file__).parent
    for path in sorted(here.glob("*_cases.py")):
        importlib.import_module(path.stem)
    named = [(f"{function.__module__.removesuffix('_cases')}/{function.__name__}", function, slow, seconds)
             for function, slow, seconds in kit.CASES]
    wanted = [(name, function, slow, seconds) for name, function, slow, seconds in named
              if (any(pattern in name for pattern in arguments.patterns) if arguments.patterns
                  else arguments.all or slow == arguments.slow)]
    whole = arguments.patterns or arguments.all or arguments.slow or arguments.every_turn
    chosen = [(name, function) for name, function, _, seconds in wanted if whole or has_turn(name, seconds)]
    slow = any(slow for _, _, slow, _ in wanted)
    jobs = arguments.jobs or (1 if slow else 2)
    print(f"DS_SEED={SEED}", flush=True)
    count = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    for name, result, text, seconds in (
            in_turn(chosen) if jobs == 1 and not arguments.profiles else beside_each_other(chosen, jobs, arguments.profiles)):
        count[result] += 1
        print(f"{result} {name} ({seconds:.1f} s)" + (f": {text}" if text else ""), flush=True)
        if arguments.stop and result == "FAIL":
            break
    if len(chosen) < len(wanted):
        print(f"{len(wanted) - len(chosen)} long cases have no turn with DS_SEED={SEED}: run.py --every-turn")
    print(f"{count['PASS']} passed, {count['FAIL']} failed, {count['SKIP']} skipped")
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
