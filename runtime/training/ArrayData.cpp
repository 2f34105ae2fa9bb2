// Data sets that are arrays of samples in memory: .npz and .jsonl files.
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/io/Npz.h"
#include "runtime/io/StrictJson.h"
#include "runtime/training/DataFields.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace ds {
namespace {

using nlohmann::json;

// One file's samples.
struct Part {
  std::string path;
  int64_t first = 0, count = 0;
  std::vector<Tensor> arrays; // of each input, as the file has them: [count, row...]
};

class ArrayData : public Dataset {
public:
  // Takes the next file's arrays, all of `samples` rows.
  void add(FieldChecker &checker, Part part) {
    std::vector<DataField> fields;
    for (size_t i = 0; i < part.arrays.size(); ++i) {
      const Shape &shape = part.arrays[i].getShape();
      fields.push_back(checker.accept(i, part.arrays[i].getType(), Shape(shape.begin() + 1, shape.end())));
      if (!parts.empty() && fields[i].row != list[i].row)
        fail(ErrorCode::ShapeMismatch, "'", list[i].name, "': found samples of shape ", listText(fields[i].row),
             ", expected ", listText(list[i].row), " as in ", parts[0].path);
    }
    list = std::move(fields);
    part.first = count;
    count += part.count;
    parts.push_back(std::move(part));
  }

protected:
  void readRow(size_t field, int64_t sample, void *to) const override {
    const Part &part = partOf(parts, sample);
    const Tensor &array = part.arrays[field];
    int64_t elements = static_cast<int64_t>(list[field].rowBytes() / typeSize(list[field].type));
    size_t begin = static_cast<size_t>(sample - part.first) * static_cast<size_t>(elements);
    convertExactly(array.getType(), array.data() + begin * typeSize(array.getType()), list[field].type, to, elements);
  }
  std::string place(int64_t sample) const override { return partOf(parts, sample).path; }

private:
  std::vector<Part> parts;
};

Part readNpzPart(const std::string &path, const FieldChecker &checker) {
  NpzReader reader(path);
  Part part;
  part.path = path;
  std::vector<std::string> names;
  for (const TensorSource::Item &item : reader.items())
    names.push_back(item.name);
  annotated(path, [&] { checker.checkNames(names, "array"); });
  part.arrays.resize(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorSource::Item &item = reader.items()[i];
    annotated(path + ": '" + item.name + "'", [&] {
      if (item.shape.empty())
        fail(ErrorCode::ShapeMismatch, "is a single number, expected a first axis of samples");
      if (i > 0 && item.shape[0] != part.count)
        fail(ErrorCode::ShapeMismatch, "found ", item.shape[0], " samples, expected ", part.count, " as in '", names[0],
             "'");
    });
    part.count = item.shape[0];
    Tensor &array = part.arrays[checker.indexOf(item.name)];
    array.reset(item.type, item.shape);
    reader.read(i, item.type, array.data());
  }
  if (part.count == 0)
    fail(ErrorCode::BadFile, path, ": has no samples");
  return part;
}

// The rows of one input, line by line, in the input's type: numbers of text have none of their own.
class Column {
public:
  explicit Column(const TensorInfo &input) : input(input) {}

  void add(const json &value, bool isFirst) {
    refuseText(value);
    Shape found;
    for (const json *inner = &value; inner->is_array(); inner = &inner->front()) {
      found.push_back(static_cast<int64_t>(inner->size()));
      if (inner->empty())
        break;
    }
    if (isFirst)
      row = found;
    if (found != row)
      fail(ErrorCode::ShapeMismatch, "found shape ", listText(found), ", expected ", listText(row),
           " as in the first line: samples of a batch have one size, so pad them");
    append(value, 0);
  }

