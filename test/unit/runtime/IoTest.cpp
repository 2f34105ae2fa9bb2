#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"
#include "runtime/io/TensorProto.h"
#include "runtime/io/Zip.h"

#include "onnx-ml.pb.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <zlib.h>

using namespace ds;
using namespace ds::test;

namespace {

constexpr ElementType allTypes[] = {ElementType::F64, ElementType::F32, ElementType::F16, ElementType::BF16,
                                    ElementType::I64, ElementType::I32, ElementType::I16, ElementType::I8,
                                    ElementType::U64, ElementType::U32, ElementType::U16, ElementType::U8,
                                    ElementType::I1};

Tensor counting(ElementType type, Shape shape) {
  Tensor tensor(type, std::move(shape));
  for (int64_t i = 0; i < tensor.count(); ++i)
    storeDouble(type, tensor.data(), static_cast<size_t>(i),
                type == ElementType::I1 ? double(i % 2) : double(isSigned(type) ? i - 2 : i));
  return tensor;
}

void expectEqual(const Tensor &a, const Tensor &b) {
  EXPECT_EQ(a.getType(), b.getType());
  EXPECT_EQ(a.getShape(), b.getShape());
  ASSERT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0) << typeName(a.getType());
}

Tensor parse(const std::string &bytes) {
  return parseNpy(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
}

std::string npy(const std::string &dict, const std::string &data, char version = 1) {
  std::string header("\x93NUMPY", 6);
  header += {version, 0, static_cast<char>(dict.size()), static_cast<char>(dict.size() >> 8)};
  if (version > 1)
    header += std::string(2, '\0');
  return header + dict + data;
}

TEST(HalfFloats, RoundTripAllBits) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    if (std::isnan(widenF16(half))) {
      EXPECT_TRUE(std::isnan(widenF16(narrowF16(widenF16(half)))));
    } else {
      ASSERT_EQ(narrowF16(widenF16(half)), half);
    }
    if (std::isnan(widenBF16(half))) {
      EXPECT_TRUE(std::isnan(widenBF16(narrowBF16(widenBF16(half)))));
    } else {
      ASSERT_EQ(narrowBF16(widenBF16(half)), half);
    }
  }
}

TEST(HalfFloats, RoundToNearestEven) {
  EXPECT_EQ(narrowF16(1.0f + 0x1p-11f), 0x3c00);     // halfway: to even
  EXPECT_EQ(narrowF16(1.0f + 3 * 0x1p-11f), 0x3c02); // halfway: to even, up
  EXPECT_EQ(narrowF16(65519.0f), 0x7bff);            // below the middle to infinity
  EXPECT_EQ(narrowF16(65520.0f), 0x7c00);
  EXPECT_EQ(narrowF16(0x1p-25f), 0x0000); // half of the smallest subnormal: to even
  EXPECT_EQ(narrowF16(0x1.8p-25f), 0x0001);
  EXPECT_EQ(narrowF16(-0x1p-14f), 0x8400);
  EXPECT_EQ(narrowBF16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(narrowBF16(3.4e38f), 0x7f80);
}

TEST(Npy, RoundTripsEveryType) {
  TemporaryFolder folder;
  for (ElementType type : allTypes)
    for (const Shape &shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0, 4}, Shape{1, 1, 2, 1}}) {
      Tensor tensor = counting(type, shape);
      writeNpy(folder.file("t.npy"), tensor);
      expectEqual(readNpy(folder.file("t.npy")),
                  type == ElementType::BF16 ? tensor.converted(ElementType::F32) : tensor.clone());
    }
}

