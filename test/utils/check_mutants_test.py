"""utils/check-mutants makes the faults that it should, the same ones again, and none in text that decides nothing."""
import importlib.machinery
import importlib.util
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "build/venv"
if Path(sys.prefix) != VENV and (VENV / "bin/python").exists():
    os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])
sys.path[:0] = [str(ROOT / "utils/generators"), str(ROOT / "test/integration")]

import mutant_tree
from mutant_reach import Measurement, Reach, carried, parse, ranges, tests_in
from source_mutants import Mutant, choose, code_only, mutants_of

HEADER = "// A file of 3 words: a < b && c.\n#include <vector>\n"
FUNCTION = '''static bool fits(ArrayRef<int64_t> a, int64_t n) {
  assert(a.size() == 2 && "a pair");
  if (a.empty() || isa<First, Second>(x))
    return false;
  if (auto y = find(a); y && n >= 0)
    return op.emitError() << "expected 4, found " << a.size() + 1;
  return a[n - 1] <= std::max<int64_t>(n, 8) && !y; // 5 != 6
}
'''


class Mutants(unittest.TestCase):
    def changed(self, source=FUNCTION):
        """{kind: the changed lines, stripped}"""
        made = {}
        for mutant in mutants_of("f.cpp", HEADER + source):
            mutated = mutant.apply(HEADER + source)
            self.assertNotEqual(mutated, HEADER + source)
            after = [line[2:].strip() for line in mutant.diff.splitlines() if line[0] == "+"]
            made.setdefault(mutant.kind, set()).add(" ".join(after))
        return made

    def test_comparisons(self):
        self.assertEqual(self.changed()["comparison turned"], {
            "if (auto y = find(a); y && n > 0)", "return a[n - 1] < std::max<int64_t>(n, 8) && !y; // 5 != 6"})

    def test_conditions(self):
        self.assertEqual(self.changed()["condition dropped"], {
            "if (a.empty())", "if (isa<First, Second>(x))", "if (auto y = find(a); y)", "if (auto y = find(a); n >= 0)",
            "return a[n - 1] <= std::max<int64_t>(n, 8); // 5 != 6", "return !y; // 5 != 6"})

    def test_conditions_of_several_lines(self):
        found = self.changed("  bool b = f(x, y) &&\n           (g || h) && k;\n")["condition dropped"]
        self.assertEqual(found, {"bool b = (g || h) && k;", "bool b = f(x, y) && k;", "(g || h);", "(g) && k;", "(h) && k;"})

    def test_returns_and_negations(self):
        made = self.changed()
        self.assertEqual(made["early return removed"], {"if (false && (a.empty() || isa<First, Second>(x)))",
                                                        "if (auto y = find(a); false && (y && n >= 0))"})
        self.assertEqual(made["condition negated"], {"if (!(a.empty() || isa<First, Second>(x)))",
                                                     "if (auto y = find(a); !(y && n >= 0))"})
        self.assertEqual(made["negation dropped"], {"return a[n - 1] <= std::max<int64_t>(n, 8) && y; // 5 != 6"})

    def test_numbers(self):
        made = self.changed()
        self.assertEqual(made["off by one"], {"return a[n] <= std::max<int64_t>(n, 8) && !y; // 5 != 6"})
        self.assertEqual(made["constant changed"], {"if (auto y = find(a); y && n >= 1)",
                                                    "return a[n - 1] <= std::max<int64_t>(n, 9) && !y; // 5 != 6"})
        self.assertEqual(made["minimum turned"], {"return a[n - 1] <= std::min<int64_t>(n, 8) && !y; // 5 != 6"})
        self.assertEqual(made["boolean turned"], {"return true;"})
        self.assertEqual(self.changed("double x = 0.5f;\n")["constant changed"], {"double x = (1.5 * 0.5f);"})

    def test_what_decides_nothing(self):
        text = ('/* a < b */ const char *s = "a < b && 1";\n  assert(a < b && c == 3);\n  return op->emitOpError("1 < ") << n - 1;\n'
                "#define X (a < b)\ntemplate <typename T, int N> SmallVector<int, 4> f(std::vector<T> &&x);\n"
                "struct S { virtual int f() const = 0; virtual int g() = 0; };\n")
        self.assertEqual(self.changed(text), {})
        self.assertEqual(len(code_only(text)), len(text))

    def test_the_same_again(self):
        sources = {f"{i}.cpp": FUNCTION * 3 for i in range(5)}
        names = [mutant.name for mutant in choose(sources, 20, 1)]
        self.assertEqual(names, [mutant.name for mutant in choose(sources, 20, 1)])
        self.assertEqual(len(set(names)), 20)
        self.assertNotEqual(names, [mutant.name for mutant in choose(sources, 20, 2)])
        self.assertEqual(names[:10], [mutant.name for mutant in choose(sources, 10, 1)])  # more are those and others
        self.assertEqual({mutant.path for mutant in choose(sources, 5, 1)}, set(sources))

    def test_names_do_not_depend_on_other_lines(self):
        before, after = ({mutant.name for mutant in mutants_of("f.cpp", text)} for text in (FUNCTION, "int a;\n\n" + FUNCTION))
        self.assertEqual(before, after)

    def test_every_source_is_understood(self):
        for path in ROOT.glob("passes/**/*.cpp"):
            source = path.read_text()
            code = code_only(source)
            for mutant in mutants_of(path.name, source):
                mutated = mutant.apply(source)
                codes = [code, code_only(mutated)]
                for brackets in ("()", "[]", "{}"):
                    balance = [text.count(brackets[0]) - text.count(brackets[1]) for text in codes]
                    self.assertEqual(*balance, f"{path}:{mutant.line}\n{mutant.diff}")