  Tensor take(int64_t samples) {
    Shape shape = row;
    shape.insert(shape.begin(), samples);
    Tensor array(input.type, shape);
    std::copy(bytes.begin(), bytes.end(), array.data());
    std::vector<uint8_t>().swap(bytes);
    return array;
  }

private:
  static void refuseText(const json &value) {
    if (value.is_string())
      fail(ErrorCode::InvalidArgument, "is text, expected numbers: until there is a tokenizer, data holds token ids");
  }

  void append(const json &value, size_t axis) {
    if (axis == row.size())
      return appendNumber(value);
    if (!value.is_array() || static_cast<int64_t>(value.size()) != row[axis])
      fail(ErrorCode::ShapeMismatch, "is ragged, expected ", row[axis], " values on axis ", axis, " everywhere");
    for (const json &inner : value)
      append(inner, axis + 1);
  }

  void appendNumber(const json &value) {
    refuseText(value);
    if (!value.is_number() && !value.is_boolean())
      fail(ErrorCode::ShapeMismatch, "found ", value.type_name(), ", expected a number");
    size_t size = typeSize(input.type), index = bytes.size() / size;
    bytes.resize(bytes.size() + size);
    if (isInteger(input.type)) {
      if (value.is_number_float())
        fail(ErrorCode::ShapeMismatch, "found ", value.dump(), ", expected an integer for ", typeName(input.type));
      bool isWide = value.is_number_unsigned();
      uint64_t wide = isWide ? value.get<uint64_t>() : 0;
      int64_t narrow = isWide ? 0 : value.is_boolean() ? int64_t(value.get<bool>()) : value.get<int64_t>();
      isWide ? convertExactly(ElementType::U64, &wide, input.type, bytes.data() + index * size, 1)
             : convertExactly(ElementType::I64, &narrow, input.type, bytes.data() + index * size, 1);
      return;
    }
    double number = value.is_boolean() ? double(value.get<bool>()) : value.get<double>();
    storeDouble(input.type, bytes.data(), index, number);
    if (!std::isfinite(loadDouble(input.type, bytes.data(), index)))
      fail(ErrorCode::ShapeMismatch, "found ", value.dump(), ", which ", typeName(input.type), " cannot hold");
  }

  const TensorInfo &input;
  Shape row;
  std::vector<uint8_t> bytes;
};

void addLine(std::string_view line, bool isFirst, const FieldChecker &checker, std::vector<Column> &columns) {
  json object = parseStrictJson(line);
  if (!object.is_object())
    fail(ErrorCode::BadFile, "found ", object.type_name(), ", expected an object");
  std::vector<std::string> names;
  for (auto it = object.begin(); it != object.end(); ++it)
    names.push_back(it.key());
  checker.checkNames(names, "member");
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string &name = checker.inputs()[i].name;
    annotated("'" + name + "'", [&] { columns[i].add(object[name], isFirst); });
  }
}

Part readJsonPart(const std::string &path, const FieldChecker &checker) {
  MappedFile file(path);
  std::string_view text(reinterpret_cast<const char *>(file.data()), file.size());
  Part part;
  part.path = path;
  std::vector<Column> columns;
  for (const TensorInfo &input : checker.inputs())
    columns.emplace_back(input);
  for (size_t number = 1; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    annotated(concat(path, ": line ", number), [&] { addLine(line, part.count == 0, checker, columns); });
    ++part.count;
  }
  for (Column &column : columns)
    part.arrays.push_back(column.take(part.count));
  return part;
}

template <typename Read>
std::unique_ptr<Dataset> open(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs, Read read) {
  auto data = std::make_unique<ArrayData>();
  FieldChecker checker(inputs);
  for (const std::string &path : paths) {
    Part part = read(path, checker);
    annotated(path, [&] { data->add(checker, std::move(part)); });
  }
  return data;
}

} // namespace

std::unique_ptr<Dataset> openNpzData(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs) {
  return open(paths, inputs, readNpzPart);
}

std::unique_ptr<Dataset> openJsonLines(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs) {
  return open(paths, inputs, readJsonPart);
}

} // namespace ds
