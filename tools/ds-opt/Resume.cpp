// Options that were given to the compilation of a dump are given again, before those of this command line; one that
// acts in a phase that is done is refused, for it could only be ignored.
#include "tools/ds-opt/Resume.h"

#include "dialects/ds/DsDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Parser/Parser.h"
#include "tools/ds-opt/ContentHash.h"
#include "tools/ds-opt/Message.h"
#include "tools/ds-opt/PackageDescription.h"
#include "tools/ds-opt/Registration.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace deepstride {

namespace {

/// An option that decides a program, and the first phase in which it acts.
struct Deciding {
  StringRef name;
  Phase acts;
  bool isFile = false;
};

} // namespace

static constexpr Deciding decidingOptions[] = {
    {"--dim", Phase::Import},
    {"--shape", Phase::Import},
    {"--mode", Phase::Import},
    {"--reference", Phase::Graph},
    {"--train", Phase::Graph},
    {"--freeze", Phase::Graph},
    {"--head", Phase::Graph},
    {"--seed", Phase::Graph},
    {"--untie", Phase::Graph},
    {"--loss", Phase::Training},
    {"--logits", Phase::Training},
    {"--labels", Phase::Training},
    {"--shift-labels", Phase::Training},
    {"--ignore-index", Phase::Training},
    {"--no-decay", Phase::Training},
    {"--config", Phase::Training, /*isFile=*/true},
    {"--strict", Phase::Training},
    {"--mesh", Phase::Training},
    {"--memory", Phase::Optimization},
    {"--quantize", Phase::Optimization},
    {"--activations", Phase::Optimization},
    {"--calibrate", Phase::Optimization, /*isFile=*/true},
    {"--precision", Phase::Optimization},
    {"--ceilings", Phase::Optimization, /*isFile=*/true},
    {"--fusion", Phase::Optimization},
    {"--mcpu", Phase::Optimization},
};

static const Deciding *decidingOption(StringRef option) {
  StringRef name = option.split('=').first;
  for (const Deciding &known : decidingOptions)
    if (known.name == name)
      return &known;
  return nullptr;
}

/// What says more about the loss that was, and is nothing to a new one.
static bool isOfOtherLoss(StringRef option, StringRef loss) {
  if (loss.empty() || loss == "cross_entropy")
    return false;
  bool isOfClasses = option == "--shift-labels" || option == "--ignore-index";
  return isOfClasses || (loss != "mse" && (option == "--logits" || option == "--labels"));
}

static std::string absolute(StringRef path) {
  SmallString<128> full(path);
  if (llvm::sys::fs::make_absolute(full))
    return path.str();
  return std::string(full);
}

static std::string describe(const CpuTarget &target) {
  return target.name + ", " + std::to_string(target.vectorBits) + " bits, " + llvm::join(target.features, " ");
}

static std::string digestOf(const std::string &path) {
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return text ? contentDigest((*text)->getBuffer()) : "";
}

/// Digests of the files beside the model that a program reads weights from. Each is read for the first dump alone: that
/// is when the compilation saw it.
static DictionaryAttr digestsOfFiles(ModuleOp program, const std::string &model) {
  static llvm::StringMap<std::string> known;
  NamedAttrList digests;
  Builder builder(program.getContext());
  program.walk([&](ds::SourceOp source) {
    StringRef file = source.getFile();
    if (file == model || digests.get(file))
      return;
    auto [entry, isNew] = known.try_emplace(file);
    if (isNew)
      entry->second = digestOf(file.str());
    digests.set(file, builder.getStringAttr(entry->second));
  });
  return digests.getDictionary(program.getContext());
}

void recordCompilation(ModuleOp copy, Phase phase, const DriverOptions &options, const CpuTarget &target) {
  Builder builder(copy.getContext());
  bool isForTarget = phase >= Phase::Optimization;
  SmallVector<Attribute> given;
  for (const std::string &option : options.deciding) {
    const Deciding *known = decidingOption(option);
    if (!known || (known->name == "--mcpu" && isForTarget))
      continue;
    auto [name, value] = StringRef(option).split('=');
    std::string text = value.empty() ? name.str() : option;
    if (known->isFile)
      text = (name + "=" + absolute(value)).str();
    given.push_back(builder.getStringAttr(text));
  }
  if (isForTarget && !options.cpus.empty())
    given.push_back(builder.getStringAttr("--mcpu=" + target.name));
  NamedAttrList record;
  record.set("phase", builder.getStringAttr(phaseInfo(phase).name));
  std::string model = absolute(options.done ? options.model : options.input);
  record.set("model", builder.getStringAttr(model));
  record.set("model_digest", builder.getStringAttr(digestOf(model)));
  record.set("options", builder.getArrayAttr(given));
  if (isForTarget)
    record.set("target", builder.getStringAttr(describe(target)));
  if (isForTarget && !options.calibrate.empty())
    record.set("calibrated", builder.getUnitAttr());
  if (!options.training.config.empty())
    record.set("config", builder.getStringAttr(digestOf(options.training.config)));
  copy.walk([](ds::SourceOp source) { source.setFile(absolute(source.getFile())); });
  if (DictionaryAttr files = digestsOfFiles(copy, model); !files.empty())
    record.set("files", files);
  copy->setAttr(compilationAttr, record.getDictionary(copy.getContext()));
}

