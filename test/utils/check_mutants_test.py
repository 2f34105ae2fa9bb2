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

from source_mutants import choose, code_only, mutants_of

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
                "#define X (a < b)\ntemplate <typename T, int N> SmallVector<int, 4> f(std::vector<T> &&x);\n")
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

    def test_the_cases_that_are_near(self):
        """A name of CASES that no case has, or that no source has, would go unnoticed."""
        import kit
        for path in (ROOT / "test/integration").glob("*_cases.py"):
            importlib.import_module(path.stem)
        cases = [f"{function.__module__.removesuffix('_cases')}/{function.__name__}" for function, _ in kit.CASES]
        sources = [str(path.relative_to(ROOT)) for folder in self.tool.FOLDERS for path in (ROOT / folder).rglob("*.cpp")]
        near = {pattern for _, patterns in self.tool.CASES for pattern in patterns}
        self.assertEqual([pattern for pattern in near if not any(pattern in name for name in cases)], [])
        words = [word for pattern, _ in self.tool.CASES for word in pattern.split("|")]
        self.assertEqual([word for word in words if not any(word in path for path in sources)], [])

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
            tool.Tests.measure = lambda tests: []

            def compiles(tree):
                seen.append((tree.path / "passes/A.cpp").read_text())
                return len(seen) != 3

            tool.Tree.compile = compiles
            tool.Tests.of = lambda tests, mutant, seconds: iter([("unit", None), ("lit", "a.mlir" if len(seen) == 1 else None)])
            for count, total in ((2, 2), (2, 2), (4, 4)):
                sys.argv = ["check-mutants", "--count", str(count)]
                with contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(tool.main(), 1)
                self.assertEqual(len(seen), total)
            self.assertEqual(len(set(seen)), 4)
            results = [json.loads(line)["result"] for line in tool.RESULTS.read_text().splitlines()]
            self.assertEqual(results, ["killed", "survived", "stillborn", "survived"])
            self.assertEqual((home / "passes/A.cpp").read_text(), FUNCTION)
            self.assertEqual((tool.HOME / "tree/passes/A.cpp").read_text(), FUNCTION)


if __name__ == "__main__":
    unittest.main()
