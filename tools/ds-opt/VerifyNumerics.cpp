// The numeric check of passes. The program is made runnable (entries, sizes, files of random weights where the named
// ones do not exist), printed, and sent through the passes. The text before is compiled as it stands, without folding,
// the text after by the reference pipeline; ds-run compares the packages function by function, on random inputs of
// several sizes.
#include "tools/ds-opt/VerifyNumerics.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Guards.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Parser/Parser.h"
#include "tools/ds-opt/Driver.h"
#include "tools/ds-opt/Message.h"
#include "tools/ds-opt/Workspace.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace mlir;

namespace deepstride {

/// What the dimensions of run time are in one comparison.
enum class Draw { Primes, Equal, Ones, Zeros };

static StringRef drawName(Draw draw) {
  switch (draw) {
  case Draw::Primes: return "different sizes";
  case Draw::Equal: return "equal sizes";
  case Draw::Ones: return "sizes of 1";
  case Draw::Zeros: return "sizes of 0";
  }
  llvm_unreachable("all draws handled");
}

/// Primes differ from each other, and no product of some is that of others: a reshape by the wrong sizes shows.
static int64_t sizeInDraw(Draw draw, size_t index) {
  static constexpr int64_t primes[] = {3, 5, 7, 11, 13, 2, 17, 19, 23, 29};
  switch (draw) {
  case Draw::Primes: return primes[index % std::size(primes)];
  case Draw::Equal: return 3;
  case Draw::Ones: return 1;
  case Draw::Zeros: return 0;
  }
  llvm_unreachable("all draws handled");
}

/// What kept the stream from being written. One that is closed with its error unread would end the process.
static std::error_code finish(llvm::raw_fd_ostream &stream) {
  stream.flush();
  std::error_code code = stream.error();
  stream.clear_error();
  return code;
}

/// Whether the file was written; says why not.
static bool writeFile(StringRef path, StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  if (!code) {
    stream << text;
    code = finish(stream);
  }
  if (code)
    printMessage("verify-numerics: error: cannot write '" + path + "': " + code.message());
  return !code;
}

/// One file of random floats stands for all files that do not exist. Says why there is none on failure.
static bool provideWeights(ModuleOp module, const std::string &path) {
  int64_t end = 0;
  SmallVector<ds::SourceOp> sources;
  module.walk([&](ds::SourceOp source) {
    if (llvm::sys::fs::exists(source.getFile()))
      return;
    sources.push_back(source);
    end = std::max<int64_t>(end, source.getOffset() + source.getLength());
  });
  for (ds::SourceOp source : sources)
    source.setFile(path);
  constexpr int64_t limit = int64_t(1) << 28;
  if (end > limit) {
    llvm::errs() << "verify-numerics: error: the weights are too large to be made up\n";
    return false;
  }
  std::vector<float> numbers(end / sizeof(float) + 1);
  std::minstd_rand random(1);
  for (float &number : numbers)
    number = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  return sources.empty() || writeFile(path, StringRef(reinterpret_cast<const char *>(numbers.data()), end));
}

/// Whether a package can offer the function: only tensors cross its border.
static bool canRun(func::FuncOp function) {
  return !function.isExternal() && llvm::all_of(function.getArgumentTypes(), llvm::IsaPred<RankedTensorType>) &&
         llvm::all_of(function.getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

namespace {

/// A function that is run.
struct Entry {
  std::string name;
  bool isNarrow;
  std::vector<std::string> symbols; // of its sizes
};

} // namespace

/// Whether some of it is computed in floats of 16 bits or less.
static bool isNarrow(func::FuncOp function) {
  auto isNarrowType = [](Type type) {
    auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
    return element && element.getWidth() <= 16;
  };
  bool found = llvm::any_of(function.getArgumentTypes(), isNarrowType);
  function.walk([&](Operation *op) { found |= llvm::any_of(op->getResultTypes(), isNarrowType); });
  return found;
}

/// Gives every function what an entry has, without touching what it has already.
static std::vector<Entry> makeEntries(ModuleOp module) {
  std::vector<Entry> entries;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!canRun(function)) {
      llvm::errs() << "verify-numerics: @" << function.getSymName()
                   << ": skipped, it does not only take and give tensors\n";
      continue;
    }
    Entry &entry = entries.emplace_back(Entry{function.getSymName().str(), isNarrow(function), {}});
    Builder builder(function.getContext());
    function->setAttr(ds::entryAttr, builder.getUnitAttr());
    function->removeAttr(ds::guardsAttr); // each is compared for itself
    function->removeAttr(ds::groupAttr);
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
      std::string name = ("arg" + Twine(index)).str();
      if (!function.getArgAttr(index, ds::nameAttr))
        function.setArgAttr(index, ds::nameAttr, builder.getStringAttr(name));
      auto dims = function.getArgAttrOfType<ArrayAttr>(index, ds::dimsAttr);
      if (!dims) {
        dims = toAttribute(function.getContext(), factsOfType(type, name + "_d").sizes);
        function.setArgAttr(index, ds::dimsAttr, dims);
      }
      for (const SizeExpr &size : sizesFromAttribute(dims).value_or(SizeVector()))
        for (const SizeAtom &symbol : size.symbols())
          if (symbol.kind() == SizeAtom::Kind::Symbol && !llvm::is_contained(entry.symbols, symbol.name()))
            entry.symbols.push_back(symbol.name().str());
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      if (!function.getResultAttr(index, ds::nameAttr))
        function.setResultAttr(index, ds::nameAttr, builder.getStringAttr("result" + Twine(index)));
  }
  return entries;
}

/// The text with states as inputs and outputs like others: they begin with random numbers, and what becomes of them is
/// compared. Nothing where it cannot be read.
static std::optional<std::string> untieStates(StringRef text, const DialectRegistry &registry) {
  MLIRContext context(registry);
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return std::nullopt;
  for (auto function : module->getOps<func::FuncOp>()) {
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      function.removeArgAttr(index, ds::stateAttr);
      function.removeArgAttr(index, ds::initialAttr);
      function.removeArgAttr(index, ds::statisticAttr);
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      function.removeResultAttr(index, ds::stateAttr);
  }
  std::string result;
  llvm::raw_string_ostream stream(result);
  module->print(stream);
  return result;
}

static int compile(const std::string &input, const std::string &output, bool folds) {
  DriverOptions options;
  options.input = input;
  options.output = output;
  options.reference = Reference::Native;
  options.folds = folds;
  return runDriver(options);
}

/// The text of a chunk after the passes, or nothing where they fail.
static std::optional<std::string> runPasses(StringRef text, DialectRegistry &registry,
                                            const MlirOptMainConfig &config) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  if (failed(MlirOptMain(stream, llvm::MemoryBuffer::getMemBufferCopy(text), registry, config)))
    return std::nullopt;
  return result;
}

