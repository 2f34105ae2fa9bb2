#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/abi/ds_abi.h"
#include "runtime/core/Checksums.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace ds::test {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

Json tensor(const char *name, const char *type, std::vector<std::string> shape) {
  return {{"name", name}, {"type", type}, {"shape", shape}};
}

Json buffer(const char *role, unsigned index) { return {{"role", role}, {"index", index}}; }

Json workspace(unsigned bytes, unsigned first, unsigned last) {
  return {{"role", "workspace"}, {"bytes", bytes}, {"first", first}, {"last", last}};
}

Json launch(const char *kernel, const char *site, std::vector<unsigned> operands, const char *flops = "0",
            Json results = Json::array()) {
  return {{"kernel", kernel}, {"site", site},        {"operands", operands},
          {"flops", flops},   {"arithmetic", "f32"}, {"results", results}};
}

Json result(unsigned buffer, const char *value, std::vector<std::string> shape) {
  return {{"buffer", buffer}, {"value", value}, {"type", "f32"}, {"shape", shape}};
}

Json dim(const char *name) { return {{"name", name}, {"kind", "dim"}}; }

Json emptyEntry(const char *name) {
  Json entry = {{"name", name}};
  for (const char *key :
       {"symbols", "sizes", "constraints", "inputs", "outputs", "states", "buffers", "launches", "collectives"})
    entry[key] = Json::array();
  return entry;
}

Json mainEntry() {
  Json entry = emptyEntry("main");
  entry["symbols"] = {dim("rows"), dim("n")};
  entry["sizes"] = {"n", "rows", "rows*n", "4*rows*n", "4*n"};
  entry["constraints"] = {{{"relation", "equal"}, {"lhs", "n"}, {"rhs", "4"}, {"where", "/layer/Mul"}}};
  entry["inputs"] = {tensor("x", "f32", {"rows", "n"})};
  entry["outputs"] = {tensor("y", "f32", {"rows", "n"})};
  entry["buffers"] = {buffer("constant", 0), buffer("input", 0), workspace(3, 0, 1), buffer("output", 0)};
  entry["launches"] = {
      launch("scale_rows", "/layer/Mul", {0, 1}, "rows*n", Json::array({result(2, "hidden", {"rows", "n"})})),
      launch("add", "/layer/Add", {2, 0}, "rows*n", Json::array({result(3, "y", {"rows", "n"})}))};
  return entry;
}

Json scaleEntry() {
  Json entry = mainEntry();
  entry["name"] = "scale";
  entry["buffers"] = {buffer("constant", 0), buffer("input", 0), buffer("output", 0)};
  entry["launches"] = {launch("scale_rows", "/scale/Mul", {0, 1}, "rows*n")};
  return entry;
}

Json reshapeEntry() {
  Json entry = emptyEntry("reshape");
  entry["symbols"] = {dim("n"),
                      {{"name", "shape[0]"}, {"kind", "element"}, {"input", 1}, {"index", 0}},
                      {{"name", "shape[1]"}, {"kind", "element"}, {"input", 1}, {"index", 1}}};
  entry["sizes"] = {"n"};
  entry["constraints"] = {{{"relation", "equal"}, {"lhs", "shape[0]*shape[1]"}, {"rhs", "n"}, {"where", "/Reshape"}},
                          {{"relation", "at-least"}, {"lhs", "shape[0]"}, {"rhs", "0"}, {"where", "/Reshape"}}};
  entry["inputs"] = {tensor("x", "f32", {"n"}), tensor("shape", "i64", {"2"})};
  entry["outputs"] = {tensor("y", "f32", {"shape[0]", "shape[1]"})};
  entry["buffers"] = {buffer("input", 0), buffer("input", 1), buffer("output", 0)};
  entry["launches"] = {launch("copy", "/Reshape", {0})};
  return entry;
}

Json positiveEntry(const char *name) {
  Json entry = emptyEntry(name);
  entry["symbols"] = {dim("n"), {{"name", "count"}, {"kind", "computed"}}};
  entry["sizes"] = {"n", "1", "4*count", "count", "8"};
  entry["inputs"] = {tensor("x", "f32", {"n"})};
  entry["outputs"] = {tensor("y", "f32", {"count"})};
  entry["buffers"] = {buffer("input", 0), workspace(4, 0, 0), workspace(2, 1, 2), buffer("output", 0)};
  entry["launches"] = {launch("count", "/NonZero", {0}), launch("keep", "/NonZero", {0}),
                       launch("copy", "/Gather", {2})};
  return entry;
}

