#include "tools/commandline/Description.h"

#include <algorithm>
#include <map>

namespace ds::commandline {
namespace {

bool isLong(const std::string &name) { return name.rfind("--", 0) == 0; }

// "ds-run" as part of the name of a function.
std::string identifier(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string joined(const std::vector<std::string> &words, const char *separator) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

std::vector<std::string> namesOf(const std::vector<CommandText> &commands) {
  std::vector<std::string> names;
  for (const CommandText &command : commands)
    names.push_back(command.name);
  return names;
}

// The program's own options are those without a command, which has an empty name.
std::vector<CommandText> allOf(const ProgramText &program) {
  std::vector<CommandText> all = program.commands;
  all.insert(all.begin(), program.main);
  return all;
}

std::string bashOptions(const CommandText &command) {
  std::vector<std::string> words;
  for (const OptionText &option : command.options)
    for (const std::string &name : option.names)
      words.push_back(name + (isLong(name) && !option.value.empty() && !option.isOptionalValue ? "=" : ""));
  return joined(words, " ");
}

// What may follow an option that wants a value, by command: "bench/--json)".
std::string bashValues(const ProgramText &program) {
  std::map<std::string, std::vector<std::string>> patterns; // by what completes the value
  for (const CommandText &command : allOf(program))
    for (const OptionText &option : command.options) {
      if (option.value.empty())
        continue;
      std::vector<std::string> choices = choicesOf(option.value);
      std::string action = !choices.empty()       ? "words \"" + joined(choices, " ") + "\""
                           : isPath(option.value) ? "files"
                                                  : "return";
      for (const std::string &name : option.names)
        // An optional value stands behind '=' only.
        patterns[action].push_back(command.name + "/" + name + (option.isOptionalValue ? "/=" : "/*"));
    }
  std::string text;
  for (const auto &[action, words] : patterns) {
    std::string call = action == "return" ? "return" : "_" + identifier(program.name) + "_" + action + "; return";
    text += "    " + joined(words, " | ") + ") " + call + " ;;\n";
  }
  return text;
}

// In single quotes of a shell.
std::string quoted(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Inside of a specification of _arguments, where brackets and colons have a meaning.
std::string escapedForZsh(const std::string &text) {
  std::string result;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

std::string zshOption(const OptionText &option) {
  std::string text;
  for (const std::string &name : option.names) {
    std::string spec = "*" + name; // '*': whether an option may come again is for the program to say
    if (isLong(name) && !option.value.empty())
      spec += option.isOptionalValue ? "=-" : "=";
    spec += "[" + escapedForZsh(option.help) + "]";
    if (!option.value.empty()) {
      std::vector<std::string> choices = choicesOf(option.value);
      spec +=
          std::string(option.isOptionalValue ? "::" : ":") + escapedForZsh(choices.empty() ? option.value : "value");
      spec += !choices.empty() ? ":(" + joined(choices, " ") + ")" : isPath(option.value) ? ":_files" : ": ";
    }
    text += " \\\n        " + quoted(spec);
  }
  return text;
}

} // namespace

std::vector<std::string> choicesOf(const std::string &value) {
  std::vector<std::string> choices;
  bool isName = value.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-|") != std::string::npos ||
                value.find('|') == std::string::npos;
  for (size_t at = 0; !isName && at <= value.size();) {
    size_t end = std::min(value.find('|', at), value.size());
    choices.push_back(value.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

bool isPath(const std::string &value) {
  for (const char *name : {"FILE", "DIR", "PKG", "PATH", "OUT", "OTHER", "MODEL", "IN"})
    if (value.rfind(name, 0) == 0)
      return true;
  return false;
}

std::string bashCompletion(const ProgramText &program) {
  std::string name = "_" + identifier(program.name), commands = joined(namesOf(program.commands), " ");
  std::string options, isCommand;
  for (const CommandText &command : allOf(program))
    options +=
        "    " + (command.name.empty() ? "''" : command.name) + ") options=\"" + bashOptions(command) + "\" ;;\n";
  if (!commands.empty())
    isCommand = "    case \"${COMP_WORDS[i]}\" in " + joined(namesOf(program.commands), " | ") +
                ") command=\"${COMP_WORDS[i]}\"; break ;; esac\n";
  return "# Completes " + program.name + " in bash: source it, or put it into bash-completion's folder.\n" + name +
         "_words() {\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$word\")\n"
         "}\n" +
         name +
         "_files() {\n"
         "  compopt -o filenames 2>/dev/null\n"
         "  mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "}\n" +
         name +
         "() {\n"
         "  local word=\"$2\" option=\"$3\" sign=\"\" command=\"\" options=\"\" i\n"
         "  COMPREPLY=()\n"
         "  # The shell takes --name=value for three words.\n"
         "  if [[ $word == \"=\" ]]; then word=\"\"; sign=\"=\"\n"
         "  elif [[ $option == \"=\" ]]; then option=\"${COMP_WORDS[COMP_CWORD-2]}\"; sign=\"=\"; fi\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n" +
         (isCommand.empty() ? "    :\n" : isCommand) +
         "  done\n"
         "  case \"$command/$option/$sign\" in\n" +
         bashValues(program) +
         "  esac\n"
         "  case \"$command\" in\n" +
         options +
         "  esac\n"
         "  if [[ $word == -* ]]; then\n"
         "    " +
         name +
         "_words \"$options\"\n"
         "    if [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *= ]]; then compopt -o nospace 2>/dev/null; fi\n"
         "    return\n"
         "  fi\n"
         "  " +
         name + "_files\n" +
         (commands.empty() ? ""
                           : "  if [[ -z $command ]]; then\n"
                             "    local found\n"
                             "    mapfile -t found < <(compgen -W \"" +
                                 commands +
                                 "\" -- \"$word\")\n"
                                 "    COMPREPLY+=(\"${found[@]}\")\n"
                                 "  fi\n") +
         "}\n"
         "complete -F " +
         name + " " + program.name + "\n";
}

std::string zshCompletion(const ProgramText &program) {
  std::string name = "_" + identifier(program.name);
  std::string text = "#compdef " + program.name + "\n" + name + "() {\n  local command word\n";
  text += "  for word in ${words[2,CURRENT-1]}; do\n    case $word in\n";
  for (const CommandText &command : program.commands)
    text += "      " + command.name + ") command=$word; break ;;\n";
  text += "    esac\n  done\n  case $command in\n";
  for (const CommandText &command : program.commands) {
    text += "    " + command.name + ")\n      _arguments";
    for (const OptionText &option : command.options)
      text += zshOption(option);
    text += " \\\n        '*:file:_files'\n      ;;\n";
  }
  text += "    *)\n";
  if (!program.commands.empty()) {
    text += "      local -a commands=(\n";
    for (const CommandText &command : program.commands)
      text += "        " + quoted(command.name + ":" + command.help) + "\n";
    text += "      )\n      [[ $PREFIX == -* ]] || _describe command commands\n";
  }
  text += "      _arguments";
  for (const OptionText &option : program.main.options)
    text += zshOption(option);
  text += " \\\n        '*:file:_files'\n      ;;\n  esac\n}\n";
  // Sourced, it is registered; from fpath, it is called.
  return text + "if [[ $funcstack[1] == " + name + " ]]; then " + name + " \"$@\"; else compdef " + name + " " +
         program.name + "; fi\n";
}

} // namespace ds::commandline
