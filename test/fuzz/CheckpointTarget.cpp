// Any checkpoint.json opens or gives an Error, and what opens can be read, inspected and compared. Its own checksum
// would stop every change at the door: it is made anew. The tensors' file stays as it is; utils/fuzz makes
// checkpoint.json for it.
#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"
#include "runtime/training/CheckpointFolder.h"
#include "runtime/training/CheckpointTools.h"
#include "test/fuzz/JsonMutator.h"
#include "test/fuzz/TemporaryFile.h"

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace deepstride::fuzz;

namespace {

struct Folder {
  static std::string made(const std::string &path) {
    std::filesystem::create_directories(path);
    return "run/t/checkpoint.json";
  }

  Folder() : path(temporaryFolder() + "/run"), input(made(path + "/t")) {
    put("parameters", R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "tensors.");
    put("parameters-rank0", R"({"w[0:1]":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "tens");
    put("parameters-rank1", R"({"w[1:2]":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "ors.");
    std::ofstream(path + "/latest") << "t\n";
  }

  void put(const std::string &name, const std::string &header, const std::string &bytes) const {
    std::ofstream(path + "/t/" + name + ".safetensors")
        << static_cast<char>(header.size()) << std::string(7, '\0') << header << bytes;
  }

  std::string path;
  TemporaryFile input;
};

/// Puts a checksum at the end of a document; what is none stays as it is.
std::string sign(const std::string &text) {
  nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object())
    return text;
  document.erase("sha256");
  std::string body = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  body.back() = document.empty() ? ' ' : ',';
  return body + "\"sha256\": \"" + ds::sha256Hex(body.data(), body.size()) + "\"\n}\n";
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder folder;
  std::string text = sign(std::string(reinterpret_cast<const char *>(data), size));
  folder.input.write(text.data(), text.size());
  try {
    bool isWhole = ds::verifyCheckpoint(folder.path, "").empty();
    ds::Checkpoint checkpoint(folder.path, "t");
    ds::inspectCheckpoint(checkpoint);
    ds::inspectCheckpointJson(checkpoint);
    if (!isWhole)
      return 0;
    if (!ds::compareCheckpoints(checkpoint, checkpoint).isNone())
      finding("a checkpoint differs from itself");
    for (size_t i = 0; i < checkpoint.items().size(); ++i) {
      ds::Tensor copy(ds::ElementType::F32, checkpoint.items()[i].shape);
      checkpoint.read(i, ds::ElementType::F32, copy.data());
      int64_t half = copy.count() / 2;
      ds::Tensor parts(ds::ElementType::F32, checkpoint.items()[i].shape);
      checkpoint.readRange(i, ds::ElementType::F32, half, copy.count(), parts.data() + half * 4);
      checkpoint.readRange(i, ds::ElementType::F32, 0, half, parts.data());
      if (std::memcmp(parts.data(), copy.data(), copy.bytes()) != 0)
        finding("ranges of a tensor are not the tensor");
    }
    ds::CheckpointInfo again = ds::readCheckpointInfo(ds::writeCheckpointInfo(checkpoint.contents()));
    if (again.progress.clientState != checkpoint.progress().clientState ||
        !(again.progress.lossScale == checkpoint.progress().lossScale))
      finding("what was read is written as something else");
  } catch (const ds::Error &error) {
    expectOneLine(error.what());
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string text(reinterpret_cast<char *>(data), size);
  random.oneIn(10) ? random.mutate(text) : mutateJson(text, random);
  return store(text, data, size, maxSize);
}