Json countEntry() {
  Json entry = emptyEntry("count");
  entry["sizes"] = {"4"};
  entry["inputs"] = {tensor("x", "f32", {"4"})};
  entry["outputs"] = {tensor("y", "f32", {"4"})};
  Json state = tensor("total", "f32", {"4"});
  state["initial"] = 1;
  entry["states"] = {state};
  entry["buffers"] = {buffer("input", 0), buffer("state", 0), buffer("output", 0)};
  entry["launches"] = {launch("add", "/Add", {0, 1}, "0", Json::array({result(1, "", {"4"})})),
                       launch("copy", "/Identity", {1}, "0", Json::array({result(2, "", {"4"})}))};
  return entry;
}

Json totalState() {
  Json state = tensor("total", "f32", {"4"});
  state["initial"] = 1;
  return state;
}

Json advanceEntry() {
  Json entry = emptyEntry("advance");
  entry["symbols"] = {dim("count")};
  entry["sizes"] = {"4", "count"};
  entry["inputs"] = {tensor("x", "f32", {"4"}), tensor("indices", "i64", {"count"})};
  entry["outputs"] = {tensor("y", "f32", {"count"})};
  entry["states"] = {totalState(), tensor("late", "f32", {"4"})};
  entry["buffers"] = {buffer("input", 0), buffer("input", 1), buffer("state", 0), buffer("state", 1),
                      buffer("output", 0)};
  entry["launches"] = {launch("add", "/Add", {2, 0}, "0", Json::array({result(2, "", {"4"})})),
                       launch("gather", "/Gather", {0, 1}, "0", Json::array({result(4, "y", {"count"})})),
                       launch("add", "/AddLate", {3, 0}, "0", Json::array({result(3, "", {"4"})}))};
  return entry;
}

Json peekEntry() {
  Json entry = emptyEntry("peek");
  entry["sizes"] = {"4"};
  entry["outputs"] = {tensor("y", "f32", {"4"})};
  entry["states"] = {tensor("late", "f32", {"4"})};
  entry["buffers"] = {buffer("state", 0), buffer("output", 0)};
  entry["launches"] = {launch("copy", "/Identity", {0}, "0", Json::array({result(1, "y", {"4"})}))};
  return entry;
}

Json historyEntry() {
  Json entry = emptyEntry("history");
  entry["symbols"] = {dim("n"), dim("count")};
  entry["sizes"] = {"n", "count"};
  entry["inputs"] = {tensor("x", "f32", {"n"}), tensor("indices", "i64", {"count"})};
  entry["outputs"] = {tensor("y", "f32", {"count"})};
  entry["states"] = {tensor("past", "f32", {"n"})};
  entry["buffers"] = {buffer("input", 0), buffer("input", 1), buffer("state", 0), buffer("output", 0)};
  entry["launches"] = {launch("add", "/Add", {2, 0}, "0", Json::array({result(2, "", {"n"})})),
                       launch("gather", "/Gather", {2, 1}, "0", Json::array({result(3, "y", {"count"})}))};
  return entry;
}

// A sum over ranks of all elements of one buffer, into another.
Json allReduce(const std::string &count, int source, int destination) {
  std::string shard = "ceildiv(" + count + ", mesh.data)", bytes = "8*(mesh.data - 1)*" + shard;
  Json piece = {{"buffer", destination}, {"source", source}, {"offset", "0"}, {"count", count}};
  Json part = {
      {"shard", shard}, {"begin", "0"}, {"end", "mesh.data*" + shard}, {"whole", Json::array({std::move(piece)})}};
  return {{"op", "all_reduce"}, {"site", "grad"}, {"axis", "data"},    {"type", "f32"},
          {"reduction", "sum"}, {"sent", bytes},  {"received", bytes}, {"parts", Json::array({std::move(part)})}};
}

// drift reduces into the output, merge into the state.
Json stateReduceEntry(const char *name) {
  Json entry = emptyEntry(name);
  entry["sizes"] = {"4"};
  entry["inputs"] = {tensor("x", "f32", {"4"})};
  entry["outputs"] = {tensor("y", "f32", {"4"})};
  entry["states"] = {totalState()};
  entry["buffers"] = {buffer("input", 0), buffer("state", 0), buffer("output", 0)};
  bool isDrift = std::string(name) == "drift";
  entry["launches"] = {isDrift ? launch("add", "/Add", {1, 0}, "0", Json::array({result(1, "", {"4"})}))
                               : launch("copy", "/Identity", {1}, "0", Json::array({result(2, "y", {"4"})}))};
  entry["symbols"] = {{{"name", "mesh.data"}, {"kind", "mesh"}}};
  entry["collectives"] = {allReduce("4", 0, isDrift ? 2 : 1)};
  return entry;
}

