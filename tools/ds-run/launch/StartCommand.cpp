#include "tools/ds-run/launch/StartCommand.h"

#include "tools/ds-run/launch/TextLines.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace ds {
namespace {

std::string quotedWord(const std::string &word) {
  const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos)
    return word;
  // NAME='VALUE', so that a shell still sees an assignment.
  size_t value = 0;
  if (size_t equals = word.find('='); equals != std::string::npos && word.find_first_not_of(plain) > equals)
    value = equals + 1;
  std::string text = word.substr(0, value) + "'";
  for (char c : word.substr(value))
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

} // namespace

std::vector<std::string> mpirunCommand(const std::vector<Host> &hosts, const std::vector<std::string> &exported,
                                       const std::vector<std::string> &program) {
  std::string list;
  for (const Host &host : hosts)
    list += (list.empty() ? "" : ",") + host.name + ":" + std::to_string(host.slots.size());
  std::vector<std::string> words = {"mpirun"};
  if (geteuid() == 0) // as in containers; mpirun refuses root otherwise
    words.emplace_back("--allow-run-as-root");
  // By slot: ranks are numbered host by host. A rank's threads are not tied to one core.
  for (const std::string &word :
       {std::string("-n"), std::to_string(slotCount(hosts)), std::string("--host"), list, std::string("--map-by"),
        std::string("slot"), std::string("--bind-to"), std::string("none")})
    words.push_back(word);
  for (const std::string &name : exported) {
    words.emplace_back("-x");
    words.push_back(name);
  }
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

std::vector<std::string> srunCommand(const std::vector<Host> &hosts, unsigned ranks, unsigned nodes,
                                     const std::vector<std::string> &program) {
  std::vector<std::string> words = {"srun", "--ntasks=" + std::to_string(ranks), "--kill-on-bad-exit=1"};
  if (!hosts.empty()) {
    // One name per rank: Slurm would sort the nodes, and give each the same number of ranks.
    std::string list;
    for (const Host &host : hosts)
      for (size_t i = 0; i < host.slots.size(); ++i)
        list += (list.empty() ? "" : ",") + host.name;
    nodes = static_cast<unsigned>(hosts.size());
    words.emplace_back("--distribution=arbitrary");
    words.push_back("--nodelist=" + list);
  }
  if (nodes)
    words.push_back("--nodes=" + std::to_string(nodes));
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

bool isInstalled(const std::string &program) {
  const char *path = std::getenv("PATH");
  std::error_code error;
  for (std::string_view folder : splitAt(path ? path : "/usr/bin:/bin", ':')) {
    std::string file = std::string(folder.empty() ? "." : folder) + "/" + program;
    if (std::filesystem::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0)
      return true;
  }
  return false;
}

std::string shellText(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + quotedWord(word);
  return text;
}

} // namespace ds
