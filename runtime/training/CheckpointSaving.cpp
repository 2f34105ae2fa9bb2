#include "runtime/training/CheckpointSaving.h"

#include "runtime/core/Checksums.h"
#include "runtime/core/Error.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Text.h"
#include "runtime/io/Safetensors.h"
#include "runtime/training/CheckpointFolder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace ds {
namespace {

using nlohmann::json;

// What a rank must write: of the tensors that it holds, those that fall to it.
struct OwnFile {
  std::string name;
  std::vector<CheckpointTensor> tensors; // of one piece here, but with the names and shapes of pieces in their files
  std::vector<NamedView> views;
};

void checkParts(const std::vector<CheckpointPart> &parts) {
  std::map<std::string, int64_t> ends;
  for (const CheckpointPart &part : parts) {
    if (!isFileName(part.file))
      fail(ErrorCode::InvalidArgument, inQuotes(part.file), ": expected the name of a file");
    for (const HeldTensor &tensor : part.tensors) {
      if (!isTensorName(tensor.name))
        fail(ErrorCode::InvalidArgument, "tensor ", inQuotes(tensor.name),
             ": expected a name of UTF-8 without control characters");
      auto [known, isNew] = ends.emplace(tensor.name, tensor.end);
      if (!isNew && tensor.begin < known->second)
        fail(ErrorCode::InvalidArgument, "tensor ", inQuotes(tensor.name), " occurs twice");
      known->second = tensor.end;
      if (tensor.begin < 0 || tensor.end < tensor.begin || tensor.end > elementCount(tensor.shape))
        fail(ErrorCode::InvalidArgument, "tensor ", inQuotes(tensor.name), ": found elements ", tensor.begin, " to ",
             tensor.end, ", expected some of ", elementCount(tensor.shape));
    }
  }
}

// An action of each rank that may fail: all ranks get the Error of the first one that did.
template <typename Action> std::vector<std::string> together(Ranks &ranks, const std::string &what, Action action) {
  std::string result;
  std::optional<Error> failure;
  try {
    result = "+" + action();
  } catch (const Error &error) {
    failure.emplace(error);
    result = std::string("-") + error.what();
  } catch (const std::exception &error) {
    failure.emplace(ErrorCode::Execution, error.what());
    result = std::string("-") + error.what();
  }
  std::vector<std::string> results = ranks.gatherTexts(what, result);
  for (unsigned rank = 0; rank < ranks.world(); ++rank) {
    if (rank == ranks.rank() && failure)
      throw Error(*failure);
    if (results[rank][0] == '-')
      fail(ErrorCode::Collective, "rank ", rank, ": ", results[rank].substr(1));
    results[rank].erase(0, 1);
  }
  return results;
}

// A piece that a rank holds.
struct Held {
  unsigned rank;
  std::string part;
  ElementType type;
  Shape shape;
  int64_t begin, end;
};
using HeldByName = std::map<std::string, std::vector<Held>>;

json tableOf(const std::vector<CheckpointPart> &parts) {
  json table = json::array();
  for (const CheckpointPart &part : parts)
    for (const HeldTensor &tensor : part.tensors)
      table.push_back({part.file, tensor.name, static_cast<int>(tensor.type), tensor.shape, tensor.begin, tensor.end});
  return table;
}

HeldByName heldBy(const std::vector<std::string> &tables) {
  HeldByName held;
  for (unsigned rank = 0; rank < tables.size(); ++rank)
    for (const json &row : json::parse(tables[rank]))
      held[row[1].get<std::string>()].push_back({rank, row[0].get<std::string>(),
                                                 static_cast<ElementType>(row[2].get<int>()), row[3].get<Shape>(),
                                                 row[4].get<int64_t>(), row[5].get<int64_t>()});
  return held;
}

std::string describe(const Held &held) {
  return concat(held.part, " ", typeName(held.type), " ", listText(held.shape));
}

// Who writes which elements: the first rank that holds them.
std::vector<Held> cover(const std::string &name, const std::vector<Held> &held) {
  const Held &first = held.front();
  for (const Held &other : held)
    if (other.type != first.type || other.shape != first.shape || other.part != first.part)
      fail(ErrorCode::InvalidArgument, "ranks disagree: rank ", other.rank, " has tensor '", name, "' in ",
           describe(other), ", rank ", first.rank, " in ", describe(first));
  int64_t count = elementCount(first.shape), at = 0;
  if (count == 0)
    return {first};
  std::vector<Held> pieces;
  while (at < count) {
    auto next =
        std::find_if(held.begin(), held.end(), [&](const Held &own) { return own.begin <= at && at < own.end; });
    if (next == held.end()) {
      int64_t end = count;
      for (const Held &own : held)
        if (own.begin > at && own.begin < own.end)
          end = std::min(end, own.begin);
      fail(ErrorCode::InvalidArgument, "tensor '", name, "': no rank holds elements ", at, " to ", end, " of ", count);
    }
    pieces.push_back(*next);
    pieces.back().begin = at;
    at = next->end;
  }
  return pieces;
}

class Writer {
public:
  Writer(const std::vector<CheckpointPart> &parts, const HeldByName &held, unsigned rank, uint64_t limit)
      : held(held), rank(rank), limit(limit) {
    for (const CheckpointPart &part : parts)
      add(part);
  }

