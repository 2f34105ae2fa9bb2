#include "tools/ds-run/CommandLine.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "tools/commandline/Nearest.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace ds {
namespace {

/// CLI11's own checks let NaN pass, and take -1 for a large unsigned number.
std::string finiteNumber(const std::string &text) {
  char *end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  bool isNumber = !text.empty() && *end == '\0' && std::isfinite(number) && number >= 0;
  return isNumber ? "" : "expected a number of at least 0, found '" + text + "'";
}

std::string fileName(const std::string &text) { return text.empty() ? "expected the name of a file, found ''" : ""; }

CLI::Option *addFile(CLI::App *app, const std::string &name, std::string &value, const std::string &help,
                     const std::string &kind = "FILE") {
  return app->add_option(name, value, help)->check(fileName)->type_name(kind);
}

// CLI11 takes -1 for a large unsigned number.
CLI::Option *addCount(CLI::App *app, const std::string &name, std::optional<uint64_t> &value, long long least,
                      const std::string &help) {
  constexpr long long most = 1000000;
  return app->add_option(name, value, help)->type_name("N")->check([=](const std::string &text) {
    char *end = nullptr;
    errno = 0;
    long long number = std::strtoll(text.c_str(), &end, 10);
    bool isLegal = !text.empty() && !*end && !errno && number >= least && number <= most;
    return isLegal ? std::string() : concat("expected an integer of ", least, " to ", most, ", found '", text, "'");
  });
}

// How long is measured.
void addAmount(CLI::App *app, Options &options, const std::string &seconds, long long leastCalls) {
  auto *duration = app->add_option("--duration", options.duration, "seconds to measure (" + seconds + ")")
                       ->type_name("SECONDS")
                       ->check(finiteNumber)
                       ->check(CLI::Range(0.01, 3600.0).description(""));
  addCount(app, "--iterations", options.iterations, leastCalls, "calls to measure, instead of --duration")
      ->excludes(duration);
  addCount(app, "--warmup", options.warmup, 0, "calls before those (as many as it takes to be warm)");
}

// "50,99.9"
std::vector<double> parsePercentiles(const std::string &text) {
  std::vector<double> percents;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    char *end = nullptr;
    double percent = std::strtod(item.c_str(), &end);
    bool isLegal = !item.empty() && item[0] != ' ' && !*end && percent >= 0 && percent <= 100; // NaN is not
    if (!isLegal)
      throw CLI::ValidationError("--percentiles",
                                 "expected numbers of 0 to 100 separated by commas, found '" + text + "'");
    if (!std::count(percents.begin(), percents.end(), percent))
      percents.push_back(percent);
  }
  if (percents.empty())
    throw CLI::ValidationError("--percentiles",
                               "expected numbers of 0 to 100 separated by commas, found '" + text + "'");
  return percents;
}

CLI::Option *addList(CLI::App *app, const std::string &name, std::vector<std::string> &values,
                     const std::string &help) {
  return app->add_option(name, values, help)->expected(1)->take_all()->allow_extra_args(false);
}

void addPackage(CLI::App *app, Options &options, bool isRequired = true) {
  auto *option = app->add_option("PKG", options.package, "package folder, model.dsp")->type_name("");
  if (isRequired)
    option->required();
  app->add_option("--mcpu", options.mcpu, "code variant to use (default: the best that fits)")->type_name("CPU");
  app->add_flag("--no-verify", options.noVerify, "skip the checksums");
}

void addWeights(CLI::App *app, Options &options, const std::string &usual) {
  app->add_option("--weights", options.weights,
                  "mapped: read from the file, whose pages processes share; copied: to huge pages, which calls read "
                  "faster, if half of the memory that is free has room (" +
                      usual + ")")
      ->type_name("HOW")
      ->check(CLI::IsMember({"mapped", "copied"}).description(""));
}

void addDims(CLI::App *app, Options &options) {
  addList(app, "--dim", options.dims, "size of a dynamic dimension, NAME=VALUE")->type_name("NAME=VALUE");
  app->add_option("--entry", options.entry, "entry to call (default: the first)")->type_name("NAME");
}

