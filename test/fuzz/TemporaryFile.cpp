#include "test/fuzz/TemporaryFile.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace deepstride::fuzz {

namespace {
struct Folder {
  std::string path;

  Folder() {
    std::error_code none;
    bool inMemory = std::filesystem::is_directory("/dev/shm", none);
    path = std::string(inMemory ? "/dev/shm" : "/tmp") + "/ds-fuzz-XXXXXX";
    if (!mkdtemp(path.data()))
      finding("cannot make " + path);
  }
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
};
} // namespace

const std::string &temporaryFolder() {
  static Folder folder;
  return folder.path;
}

TemporaryFile::TemporaryFile(const std::string &name)
    : name(temporaryFolder() + "/" + name),
      descriptor(open(this->name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
  if (descriptor < 0)
    finding("cannot make " + this->name);
}

void TemporaryFile::write(const void *data, size_t size) {
  if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != static_cast<ssize_t>(size))
    finding("cannot write " + name);
}

void finding(const std::string &what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

void expectOneLine(const char *message) {
  if (std::strchr(message, '\n'))
    finding("a message has more than one line");
}

} // namespace deepstride::fuzz
