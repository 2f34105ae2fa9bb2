"""docs/python.md: its blocks run as they stand there, one after the other."""
import os
import re
import shutil
import unittest

import deepstride
from support import Case, MODELS, ROOT

PAGE = (ROOT / "docs/python.md").read_text()


class Page(Case):
    def test_blocks_run(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
        self.assertGreaterEqual(len(blocks), 6)
        shutil.copy(MODELS / "page.onnx", self.folder / "m.onnx")
        shutil.copy(MODELS / "classifier.onnx", self.folder)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        names = {}
        for number, block in enumerate(blocks, 1):
            exec(compile(block, f"docs/python.md, block {number}", "exec"), names)

    def test_names_all_exceptions_as_they_are(self):
        rows = {name: line for line in PAGE.splitlines() if line.startswith("| `")
                for name in re.findall(r"`(\w+)`", line.split("|")[1])}
        for kind in deepstride.Error.__subclasses__():
            if kind.__module__ == "deepstride._errors":
                self.assertIn(kind.__name__, rows)
                for base in (ValueError, OSError, MemoryError):
                    self.assertEqual(issubclass(kind, base), f"`{base.__name__}`" in rows[kind.__name__], kind)


if __name__ == "__main__":
    unittest.main()