void addThreads(CLI::App *app, Options &options) {
  app->add_option("--threads", options.threads,
                  "threads per rank (default: DS_NUM_THREADS, else its share of the processors)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u).description(""));
}

void addProbe(CLI::App &app, Options &options) {
  CLI::App *probe = app.add_subcommand("probe", "memory bandwidth and arithmetic of this machine, and the links "
                                                "between ranks, measured in about a second");
  addThreads(probe, options);
  probe->add_option("--json", options.json, "as JSON, to standard output or a file")->type_name("FILE")->expected(0, 1);
  probe->parse_complete_callback([probe, &options] { options.asJson = probe->count("--json") > 0; });
}

void addCall(CLI::App *app, Options &options) {
  addDims(app, options);
  addThreads(app, options);
  app->add_option("--seed", options.seed, "random inputs: standard normal; integers below their bound")
      ->type_name("N")
      ->check(finiteNumber);
}

void addInputs(CLI::App *app, Options &options) {
  addList(app, "--input", options.inputs, "NAME=@FILE.npy, NAME=@FILE.pb or NAME=VALUE")->type_name("NAME=VALUE");
  addFile(app, "--inputs", options.inputsFrom, "all inputs: FILE.npz, or folder with NAME.npy or input_<i>.pb");
}

void addStates(CLI::App *app, Options &options) {
  addFile(app, "--state-in", options.stateIn, "restore states from an npz before the call");
}

void addValues(CLI::App *app, Options &options, const std::string &help) {
  addList(app, "--values", options.values, help)->type_name("NAME");
}

void addRun(CLI::App &app, Options &options) {
  addPackage(&app, options, false);
  addWeights(&app, options, "mapped");
  addCall(&app, options);
  addInputs(&app, options);
  addFile(&app, "--output", options.output, "write the outputs to an npz instead of printing them");
  addValues(&app, options, "give this intermediate value beside the outputs; may be repeated");
  addStates(&app, options);
  addFile(&app, "--state-out", options.stateOut, "save states to an npz after the call");
}

// What a word of a command line is to an app: the option whose name it has, if it has one.
const CLI::Option *optionOf(const CLI::App &app, const std::string &word) {
  std::string name = word.substr(0, word.find('='));
  for (const CLI::Option *option : app.get_options()) {
    for (const std::string &known : option->get_lnames())
      if (name == "--" + known)
        return option;
    for (const std::string &known : option->get_snames())
      if (word.rfind("-" + known, 0) == 0 && word.rfind("--", 0) != 0)
        return option;
  }
  return nullptr;
}

std::vector<std::string> longNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

commandline::CommandText describeCommand(const CLI::App &app) {
  commandline::CommandText text;
  text.help = app.get_description();
  for (const CLI::Option *option : app.get_options()) {
    if (!option->nonpositional()) {
      std::string name = option->get_single_name();
      text.arguments.push_back(option->get_required() ? name : "[" + name + "]");
      continue;
    }
    commandline::OptionText item;
    for (const std::string &name : option->get_snames())
      item.names.push_back("-" + name);
    for (const std::string &name : option->get_lnames())
      item.names.push_back("--" + name);
    if (option->get_items_expected_max() > 0)
      item.value = option->get_type_name().substr(0, option->get_type_name().find_first_of(": "));
    item.isOptionalValue = !item.value.empty() && option->get_items_expected_min() == 0;
    item.help = option->get_description();
    text.options.push_back(std::move(item));
  }
  return text;
}

} // namespace

