// ds-run: runs, compares, measures and describes packages. Parses the command line and maps errors to exit codes.
#include "tools/ds-run/launch/Launch.h"
#include "tools/ds-run/training/Setup.h"
#include "tools/ds-run/training/TrainOptions.h"

#include "runtime/core/Error.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <system_error>
#include <unistd.h>

#ifndef DS_VERSION
#define DS_VERSION "0.1.0"
#endif

namespace ds {
namespace {

enum ExitCode { Ok = 0, Diagnosed = 1, Usage = 2, InternalError = 3 };

/// CLI11's own checks let NaN pass, and take -1 for a large unsigned number.
std::string finiteNumber(const std::string &text) {
  char *end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  bool isNumber = !text.empty() && *end == '\0' && std::isfinite(number) && number >= 0;
  return isNumber ? "" : "expected a number of at least 0, found '" + text + "'";
}

std::string fileName(const std::string &text) { return text.empty() ? "expected the name of a file, found ''" : ""; }

CLI::Option *addList(CLI::App *app, const std::string &name, std::vector<std::string> &values,
                     const std::string &help) {
  return app->add_option(name, values, help)->expected(1)->take_all()->allow_extra_args(false);
}

void addPackage(CLI::App *app, Options &options, bool isRequired = true) {
  auto *option = app->add_option("PKG", options.package, "package folder, model.dsp");
  if (isRequired)
    option->required();
  app->add_option("--mcpu", options.mcpu, "code variant to use (default: the best that fits)");
  app->add_flag("--no-verify", options.noVerify, "skip the checksums");
}

void addDims(CLI::App *app, Options &options) {
  addList(app, "--dim", options.dims, "size of a dynamic dimension, NAME=VALUE");
  app->add_option("--entry", options.entry, "entry to call (default: the first)");
}

void addThreads(CLI::App *app, Options &options) {
  app->add_option("--threads", options.threads,
                  "threads per rank (default: DS_NUM_THREADS, else its share of the processors)")
      ->check(CLI::Range(1u, 1024u));
}

void addProbe(CLI::App &app, Options &options) {
  CLI::App *probe = app.add_subcommand("probe", "memory bandwidth and arithmetic of this machine, and the links "
                                                "between ranks, measured in about a second");
  addThreads(probe, options);
  probe->add_option("--json", options.json, "as JSON, to standard output or a file")->expected(0, 1);
  probe->parse_complete_callback([probe, &options] { options.asJson = probe->count("--json") > 0; });
}

void addCall(CLI::App *app, Options &options) {
  addDims(app, options);
  addThreads(app, options);
  app->add_option("--seed", options.seed, "random inputs: standard normal; integers below their bound")
      ->check(finiteNumber);
}

void addInputs(CLI::App *app, Options &options) {
  addList(app, "--input", options.inputs, "NAME=@FILE.npy, NAME=@FILE.pb or NAME=VALUE");
  app->add_option("--inputs", options.inputsFrom, "all inputs: FILE.npz, or folder with NAME.npy or input_<i>.pb")
      ->check(fileName);
}

void addStates(CLI::App *app, Options &options) {
  app->add_option("--state-in", options.stateIn, "restore states from an npz before the call")->check(fileName);
}

void addRun(CLI::App &app, Options &options) {
  addPackage(&app, options, false);
  addCall(&app, options);
  addInputs(&app, options);
  app.add_option("--output", options.output, "write the outputs to an npz instead of printing them")->check(fileName);
  addStates(&app, options);
  app.add_option("--state-out", options.stateOut, "save states to an npz after the call")->check(fileName);
}

std::string quoted(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// A bug of ours: what is needed to see it again goes into a file.
std::string writeReproducer(int argc, char **argv, const char *message) {
  const char *folder = std::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/ds-run-reproducer-XXXXXX";
  int descriptor = mkstemp(path.data());
  if (descriptor < 0)
    return "(no reproducer could be written)";
  std::string text = "ds-run " DS_VERSION "\nerror: " + std::string(message) + "\ncd ";
  char *current = getcwd(nullptr, 0);
  text += quoted(current ? current : "?") + "\n";
  std::free(current);
  for (int i = 0; i < argc; ++i)
    text += (i ? " " : "") + quoted(argv[i]);
  text += "\n";
  bool isWritten = write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(descriptor);
  return isWritten ? path : "(no reproducer could be written)";
}

int report(const Error &error) {
  std::fflush(stdout);
  std::fprintf(stderr, "ds-run: error: %s\n", error.what());
  switch (error.getCode()) {
  case ErrorCode::InvalidArgument:
  case ErrorCode::UnboundDimension: return Usage;
  default: return Diagnosed;
  }
}

// What was printed may not have arrived: a full disk shows only now.
void finishOutput() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    fail(ErrorCode::Io, "standard output: cannot write: ", std::strerror(errno ? errno : EIO));
}

int runSubcommand(CLI::App &app, const Options &options, const TrainOptions &training) {
  if (std::optional<int> code = runTrainingCommand(app, training))
    return *code;
  if (app.got_subcommand("compare"))
    return compareCommand(options);
  if (app.got_subcommand("bench"))
    return benchCommand(options);
  if (app.got_subcommand("inspect"))
    return inspectCommand(options);
  if (app.got_subcommand("profile"))
    return profileCommand(options);
  if (app.got_subcommand("probe"))
    return probeCommand(options);
  if (app.got_subcommand("gradients"))
    return gradientsCommand(options);
  if (options.package.empty())
    fail(ErrorCode::InvalidArgument, "no package given, expected ds-run PKG (see --help)");
  return runCommand(options);
}

int dispatch(CLI::App &app, const Options &options, const TrainOptions &training) {
  int code = runSubcommand(app, options, training);
  finishOutput();
  return code;
}

int runMain(int argc, char **argv) {
  std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of write, not the end of the process
  Options options;
  CLI::App app("Runs packages that ds-opt wrote.\n"
               "Exit codes: 0 ok, 1 diagnosed, 2 usage, 3 internal error (a bug).",
               "ds-run");
  app.set_version_flag("--version", "ds-run " DS_VERSION);
  app.require_subcommand(0, 1);
  addRun(app, options);

  CLI::App *compare = app.add_subcommand(
      "compare",
      "outputs against a test data folder or outputs and states against another package; exits 1 when one differs or "
      "has no partner");
  addPackage(compare, options);
  compare->add_option("OTHER", options.other, "test_data_set_* folder, or another package")->required();
  addCall(compare, options);
  addInputs(compare, options);
  addStates(compare, options);
  compare->add_option("--rtol", options.rtol, "relative tolerance of floats (1e-3, or the step of a coarser type)")
      ->check(finiteNumber);
  compare
      ->add_option("--atol", options.atol,
                   "absolute tolerance (floats: rtol times the median magnitude of the expected tensor; integers 0); "
                   "booleans have none")
      ->check(finiteNumber);

  CLI::App *bench = app.add_subcommand("bench", "latency, and how close it is to this machine's ceilings");
  addPackage(bench, options);
  addCall(bench, options);
  addInputs(bench, options);
  bench->add_option("--duration", options.duration, "seconds to measure (3)")
      ->check(finiteNumber)
      ->check(CLI::Range(0.01, 3600.0));
  bench->add_option("--json", options.json, "write the figures to a file")->check(fileName);

  CLI::App *inspect = app.add_subcommand("inspect", "what a package holds");
  addPackage(inspect, options);
  addDims(inspect, options);
  inspect->add_flag("--json", options.asJson, "as JSON");
  inspect->add_option("--graph", options.graph, "draw an entry's blocks into FILE.svg, or FILE.dot for Graphviz")
      ->check(fileName);

  CLI::App *profile = app.add_subcommand("profile", "time of every launch, operator and module of a call, or of a step "
                                                    "of training, beside what this machine could do");
  addPackage(profile, options);
  addCall(profile, options);
  addInputs(profile, options);
  profile->add_option("--duration", options.duration, "seconds of calls to measure (0.2)")
      ->check(finiteNumber)
      ->check(CLI::Range(0.01, 3600.0));
  profile->add_option("--json", options.json, "write the figures to a file")->check(fileName);
  profile->add_option("--html", options.html, "write a page: layers, roofline, kernels, nodes, modules")
      ->check(fileName);
  profile
      ->add_option("--module-depth", options.moduleDepth,
                   "last depth of the largest modules; -1: all (-1, or as the package's flops_profiler says)")
      ->check(CLI::Range(-1, 1000));
  profile->add_option("--top-modules", options.topModules, "how many of each depth are named (1, or as it says)")
      ->check(CLI::Range(1, 1000000));
  profile->add_flag_function(
      "--detailed,!--no-detailed", [&options](int64_t count) { options.detailed = count > 0; },
      "whether each module has a line (yes, or as it says)");
  profile->add_option("--trace", options.trace, "write a Chrome or Perfetto trace")->check(fileName);

  CLI::App *gradients = app.add_subcommand(
      "gradients", "the loss of one micro-batch of a package of --mode=train, and the gradient of each parameter");
  addPackage(gradients, options);
  addCall(gradients, options);
  addInputs(gradients, options);
  addStates(gradients, options);
  gradients->add_option("--output", options.output, "write 'loss' and each parameter's gradient to an npz")
      ->check(fileName);

  addProbe(app, options);
  TrainOptions training;
  addTrainingCommands(app, training);
  LaunchOptions launching;
  addLaunchOptions(app, launching);

  Arguments arguments = splitArguments(argc, argv, app);
  std::vector<std::string> words = arguments.parsed();
  for (const std::string &text : words) // CLI11 would take the next argument for the value
    if (text.rfind("--", 0) == 0 && text.find('=') == text.size() - 1) {
      std::fprintf(stderr, "ds-run: error: %s: expected a value, found none\n", text.c_str());
      return Usage;
    }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return std::cout.flush() ? Ok
                               : (std::fprintf(stderr, "ds-run: error: standard output: cannot write\n"), Diagnosed);
    }
    std::fprintf(stderr, "ds-run: error: %s\n", error.what());
    return Usage;
  }
  try {
    auto chosen = app.get_subcommands();
    LaunchedCommand command{chosen.empty() ? "" : chosen[0]->get_name(), training.checkpoint, training.resumeTag,
                            nullptr};
    if (command.name == "train")
      command.fittingRanks = [&](unsigned most) { return fittingRanks(training, most); };
    if (std::optional<int> code = launch(launching, arguments, command)) {
      finishOutput();
      return *code;
    }
    options.ranks = threadRanks(launching);
    options.timeout = launching.timeout.value_or(options.timeout);
    return dispatch(app, options, training);
  } catch (const Error &error) {
    if (error.getCode() != ErrorCode::Internal)
      return report(error);
    std::fprintf(stderr, "ds-run: error: internal: %s, reproducer: %s\n", error.what(),
                 writeReproducer(argc, argv, error.what()).c_str());
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "ds-run: error: out of memory\n");
    return Diagnosed;
  } catch (const std::system_error &error) { // the operating system refused: a file, a thread
    std::fprintf(stderr, "ds-run: error: %s\n", error.what());
    return Diagnosed;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "ds-run: error: internal: %s, reproducer: %s\n", error.what(),
                 writeReproducer(argc, argv, error.what()).c_str());
  }
  return InternalError;
}

} // namespace

} // namespace ds

int main(int argc, char **argv) { return ds::runMain(argc, argv); }
