"""Ctrl-C while Python waits for the compiler: the compiler ends, what it had begun goes, and KeyboardInterrupt arrives."""
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import deepstride
from support import Case, MODELS

PROGRAM = """
import sys, deepstride
try:
    deepstride.compile(sys.argv[1], "long.dsp", no_cache=True)
    print("compiled")
except KeyboardInterrupt:
    print("interrupted")
"""


def child_of(process):
    """The number of a process's child; None where it has none."""
    try:
        texts = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:  # it, or a thread, has gone
        return None
    numbers = " ".join(texts).split()
    return int(numbers[0]) if numbers else None


def is_running(process):
    """Whether a process is there, but as a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def interrupts_by_default():
    """Tests may run in the background of a shell, which ignores them; what is ignored is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Interrupts(Case):
    def test_says_that_the_compiler_was_ended_by_others(self):
        found = []

        def compiling():
            try:
                deepstride.compile(MODELS / "long.onnx", self.folder / "a.dsp", no_cache=True)
            except deepstride.Error as error:
                found.append(error)

        thread = threading.Thread(target=compiling)
        thread.start()
        while not (compiler := child_of(os.getpid())) and thread.is_alive():
            time.sleep(0.001)
        os.kill(compiler, signal.SIGKILL)
        thread.join(60)
        self.assertIsInstance(found[0], deepstride.CompileError)
        self.assertIn("ended from outside", str(found[0]))

    def test_ends_the_compiler_and_leaves_nothing(self):
        for delay in (0.0, 0.0, 0.0, 0.1, 0.3):
            with self.subTest(delay), subprocess.Popen([sys.executable, "-c", PROGRAM, str(MODELS / "long.onnx")],
                                                       cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                                       text=True, preexec_fn=interrupts_by_default) as python:
                give_up = time.monotonic() + 60
                while not (compiler := child_of(python.pid)) and python.poll() is None and time.monotonic() < give_up:
                    time.sleep(0.001)
                self.assertIsNotNone(compiler)
                time.sleep(delay)  # none: Python may not even know yet that it has a child
                os.kill(python.pid, signal.SIGINT)  # of Python alone: that of a terminal would reach both
                out, _ = python.communicate(timeout=60)
                self.assertEqual((out, python.returncode), ("interrupted\n", 0))
                self.assertFalse(is_running(compiler))
                self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
