"""Checks docs/adding-*.md against the tree: paths, the name in each row of a table in the row's file, quoted code."""
import argparse
import re
import subprocess
from pathlib import Path

PAGES = {"docs/adding-an-op.md": 20, "docs/adding-a-kernel.md": 18}  # with the least number of rows


def problems(root, page, rows):
    text = (root / page).read_text()
    for path in re.findall(r"`((?:\w[\w.-]*/)+[\w.-]*)`", text):
        if not (root / path).exists():
            yield f"{page}: names {path}, which does not exist"
    found = re.findall(r"^\| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$", text, re.M)
    if len(found) < rows:
        yield f"{page}: expected at least {rows} rows of file and name, found {len(found)}"
    for path, name in found:
        if (root / path).is_file() and name not in (root / path).read_text():
            yield f"{page}: {path} has no '{name}'"
    quoted = re.findall(r"^```cpp (\S+)\n(.*?)^```$", text, re.M | re.S)
    if not quoted:
        yield f"{page}: expected code of the tree, found none"
    for path, code in quoted:
        if code not in (root / path).read_text():
            yield f"{page}: {path} does not have the quoted code:\n{code}"
    for link in re.findall(r"\]\(([\w./-]+\.md)\)", text):
        if not (root / page).parent.joinpath(link).exists():
            yield f"{page}: links to {link}, which does not exist"
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
        for line in block.splitlines():
            program, *words = line.split()
            if program.startswith("utils/") and not (root / program).exists():
                yield f"{page}: runs {program}, which does not exist"
            if program == "ds-opt" and words[0].endswith(".mlir"):
                done = subprocess.run(line, shell=True, cwd=root, capture_output=True, text=True)
                if done.returncode:
                    yield f"{page}: {line}\n{done.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path)
    root = parser.parse_args().root
    found = [line for page, rows in PAGES.items() for line in problems(root, page, rows)]
    assert not found, "\n".join(found)


if __name__ == "__main__":
    main()
