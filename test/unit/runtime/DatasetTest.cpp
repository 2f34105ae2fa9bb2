#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Error.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"
#include "runtime/training/Dataset.h"

#include <gtest/gtest.h>
#include <zlib.h>

using namespace ds;
using namespace ds::test;

namespace {

// "b,784": a symbol and a size.
TensorInfo input(const std::string &name, ElementType type, const std::string &shape) {
  static const SymbolTable symbols{{{"b", 0}, {"s", 1}, {"h", 2}}, {}};
  TensorInfo info{name, type, {}, std::nullopt};
  std::istringstream sizes(shape);
  for (std::string size; std::getline(sizes, size, ',');)
    info.shape.push_back(SizeExpr::parse(size, symbols));
  return info;
}

template <typename T> std::vector<T> row(const Dataset &data, size_t field, int64_t sample) {
  std::vector<T> values(data.fields()[field].rowBytes() / sizeof(T));
  data.read(field, sample, values.data());
  return values;
}

class DatasetTest : public testing::Test {
protected:
  std::string npz(const std::string &name, const std::vector<NamedView> &arrays) {
    writeNpz(folder.file(name), arrays);
    return folder.file(name);
  }
  std::string npy(const std::string &name, const Tensor &array) {
    writeNpy(folder.file(name), array);
    return folder.file(name);
  }
  std::string text(const std::string &name, const std::string &content) {
    writeFile(folder.file(name), content);
    return folder.file(name);
  }
  // What opening says, without the folder.
  std::string refusal(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs,
                      const DatasetOptions &options = {}) {
    std::string message = errorOf([&] { openDataset(paths, inputs, options); });
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (size_t at; (at = message.find(folder.path() + "/")) != std::string::npos;)
      message.erase(at, folder.path().size() + 1);
    return message;
  }

