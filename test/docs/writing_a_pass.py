"""Does what docs/writing-a-pass.md says, in a copy of the parts of the tree that it touches."""
import argparse
import re
import shutil
import subprocess
from pathlib import Path

NAME, FLAG, PHASE = "FoldDoubleNegation", "fold-double-negation", "graph"

PLUGIN = f"""#include "passes/{PHASE}/Passes.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {{
  return {{MLIR_PLUGIN_API_VERSION, "example", "1", [] {{ deepstride::register{NAME}(); }}}};
}}
"""


def run(*command, shell=False, **keywords):
    done = subprocess.run(command[0] if shell else list(map(str, command)), shell=shell, capture_output=True, text=True,
                          **keywords)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--includes")
    arguments = parser.parse_args()
    root, tree = arguments.root, arguments.work / "tree"
    text = (root / "docs/writing-a-pass.md").read_text()
    for part in ("passes", "utils"):
        shutil.copytree(root / part, tree / part)

    blocks = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", text, re.M | re.S)
    commands = [line for kind, _, body in blocks if kind == "sh" for line in body.splitlines()]
    assert commands[0] == f"utils/new-pass {PHASE} {NAME}", commands
    run(tree / "utils/new-pass", *commands[0].split()[1:])
    template = build(tree, arguments, "template")
    test = tree / f"test/passes/{PHASE}/{FLAG}.mlir"
    assert "FIXME" in test.read_text()
    assert subprocess.run(test_lines(test, template)[0], shell=True, capture_output=True).returncode, "the empty test passes"

    for kind, path, body in blocks:
        if path:
            (tree / path).write_text(body)
    plugin = build(tree, arguments, "filled")
    for line in test_lines(test, plugin):
        run(line, shell=True)
    assert f"build/bin/ds-opt test/passes/{PHASE}/{FLAG}.mlir --split-input-file --ds-{FLAG}" in commands
    printed = run("ds-opt", test, "--split-input-file", *flags(plugin))
    promised = next(body for kind, _, body in blocks if kind == "text")
    for line in promised.splitlines():
        assert line in printed, f"expected '{line}' in:\n{printed}"


def flags(plugin):
    return [f"--load-pass-plugin={plugin}", f"--pass-pipeline=builtin.module(func.func(ds-{FLAG}))"]


def test_lines(test, plugin):
    load, pipeline = flags(plugin)
    return [line.replace("%s", str(test)).replace(f"--ds-{FLAG}", f"'{load}' '{pipeline}'")
            for line in re.findall(r"^// RUN: (.*)$", test.read_text(), re.M)]


def build(tree, arguments, name):
    """The pass as a plugin: ds-opt itself takes the rest of the build to link."""
    work = arguments.work / name
    generated = work / f"passes/{PHASE}/Passes.h.inc"
    generated.parent.mkdir(parents=True)
    run("mlir-tblgen", "-gen-pass-decls", f"-name={PHASE.capitalize()}", tree / f"passes/{PHASE}/Passes.td",
        "-I/usr/lib/llvm-22/include", "-o", generated)
    (work / "plugin.cpp").write_text(PLUGIN)
    library = work / "plugin.so"
    # Lazy binding: the registration code names the other passes of the phase, which only ds-opt has.
    run("clang++-22", "-std=c++17", "-shared", "-fPIC", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
        "-D_GNU_SOURCE", f"-I{work}", f"-I{tree}", *arguments.includes.split(), tree / f"passes/{PHASE}/{NAME}.cpp",
        work / "plugin.cpp", "-Wl,-z,lazy", "-o", library)
    return library


if __name__ == "__main__":
    main()