  // Writes the files and says what is in them, in the words of checkpoint.json.
  json write(const std::string &folder, const SaveOptions &options) const {
    json files = json::array(), pieces = json::array();
    for (const OwnFile &file : own) {
      std::string path = folder + "/" + file.name;
      std::vector<std::vector<std::string>> digests(file.views.size());
      writeSafetensors(path, file.views, {{"format", "deepstride"}}, checkpointChunk,
                       [&](size_t tensor, uint64_t begin, uint64_t end) {
                         const auto *bytes = static_cast<const uint8_t *>(file.views[tensor].view.data) + begin;
                         digests[tensor].push_back(sha256Hex(bytes, end - begin));
                         if (options.release)
                           options.release(bytes, end - begin);
                       });
      SafetensorsReader written(path);
      files.push_back({file.name, written.fileBytes(), written.headerBytes(),
                       sha256Hex(written.fileData(), written.headerBytes())});
      for (size_t i = 0; i < file.views.size(); ++i) {
        const CheckpointPiece &piece = file.tensors[i].pieces.front();
        pieces.push_back({file.tensors[i].name, file.name, piece.begin, piece.end, digests[i]});
      }
    }
    return {{"files", files}, {"pieces", pieces}};
  }

private:
  void add(const CheckpointPart &part) {
    std::string stem = rank == 0 ? part.file : concat(part.file, "-rank", rank);
    uint64_t bytes = 0;
    size_t number = 0;
    for (const HeldTensor &tensor : part.tensors) {
      std::vector<Held> all = cover(tensor.name, held.at(tensor.name));
      for (const Held &piece : all) {
        bool isOwn = piece.rank == rank && tensor.begin <= piece.begin && piece.end <= tensor.end;
        if (!isOwn || !written.insert(concat(piece.begin, " ", tensor.name)).second) // empty ones are in any other
          continue;
        uint64_t size = static_cast<uint64_t>(piece.end - piece.begin) * typeSize(tensor.type);
        if (number == 0 || (bytes + size > limit && bytes > 0)) {
          std::string name = stem + (++number > 1 ? concat("-", number) : "") + ".safetensors";
          if (!names.insert(name).second)
            fail(ErrorCode::InvalidArgument, "two files '", name, "'");
          own.push_back({name, {}, {}});
          bytes = 0;
        }
        bytes += size;
        put(tensor, piece, all.size());
      }
    }
  }

  void put(const HeldTensor &tensor, const Held &piece, size_t pieces) {
    CheckpointTensor named = {tensor.name, tensor.type, tensor.shape, {{own.back().name, piece.begin, piece.end, {}}}};
    named.pieces.resize(pieces, named.pieces[0]); // so that names and shapes are those of cut tensors
    const CheckpointPiece &first = named.pieces[0];
    const uint8_t *data = static_cast<const uint8_t *>(tensor.data) +
                          static_cast<size_t>(piece.begin - tensor.begin) * typeSize(tensor.type);
    own.back().views.push_back({pieceName(named, first), {tensor.type, pieceShape(named, first), data}});
    own.back().tensors.push_back(std::move(named));
  }