  TemporaryFolder folder;
  std::vector<TensorInfo> classes = {input("x", ElementType::F32, "b,2"), input("y", ElementType::I64, "b")};
  std::vector<TensorInfo> tokens = {input("ids", ElementType::I64, "b,s"), input("labels", ElementType::I64, "b,s")};
  Tensor x = tensor<float>(ElementType::F32, {3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor y = tensor<int32_t>(ElementType::I32, {3}, {7, 8, 9});
};

using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

TEST_F(DatasetTest, NpzHasAnArrayForEachInput) {
  std::string a = npz("a.npz", {{"y", y.view()}, {"x", x.view()}});
  auto data = openDataset({a, a}, classes);
  EXPECT_EQ(data->samples(), 6);
  ASSERT_EQ(data->fields().size(), 2u);
  EXPECT_EQ(data->fields()[0].name, "x");
  EXPECT_EQ(data->fields()[0].row, (Shape{2}));
  EXPECT_EQ(row<float>(*data, 0, 2), (Floats{5, 6}));
  EXPECT_EQ(row<float>(*data, 0, 3), (Floats{1, 2}));
  EXPECT_EQ(row<int64_t>(*data, 1, 5), (Integers{9}));
}

TEST_F(DatasetTest, NpzThatDoesNotFitIsRefused) {
  EXPECT_EQ(refusal({npz("m.npz", {{"x", x.view()}})}, classes), "m.npz: has no array 'y', found 'x'");
  EXPECT_EQ(refusal({npz("u.npz", {{"x", x.view()}, {"y", y.view()}, {"z", y.view()}})}, classes),
            "u.npz: array 'z' is for no input, expected 'x' and 'y'");
  EXPECT_EQ(refusal({npz("l.npz", {{"x", x.view()}, {"y", x.view()}})}, classes),
            "l.npz: 'y': found elements of f32, expected i64, or what it holds without loss: i64 i32 i16 i8 u64 u32 "
            "u16 u8 i1");
  Tensor wide = x.converted(ElementType::F64), two = tensor<int32_t>(ElementType::I32, {2}, {1, 2});
  EXPECT_EQ(refusal({npz("w.npz", {{"x", wide.view()}, {"y", y.view()}})}, classes),
            "w.npz: 'x': found elements of f64, expected f32, or what it holds without loss: f32 f16 bf16 i64 i32 i16 "
            "i8 u64 u32 u16 u8 i1");
  EXPECT_EQ(refusal({npz("n.npz", {{"x", x.view()}, {"y", two.view()}})}, classes),
            "n.npz: 'y': found 2 samples, expected 3 as in 'x'");
  Tensor flat = tensor<float>(ElementType::F32, {3}, {1, 2, 3}), three(ElementType::F32, {3, 3});
  EXPECT_EQ(refusal({npz("f.npz", {{"x", flat.view()}, {"y", y.view()}})}, classes),
            "f.npz: 'x': found samples of shape [], expected 1 axes after the first of [b, 2]");
  EXPECT_EQ(refusal({npz("t.npz", {{"x", three.view()}, {"y", y.view()}})}, classes),
            "t.npz: 'x': axis 1 has size 3, expected 2 of [b, 2]");
  Tensor none(ElementType::F32, {0, 2}), noLabels(ElementType::I64, {0});
  EXPECT_EQ(refusal({npz("0.npz", {{"x", none.view()}, {"y", noLabels.view()}})}, classes), "0.npz: has no samples");
  Tensor number(ElementType::F32, {});
  EXPECT_EQ(refusal({npz("s.npz", {{"x", number.view()}, {"y", y.view()}})}, classes),
            "s.npz: 'x': is a single number, expected a first axis of samples");
}

TEST_F(DatasetTest, AxesOfOneNameHaveOneSize) {
  Tensor longer(ElementType::I64, {3, 4}), shorter(ElementType::I64, {3, 3});
  EXPECT_EQ(refusal({npz("a.npz", {{"ids", longer.view()}, {"labels", shorter.view()}})}, tokens),
            "a.npz: 'labels': axis 1 has size 3, expected 4: it is 's', as in 'ids'");
  std::string a = npz("b.npz", {{"ids", longer.view()}, {"labels", longer.view()}});
  std::string b = npz("c.npz", {{"ids", shorter.view()}, {"labels", shorter.view()}});
  EXPECT_EQ(refusal({a, b}, tokens), "c.npz: 'ids': axis 1 has size 3, expected 4: it is 's', as in 'ids'");
}

TEST_F(DatasetTest, ValuesThatDoNotFitNameTheSample) {
  Tensor large = tensor<int64_t>(ElementType::I64, {3, 2}, {1, 2, 3, 4, (1 << 24) + 1, 6});
  auto data = openDataset({npz("a.npz", {{"x", large.view()}, {"y", y.view()}})}, classes);
  EXPECT_EQ(row<float>(*data, 0, 1), (Floats{3, 4}));
  EXPECT_EQ(errorOf([&] { row<float>(*data, 0, 2); }),
            folder.file("a.npz") + ": sample 2: 'x': element 0: found 16777217, expected -16777216 to 16777216, which "
                                   "f32 holds exactly");
  classes[1].bound = 9;
  data = openDataset({npz("b.npz", {{"x", x.view()}, {"y", y.view()}})}, classes);
  EXPECT_EQ(row<int64_t>(*data, 1, 1), (Integers{8}));
  EXPECT_EQ(errorOf([&] { row<int64_t>(*data, 1, 2); }),
            folder.file("b.npz") + ": sample 2: 'y': element 0: found 9, expected 0 to 8");
  Tensor huge = tensor<uint64_t>(ElementType::U64, {3}, {1, ~uint64_t(0), 3});
  data = openDataset({npz("c.npz", {{"x", x.view()}, {"y", huge.view()}})},
                     {classes[0], input("y", ElementType::I64, "b")});
  EXPECT_EQ(errorOf([&] { row<int64_t>(*data, 1, 1); }),
            folder.file("c.npz") + ": sample 1: 'y': element 0: found 2^63 or more, which i64 cannot hold");
}

TEST_F(DatasetTest, TokensAreCutIntoWindows) {
  Tensor stream = tensor<uint16_t>(ElementType::U16, {10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  std::string path = npy("t.npy", stream);
  DatasetOptions options;
  options.sequence = 3;
  auto data = openDataset({path, path}, tokens, options);
  EXPECT_EQ(data->samples(), 6); // 9 tokens have one that follows
  EXPECT_EQ(row<int64_t>(*data, 0, 1), (Integers{3, 4, 5}));
  EXPECT_EQ(row<int64_t>(*data, 1, 1), (Integers{4, 5, 6}));
  EXPECT_EQ(row<int64_t>(*data, 1, 5), (Integers{7, 8, 9}));
  options.isShifted = false;
  options.sequence = 5;
  data = openDataset({path}, tokens, options);
  EXPECT_EQ(data->samples(), 2);
  EXPECT_EQ(row<int64_t>(*data, 0, 1), (Integers{5, 6, 7, 8, 9}));
  EXPECT_EQ(row<int64_t>(*data, 1, 1), row<int64_t>(*data, 0, 1));
  options.labels = "ids";
  options.isShifted = true;
  data = openDataset({path}, tokens, options);
  EXPECT_EQ(data->samples(), 1);
  EXPECT_EQ(row<int64_t>(*data, 0, 0), (Integers{1, 2, 3, 4, 5}));
}

TEST_F(DatasetTest, TokensMayComeInSamples) {
  Tensor rows = tensor<int32_t>(ElementType::I32, {2, 3}, {1, 2, 3, 4, 5, 6});
  auto data = openDataset({npy("r.npy", rows)}, tokens);
  EXPECT_EQ(data->samples(), 2);
  EXPECT_EQ(row<int64_t>(*data, 0, 1), (Integers{4, 5}));
  EXPECT_EQ(row<int64_t>(*data, 1, 1), (Integers{5, 6}));
  // One input has no labels, so that nothing is left over.
  data = openDataset({folder.file("r.npy")}, {input("ids", ElementType::I32, "b,3")});
  EXPECT_EQ(row<int32_t>(*data, 0, 1), (std::vector<int32_t>{4, 5, 6}));
}

TEST_F(DatasetTest, TokensThatDoNotFitAreRefused) {
  Tensor stream = tensor<uint16_t>(ElementType::U16, {3}, {0, 1, 2});
  std::string path = npy("t.npy", stream);
  DatasetOptions options;
  EXPECT_EQ(refusal({path}, tokens),
            "t.npy: tokens without samples need a length of sequences, since the package has none");
  options.sequence = 3;
  EXPECT_EQ(refusal({path}, tokens, options), "t.npy: found 3 tokens, expected at least 4 for sequences of 3");
  std::vector<TensorInfo> fixed = {input("ids", ElementType::I64, "b,8"), input("labels", ElementType::I64, "b,8")};
  EXPECT_EQ(refusal({path}, fixed, options), "found sequences of 3, expected 8 as in input 'ids'");
  EXPECT_EQ(refusal({npy("r.npy", Tensor(ElementType::I32, {2, 8}))}, fixed),
            "r.npy: found samples of 8 tokens, expected 9: one more than a sequence, for the last label");
  EXPECT_EQ(refusal({npy("f.npy", x)}, tokens), "f.npy: found elements of f32, expected integers: token ids");
  EXPECT_EQ(refusal({npy("3.npy", Tensor(ElementType::I32, {2, 2, 2}))}, tokens),
            "3.npy: found shape [2, 2, 2], expected [tokens] or [samples, tokens]");
  std::vector<TensorInfo> more = tokens;
  more.insert(more.begin(), input("mask", ElementType::I64, "b,s"));
  EXPECT_EQ(refusal({path}, more, options),
            ".npy holds tokens and the labels that follow from them, the package has the inputs 'mask', 'ids' and "
            "'labels': write an .npz with an array for each");
  options.labels = "label";
  EXPECT_EQ(refusal({path}, tokens, options), "found no input 'label' for labels");
}

TEST_F(DatasetTest, JsonLinesHoldASampleEach) {
  auto data = openDataset({text("a.jsonl", "{\"x\": [1, 0.1], \"y\": 3}\n\n{\"y\": 4, \"x\": [-2, 1e3]}")}, classes);
  EXPECT_EQ(data->samples(), 2);
  EXPECT_EQ(row<float>(*data, 0, 0), (Floats{1, 0.1f}));
  EXPECT_EQ(row<float>(*data, 0, 1), (Floats{-2, 1000}));
  EXPECT_EQ(row<int64_t>(*data, 1, 1), (Integers{4}));
}

TEST_F(DatasetTest, JsonLinesThatDoNotFitAreRefused) {
  auto of = [&](const std::string &line) {
    return refusal({text("a.jsonl", "{\"x\": [1, 2], \"y\": 3}\n" + line)}, classes);
  };
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("{\"x\": [1, 2]"), "a.jsonl: line 2: 1:13: expected ',' or '}', found the end");
  EXPECT_EQ(of("[1]"), "a.jsonl: line 2: found array, expected an object");
  EXPECT_EQ(of("{\"x\": [1, 2]}"), "a.jsonl: line 2: has no member 'y', found 'x'");
  EXPECT_EQ(of("{\"x\": [1, 2], \"y\": 1, \"z\": 1}"),
            "a.jsonl: line 2: member 'z' is for no input, expected 'x' and 'y'");
  EXPECT_EQ(of("{\"x\": \"a cat\", \"y\": 1}"),
            "a.jsonl: line 2: 'x': is text, expected numbers: until there is a tokenizer, data holds token ids");
  EXPECT_EQ(of("{\"x\": [1, \"b\"], \"y\": 1}"),
            "a.jsonl: line 2: 'x': is text, expected numbers: until there is a tokenizer, data holds token ids");
  EXPECT_EQ(of("{\"x\": [1], \"y\": 1}"), "a.jsonl: line 2: 'x': found shape [1], expected [2] as in the first line: "
                                          "samples of a batch have one size, so pad them");
  EXPECT_EQ(of("{\"x\": [1, null], \"y\": 1}"), "a.jsonl: line 2: 'x': found null, expected a number");
  EXPECT_EQ(of("{\"x\": [1, [2]], \"y\": 1}"), "a.jsonl: line 2: 'x': found array, expected a number");
  EXPECT_EQ(of("{\"x\": [1, 2], \"y\": 1.5}"), "a.jsonl: line 2: 'y': found 1.5, expected an integer for i64");
  EXPECT_EQ(of("{\"x\": [1, 1e39], \"y\": 1}"), "a.jsonl: line 2: 'x': found 1e+39, which f32 cannot hold");
  EXPECT_EQ(refusal({text("b.jsonl", "{\"x\": [[1, 2], [3]], \"y\": 3}")}, classes),
            "b.jsonl: line 1: 'x': is ragged, expected 2 values on axis 1 everywhere");
}

std::string idx(uint8_t type, const std::vector<uint8_t> &shape, const std::string &data) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (uint8_t size : shape)
    bytes += std::string(3, '\0') + static_cast<char>(size);
  return bytes + data;
}

TEST_F(DatasetTest, IdxIsForImagesAndLabels) {
  std::string images = text("images", idx(8, {2, 1, 2}, std::string("\0\xff\x33\x66", 4)));
  std::string zipped = folder.file("labels.gz"), labels = idx(8, {2}, "\3\4");
  gzFile file = gzopen(zipped.c_str(), "wb");
  gzwrite(file, labels.data(), static_cast<unsigned>(labels.size()));
  gzclose(file);
  auto data = openDataset({zipped, images}, classes); // [1, 2] of the file becomes [2] of the input
  EXPECT_EQ(data->samples(), 2);
  EXPECT_EQ(row<float>(*data, 0, 0), (Floats{0, 1}));
  EXPECT_EQ(row<float>(*data, 0, 1), (Floats{0.2f, 0.4f}));
  EXPECT_EQ(row<int64_t>(*data, 1, 1), (Integers{4}));
  DatasetOptions options;
  options.scalesBytes = false;
  data = openDataset({images, zipped}, {input("x", ElementType::F32, "b,1,1,2"), classes[1]}, options);
  EXPECT_EQ(data->fields()[0].row, (Shape{1, 1, 2}));
  EXPECT_EQ(row<float>(*data, 0, 1), (Floats{51, 102}));
  // Elements are big-endian.
  std::string shorts = text("shorts", idx(11, {2, 2}, std::string("\0\1\1\0\xff\xff\0\2", 8)));
  data = openDataset({shorts, zipped}, classes);
  EXPECT_EQ(row<float>(*data, 0, 0), (Floats{1, 256}));
  EXPECT_EQ(row<float>(*data, 0, 1), (Floats{-1, 2}));
}

TEST_F(DatasetTest, IdxThatDoesNotFitIsRefused) {
  std::string labels = text("labels", idx(8, {2}, "\3\4"));
  auto of = [&](const std::string &bytes) { return refusal({text("images", bytes), labels}, classes); };
  EXPECT_EQ(of(idx(8, {2, 2}, "1234")), "");
  EXPECT_EQ(of(idx(8, {2, 2}, "123")), "images: found 3 bytes of data, expected 4 for u8 [2, 2]");
  EXPECT_EQ(of(idx(8, {2, 2}, "12345")), "images: found more than 4 bytes of data, expected 4 for u8 [2, 2]");
  EXPECT_EQ(of(idx(7, {2, 2}, "1234")), "images: not an IDX file: element type 7, expected one of 8 9 11 12 13 14");
  EXPECT_EQ(of(idx(8, {}, "")), "images: found 0 axes, expected 1 to 8");
  EXPECT_EQ(of(std::string("\0\0\x08", 3)), "images: truncated header");
  EXPECT_EQ(of(idx(8, {3, 2}, "123456")), "labels: found 2 samples, expected 3 as in images");
  EXPECT_EQ(of(idx(8, {2, 3}, "123456")), "images: 'x': axis 1 has size 3, expected 2 of [b, 2]");
  EXPECT_EQ(of(idx(8, {2}, "12")), "labels: found shape [2], which no input is left for: expected one file for each of "
                                   "'x' and 'y'");
  EXPECT_EQ(of(std::string("\0\0\x0e\x08", 4) + std::string(32, '\xff')),
            "images: shape [4294967295, 4294967295, 4294967295, 4294967295, 4294967295, 4294967295, 4294967295, "
            "4294967295] has more elements than 64 bits can count");
  EXPECT_EQ(refusal({labels}, classes), "labels: found 1 IDX file, expected one for each input: 'x' and 'y'");
  EXPECT_EQ(refusal({text("g", "\x1f\x8b garbage"), labels}, classes).substr(0, 18), "g: cannot unpack: ");
}

TEST_F(DatasetTest, OtherFilesAreRefused) {
  EXPECT_EQ(refusal({}, classes), "found no file of data, expected at least one");
  EXPECT_EQ(refusal({text("e", "")}, classes), "e: is empty");
  EXPECT_EQ(refusal({text("t.txt", "hello")}, classes),
            "t.txt: is no data that is known, expected .npz, .npy, .jsonl (an object each line) or IDX");
  EXPECT_EQ(refusal({folder.file("none")}, classes), "none: cannot open: No such file or directory");
  EXPECT_EQ(refusal({folder.path() + "/."}, classes), ".: is a folder, expected a file of data");
  EXPECT_EQ(refusal({npy("t.npy", y), text("j", "{}")}, classes), "j: found .jsonl, expected .npy as in t.npy");
  EXPECT_EQ(refusal({text("j", "{}")}, {}), "the package has no inputs that data could be for");
  EXPECT_EQ(refusal({text("j", "{}")}, {input("x", ElementType::F32, "")}),
            "input 'x' is a single number, expected a first axis of samples");
}

} // namespace
