"""README tells the truth: its phase table is that of Phases.def and the paths it names exist. --update writes the table."""
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PARTS = re.compile(r"(<!-- phases.*?-->\n)(.*?)(<!-- /phases -->)", re.S)


def phase_table():
    text = re.sub(r"//.*", "", (ROOT / "passes/Phases.def").read_text())
    rows = ["| phase | does | holds afterwards |", "|---|---|---|"]
    for body in re.findall(r"^DS_PHASE\((.*?)\)$", text, re.M | re.S):
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r'"\s*\n\s*"', "", body))
        rows.append("| " + " | ".join(text.replace("|", "\\|") for text in strings) + " |")
    return "\n".join(rows) + "\n"


class Readme(unittest.TestCase):
    def test_phases(self):
        self.assertEqual(PARTS.search(README.read_text()).group(2), phase_table(),
                         "repair with: python3 test/utils/readme_test.py --update")

    def test_paths_exist(self):
        text = README.read_text()
        named = re.findall(r"`((?:utils|docs|test|passes|frontends|dialects|codegen|runtime|tools|benchmarks)/[\w./-]*)`", text)
        named += re.findall(r"\]\(([\w./-]+)\)", text)
        self.assertEqual([name for name in named if not (ROOT / name).exists()], [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        README.write_text(PARTS.sub(lambda match: match.group(1) + phase_table() + match.group(3), README.read_text()))
    else:
        unittest.main()