void addCommands(CLI::App &app, Options &options) {
  addRun(app, options);

  CLI::App *compare = app.add_subcommand(
      "compare",
      "outputs against expected ones (a test data folder, an npz, ONNX Runtime), or outputs and states against another "
      "package; exits 1 when one differs or has no partner");
  addPackage(compare, options);
  compare->add_option("OTHER", options.other, "test_data_set_* folder, outputs as FILE.npz, or another package")
      ->type_name("");
  addFile(compare, "--onnxruntime", options.onnxRuntime,
          "against this model in ONNX Runtime, run by the Python that DS_PYTHON names (python3)", "MODEL.onnx");
  addCall(compare, options);
  addInputs(compare, options);
  addStates(compare, options);
  addValues(compare, options,
            "compare this intermediate value, too, where OTHER is an npz or with --onnxruntime; may be repeated");
  addFile(compare, "--output", options.output, "write what the package gave, with --values, to an npz");
  compare->add_option("--rtol", options.rtol, "relative tolerance of floats (1e-3, or the step of a coarser type)")
      ->check(finiteNumber);
  compare
      ->add_option("--atol", options.atol,
                   "absolute tolerance (floats: rtol times the median magnitude of the expected tensor; integers 0); "
                   "booleans have none")
      ->check(finiteNumber);

  CLI::App *bench = app.add_subcommand("bench", "latency, and how close it is to this machine's ceilings");
  addPackage(bench, options);
  addWeights(bench, options, "copied");
  addCall(bench, options);
  addInputs(bench, options);
  addAmount(bench, options, "3", 1);
  bench
      ->add_option_function<std::string>(
          "--percentiles", [&options](const std::string &text) { options.percentiles = parsePercentiles(text); },
          "of the latency, as 50,99.9 (90,95,99)")
      ->type_name("LIST");
  bench
      ->add_option("--streams", options.streams,
                   "then the throughput of so many sessions at once, which share the threads")
      ->type_name("N")
      ->check(CLI::Range(1u, 256u).description(""));
  addFile(bench, "--json", options.json, "write the figures to a file; -: to standard output, and nothing else");

  CLI::App *inspect = app.add_subcommand("inspect", "what a package holds");
  addPackage(inspect, options);
  addDims(inspect, options);
  inspect->add_flag("--json", options.asJson, "as JSON");
  addFile(inspect, "--graph", options.graph, "draw an entry's blocks into FILE.svg, or FILE.dot for Graphviz");

  CLI::App *profile = app.add_subcommand("profile", "time of every launch, operator and module of a call, or of a step "
                                                    "of training, beside what this machine could do");
  addPackage(profile, options);
  addWeights(profile, options, "copied");
  addCall(profile, options);
  addInputs(profile, options);
  addAmount(profile, options, "0.2", 2);
  addFile(profile, "--json", options.json, "write the figures to a file; -: to standard output, and nothing else");
  addFile(profile, "--html", options.html, "write a page: layers, roofline, kernels, nodes, modules");
  profile
      ->add_option("--module-depth", options.moduleDepth,
                   "last depth of the largest modules; -1: all (-1, or as the package's flops_profiler says)")
      ->type_name("N")
      ->check(CLI::Range(-1, 1000).description(""));
  profile->add_option("--top-modules", options.topModules, "how many of each depth are named (1, or as it says)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000).description(""));
  profile->add_flag_function(
      "--detailed,!--no-detailed", [&options](int64_t count) { options.detailed = count > 0; },
      "whether each module has a line (yes, or as it says)");
  addFile(profile, "--trace", options.trace, "write a Chrome or Perfetto trace");

  CLI::App *gradients = app.add_subcommand(
      "gradients", "the loss of one micro-batch of a package of --mode=train, and the gradient of each parameter");
  addPackage(gradients, options);
  addCall(gradients, options);
  addInputs(gradients, options);
  addStates(gradients, options);
  addFile(gradients, "--output", options.output, "write 'loss' and each parameter's gradient to an npz");

  addProbe(app, options);
}

std::optional<std::string> wrongName(const CLI::App &app, const std::vector<std::string> &words) {
  std::vector<std::string> commands;
  for (const CLI::App *command : app.get_subcommands(nullptr))
    commands.push_back(command->get_name());
  const CLI::App *chosen = &app;
  bool isFirst = true;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string &word = words[i];
    if (const CLI::Option *option = optionOf(*chosen, word)) {
      if (option->get_items_expected_min() > 0 && word.find('=') == std::string::npos && word.rfind("--", 0) == 0)
        ++i; // its value
      continue;
    }
    std::string name = word.substr(0, word.find('='));
    if (word.rfind("--", 0) == 0)
      return concat("unknown option '", name, "'", commandline::didYouMean(name, longNames(*chosen)), " (see ds-run ",
                    chosen == &app ? "" : chosen->get_name() + " ", "--help)");
    if (!isFirst || word.empty() || word[0] == '-')
      continue;
    isFirst = false;
    if (std::count(commands.begin(), commands.end(), word))
      chosen = app.get_subcommand(word);
    else if (std::string hint = commandline::didYouMean(word, commands); !hint.empty() && !isThere(word))
      return concat("'", word, "' is no command and no package", hint);
  }
  return std::nullopt;
}

commandline::ProgramText describe(const CLI::App &app, const std::string &version) {
  commandline::ProgramText program{"ds-run", version, "run, compare, measure and describe packages of ds-opt",
                                   {},       {},      {}};
  program.main = describeCommand(app);
  program.main.help = "Of calling a package, and of ranks for every command that runs on several.";
  for (const CLI::App *command : app.get_subcommands(nullptr)) {
    program.commands.push_back(describeCommand(*command));
    program.commands.back().name = command->get_name();
  }
  program.notes = {"Exit codes: 0 ok, 1 diagnosed, 2 usage, 3 internal error (a bug).",
                   "Environment: DS_NUM_THREADS is how many threads a session has where --threads does not say; "
                   "DS_PYTHON is the Python of compare --onnxruntime."};
  return program;
}

} // namespace ds