Json reduceEntry(const char *name) {
  Json entry = emptyEntry(name);
  entry["symbols"] = {dim("n"), {{"name", "mesh.data"}, {"kind", "mesh"}}};
  entry["sizes"] = {"n"};
  entry["inputs"] = {tensor("x", "f32", {"n"})};
  entry["outputs"] = {tensor("y", "f32", {"n"})};
  entry["buffers"] = {buffer("input", 0), buffer("output", 0)};
  entry["collectives"] = {allReduce("n", 0, 1)};
  return entry;
}

Json lookupEntry() {
  Json entry = emptyEntry("lookup");
  entry["symbols"] = {dim("n"), dim("count")};
  entry["sizes"] = {"count", "n"};
  Json indices = tensor("indices", "i64", {"count"});
  indices["bound"] = 3;
  entry["inputs"] = {tensor("table", "f32", {"n"}), indices};
  entry["outputs"] = {tensor("y", "f32", {"count"})};
  entry["buffers"] = {buffer("input", 0), buffer("input", 1), buffer("output", 0)};
  entry["launches"] = {launch("gather", "/embeddings/Gather", {0, 1})};
  return entry;
}

Json scalar(const char *name, const char *type) { return tensor(name, type, {}); }

Json weightState() {
  Json state = tensor("w", "f32", {"4"});
  state["initial"] = 0;
  return state;
}

Json runningState() {
  Json state = tensor("m", "f32", {"4"});
  state["initial"] = 0;
  state["statistic"] = true;
  return state;
}

Json batchEntry(const char *name) {
  Json entry = emptyEntry(name);
  entry["symbols"] = {dim("n")};
  entry["sizes"] = {"n", "1", "4", "16"};
  entry["inputs"] = {tensor("x", "f32", {"n", "4"}), tensor("labels", "i64", {"n"})};
  return entry;
}

Json microEntry(bool accumulates) {
  Json entry = batchEntry("micro");
  entry["inputs"].push_back(scalar("loss_weight", "f64"));
  if (accumulates)
    entry["inputs"].push_back(scalar("first", "i1"));
  entry["outputs"] = {scalar("loss", "f32")};
  entry["states"] = {weightState(), tensor("w/gradient", "f32", {"4"}), runningState(),
                     tensor("m/moved", "f32", {"4"})};
  entry["buffers"] = {buffer("input", 0), buffer("input", 1), buffer("input", 2), buffer("state", 0),
                      buffer("state", 1), buffer("state", 2), buffer("state", 3), buffer("output", 0)};
  entry["launches"] = {launch("add_gradient", "", {0, 2, 4}, "0", Json::array({result(4, "", {"4"})})),
                       launch("move_halfway", "", {0, 6}, "0", Json::array({result(6, "", {"4"})})),
                       launch("sum_loss", "/Loss", {0, 3}, "0", Json::array({result(7, "loss", {})}))};
  return entry;
}

Json evalEntry() {
  Json entry = batchEntry("eval");
  entry["outputs"] = {scalar("loss", "f32"), scalar("counted", "i64"), scalar("correct", "i64"),
                      tensor("y", "f32", {"n", "4"})};
  entry["states"] = {weightState(), runningState()};
  entry["buffers"] = {buffer("input", 0),  buffer("input", 1),  buffer("state", 0),  buffer("state", 1),
                      buffer("output", 0), buffer("output", 1), buffer("output", 2), buffer("output", 3)};
  entry["launches"] = {launch("sum_loss", "/Loss", {0, 2}), launch("count_rows", "/Loss", {}),
                       launch("scale_rows", "/Mul", {0, 2})};
  return entry;
}

