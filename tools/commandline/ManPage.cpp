#include "tools/commandline/Description.h"

#include <algorithm>

namespace ds::commandline {
namespace {

// A minus that can be copied, a list of choices that may go on in the next line, and no line that roff takes for a
// request.
std::string roff(const std::string &text) {
  std::string result;
  for (char c : text)
    result += c == '|'    ? std::string("|\\:")
              : c == '\\' ? std::string("\\e")
              : c == '-'  ? std::string("\\-")
                          : std::string(1, c == '\n' ? ' ' : c);
  return !result.empty() && (result[0] == '.' || result[0] == '\'') ? "\\&" + result : result;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

std::string optionEntry(const OptionText &option) {
  std::string text = ".TP\n";
  const char *separator = "";
  for (const std::string &name : option.names) {
    bool isLong = name.rfind("--", 0) == 0;
    text += separator + ("\\fB" + roff(name)) + "\\fR";
    if (!option.value.empty())
      text += (option.isOptionalValue ? "[="
               : isLong               ? "="
                                      : " ") +
              ("\\fI" + roff(option.value)) + "\\fR" + (option.isOptionalValue ? "]" : "");
    separator = ", ";
  }
  return text + "\n" + roff(option.help) + "\n";
}

std::string synopsis(const ProgramText &program, const CommandText &command) {
  std::string text = ".B " + roff(program.name + (command.name.empty() ? "" : " " + command.name)) + "\n";
  std::string rest;
  for (const std::string &argument : command.arguments)
    rest += roff(argument) + " ";
  return text + ".RI " + "\"" + rest + "[options]\"\n.br\n";
}

} // namespace

std::string manPage(const ProgramText &program) {
  std::string text = ".TH " + roff(upper(program.name)) + " 1 \"\" \"Deepstride " + roff(program.version) + "\"\n";
  text += ".ad l\n.nh\n"; // names of options are too long for straight margins, and are not to be broken
  text += ".SH NAME\n" + roff(program.name) + " \\- " + roff(program.summary) + "\n.SH SYNOPSIS\n";
  text += synopsis(program, program.main);
  for (const CommandText &command : program.commands)
    text += synopsis(program, command);
  text += ".SH OPTIONS\n" + (program.main.help.empty() ? "" : roff(program.main.help) + "\n");
  for (const OptionText &option : program.main.options)
    text += optionEntry(option);
  if (!program.commands.empty())
    text += ".SH COMMANDS\n";
  for (const CommandText &command : program.commands) {
    text += ".SS \"" + roff(program.name + " " + command.name) + "\"\n" + roff(command.help) + "\n";
    for (const OptionText &option : command.options)
      text += optionEntry(option);
  }
  text += ".SH NOTES\n";
  for (const std::string &note : program.notes)
    text += ".PP\n" + roff(note) + "\n";
  return text;
}

} // namespace ds::commandline
