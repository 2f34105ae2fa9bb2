#include "tools/ds-run/training/Places.h"
#include "tools/ds-run/training/TrainOptions.h"

#include "runtime/core/Error.h"
#include "tools/ds-run/Choices.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>

namespace ds {
namespace {

std::string fileName(const std::string &text) { return text.empty() ? "expected a name, found ''" : ""; }

std::string positiveNumber(const std::string &text) {
  char *end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  bool isLegal = !text.empty() && *end == '\0' && std::isfinite(number) && number > 0;
  return isLegal ? "" : "expected a number above 0, found '" + text + "'";
}

template <typename T>
CLI::Option *addCount(CLI::App *app, const char *name, std::optional<T> &value, const char *help) {
  return app->add_option(name, value, help)->type_name("N")->check([](const std::string &text) {
    char *end = nullptr;
    errno = 0;
    long long number = std::strtoll(text.c_str(), &end, 10);
    bool isLegal = !text.empty() && !*end && !errno && number >= 1;
    return isLegal ? std::string() : "expected an integer of at least 1, found '" + text + "'";
  });
}

CLI::Option *addFiles(CLI::App *app, const char *name, std::vector<std::string> &values, const char *help) {
  return app->add_option(name, values, help)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->check(fileName)
      ->type_name("FILE");
}

void addCommon(CLI::App *app, TrainOptions &options) {
  app->add_option("PKG", options.run.package, "package of ds-opt --mode=train")->required();
  app->add_option("--mcpu", options.run.mcpu, "code variant to use (default: the best that fits)");
  app->add_flag("--no-verify", options.run.noVerify, "skip the checksums");
  app->add_option("--config", options.config,
                  "ds_config.json: what needs no compilation, such as rates and batch sizes, is taken from it")
      ->check(fileName)
      ->type_name("FILE");
}

void addData(CLI::App *app, TrainOptions &options) {
  addFiles(app, "--data", options.data, "FILE.npz, tokens.npy, FILE.jsonl or IDX files (docs/training-data.md)")
      ->required();
  app->add_option("--dim", options.run.dims, "size of a dynamic dimension, NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app->add_option("--threads", options.run.threads, "threads (default: DS_NUM_THREADS, else all processors)")
      ->check(CLI::Range(1u, 1024u));
}

void addSeed(CLI::App *app, TrainOptions &options) {
  app->add_option("--seed", options.seed, "of the order of samples (0, or a checkpoint's)")
      ->check([](const std::string &text) { // CLI11 takes -1 for a large number
        char *end = nullptr;
        errno = 0;
        std::strtoull(text.c_str(), &end, 10);
        bool isLegal = !text.empty() && text[0] >= '0' && text[0] <= '9' && !*end && !errno;
        return isLegal ? std::string() : "expected an integer of 0 to 2^64 - 1, found '" + text + "'";
      });
  oneOf(app->add_option("--shuffle", options.shuffle, "on or off: whether each epoch has an order of its own (on)"),
        {"on", "off"});
}

void addCheckpoint(CLI::App *app, TrainOptions &options) {
  app->add_option("--checkpoint", options.checkpoint, "folder of checkpoints")->check(fileName)->type_name("DIR");
  app->add_option(
         "--tag", options.tag,
         "name of a checkpoint in it (train: the one at the end, global_step<n>; else: the latest, which is only read)")
      ->check(fileName)
      ->type_name("TAG");
}

} // namespace

void addTrainingCommands(CLI::App &app, TrainOptions &options) {
  CLI::App *train = app.add_subcommand("train", "train the model of a package");
  addCommon(train, options);
  addData(train, options);
  addSeed(train, options);
  addCount(train, "--steps", options.steps, "stop after so many steps from the start of training");
  addCount(train, "--epochs", options.epochs, "stop after so many passes over the data");
  addCheckpoint(train, options);
  train->add_option("--resume", options.resumeTag, "go on from a checkpoint: --resume=TAG, or the latest one")
      ->expected(0, 1);
  train->parse_complete_callback([train, &options] { options.resumes = train->count("--resume") > 0; });
  addCount(train, "--save-interval", options.saveInterval, "save a checkpoint every so many steps");
  addCount(train, "--keep", options.keep, "checkpoints that remain, the newest ones (all)");
  train->add_option("--client-state", options.clientState, "JSON file to keep in checkpoints")
      ->check(fileName)
      ->type_name("FILE");
  addFiles(train, "--eval-data", options.evalData, "data to evaluate on");
  addCount(train, "--eval-interval", options.evalInterval, "evaluate every so many steps (at the end)");
  addCount(train, "--patience", options.patience, "stop after so many evaluations without a smaller loss");
  train->add_option("--log", options.log, "write a JSON object per step to FILE.jsonl")
      ->check(fileName)
      ->type_name("FILE");
  train
      ->add_option("--counters", options.counters,
                   "write what each rank took and moved, as ds-opt --plan, to FILE.json")
      ->check(fileName)
      ->type_name("FILE");
  train
      ->add_option("--device-memory", options.deviceMemory,
                   "what states and workspace may take on the device, in bytes (also KiB, MiB, GiB)")
      ->check([](const std::string &text) {
        return parseBytes(text) ? std::string()
                                : "expected bytes above 0, or a number with KiB, MiB or GiB, found '" + text + "'";
      });
  train->add_option("--html", options.run.html, "write a page with curves of loss, rate, norm and scale")
      ->check(fileName)
      ->type_name("FILE");

  CLI::App *eval = app.add_subcommand("eval", "loss and accuracy of a package of --mode=train over data");
  addCommon(eval, options);
  addData(eval, options);
  addCheckpoint(eval, options);
  eval->add_flag("--json", options.run.asJson, "as JSON");

  CLI::App *schedule = app.add_subcommand("schedule", "learning rate and momentum of each step");
  addCommon(schedule, options);
  addCount(schedule, "--steps", options.steps, "how many steps (100)");
  schedule->add_flag("--json", options.run.asJson, "as JSON");

  CLI::App *range = app.add_subcommand("lr-range", "train with a growing learning rate, plot the loss, suggest a rate");
  addCommon(range, options);
  addData(range, options);
  addSeed(range, options);
  addCount(range, "--steps", options.steps, "steps from the least to the greatest rate (100)");
  range->add_option("--min-lr", options.leastRate, "least rate (1e-7, or as a scheduler LRRangeTest says)")
      ->check(positiveNumber);
  range->add_option("--max-lr", options.mostRate, "greatest rate (1, or as a scheduler LRRangeTest says)")
      ->check(positiveNumber);
  addCheckpoint(range, options);
  range->add_option("--html", options.run.html, "write a page with the curve")->check(fileName)->type_name("FILE");
  range->add_flag("--json", options.run.asJson, "as JSON");

  CLI::App *checkpoint = app.add_subcommand("checkpoint", "look at, check, compare and export checkpoints");
  oneOf(checkpoint->add_option("ACTION", options.action, "inspect, verify, diff or export")->required(),
        {"inspect", "verify", "diff", "export"});
  checkpoint->add_option("PATH", options.path, "DIR (its latest checkpoint) or DIR/TAG")
      ->required()
      ->check(fileName)
      ->type_name("FILE");
  checkpoint->add_option("OTHER", options.other, "diff: the other one")->check(fileName)->type_name("FILE");
  checkpoint->add_option("--package", options.run.package, "export to ONNX: the package that was trained")
      ->check(fileName)
      ->type_name("FILE");
  checkpoint->add_flag("--quantized", options.isQuantized,
                       "export to ONNX: weights of quantize_training as codes of 4 or 8 bits");
  checkpoint->add_option("-o,--output", options.output, "export: OUT.onnx or OUT.safetensors")
      ->check(fileName)
      ->type_name("FILE");
  checkpoint->add_flag("--json", options.run.asJson, "as JSON");
}

std::optional<int> runTrainingCommand(const CLI::App &app, const TrainOptions &options) {
  if (app.got_subcommand("train"))
    return trainCommand(options);
  if (app.got_subcommand("eval"))
    return evalCommand(options);
  if (app.got_subcommand("schedule"))
    return scheduleCommand(options);
  if (app.got_subcommand("lr-range"))
    return lrRangeCommand(options);
  if (app.got_subcommand("checkpoint"))
    return checkpointCommand(options);
  return std::nullopt;
}

} // namespace ds
