# How lit runs the tests of the compiler: which files are tests, which tools they may call.
import os

import lit.formats
import lit.util

config.name = "deepstride"
config.test_format = lit.formats.ShTest(execute_external=False)  # the internal shell: needed by lit --update-tests
config.suffixes = [".mlir", ".onnxtext", ".test"]
config.excludes = ["Inputs", "unit", "integration", "tools/Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.ds_build_dir, "test")

path = os.pathsep.join([config.ds_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")])
config.environment["PATH"] = path
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["DS_CACHE"] = ""  # a package of yesterday must not hide a fault
for name in ("DS_GEN_DOCS", "HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%python", f"'{config.python}'"))
config.substitutions.append(
    ("%onnxtext", f"'{config.python}' '{config.test_source_root}/tools/onnxtext2onnx.py'"))
config.substitutions.append(("%plugin", config.plugin))
config.substitutions.append(
    ("%includes", f"-I{config.ds_source_dir} -I{config.ds_build_dir} -isystem {config.llvm_include_dir}"))
config.substitutions.append(("%root", config.ds_source_dir))
# A hang is a failure. Without psutil, lit cannot kill what a test started.
if lit.util.killProcessAndChildrenIsSupported()[0]:
    lit_config.maxIndividualTestTime = 1200 if "SANITIZED" in os.environ else 120

# What the machine can run, for tests that execute code made for a certain CPU.
try:
    with open("/proc/cpuinfo") as cpuinfo:
        flags = next((line.split(":", 1)[1].split() for line in cpuinfo if line.startswith("flags")), [])
except OSError:
    flags = []
for feature in ("avx2", "avx512f", "amx_tile"):
    if feature in flags:
        config.available_features.add(feature)
