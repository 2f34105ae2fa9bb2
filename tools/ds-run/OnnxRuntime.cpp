#include "tools/ds-run/OnnxRuntime.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/io/Npz.h"
#include "tools/ds-run/launch/ChildProcess.h"
#include "tools/ds-run/launch/Environment.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace ds {
namespace {

// Inputs come as npz on standard input, outputs go as npz to standard output; the last line of an error is its text.
// Members are written by hand: numpy.savez has no way to call one "file".
const char *const script = R"(
import io, sys, zipfile
try:
    import numpy, onnxruntime
    if sys.argv[2:]:
        import onnx
except ImportError as error:
    sys.exit(f"{sys.executable} has no module {error.name}; DS_PYTHON=PROGRAM names a Python that has it")
try:
    model, values = sys.argv[1], sys.argv[2:]
    given = numpy.load(io.BytesIO(sys.stdin.buffer.read()))
    if values:
        graph = onnx.load(model)
        known = {output.name for output in graph.graph.output}
        graph.graph.output.extend(onnx.ValueInfoProto(name=name) for name in values if name not in known)
        model = graph.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    missing = [item.name for item in session.get_inputs() if item.name not in given]
    if missing:
        sys.exit(f"the model has an input '{missing[0]}', which the package does not have")
    names = [item.name for item in session.get_outputs()]
    results = session.run(names, {item.name: given[item.name] for item in session.get_inputs()})
    with zipfile.ZipFile(sys.stdout.buffer, "w") as archive:
        for name, array in zip(names, results):
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                numpy.lib.format.write_array(member, numpy.asarray(array), allow_pickle=False)
except Exception as error:
    sys.exit(" ".join(str(error).split()) or type(error).__name__)
)";

class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {
    if (number < 0)
      fail(ErrorCode::Io, "--onnxruntime: ", std::strerror(errno));
  }
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  void reset() {
    if (number >= 0)
      close(std::exchange(number, -1));
  }
  int get() const { return number; }
  std::string path() const { return concat("/proc/self/fd/", number); }

private:
  int number;
};

// A write to a child that has ended already is an error, not the end of this process.
class PipesIgnored {
public:
  PipesIgnored() : before(std::signal(SIGPIPE, SIG_IGN)) {}
  ~PipesIgnored() { std::signal(SIGPIPE, before); }

private:
  void (*before)(int);
};

std::string lastLine(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

} // namespace

std::vector<NamedTensor> runOnnxRuntime(const std::string &model, const std::vector<NamedView> &inputs,
                                        const std::vector<std::string> &values) {
  if (!isThere(model))
    fail(ErrorCode::BadFile, "--onnxruntime: ", model, ": nothing is there, expected an ONNX model");
  const char *named = std::getenv("DS_PYTHON");
  ChildSpec child;
  child.arguments = {named && *named ? named : "python3", "-c", script, model};
  child.arguments.insert(child.arguments.end(), values.begin(), values.end());
  child.environment = environmentWith({});
  child.deathSignal = SIGKILL;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(ErrorCode::Io, "--onnxruntime: ", std::strerror(errno));
  Descriptor readEnd(ends[0]), writeEnd(ends[1]);
  Descriptor results(memfd_create("outputs", MFD_CLOEXEC)), errors(memfd_create("errors", MFD_CLOEXEC));
  child.input = readEnd.get(), child.output = results.get(), child.error = errors.get();
  PipesIgnored guard;
  pid_t pid = annotated("--onnxruntime", [&] { return startChild(child); });
  readEnd.reset();
  std::string trouble;
  try {
    writeNpz(writeEnd.path(), inputs);
  } catch (const Error &error) { // it has ended early, and says why
    trouble = error.what();
  }
  writeEnd.reset();
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  constexpr size_t mostText = 1 << 20;
  std::string said = lastLine(readTextFile(errors.path(), mostText));
  if (WIFSIGNALED(status))
    said = concat(child.arguments[0], " was ended by ", signalText(WTERMSIG(status)));
  if (status != 0 || !trouble.empty())
    fail(ErrorCode::Execution, "--onnxruntime: ", model, ": ", said.empty() ? trouble : said);
  return annotated("--onnxruntime: what it gave", [&] { return readNpz(results.path()); });
}

} // namespace ds
