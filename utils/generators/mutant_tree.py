"""Copies of the sources with builds of their own, in which utils/check-mutants builds its mutants.

Where the kernel lets us, a copy's commands see it mounted in the place of the tree that it was made of. Then that tree's
build is good for the copy, and only what a mutant changes is compiled. Elsewhere a copy is built from nothing.
"""
import os
import shutil
import signal
import subprocess
import tempfile

# In a mount namespace of its own: the copy ($2) in the place of the tree ($1), which lends it what is not of its build.
MOUNT = """for shared in venv zoo; do
  if [ -d "$1/build/$shared" ]; then mkdir -p "$2/build/$shared" && mount --bind "$1/build/$shared" "$2/build/$shared" || exit 1; fi
done
mount --rbind "$2" "$1" && cd "$1" && shift 2 && exec "$@"
"""
# What a build has at its top besides folders named as those of the sources.
MADE = ("CMakeCache.txt", "CMakeFiles", "CTestTestfile.cmake", "DeepstridePch.cpp", "build.ninja", ".ninja_deps", ".ninja_log", "bin",
        "cmake_install.cmake", "compile_commands.json", "lib")


def run(command, seconds, cwd=None, environment=None):
    """(exit code, None when time was up; output). Ends what the command started, too."""
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(list(map(str, command)), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=cwd,
                                 env={**os.environ, **(environment or {})}, start_new_session=True)
        try:
            code = child.wait(max(seconds, 1))
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        log.seek(0)
        return code, log.read().decode(errors="replace")


def unsharing():
    """The command that runs another one among mounts of its own, or None where that is not allowed."""
    command = ["unshare", "--mount", "--propagation", "private", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    probe = [*command, "mount", "--bind", "/tmp", "/tmp"]
    try:
        return command if run(probe, 10)[0] == 0 else None
    except OSError:
        return None


class Tree:
    """A copy of the sources with its own build; a mutant is in it for as long as it is tested."""

    def __init__(self, root, path, options=()):
        self.root, self.path, self.options = root, path, [*options]
        self.build = path / "build"
        self.unshare = unsharing()
        self.place = root if self.unshare else path  # where its commands find it

    def run(self, command, seconds, environment=None):
        if not self.unshare:
            return run(command, seconds, self.path, environment)
        return run([*self.unshare, "sh", "-c", MOUNT, "sh", self.root, self.path, *command], seconds, "/", environment)

    def follow(self, names):
        """Makes the files those of the tree; only what differs is written, for the build's sake."""
        if self.unshare and not self.path.exists() and (self.root / "build/build.ninja").exists():
            self.copy(names)
        for name in names:
            source, target = self.root / name, self.path / name
            content = source.read_bytes()
            if not target.exists() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            shutil.copymode(source, target)
        for path in [path for path in self.path.rglob("*") if path.is_file() and self.build not in path.parents]:
            if str(path.relative_to(self.path)) not in names:
                path.unlink()
        self.build.mkdir(parents=True, exist_ok=True)
        for shared in ("venv", "zoo"):
            link = self.build / shared
            if not self.unshare and not link.is_symlink() and (self.root / "build" / shared).exists():
                link.symlink_to((self.root / "build" / shared).resolve())

    def copy(self, names):
        """Sources and build with their times, as long as the build is that of these sources."""
        for name in names:
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.root / name, target)
        self.build.mkdir()
        parts = [part for part in (self.root / "build").iterdir() if part.name in MADE or (self.root / part.name).is_dir()]
        code, output = run(["cp", "-a", *parts, self.build], 600)
        if code != 0:
            shutil.rmtree(self.path)
            raise OSError(f"cannot copy {self.root / 'build'}: {output}")

    def prepare(self):
        """Configures and builds; returns what went wrong."""
        if self.options or not (self.build / "build.ninja").exists():
            proto = next((self.root / "build/venv").glob("lib/python3*/site-packages/onnx/onnx-ml.proto"), "")
            code, output = self.run(["cmake", "--preset", "dev", f"-DDS_ONNX_PROTO={proto}", *self.options], 300)
            if code != 0:
                return output
        code, output = self.run(["ninja", "-C", self.place / "build"], 7200)
        return None if code == 0 else output

    def compile(self, seconds):
        """Whether the sources, with a mutant among them, compile."""
        targets = ["bin/ds-opt", *(f"bin/{unit}" for unit in self.units())]
        return self.run(["ninja", "-C", self.place / "build", *targets], seconds)[0] == 0

    def units(self):
        """The unit tests of the compiler; the runtime's hold no line of it."""
        runtime = {"ds-api-unit", "ds-comm-unit", "ds-data-unit", "ds-ranks-unit", "ds-runtime-unit"}
        return sorted({path.name for path in (self.build / "bin").glob("ds-*-unit")} - runtime)
