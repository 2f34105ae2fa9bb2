// The options of --mode=train: what is learned, and by which loss. How it is learned is in ds_config.json.
#include "passes/NamePattern.h"
#include "tools/ds-opt/MemoryBudget.h"
#include "tools/ds-opt/OptionTable.h"

#include "tools/ds-opt/Message.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

#include <sstream>

using llvm::StringRef;
using llvm::Twine;

namespace deepstride {

static std::string applyRegex(StringRef option, StringRef value, std::string &target) {
  std::string error = value.empty() ? "" : reasonAgainstPattern(value);
  target = value.str();
  if (value.empty() || !error.empty())
    return (Twine(option) + " expects a regular expression over initializer names, found '" + value + "'" +
            (error.empty() ? "" : ": " + error))
        .str();
  return "";
}

static std::string applyName(StringRef option, StringRef value, std::string &target) {
  target = value.str();
  return value.empty() ? (Twine(option) + " expects a name").str() : std::string();
}

static const OptionInfo table[] = {
    {"--mode", Argument::Required, "infer|train", "what the package does: run the model (default), or train it",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.training.isOn = value == "train";
       return std::string(
           value == "train" || value == "infer" ? "" : "--mode expects infer or train, found '" + value.str() + "'");
     }},
    {"--loss", Argument::Required, "NAME",
     "of --mode=train: an output of one number, or cross_entropy or mse of --logits and --labels",
     [](ParsedCommandLine &line, StringRef value) { return applyName("--loss", value, line.options.training.loss); }},
    {"--logits", Argument::Required, "NAME", "the output of [..., classes] or values that the loss judges",
     [](ParsedCommandLine &line, StringRef value) {
       return applyName("--logits", value, line.options.training.logits);
     }},
    {"--labels", Argument::Required, "NAME", "what the added input of labels is called",
     [](ParsedCommandLine &line, StringRef value) {
       return applyName("--labels", value, line.options.training.labels);
     }},
    {"--shift-labels", Argument::None, "", "judge logits at place i by the label at i + 1",
     [](ParsedCommandLine &line, StringRef) { return line.options.training.shiftsLabels = true, std::string(); }},
    {"--ignore-index", Argument::Required, "N", "labels that count nothing; default: -100",
     [](ParsedCommandLine &line, StringRef value) {
       bool isWrong = value.getAsInteger(10, line.options.training.ignoredLabel.emplace());
       return std::string(isWrong ? "--ignore-index expects an integer, found '" + value.str() + "'" : "");
     }},
    {"--train", Argument::Required, "REGEX", "train only initializers with such names",
     [](ParsedCommandLine &line, StringRef value) {
       return applyRegex("--train", value, line.options.training.train);
     }},
    {"--freeze", Argument::Required, "REGEX", "keep initializers with such names as they are",
     [](ParsedCommandLine &line, StringRef value) {
       return applyRegex("--freeze", value, line.options.training.freeze);
     }},
    {"--no-decay", Argument::Required, "REGEX", "parameters without weight decay",
     [](ParsedCommandLine &line, StringRef value) {
       return applyRegex("--no-decay", value, line.options.training.noDecay);
     }},
    {"--head", Argument::Required, "OUTPUT:CLASSES",
     "put a fresh linear layer on an output; its logits are the output 'head'",
     [](ParsedCommandLine &line, StringRef value) {
       auto [output, classes] = value.rsplit(':');
       TrainingRequest &training = line.options.training;
       training.head = output.str();
       bool isWrong = output.empty() || classes.getAsInteger(10, training.classes) || training.classes < 1 ||
                      training.classes > 1'000'000;
       return std::string(
           isWrong ? "--head expects OUTPUT:CLASSES with 1 to 1000000 classes, found '" + value.str() + "'" : "");
     }},
    {"--seed", Argument::Required, "N", "what the weights of --head are drawn by; default: 0",
     [](ParsedCommandLine &line, StringRef value) {
       bool isWrong = value.getAsInteger(10, line.options.training.seed.emplace());
       return std::string(isWrong ? "--seed expects an integer of at least 0, found '" + value.str() + "'" : "");
     }},
    {"--untie", Argument::None, "", "train weights that the model stores twice as two, instead of one",
     [](ParsedCommandLine &line, StringRef) { return line.options.training.unties = true, std::string(); }},
    {"--config", Argument::Required, "FILE", "ds_config.json: optimizer, schedule, batch sizes, precision",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.training.config = value.str();
       return std::string(value.empty() ? "--config expects a file" : "");
     }},
    {"--memory", Argument::Required, "BYTES",
     "what a training step may take (also KiB, MiB, GiB): activations are computed again so that it fits",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.training.memory = parseBytes(value);
       return std::string(line.options.training.memory
                              ? ""
                              : "--memory expects a number of bytes above 0, perhaps with KiB, "
                                "MiB or GiB, found '" +
                                    value.str() + "'");
     }},
    {"--mesh", Argument::Required, "data=N|data",
     "how many data-parallel ranks run the package; default: data, which is any number",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.training.ranks.reset();
       if (value == "data")
         return std::string();
       int64_t ranks = 0;
       StringRef number = value;
       bool isWrong = !number.consume_front("data=") || number.getAsInteger(10, ranks) || ranks < 1 || ranks > 4096;
       line.options.training.ranks = ranks;
       return std::string(isWrong ? "--mesh expects data=N with N from 1 to 4096, or data, found '" + value.str() + "'"
                                  : "");
     }},
    {"--plan", Argument::Optional, "FILE",
     "write what each rank takes and moves, as JSON, and compile nothing; to standard output without FILE. Weights "
     "are not read; without --loss it is cross_entropy of logits and labels",
     [](ParsedCommandLine &line, StringRef value) {
       line.options.training.isPlanned = true;
       line.options.training.planFile = value.str();
       line.options.emit = Emit::Mlir;
       return std::string();
     }},
    {"--strict", Argument::None, "", "refuse keys of --config that have no effect on one rank",
     [](ParsedCommandLine &line, StringRef) { return line.options.training.isStrict = true, std::string(); }},
    {"--print-config", Argument::None, "", "print every value of --config with its origin",
     [](ParsedCommandLine &line, StringRef) { return line.options.training.printsConfig = true, std::string(); }},
};

