// A program's command line as data, from which shells learn to complete it and manual pages are made. The tools fill it
// from the tables that they parse with.
#ifndef DEEPSTRIDE_TOOLS_COMMANDLINE_DESCRIPTION_H
#define DEEPSTRIDE_TOOLS_COMMANDLINE_DESCRIPTION_H

#include <string>
#include <vector>

namespace ds::commandline {

struct OptionText {
  std::vector<std::string> names; // "-n", "--ranks"
  std::string value;              // "FILE", "N"; "shm|tcp" are all values that there are; empty: takes none
  bool isOptionalValue = false;   // given as --name=VALUE or not at all
  std::string help;
};

struct CommandText {
  std::string name;                   // of the program itself: empty
  std::vector<std::string> arguments; // "PKG", "[OTHER]"
  std::string help;
  std::vector<OptionText> options;
};

struct ProgramText {
  std::string name, version, summary;
  CommandText main; // without a command
  std::vector<CommandText> commands;
  std::vector<std::string> notes; // paragraphs at the end of the manual page
};

// Scripts for "source"; zsh's also goes into a folder of fpath as _NAME.
std::string bashCompletion(const ProgramText &program);
std::string zshCompletion(const ProgramText &program);
// For man, section 1.
std::string manPage(const ProgramText &program);

// The values of "shm|tcp"; none where the text is the name of a value.
std::vector<std::string> choicesOf(const std::string &value);
// Whether a value names a file or folder: "FILE", "FILE.npz", "DIR", "PKG".
bool isPath(const std::string &value);

} // namespace ds::commandline
#endif
