// ds/runtime.hpp as a C++ user sees it: nothing of the runtime's inside is included here.
#include "ds/runtime.hpp"

#include <array>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <type_traits>

namespace {

static_assert(!std::is_copy_constructible_v<ds::Package> && std::is_nothrow_move_constructible_v<ds::Package>, "owner");
static_assert(!std::is_copy_constructible_v<ds::Session> && std::is_move_constructible_v<ds::Session>, "owner");
static_assert(!std::is_copy_constructible_v<ds::Outputs> && std::is_nothrow_move_constructible_v<ds::Outputs>, "owner");
static_assert(std::is_base_of_v<std::runtime_error, ds::Error>, "caught as one");
static_assert(ds::typeOf<const float>() == DS_F32 && ds::typeOf<bool>() == DS_I1 && ds::typeOf<long long>() == DS_I64 &&
                  ds::typeOf<unsigned char>() == DS_U8 && ds::typeOf<double>() == DS_F64,
              "element types");

// "2: message" of what the action throws.
template <typename Action> std::string errorOf(Action action) {
  try {
    action();
  } catch (const ds::Error &error) {
    return std::to_string(error.getCode()) + ": " + error.what();
  }
  return "nothing was thrown";
}

using Floats = std::vector<float>;
Floats valuesOf(const ds::Tensor &tensor) {
  ds::Span<float> values = tensor.as<float>();
  return Floats(values.begin(), values.end());
}

class CppApiTest : public ::testing::Test {
protected:
  CppApiTest() {
    char name[] = "/tmp/ds-cpp-api-XXXXXX";
    folder = mkdtemp(name);
    EXPECT_EQ(std::system((std::string(DS_WRITE_TEST_PACKAGE) + " " + folder).c_str()), 0);
  }
  ~CppApiTest() override { EXPECT_EQ(std::system(("rm -r " + folder).c_str()), 0); }
  std::string path() const { return folder + "/model.dsp"; }

  std::string folder;
  std::array<float, 8> data = {1, 1, 1, 1, 2, 2, 2, 2};
  const Floats expected = {2, 3, 4, 5, 4, 6, 8, 10}; // main: y = x * [1, 2, 3, 4] + x
};

TEST_F(CppApiTest, DescribesAndRuns) {
  ds::Package package(path());
  EXPECT_EQ(package.variant(), "x86-64");
  EXPECT_EQ(package.entries().size(), 15u);
  EXPECT_EQ(package.entry("lookup"), 8u);
  EXPECT_NE(errorOf([&] { package.entry("none"); }).find("no entry 'none', expected one of main, "), std::string::npos);
  std::vector<ds::TensorInfo> inputs = package.inputs(8);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[1].name, "indices");
  EXPECT_EQ(inputs[1].shape, std::vector<std::string>{"count"});
  EXPECT_EQ(inputs[1].bound, 3);
  EXPECT_EQ(package.states(5)[0].name, "total");
  EXPECT_TRUE(package.outputs(99).empty());

  ds::Session session(package, 1);
  ds::Session moved = std::move(session);
  ds::Outputs outputs = moved.run({{"x", data.data(), {2, 4}}});
  ASSERT_EQ(outputs.size(), 1u);
  ds::Tensor y = outputs["y"];
  EXPECT_EQ(valuesOf(y), expected);
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(y.size(), 8u);
  EXPECT_EQ(y.bytes(), 32u);
  EXPECT_EQ(errorOf([&] { outputs["z"]; }), "1: no output 'z', expected one of y");
  EXPECT_EQ(errorOf([&] { outputs[1]; }), "1: no output 1, expected less than 1");
  EXPECT_EQ(errorOf([&] { y.as<int>(); }), "1: tensor 'y': elements are f32, not i32");
  const float *constant = data.data();
  moved.run({{"", constant, {2, 4}}}, outputs);
  EXPECT_EQ(valuesOf(outputs[0]), expected);
}