llvm::ArrayRef<OptionInfo> trainingOptions() { return table; }

static constexpr char defaultLoss[] = "cross_entropy";

std::string checkTraining(const DriverOptions &options) {
  const TrainingRequest &training = options.training;
  if (!training.isOn) {
    for (const auto &[name, value] :
         {std::pair("--loss", &training.loss), std::pair("--logits", &training.logits),
          std::pair("--labels", &training.labels), std::pair("--train", &training.train),
          std::pair("--freeze", &training.freeze), std::pair("--no-decay", &training.noDecay),
          std::pair("--config", &training.config), std::pair("--head", &training.head)})
      if (!value->empty())
        return std::string(name) + " is about training, found no --mode=train";
    for (auto [name, isGiven] :
         {std::pair("--strict", training.isStrict), std::pair("--print-config", training.printsConfig),
          std::pair("--mesh", training.ranks.has_value()), std::pair("--plan", training.isPlanned),
          std::pair("--shift-labels", training.shiftsLabels), std::pair("--untie", training.unties),
          std::pair("--ignore-index", training.ignoredLabel.has_value()),
          std::pair("--seed", training.seed.has_value()), std::pair("--memory", training.memory.has_value())})
      if (isGiven)
        return std::string(name) + " is about training, found no --mode=train";
    return "";
  }
  if (training.seed && training.head.empty())
    return "--seed is about the weights of --head, found no --head";
  // A plan has a loss in any case: that of a language model.
  const std::string loss = training.isPlanned && training.loss.empty() ? defaultLoss : training.loss;
  bool judges = loss == "cross_entropy" || loss == "mse";
  if (loss.empty())
    return "--mode=train expects --loss=OUTPUT, or --loss=cross_entropy|mse with --logits=NAME and --labels=NAME";
  if (judges && !training.loss.empty() &&
      ((training.logits.empty() && training.head.empty()) || training.labels.empty()))
    return "--loss=" + loss + " expects --logits=NAME and --labels=NAME";
  if (!judges && (!training.logits.empty() || !training.labels.empty() || training.shiftsLabels))
    return "--logits, --labels and --shift-labels belong to --loss=cross_entropy and --loss=mse, found --loss=" + loss;
  if (training.shiftsLabels && loss != "cross_entropy")
    return "--shift-labels belongs to --loss=cross_entropy, found --loss=" + loss;
  if (training.ignoredLabel && loss != "cross_entropy")
    return "--ignore-index belongs to --loss=cross_entropy, found --loss=" + loss;
  std::string judged = judges ? training.logits : training.loss;
  if (!training.head.empty() && !judged.empty() && judged != "head")
    return "--head adds the output 'head', which nothing else reads: expected it to be judged, found " +
           std::string(judges ? "--logits=" : "--loss=") + judged;
  if (options.quantize.bits || !options.calibrate.empty())
    return "--mode=train updates weights; it cannot be combined with --quantize";
  return "";
}