  const HeldByName &held;
  unsigned rank;
  uint64_t limit;
  std::set<std::string> names, written;
  std::vector<OwnFile> own;
};

CheckpointInfo collect(const TrainingProgress &progress, const HeldByName &held,
                       const std::vector<std::string> &written) {
  CheckpointInfo info;
  info.progress = progress;
  std::map<std::string, CheckpointTensor> tensors;
  for (const auto &[name, pieces] : held)
    tensors[name] = {name, pieces[0].type, pieces[0].shape, {}};
  for (const std::string &text : written) {
    json own = json::parse(text);
    for (const json &file : own["files"])
      info.files.push_back(
          {file[0].get<std::string>(), file[1].get<uint64_t>(), file[2].get<uint64_t>(), file[3].get<std::string>()});
    for (const json &piece : own["pieces"])
      tensors[piece[0].get<std::string>()].pieces.push_back({piece[1].get<std::string>(), piece[2].get<int64_t>(),
                                                             piece[3].get<int64_t>(),
                                                             piece[4].get<std::vector<std::string>>()});
  }
  for (auto &[name, tensor] : tensors) {
    std::sort(tensor.pieces.begin(), tensor.pieces.end(),
              [](const CheckpointPiece &a, const CheckpointPiece &b) { return a.begin < b.begin; });
    info.tensors.push_back(std::move(tensor));
  }
  return info;
}

// Rank 0's tag, which others may have another idea of.
std::string agreedTag(const std::vector<std::string> &tags, TagValidation validation, std::string *warning) {
  for (size_t rank = 1; rank < tags.size(); ++rank) {
    if (tags[rank] == tags[0] || validation == TagValidation::Ignore)
      continue;
    std::string text = concat("checkpoint.tag_validation: rank ", rank, " would save under ", inQuotes(tags[rank]),
                              ", rank 0 under ", inQuotes(tags[0]));
    if (validation == TagValidation::Fail)
      fail(ErrorCode::Collective, text);
    if (warning)
      *warning = text + ", which counts";
    break;
  }
  return tags[0];
}

void finish(CheckpointSave &save, const CheckpointInfo &info, unsigned keep) {
  std::string text = writeCheckpointInfo(info);
  AtomicFile file(save.path() + "/" + checkpointInfoName);
  file.write(text.data(), text.size());
  file.commit();
  save.publish();
  if (keep != 0)
    save.removeOldest(keep);
}

} // namespace

std::string saveCheckpoint(const std::string &folder, const TrainingProgress &progress,
                           const std::vector<CheckpointPart> &parts, const SaveOptions &options, Ranks &ranks,
                           std::string *warning) {
  std::vector<std::string> tags = together(ranks, "checkpoint: tag", [&] {
    return options.tag.empty() ? concat("global_step", progress.step) : options.tag;
  });
  std::string tag = agreedTag(tags, options.tags, warning);
  HeldByName held = heldBy(together(ranks, "checkpoint: tensors", [&] {
    checkParts(parts);
    return tableOf(parts).dump();
  }));
  std::optional<CheckpointSave> save;
  std::string place = together(ranks, "checkpoint: folder", [&]() -> std::string {
    if (!ranks.isFirst())
      return "";
    save.emplace(folder, tag);
    return std::filesystem::absolute(save->path()).string();
  })[0];
  std::vector<std::string> written = together(ranks, "checkpoint: files", [&] {
    Writer writer(parts, held, ranks.rank(), options.fileBytes);
    return writer.write(ranks.world() == 1 ? save->path() : place, options).dump();
  });
  together(ranks, "checkpoint: end", [&]() -> std::string {
    if (save)
      finish(*save, collect(progress, held, written), options.keep);
    return "";
  });
  return tag;
}

} // namespace ds
