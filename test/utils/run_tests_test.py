"""What utils/run_tests.py says of failures: which test, with its text, where it fails and again at the end."""
import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "utils"))
import run_tests

REPORT = """<testsuites><testsuite name="Ring">
<testcase name="Sums" classname="Ring"/>
<testcase name="Waits" classname="Ring" status="notrun"/>
<testcase name="Leaves" classname="Ring"><failure message="short"><![CDATA[ring.cpp:7: 3 is not 4]]></failure></testcase>
</testsuite></testsuites>"""


class RunTests(unittest.TestCase):
    def setUp(self):
        run_tests.failures.clear()

    def said(self, function, *arguments, **named):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            result = function(*arguments, **named)
        return result, printed.getvalue()

    def reported(self, code, text, output):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.xml"
            path.write_text(text)
            return self.said(run_tests.junit, code, output, [path])

    def test_a_failing_case_is_named_however_much_follows(self):
        counts, printed = self.reported(8, REPORT, "ring.cpp:7: 3 is not 4\n" + "later\n" * 500)
        self.assertEqual(counts, (1, 1, 1))
        self.assertIn("   Ring.Leaves\n   ring.cpp:7: 3 is not 4", printed)
        self.assertIn("   Ring.Leaves\n   ring.cpp:7: 3 is not 4", "\n".join(run_tests.failures))

    def test_a_program_that_crashed_counts_and_is_shown(self):
        good = REPORT.replace("failure", "properties")
        counts, printed = self.reported(8, good, "1: ring\nring (Timeout)")
        self.assertEqual(counts, (1, 1, 1))
        self.assertIn("ring (Timeout)", printed)
        _, printed = self.reported(8, REPORT, "other (SEGFAULT)")
        self.assertIn("other (SEGFAULT)", printed)

    def test_nothing_is_said_of_what_passes(self):
        counts, printed = self.reported(0, REPORT.replace("failure", "properties"), "fine")
        self.assertEqual((counts, printed, run_tests.failures), ((2, 0, 1), "", []))

    def test_failing_cases_of_a_command_that_counts_itself(self):
        output = ("PASS a/b (0.1 s)\nFAIL c/d (0.2 s): Traceback\nlast line of it\nPASS e/f (0.1 s)\n"
                  "FAIL g/h (0.2 s): 1 is not 2\n2 passed, 2 failed, 0 skipped\n")
        counts, _ = self.said(run_tests.closing_line, 1, output, show=False)
        self.assertEqual(counts, (2, 2, 0))
        self.assertEqual(run_tests.failures, ["FAIL c/d (0.2 s): Traceback\nlast line of it\n", "FAIL g/h (0.2 s): 1 is not 2\n"])

    def test_the_end_repeats_it_before_the_counts(self):
        steps, arguments = run_tests.STEPS, sys.argv
        environment = dict(os.environ)
        run_tests.STEPS = [("docs", lambda: run_tests.one(1, "a.md is old"), ""), ("wheel", lambda: (2, 0, 0), "")]
        sys.argv = ["run_tests.py"]
        try:
            code, printed = self.said(run_tests.main)
        finally:
            run_tests.STEPS, sys.argv = steps, arguments
            os.environ.clear()
            os.environ.update(environment)
        self.assertEqual(code, 1)
        self.assertTrue(printed.endswith("== what failed, once more\n   a.md is old\n2 passed, 1 failed, 0 skipped\n"), printed)


if __name__ == "__main__":
    unittest.main()
