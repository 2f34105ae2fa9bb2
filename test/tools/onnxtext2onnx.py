#!/usr/bin/env python3
"""Turns ONNX's textual form into a model file: onnxtext2onnx.py IN.onnxtext OUT.onnx

Lines that start with `//` are dropped first, so that a test carries its RUN and CHECK lines. The
model is not checked: tests of the importer need wrong ones.
"""

import sys

import onnx.parser


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        # Dropped lines stay as empty ones: the parser's errors then name the right line.
        lines = ["\n" if line.lstrip().startswith("//") else line for line in file]
    try:
        model = onnx.parser.parse_model("".join(lines))
    except onnx.parser.ParseError as error:
        print(f"{source}: {error}", file=sys.stderr)
        return 1
    with open(target, "wb") as file:
        file.write(model.SerializeToString())
    return 0


if __name__ == "__main__":
    sys.exit(main())
