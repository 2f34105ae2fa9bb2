// A folder in memory for interfaces that take paths; its files are rewritten for each run.
#ifndef DEEPSTRIDE_TEST_FUZZ_TEMPORARYFILE_H
#define DEEPSTRIDE_TEST_FUZZ_TEMPORARYFILE_H

#include <cstddef>
#include <string>

namespace deepstride::fuzz {

/// The process's folder, made at first use and removed at exit.
const std::string &temporaryFolder();

/// A file of that folder that stays open.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &name);
  const std::string &path() const { return name; }
  void write(const void *data, size_t size);

private:
  std::string name;
  int descriptor;
};

/// Ends the process as libFuzzer expects of a finding.
[[noreturn]] void finding(const std::string &what);

/// A message of more than one line is one: whatever names a file holds.
void expectOneLine(const char *message);

} // namespace deepstride::fuzz

#endif
