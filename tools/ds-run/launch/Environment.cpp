#include "tools/ds-run/launch/Environment.h"

#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Text.h"
#include "runtime/core/ThreadPool.h"
#include "tools/ds-run/launch/TextLines.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <set>
#include <unistd.h>

namespace ds {
namespace {

bool startsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool isName(std::string_view text) {
  auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && isLetter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

// What tells a rank which one it is: a file that set it would make all ranks the same.
bool isLaunchers(std::string_view name) {
  for (std::string_view own : {"DS_RANK", "DS_WORLD", "DS_LOCAL_RANK", "DS_TRANSPORT", "DS_RENDEZVOUS", "DS_HOST",
                               "DS_TIMEOUT", "DS_RESTART", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"})
    if (name == own)
      return true;
  return startsWith(name, "OMPI_COMM_WORLD_") || startsWith(name, "PMIX_");
}

} // namespace

void checkOwnVariables() {
  auto valueOf = [](const char *name) -> std::string {
    const char *text = std::getenv(name);
    return text ? text : "";
  };
  auto refuse = [](const char *name, const char *legal, const std::string &found) {
    fail(ErrorCode::InvalidArgument, name, ": found ", inQuotes(found), ", expected ", legal);
  };
  (void)ThreadPool::defaultThreads();
  for (const char *name : {"DS_RANK", "DS_WORLD", "DS_LOCAL_RANK", "DS_RESTART"})
    if (std::string text = valueOf(name); !text.empty() && !wholeNumber(text, INT_MAX))
      refuse(name, "a number", text);
  if (std::string text = valueOf("DS_TRANSPORT"); !text.empty() && text != "shm" && text != "tcp" && text != "mpi")
    refuse("DS_TRANSPORT", "shm, tcp or mpi", text);
  if (std::string text = valueOf("DS_TIMEOUT"); !text.empty()) {
    char *end = nullptr;
    double seconds = std::strtod(text.c_str(), &end);
    if (*end || !(seconds > 0 && seconds <= 1e6))
      refuse("DS_TIMEOUT", "seconds, more than 0 and at most 1000000", text);
  }
}

void Variables::set(const std::string &name, const std::string &value) {
  for (auto &[known, old] : values)
    if (known == name) {
      old = value;
      return;
    }
  values.emplace_back(name, value);
}

const std::string *Variables::find(const std::string &name) const {
  for (const auto &[known, value] : values)
    if (known == name)
      return &value;
  return nullptr;
}

void parseEnvironment(const std::string &text, const std::string &file, Variables &variables) {
  for (const TextLine &line : linesOf(text, file)) {
    size_t equals = line.text.find('=');
    std::string_view name = line.text.substr(0, equals);
    if (equals == std::string_view::npos || !isName(name))
      fail(ErrorCode::BadFile, line.place, ": found ", inQuotes(line.text),
           ", expected NAME=VALUE with a name of letters, digits and _");
    if (line.text.find('\0') != std::string_view::npos)
      fail(ErrorCode::BadFile, line.place, ": the value of ", inQuotes(name), " has a zero byte");
    if (isLaunchers(name))
      fail(ErrorCode::BadFile, line.place, ": ", inQuotes(name), " is set for each rank by what starts it");
    variables.set(std::string(name), std::string(line.text.substr(equals + 1)));
  }
}

Variables readEnvironment(const std::string &envFile) {
  Variables variables;
  if (!envFile.empty()) {
    annotated("--env-file", [&] { parseEnvironment(readHandWritten(envFile), envFile, variables); });
    return variables;
  }
  const std::string name = ".deepspeed_env";
  if (const char *home = std::getenv("HOME"); home && *home)
    if (std::string path = std::string(home) + "/" + name; isThere(path))
      parseEnvironment(readHandWritten(path), path, variables);
  if (isThere(name))
    parseEnvironment(readHandWritten(name), name, variables);
  return variables;
}

std::vector<std::string> exportedNames(const Variables &variables) {
  std::set<std::string> names;
  for (char **entry = environ; *entry; ++entry) {
    std::string_view text(*entry);
    std::string_view name = text.substr(0, text.find('='));
    for (std::string_view prefix : {"NCCL", "PYTHON", "UCX"})
      if (startsWith(name, prefix) && isName(name))
        names.emplace(name);
  }
  for (const auto &[name, value] : variables)
    names.insert(name);
  return {names.begin(), names.end()};
}

std::vector<std::string> environmentWith(const Variables &variables) {
  std::vector<std::string> result;
  for (char **entry = environ; *entry; ++entry) {
    std::string text(*entry);
    if (!variables.find(text.substr(0, text.find('='))))
      result.push_back(text);
  }
  for (const auto &[name, value] : variables)
    result.push_back(concat(name, "=", value));
  return result;
}

} // namespace ds
