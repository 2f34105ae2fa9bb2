// A package that is no folder: its files lie in memory, here read from one. A program could have them from its own
// resources, an archive or a network.
//
//   memory model.dsp
#include "ds/runtime.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

// Files and the memory that they lie in, 64-byte aligned, which has to outlive the package and its sessions.
struct Resources {
  std::vector<ds::File> files;
  std::vector<std::unique_ptr<void, void (*)(void *)>> memory;

  bool add(const std::filesystem::path &path) {
    std::size_t size = std::filesystem::file_size(path);
    memory.emplace_back(std::aligned_alloc(64, (size / 64 + 1) * 64), std::free);
    files.push_back({path.filename().string(), memory.back().get(), size});
    std::ifstream in(path, std::ios::binary);
    return memory.back() && in.read(static_cast<char *>(memory.back().get()), static_cast<std::streamsize>(size));
  }
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: memory model.dsp\n");
    return 2;
  }
  try {
    Resources resources;
    for (const auto &item : std::filesystem::directory_iterator(argv[1]))
      if (!resources.add(item.path()))
        return 1;
    ds::Session session{ds::Package(resources.files)};
    alignas(64) float x[3] = {1, 2, 3};
    ds::Outputs outputs = session.run({{"x", x, {1, 3}}});
    ds::Span<float> y = outputs["y"].as<float>();
    std::printf("y: %g %g\n", y[0], y[1]);
  } catch (const std::exception &error) {
    std::printf("memory: %s\n", error.what());
    return 1;
  }
  return 0;
}