namespace {

/// The two packages of a chunk, compared entry by entry.
class Comparison {
public:
  Comparison(StringRef runTool, const Workspace &workspace) : runTool(runTool.str()), workspace(workspace) {}

  /// Whether the entry computes the same in both packages, at all sizes that both admit and at least at one.
  bool run(const Entry &entry) {
    unsigned ran = 0;
    for (Draw draw : {Draw::Primes, Draw::Equal, Draw::Ones, Draw::Zeros}) {
      // Equal sizes are for programs that admit no others.
      if ((draw == Draw::Equal && ran) || (draw != Draw::Primes && entry.symbols.empty()))
        continue;
      switch (runDraw(entry, draw)) {
      case Outcome::Same: ++ran; break;
      case Outcome::Different: return false;
      case Outcome::RefusedByBoth: break;
      }
    }
    if (!ran) {
      llvm::errs() << "verify-numerics: @" << entry.name << ": error: refused at all sizes, so nothing was compared\n"
                   << log("compare.log");
      return false;
    }
    llvm::errs() << "verify-numerics: @" << entry.name << ": same results before and after\n";
    return true;
  }

private:
  enum class Outcome { Same, Different, RefusedByBoth };

  /// A chain in f16 rounds to 11 bits at every op, the block that replaces it once.
  Outcome runDraw(const Entry &entry, Draw draw) {
    std::vector<std::string> common = {"--entry", entry.name, "--seed", std::to_string(static_cast<int>(draw) + 1)};
    for (auto [index, symbol] : llvm::enumerate(entry.symbols)) {
      common.push_back("--dim");
      common.push_back(symbol + "=" + std::to_string(sizeInDraw(draw, index)));
    }
    std::string before = workspace.path("before.dsp"), after = workspace.path("after.dsp");
    std::vector<std::string> compare = {"compare", before, after, entry.isNarrow ? "--rtol=2e-2" : "--rtol=1e-3",
                                        entry.isNarrow ? "--atol=5e-3" : "--atol=1e-5"};
    if (call("compare.log", compare, common) == 0)
      return Outcome::Same;
    // Sizes that no run admits are no difference; sizes that only one of the two admits are.
    int codes[] = {call("before.log", {before}, common), call("after.log", {after}, common)};
    if (codes[0] == 1 && codes[1] == 1)
      return Outcome::RefusedByBoth;
    llvm::errs() << "verify-numerics: @" << entry.name << ": error: results differ before and after the passes, at "
                 << drawName(draw) << "\n";
    if (codes[0] || codes[1])
      llvm::errs() << "the program " << (codes[0] ? "before" : "after")
                   << " the passes does not run, the other does: " << log(codes[0] ? "before.log" : "after.log");
    else
      llvm::errs() << log("compare.log");
    return Outcome::Different;
  }