class Copies(unittest.TestCase):
    def trees(self, folder):
        """A tree with a build, and copies of it with and without mounts."""
        root = Path(folder).resolve() / "root"
        (root / "build/passes").mkdir(parents=True)
        (root / "passes").mkdir()
        for name, text in (("passes/a.cpp", "a"), ("b.txt", "b"), ("build/build.ninja", ""), ("build/passes/a.o", "o")):
            (root / name).write_text(text)
            os.utime(root / name, (1000, 1000))
        trees = [mutant_tree.Tree(root, root / "build/mutants" / name) for name in ("first", "second")]
        trees[1].unshare, trees[1].place = None, trees[1].path
        return root, trees

    def test_copies_follow(self):
        with tempfile.TemporaryDirectory() as folder:
            root, trees = self.trees(folder)
            for tree in trees:
                tree.follow({"passes/a.cpp", "b.txt"})
                self.assertEqual((tree.path / "passes/a.cpp").read_text(), "a")
            if trees[0].unshare:
                self.assertEqual((trees[0].path / "passes/a.cpp").stat().st_mtime, 1000)  # older than what is built of it
                self.assertEqual((trees[0].build / "passes/a.o").stat().st_mtime, 1000)
            self.assertFalse((trees[1].build / "build.ninja").exists())  # it would name the files of the root
            (root / "passes/a.cpp").write_text("c")
            os.utime(root / "passes/a.cpp", (900, 900))  # as of an older commit: newer than what is built all the same
            for tree in trees:
                tree.follow({"passes/a.cpp"})
                self.assertEqual((tree.path / "passes/a.cpp").read_text(), "c")
                self.assertGreater((tree.path / "passes/a.cpp").stat().st_mtime, 1000)
                self.assertFalse((tree.path / "b.txt").exists())

    def test_commands_see_the_copy(self):
        with tempfile.TemporaryDirectory() as folder:
            root, trees = self.trees(folder)
            for tree in trees:
                tree.follow({"passes/a.cpp"})
                (tree.path / "passes/a.cpp").write_text(tree.path.name)
                code, output = tree.run(["sh", "-c", f"pwd; cat '{tree.place}/passes/a.cpp'; exit 3"], 10)
                self.assertEqual((code, output), (3, f"{tree.place}\n{tree.path.name}"))
            self.assertEqual((root / "passes/a.cpp").read_text(), "a")
            self.assertEqual(trees[0].run(["sleep", "60"], 1), (None, ""))