/// The attribute of a dump; null where the input is none. Whoever imports a program that does not parse says why.
static DictionaryAttr readRecord(const std::string &input, MLIRContext &context, OwningOpRef<ModuleOp> &module,
                                 bool &isWrong) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(input, status) || !llvm::sys::fs::is_regular_file(status))
    return {}; // a stream can be read only once
  auto text = llvm::MemoryBuffer::getFile(input);
  if (!text || !(*text)->getBuffer().contains(compilationAttr))
    return {};
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  module = parseSourceString<ModuleOp>((*text)->getBuffer(), ParserConfig(&context));
  Attribute found = module ? (*module)->getAttr(compilationAttr) : Attribute();
  auto record = dyn_cast_if_present<DictionaryAttr>(found);
  isWrong = found && !record;
  return record;
}

int resumeOptions(DriverOptions &options) {
  if (options.isOnnx() || options.arguments.empty()) // --verify-numerics compiles programs as they are
    return 0;
  auto alone = [&options] { // nothing completes the options
    if (!options.misfit.empty())
      printMessage("ds-opt: " + options.misfit);
    return options.misfit.empty() ? 0 : 2;
  };
  auto fail = [input = options.input](const Twine &what, int code = 1) {
    printMessage(input + ": error: " + what);
    return code;
  };
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module;
  bool isWrong = false;
  DictionaryAttr record = readRecord(options.input, context, module, isWrong);
  auto phase = record ? record.getAs<StringAttr>("phase") : StringAttr();
  auto model = record ? record.getAs<StringAttr>("model") : StringAttr();
  auto given = record ? record.getAs<ArrayAttr>("options") : ArrayAttr();
  if (!record && !isWrong)
    return alone();
  std::optional<Phase> done = phase ? parsePhase(phase.getValue()) : std::nullopt;
  if (!done || *done == Phase::Codegen || !model || !given || !llvm::all_of(given, llvm::IsaPred<StringAttr>))
    return fail("'" + compilationAttr +
                "': expected the phase, model and options that --dump-dir writes; without the " +
                "attribute all phases run");
  std::vector<std::string> own = dimTexts(options);
  bool isTraining =
      llvm::any_of(given, [](Attribute option) { return cast<StringAttr>(option).getValue() == "--mode=train"; });
  if (!own.empty() && *done != Phase::Import && *done < Phase::Optimization && !isTraining)
    done = Phase::Import; // sizes fold there; the phases until here leave what is folded as it is
  for (const std::string &option : options.deciding) {
    const Deciding *known = decidingOption(option);
    if (known && known->acts <= *done && !(known->name == "--dim" && *done == Phase::Import))
      return fail(known->name + " acts from phase '" + phaseInfo(known->acts).name +
                      "' on, which this program has behind it: expected the model, or a program dumped before",
                  2);
  }
  SmallVector<std::string> arguments;
  auto isGivenAnew = [&](const Deciding &known) {
    return isOfOtherLoss(known.name, options.training.loss) ||
           (known.name != "--dim" &&
            llvm::any_of(options.deciding, [&](const std::string &other) { return decidingOption(other) == &known; }));
  };
  for (Attribute option : given) {
    StringRef text = cast<StringAttr>(option).getValue();
    const Deciding *known = decidingOption(text);
    if (!known)
      return fail("'" + compilationAttr + "': expected options that decide a program, found '" + text + "'");
    if (!isGivenAnew(*known))
      arguments.push_back(text.str());
  }
  llvm::append_range(arguments, options.arguments);
  ParsedCommandLine line = parseDriverCommandLine(SmallVector<StringRef>(arguments.begin(), arguments.end()));
  if (std::string wrong = line.error.empty() ? line.options.misfit : line.error; !wrong.empty())
    return fail(wrong, 2);
  line.options.ownDims = own;
  line.options.done = done;
  line.options.model = model.str();
  if (auto target = record.getAs<StringAttr>("target"))
    line.options.target = target.str();
  if (record.get("calibrated"))
    return fail("what --calibrate observed is not kept beyond its compilation: expected the model, or a program dumped "
                "before phase 'optimization'");
  const std::string &config = line.options.training.config;
  auto digest = record.getAs<StringAttr>("config");
  if (digest && options.training.config.empty() && !config.empty() && digest.getValue() != digestOf(config))
    return fail("expected '" + config + "' as it was when this program was dumped, found another text, or none");
  // Weights are read from the model where it says they lie.
  auto asDumped = record.getAs<StringAttr>("model_digest");
  std::string asFound = digestOf(model.str());
  if (asDumped && !asFound.empty() && asFound != asDumped.getValue())
    return fail("expected the model '" + model.getValue() +
                "' as it was when this program was dumped, found another file");
  if (auto files = record.getAs<DictionaryAttr>("files"))
    for (NamedAttribute file : files) {
      auto before = dyn_cast<StringAttr>(file.getValue());
      std::string now = digestOf(file.getName().str());
      if (before && !now.empty() && now != before.getValue())
        return fail("expected '" + file.getName().getValue() +
                    "', of which the model's weights are, as it was when this program was dumped, found another file");
    }
  if (isTraining && !llvm::sys::fs::exists(model.getValue()))
    return fail("a package that trains keeps the graph of its model: expected '" + model.getValue() +
                "', of which this program is, found no such file");
  if (line.options.stopAfter && *line.options.stopAfter < *done)
    return fail("--stop-after=" + phaseInfo(*line.options.stopAfter).name + ": this program has phase '" +
                    phaseInfo(*done).name + "' behind it",
                2);
  options = std::move(line.options);
  return 0;
}

std::string checkTarget(const DriverOptions &options, const CpuTarget &target) {
  std::string found = describe(target);
  if (options.target.empty() || options.target == found)
    return "";
  return "expected the processor that this program was scheduled for (" + options.target + "), found " + found;
}

} // namespace deepstride