TEST(Npy, ReadsWhatNumpyWrites) {
  // numpy.save(numpy.array([[1, 2, 3], [4, 5, 6]], '>i2', order='F'))
  std::string data("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  Tensor tensor = parse(npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", data));
  EXPECT_EQ(tensor.getShape(), (Shape{2, 3}));
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(loadInteger(tensor.getType(), tensor.data(), i), static_cast<int64_t>(i) + 1);
  tensor = parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", std::string("\1\0", 2), 2));
  EXPECT_EQ(tensor.getType(), ElementType::I1);
  EXPECT_EQ(
      parse(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2251799813685244, 5, 950434, 0)}", "")).count(), 0);
  EXPECT_EQ(parse(npy("{'shape': (), 'fortran_order': False, 'descr': '<f8'}", std::string(8, '\0'), 3)).count(), 1);
}

TEST(Npy, RefusesDamage) {
  std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", std::string(8, 'x'));
  EXPECT_EQ(errorOf([&] { parse(good); }), "");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(errorOf([&] { parse(good.substr(0, length)); }), "") << length;
  auto error = [&](const std::string &dict) { return errorOf([&] { parse(npy(dict, std::string(8, 'x'))); }); };
  EXPECT_NE(error("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }").find("truncated"), std::string::npos);
  EXPECT_NE(error("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }").find("'<c8'"), std::string::npos);
  EXPECT_NE(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }").find("structured"),
            std::string::npos);
  for (const char *dict : {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                           "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                           "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846977,)}",
                           "{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}"})
    EXPECT_NE(error(dict), "") << dict;
}

TEST(Npz, RoundTripsInOrder) {
  TemporaryFolder folder;
  std::vector<NamedTensor> tensors;
  for (ElementType type : allTypes)
    tensors.push_back({std::string("a/b:") + typeName(type), counting(type, {3, 2})});
  tensors.push_back({"empty", counting(ElementType::F32, {0})});
  writeNpz(folder.file("t.npz"), tensors);
  auto read = readNpz(folder.file("t.npz"));
  ASSERT_EQ(read.size(), tensors.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].name, tensors[i].name);
    expectEqual(read[i].tensor, tensors[i].tensor.getType() == ElementType::BF16
                                    ? tensors[i].tensor.converted(ElementType::F32)
                                    : tensors[i].tensor.clone());
  }
  std::string first = readFile(folder.file("t.npz"));
  writeNpz(folder.file("t.npz"), tensors);
  EXPECT_EQ(readFile(folder.file("t.npz")), first);
}

TEST(Npz, LeavesNothingBehindWhenItCannotWrite) {
  TemporaryFolder folder;
  EXPECT_NE(errorOf([&] { writeNpz(folder.path() + "/none/t.npz", std::vector<NamedView>()); }).find("cannot create"),
            std::string::npos);
  std::filesystem::create_directory(folder.file("taken"));
  EXPECT_NE(errorOf([&] { writeNpz(folder.file("taken"), std::vector<NamedView>()); }).find("is a folder"),
            std::string::npos);
  size_t files = 0;
  for (const auto &item : std::filesystem::directory_iterator(folder.path())) {
    (void)item;
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

TEST(Npz, RefusesEveryTruncationAndSurvivesEveryFlip) {
  TemporaryFolder folder;
  std::vector<NamedTensor> tensors;
  tensors.push_back({"x", counting(ElementType::F32, {2})});
  std::string path = folder.file("t.npz");
  writeNpz(path, tensors);
  std::string bytes = readFile(path);
  for (size_t length = 0; length < bytes.size(); ++length) {
    writeFile(path, bytes.substr(0, length));
    ASSERT_NE(errorOf([&] { readNpz(path); }), "") << length;
  }
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int mask : {0x01, 0x80, 0xff}) {
      std::string altered = bytes;
      altered[i] = static_cast<char>(altered[i] ^ mask);
      writeFile(path, altered);
      errorOf([&] { readNpz(path); }); // some bytes mean nothing (dates); none may crash
    }
}

// numpy.savez_compressed deflates and writes no zip64 fields; a member by hand.
std::string deflatedZip(const std::string &name, const std::string &content, uint32_t claimedBytes) {
  std::string packed(compressBound(content.size()) + 64, '\0');
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  auto put = [](uint64_t value, int width) {
    std::string text;
    for (int i = 0; i < width; ++i)
      text += static_cast<char>(value >> (8 * i));
    return text;
  };
  uint32_t crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef *>(content.data()), static_cast<uInt>(content.size())));
  std::string common = put(20, 2) + put(0, 2) + put(8, 2) + put(0, 4) + put(crc, 4) + put(packed.size(), 4) +
                       put(claimedBytes, 4) + put(name.size(), 2) + put(0, 2);
  std::string local = put(0x04034b50, 4) + common + name + packed;
  std::string central =
      put(0x02014b50, 4) + put(20, 2) + common + put(0, 2) + put(0, 2) + put(0, 2) + put(0, 4) + put(0, 4) + name;
  return local + central + put(0x06054b50, 4) + put(0, 4) + put(1, 2) + put(1, 2) + put(central.size(), 4) +
         put(local.size(), 4) + put(0, 2);
}