Json updateEntry() {
  Json entry = emptyEntry("update");
  entry["sizes"] = {"1"};
  for (const char *name : {"learning_rate", "momentum", "step", "loss_scale"})
    entry["inputs"].push_back(scalar(name, "f64"));
  entry["outputs"] = {scalar("grad_norm", "f64"), scalar("finite", "i1")};
  entry["states"] = {weightState(), tensor("w/gradient", "f32", {"4"}), tensor("w/sum", "f32", {"4"}), runningState(),
                     tensor("m/moved", "f32", {"4"})};
  for (unsigned i = 0; i < 4; ++i)
    entry["buffers"].push_back(buffer("input", i));
  for (unsigned i = 0; i < 5; ++i)
    entry["buffers"].push_back(buffer("state", i));
  for (unsigned i = 0; i < 2; ++i)
    entry["buffers"].push_back(buffer("output", i));
  entry["launches"] = {launch("descend", "", {0, 3, 4, 5, 6, 7, 8}, "0",
                              Json::array({result(4, "", {"4"}), result(6, "", {"4"}), result(7, "", {"4"})}))};
  return entry;
}

} // namespace

Json trainingManifest(const Json &values, bool accumulates) {
  Json manifest = testManifest(), keys = Json::array();
  for (const auto &[key, value] : values.items())
    keys.push_back({{"key", key}, {"value", value}});
  manifest["variants"][0]["entries"] = {evalEntry(), microEntry(accumulates), updateEntry()};
  manifest["training"] = {{"config", {{"keys", keys}}},
                          {"labels", "labels"},
                          {"classes", 3},
                          {"ignored_label", -100},
                          {"shifts_labels", false}};
  return manifest;
}

Json testManifest() {
  Json variant = {{"mcpu", "x86-64"}, {"features", {"sse2"}}, {"code", "code-x86-64.so"}, {"vector_bits", 128}};
  auto constant = [](const char *name, unsigned offset) -> Json {
    return {{"name", name}, {"offset", offset}, {"bytes", 16}, {"type", "f32"}, {"shape", {4}}, {"layout", "dense"}};
  };
  variant["constants"] = {constant("weight", 0), constant("start", 64)};
  variant["entries"] = {mainEntry(),
                        scaleEntry(),
                        reshapeEntry(),
                        positiveEntry("positive"),
                        positiveEntry("forgetful"),
                        countEntry(),
                        reduceEntry("reduce"),
                        reduceEntry("skipped"),
                        lookupEntry(),
                        reduceEntry("stuck"),
                        advanceEntry(),
                        peekEntry(),
                        historyEntry(),
                        stateReduceEntry("drift"),
                        stateReduceEntry("merge")};
  return {{"format", 1},
          {"abi", DS_ABI_VERSION},
          {"compiler", "by hand"},
          {"model", "model.onnx"},
          {"config", {{"quantize", {{"value", "none"}, {"origin", "default"}}}}},
          {"variants", Json::array({variant})}};
}

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
}

void writeChecksums(const std::string &package, size_t chunkBytes) {
  std::vector<std::string> names;
  for (const auto &item : fs::directory_iterator(package))
    if (item.path().filename() != "SHA256SUMS")
      names.push_back(item.path().filename().string());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string &name : names) {
    std::string bytes = readFile(package + "/" + name);
    if (name != "weights.bin") {
      text += sha256Hex(bytes.data(), bytes.size()) + "  " + name + "\n";
      continue;
    }
    for (size_t at = 0; at < bytes.size(); at += chunkBytes) {
      size_t length = std::min(chunkBytes, bytes.size() - at);
      text += sha256Hex(bytes.data() + at, length) + "  weights.bin:" + std::to_string(at) + "+" +
              std::to_string(length) + "\n";
    }
  }
  text += sha256Hex(text.data(), text.size()) + "  SHA256SUMS\n";
  writeFile(package + "/SHA256SUMS", text);
}

std::string writePackage(const std::string &folder, const Json &manifest, const std::string &name) {
  std::string package = folder + "/" + name;
  fs::create_directories(package);
  writeFile(package + "/manifest.json", manifest.dump(1));
  for (const Json &variant : manifest["variants"])
    fs::copy_file(DS_TEST_PACKAGE_CODE, package + "/" + variant["code"].get<std::string>(),
                  fs::copy_options::overwrite_existing);
  std::string weights(128, '\0');
  const float values[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  weights.replace(0, 16, reinterpret_cast<const char *>(values[0]), 16);
  weights.replace(64, 16, reinterpret_cast<const char *>(values[1]), 16);
  writeFile(package + "/weights.bin", weights);
  writeChecksums(package);
  return package;
}

TemporaryFolder::TemporaryFolder() {
  folder = (fs::temp_directory_path() / "ds-runtime-unit-XXXXXX").string();
  if (!mkdtemp(folder.data()))
    std::abort();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

} // namespace ds::test