  int call(StringRef logName, ArrayRef<std::string> command, ArrayRef<std::string> common) {
    SmallVector<StringRef> arguments = {runTool};
    arguments.append(command.begin(), command.end());
    arguments.append(common.begin(), common.end());
    std::string path = workspace.path(logName), error;
    std::optional<StringRef> redirects[] = {StringRef(""), StringRef(path), StringRef(path)};
    int code = llvm::sys::ExecuteAndWait(runTool, arguments, std::nullopt, redirects, 0, 0, &error);
    llvm::errs() << error;
    return code;
  }

  std::string log(StringRef name) const {
    auto buffer = llvm::MemoryBuffer::getFile(workspace.path(name));
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

  std::string runTool;
  const Workspace &workspace;
};

} // namespace

/// Adds to `compared` the functions of the chunk that were run.
static int verifyChunk(StringRef text, llvm::raw_ostream &os, DialectRegistry &registry,
                       const MlirOptMainConfig &config, StringRef runTool, size_t &compared) {
  Workspace workspace("ds-verify-numerics-", {"before.dsp", "after.dsp"});
  if (workspace.error) {
    llvm::errs() << "verify-numerics: error: cannot create a temporary folder: " << workspace.error.message() << "\n";
    return 1;
  }
  std::string before;
  std::vector<Entry> entries;
  {
    MLIRContext context(registry);
    auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    if (!module)
      return 1;
    entries = makeEntries(*module);
    if (!provideWeights(*module, workspace.path("weights.bin")))
      return 1;
    llvm::raw_string_ostream stream(before);
    module->print(stream);
  }
  auto after = runPasses(before, registry, config);
  if (!after)
    return 1;
  os << *after;
  if (entries.empty())
    return 0;
  auto untied = untieStates(before, registry), untiedAfter = untieStates(*after, registry);
  if (!untied || !untiedAfter || !writeFile(workspace.path("before.mlir"), *untied) ||
      !writeFile(workspace.path("after.mlir"), *untiedAfter))
    return 1;
  for (StringRef name : {"before", "after"})
    if (int code = compile(workspace.path(name + ".mlir"), workspace.path(name + ".dsp"), name == "after")) {
      llvm::errs() << "verify-numerics: error: the program " << name << " the passes cannot be compiled\n";
      return code;
    }
  Comparison comparison(runTool, workspace);
  bool same = true;
  for (const Entry &entry : entries)
    same &= comparison.run(entry);
  compared += entries.size();
  return same ? 0 : 1;
}

int verifyNumerics(StringRef input, StringRef output, DialectRegistry &registry, const MlirOptMainConfig &config,
                   StringRef runTool) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input);
  if (!buffer) {
    printMessage(input + ": error: " + buffer.getError().message());
    return 1;
  }
  std::error_code code;
  llvm::raw_fd_ostream os(output, code);
  if (code) {
    printMessage(output + ": error: " + code.message());
    return 1;
  }
  SmallVector<StringRef> chunks;
  if (config.inputSplitMarker().empty())
    chunks.push_back((*buffer)->getBuffer());
  else
    (*buffer)->getBuffer().split(chunks, config.inputSplitMarker());
  MlirOptMainConfig single = config;
  single.splitInputFile("");
  int worst = 0;
  size_t compared = 0;
  for (StringRef chunk : chunks) {
    worst = std::max(worst, verifyChunk(chunk, os, registry, single, runTool, compared));
    if (chunk.data() != chunks.back().data())
      os << "// -----\n";
  }
  if (std::error_code written = finish(os)) {
    printMessage(output + ": error: " + written.message());
    return 1;
  }
  if (!compared && worst == 0) {
    llvm::errs() << "verify-numerics: error: " << input
                 << " has no function that can be run, so nothing was compared\n";
    return 1;
  }
  return worst;
}

} // namespace deepstride