TEST(Npz, ReadsDeflatedMembers) {
  TemporaryFolder folder;
  std::string content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (250,), }", std::string(1000, '\0'));
  writeFile(folder.file("t.npz"), deflatedZip("x.npy", content, static_cast<uint32_t>(content.size())));
  auto tensors = readNpz(folder.file("t.npz"));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(tensors[0].name, "x");
  EXPECT_EQ(tensors[0].tensor.getShape(), (Shape{250}));
  writeFile(folder.file("t.npz"), deflatedZip("x.npy", content, 4000000000u));
  EXPECT_NE(errorOf([&] { readNpz(folder.file("t.npz")); }).find("impossible size"), std::string::npos);
  writeFile(folder.file("t.npz"), deflatedZip("x.npy", content, 900));
  EXPECT_NE(errorOf([&] { readNpz(folder.file("t.npz")); }).find("truncated"), std::string::npos);
  writeFile(folder.file("t.npz"), deflatedZip("x.npy", content, 1200));
  EXPECT_NE(errorOf([&] { readNpz(folder.file("t.npz")); }).find("does not inflate"), std::string::npos);
  writeFile(folder.file("t.npz"), deflatedZip("x.txt", content, static_cast<uint32_t>(content.size())));
  EXPECT_NE(errorOf([&] { readNpz(folder.file("t.npz")); }).find("not an npy file"), std::string::npos);
}

TEST(TensorProto, RoundTripsEveryType) {
  for (ElementType type : allTypes) {
    Tensor tensor = counting(type, {2, 3});
    std::string bytes = serializeTensorProto("name", tensor);
    NamedTensor read = parseTensorProto(bytes.data(), bytes.size());
    EXPECT_EQ(read.name, "name");
    expectEqual(read.tensor, tensor);
  }
}

NamedTensor parse(const onnx::TensorProto &proto) {
  std::string bytes = proto.SerializeAsString();
  return parseTensorProto(bytes.data(), bytes.size());
}

TEST(TensorProto, ReadsTypedFields) {
  onnx::TensorProto proto;
  proto.add_dims(2);
  proto.set_data_type(onnx::TensorProto::FLOAT16);
  proto.add_int32_data(0x3c00);
  proto.add_int32_data(0xc000);
  Tensor half = parse(proto).tensor;
  EXPECT_EQ(loadDouble(half.getType(), half.data(), 1), -2);
  proto.set_data_type(onnx::TensorProto::BFLOAT16);
  proto.set_int32_data(1, 0x4000);
  Tensor brain = parse(proto).tensor;
  EXPECT_EQ(loadDouble(brain.getType(), brain.data(), 1), 2);
  proto.set_data_type(onnx::TensorProto::BOOL);
  proto.set_int32_data(0, 5);
  EXPECT_EQ(parse(proto).tensor.data()[0], 1);
  proto.set_data_type(onnx::TensorProto::INT8);
  proto.set_int32_data(0, -5);
  EXPECT_EQ(loadInteger(ElementType::I8, parse(proto).tensor.data(), 0), -5);
  proto.clear_int32_data();
  proto.set_data_type(onnx::TensorProto::UINT32);
  proto.add_uint64_data(4000000000u);
  proto.add_uint64_data(1);
  EXPECT_EQ(loadInteger(ElementType::U32, parse(proto).tensor.data(), 0), 4000000000);
}

