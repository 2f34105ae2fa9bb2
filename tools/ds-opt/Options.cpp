// Parses the driver's command line. One table names every option, its argument and what it does; unknown options,
// missing and illegal values are usage errors of one line. The options of ds-opt as an mlir-opt are LLVM's.
#include "passes/NamePattern.h"
#include "tools/ds-opt/OptionTable.h"

#include "tools/commandline/Description.h"
#include "tools/commandline/Nearest.h"
#include "tools/ds-opt/CompileCache.h"
#include "tools/ds-opt/MlirOptions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstdlib>

using llvm::StringRef;

namespace deepstride {

static std::string applyDim(ParsedCommandLine &line, StringRef value) {
  auto [name, number] = value.rsplit('=');
  int64_t size;
  bool isSize = !number.getAsInteger(10, size) && size >= 0 && size <= (int64_t(1) << 40);
  bool isName = !number.empty() && (llvm::isAlpha(number.front()) || number.front() == '_') && name != number;
  if (name.empty() || !(isSize || isName))
    return "--dim expects NAME=VALUE with a size that is not negative, or NAME=NAME of two dimensions that are one, "
           "found '" +
           value.str() + "'";
  if (isName) {
    line.options.same.join(name, number);
    return "";
  }
  auto [slot, isNew] = line.options.dims.try_emplace(name, size);
  if (!isNew && slot->second != size)
    return "--dim gives '" + name.str() + "' two sizes";
  return "";
}

/// Names of dimensions are plain words here: the file has no say in them.
static bool isSizeOrName(StringRef text) {
  int64_t size;
  if (!text.getAsInteger(10, size))
    return size >= 0 && size <= (int64_t(1) << 40);
  return !text.empty() && (llvm::isAlpha(text.front()) || text.front() == '_') &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

static std::string applyShape(ParsedCommandLine &line, StringRef value) {
  auto [name, list] = value.rsplit('=');
  llvm::SmallVector<StringRef> sizes;
  if (!list.empty()) // nothing is the shape of a scalar
    list.split(sizes, ',');
  if (name.empty() || !value.contains('=') || !llvm::all_of(sizes, isSizeOrName))
    return "--shape expects NAME=SIZE,SIZE,... with sizes that are not negative or names of dynamic dimensions, found "
           "'" +
           value.str() + "'";
  std::vector<std::string> shape(sizes.begin(), sizes.end());
  auto [slot, isNew] = line.options.shapes.try_emplace(name, shape);
  if (!isNew && slot->second != shape)
    return "--shape gives '" + name.str() + "' two shapes";
  return "";
}

/// int8|int4[,group=N][,scheme=S][,mixed=yes|no][,keep=REGEX]; what follows keep= may contain commas.
static std::string applyQuantize(ParsedCommandLine &line, StringRef value) {
  auto wrong = [&](const llvm::Twine &what) {
    return ("--quantize expects int8 or int4, then group=N, scheme=symmetric|asymmetric, mixed=yes|no and keep=REGEX "
            "as needed, " +
            what)
        .str();
  };
  constexpr int64_t largestGroup = 1 << 20;
  auto [type, rest] = value.split(',');
  if ((type != "int8" && type != "int4") || value.ends_with(","))
    return wrong("found '" + value + "'");
  Quantization quantize;
  llvm::StringSet<> given;
  quantize.bits = type == "int8" ? 8 : 4;
  quantize.group = type == "int8" ? 0 : 32; // 4 bits are too few for a whole column
  while (!rest.empty()) {
    auto [item, next] = rest.starts_with("keep=") ? std::pair(rest, StringRef()) : rest.split(',');
    auto [key, text] = item.split('=');
    rest = next;
    std::string reason;
    if (!item.contains('='))
      return wrong("found '" + (item.empty() ? value : item) + "'");
    if (!given.insert(key).second)
      return wrong("with each once, found '" + key + "' twice");
    if (key == "group") {
      if (text.getAsInteger(10, quantize.group) || quantize.group < 0 || quantize.group % 2 != 0 ||
          quantize.group > largestGroup)
        return wrong("with a group of 0 (all of a column) or an even number of at most 1048576, found '" + item + "'");
    } else if (key == "scheme") {
      if (text != "symmetric" && text != "asymmetric")
        return wrong("found '" + item + "'");
      quantize.scheme = text.str();
    } else if (key == "mixed") {
      if (text != "yes" && text != "no")
        return wrong("found '" + item + "'");
      quantize.mixed = text == "yes";
      quantize.isMixedGiven = true;
    } else if (key == "keep") {
      if (text.empty() || !(reason = reasonAgainstPattern(text)).empty())
        return wrong("with a regular expression to keep, found '" + text + "'" + (reason.empty() ? "" : ": " + reason));
      for (StringRef other : {",group=", ",scheme=", ",mixed=", ",keep="}) // what follows keep= belongs to it
        if (text.contains(other))
          return wrong("with keep=REGEX as the last, found '" + other.drop_front() + "' behind it");
      quantize.keep = text.str();
    } else {
      return wrong("found '" + item + "'");
    }
  }
  quantize.activations = line.options.quantize.activations;
  line.options.quantize = quantize;
  return "";
}

/// A number of bytes, with K, M, G or T behind it for powers of 1024.
static std::string applyCacheSize(ParsedCommandLine &line, StringRef value) {
  static constexpr StringRef units = "KMGT";
  StringRef number = value;
  size_t unit = value.empty() ? StringRef::npos : units.find(value.back());
  if (unit != StringRef::npos)
    number = value.drop_back();
  unsigned shift = unit == StringRef::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  uint64_t bytes;
  if (number.getAsInteger(10, bytes) || bytes > (uint64_t(1) << 62 >> shift))
    return "--cache-size expects a number of bytes, as 500M or 10G, found '" + value.str() + "'";
  line.options.cacheBytes = bytes << shift;
  return "";
}

static std::string applyPhase(std::optional<Phase> &slot, StringRef option, StringRef value) {
  slot = parsePhase(value);
  return slot ? "" : (option + " expects one of " + phaseNames() + "; found '" + value + "'").str();
}

static const OptionInfo table[] = {
    {"-o", Argument::Required, "FILE", "what to write: a package OUT.dsp, or a file for --stop-after and --emit",
     [](ParsedCommandLine &line, StringRef value) {
       // One that begins with a hyphen would be an option of the linker.
       line.options.output = (value.size() > 1 && value.starts_with("-") ? "./" : "") + value.str();
       return std::string(value.empty() ? "-o expects a file" : "");
     }},
    {"--dim", Argument::Required, "NAME=VALUE|OTHER",
     "fix the size of a dimension or the value of an input of one integer or bool, or have two dimensions be one; may "
     "be repeated",
     applyDim, true},
    {"--shape", Argument::Required, "NAME=SIZES",
     "the shape of an input, as 1,3,224,224 or batch,seq; names are dynamic dimensions; may be repeated", applyShape,
     true},
    {"--mcpu", Argument::Required, "CPU[,CPU...]", "CPUs to make code for, one variant each; default: this machine",
     [](ParsedCommandLine &line, StringRef value) {
       llvm::SmallVector<StringRef> names;
       value.split(names, ',');
       for (StringRef name : names) {
         if (name.empty())
           return std::string("--mcpu expects names separated by commas, found '" + value.str() + "'");
         line.options.cpus.push_back(name.str());
       }
       return std::string();
     },
     true},
    {"--reference", Argument::Optional, "f64", "compile to plain loops, optionally in double precision: the oracle",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.reference = value.empty() ? Reference::Native : Reference::F64;
       return std::string(value.empty() || value == "f64" ? "" : "--reference expects nothing or f64");
     }},
    {"--quantize", Argument::Required, "int8|int4[,...]",
     "store weights of products in 8 or 4 bits; then ,group=N (along K; int4: 32), ,scheme=asymmetric, ,mixed=no, "
     ",keep=REGEX",
     applyQuantize},
    {"--calibrate", Argument::Required, "FILE.npz",
     "round weights of --quantize so that results for these inputs change least; arrays NAME, or N/NAME for call N",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.calibrate = value.str();
       return std::string(value.empty() ? "--calibrate expects a file" : "");
     }},
    {"--precision", Argument::Required, "f32|bf16|f16",
     "what products and convolutions with weights multiply: f32 (default), or both sides, but for codes of --quantize, "
     "rounded to bf16 or f16, with sums in f32",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.rounds = value == "f32" ? "" : value.str();
       bool isKnown = value == "f32" || value == "bf16" || value == "f16";
       return std::string(isKnown ? "" : "--precision expects f32, bf16 or f16, found '" + value.str() + "'");
     }},
    {"--ceilings", Argument::Required, "FILE.json",
     "what the machine reached in ds-run bench --json, by which kernels are chosen; default: measured where it decides",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.ceilings = value.str();
       return std::string(value.empty() ? "--ceilings expects a file" : "");
     }},
    {"--activations", Argument::Required, "f32|int8",
     "what is multiplied by weights of --quantize=int8: floats as they are (default), or rows in 8 bits",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.quantize.activations = value == "int8";
       return std::string(
           value == "f32" || value == "int8" ? "" : "--activations expects f32 or int8, found '" + value.str() + "'");
     }},
    {"--fusion", Argument::Required, "none|generic|specialized",
     "which ops share a kernel: none; elementwise ones; and products with them (default)",
     [](ParsedCommandLine &line, StringRef value) {
       auto fusion = llvm::StringSwitch<std::optional<Fusion>>(value)
                         .Case("none", Fusion::None)
                         .Case("generic", Fusion::Generic)
                         .Case("specialized", Fusion::Specialized)
                         .Default(std::nullopt);
       line.options.fusion = fusion.value_or(Fusion::Specialized);
       return std::string(fusion ? "" : "--fusion expects none, generic or specialized, found '" + value.str() + "'");
     }},
    {"--report", Argument::None, "", "print what each pass did, and remarks on what it left alone",
     [](ParsedCommandLine &line, StringRef) { return line.options.report = true, std::string(); }},
    {"--check", Argument::None, "",
     "compile up to the kernels' code; say whether the model is supported, or what is not",
     [](ParsedCommandLine &line, StringRef) { return line.options.check = true, std::string(); }},
    {"--inputs", Argument::None, "",
     "print the model's inputs, their dimensions and what of them steers branches, with pins that --dim could give",
     [](ParsedCommandLine &line, StringRef) { return line.options.listsInputs = true, std::string(); }},
    {"--stop-after", Argument::Required, "PHASE", "write the program as MLIR at the end of a phase",
     [](ParsedCommandLine &line, StringRef value) {
       return applyPhase(line.options.stopAfter, "--stop-after", value);
     }},
    {"--dump-dir", Argument::Required, "DIR",
     "write one .mlir file per phase; each, as it is or edited, compiles on from there as IN.mlir",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.dumpDir = value.str();
       return std::string(value.empty() ? "--dump-dir expects a directory" : "");
     }},
    {"--passes-after", Argument::Required, "PHASE:PIPELINE",
     "run passes at the end of a phase, as graph:builtin.module(func.func(cse)); may be repeated",
     [](ParsedCommandLine &line, StringRef value) {
       auto [name, pipeline] = value.split(':');
       auto phase = parsePhase(name);
       if (!phase || *phase == Phase::Codegen || pipeline.empty())
         return "--passes-after expects PHASE:PIPELINE with a phase before codegen, found '" + value.str() + "'";
       line.options.passesAfter.emplace_back(*phase, pipeline.str());
       return std::string();
     },
     true},
    {"--load-pass-plugin", Argument::Required, "FILE", "passes from a library, for --passes-after; may be repeated",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.plugins.push_back(value.str());
       return std::string(value.empty() ? "--load-pass-plugin expects a file" : "");
     },
     true},
    {"--emit", Argument::Required, "mlir|onnx", "write MLIR: what code is generated from, or the model as it was read",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.emit = value == "mlir" ? Emit::Mlir : value == "onnx" ? Emit::Onnx : Emit::Nothing;
       return std::string(
           line.options.emit == Emit::Nothing ? "--emit expects mlir or onnx, found '" + value.str() + "'" : "");
     }},
    {"--cache", Argument::Required, "DIR",
     "keep packages here and copy what was compiled before; default: DS_CACHE, else the user's cache folder; empty: "
     "off",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.cache = value.str();
       line.options.isDefaultCache = false;
       return std::string();
     }},
    {"--no-cache", Argument::None, "", "compile in any case, and keep nothing",
     [](ParsedCommandLine &line, StringRef) { return line.options.cache.clear(), std::string(); }},
    {"--cache-size", Argument::Required, "BYTES",
     "most that the cache may hold, as 500M or 10G (default); what was used longest ago goes", applyCacheSize},
    {"--list-phases", Argument::None, "", "print the phases of a compilation",
     [](ParsedCommandLine &line, StringRef) { return line.request = Request::ListPhases, std::string(); }},
    {"--version", Argument::None, "", "print the version",
     [](ParsedCommandLine &line, StringRef) { return line.request = Request::Version, std::string(); }},
    {"--help", Argument::None, "", "print this text; --help-hidden lists the options of ds-opt as an mlir-opt",
     [](ParsedCommandLine &line, StringRef) { return line.request = Request::Help, std::string(); }},
    {"--completion", Argument::Required, "bash|zsh", "print what teaches a shell to complete ds-opt: source <(...)",
     [](ParsedCommandLine &line, StringRef value) {
       line.request = value == "bash" ? Request::BashCompletion : Request::ZshCompletion;
       return std::string(
           value == "bash" || value == "zsh" ? "" : "--completion expects bash or zsh, found '" + value.str() + "'");
     }},
    {"--man-page", Argument::None, "", "print the manual page, for man -l -",
     [](ParsedCommandLine &line, StringRef) { return line.request = Request::ManPage, std::string(); }},
    {"--mlir-print-debuginfo", Argument::None, "", "",
     [](ParsedCommandLine &line, StringRef) { return line.options.printLocations = true, std::string(); }},
    {"--test-crash", Argument::Required, "PHASE", "",
     [](ParsedCommandLine &line, StringRef value) { return applyPhase(line.options.crashIn, "--test-crash", value); }},
    {"--test-many-rows", Argument::None, "", "",
     [](ParsedCommandLine &line, StringRef) { return line.options.manyRows = true, std::string(); }},
};

