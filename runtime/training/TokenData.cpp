// Token ids in .npy files, [tokens] or [samples, tokens], as samples for a model that predicts the next token. Files of
// our own byte order stay where they are: only what is read is loaded.
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/io/Npy.h"
#include "runtime/training/DataFields.h"

#include <algorithm>
#include <cstring>

namespace ds {
namespace {

struct Part {
  std::string path;
  MappedFile file;
  Tensor copy; // where the file's order is not ours
  const uint8_t *tokens = nullptr;
  ElementType type = ElementType::I64;
  Shape shape;
  int64_t first = 0, stride = 0; // the first sample, tokens from one sample to the next
};

class TokenData : public Dataset {
public:
  TokenData(FieldChecker &checker, const DatasetOptions &options);
  void add(FieldChecker &checker, const std::string &path);

protected:
  void readRow(size_t field, int64_t sample, void *to) const override {
    const Part &part = partOf(parts, sample);
    int64_t begin = (sample - part.first) * part.stride + (field == labels && isShifted ? 1 : 0);
    convertExactly(part.type, part.tokens + static_cast<size_t>(begin) * typeSize(part.type), list[field].type, to,
                   length);
  }
  std::string place(int64_t sample) const override { return partOf(parts, sample).path; }

private:
  int64_t addSamples(Part &part);
  // Tokens that a sample needs beyond its length: the label of the last one.
  int64_t extra() const { return isShifted ? 1 : 0; }

  std::vector<Part> parts;
  int64_t length = 0; // of a sample
  size_t labels = 0;  // the field, or one past the last
  bool isShifted = true;
};

TokenData::TokenData(FieldChecker &checker, const DatasetOptions &options) : length(options.sequence) {
  const std::vector<TensorInfo> &inputs = checker.inputs();
  labels = inputs.size() > 1 ? inputs.size() - 1 : inputs.size();
  if (!options.labels.empty()) {
    labels = checker.indexOf(options.labels);
    if (labels == inputs.size())
      fail(ErrorCode::InvalidArgument, "found no input '", options.labels, "' for labels");
  }
  isShifted = options.isShifted && labels < inputs.size();
  std::vector<std::string> names;
  for (const TensorInfo &input : inputs)
    names.push_back(input.name);
  size_t wanted = labels < inputs.size() ? 2 : 1;
  if (inputs.size() > wanted)
    fail(ErrorCode::InvalidArgument,
         ".npy holds tokens and the labels that follow from them, the package has the inputs ", quotedNames(names),
         ": write an .npz with an array for each");
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::optional<int64_t> fixed = checker.fixedAxis(i, 1);
    if (fixed && length != 0 && length != *fixed)
      fail(ErrorCode::InvalidArgument, "found sequences of ", length, ", expected ", *fixed, " as in input '", names[i],
           "'");
    length = fixed ? *fixed : length;
  }
  if (length < 0 || (options.sequence == 0 && length == 0 && checker.fixedAxis(0, 1)))
    fail(ErrorCode::InvalidArgument, "found sequences of ", length, ", expected at least 1");
}

Part readTokens(const std::string &path) {
  Part part;
  part.path = path;
  part.file = MappedFile(path);
  size_t at = 0;
  NpyHeader header = readNpyHeader(part.file.size(), [&](void *to, size_t bytes) {
    std::memcpy(to, part.file.data() + at, bytes);
    at += bytes;
  });
  part.type = header.type;
  part.shape = header.shape;
  if (!isInteger(header.type) || header.type == ElementType::I1)
    fail(ErrorCode::ShapeMismatch, "found elements of ", typeName(header.type), ", expected integers: token ids");
  if (header.shape.empty() || header.shape.size() > 2)
    fail(ErrorCode::ShapeMismatch, "found shape ", listText(header.shape), ", expected [tokens] or [samples, tokens]");
  part.tokens = part.file.data() + at;
  // NumPy aligns the elements; whoever does not gets a copy, as do other orders.
  if (header.isBigEndian || header.isFortran || at % typeSize(header.type) != 0) {
    part.copy = parseNpy(part.file.data(), part.file.size());
    part.tokens = part.copy.data();
  }
  return part;
}

int64_t TokenData::addSamples(Part &part) {
  int64_t tokens = part.shape.back();
  if (part.shape.size() == 2) {
    if (length == 0)
      length = tokens - extra();
    if (tokens - extra() != length || length < 1)
      fail(ErrorCode::ShapeMismatch, "found samples of ", tokens, " tokens, expected ",
           std::max<int64_t>(length, 1) + extra(), isShifted ? ": one more than a sequence, for the last label" : "");
    part.stride = tokens;
    return part.shape[0];
  }
  if (length == 0)
    fail(ErrorCode::InvalidArgument, "tokens without samples need a length of sequences, since the package has none");
  if (tokens < length + extra())
    fail(ErrorCode::ShapeMismatch, "found ", tokens, " tokens, expected at least ", length + extra(),
         " for sequences of ", length);
  part.stride = length;
  return (tokens - extra()) / length;
}

void TokenData::add(FieldChecker &checker, const std::string &path) {
  Part part = readTokens(path);
  int64_t samples = addSamples(part);
  if (samples == 0)
    fail(ErrorCode::BadFile, "has no samples");
  list.clear();
  for (size_t i = 0; i < checker.inputs().size(); ++i)
    list.push_back(checker.accept(i, part.type, {length}));
  part.first = count;
  count += samples;
  parts.push_back(std::move(part));
}

} // namespace

std::unique_ptr<Dataset> openTokens(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs,
                                    const DatasetOptions &options) {
  FieldChecker checker(inputs);
  auto data = std::make_unique<TokenData>(checker, options);
  for (const std::string &path : paths)
    annotated(path, [&] { data->add(checker, path); });
  return data;
}

} // namespace ds
