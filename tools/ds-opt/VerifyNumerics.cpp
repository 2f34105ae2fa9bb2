// The numeric check of passes. The program is made runnable (entries, sizes, files of random weights where the named
// ones do not exist), printed, and sent through the passes; both texts are compiled by the reference pipeline and
// ds-run compares the packages on random inputs. What a chunk's functions compute is compared function by function.
#include "tools/ds-opt/VerifyNumerics.h"

#include "dialects/ds/DsDialect.h"
#include "dialects/ds/Guards.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "tools/ds-opt/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace mlir;

namespace deepstride {

/// The size given to every dimension of run time: small, odd, and not 1, which would hide wrong broadcasts.
static constexpr int64_t dimensionSize = 3;

namespace {

/// A folder that goes away with the check.
class Workspace {
public:
  Workspace() { valid = !llvm::sys::fs::createUniqueDirectory("ds-verify-numerics", folder); }
  ~Workspace() {
    if (valid)
      (void)llvm::sys::fs::remove_directories(folder);
  }
  std::string path(const Twine &name) const {
    SmallString<128> result(folder);
    llvm::sys::path::append(result, name);
    return std::string(result);
  }
  bool valid;

private:
  SmallString<128> folder;
};

} // namespace

static bool writeFile(StringRef path, StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code);
  stream << text;
  return !code;
}

/// One file of random floats stands for all files that do not exist.
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
  if (end > limit)
    return false;
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

/// Gives every function what an entry has, without touching what it has already. Returns the symbols of its sizes.
static std::vector<std::string> makeEntries(ModuleOp module) {
  std::vector<std::string> symbols;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!canRun(function))
      continue;
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
        for (const std::string &symbol : size.symbols())
          if (!llvm::is_contained(symbols, symbol))
            symbols.push_back(symbol);
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index)
      if (!function.getResultAttr(index, ds::nameAttr))
        function.setResultAttr(index, ds::nameAttr, builder.getStringAttr("result" + Twine(index)));
  }
  return symbols;
}

static int compile(const std::string &input, const std::string &output) {
  DriverOptions options;
  options.input = input;
  options.output = output;
  options.reference = Reference::Native;
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

/// A chain in f16 rounds to 11 bits at every op, the block that replaces it once.
static int compare(StringRef runTool, const Workspace &workspace, StringRef entry, ArrayRef<std::string> symbols,
                   bool isNarrow) {
  std::vector<std::string> command = {runTool.str(),
                                      "compare",
                                      workspace.path("before.dsp"),
                                      workspace.path("after.dsp"),
                                      isNarrow ? "--rtol=2e-2" : "--rtol=1e-3",
                                      isNarrow ? "--atol=5e-3" : "--atol=1e-5",
                                      "--entry",
                                      entry.str()};
  for (const std::string &symbol : symbols) {
    command.push_back("--dim");
    command.push_back(symbol + "=" + std::to_string(dimensionSize));
  }
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::string log = workspace.path("compare.log"), error;
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  int code = llvm::sys::ExecuteAndWait(runTool, arguments, std::nullopt, redirects, 0, 0, &error);
  if (code == 0) {
    llvm::errs() << "verify-numerics: @" << entry << ": same results before and after\n";
    return 0;
  }
  llvm::errs() << "verify-numerics: @" << entry << ": error: results differ before and after the passes\n" << error;
  if (auto buffer = llvm::MemoryBuffer::getFile(log))
    llvm::errs() << (*buffer)->getBuffer();
  return 1;
}

static int verifyChunk(StringRef text, llvm::raw_ostream &os, DialectRegistry &registry,
                       const MlirOptMainConfig &config, StringRef runTool) {
  Workspace workspace;
  if (!workspace.valid) {
    llvm::errs() << "verify-numerics: error: cannot create a temporary folder\n";
    return 1;
  }
  std::string before;
  std::vector<std::string> symbols, entries;
  {
    MLIRContext context(registry);
    auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    if (!module)
      return 1;
    symbols = makeEntries(*module);
    for (auto function : module->getOps<func::FuncOp>())
      if (canRun(function))
        entries.push_back(function.getSymName().str());
      else
        llvm::errs() << "verify-numerics: @" << function.getSymName()
                     << ": skipped, it does not only take and give tensors\n";
    if (!provideWeights(*module, workspace.path("weights.bin"))) {
      llvm::errs() << "verify-numerics: error: the weights are too large to be made up\n";
      return 1;
    }
    llvm::raw_string_ostream stream(before);
    module->print(stream);
  }
  auto after = runPasses(before, registry, config);
  if (!after)
    return 1;
  os << *after;
  if (entries.empty())
    return 0;
  if (!writeFile(workspace.path("before.mlir"), before) || !writeFile(workspace.path("after.mlir"), *after))
    return 1;
  for (StringRef name : {"before", "after"})
    if (int code = compile(workspace.path(name + ".mlir"), workspace.path(name + ".dsp"))) {
      llvm::errs() << "verify-numerics: error: the program " << name << " the passes cannot be compiled\n";
      return code;
    }
  int worst = 0;
  for (const std::string &entry : entries)
    worst = std::max(worst, compare(runTool, workspace, entry, symbols, text.contains("f16")));
  return worst;
}

int verifyNumerics(StringRef input, StringRef output, DialectRegistry &registry, const MlirOptMainConfig &config,
                   StringRef runTool) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input);
  if (!buffer) {
    llvm::errs() << input << ": error: " << buffer.getError().message() << "\n";
    return 1;
  }
  std::error_code code;
  llvm::raw_fd_ostream os(output, code);
  if (code) {
    llvm::errs() << output << ": error: " << code.message() << "\n";
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
  for (StringRef chunk : chunks) {
    worst = std::max(worst, verifyChunk(chunk, os, registry, single, runTool));
    if (chunk.data() != chunks.back().data())
      os << "// -----\n";
  }
  return worst;
}

} // namespace deepstride