/// What is trained with where nothing was said.
static const char defaultConfig[] = R"({"train_micro_batch_size_per_gpu": 8, "optimizer": {"type": "AdamW"}})";

bool resolveTraining(DriverOptions &options) {
  TrainingRequest &training = options.training;
  if (!training.isOn)
    return true;
  if (!training.head.empty() && training.logits.empty())
    training.logits = "head";
  if (training.isPlanned && training.loss.empty()) {
    training.loss = defaultLoss;
    if (training.logits.empty())
      training.logits = "logits";
    if (training.labels.empty())
      training.labels = "labels";
  }
  ::ds::config::ReadOptions reading;
  reading.isStrict = training.isStrict;
  reading.areRanksOpen = !training.ranks;
  if (training.ranks) {
    reading.ranks = *training.ranks;
    reading.ranksFrom = "--mesh=data=" + std::to_string(*training.ranks);
  }
  ::ds::config::Reading found = training.config.empty() ? ::ds::config::readConfig(defaultConfig, "default")
                                                        : ::ds::config::readConfigFile(training.config, reading);
  for (const std::string &error : found.errors)
    printMessage("ds-opt: error: " + error);
  if (!found.config)
    return false;
  training.resolved = std::move(found.config);
  const ::ds::config::TrainingConfig &config = *training.resolved;
  for (const std::string &note : ::ds::config::notes(config))
    printMessage("ds-opt: note: " + note);
  if (training.printsConfig) {
    std::ostringstream text;
    ::ds::config::printConfig(config, text);
    llvm::outs() << text.str();
  }
  if (!training.noDecay.empty() && config.optimizer.weightDecay == 0) {
    llvm::errs() << "ds-opt: error: --no-decay: expected an optimizer whose weight_decay is above 0, found 0\n";
    return false;
  }
  std::string asked = config.isFp16 ? "f16" : config.isBf16 ? "bf16" : "";
  if (!asked.empty() && !options.rounds.empty() && asked != options.rounds) {
    printMessage("ds-opt: error: --precision=" + options.rounds + " contradicts " + config.file + ", which enables " +
                 (config.isFp16 ? "fp16" : "bf16"));
    return false;
  }
  if (options.reference == Reference::Off && !asked.empty())
    options.rounds = asked;
  if (!options.rounds.empty() && config.quantization.isEnabled && config.zero.stage > 0)
    llvm::errs()
        << "ds-opt: note: quantize_training: parameters stay f32, of which it rounds at its own widths; without "
           "it, zero_optimization.stage "
        << config.zero.stage << " keeps what is read of them in " << options.rounds << "\n";
  return true;
}

} // namespace deepstride
