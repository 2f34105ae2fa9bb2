#include "runtime/training/CheckpointInfo.h"

#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"
#include "runtime/core/JsonReader.h"
#include "runtime/core/Text.h"
#include "runtime/io/StrictJson.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <set>

namespace ds {
namespace {

using nlohmann::json;

constexpr int64_t wholeVersion = 1, cutVersion = 2; // the first one has no tensors of several pieces
constexpr size_t digestLength = 64;
// How the text ends, but for the digest between.
const std::string closingHead = "\"sha256\": \"", closingTail = "\"\n}\n";

bool isDigest(const std::string &text) {
  return text.size() == digestLength &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string readDigest(const JsonReader &reader) {
  std::string digest = reader.string();
  if (!isDigest(digest))
    reader.refuse("found ", reader.shown(), ", expected 64 hex digits");
  return digest;
}

std::string readFileName(const JsonReader &reader) {
  std::string name = reader.string();
  if (!isFileName(name))
    reader.refuse("found ", reader.shown(), ", expected the name of a file");
  return name;
}

// The checksum covers all that comes before it; what comes after is checked here.
void checkChecksum(const std::string &text) {
  size_t closing = closingHead.size() + digestLength + closingTail.size();
  size_t begin = text.size() - std::min(text.size(), closing);
  std::string digest = text.size() < closing ? "" : text.substr(begin + closingHead.size(), digestLength);
  if (!isDigest(digest) || text.compare(begin, closingHead.size(), closingHead) != 0 ||
      text.compare(text.size() - closingTail.size(), closingTail.size(), closingTail) != 0)
    fail(ErrorCode::BadFile, "does not end in its checksum (truncated?)");
  std::string found = sha256Hex(text.data(), begin);
  if (found != digest)
    fail(ErrorCode::BadFile, "checksum mismatch, found ", found, ", expected ", digest);
}

TrainingProgress readProgress(const JsonReader &root, const json &document) {
  TrainingProgress progress;
  progress.step = root["step"].integer(0);
  progress.samples = root["samples"].integer(0);
  progress.loader = {root["loader"]["epoch"].integer(0), root["loader"]["position"].integer(0)};
  // As text, since half of the readers of JSON have doubles only.
  std::string seed = root["seed"].string();
  if (seed.empty() || seed.size() > 20 || seed.find_first_not_of("0123456789") != std::string::npos)
    root["seed"].refuse("found ", root["seed"].shown(), ", expected digits");
  errno = 0;
  progress.seed = std::strtoull(seed.c_str(), nullptr, 10);
  if (errno != 0)
    root["seed"].refuse("found ", seed, ", expected at most 64 bits");
  JsonReader scale = root["loss_scale"];
  scale["scale"];
  const json &number = document["loss_scale"]["scale"];
  if (!number.is_number() || number.get<double>() <= 0)
    scale["scale"].refuse("found ", scale["scale"].shown(), ", expected a number above 0");
  progress.lossScale = {number.get<double>(), scale["iteration"].integer(0), scale["last_overflow"].integer(-1),
                        scale["hysteresis"].integer(0)};
  root["trainer"];
  root["client_state"];
  progress.trainer = document["trainer"];
  progress.clientState = document["client_state"];
  return progress;
}

CheckpointFile readFile(const JsonReader &reader) {
  CheckpointFile file;
  file.name = readFileName(reader["name"]);
  file.bytes = static_cast<uint64_t>(reader["bytes"].integer(0));
  file.headerBytes = static_cast<uint64_t>(reader["header_bytes"].integer(0, static_cast<int64_t>(file.bytes)));
  file.headerDigest = readDigest(reader["header_sha256"]);
  return file;
}

void readDigests(const JsonReader &reader, const CheckpointTensor &tensor, CheckpointPiece &piece) {
  reader.forEach([&](const JsonReader &digest) { piece.digests.push_back(readDigest(digest)); });
  uint64_t bytes = static_cast<uint64_t>(piece.end - piece.begin) * typeSize(tensor.type);
  uint64_t chunks = (bytes + checkpointChunk - 1) / checkpointChunk;
  if (piece.digests.size() != chunks)
    reader.refuse("found ", piece.digests.size(), " checksums, expected ", chunks);
}

// Of a cut tensor: nothing is missing between its pieces, and nothing is there twice.
void readPieces(const JsonReader &reader, CheckpointTensor &tensor, int64_t count) {
  int64_t at = 0;
  reader.forEach([&](const JsonReader &item) {
    CheckpointPiece piece;
    piece.file = readFileName(item["file"]);
    piece.begin = item["begin"].integer(0);
    piece.end = item["end"].integer(0);
    if (piece.begin != at || piece.end <= piece.begin || piece.end > count)
      item.refuse("found elements ", piece.begin, " to ", piece.end, ", expected some from ", at, " to at most ",
                  count);
    at = piece.end;
    readDigests(item["sha256"], tensor, piece);
    tensor.pieces.push_back(std::move(piece));
  });
  if (at != count)
    reader.refuse("found ", at, " elements, expected ", count);
}

CheckpointTensor readTensor(const JsonReader &reader) {
  CheckpointTensor tensor;
  tensor.name = reader["name"].string();
  if (!isTensorName(tensor.name))
    reader["name"].refuse("found ", reader["name"].shown(), ", expected a name without control characters");
  std::optional<ElementType> type = typeFromName(reader["dtype"].string());
  if (!type)
    reader["dtype"].refuse("found ", reader["dtype"].shown(), ", which is no type");
  tensor.type = *type;
  reader["shape"].forEach([&](const JsonReader &size) { tensor.shape.push_back(size.integer(0)); });
  byteCount(tensor.type, tensor.shape); // throws where it is beyond all numbers
  int64_t count = elementCount(tensor.shape);
  if (reader.has("pieces") && count > 0) {
    readPieces(reader["pieces"], tensor, count);
    return tensor;
  }
  CheckpointPiece piece;
  piece.file = readFileName(reader["file"]);
  piece.end = count;
  readDigests(reader["sha256"], tensor, piece);
  tensor.pieces.push_back(std::move(piece));
  return tensor;
}

CheckpointInfo readDocument(const json &document) {
  JsonReader root(document, "");
  if (int64_t found = root["version"].integer(); found != wholeVersion && found != cutVersion)
    root["version"].refuse("found ", found, ", expected ", wholeVersion, " or ", cutVersion,
                           ": written by another version of Deepstride");
  if (uint64_t found = static_cast<uint64_t>(root["chunk_bytes"].integer()); found != checkpointChunk)
    root["chunk_bytes"].refuse("found ", found, ", expected ", checkpointChunk);
  CheckpointInfo info;
  info.progress = readProgress(root, document);
  std::set<std::string> files, names;
  root["files"].forEach([&](const JsonReader &reader) {
    info.files.push_back(readFile(reader));
    if (!files.insert(info.files.back().name).second)
      reader.refuse("'", info.files.back().name, "' occurs twice");
  });
  root["tensors"].forEach([&](const JsonReader &reader) {
    info.tensors.push_back(readTensor(reader));
    if (!names.insert(info.tensors.back().name).second)
      reader.refuse("'", info.tensors.back().name, "' occurs twice");
    for (const CheckpointPiece &piece : info.tensors.back().pieces)
      if (!files.count(piece.file))
        reader.refuse("lies in '", piece.file, "', which is not among the files");
  });
  std::sort(info.tensors.begin(), info.tensors.end(),
            [](const CheckpointTensor &a, const CheckpointTensor &b) { return a.name < b.name; });
  return info;
}

} // namespace

std::string pieceName(const CheckpointTensor &tensor, const CheckpointPiece &piece) {
  if (tensor.pieces.size() > 1)
    return concat(tensor.name, "[", piece.begin, ":", piece.end, "]");
  // A tensor may itself be called like a piece of another one.
  return !tensor.name.empty() && tensor.name.back() == ']' ? tensor.name + "[]" : tensor.name;
}

Shape pieceShape(const CheckpointTensor &tensor, const CheckpointPiece &piece) {
  return tensor.pieces.size() == 1 ? tensor.shape : Shape{piece.end - piece.begin};
}

std::string writeCheckpointInfo(const CheckpointInfo &info) {
  const TrainingProgress &progress = info.progress;
  json files = json::array(), tensors = json::array();
  for (const CheckpointFile &file : info.files)
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"header_bytes", file.headerBytes},
                     {"header_sha256", file.headerDigest}});
  bool isCut = false;
  for (const CheckpointTensor &tensor : info.tensors) {
    tensors.push_back({{"name", tensor.name}, {"dtype", typeName(tensor.type)}, {"shape", tensor.shape}});
    if (tensor.pieces.size() == 1) {
      tensors.back()["file"] = tensor.pieces[0].file;
      tensors.back()["sha256"] = tensor.pieces[0].digests;
      continue;
    }
    isCut = true;
    for (const CheckpointPiece &piece : tensor.pieces)
      tensors.back()["pieces"].push_back(
          {{"file", piece.file}, {"begin", piece.begin}, {"end", piece.end}, {"sha256", piece.digests}});
  }
  nlohmann::ordered_json document;
  document["version"] = isCut ? cutVersion : wholeVersion; // what older programs can read they shall
  document["step"] = progress.step;
  document["samples"] = progress.samples;
  document["loader"] = {{"epoch", progress.loader.epoch}, {"position", progress.loader.position}};
  document["seed"] = std::to_string(progress.seed);
  document["loss_scale"] = {{"scale", progress.lossScale.scale},
                            {"iteration", progress.lossScale.iteration},
                            {"last_overflow", progress.lossScale.lastOverflow},
                            {"hysteresis", progress.lossScale.hysteresis}};
  document["trainer"] = progress.trainer;
  document["client_state"] = progress.clientState;
  document["chunk_bytes"] = checkpointChunk;
  document["files"] = files;
  document["tensors"] = tensors;
  writeStrictJson(json(document)); // refuses what cannot be read back
  std::string text = document.dump(1);
  text.resize(text.size() - 2); // the closing brace comes after the checksum
  text += ",\n ";
  text += closingHead + sha256Hex(text.data(), text.size()) + closingTail;
  try {
    readCheckpointInfo(text);
  } catch (const Error &error) {
    fail(ErrorCode::InvalidArgument, error.what());
  }
  return text;
}

CheckpointInfo readCheckpointInfo(const std::string &text) {
  checkChecksum(text);
  json document = parseStrictJson(text);
  try {
    return readDocument(document);
  } catch (const Error &error) {
    fail(ErrorCode::BadFile, error.what()); // JsonReader was made for packages
  }
}

static bool hasControls(const std::string &text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

bool isTensorName(const std::string &name) { return !name.empty() && isUtf8(name) && !hasControls(name); }

bool isFileName(const std::string &name) {
  bool isPlain = !name.empty() && name.size() <= 200 && name[0] != '.' && name[0] != '-' && name.back() != ' ';
  return isPlain && isUtf8(name) && !hasControls(name) && name.find_first_of("/\\") == std::string::npos;
}

} // namespace ds
