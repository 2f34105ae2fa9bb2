// Writes packages for tests: the manifest that belongs to Inputs/package.c, weights and checksums.
#ifndef DEEPSTRIDE_TEST_UNIT_RUNTIME_PACKAGEBUILDER_H
#define DEEPSTRIDE_TEST_UNIT_RUNTIME_PACKAGEBUILDER_H

#include "runtime/core/Tensor.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ds::test {

// A folder that disappears with the object.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string &path() const { return folder; }
  std::string file(const std::string &name) const { return folder + "/" + name; }

private:
  std::string folder;
};

// The manifest of Inputs/package.c. The constant "weight" is f32 [4] = 1, 2, 3, 4 at 0; "start" f32 [4] = 10, 20, 30,
// 40 at 64.
nlohmann::json testManifest();

// The same for its entries of training: one parameter "w" and one running statistic "m", both of "weight", and keys of
// ds_config.json with their values.
nlohmann::json trainingManifest(const nlohmann::json &values = nlohmann::json::object(), bool accumulates = true);

// Writes model.dsp into the folder and returns its path.
std::string writePackage(const std::string &folder, const nlohmann::json &manifest = testManifest(),
                         const std::string &name = "model.dsp");

// Rewrites SHA256SUMS for what lies in the package now; chunks of at most chunkBytes.
void writeChecksums(const std::string &package, size_t chunkBytes = 64);

std::string readFile(const std::string &path);
void writeFile(const std::string &path, const std::string &bytes);

// A tensor with these elements, in row-major order.
template <typename T> Tensor tensor(ElementType type, Shape shape, const std::vector<T> &values) {
  Tensor result(type, std::move(shape));
  if (result.bytes() != 0)
    std::memcpy(result.data(), values.data(), result.bytes());
  return result;
}

// The message of the Error that the action throws; empty when it throws none.
template <typename Action> std::string errorOf(Action action) {
  try {
    action();
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

} // namespace ds::test
#endif