llvm::ArrayRef<OptionInfo> generalOptions() { return table; }

/// What may have been meant by an option that is none, or by a word that is none of those that one takes.
static std::string hintForName(StringRef name) {
  std::vector<std::string> names;
  for (const OptionInfo &info : llvm::concat<const OptionInfo>(generalOptions(), trainingOptions()))
    names.push_back(info.name.str());
  return ::ds::commandline::didYouMean(name.str(), names);
}

static std::string hintForValue(const OptionInfo &info, StringRef value) {
  std::vector<std::string> choices = ::ds::commandline::choicesOf(info.placeholder.str());
  if (info.placeholder == "PHASE")
    for (const PhaseInfo &phase : allPhases())
      choices.push_back(phase.name.str());
  return ::ds::commandline::didYouMean(value.str(), choices);
}

static const OptionInfo *findOption(StringRef name) {
  if (name == "-h")
    name = "--help";
  if (name == "-mlir-print-debuginfo")
    name = "--mlir-print-debuginfo";
  for (llvm::ArrayRef<OptionInfo> options : {llvm::ArrayRef(table), trainingOptions()})
    for (const OptionInfo &info : options)
      if (info.name == name)
        return &info;
  return nullptr;
}

bool isDriverCommandLine(llvm::ArrayRef<StringRef> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef name = arguments[i].split('=').first;
    if (name == "-o" && i + 1 < arguments.size() && arguments[i + 1].rtrim('/').ends_with(".dsp"))
      return true;
    // These are options of mlir-opt as well.
    bool isOurs =
        name != "-o" && name != "--load-pass-plugin" && !name.ends_with("mlir-print-debuginfo") && findOption(name);
    if (isOurs || (!name.starts_with("-") && name.ends_with(".onnx")))
      return true;
  }
  return false;
}

