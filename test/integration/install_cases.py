"""What cmake --install gives: the runtime for programs of others (docs/embedding.md), and the compiler for passes of others."""
import os
import re
import subprocess
import sys
from pathlib import Path

from kit import BIN, ROOT, Skip, case, expect, tool
from training_docs_cases import blocks, document

BUILD = BIN.parent


def run(*command, **keywords):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **keywords)
    expect(done.returncode == 0, f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def install(prefix, component, source):
    """Installs what a folder of the tree declares; the check for a release stands at the tree's top, and CI has none."""
    if "SANITIZED" in os.environ:
        raise Skip("programs of others are not built with sanitizers")
    script = BUILD / source / "cmake_install.cmake"
    if not script.exists() or not (BUILD / "runtime/libds_runtime.a").exists():
        raise Skip("the tools do not lie in a build tree")
    run("cmake", f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_INSTALL_COMPONENT={component}", "-P", script)
    return prefix


def declared(header):
    """Functions of a C header, by its text."""
    return set(re.findall(r"^DS_API [^;(]*?\b(ds_\w+)\(", (ROOT / "runtime/include/ds" / header).read_text(), re.M))


@case
def the_library_exports_the_api_alone(folder):
    install(folder, "runtime", "runtime")
    (library,) = folder.rglob("libds_runtime.so")
    names = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}
    expected = declared("engine.h") | declared("runtime.h") | declared("trainer.h")
    expect(len(expected) > 50 and names == expected, f"exported, or declared, but not both: {sorted(names ^ expected)}")


@case
def what_is_installed(folder):
    install(folder, "runtime", "runtime")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    headers = {name for name in found if name.startswith("include/")}
    expect(headers == {f"include/ds/{name}" for name in ("ds_abi.h", "engine.h", "engine.hpp", "runtime.h", "runtime.hpp", "trainer.h")}, f"{headers}")
    for name in ("LICENSE", "README.md", "embedding.md", "examples/run_package.c", "examples/CMakeLists.txt"):
        expect(f"share/doc/deepstride/{name}" in found, f"no {name} among {sorted(found)}")
    for name in ("libds_runtime.a", "pkgconfig/deepstride-runtime.pc", "cmake/DeepstrideRuntime/DeepstrideRuntimeConfig.cmake"):
        expect(any(each.endswith("/" + name) for each in found), f"no {name} among {sorted(found)}")


@case(slow=True)
def a_release_installs(folder):
    """The tree of utils/wheel, and of the page: built where it is not, installed, and used as the page says."""
    proto = re.search("^DS_ONNX_PROTO:.*?=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]
    build, root = ROOT / "build-release", folder / "deepstride"
    if not (build / "build.ninja").exists():
        run("cmake", "--preset", "release", f"-DDS_ONNX_PROTO={proto}", cwd=ROOT)
    targets = ["ds-run", "ds_runtime", "ds_runtime_static", *(["ds_mpi"] if "ds_mpi:" in run("ninja", "-C", build, "-t", "targets", "all") else [])]
    run("cmake", "--build", build, "-j", "2", "--target", *targets)
    run("cmake", "--install", build, "--prefix", root, "--component", "runtime")
    large = {path.name: path.stat().st_size for path in root.rglob("*") if path.is_file() and path.stat().st_size > 10 << 20}
    expect(not set(large) - {"libds_runtime.a"}, f"not what an optimized build would be: {large}")
    version = run(root / "bin/ds-run", "--version")
    expect(version.startswith("ds-run "), version)
    use_as_the_page_says(folder)


def use_as_the_page_says(folder):
    """Runs the commands behind those that install, with the runtime in deepstride/ of the folder."""
    text = document("embedding")
    pages = blocks(text)
    (first, *others) = [lines for language, lines in pages if language == "sh"]
    expect([line.split()[:2] for line in first] == [["cmake", "--preset"], ["cmake", "--build"], ["cmake", "--install"]],
           f"the page installs in another way, which this test has to know: {first}")
    outputs = [lines for language, lines in pages if language == "text"]
    script = "set -euo pipefail\n" + "\n".join("\n".join(lines) for lines in others)
    environment = {**os.environ, "HOME": str(folder), "PATH": f"{Path(sys.executable).parent}:{BIN}:{os.environ['PATH']}"}
    printed = run("bash", "-c", script, cwd=folder, env=environment)
    for lines in outputs:
        expect("\n".join(lines) + "\n" in printed, f"expected {lines} in:\n{printed}")
    # x is ones: sums of 1 + 1, in two rows of two; and what the static program prints is what the shared one did.
    expect("y: f32 [2, 2] sum 8\n" in printed and printed.count("kernels took less than a second") == 2, printed)
    needed = run("readelf", "-d", folder / "examples-build/embed_static")
    expect("libds_runtime" not in needed and "libcrypto" in needed, needed)
    # The page shows the heart of the program.
    (shown,) = ["\n".join(lines) for language, lines in pages if language == "cpp"]
    program = re.sub(r"^    ", "", (ROOT / "runtime/example/embed.cpp").read_text(), flags=re.M)
    expect(shown in program, "the page shows another program than runtime/example/embed.cpp")


@case(seconds=12)
def commands_of_the_page_on_embedding(folder):
    install(folder / "deepstride", "runtime", "runtime")
    use_as_the_page_says(folder)


@case(seconds=12)
def passes_out_of_tree(folder):
    prefix = install(folder / "root", "compiler", "tools/ds-opt")
    headers = {str(path.relative_to(prefix)).split("/")[:3] == ["include", "ds", "compiler"] for path in (prefix / "include").rglob("*.h")}
    expect(headers == {True}, "headers outside of include/ds/compiler")
    cache = (BUILD / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]
    run("cmake", "-S", ROOT / "test/plugin/outside", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={compiler}")
    run("cmake", "--build", folder / "build")
    program = folder / "program.mlir"
    program.write_text("""func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = ds.transpose %x [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = ds.transpose %0 [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
""")
    done = tool("ds-opt", program, f"--load-pass-plugin={folder / 'build/count-transposes.so'}",
                "--pass-pipeline=builtin.module(func.func(count-transposes))")
    expect("remark: 2 transposes" in done.err, done.err)
