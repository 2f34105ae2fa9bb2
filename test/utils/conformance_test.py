"""utils/conformance tells passing, diagnosed, wrong, crashed and hanging cases apart, and from what the table says; the
tools and the table are stand-ins here."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOOL = Path(__file__).resolve().parents[2] / "utils/conformance"
VENV = TOOL.parents[1] / "build/venv"
if Path(sys.prefix) != VENV and (VENV / "bin/python").exists():
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])
import numpy as np

HEADER = "case\toperator\tstatus\tmax_ulp\tdetail\n"
COMPILES = "exit 0"
AGREES = "echo 'y: max abs 0, max rel 0, max ulp 3: ok'"


class Conformance(unittest.TestCase):
    def classify(self, ds_opt, ds_run, *options, row=None):
        with tempfile.TemporaryDirectory() as folder:
            if row:
                Path(folder, "conformance.tsv").write_text(f"{HEADER}node/test_add\tAdd\t{row}\t\twhy\n"
                                                           "node/test_sub\tSub\tpass\t0\t\n")
            for name, body in (("ds-opt", ds_opt), ("ds-run", ds_run)):
                path = Path(folder, name)
                path.write_text(f"#!/bin/sh\n{body}\n")
                path.chmod(0o755)
            done = subprocess.run([TOOL, "--filter", "^node/test_add$", "--timeout=1", "--docs", folder, *options],
                                  capture_output=True, text=True, env={**os.environ, "DS_BIN": folder})
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

    def test_worse_than_the_table(self):
        refuses, differs = "echo 'error: no' >&2; exit 1", "echo 'y: max abs 1: 1 of 2 outside'; exit 1"
        for row, opt, run, code, text in (
                ("pass", refuses, AGREES, 1, "worse: node/test_add: pass in the table, diagnosed now: no"),
                ("diagnosed", COMPILES, differs, 1, "worse: node/test_add: diagnosed in the table, wrong now"),
                ("wrong", "kill -SEGV $$", AGREES, 1, "worse: node/test_add: wrong in the table, crashed now"),
                ("diagnosed", COMPILES, AGREES, 0, "better: node/test_add: diagnosed in the table, pass now"),
                ("crashed", refuses, AGREES, 0, "better: node/test_add: crashed in the table, diagnosed now"),
                ("pass", COMPILES, AGREES, 0, "0 worse and 0 better"), ("diagnosed", refuses, AGREES, 0, "0 worse and 0 better")):
            found, output = self.classify(opt, run, row=row)
            self.assertEqual(found, code, output)
            self.assertIn(text, output)
            self.assertNotIn("test_sub", output)  # which the filter leaves out

    def test_accepted(self):
        code, output = self.classify("echo 'error: no' >&2; exit 1", AGREES, "--accept-worse", "node/test_add", row="pass")
        self.assertEqual(code, 0, output)
        self.assertIn("accepted: node/test_add", output)
        code, output = self.classify(COMPILES, AGREES, "--accept-worse", "node/test_add", row="pass")
        self.assertEqual(code, 1, output)
        self.assertIn("--accept-worse: not worse than the table: node/test_add", output)


def load():
    loader = importlib.machinery.SourceFileLoader("conformance", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("conformance", loader))
    loader.exec_module(module)
    return module


class Drawn(unittest.TestCase):
    """Cases of random numbers, with copies of their data: honest draws pass, planted ones do not."""

    def honest(self, name, inputs):
        x = inputs[0]
        if "bernoulli" in name:
            return ((self.random.random(x.shape) < (1 - x if "expanded" in name else x)),)
        kept = self.random.random(x.shape) >= inputs[1]
        return np.where(kept, x / (1 - inputs[1]), 0), kept

    def test_planted_draws(self):
        module = load()
        drawn, seed = module.drawn, int(os.environ.get("DS_SEED", np.random.SeedSequence().entropy % (1 << 32)))
        self.random, names = np.random.default_rng(seed), 0
        for name, (model, data) in module.suite().items():
            if not drawn.check_of(name):
                continue
            names += 1
            with tempfile.TemporaryDirectory() as folder:
                wide, data_set = drawn.enlarged(model, data[0], folder)
                inputs, outputs = drawn.read(data_set, "input"), drawn.read(data_set, "output")
                self.assertGreaterEqual(inputs[0].size, 4000)
                honest = [y.astype(old.dtype) for y, old in zip(self.honest(name, inputs), outputs)]
                self.assertIsNone(drawn.judge(name, data_set, honest), f"DS_SEED={seed} {name}")
                planted = [[np.zeros_like(y) for y in honest], [np.ones_like(y) for y in honest], [y[1:] for y in honest]]
                if "bernoulli" in name:
                    planted += [[1 - honest[0]], [np.round(inputs[0]).astype(honest[0].dtype)]]
                else:
                    planted += [[y.astype(old.dtype) for y, old in zip((inputs[0] / (1 - inputs[1]), inputs[0] == inputs[0]), outputs)]]
                for answer in planted:
                    self.assertIsNotNone(drawn.judge(name, data_set, answer), name)
        self.assertEqual(names, 10)


class Update(unittest.TestCase):
    """--update, on a suite of two cases whose results are made up."""

    def update(self, statuses, table, *options):
        module = load()
        module.suite = lambda: {f"node/test_{name}": (None, []) for name in statuses}
        module.report.operator = lambda name, *_: name
        module.run_case = lambda name, *_: (statuses[name.removeprefix("node/test_")], "", "")
        with tempfile.TemporaryDirectory() as folder:
            module.BIN = Path(folder)
            for tool in ("ds-opt", "ds-run"):
                Path(folder, tool).touch()
            path = Path(folder, "conformance.tsv")
            path.write_text(HEADER + "".join(f"node/test_{name}\tX\t{status}\t\t\n" for name, status in table.items()))
            output = io.StringIO()
            arguments = ["conformance", "--update", "--docs", folder, *options]
            with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(output):
                code = module.main()
            rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
            return code, {row[0].removeprefix("node/test_"): row[2] for row in rows}, output.getvalue()

    def test_refuses_what_is_worse(self):
        before = {"add": "pass", "sub": "diagnosed"}
        for worse in ({"add": "diagnosed", "sub": "pass"}, {"sub": "pass"}):
            code, after, output = self.update(worse, before)
            self.assertEqual((code, after), (1, before), output)
            self.assertIn("not written: 1 cases are worse", output)

    def test_writes_what_is_accepted(self):
        before, now = {"add": "pass", "sub": "pass"}, {"add": "diagnosed", "sub": "diagnosed"}
        code, after, output = self.update(now, before, "--accept-worse", "node/test_add")
        self.assertEqual((code, after), (1, before), output)
        code, after, output = self.update(now, before, "--accept-worse", "node/test_add", "--accept-worse", "node/test_sub")
        self.assertEqual((code, after), (0, now), output)
        code, after, output = self.update({"sub": "pass"}, before, "--accept-worse", "node/test_add")
        self.assertEqual((code, after), (0, {"sub": "pass"}), output)

    def test_writes_what_is_better_or_new(self):
        now = {"add": "pass", "sub": "pass", "mul": "diagnosed"}
        code, after, output = self.update(now, {"add": "pass", "sub": "diagnosed"})
        self.assertEqual((code, after), (0, now), output)
        self.assertIn("better: node/test_sub", output)


if __name__ == "__main__":
    unittest.main()