/// Of dimensions that are one: they cannot have two sizes.
static std::string checkSame(const DriverOptions &options) {
  for (const auto &names : options.same.classes()) {
    const std::string *sized = nullptr;
    for (const std::string &name : names) {
      if (!options.dims.contains(name))
        continue;
      if (sized && options.dims.lookup(*sized) != options.dims.lookup(name))
        return "--dim has '" + *sized + "' and '" + name + "' be one dimension and gives them two sizes, " +
               std::to_string(options.dims.lookup(*sized)) + " and " + std::to_string(options.dims.lookup(name));
      sized = &name;
    }
  }
  return "";
}

static std::string checkCombination(const DriverOptions &options) {
  if (options.input.empty())
    return "expects a model: MODEL.onnx or a program IN.mlir";
  if (std::string wrong = checkSame(options); !wrong.empty())
    return wrong;
  if (options.listsInputs && (options.check || options.report || options.stopAfter || options.emit != Emit::Nothing ||
                              !options.output.empty() || !options.dumpDir.empty() || !options.calibrate.empty()))
    return "--inputs prints and compiles nothing; it cannot be combined with -o, --check, --report, --stop-after, "
           "--dump-dir, --calibrate or --emit";
  if (options.listsInputs && !options.isOnnx())
    return "--inputs expects an .onnx model, found '" + options.input + "'";
  if (options.check && (options.stopAfter || options.emit != Emit::Nothing || !options.output.empty()))
    return "--check writes nothing; it cannot be combined with -o, --stop-after or --emit";
  if (options.stopAfter && options.emit != Emit::Nothing)
    return "--stop-after and --emit exclude each other";
  if (options.emit == Emit::Onnx && !options.isOnnx())
    return "--emit=onnx expects an .onnx model";
  if (!options.rounds.empty() && options.reference == Reference::F64)
    return "--precision=" + options.rounds + " sums in f32; it cannot be combined with --reference=f64";
  const Quantization &quantize = options.quantize;
  if (quantize.activations && (quantize.bits != 8 || quantize.group != 0 || quantize.scheme != "symmetric")) {
    std::string found = "int" + std::to_string(quantize.bits) + ",group=" + std::to_string(quantize.group) +
                        ",scheme=" + quantize.scheme;
    return "--activations=int8 expects --quantize=int8 with group=0 and scheme=symmetric, found " +
           (quantize.bits ? found : "no --quantize");
  }
  if (quantize.activations && quantize.mixed && quantize.isMixedGiven)
    return "--activations=int8 needs one scale for each column, found mixed=yes";
  if (!options.calibrate.empty() && !quantize.bits)
    return "--calibrate is about weights of --quantize, found no --quantize";
  if (!options.plugins.empty() && options.passesAfter.empty())
    return "--load-pass-plugin is for the passes of --passes-after, found none";
  if (std::string wrong = checkTraining(options); !wrong.empty())
    return wrong;
  bool writesPackage = !options.check && !options.listsInputs && options.emit == Emit::Nothing &&
                       (!options.stopAfter || *options.stopAfter == Phase::Codegen);
  if (!writesPackage && !options.calibrate.empty())
    return "--calibrate runs the model to write a package; it cannot be combined with --check, --stop-after or --emit";
  if (writesPackage && options.output.empty())
    return "expects -o OUT.dsp, or one of --check, --stop-after=PHASE";
  bool namesPackage = StringRef(options.output).rtrim('/').ends_with(".dsp");
  if (options.training.isPlanned && namesPackage)
    return "--plan compiles nothing: expected no -o, found '" + options.output + "'";
  if (!writesPackage && namesPackage)
    return "a package is written only when all phases run; -o of --stop-after and --emit names an .mlir file";
  return "";
}

