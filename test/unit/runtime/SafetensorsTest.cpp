#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Error.h"
#include "runtime/io/Safetensors.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;

namespace {

// A file as others write it.
std::string bytesOf(const std::string &header, const std::string &data) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(uint64_t(header.size()) >> (8 * i));
  return bytes + header + data;
}

class Safetensors : public testing::Test {
protected:
  // What reading says, without the path.
  std::string refusal(const std::string &bytes) {
    writeFile(path, bytes);
    std::string message = errorOf([&] { SafetensorsReader reader(path); });
    EXPECT_TRUE(message.empty() || message.compare(0, path.size(), path) == 0) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message.substr(std::min(message.size(), path.size() + 2));
  }
  std::string refusalOfHeader(const std::string &header, size_t dataBytes = 0) {
    return refusal(bytesOf(header, std::string(dataBytes, 'x')));
  }

  TemporaryFolder folder;
  std::string path = folder.file("t.safetensors");
};

TEST_F(Safetensors, ReadsAHandmadeFile) {
  writeFile(path, bytesOf(R"({"b":{"dtype":"I16","shape":[2],"data_offsets":[8,12]},"__metadata__":{"k":"v"},)"
                          R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                          R"("e":{"dtype":"BF16","shape":[0,3],"data_offsets":[12,12]}}   )",
                          std::string("\0\0\x80\x3f\0\0\0\x40\x01\0\xff\xff", 12)));
  SafetensorsReader reader(path);
  ASSERT_EQ(reader.items().size(), 3u);
  EXPECT_EQ(reader.items()[0].name, "a");
  EXPECT_EQ(reader.items()[0].shape, (Shape{1, 2}));
  float a[2];
  reader.read(0, ElementType::F32, a);
  EXPECT_EQ(a[0], 1.0f);
  EXPECT_EQ(a[1], 2.0f);
  int64_t b[2];
  reader.read(1, ElementType::I64, b);
  EXPECT_EQ(b[0], 1);
  EXPECT_EQ(b[1], -1);
  EXPECT_EQ(reader.items()[2].type, ElementType::BF16);
  EXPECT_EQ(reader.metadata().at("k"), "v");
}

TEST_F(Safetensors, ReadsWhatItWrites) {
  std::vector<NamedTensor> tensors;
  for (unsigned i = 0; i < numElementTypes; ++i) {
    tensors.push_back({typeName(static_cast<ElementType>(i)), Tensor(static_cast<ElementType>(i), {3, i % 4})});
    for (size_t byte = 0; byte < tensors.back().tensor.bytes(); ++byte)
      tensors.back().tensor.data()[byte] = static_cast<uint8_t>(byte % 2);
  }
  tensors.push_back({"/scalar \"\xc3\xa4\"", tensor<float>(ElementType::F32, {}, {2.5f})});
  std::vector<NamedView> views;
  for (const NamedTensor &item : tensors)
    views.push_back({item.name, item.tensor.view()});
  writeSafetensors(path, views, {{"step", "7"}});
  SafetensorsReader reader(path);
  ASSERT_EQ(reader.items().size(), tensors.size());
  EXPECT_EQ(reader.metadata().at("step"), "7");
  for (size_t i = 0; i < reader.items().size(); ++i) {
    const TensorSource::Item &item = reader.items()[i];
    auto known =
        std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor &t) { return t.name == item.name; });
    ASSERT_NE(known, tensors.end());
    EXPECT_EQ(item.type, safetensorsType(known->tensor.getType()));
    EXPECT_EQ(item.shape, known->tensor.getShape());
    EXPECT_EQ(std::memcmp(reader.view(i).data, known->tensor.data(), known->tensor.bytes()), 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(reader.view(i).data) % typeSize(item.type), 0u);
  }
}

TEST_F(Safetensors, SameTensorsGiveTheSameBytes) {
  Tensor a = tensor<float>(ElementType::F32, {1}, {1}), b = tensor<double>(ElementType::F64, {1}, {2});
  writeSafetensors(path, {{"a", a.view()}, {"b", b.view()}});
  std::string first = readFile(path);
  writeSafetensors(path, {{"b", b.view()}, {"a", a.view()}});
  EXPECT_EQ(readFile(path), first);
}

TEST_F(Safetensors, RefusesNamesThatCannotBe) {
  Tensor a = tensor<float>(ElementType::F32, {1}, {1});
  auto message = [&](const std::string &x, const std::string &y) {
    return errorOf([&] { writeSafetensors(path, {{x, a.view()}, {y, a.view()}}); });
  };
  EXPECT_EQ(message("a", "a"), path + ": tensor 'a': occurs twice");
  EXPECT_EQ(message("a", "__metadata__"), path + ": tensor '__metadata__': the format keeps this name for itself");
  EXPECT_EQ(message("a", "\xff"), path + ": the value: a name in it is invalid UTF-8");
  EXPECT_FALSE(isThere(path));
}

