"""utils/check-tidy reports what clang-tidy finds in the files that it was asked for, and in no others."""
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "utils/check-tidy"
CLEAN = "int answer(int a) { return a; }\n"
WRONG = '#include "wrong.h"\nint wrong(int a) { return sizeof(sizeof(a)); }\n'


@unittest.skipUnless(shutil.which("clang-tidy-22"), "needs clang-tidy-22")
class CheckTidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.write("utils/check-tidy", TOOL.read_text())
        self.write(".clang-tidy", "Checks: '-*,bugprone-sizeof-expression'\n")
        self.write(".gitignore", "build/\n")
        self.write("clean.cpp", CLEAN)
        self.write("wrong.cpp", WRONG)
        self.write("wrong.h", "int wrong(int a);\n")
        self.write("unbuilt.cpp", CLEAN)
        self.write("build/compile_commands.json", json.dumps(
            [{"directory": str(self.root), "command": f"clang++-22 -c {name}", "file": name}
             for name in ("clean.cpp", "wrong.cpp")]))
        self.git("init", "-q", "-b", "main")
        self.commit("first")

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True)

    def commit(self, subject):
        self.git("add", "-A")
        self.git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", subject)

    def run_tool(self, *arguments):
        result = subprocess.run(["python3", "utils/check-tidy", *arguments], cwd=self.root, capture_output=True, text=True)
        return result.returncode, result.stdout, result.stderr

    def test_finds_in_the_whole_tree(self):
        code, output, _ = self.run_tool("--all")
        self.assertEqual(code, 1)
        self.assertRegex(output, r"(?m)^wrong\.cpp:2:\d+: warning: .*\[bugprone-sizeof-expression\]$")
        self.assertIn("unbuilt.cpp: skipped", output)
        self.assertTrue(output.endswith("1 passed, 1 failed, 1 skipped\n"), output)

    def test_files_and_headers(self):
        self.assertEqual(self.run_tool("clean.cpp"), (0, "1 passed, 0 failed, 0 skipped\n", ""))
        code, output, _ = self.run_tool("wrong.h")  # through the source that includes it
        self.assertEqual((code, output.count("wrong.cpp:2:")), (1, 1))

    def test_changes(self):
        self.assertEqual(self.run_tool(), (0, "0 passed, 0 failed, 0 skipped\n", ""))
        self.write("clean.cpp", CLEAN + "\n")
        self.assertEqual(self.run_tool()[1], "1 passed, 0 failed, 0 skipped\n")
        self.commit("second")
        self.assertEqual(self.run_tool()[1], "0 passed, 0 failed, 0 skipped\n")
        self.assertEqual(self.run_tool("HEAD~1..HEAD")[1], "1 passed, 0 failed, 0 skipped\n")

    def test_a_crash_is_a_failure(self):
        self.write("build/compile_commands.json", json.dumps(
            [{"directory": str(self.root), "command": "clang++-22 -include missing.h -c clean.cpp", "file": "clean.cpp"}]))
        code, output, _ = self.run_tool("clean.cpp")
        self.assertEqual((code, output.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_what_is_no_file_and_no_range(self):
        for argument in ("missing.cpp", "no..range", ".clang-tidy"):
            code, output, error = self.run_tool(argument)
            self.assertEqual((code, output), (1, ""))
            self.assertIn(argument, error)


if __name__ == "__main__":
    unittest.main()