ParsedCommandLine parseDriverCommandLine(llvm::ArrayRef<StringRef> arguments) {
  ParsedCommandLine line;
  line.options.cache = defaultCacheFolder();
  line.options.isDefaultCache = std::getenv("DS_CACHE") == nullptr;
  for (StringRef argument : arguments)
    line.options.arguments.push_back(argument.str());
  llvm::StringMap<StringRef> given;
  for (size_t i = 0; i < arguments.size() && line.error.empty(); ++i) {
    StringRef argument = arguments[i];
    if (!argument.starts_with("-") || argument == "-") {
      if (!line.options.input.empty())
        line.error = "expects one model, found '" + line.options.input + "' and '" + argument.str() + "'";
      line.options.input = argument.str();
      continue;
    }
    auto [name, value] = argument.split('=');
    const OptionInfo *info = findOption(name);
    if (!info && isMlirOption(argument)) {
      line.options.mlirOptions.push_back(argument.str());
      continue;
    }
    bool hasValue = argument.contains('=');
    if (!info) {
      std::string meant = hintForName(name);
      line.error = "unknown option '" + name.str() + "'" + (meant.empty() ? "; --help lists the options" : meant);
    } else if (info->argument == Argument::None && hasValue) {
      line.error = name.str() + " takes no value";
    } else if (info->argument == Argument::Required && !hasValue) {
      if (i + 1 == arguments.size())
        line.error = name.str() + " expects " + info->placeholder.str();
      else
        line.error = info->apply(line, value = arguments[++i]);
    } else {
      line.error = info->apply(line, value);
    }
    if (info && !line.error.empty())
      line.error += hintForValue(*info, value);
    if (line.error.empty() && info->argument != Argument::None && !info->mayRepeat)
      if (auto [before, isNew] = given.try_emplace(info->name, value); !isNew && before->second != value)
        line.error = (name + " is given twice, as '" + before->second + "' and '" + value + "'").str();
    if (name != "-o" && !name.contains("-cache"))
      line.options.deciding.push_back((name + "=" + value).str());
  }
  if (line.error.empty() && line.request == Request::Compile) {
    bool mayBeDump = !line.options.input.empty() && !line.options.isOnnx();
    (mayBeDump ? line.options.misfit : line.error) = checkCombination(line.options);
  }
  return line;
}