class Executed(unittest.TestCase):
    """What tests execute."""

    def test_lines_are_carried_over(self):
        before = "a\nb\nc\nd\ne\n"
        self.assertEqual(carried(before, "0\na\nb\nc\nd\ne\n", [1, 5]), [2, 6])
        self.assertEqual(carried(before, "a\nc\nd\ne\n", [2, 3]), [2])
        self.assertEqual(carried(before, "a\nx\ny\nd\ne\n", [3]), [2, 3])  # one of what was there before them
        self.assertEqual(ranges([3, 1, 2, 7]), [[1, 3], [7, 7]])

    def reach(self, folder):
        reach = Reach(Path(folder, "reach.json"))
        reach.follow({"p.cpp": "int a;\nif (x &&\n    y)\n  f();\n"})
        reach.code = {"p.cpp": [[2, 4]]}
        reach.tests = {"lit/slow": {"seconds": 9, "text": "", "lines": {"p.cpp": [[2, 4]]}},
                       "lit/fast": {"seconds": 1, "text": "", "lines": {"p.cpp": [[2, 2]]}},
                       "unit/third": {"seconds": 2, "text": "", "lines": {"p.cpp": [[3, 3]]}},
                       "integration/none": {"seconds": 0, "text": "", "lines": {"q.cpp": [[2, 4]]}}}
        return reach

    def mutant(self, reach, text, last=None):
        source = reach.sources["p.cpp"]
        start, end = source.index(text), source.index(last or text) + len(last or text)
        return Mutant("p.cpp", "", start, end, "", "", source.count("\n", 0, start) + 1, ""), source

    def test_tests_of_a_mutant(self):
        with tempfile.TemporaryDirectory() as folder:
            reach = self.reach(folder)
            self.assertEqual(reach.tests_of(*self.mutant(reach, "x")), ["lit/fast", "lit/slow"])
            self.assertEqual(reach.tests_of(*self.mutant(reach, "f()")), ["lit/slow"])
            self.assertEqual(reach.tests_of(*self.mutant(reach, "x", "y")), ["lit/fast", "unit/third", "lit/slow"])
            self.assertEqual(reach.tests_of(*self.mutant(reach, "a")), ["lit/fast", "unit/third", "lit/slow"])  # holds no code
            reach.save()
            again = Reach(reach.path)
            again.follow({"p.cpp": "\n" + reach.sources["p.cpp"]})
            self.assertEqual(again.tests_of(*self.mutant(again, "f()")), ["lit/slow"])
            self.assertEqual(again.tests_of(*self.mutant(again, "x")), ["lit/fast", "lit/slow"])

    def test_what_is_measured(self):
        """A program of our own stands for ds-opt, its two calls for tests; then one test changes and one is gone."""
        with tempfile.TemporaryDirectory() as folder:
            tree = mutant_tree.Tree(Path(folder), Path(folder))
            tree.unshare = None
            source = "#include <cstdlib>\nint main(int n, char **) {\n  if (n > 1)\n    return atoi(\"0\");\n  return 0;\n}\n"
            (tree.path / "passes").mkdir()
            (tree.path / "passes/main.cpp").write_text(source)
            (tree.build / "bin").mkdir(parents=True)
            code, output = mutant_tree.run(["clang++-22", "-fprofile-instr-generate", "-fcoverage-mapping", tree.path / "passes/main.cpp",
                                            "-o", tree.build / "bin/ds-opt"], 60)
            self.assertEqual(code, 0, output)
            (tree.path / "test/integration").mkdir(parents=True)
            cases = tree.path / "test/integration/a_cases.py"
            cases.write_text("@case\ndef short(folder):\n  pass\n@case\ndef long(folder):\n  pass\n@case(slow=True)\ndef slow(folder):\n  pass\n")
            (tree.path / "test/integration/run.py").write_text(
                "import os, subprocess, sys\n"
                "profiles, names = sys.argv[4], sys.argv[5:]\n"
                "for name in names:\n"
                "  file = f'{profiles}/{name.replace(chr(47), chr(46))}/%1m.profraw'\n"
                "  code = subprocess.call(['build/bin/ds-opt'] + ['-x'] * ('long' in name), env={**os.environ, 'LLVM_PROFILE_FILE': file})\n"
                "  print('FAIL' if 'failing' in name else 'PASS', name, '(1.5 s)')\n")
            self.assertEqual([*tests_in(tree)], ["integration/a/short", "integration/a/long"])
            reach = Reach(tree.path / "reach.json")
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(Measurement(tree, reach, ["passes"], sys.executable).run(), [])
            reach = Reach(reach.path)
            self.assertEqual(reach.tests["integration/a/short"]["lines"], {"passes/main.cpp": [[2, 3], [5, 6]]})
            self.assertEqual(reach.tests["integration/a/long"]["lines"], {"passes/main.cpp": [[2, 4], [6, 6]]})
            self.assertEqual(reach.tests["integration/a/long"]["seconds"], 1.5)
            cases.write_text("@case\ndef long(folder):\n  pass\n@case\ndef failing(folder):\n  pass\n")
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(Measurement(tree, reach, ["passes"], sys.executable).run(), ["integration/a/failing"])
            self.assertEqual([*reach.tests], ["integration/a/long"])

    def test_lcov(self):
        text = "SF:/r/passes/a.cpp\nFN:1,f\nDA:1,0\nDA:2,7\nend_of_record\nSF:/usr/include/b.h\nDA:1,1\nend_of_record\n"
        self.assertEqual(parse(text, "/r"), {"passes/a.cpp": {1: 0, 2: 7}})


