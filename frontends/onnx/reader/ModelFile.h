// An ONNX model as it lies on disk: the parsed structure, and for every tensor its elements or the
// range of a file where they are. Knows protobuf and files, not MLIR.

#ifndef FRONTENDS_ONNX_READER_MODELFILE_H
#define FRONTENDS_ONNX_READER_MODELFILE_H

#include "frontends/onnx/reader/FileAccess.h"
#include "frontends/onnx/reader/Skeleton.h"

#include "llvm/ADT/SmallVector.h"

#include "onnx-ml.pb.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace deepstride::onnx {

/// One of TensorProto's element types.
struct ElementKind {
  int code;
  const char *name;
  /// Size in `raw_data`; 0 for strings, which have no fixed size.
  unsigned bits;
};

/// Null for a number that ONNX does not define.
const ElementKind *findElementKind(int code);

/// Number of elements; fails for a negative dimension, too many dimensions, or a product that
/// overflows any size computation.
llvm::Expected<uint64_t> countElements(llvm::ArrayRef<int64_t> dims, const ImportLimits &limits);

/// Fails unless `found` bytes are what a tensor of `size` bytes needs.
llvm::Error expectSize(uint64_t size, uint64_t found);

/// The elements of a tensor in the layout of `raw_data`, here or in a file.
struct TensorData {
  const ElementKind *element = nullptr;
  llvm::SmallVector<int64_t> dims;
  uint64_t elements = 0;
  bool inFile = false;
  std::string bytes;
  std::string file;
  ByteRange range;
};

/// A range of the model, or of a file below its folder.
struct FileRange {
  std::string file;
  ByteRange range;
};

class ModelFile {
public:
  static llvm::Expected<std::unique_ptr<ModelFile>> load(const std::string &path, const ImportLimits &limits);

  const ::onnx::ModelProto &model() const { return proto; }

  /// Checks a tensor and finds its elements. A tensor of strings has none here: they stay in
  /// `string_data`, whose count is checked.
  llvm::Expected<TensorData> locate(const ::onnx::TensorProto &tensor);

  /// Whether two ranges of the model itself hold the same bytes; false where one lies in another file.
  bool holdsSame(const FileRange &a, const FileRange &b) const;

  /// The locations that locate opened so far, each once.
  std::vector<std::string> externalFiles() const { return {openedLocations.begin(), openedLocations.end()}; }

private:
  ModelFile(const std::string &path, const ImportLimits &limits) : path(path), limits(limits) {}

  llvm::Error locateStored(const ::onnx::TensorProto &tensor, uint64_t size, TensorData &data);
  llvm::Error locateExternal(const ::onnx::TensorProto &tensor, uint64_t size, TensorData &data);
  llvm::Error openExternal(llvm::StringRef location);

  std::string path;
  const ImportLimits &limits;
  MappedFile mapped;
  std::vector<ByteRange> payloads;
  ::onnx::ModelProto proto;
  /// The external file used last; models have one for all tensors or one per tensor.
  std::string externalLocation;
  std::set<std::string> openedLocations;
  OpenFile external;
  uint64_t externalSize = 0;
};

} // namespace deepstride::onnx

#endif // FRONTENDS_ONNX_READER_MODELFILE_H
