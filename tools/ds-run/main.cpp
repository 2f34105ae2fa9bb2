// ds-run: runs, compares, measures and describes packages. Parses the command line and maps errors to exit codes.
#include "tools/ds-run/Choices.h"
#include "tools/ds-run/CommandLine.h"
#include "tools/ds-run/Messages.h"
#include "tools/ds-run/OutputPaths.h"
#include "tools/ds-run/launch/Environment.h"
#include "tools/ds-run/launch/Launch.h"
#include "tools/ds-run/training/Setup.h"
#include "tools/ds-run/training/TrainOptions.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"

#include <CLI/CLI.hpp>
#include <cerrno>
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
  printMessage("error: ", error.what());
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

// A near miss of a command is taken for a package at first.
void checkPackageName(const CLI::App &app, const Options &options, const std::vector<std::string> &words) {
  if (!app.get_subcommands().empty() || options.package.empty() || isThere(options.package))
    return;
  if (std::optional<std::string> wrong = wrongName(app, words))
    fail(ErrorCode::InvalidArgument, *wrong);
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
  addCommands(app, options);
  TrainOptions training;
  addTrainingCommands(app, training);
  LaunchOptions launching;
  addLaunchOptions(app, launching);
  std::string shell;
  oneOf(app.add_option("--completion", shell, "print what teaches a shell to complete ds-run: source <(...)"),
        {"bash", "zsh"});
  bool wantsManPage = false;
  app.add_flag("--man-page", wantsManPage, "print the manual page, for man -l -");

  Arguments arguments = splitArguments(argc, argv, app);
  std::vector<std::string> words = arguments.parsed();
  for (const std::string &text : words) // CLI11 would take the next argument for the value
    if (text.rfind("--", 0) == 0 && text.find('=') == text.size() - 1) {
      printMessage("error: ", text, ": expected a value, found none");
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
    printMessage("error: ", wrongName(app, words).value_or(error.what()));
    return Usage;
  }
  try {
    if (!shell.empty() || wantsManPage) {
      commandline::ProgramText program = describe(app, DS_VERSION);
      std::printf("%s", (wantsManPage      ? manPage(program)
                         : shell == "bash" ? bashCompletion(program)
                                           : zshCompletion(program))
                            .c_str());
      finishOutput();
      return Ok;
    }
    checkOwnVariables();
    checkPackageName(app, options, words);
    checkOutputPaths(options, training);
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
    printMessage("error: internal: ", error.what(), ", reproducer: ", writeReproducer(argc, argv, error.what()));
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "ds-run: error: out of memory\n");
    return Diagnosed;
  } catch (const std::system_error &error) { // the operating system refused: a file, a thread
    printMessage("error: ", error.what());
    return Diagnosed;
  } catch (const std::exception &error) {
    printMessage("error: internal: ", error.what(), ", reproducer: ", writeReproducer(argc, argv, error.what()));
  }
  return InternalError;
}

} // namespace

} // namespace ds

int main(int argc, char **argv) { return ds::runMain(argc, argv); }