class Report(unittest.TestCase):
    def setUp(self):
        loader = importlib.machinery.SourceFileLoader("check_mutants", str(ROOT / "utils/check-mutants"))
        self.tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_mutants", loader))
        loader.exec_module(self.tool)

    def report(self, results, explained=""):
        with tempfile.TemporaryDirectory() as folder:
            self.tool.EXPLAINED = Path(folder, "explained.txt")
            self.tool.EXPLAINED.write_text(explained)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                code = self.tool.report(results)
            return code, output.getvalue()

    def result(self, name, result, by="lit: a.mlir"):
        return {"name": name, "path": "passes/A.cpp", "line": 7, "kind": "comparison turned", "diff": "- a < b\n+ a <= b",
                "result": result, "by": by, "seconds": 1}

    def test_explanations_are_of_faults_that_can_be_made(self):
        for path, diff in self.tool.explained():
            self.assertIn(diff, {mutant.diff for mutant in mutants_of(path, (ROOT / path).read_text())}, path)

    def test_rates_and_explanations(self):
        results = [self.result(str(i), "killed") for i in range(9)] + [self.result("x", "survived", ""), self.result("y", "stillborn", "")]
        code, output = self.report(results)
        self.assertEqual(code, 1, output)
        self.assertIn("SURVIVED x passes/A.cpp:7 comparison turned\n- a < b\n+ a <= b", output)
        self.assertIn("9 of 10 killed, 90.0 %; 0 explained, 1 do not compile", output)
        code, output = self.report(results, "# notes\n\npasses/A.cpp\n- a < b\n+ a <= b\nboth sides are equal only\nwhere neither counts\n")
        self.assertEqual(code, 0, output)
        self.assertIn("explained x passes/A.cpp:7 comparison turned: both sides are equal only where neither counts", output)
        self.assertIn("9 of 9 killed, 100.0 %; 1 explained", output)
        self.assertEqual(self.report(results, "passes/A.cpp\n- a < b\n+ a <= b\n")[0], 1)  # without a reason
        many = [self.result(str(i), "killed") for i in range(199)]
        code, output = self.report(many + [self.result("x", "survived", "")])
        self.assertEqual(code, 1)  # however few they are
        self.assertIn("199 of 200 killed, 99.5 %", output)

    def test_a_run_goes_on(self):
        """Tests and builds are stand-ins: the first mutant is killed, the second survives, the third does not compile."""
        sources = {"passes/A.cpp": FUNCTION}
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / "passes").mkdir()
            (home / "passes/A.cpp").write_text(FUNCTION)
            tool, seen = self.tool, []
            tool.ROOT, tool.HOME, tool.RESULTS = home, home / "build/mutants", home / "build/mutants/results.jsonl"
            tool.EXPLAINED, tool.tracked = home / "none", lambda: set(sources)
            tool.Tree.prepare = lambda tree: None
            tool.Measurement.run = lambda measurement: []
            tool.Reach.tests_of = lambda reach, mutant, source: ["lit/a.mlir"] if reached(mutant) else []
            tool.Reach.cost = lambda reach, name: 1
            reached = lambda mutant: True

            def compiles(tree, seconds):
                seen.append((tree.path / "passes/A.cpp").read_text())
                return len(seen) != 3

            tool.Tree.compile = compiles
            tool.Tests.of = lambda tests, mutant, source, seconds: iter([("unit", None), ("lit", "a.mlir" if len(seen) == 1 else None)])
            for count, total in ((2, 2), (2, 2), (4, 4)):
                sys.argv = ["check-mutants", "--count", str(count)]
                with contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(tool.main(), 1)
                self.assertEqual(len(seen), total)
            self.assertEqual(len(set(seen)), 4)
            results = [json.loads(line)["result"] for line in tool.RESULTS.read_text().splitlines()]
            self.assertEqual(results, ["killed", "survived", "stillborn", "survived"])
            reached = lambda mutant: False
            sys.argv = ["check-mutants", "--count", "5"]
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(tool.main(), 1)
            self.assertEqual(len(seen), 4)  # it is not even built
            last = json.loads(tool.RESULTS.read_text().splitlines()[-1])
            self.assertEqual((last["result"], last["by"]), ("survived", "no test executes it"))
            self.assertEqual((home / "passes/A.cpp").read_text(), FUNCTION)
            self.assertEqual((tool.HOME / "tree/passes/A.cpp").read_text(), FUNCTION)


if __name__ == "__main__":
    unittest.main()
