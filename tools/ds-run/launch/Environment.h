// Variables that ranks get on top of what the launcher itself was given: those of .deepspeed_env or --env-file; and
// which of the launcher's own go to other machines.
#ifndef DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_ENVIRONMENT_H
#define DEEPSTRIDE_TOOLS_DS_RUN_LAUNCH_ENVIRONMENT_H

#include <string>
#include <utility>
#include <vector>

namespace ds {

// Name and value, in order; no name twice.
class Variables {
public:
  void set(const std::string &name, const std::string &value); // replaces an earlier value where it stands
  const std::string *find(const std::string &name) const;
  auto begin() const { return values.begin(); }
  auto end() const { return values.end(); }
  bool empty() const { return values.empty(); }

private:
  std::vector<std::pair<std::string, std::string>> values;
};

// What variables of ours say in this process must be legal, whether or not this command comes to read it. Throws
// Error(InvalidArgument) naming the variable; one that is empty says nothing.
void checkOwnVariables();

// NAME=VALUE a line; the value goes to the end of the line as it is, '=' and '#' in it, too. Later lines win. Throws
// Error(BadFile) with file and line; `file` is for messages.
void parseEnvironment(const std::string &text, const std::string &file, Variables &variables);

// --env-file where it is given, else .deepspeed_env of the home folder, then of the current one, where they are.
Variables readEnvironment(const std::string &envFile);

// The launcher's own variables that ranks on other machines get: NCCL*, PYTHON*, UCX*, and what `variables` has.
std::vector<std::string> exportedNames(const Variables &variables);

// This process's environment with variables on top: "NAME=VALUE" each.
std::vector<std::string> environmentWith(const Variables &variables);

} // namespace ds
#endif
