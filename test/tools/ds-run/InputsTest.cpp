#include "test/unit/runtime/PackageBuilder.h"

#include "tools/ds-run/Inputs.h"

#include "runtime/core/Error.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"
#include "runtime/io/TensorProto.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;

namespace {

TensorInfo info(ElementType type, std::optional<int64_t> bound = std::nullopt) {
  TensorInfo result;
  result.name = "x";
  result.type = type;
  result.bound = bound;
  return result;
}

TEST(RandomInputs, FloatsAreStandardNormal) {
  Tensor tensor = randomTensor(info(ElementType::F32), {100000}, 1);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < 100000; ++i) {
    double value = loadDouble(ElementType::F32, tensor.data(), i);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 100000, 0, 0.02);
  EXPECT_NEAR(squares / 100000, 1, 0.02);
}

TEST(RandomInputs, IntegersStayBelowTheirBound) {
  Tensor bounded = randomTensor(info(ElementType::I64, 7), {1000}, 1),
         plain = randomTensor(info(ElementType::I32), {1000}, 1);
  bool seen[7] = {};
  for (size_t i = 0; i < 1000; ++i) {
    int64_t value = loadInteger(ElementType::I64, bounded.data(), i);
    ASSERT_TRUE(value >= 0 && value < 7);
    seen[value] = true;
    int64_t bit = loadInteger(ElementType::I32, plain.data(), i);
    ASSERT_TRUE(bit == 0 || bit == 1);
  }
  for (bool hit : seen)
    EXPECT_TRUE(hit);
}

TEST(RandomInputs, DependOnTheSeedOnly) {
  Tensor a = randomTensor(info(ElementType::F32), {64}, 1), b = randomTensor(info(ElementType::F32), {64}, 1),
         c = randomTensor(info(ElementType::F32), {64}, 2);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), 256), 0);
  EXPECT_NE(std::memcmp(a.data(), c.data(), 256), 0);
}

TEST(ParseValue, ReadsNumbersAndLists) {
  EXPECT_EQ(parseValue("3", ElementType::I64).getShape(), (Shape{}));
  EXPECT_EQ(parseValue("[[1, 2, 3], [4, 5, 6]]", ElementType::F32).getShape(), (Shape{2, 3}));
  EXPECT_EQ(parseValue("[true, false]", ElementType::I1).data()[0], 1);
  EXPECT_EQ(parseValue("[]", ElementType::F32).getShape(), (Shape{0}));
  EXPECT_EQ(loadInteger(ElementType::I64, parseValue("9007199254740993", ElementType::I64).data(), 0),
            9007199254740993);
  Tensor list = parseValue("[[-9007199254740993, 9223372036854775807]]", ElementType::I64);
  EXPECT_EQ(loadInteger(ElementType::I64, list.data(), 0), -9007199254740993);
  EXPECT_EQ(loadInteger(ElementType::I64, list.data(), 1), 9223372036854775807);
  EXPECT_EQ(loadInteger(ElementType::I64, parseValue("18446744073709551615", ElementType::I64).data(), 0), INT64_MAX);
  uint64_t unsignedOne = 0;
  std::memcpy(&unsignedOne, parseValue("[18446744073709551615]", ElementType::U64).data(), sizeof(unsignedOne));
  EXPECT_EQ(unsignedOne, UINT64_MAX);
  for (const char *text : {"", "x", "[1", "[[1,2],[3]]", "[1,[2]]", "[[1],2]", "{}", "\"a\"", "[[],[1]]"})
    EXPECT_NE(errorOf([&] { parseValue(text, ElementType::F32); }), "") << text;
  EXPECT_NE(errorOf([] { parseValue("1.5", ElementType::I64); }).find("expected integers"), std::string::npos);
}

class GatherInputs : public ::testing::Test {
protected:
  std::vector<Tensor> gather(const char *entryName, const Pins &pins = {}, unsigned rank = 0) {
    for (const EntryInfo &entry : manifest.variants[0].entries)
      if (entry.name == entryName)
        return gatherInputs(entry, options, pins, rank);
    return {};
  }
  std::string error(const char *entryName, const Pins &pins = {}) {
    return errorOf([&] { gather(entryName, pins); });
  }

