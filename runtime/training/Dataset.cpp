#include "runtime/training/Dataset.h"

#include "runtime/core/Error.h"

#include "runtime/core/MappedFile.h"
#include "runtime/training/DataFields.h"
#include <filesystem>

#include <algorithm>
#include <cstring>

namespace ds {
namespace {

enum class Kind { Npz, Npy, JsonLines, Idx };

const char *kindName(Kind kind) {
  switch (kind) {
  case Kind::Npz: return ".npz";
  case Kind::Npy: return ".npy";
  case Kind::JsonLines: return ".jsonl";
  case Kind::Idx: return "IDX";
  }
  return "";
}

Kind kindOf(const std::string &path) {
  if (isFolder(path))
    fail(ErrorCode::InvalidArgument, path, ": is a folder, expected a file of data");
  MappedFile file(path);
  if (file.size() == 0)
    fail(ErrorCode::BadFile, path, ": is empty");
  std::string start(reinterpret_cast<const char *>(file.data()), std::min<size_t>(file.size(), 16));
  auto begins = [&](const char *magic, size_t length) { return start.compare(0, length, magic, length) == 0; };
  if (begins("PK", 2))
    return Kind::Npz;
  if (begins("\x93NUMPY", 6))
    return Kind::Npy;
  if (begins("\x1f\x8b", 2) || begins("\0\0", 2))
    return Kind::Idx;
  size_t text = start.find_first_not_of(" \t\r\n");
  if (text != std::string::npos && start[text] == '{')
    return Kind::JsonLines;
  fail(ErrorCode::BadFile, path,
       ": is no data that is known, expected .npz, .npy, .jsonl (an object each line) or IDX");
}

} // namespace

void Dataset::read(size_t field, int64_t sample, void *to) const {
  const DataField &info = list[field];
  auto where = [&] { return concat(place(sample), ": sample ", sample, ": '", info.name, "'"); };
  try {
    readRow(field, sample, to);
  } catch (Error &error) {
    error.annotate(where());
    throw;
  }
  if (!info.bound)
    return;
  for (size_t i = 0, elements = info.rowBytes() / typeSize(info.type); i < elements; ++i) {
    int64_t value = loadInteger(info.type, to, i);
    if (value < 0 || value >= *info.bound)
      fail(ErrorCode::ShapeMismatch, where(), ": element ", i, ": found ", value, ", expected 0 to ", *info.bound - 1);
  }
}

std::unique_ptr<Dataset> openDataset(const std::vector<std::string> &paths, const std::vector<TensorInfo> &inputs,
                                     const DatasetOptions &options) {
  if (paths.empty())
    fail(ErrorCode::InvalidArgument, "found no file of data, expected at least one");
  for (const std::string &path : paths) { // a pipe would be waited for
    std::error_code error;
    if (std::filesystem::is_other(path, error))
      fail(ErrorCode::Io, path, ": is a pipe or a device, expected a file of data");
  }
  Kind kind = kindOf(paths[0]);
  for (const std::string &path : paths)
    if (Kind other = kindOf(path); other != kind)
      fail(ErrorCode::InvalidArgument, path, ": found ", kindName(other), ", expected ", kindName(kind), " as in ",
           paths[0]);
  switch (kind) {
  case Kind::Npz: return openNpzData(paths, inputs);
  case Kind::Npy: return openTokens(paths, inputs, options);
  case Kind::JsonLines: return openJsonLines(paths, inputs);
  case Kind::Idx: return openIdxData(paths, inputs, options);
  }
  fail(ErrorCode::Internal, "unknown kind of data");
}

} // namespace ds
