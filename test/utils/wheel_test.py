"""utils/wheel: what it refuses before it builds anything. What is in a wheel is tested in test/python."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "utils"))
import build_wheel  # noqa: E402


class Wheel(unittest.TestCase):
    def run_wheel(self, *arguments):
        done = subprocess.run([sys.executable, ROOT / "utils/build_wheel.py", *map(str, arguments)], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def refuses(self, message, call, *arguments):
        with self.assertRaises(SystemExit) as found:
            call(*arguments)
        self.assertIn(message, str(found.exception))

    def test_looks_at_arguments_first(self):
        before = (ROOT / "build-release").exists()
        for arguments in (("--compression", "12"), ("--only", "x"), ("--nonsense",)):
            code, out, error = self.run_wheel(*arguments)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(arguments[-1], error.splitlines()[-1])
        self.assertEqual((ROOT / "build-release").exists(), before)

    def test_refuses_a_tree_that_is_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, error = self.run_wheel("--build-dir", Path(folder) / "none")
            self.assertEqual((code, (Path(folder) / "none").exists()), (1, False))
            self.assertIn("libds_runtime.so.0 is not there; build the tree first", error)

    def test_refuses_what_the_oldest_system_of_the_tag_lacks(self):
        newest = build_wheel.NEWEST
        self.addCleanup(setattr, build_wheel, "NEWEST", newest)
        build_wheel.check_versions("/bin/ls")
        build_wheel.NEWEST = {**newest, "GLIBC": (2, 2)}
        self.refuses("/bin/ls needs GLIBC_2.", build_wheel.check_versions, "/bin/ls")

    def test_refuses_a_compiler_whose_options_it_cannot_read(self):
        self.refuses("expected a table of options", build_wheel.option_table, "/bin/true")
        self.assertIn("OPTIONS: dict", build_wheel.option_table(None))

    def test_gives_libraries_names_of_their_own(self):
        names = [build_wheel.own_name(name) for name in ("libcrypto.so.3", "libMLIR.so.22.1", "libds_runtime.so.0")]
        self.assertEqual(names, ["libcrypto-deepstride.so.3", "libMLIR.so.22.1", "libds_runtime.so.0"])


if __name__ == "__main__":
    unittest.main()
