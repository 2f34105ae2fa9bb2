// What checkpoint.json says: where a training run stood, and which tensors lie in which file with which checksums.
#ifndef DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINTINFO_H
#define DEEPSTRIDE_RUNTIME_TRAINING_CHECKPOINTINFO_H

#include "runtime/core/Tensor.h"
#include "runtime/training/BatchReader.h"
#include "runtime/training/LossScaleState.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ds {

// Where a run stands, besides its tensors.
struct TrainingProgress {
  int64_t step = 0;    // updates
  int64_t samples = 0; // that were trained on
  LoaderPosition loader;
  uint64_t seed = 0;
  LossScaleState lossScale;
  nlohmann::json trainer = nlohmann::json::object(); // whatever else our own loop keeps
  nlohmann::json clientState;                        // whatever the user wants to keep
};

// Elements of a tensor, in row-major order, that lie in one file.
struct CheckpointPiece {
  std::string file;
  int64_t begin = 0, end = 0;
  std::vector<std::string> digests; // SHA-256 of each chunk of its bytes
};

// A tensor as the model has it, whichever ranks have written what of it.
struct CheckpointTensor {
  std::string name;
  ElementType type = ElementType::F32;
  Shape shape;
  std::vector<CheckpointPiece> pieces; // one after the other, at least one; together all of its elements

  // What it belongs to: "parameters", "statistics" and "optimizer" begin the names of files.
  bool isIn(const std::string &part) const { return pieces.front().file.rfind(part, 0) == 0; }
};

// What a piece is called in its file: as the tensor, or where that is cut "NAME[BEGIN:END]".
std::string pieceName(const CheckpointTensor &tensor, const CheckpointPiece &piece);
Shape pieceShape(const CheckpointTensor &tensor, const CheckpointPiece &piece);

struct CheckpointFile {
  std::string name;
  uint64_t bytes = 0, headerBytes = 0;
  std::string headerDigest; // the header's; tensors have their own
};

struct CheckpointInfo {
  TrainingProgress progress;
  std::vector<CheckpointTensor> tensors; // sorted by name
  std::vector<CheckpointFile> files;
};

// Tensors are hashed by chunks of so many bytes, so that a fault is named closely.
constexpr uint64_t checkpointChunk = uint64_t(1) << 20;

// The text of checkpoint.json. Its last member is a checksum of everything before. Throws Error(InvalidArgument) for
// what could not be read back, such as a NaN in the client's state.
std::string writeCheckpointInfo(const CheckpointInfo &info);
// Throws Error(BadFile) without the file's name.
CheckpointInfo readCheckpointInfo(const std::string &text);

// Whether a name may be that of a file or folder of ours: 1 to 200 bytes of UTF-8 without '/', '\' and control
// characters, that do not begin with '.' or '-' (those of temporary files do) nor end in a space.
bool isFileName(const std::string &name);

// Whether a name may be a tensor's: UTF-8 without control characters. Slashes are fine, since it names no file.
bool isTensorName(const std::string &name);

} // namespace ds
#endif