  Manifest manifest = readManifest(testManifest().dump());
  Options options;
  TemporaryFolder folder;
};

TEST_F(GatherInputs, AreRandomWhenNoneIsGiven) {
  auto inputs = gather("lookup", {{"n", 3}, {"count", 5}});
  EXPECT_EQ(inputs[0].getShape(), (Shape{3}));
  EXPECT_EQ(inputs[1].getShape(), (Shape{5}));
  EXPECT_NE(error("lookup", {{"n", 3}}).find("dimension 'count' has no value"), std::string::npos);
}

TEST_F(GatherInputs, TakeValuesAndFillFromScalars) {
  options.inputs = {"indices=1", "table=[5, 6, 7]"};
  auto inputs = gather("lookup", {{"count", 2}});
  EXPECT_EQ(inputs[1].getShape(), (Shape{2}));
  EXPECT_EQ(loadInteger(ElementType::I64, inputs[1].data(), 1), 1);
  options.inputs = {"table=[5]"};
  EXPECT_NE(error("lookup").find("input 'indices' is not given"), std::string::npos);
  options.seed = 3;
  EXPECT_EQ(gather("lookup", {{"count", 4}})[1].getShape(), (Shape{4}));
  for (const char *bad : {"table", "=3", "table=", "other=3", "table=@x.txt", "table=@none.npy"}) {
    options.inputs = {bad};
    EXPECT_NE(error("lookup", {{"n", 1}, {"count", 1}}), "") << bad;
  }
}

TEST_F(GatherInputs, ReadFilesOfEveryKind) {
  Tensor table = parseValue("[1, 2]", ElementType::F32), indices = parseValue("[0, 1, 1]", ElementType::I64);
  writeNpy(folder.file("t.npy"), table);
  writeTensorProto(folder.file("i.pb"), "i", indices);
  options.inputs = {"table=@" + folder.file("t.npy"), "indices=@" + folder.file("i.pb")};
  EXPECT_EQ(gather("lookup")[1].getShape(), (Shape{3}));

  options.inputs.clear();
  std::vector<NamedTensor> both;
  both.push_back({"indices", indices.clone()});
  both.push_back({"table", table.clone()});
  writeNpz(folder.file("rank1.npz"), both);
  options.inputsFrom = folder.file("rank{rank}.npz");
  EXPECT_EQ(gather("lookup", {}, 1)[0].getShape(), (Shape{2}));

  std::filesystem::create_directory(folder.file("data"));
  writeTensorProto(folder.file("data/input_0.pb"), "", table);
  writeNpy(folder.file("data/indices.npy"), indices);
  options.inputsFrom = folder.file("data");
  EXPECT_EQ(gather("lookup")[1].getShape(), (Shape{3}));
}

TEST_F(GatherInputs, NameUnknownInputsOfANpz) {
  std::vector<NamedTensor> wrong;
  wrong.push_back({"other", parseValue("1", ElementType::F32)});
  writeNpz(folder.file("t.npz"), wrong);
  options.inputsFrom = folder.file("t.npz");
  EXPECT_NE(error("lookup").find("no input 'other', expected one of [table, indices]"), std::string::npos);
}

TEST(ForRank, ReplacesEveryPlace) {
  EXPECT_EQ(forRank("a{rank}/b{rank}.npz", 12), "a12/b12.npz");
  EXPECT_EQ(forRank("plain", 1), "plain");
}

TEST(ParsePins, DiagnosesWhatIsNoSize) {
  EXPECT_EQ(parsePins({"batch=2", "a=b=3"}), (Pins{{"batch", 2}, {"a=b", 3}}));
  for (const char *bad : {"batch", "batch=", "=3", "batch=-1", "batch=x", "batch=1x", "batch=99999999999999999999"})
    EXPECT_NE(errorOf([&] { parsePins({bad}); }).find("expected NAME=VALUE"), std::string::npos) << bad;
  EXPECT_NE(errorOf([] { parsePins({"a=1", "a=1"}); }).find("given twice"), std::string::npos);
}

} // namespace
