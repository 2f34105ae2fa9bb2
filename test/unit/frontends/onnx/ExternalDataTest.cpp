// Tensors in external files: placed by offset and length, checked against the file and the type.

#include "test/unit/frontends/onnx/TemporaryFolder.h"

using namespace deepstride::onnx;
using ::onnx::TensorProto;

namespace {

class ExternalData : public testing::Test {
protected:
  /// The model with its initializer in external data of these entries.
  Located place(std::vector<int64_t> dims, std::map<std::string, std::string> entries) {
    ::onnx::ModelProto model = modelWithInitializer(TensorProto::FLOAT, std::move(dims));
    initializerOf(model).set_data_location(TensorProto::EXTERNAL);
    for (const auto &[key, value] : entries) {
      auto *entry = initializerOf(model).add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return locate(folder.write("m.onnx", model));
  }

  TemporaryFolder folder;
};

TEST_F(ExternalData, reads_small_tensors_and_keeps_large_ones_in_the_file) {
  folder.write("w.bin", std::string(8, '\0') + std::string(8192, '\1'));
  Located small = place({2}, {{"location", "w.bin"}, {"offset", "4"}, {"length", "8"}});
  EXPECT_EQ(small.error, "");
  EXPECT_EQ(small.data.bytes, std::string("\0\0\0\0\1\1\1\1", 8));
  Located large = place({2, 1024}, {{"location", "w.bin"}, {"offset", "8"}});
  EXPECT_EQ(large.error, "");
  EXPECT_TRUE(large.data.inFile);
  EXPECT_EQ(large.data.file, folder / "w.bin");
  EXPECT_EQ(large.data.range.offset, 8u);
  EXPECT_EQ(large.data.range.length, 8192u);
}

TEST_F(ExternalData, takes_files_of_any_size) {
  folder.write("w.bin", "");
  constexpr uint64_t size = uint64_t{12} << 30;
  std::filesystem::resize_file(folder / "w.bin", size);
  Located all = place({3, int64_t{1} << 30}, {{"location", "w.bin"}});
  EXPECT_EQ(all.error, "");
  EXPECT_EQ(all.data.range.length, size);
  Located last = place({1024, 1025}, {{"location", "w.bin"}, {"offset", "12880703488"}});
  EXPECT_EQ(last.error, "");
  Located behind = place({1024, 1025}, {{"location", "w.bin"}, {"offset", "12880703489"}});
  expectContains(behind.error, "expected offset + length within the 12884901888 bytes of 'w.bin'");
}

TEST_F(ExternalData, refuses_ranges_outside_of_the_file) {
  folder.write("w.bin", std::string(16, 'x'));
  auto refused = [&](const char *offset, const char *length) {
    return place({4}, {{"location", "w.bin"}, {"offset", offset}, {"length", length}}).error;
  };
  EXPECT_EQ(refused("0", "16"), "");
  expectContains(refused("4", "16"), "found 4 + 16");
  expectContains(refused("18446744073709551600", "16"), "within the 16 bytes");
  expectContains(refused("16", "18446744073709551615"), "within the 16 bytes");
  expectContains(refused("99999999999999999999999", "16"), "expected an offset of at least 0");
  expectContains(refused("-4", "16"), "expected an offset of at least 0, found '-4'");
  expectContains(refused("0", "0x10"), "expected a length of at least 0");
  expectContains(refused("0", "12"), "expected 16 bytes of data for its dimensions, found 12");
}

TEST_F(ExternalData, refuses_dimensions_that_overflow) {
  folder.write("w.bin", std::string(16, 'x'));
  int64_t huge = int64_t{1} << 32;
  expectContains(place({huge, huge}, {{"location", "w.bin"}}).error, "expected at most 2^55");
  expectContains(place({huge, huge, 0}, {{"location", "w.bin"}}).error, "expected at most 2^55");
  expectContains(place({-1}, {{"location", "w.bin"}}).error, "dimensions of at least 0, found -1");
  expectContains(place({1 << 20}, {{"location", "w.bin"}}).error, "within the 16 bytes");
}

TEST_F(ExternalData, refuses_contradicting_entries) {
  folder.write("w.bin", std::string(16, 'x'));
  expectContains(place({4}, {{"offset", "0"}}).error, "expected a location, found none");
  ::onnx::ModelProto model = modelWithInitializer(TensorProto::FLOAT, {4});
  initializerOf(model).set_data_location(TensorProto::EXTERNAL);
  for (const char *location : {"w.bin", "v.bin"}) {
    auto *entry = initializerOf(model).add_external_data();
    entry->set_key("location");
    entry->set_value(location);
  }
  expectContains(locate(folder.write("m.onnx", model)).error, "found 'location' again");
  initializerOf(model).mutable_external_data()->RemoveLast();
  initializerOf(model).set_raw_data("1234567890123456");
  expectContains(locate(folder.write("m.onnx", model)).error, "found data in the model as well");
}

TEST_F(ExternalData, refuses_strings) {
  folder.write("w.bin", std::string(16, 'x'));
  ::onnx::ModelProto model = modelWithInitializer(TensorProto::STRING, {1});
  initializerOf(model).set_data_location(TensorProto::EXTERNAL);
  expectContains(locate(folder.write("m.onnx", model)).error, "expected strings in string_data");
}

} // namespace