TEST_F(CppApiTest, WritesIntoBuffers) {
  ds::Session session{ds::Package(path())}; // which keeps what it needs of the package
  alignas(64) std::array<float, 8> y = {};
  session.runInto({{"x", data.data(), {2, 4}}}, {{"y", y.data(), {2, 4}}});
  EXPECT_EQ(Floats(y.begin(), y.end()), expected);
  ds::Outputs outputs;
  y = {};
  session.runInto({{"x", data.data(), {2, 4}}}, {{"y", y.data(), {2, 4}}}, outputs);
  EXPECT_EQ(outputs[0].data(), y.data());
  EXPECT_EQ(Floats(y.begin(), y.end()), expected);
}

TEST_F(CppApiTest, ThrowsCodesAndMessages) {
  EXPECT_EQ(errorOf([] { ds::Package("/nowhere"); }), "4: /nowhere: not a package directory, nothing is there");
  ds::Package package(path());
  ds::Session session(package);
  EXPECT_EQ(errorOf([&] { session.run({}); }), "1: entry 'main': wrong number of inputs, found 0, expected 1");
  EXPECT_EQ(errorOf([&] { session.pin("none", 1); }), "1: the package has no dimension 'none'");
  EXPECT_EQ(errorOf([&] { ds::Trainer trainer(package); }).rfind("1: ", 0), 0u);
  EXPECT_EQ(errorOf([] { ds::Group(0); }).rfind("1: ", 0), 0u);
  // A failed call keeps the outputs.
  ds::Outputs outputs = session.run({{"x", data.data(), {2, 4}}});
  session.pin("rows", 3);
  EXPECT_EQ(errorOf([&] { session.run({{"x", data.data(), {2, 4}}}, outputs); }).rfind("6: ", 0), 0u);
  EXPECT_EQ(valuesOf(outputs[0]), expected);
  session.unpin("rows");
  session.run({{"x", data.data(), {2, 4}}}, outputs);
}

TEST_F(CppApiTest, ObservesAndCancels) {
  ds::Session session{ds::Package(path())};
  std::string seen;
  session.observe([&](const ds_launch_event &event) { seen += std::string(event.site) + ";"; });
  session.run({{"x", data.data(), {2, 4}}});
  EXPECT_EQ(seen, "/layer/Mul;/layer/Add;");
  ds::Session moved = std::move(session); // the observer moves along
  moved.run({{"x", data.data(), {2, 4}}});
  EXPECT_EQ(seen, "/layer/Mul;/layer/Add;/layer/Mul;/layer/Add;");
  moved.observe([&](const ds_launch_event &) { moved.cancel(); });
  EXPECT_EQ(errorOf([&] { moved.run({{"x", data.data(), {2, 4}}}); }), "13: entry 'main': the call was cancelled");
  moved.observe(nullptr);
  EXPECT_EQ(moved.run({{"x", data.data(), {2, 4}}}).size(), 1u);
}

TEST_F(CppApiTest, KeepsStates) {
  ds::Session session{ds::Package(path())};
  auto count = [&] { return session.run({{"x", data.data(), {4}}}, 5)[0].as<float>()[0]; };
  EXPECT_EQ(count(), 11);
  session.saveStates(folder + "/states.npz");
  session.resetStates();
  EXPECT_EQ(count(), 11);
  session.restoreStates(folder + "/states.npz");
  EXPECT_EQ(count(), 12);
}

TEST_F(CppApiTest, LoadsFromMemory) {
  struct alignas(64) Block {
    char bytes[64];
  };
  const char *names[] = {"manifest.json", "SHA256SUMS", "weights.bin", "code-x86-64.so"};
  std::vector<std::vector<Block>> memory;
  std::vector<ds::File> files;
  for (const char *name : names) {
    std::ostringstream text;
    text << std::ifstream(path() + "/" + name, std::ios::binary).rdbuf();
    std::string bytes = text.str();
    memory.emplace_back(bytes.size() / sizeof(Block) + 1);
    bytes.copy(memory.back()[0].bytes, bytes.size());
    files.push_back({name, memory.back().data(), bytes.size()});
  }
  ds::Session session{ds::Package(files)};
  EXPECT_EQ(valuesOf(session.run({{"x", data.data(), {2, 4}}})[0]), expected);
}

} // namespace
