"""utils/conformance tells passing, diagnosed, wrong, crashed and hanging cases apart; the tools are stand-ins here."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "utils/conformance"
COMPILES = "exit 0"
AGREES = "echo 'y: max abs 0, max rel 0, max ulp 3: ok'"


class Conformance(unittest.TestCase):
    def classify(self, ds_opt, ds_run, *options):
        with tempfile.TemporaryDirectory() as folder:
            for name, body in (("ds-opt", ds_opt), ("ds-run", ds_run)):
                path = Path(folder, name)
                path.write_text(f"#!/bin/sh\n{body}\n")
                path.chmod(0o755)
            done = subprocess.run([TOOL, "--filter", "^node/test_add$", "--timeout=1", *options], capture_output=True,
                                  text=True, env={**os.environ, "DS_BIN": folder})
            return done.returncode, done.stdout

    def expect(self, code, text, *tools):
        found, output = self.classify(*tools)
        self.assertEqual(found, code, output)
        self.assertIn(text, output)

    def test_pass(self):
        self.expect(0, "pass node/test_add 3", COMPILES, AGREES)

    def test_diagnosed_by_the_compiler(self):
        self.expect(0, "diagnosed node/test_add  no such thing", "echo 'a.onnx:1: error: no such thing' >&2; exit 1", AGREES)

    def test_diagnosed_by_the_runtime(self):
        self.expect(0, "diagnosed node/test_add  no", COMPILES, "echo 'ds-run: error: no' >&2; exit 1")

    def test_wrong_numbers(self):
        self.expect(1, "wrong node/test_add  y: max abs 1: 1 of 2 outside", COMPILES,
                    "echo 'y: max abs 1: 1 of 2 outside'; exit 1")

    def test_failure_without_a_message(self):
        self.expect(1, "crashed node/test_add  ds-opt: exit code 1 without a message", "exit 1", AGREES)

    def test_internal_error(self):
        self.expect(1, "crashed node/test_add  ds-opt: exit code 3: error: bug", "echo 'error: bug' >&2; exit 3", AGREES)

    def test_signal(self):
        self.expect(1, "crashed node/test_add  ds-run: exit code", COMPILES, "kill -SEGV $$")

    def test_hang(self):
        self.expect(1, "crashed node/test_add  ds-run: still running after 1 s", COMPILES, "exec sleep 30")

    def test_subset_must_pass(self):
        with tempfile.NamedTemporaryFile("w+") as subset:
            subset.write("node/test_add  # why\n\nnode/test_sub\n")
            subset.flush()
            code, output = self.classify("echo 'error: no' >&2; exit 1", AGREES, "--subset", subset.name)
            self.assertEqual((code, output.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"), output)


if __name__ == "__main__":
    unittest.main()