TEST(TensorProto, UnpacksElementsNarrowerThanAByte) {
  onnx::TensorProto proto;
  proto.set_data_type(onnx::TensorProto::INT4);
  proto.add_dims(3);
  proto.set_raw_data("\xf7\x08"); // 7, -1, then -8
  Tensor tensor = parse(proto).tensor;
  EXPECT_EQ(loadInteger(tensor.getType(), tensor.data(), 0), 7);
  EXPECT_EQ(loadInteger(tensor.getType(), tensor.data(), 1), -1);
  EXPECT_EQ(loadInteger(tensor.getType(), tensor.data(), 2), -8);
  onnx::TensorProto written;
  ASSERT_TRUE(written.ParseFromString(serializeTensorProto("x", tensor)));
  EXPECT_EQ(written.raw_data(), proto.raw_data());
  proto.clear_raw_data();
  proto.add_int32_data(0xf7);
  EXPECT_NE(errorOf([&] { parse(proto); }).find("found 1 packed values, expected 2"), std::string::npos);
}

TEST(TensorProto, DiagnosesWhatItDoesNotRead) {
  auto error = [](const onnx::TensorProto &proto) { return errorOf([&] { parse(proto); }); };
  onnx::TensorProto proto;
  proto.add_dims(1);
  proto.set_raw_data("abcd");
  for (auto type : {onnx::TensorProto::STRING, onnx::TensorProto::COMPLEX64, onnx::TensorProto::COMPLEX128}) {
    proto.set_data_type(type);
    EXPECT_NE(error(proto).find(onnx::TensorProto::DataType_Name(type)), std::string::npos) << error(proto);
  }
  proto.set_data_type(999);
  EXPECT_NE(error(proto).find("number 999"), std::string::npos);
  proto.set_data_type(onnx::TensorProto::DOUBLE);
  EXPECT_NE(error(proto).find("found 4 bytes of raw data, expected 8"), std::string::npos);
  proto.set_data_type(onnx::TensorProto::FLOAT);
  proto.set_dims(0, -1);
  EXPECT_NE(error(proto).find("negative"), std::string::npos);
  proto.set_dims(0, int64_t(1) << 62);
  EXPECT_NE(error(proto).find("64 bits"), std::string::npos);
  proto.clear_raw_data();
  proto.set_dims(0, int64_t(1) << 40);
  EXPECT_NE(error(proto).find("too few values"), std::string::npos);
  proto.set_dims(0, 1);
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  EXPECT_NE(error(proto).find("external data"), std::string::npos);
  EXPECT_NE(errorOf([] { parseTensorProto("\xff\xff\xff", 3); }).find("not a TensorProto"), std::string::npos);
}

TEST(TensorProto, DiagnosesSequences) {
  // SequenceProto: name = 1 "s", elem_type = 2 TENSOR, tensor_values = 3 a TensorProto.
  std::string inner = serializeTensorProto("t", counting(ElementType::F32, {2}));
  std::string sequence = std::string("\x0a\x01s\x10\x01\x1a") + static_cast<char>(inner.size()) + inner;
  EXPECT_NE(errorOf([&] { parseTensorProto(sequence.data(), sequence.size()); }).find("SequenceProto"),
            std::string::npos);
}

TEST(TensorProto, SurvivesEveryTruncationAndFlip) {
  std::string bytes = serializeTensorProto("name", counting(ElementType::F32, {2, 3}));
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(errorOf([&] { parseTensorProto(bytes.data(), length); }), "") << length;
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int mask = 1; mask < 256; ++mask) {
      std::string altered = bytes;
      altered[i] = static_cast<char>(altered[i] ^ mask);
      errorOf([&] { parseTensorProto(altered.data(), altered.size()); });
    }
}

} // namespace