std::string driverHelp() {
  std::string text = "Usage: ds-opt MODEL.onnx|IN.mlir -o OUT.dsp [options]    compile a model into a package\n"
                     "       ds-opt IN.mlir [mlir-opt options]                 run passes, as mlir-opt does\n\n";
  for (const OptionInfo &info : llvm::concat<const OptionInfo>(llvm::ArrayRef(table), trainingOptions())) {
    if (info.help.empty())
      continue;
    std::string name = info.name.str();
    if (info.argument == Argument::Optional)
      name += "[=" + info.placeholder.str() + "]";
    if (info.argument == Argument::Required)
      name += (info.name == "-o" ? " " : "=") + info.placeholder.str();
    text += llvm::formatv("  {0,-24} {1}\n", name, info.help);
  }
  text += "\nPhases:\n";
  for (const PhaseInfo &phase : allPhases())
    text += llvm::formatv("  {0,-24} {1}\n", phase.name, phase.summary);
  text += "\nMLIR's own, while a model is compiled, too: --mlir-print-ir-after-all, --mlir-print-ir-before=PASS,\n"
          "--mlir-timing, --mlir-pass-pipeline-crash-reproducer=FILE; --help-hidden lists them.\n"
          "\nAs an mlir-opt (docs/writing-a-pass.md): --ds-<pass>, --ds-<phase>-pipeline, --pass-pipeline=TEXT,\n"
          "--load-pass-plugin=FILE, --split-input-file, --verify-diagnostics, --mlir-print-ir-after-all,\n"
          "--verify-numerics (compare results before and after the given passes).\n"
          "\nExit codes: 0 ok, 1 diagnosed, 2 usage, 3 internal error with the path of a reproducer.\n";
  return text;
}

} // namespace deepstride
