// Data sets of IDX files, as MNIST comes: one file of images, one of labels.
#include "runtime/core/Error.h"
#include "runtime/io/Idx.h"
#include "runtime/training/DataFields.h"

namespace ds {
namespace {

class IdxData : public Dataset {
public:
  IdxData(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs, const DatasetOptions &options);

protected:
  void readRow(size_t field, int64_t sample, void *to) const override {
    const DataField &info = list[field];
    const Tensor &array = arrays[field];
    int64_t elements = static_cast<int64_t>(info.rowBytes() / typeSize(info.type));
    const uint8_t *from =
        array.data() + static_cast<size_t>(sample) * static_cast<size_t>(elements) * typeSize(array.getType());
    convertExactly(array.getType(), from, info.type, to, elements);
    if (scalesBytes && array.getType() == ElementType::U8 && isFloat(info.type))
      scale(info.type, to, elements);
  }
  std::string place(int64_t) const override { return paths[0]; }

private:
  static void scale(ElementType type, void *data, int64_t elements) {
    for (int64_t i = 0; i < elements; ++i) {
      size_t at = static_cast<size_t>(i);
      if (type == ElementType::F32)
        static_cast<float *>(data)[at] /= 255.0f;
      else
        storeDouble(type, data, at, loadDouble(type, data, at) / 255.0);
    }
  }

  std::vector<std::string> paths; // in the order of the inputs
  std::vector<Tensor> arrays;
  bool scalesBytes;
};

// Images come without an axis of channels, and a model of numbers wants them in one row: the same elements, other axes.
Shape rowFor(const FieldChecker &checker, size_t input, const Shape &found) {
  Shape row;
  for (size_t axis = 1; axis < checker.inputs()[input].shape.size(); ++axis) {
    std::optional<int64_t> fixed = checker.fixedAxis(input, axis);
    if (!fixed)
      return found;
    row.push_back(*fixed);
  }
  return elementCount(row) == elementCount(found) ? row : found;
}

IdxData::IdxData(const std::vector<std::string> &given, const std::vector<TensorInfo> &inputs,
                 const DatasetOptions &options)
    : paths(inputs.size()), arrays(inputs.size()), scalesBytes(options.scalesBytes) {
  FieldChecker checker(inputs);
  std::vector<std::string> names;
  for (const TensorInfo &input : inputs)
    names.push_back(input.name);
  if (given.size() != inputs.size())
    fail(ErrorCode::InvalidArgument, given[0], ": found ", given.size(), given.size() == 1 ? " IDX file" : " IDX files",
         ", expected one for each input: ", quotedNames(names));
  // A file of one axis is for an input of one axis, wherever it stands on the command line.
  for (const std::string &path : given) {
    Tensor array = readIdx(path);
    bool isFlat = array.getShape().size() == 1;
    size_t input = 0;
    while (input < inputs.size() && (!paths[input].empty() || (inputs[input].shape.size() == 1) != isFlat))
      ++input;
    if (input == inputs.size())
      fail(ErrorCode::ShapeMismatch, path, ": found shape ", listText(array.getShape()),
           ", which no input is left for: expected one file for each of ", quotedNames(names));
    paths[input] = path;
    arrays[input] = std::move(array);
  }
  count = arrays[0].getShape()[0];
  for (size_t i = 0; i < inputs.size(); ++i)
    annotated(paths[i], [&] {
      Shape row(arrays[i].getShape().begin() + 1, arrays[i].getShape().end());
      list.push_back(checker.accept(i, arrays[i].getType(), rowFor(checker, i, row)));
      if (arrays[i].getShape()[0] != count)
        fail(ErrorCode::ShapeMismatch, "found ", arrays[i].getShape()[0], " samples, expected ", count, " as in ",
             paths[0]);
      if (count == 0)
        fail(ErrorCode::BadFile, "has no samples");
    });
}

} // namespace

std::unique_ptr<Dataset> openIdxData(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs,
                                     const DatasetOptions &options) {
  return std::make_unique<IdxData>(paths, inputs, options);
}

} // namespace ds
