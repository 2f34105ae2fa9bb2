// The options of --mode=train: what is learned, and by which loss. How it is learned is in ds_config.json.
#include "tools/ds-opt/OptionTable.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Regex.h"

using llvm::StringRef;
using llvm::Twine;

namespace deepstride {

static std::string applyRegex(StringRef option, StringRef value, std::string &target) {
  std::string error;
  target = value.str();
  if (value.empty() || !llvm::Regex(value).isValid(error))
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
       bool isWrong = value.getAsInteger(10, line.options.training.ignoredLabel);
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
};

llvm::ArrayRef<OptionInfo> trainingOptions() { return table; }

std::string checkTraining(const DriverOptions &options) {
  const TrainingRequest &training = options.training;
  if (!training.isOn) {
    for (const auto &[name, value] :
         {std::pair("--loss", &training.loss), std::pair("--logits", &training.logits),
          std::pair("--labels", &training.labels), std::pair("--train", &training.train),
          std::pair("--freeze", &training.freeze), std::pair("--no-decay", &training.noDecay)})
      if (!value->empty())
        return std::string(name) + " is about training, found no --mode=train";
    return "";
  }
  bool judges = training.loss == "cross_entropy" || training.loss == "mse";
  if (training.loss.empty())
    return "--mode=train expects --loss=OUTPUT, or --loss=cross_entropy|mse with --logits=NAME and --labels=NAME";
  if (judges && (training.logits.empty() || training.labels.empty()))
    return "--loss=" + training.loss + " expects --logits=NAME and --labels=NAME";
  if (!judges && (!training.logits.empty() || !training.labels.empty() || training.shiftsLabels))
    return "--logits, --labels and --shift-labels belong to --loss=cross_entropy and --loss=mse, found --loss=" +
           training.loss;
  if (training.shiftsLabels && training.loss != "cross_entropy")
    return "--shift-labels belongs to --loss=cross_entropy, found --loss=" + training.loss;
  if (options.quantize.bits || !options.calibrate.empty())
    return "--mode=train updates weights; it cannot be combined with --quantize";
  if (!options.rounds.empty())
    return "--mode=train computes in f32, or f64 with --reference=f64; --precision is not there yet";
  return "";
}

} // namespace deepstride
