"""utils/check-layout finds each kind of violation in a small tree, and nothing in a clean one."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "utils/check-layout"
PASS = 'def FuseDeep : Pass<"ds-fuse-deep", "::mlir::ModuleOp"> {}\n'
CLEAN = {
    "dialects/ds/DsOps.h": '#include "mlir/IR/Ops.h"\n#include "dialects/ds/DsOps.h.inc"\n',
    "passes/optimization/Passes.td": PASS,
    "passes/optimization/FuseDeep.cpp": '#include "dialects/ds/DsOps.h"\n',
    "test/passes/optimization/fuse-deep.mlir": "// RUN: true\n",
    "codegen/cpu/Lower.cpp": '#include "runtime/abi/ds_abi.h"\n#include "codegen/cpu/Lower.h"\n',
    "runtime/core/Plan.cpp": '#include "runtime/abi/ds_abi.h"\n#include <vector>\n',
    "tools/ds-opt/main.cpp": '#include "passes/Passes.h"\nllvm::cl::opt<bool> check("check");\n',
}


class CheckLayout(unittest.TestCase):
    def check(self, changes=None):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CLEAN, **(changes or {})}.items():
                if text is not None:
                    path = Path(folder, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text)
            done = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True)
            return done.returncode, done.stdout

    def refuses(self, changes, *expected):
        code, output = self.check(changes)
        self.assertEqual(code, 1, output)
        self.assertEqual(len(output.splitlines()), 1, output)
        for text in expected:
            self.assertIn(text, output)

    def test_clean_tree(self):
        self.assertEqual(self.check(), (0, "layout: ok\n"))

    def test_passes_do_not_see_codegen(self):
        self.refuses({"passes/graph/A.cpp": '#include "codegen/Package.h"\n'}, "passes/graph/A.cpp", "codegen/Package.h")

    def test_frontends_do_not_see_passes(self):
        self.refuses({"frontends/onnx/A.cpp": '#include "passes/Passes.h"\n'}, "frontends/ may include only")

    def test_dialects_see_nothing_else(self):
        self.refuses({"dialects/ds/A.td": 'include "passes/Passes.td"\n'}, "dialects/ds/A.td")

    def test_codegen_sees_only_the_abi(self):
        self.refuses({"codegen/A.cpp": '#include "runtime/core/Plan.h"\n'}, "runtime/abi")

    def test_runtime_sees_no_compiler(self):
        self.refuses({"runtime/core/A.cpp": '#include "llvm/ADT/StringRef.h"\n'}, "without MLIR and LLVM")

    def test_runtime_sees_no_dialect(self):
        self.refuses({"runtime/core/A.cpp": '#include "dialects/ds/DsOps.h"\n'}, "runtime/ may include only")

    def test_ds_run_sees_no_compiler(self):
        self.refuses({"tools/ds-run/A.cpp": '#include "codegen/Package.h"\n'}, "tools/ds-run/ may include only")

    def test_includes_are_root_relative(self):
        self.refuses({"runtime/core/A.cpp": '#include "Plan.h"\n', "runtime/core/Plan.h": ""}, "relative to the root")

    def test_long_source(self):
        self.refuses({"runtime/core/A.cpp": "\n" * 501}, "501 lines", "at most 500")

    def test_long_tablegen(self):
        self.refuses({"dialects/ds/A.td": "\n" * 601}, "at most 600")

    def test_half_a_merge(self):
        self.refuses({"utils/setup": "#!/bin/bash\n" + "<" * 7 + " HEAD\ntrue\n"}, "utils/setup:2", "half of a merge")

    def test_large_file(self):
        self.refuses({"docs/a.bin": "x" * (1 << 20) + "y"}, "1048577 bytes")

    def test_option_outside_tools(self):
        self.refuses({"passes/graph/A.cpp": "static llvm::cl::opt<int> a;\n"}, "cl::opt")

    def test_pass_named_otherwise(self):
        self.refuses({"passes/optimization/Passes.td": PASS.replace("def FuseDeep", "def DeepFusion"),
                      "passes/optimization/FuseDeep.cpp": None, "passes/optimization/DeepFusion.cpp": ""},
                     "expected FuseDeep")

    def test_pass_without_source(self):
        self.refuses({"passes/optimization/FuseDeep.cpp": None}, "no FuseDeep.cpp")

    def test_pass_without_test(self):
        self.refuses({"test/passes/optimization/fuse-deep.mlir": None}, "test/passes/optimization/fuse-deep.mlir")

    def test_name_of_test(self):
        self.refuses({"test/passes/graph/FoldConstants.mlir": ""}, "lower case")


if __name__ == "__main__":
    unittest.main()