TEST_F(Safetensors, RefusesDamagedLengths) {
  EXPECT_EQ(refusal(""), "not a safetensors file, found 0 bytes, expected at least 8 (truncated?)");
  EXPECT_EQ(refusal("1234567"), "not a safetensors file, found 7 bytes, expected at least 8 (truncated?)");
  EXPECT_EQ(refusal(std::string(8, '\0')), "header does not begin with '{'");
  EXPECT_EQ(refusal(std::string(7, '\xff') + "\x7f{}"),
            "header too long, found 9223372036854775807 bytes, expected at most 100000000");
  EXPECT_EQ(refusal(std::string("\3\0\0\0\0\0\0\0{}", 10)), "header of 3 bytes, found only 2 (truncated?)");
  EXPECT_EQ(refusalOfHeader("{}", 1), "found 1 bytes after the last tensor, expected none");
  EXPECT_EQ(refusalOfHeader(" {}"), "header does not begin with '{'");
}

TEST_F(Safetensors, RefusesHostileHeaders) {
  auto entry = [](const char *dtype, const char *shape, const char *range) {
    return concat("{\"dtype\":", dtype, ",\"shape\":", shape, ",\"data_offsets\":", range, "}");
  };
  auto one = [&](const std::string &value, size_t bytes = 4) {
    return refusalOfHeader("{\"a\":" + value + "}", bytes);
  };
  EXPECT_EQ(one(entry("\"F32\"", "[1]", "[0,4]")), "");
  EXPECT_EQ(one("1"), "'a': found 1, expected an object");
  EXPECT_EQ(one("{}"), "'a': has no dtype");
  EXPECT_EQ(one("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}"),
            "'a': has other members than dtype, shape and data_offsets");
  EXPECT_EQ(one(entry("\"F31\"", "[1]", "[0,4]")).substr(0, 40), "'a': dtype \"F31\" is not supported, expec");
  EXPECT_EQ(one(entry("\"F32\"", "[-1]", "[0,4]")), "'a': shape: found -1, expected an integer of 0 to 2^63 - 1");
  EXPECT_EQ(one(entry("\"F32\"", "[1.0]", "[0,4]")), "'a': shape: found 1.0, expected an integer of 0 to 2^63 - 1");
  EXPECT_EQ(one(entry("\"F32\"", "[18446744073709551615]", "[0,4]")),
            "'a': shape: found 18446744073709551615, expected an integer of 0 to 2^63 - 1");
  EXPECT_EQ(one(entry("\"F32\"", "[4294967296,4294967296]", "[0,4]")),
            "'a': shape [4294967296, 4294967296] has more elements than 64 bits can count");
  EXPECT_EQ(one(entry("\"F32\"", "[2]", "[0,4]")), "'a': data_offsets cover 4 bytes, expected 8 for f32 [2]");
  EXPECT_EQ(one(entry("\"F32\"", "[1]", "[4,0]")), "'a': data_offsets: found [4,0], expected [begin, end]");
  EXPECT_EQ(one(entry("\"F32\"", "[1]", "[0]")), "'a': data_offsets: found [0], expected [begin, end]");
  EXPECT_EQ(one(entry("\"F32\"", "[1]", "[1,5]"), 5), "'a': leaves a hole before it, found offset 1, expected 0");
  EXPECT_EQ(one(entry("\"F32\"", "[1]", "[0,4]"), 3), "'a': ends at byte 4 of the data, found only 3 (truncated?)");
  std::string a = entry("\"F32\"", "[1]", "[0,4]");
  EXPECT_EQ(refusalOfHeader("{\"a\":" + a + ",\"b\":" + a + "}", 4),
            "'b': overlaps the tensor before it, found offset 0, expected 4");
  EXPECT_EQ(refusalOfHeader("{\"a\":" + a + ",\"a\":" + a + "}", 4), "header: 1:55: name 'a' occurs twice");
  EXPECT_EQ(refusalOfHeader("{\"__metadata__\":{\"x\":1}}"), "__metadata__: 'x': found 1, expected a string");
  EXPECT_EQ(refusalOfHeader("{\"a\\nb\":1}"), "'a\\x0ab': found 1, expected an object");
  EXPECT_EQ(refusalOfHeader("{\"__metadata__\":[]}"), "__metadata__: found [], expected an object");
  EXPECT_EQ(refusalOfHeader("{\"a\":" + std::string(100, '[')), "header: 1:69: nested deeper than 64");
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  Tensor a = tensor<float>(ElementType::F32, {3}, {1, 2, 3}), b = tensor<int8_t>(ElementType::I8, {3}, {1, 2, 3});
  writeSafetensors(path, {{"a", a.view()}, {"b", b.view()}});
  std::string bytes = readFile(path);
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(refusal(bytes.substr(0, length)), "") << length;
}

} // namespace
