"""What is in the wheel: programs that need nothing of this machine, licences, descriptions for tools."""
import importlib.metadata
import inspect
import os
import re
import resource
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import deepstride
from deepstride import _core
from support import Case, MODELS

PACKAGE = Path(deepstride.__file__).parent
# The C library, the C++ library and what the kernel gives: all that a wheel of the tag may take for given.
GIVEN = re.compile(r"(linux-vdso|/lib64/ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+")


def binaries():
    return [path for path in sorted(PACKAGE.rglob("*")) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def run(*command, **keywords):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **keywords)


class Wheel(Case):
    def test_needs_no_library_but_those_of_every_system(self):
        found = binaries()
        self.assertLessEqual({"ds-opt", "ds-run", "ld.lld", "libLLVM.so.22.1", "libds_runtime.so.0"},
                             {path.name for path in found})
        for binary in found:
            for line in run("ldd", binary).stdout.splitlines():
                name, _, path = line.strip().partition(" => ")
                if name != "statically linked" and not GIVEN.match(name):
                    self.assertTrue(Path(path.split(" (")[0]).resolve().is_relative_to(PACKAGE), f"{binary}: {line}")

    def test_links_with_the_linker_that_it_brings(self):
        shutil.copytree(PACKAGE / "bin", self.folder / "bin")
        (self.folder / "lib").symlink_to(PACKAGE / "lib")
        command = [self.folder / "bin/ds-opt", MODELS / "linear.onnx", "-o", self.folder / "m.dsp", "--no-cache"]
        self.assertEqual(run(*command, env={"PATH": ""}).returncode, 0)
        (self.folder / "bin/ld.lld").write_text("#!/bin/sh\necho not this one >&2\nexit 1\n")
        done = run(*command)
        self.assertEqual(done.returncode, 1)
        self.assertIn("linking failed: not this one", done.stderr)

    def test_programs_are_commands(self):
        scripts = Path(sys.executable).parent
        self.assertEqual(run(scripts / "ds-opt", "--version").stdout, f"ds-opt {deepstride.__version__}\n")
        self.assertEqual(run(scripts / "ds-run", "--version").stdout, f"ds-run {deepstride.__version__}\n")
        self.assertEqual(run(scripts / "ds-opt", "--no-such-option", "m.onnx").returncode, 2)
        package = self.folder / "with space.dsp"
        self.assertEqual(run(scripts / "ds-opt", MODELS / "linear.onnx", "-o", package).returncode, 0)
        self.assertIn("batch", run(scripts / "ds-run", "inspect", package).stdout)

    def test_brings_licences_of_all_that_travels_along(self):
        distribution = importlib.metadata.distribution("deepstride")
        names = {path.name for path in distribution.files if "licenses" in path.parts}
        self.assertLessEqual({"LICENSE", "nanobind.txt", "libllvm22.txt", "libssl3.txt", "libz3-4.txt"}, names)
        self.assertEqual(distribution.version, deepstride.__version__)
        self.assertIn("manylinux_2_36_x86_64", distribution.read_text("WHEEL"))

    def test_describes_itself_to_tools(self):
        self.assertTrue((PACKAGE / "py.typed").exists())
        stub = (PACKAGE / "_core.pyi").read_text()
        for kind in (_core.Package, _core.Session):
            for name in dir(kind):
                if not name.startswith("_"):
                    self.assertIn(f"def {name}(", stub)
        for name in deepstride.__all__:
            value = getattr(deepstride, name)
            if not name.isupper():
                self.assertTrue(inspect.getdoc(value), name)
            for member, function in inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else ():
                if not member.startswith("_") and not issubclass(value, tuple):
                    self.assertTrue(inspect.getdoc(function), f"{name}.{member}")

    def test_options_are_those_of_its_compiler(self):
        text = run(PACKAGE / "bin/ds-opt", "--help").stdout
        for keyword, (flag, argument) in deepstride.OPTIONS.items():
            ending = {"none": r"\s", "optional": r"\[=", "required": "="}[argument]
            self.assertRegex(text, rf"(?m)^  {re.escape(flag)}{ending}")
            self.assertEqual(keyword, flag.lstrip("-").replace("-", "_"))
        self.assertLessEqual({"precision", "quantize", "mcpu", "no_cache", "mode"}, set(deepstride.OPTIONS))
        self.assertFalse({"o", "check", "dim", "help"} & set(deepstride.OPTIONS))

    def test_three_lines_take_seconds(self):
        """A trained model, compiled with an empty cache and called, in a process that imports all anew. What is counted is
        the processor's time, of all threads: the clock's would be that of the machine's other work."""
        known = np.load(MODELS / "trained.npz")
        program = f"""import deepstride, numpy
m = deepstride.load(deepstride.compile({str(MODELS / 'trained.onnx')!r}, "m.dsp"))
numpy.save("found.npy", m({known['ids'].tolist()}, {np.ones_like(known['ids']).tolist()})[-1])"""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = run(sys.executable, "-c", program, cwd=self.folder, env={**os.environ, "DS_CACHE": str(self.folder / "cache")})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = np.load(self.folder / "found.npy")
        np.testing.assert_allclose(found, known["pooled"], rtol=1e-4, atol=1e-4)
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 5)

    def test_lives_beside_other_libraries_of_the_process(self):
        # Python's own OpenSSL and zlib, before and after ours.
        for order in ("import ssl, zlib, deepstride", "import deepstride, ssl, zlib"):
            program = order + "; ssl.create_default_context(); zlib.crc32(b''); print(open('/proc/self/maps').read())"
            done = run(sys.executable, "-c", program, env={"PATH": os.environ["PATH"]})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("libcrypto-deepstride", done.stdout)


if __name__ == "__main__":
    unittest.main()
