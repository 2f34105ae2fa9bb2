// ds_package_load_memory: packages whose files lie in memory.
#include "test/unit/runtime/ApiFixture.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

using namespace ds::test;

namespace {

class ApiMemoryTest : public ::testing::Test {
protected:
  ApiMemoryTest() {
    TemporaryFolder folder;
    std::string path = writePackage(folder.path());
    writeFile(path + "/weights.bin", readFile(path + "/weights.bin") + std::string(5 * page, 'w')); // some pages
    writeChecksums(path, 2 * page);
    for (const auto &item : std::filesystem::directory_iterator(path)) {
      std::string bytes = readFile(item.path().string());
      void *memory = std::aligned_alloc(page, (bytes.size() / page + 1) * page);
      std::memcpy(memory, bytes.data(), bytes.size());
      held.emplace_back(memory, std::free);
      sizes[item.path().filename().string()] = {memory, bytes.size()};
    }
  }
  ~ApiMemoryTest() override {
    ds_package_free(package);
    ds_package_free(second);
  }

  std::vector<ds_file> files() const {
    std::vector<ds_file> list;
    for (const auto &[name, memory] : sizes)
      list.push_back({sizeof(ds_file), name.c_str(), memory.first, memory.second});
    return list;
  }
  std::string load(const std::vector<ds_file> &list, ds_package **into) {
    return codeAndMessage(ds_package_load_memory(list.data(), list.size(), nullptr, into));
  }
  std::string loadWith(const std::string &name, void (*change)(ds_file &)) {
    std::vector<ds_file> list = files();
    for (ds_file &file : list)
      if (file.name == name)
        change(file);
    ds_package *none = nullptr;
    std::string message = load(list, &none);
    EXPECT_EQ(none, nullptr);
    return message;
  }

  static constexpr size_t page = 4096;
  std::vector<std::unique_ptr<void, void (*)(void *)>> held;
  std::map<std::string, std::pair<void *, size_t>> sizes;
  ds_package *package = nullptr, *second = nullptr;
  const std::string invalid = std::to_string(DS_STATUS_INVALID_ARGUMENT) + ": ",
                    bad = std::to_string(DS_STATUS_BAD_PACKAGE) + ": memory: ";
};

// main: y = x * [1, 2, 3, 4] + x.
std::string runMain(const ds_package *package) {
  ds_session *session = nullptr;
  ds_outputs *outputs = nullptr;
  alignas(64) float data[4] = {1, 1, 1, 2};
  int64_t shape[2] = {1, 4};
  ds_tensor input = {sizeof(ds_tensor), "x", DS_F32, 2, shape, data};
  std::string message = messageOf(ds_session_create(package, nullptr, &session));
  message += messageOf(ds_session_run(session, 0, &input, 1, &outputs));
  if (outputs)
    message += std::to_string(static_cast<const float *>(ds_outputs_get(outputs, 0)->data)[3]);
  ds_outputs_free(outputs);
  ds_session_free(session);
  return message;
}

TEST_F(ApiMemoryTest, RunsWithoutAFolder) {
  ASSERT_EQ(load(files(), &package), "0: ");
  ASSERT_EQ(load(files(), &second), "0: ");
  EXPECT_STREQ(ds_package_entry_name(package, 0), "main");
  EXPECT_EQ(runMain(package), "10.000000");
  ds_package_free(package);
  package = nullptr;
  EXPECT_EQ(runMain(second), "10.000000");
  ASSERT_EQ(load(files(), &package), "0: "); // once more under the first one's number
  EXPECT_EQ(runMain(package), "10.000000");
}

TEST_F(ApiMemoryTest, ReadsWeightsWhereTheyLie) {
  auto contents = [&] {
    const auto &[data, size] = sizes["weights.bin"];
    return std::string(static_cast<const char *>(data), size);
  };
  std::string before = contents();
  ASSERT_EQ(load(files(), &package), "0: ");
  EXPECT_TRUE(contents() == before); // pages of a file may be given back once they are verified, these not
  ASSERT_EQ(runMain(package), "10.000000");
  // Constants are read where they are: not to be repeated by users.
  static_cast<float *>(sizes["weights.bin"].first)[3] = 100;
  EXPECT_EQ(runMain(package), "202.000000");
}

TEST_F(ApiMemoryTest, RefusesWhatIsMissingOrDamaged) {
  for (const char *name : {"manifest.json", "SHA256SUMS", "weights.bin", "code-x86-64.so"}) {
    std::vector<ds_file> list;
    for (const ds_file &file : files())
      if (std::string(file.name) != name)
        list.push_back(file);
    std::string message = load(list, &package);
    EXPECT_EQ(message.find(bad + name + ": missing"), 0u) << message;
    message = loadWith(name, [](ds_file &file) { --file.size; });
    EXPECT_EQ(message.find(bad), 0u) << message;
    static_cast<char *>(sizes[name].first)[sizes[name].second / 2] ^= 1;
    message = load(files(), &package);
    EXPECT_EQ(message.find(bad), 0u) << message;
    static_cast<char *>(sizes[name].first)[sizes[name].second / 2] ^= 1;
  }
  std::vector<ds_file> more = files();
  more.push_back({sizeof(ds_file), "notes.txt", "a", 1});
  EXPECT_EQ(load(more, &package), bad + "notes.txt: additional file that SHA256SUMS does not list");
  EXPECT_EQ(package, nullptr);
}

TEST_F(ApiMemoryTest, RefusesWrongArguments) {
  EXPECT_EQ(load({}, &package), bad + "manifest.json: missing, expected a package that ds-opt wrote");
  EXPECT_NE(messageOf(ds_package_load_memory(nullptr, 1, nullptr, &package)).find("null"), std::string::npos);
  EXPECT_NE(load(files(), nullptr).find("null"), std::string::npos);
  std::string where = invalid + "file ";
  EXPECT_EQ(loadWith("SHA256SUMS", [](ds_file &file) { file.name = nullptr; }), where + "0: name is null");
  EXPECT_EQ(loadWith("SHA256SUMS", [](ds_file &file) { file.data = nullptr; }), where + "0: data is null");
  EXPECT_EQ(loadWith("SHA256SUMS", [](ds_file &file) { file.struct_size = 8; }),
            where + "0: struct_size is too small, expected sizeof(ds_file)");
  EXPECT_EQ(loadWith("SHA256SUMS", [](ds_file &file) { file.name = "weights.bin"; }),
            invalid + "file 'weights.bin' is given twice");
  for (const char *name : {"", ".", "..", "a/b"}) {
    std::vector<ds_file> more = files();
    more.push_back({sizeof(ds_file), name, "a", 1});
    EXPECT_EQ(load(more, &package), invalid + "'" + name + "' is not the name of a file of a package");
  }
  auto &[data, size] = sizes["weights.bin"];
  std::vector<char> moved(size + 64);
  char *odd = moved.data() + (reinterpret_cast<uintptr_t>(moved.data()) % 64 == 0 ? 16 : 0);
  std::memcpy(odd, data, size);
  data = odd;
  EXPECT_EQ(load(files(), &package), invalid + "memory: weights.bin: expected memory that is 64-byte aligned");
  EXPECT_EQ(package, nullptr);
}

} // namespace
