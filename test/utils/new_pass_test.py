"""utils/new-pass in a copy of the tree, for every phase: it says what it wrote, changes nothing else, and what it wrote keeps
the rules of the tree and is legal TableGen and C++ by its names."""
import difflib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("passes", "codegen", "frontends/onnx/convert", "tools/ds-opt", "test/passes", "test/codegen", "test/frontends/onnx/convert")
PHASES = re.findall(r'^DS_PHASE\(\w+, "(\w+)"', (ROOT / "passes/Phases.def").read_text(), re.M)


def texts(tree):
    return {str(path.relative_to(tree)): path.read_text() for path in sorted(tree.rglob("*")) if path.is_file()}


class NewPass(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name, "tree")
        for part in PARTS:
            shutil.copytree(ROOT / part, self.tree / part)

    def run_tool(self, *arguments, code=0):
        done = subprocess.run([sys.executable, ROOT / "utils/new-pass", *arguments, "--root", self.tree], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def add(self, phase, *options):
        """Adds the pass; what there was before and is now, of files that differ."""
        before = texts(self.tree)
        printed = self.run_tool(phase, "JoinThings", *options)
        after = texts(self.tree)
        differ = {name for name in after if before.get(name) != after[name]}
        self.assertEqual(set(before) - set(after), set())
        told = dict(re.findall(r"^(?:new|changed) +(\S+)()$", printed, re.M))
        self.assertEqual(set(told), differ, printed)
        new = set(re.findall(r"^new +(\S+)$", printed, re.M))
        self.assertEqual(new, differ - set(before), printed)
        return {name: (before.get(name, ""), after[name]) for name in differ}

    def check_lines(self, name, old, new):
        """Lines are added; the one that lists sources or libraries may be continued."""
        for line in difflib.ndiff(old.splitlines(), new.splitlines()):
            if line.startswith("- "):
                words = line[2:].split()
                grown = [other.split() for other in new.splitlines() if set(words) < set(other.split())]
                self.assertTrue(name.endswith("CMakeLists.txt") and any(len(words) + 1 == len(other) for other in grown),
                                f"{name}: the line '{line[2:]}' is gone")

    def check_tree(self, phase, differ, operation):
        folder = {"import": "frontends/onnx/convert", "codegen": "codegen"}.get(phase, f"passes/{phase}")
        test = f"test/{folder}/join-things.mlir"
        self.assertLessEqual({f"{folder}/Passes.td", f"{folder}/CMakeLists.txt", f"{folder}/JoinThings.cpp", test}, set(differ))
        for name, (old, new) in differ.items():
            self.check_lines(name, old, new)
        layout = subprocess.run([sys.executable, ROOT / "utils/check-layout", self.tree], capture_output=True, text=True)
        self.assertEqual(layout.returncode, 0, layout.stdout)
        declared = subprocess.run(
            ["/usr/lib/llvm-22/bin/mlir-tblgen", "-gen-pass-decls", "-name=Any", "-I/usr/lib/llvm-22/include",
             self.tree / folder / "Passes.td"], capture_output=True, text=True)
        self.assertEqual(declared.returncode, 0, declared.stderr)
        self.assertIn("createJoinThings()", declared.stdout)
        self.assertIn(f"class JoinThingsBase : public ::mlir::OperationPass<{operation}>", declared.stdout)
        source = (self.tree / folder / "JoinThings.cpp").read_text()
        self.assertIn(f'#include "{folder}/Passes.h.inc"', source)
        self.assertIn("--ds-join-things", (self.tree / test).read_text())
        self.assertIn("JoinThings.cpp", (self.tree / folder / "CMakeLists.txt").read_text())
        formatted = subprocess.run(["clang-format-22", f"--style=file:{ROOT / '.clang-format'}", "--dry-run", "-Werror",
                                    self.tree / folder / "JoinThings.cpp", *[self.tree / name for name in differ if name.endswith(".h")]],
                                   capture_output=True, text=True)
        self.assertEqual(formatted.returncode, 0, formatted.stderr)

    def test_every_phase(self):
        self.assertIn("distribution", PHASES)
        for phase in PHASES:
            cases = [("::mlir::func::FuncOp", ["--in-pipeline"])]
            if phase == "memory":  # whose header has no functions
                cases += [("::mlir::ModuleOp", ["--module", "--in-pipeline"]), ("::mlir::func::FuncOp", [])]
            for operation, options in cases:
                with self.subTest(phase=phase, options=options):
                    self.setUp()
                    differ = self.add(phase, *options)
                    self.check_tree(phase, differ, operation)
                    added = [line for _, new in differ.values() for line in new.splitlines() if "createJoinThings())" in line]
                    self.assertEqual(len(added), len(options) > 0, added)
                    if added:
                        self.assertIn("addPass" if "--module" in options else "addNestedPass<func::FuncOp>", added[0])

    def test_a_phase_without_passes_is_built_and_registered(self):
        self.assertFalse((ROOT / "passes/distribution/Passes.td").exists(), "take another phase for this test")
        self.add("distribution")
        cmake = (self.tree / "passes/CMakeLists.txt").read_text()
        self.assertIn("add_subdirectory(distribution)", cmake)
        self.assertRegex(cmake, r"LINK [^)]*\bds_distribution_passes\b")
        pipelines = (self.tree / "passes/Pipelines.cpp").read_text()
        self.assertIn('#include "passes/distribution/Passes.h"', pipelines)
        self.assertIn("  registerDistributionPasses();", pipelines)
        self.run_tool("distribution", "JoinMore")  # the folder is there now
        self.assertIn("JoinMore.cpp", (self.tree / "passes/distribution/CMakeLists.txt").read_text())

    def test_sources_that_are_in_no_order_stay(self):
        cmake = self.tree / "passes/graph/CMakeLists.txt"
        before = cmake.read_text().splitlines()
        self.add("graph")
        self.assertEqual([line for line in cmake.read_text().splitlines() if "JoinThings" not in line], before)

    def test_what_is_refused_writes_nothing(self):
        before = texts(self.tree)
        for arguments, text in ((["nowhere", "JoinThings"], "there are: import, graph"), (["graph", "joinThings"], "expected a name"),
                                (["graph", "FoldShapes"], "has a pass FoldShapes already")):
            said = self.run_tool(*arguments, code=2)
            self.assertIn(text, said)
            self.assertEqual(len(said.splitlines()), 1, said)
        pipelines = self.tree / "passes/Pipelines.cpp"
        pipelines.write_text(pipelines.read_text().replace("addContract(pm, Phase::Graph)", "nothing"))
        before["passes/Pipelines.cpp"] = pipelines.read_text()
        self.assertIn("expected the line", self.run_tool("graph", "JoinThings", "--in-pipeline", code=2))
        self.assertEqual(texts(self.tree), before)


if __name__ == "__main__":
    unittest.main()
